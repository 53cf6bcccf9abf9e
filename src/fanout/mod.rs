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
//! number of buckets: at most two pages are held, a few parts of one decided, and of buckets already
//! stamped a bounded memory.

mod access;
mod cascade;
mod pace;
mod params;
mod pipeline;
mod queue;
mod seen;
mod soft;
mod stop;
mod walk;

use crate::clock::Clock;
use crate::model::{AccessMode, EpochMs, FanoutKind, Level, NamespaceId, Owed};
use crate::store::{Store, StoreError};
use crate::table::BucketKeyError;
use futures::{StreamExt, stream};
use pace::Pace;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

pub use stop::Stop;

/// Failed buckets that a report names.
const SAMPLES: usize = 20;
/// Levels fanned out at once.
const LEVELS: usize = 8;
/// Rounds after which a level that keeps moving is left pending.
const ROUNDS: u32 = 3;

/// How a fan-out runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The most write batches in flight; throttling lowers it for a while.
    pub concurrency: usize,
    /// How long after the config writes the last, reading pass follows; zero turns it off.
    pub settle: Duration,
    /// When to stop, whatever is left; `None`: never.
    pub deadline: Option<EpochMs>,
    /// Set by someone who wants it to end early; what is left stays owed.
    pub stop: Stop,
}

impl Settings {
    /// Whether nothing more may be begun: the deadline is past, or someone asked for the end.
    pub fn is_over(&self, now: EpochMs) -> bool {
        self.stop.is_set() || self.deadline.is_some_and(|deadline| now >= deadline)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            concurrency: 16,
            settle: Duration::from_secs(1),
            deadline: None,
            stop: Stop::default(),
        }
    }
}

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
}

impl Outcome {
    /// Whether nothing is owed any more.
    pub fn has_landed(&self) -> bool {
        matches!(self.ended, Ended::Landed)
    }
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

/// Everything that the fan-outs of one apply share.
pub struct Fanouts<'a> {
    store: &'a Store,
    ns: &'a NamespaceId,
    clock: &'a Clock,
    settings: &'a Settings,
    progress: &'a dyn Progress,
    pace: Pace,
}

impl<'a> Fanouts<'a> {
    /// Fan-outs over one namespace.
    pub fn new(
        store: &'a Store,
        ns: &'a NamespaceId,
        clock: &'a Clock,
        settings: &'a Settings,
        progress: &'a dyn Progress,
    ) -> Self {
        let pace = Pace::new(settings.concurrency);
        Fanouts {
            store,
            ns,
            clock,
            settings,
            progress,
            pace,
        }
    }

    /// Runs fan-outs, resource levels before entity levels, and then the reading pass over those
    /// of access that landed. `written_at` is when the last config write landed.
    pub async fn run(
        &self,
        owed: impl IntoIterator<Item = &Owed>,
        written_at: EpochMs,
    ) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        let mut ranks: [Vec<&Owed>; 2] = Default::default();
        for owed in owed {
            let entity = matches!(owed.level, Level::Entity(..));
            ranks[usize::from(entity)].push(owed);
        }
        for rank in &ranks {
            // By index: a stream of closures over references is not `Send`.
            let running = stream::iter(0..rank.len()).map(|index| self.run_one(rank[index]));
            outcomes.extend(running.buffered(LEVELS).collect::<Vec<_>>().await);
        }
        if !self.settings.settle.is_zero() {
            outcomes = self.settle(outcomes, written_at).await;
        }
        for outcome in &mut outcomes {
            if self.settings.stop.is_set() && matches!(outcome.ended, Ended::OutOfTime) {
                outcome.ended = Ended::Stopped;
            }
            self.progress.ended(outcome);
        }
        outcomes
    }

    async fn run_one(&self, owed: &Owed) -> Outcome {
        self.progress.began(owed);
        let mut tally = Tally::default();
        let ended = match owed.kind {
            // Someone else recorded it: there is nothing to bring, and it is done.
            kind if !kind.applies_to(&owed.level) => Ok(Ended::Landed),
            FanoutKind::Access => access::run(self, owed, &mut tally).await,
            FanoutKind::Cascade => cascade::run(self, owed, &mut tally).await,
            FanoutKind::Soft => soft::run(self, owed, &mut tally).await,
            FanoutKind::Params => params::run(self, owed, &mut tally).await,
        };
        Outcome {
            owed: owed.clone(),
            ended: ended.unwrap_or_else(Ended::Failed),
            tally,
        }
    }

    /// Waits until acquires that were in flight at the config writes have landed, then reads what
    /// the buckets show and mends it.
    async fn settle(&self, outcomes: Vec<Outcome>, written_at: EpochMs) -> Vec<Outcome> {
        let is_due = |outcome: &Outcome| {
            let Owed { level, kind } = &outcome.owed;
            *kind == FanoutKind::Access && kind.applies_to(level) && outcome.has_landed()
        };
        if !outcomes.iter().any(is_due) {
            return outcomes;
        }
        let settle_ms = u64::try_from(self.settings.settle.as_millis()).unwrap_or(u64::MAX);
        let waited_ms = self.clock.now().0.saturating_sub(written_at.0);
        let left = Duration::from_millis(settle_ms.saturating_sub(waited_ms));
        // Whichever ends the wait: a pass that may not begin says so itself.
        let _ = tokio::time::timeout(left, self.settings.stop.wait()).await;
        // By value: a stream of closures over references is not `Send`.
        let mends = stream::iter(outcomes).map(|mut outcome| async move {
            if is_due(&outcome) {
                let ended = access::mend(self, &outcome.owed, &mut outcome.tally).await;
                outcome.ended = ended.unwrap_or_else(Ended::Failed);
            }
            outcome
        });
        mends.buffered(LEVELS).collect().await
    }

    fn is_out_of_time(&self) -> bool {
        self.settings.is_over(self.clock.now())
    }
}
