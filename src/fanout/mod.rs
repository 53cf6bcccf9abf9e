//! The shared fan-out: bringing what the table's config says to every affected bucket.
//!
//! Clients decide on the bucket alone, so a switch takes effect when it is stamped there. A
//! fan-out runs from the table, never from a manifest: it reads its level, works, and reads it
//! again, so that two that race can only converge to what the table holds.
//!
//! ```text
//! discover (query pages) -> resolve (consistent batches) -> stamp (batched, paced) -> count
//! ```
//!
//! The three run side by side, each a bounded way ahead of the next. Memory does not grow with the
//! number of buckets: at most two pages are held, a dozen in the second pass, of decided parts what is written
//! in two round trips, and of what a first pass found a bounded memory of buckets and some hundred bytes for
//! each page.
//!
//! Several levels decide about one bucket, and a bucket is written from what was read of them a moment
//! before; others write it and them meanwhile. So it is done only when config, read after the write,
//! still demands what was written: of access the reading pass looks, which follows once the index shows
//! what was written; of everything else each part of a pass itself.

mod access;
mod cascade;
mod find;
mod order;
mod pace;
mod params;
mod pipeline;
mod queue;
mod seen;
mod settings;
mod soft;
mod stop;
mod walk;

use crate::clock::Clock;
use crate::model::{AccessMode, NamespaceId, Owed};
use crate::store::{Store, StoreError};
use crate::table::BucketKeyError;
use pace::Pace;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use settings::Settings;
pub use stop::Stop;

/// Failed buckets that a report names.
const SAMPLES: usize = 20;
/// Rounds after which a level that keeps moving is left pending.
const ROUNDS: u32 = 3;

/// How far a fan-out came.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Buckets found in the first pass.
    pub found: u64,
    /// Writes that landed.
    pub stamped: u64,
    /// Of these, what stamps of access say: how many of each mode. Empty for other fan-outs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub modes: BTreeMap<AccessMode, u64>,
    /// Buckets that were gone by then.
    pub vanished: u64,
    /// Writes that failed for good.
    pub failed: u64,
    /// The first failures, each with its bucket's key.
    pub samples: Vec<String>,
    /// Items that the index holds and that cannot be buckets. They are left alone.
    pub foreign: u64,
    /// The first of them, each with its key.
    pub foreign_samples: Vec<String>,
}

impl Tally {
    fn fail(&mut self, pk: &str, error: &impl ToString) {
        self.failed += 1;
        if self.samples.len() < SAMPLES {
            self.samples.push(format!("{pk}: {}", error.to_string()));
        }
    }

    /// Adds writes that are done.
    fn add(&mut self, done: Tally) {
        self.stamped += done.stamped;
        for (mode, count) in done.modes {
            *self.modes.entry(mode).or_default() += count;
        }
        self.vanished += done.vanished;
        self.failed += done.failed;
        let room = SAMPLES.saturating_sub(self.samples.len());
        self.samples.extend(done.samples.into_iter().take(room));
    }

    /// Counts what is no bucket.
    fn skip(&mut self, pk: &str, error: &BucketKeyError) {
        self.foreign += 1;
        let sample = format!("{pk}: {}", error.problem);
        if self.foreign_samples.len() < SAMPLES && !self.foreign_samples.contains(&sample) {
            tracing::warn!(
                pk,
                problem = error.problem,
                "an index holds what is no bucket"
            );
            self.foreign_samples.push(sample);
        }
    }

    /// Writes that are over, however they ended.
    fn settled(&self) -> u64 {
        self.stamped + self.vanished + self.failed
    }

    /// How passes ended that began when so many had failed.
    fn ended_since(&self, failed: u64) -> Ended {
        if self.failed == failed {
            Ended::Landed
        } else {
            Ended::Incomplete
        }
    }
}

/// How a fan-out ended.
#[derive(Debug)]
pub enum Ended {
    /// Every bucket that was found carries what its resolution demands.
    Landed,
    /// Some buckets could not be written.
    Incomplete,
    /// The deadline came first.
    OutOfTime,
    /// Someone asked for the end.
    Stopped,
    /// The level kept moving.
    Moving,
    /// Discovery or resolution failed.
    Failed(StoreError),
}

/// One fan-out that ran.
#[derive(Debug)]
pub struct Outcome {
    /// What was owed.
    pub owed: Owed,
    /// How it ended.
    pub ended: Ended,
    /// How far it came.
    pub tally: Tally,
    /// Whether it landed and its share was given up.
    pub released: bool,
}

impl Outcome {
    /// Whether nothing is owed any more.
    pub fn has_landed(&self) -> bool {
        matches!(self.ended, Ended::Landed)
    }

    /// Whether it was ended early and would have gone on.
    pub fn was_interrupted(&self) -> bool {
        matches!(self.ended, Ended::OutOfTime | Ended::Stopped)
    }
}

/// The shares that a run holds, to be given up as their fan-outs land.
#[derive(Debug, Clone, Copy)]
pub struct Shares<'a> {
    /// The run's token.
    pub token: &'a str,
    /// The fan-outs whose shares are given up once they have landed.
    pub of: &'a BTreeSet<Owed>,
}

/// Hears how far a fan-out has come. Called from several tasks.
pub trait Progress: Send + Sync {
    /// A fan-out begins.
    fn began(&self, _owed: &Owed) {}
    /// A fan-out has come this far.
    fn advanced(&self, _owed: &Owed, _tally: &Tally) {}
    /// A fan-out is over.
    fn ended(&self, _outcome: &Outcome) {}
}

/// Hears nothing.
impl Progress for () {}

/// The namespace whose buckets are brought to what its config says, and how. Cheap to clone, for tasks of
/// their own.
#[derive(Debug, Clone)]
struct Target {
    store: Store,
    ns: NamespaceId,
    clock: Clock,
    settings: Arc<Settings>,
    pace: Arc<Pace>,
}

impl Target {
    fn is_out_of_time(&self) -> bool {
        self.settings.is_over(self.clock.now())
    }
}

/// Everything that the fan-outs of one apply share.
pub struct Fanouts<'a> {
    target: Target,
    progress: &'a dyn Progress,
    shares: Option<Shares<'a>>,
}

impl<'a> Fanouts<'a> {
    /// Fan-outs over one namespace.
    pub fn new(
        store: &Store,
        ns: &NamespaceId,
        clock: &Clock,
        settings: &Settings,
        progress: &'a dyn Progress,
    ) -> Self {
        let target = Target {
            store: store.clone(),
            ns: ns.clone(),
            clock: clock.clone(),
            pace: Arc::new(Pace::new(settings.concurrency)),
            settings: Arc::new(settings.clone()),
        };
        Fanouts {
            target,
            progress,
            shares: None,
        }
    }

    /// The same, giving up shares as their fan-outs land.
    #[must_use]
    pub fn releasing(self, shares: Shares<'a>) -> Self {
        Fanouts {
            shares: Some(shares),
            ..self
        }
    }

    fn is_out_of_time(&self) -> bool {
        self.target.is_out_of_time()
    }
}
