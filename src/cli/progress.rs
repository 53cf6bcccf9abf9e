//! A bar for every fan-out, on a terminal. How many buckets there are is only known at the end, so
//! a bar counts and does not fill.

use super::output::Output;
use crate::fanout::{Outcome, Progress, Tally};
use crate::model::Owed;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Draws bars.
pub(super) struct Bars {
    all: MultiProgress,
    running: Mutex<BTreeMap<Owed, ProgressBar>>,
}

impl Bars {
    /// Bars on stderr, or none where none may be drawn.
    pub(super) fn new(out: &Output) -> Bars {
        let target = if out.draws() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        Bars {
            all: MultiProgress::with_draw_target(target),
            running: Mutex::default(),
        }
    }

    fn with(&self, act: impl FnOnce(&mut BTreeMap<Owed, ProgressBar>)) {
        // A panic elsewhere leaves bars that can still be drawn.
        act(&mut self.running.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Progress for Bars {
    fn began(&self, owed: &Owed) {
        let style = ProgressStyle::with_template("{spinner} {prefix}  {pos} buckets  {elapsed}");
        let bar = ProgressBar::no_length()
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
            .with_prefix(owed.to_string());
        let bar = self.all.add(bar);
        bar.enable_steady_tick(Duration::from_millis(120));
        self.with(|running| {
            running.insert(owed.clone(), bar);
        });
    }

    fn advanced(&self, owed: &Owed, tally: &Tally) {
        self.with(|running| {
            if let Some(bar) = running.get(owed) {
                bar.set_position(tally.stamped);
            }
        });
    }

    fn ended(&self, outcome: &Outcome) {
        self.with(|running| {
            if let Some(bar) = running.remove(&outcome.owed) {
                bar.finish_and_clear();
            }
        });
    }
}
