//! The table of figures: Markdown, so that a run can be pasted into `docs/measurements.md`.
//!
//! It shows where a target is missed and never fails: how fast a machine is, is not the code's fault.

use std::fmt;

/// One measured figure, beside what it is measured against.
pub struct Figure {
    name: String,
    unit: &'static str,
    ours: f64,
    at_most: Option<f64>,
    peer: Option<f64>,
}

impl Figure {
    pub fn new(name: impl Into<String>, unit: &'static str, ours: f64) -> Figure {
        Figure {
            name: name.into(),
            unit,
            ours,
            at_most: None,
            peer: None,
        }
    }

    /// The target: no more than this.
    pub fn at_most(mut self, target: f64) -> Figure {
        self.at_most = Some(target);
        self
    }

    /// What the peer needs for the same.
    pub fn peer(mut self, peer: Option<f64>) -> Figure {
        self.peer = peer;
        self
    }
}

/// The head of the table. Its rows are figures, printed as they are measured.
pub const HEAD: &str =
    "| figure | unit | ours | target | peer | peer / ours |\n| --- | --- | --: | --: | --: | --: |";

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = match self.at_most {
            None => String::new(),
            Some(target) if self.ours > target => format!("{}, missed", number(target)),
            Some(target) => number(target),
        };
        let peer = self.peer.map(number).unwrap_or_default();
        let ratio = self.peer.map(|peer| number(peer / self.ours));
        write!(
            f,
            "| {} | {} | {} | {target} | {peer} | {} |",
            self.name,
            self.unit,
            number(self.ours),
            ratio.unwrap_or_default()
        )
    }
}

/// Three digits that count, and no more.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A count of thousands or millions, for people.
pub fn count(value: usize) -> String {
    match value {
        0..1_000_000 => format!("{},{:03}", value / 1000, value % 1000),
        _ => format!(
            "{},{:03},{:03}",
            value / 1_000_000,
            value / 1000 % 1000,
            value % 1000
        ),
    }
}
