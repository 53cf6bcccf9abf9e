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
    at_least: Option<f64>,
    peer: Option<f64>,
}

impl Figure {
    pub fn new(name: impl Into<String>, unit: &'static str, ours: f64) -> Figure {
        Figure {
            name: name.into(),
            unit,
            ours,
            at_most: None,
            at_least: None,
            peer: None,
        }
    }

    /// The target: no more than this.
    pub fn at_most(mut self, target: f64) -> Figure {
        self.at_most = Some(target);
        self
    }

    /// The target: no less than this; of a figure with a peer, so many times less than the peer.
    pub fn at_least(mut self, target: f64) -> Figure {
        self.at_least = Some(target);
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
        let reached = self.peer.map_or(self.ours, |peer| peer / self.ours);
        let target = match (self.at_most, self.at_least) {
            (None, None) => String::new(),
            (Some(most), _) if self.ours > most => format!("{}, missed", number(most)),
            (Some(most), _) => number(most),
            (None, Some(least)) if reached < least => format!("at least {}, missed", number(least)),
            (None, Some(least)) => format!("at least {}", number(least)),
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

/// A count, for people: its digits in groups of three.
pub fn count(value: usize) -> String {
    match value / 1000 {
        0 => value.to_string(),
        thousands => format!("{},{:03}", count(thousands), value % 1000),
    }
}
