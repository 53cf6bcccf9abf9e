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
//!
//! Caveat: several levels decide about one bucket, and a bucket is written from what was read of them
//! a moment before. Where two applies that run at once each change another of these levels, the one
//! that read first may write last. Of access the reading pass mends that; limits, cascade policy and
//! soft stamps keep what was written last until their level is fanned out again.

mod access;
mod cascade;
mod pace;
mod params;
mod pipeline;
mod seen;
mod settings;
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
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::time::Duration;

pub use settings::Settings;
pub use stop::Stop;

/// Failed buckets that a report names.
const SAMPLES: usize = 20;
/// Levels fanned out at once.
const LEVELS: usize = 8;
/// Rounds after which a level that keeps moving is left pending.
const ROUNDS: u32 = 3;
/// Fan-outs after which those that landed are given up together. A run that is killed repeats few more.
const RELEASED_TOGETHER: usize = 25;

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
    /// Whether it landed and its share was given up.
    pub released: bool,
    /// Whether the reading pass is still to come.
    unread: bool,
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

/// Everything that the fan-outs of one apply share.
pub struct Fanouts<'a> {
    store: &'a Store,
    ns: &'a NamespaceId,
    clock: &'a Clock,
    settings: &'a Settings,
    progress: &'a dyn Progress,
    shares: Option<Shares<'a>>,
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
            shares: None,
            pace,
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

    /// Runs fan-outs, resource levels before entity levels, and then the reading pass over those
    /// of access that landed. `written_at` is when the last config write landed. Sorted by what was
    /// owed.
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
            let running =
                stream::iter(0..rank.len()).map(|index| self.run_one(rank[index], written_at));
            let mut running = running.buffer_unordered(LEVELS);
            let mut fresh = Vec::new();
            while let Some(outcome) = running.next().await {
                fresh.push(outcome);
                if fresh.len() == RELEASED_TOGETHER {
                    self.release(&mut fresh).await;
                    outcomes.append(&mut fresh);
                }
            }
            outcomes.append(&mut fresh);
        }
        outcomes = self.settle(outcomes, written_at).await;
        outcomes.sort_by(|a, b| a.owed.cmp(&b.owed));
        for outcome in &mut outcomes {
            if self.settings.stop.is_set() && matches!(outcome.ended, Ended::OutOfTime) {
                outcome.ended = Ended::Stopped;
            }
            self.progress.ended(outcome);
        }
        outcomes
    }

    async fn run_one(&self, owed: &Owed, written_at: EpochMs) -> Outcome {
        self.progress.began(owed);
        let mut tally = Tally::default();
        let ended = self.in_time(self.passes(owed, &mut tally)).await;
        let mut outcome = Outcome {
            owed: owed.clone(),
            ended,
            tally,
            released: false,
            unread: false,
        };
        outcome.unread = outcome.has_landed()
            && owed.kind == FanoutKind::Access
            && owed.kind.applies_to(&owed.level)
            && !self.settings.settle.is_zero();
        if outcome.unread && self.until_settled(written_at).is_zero() {
            self.mend(&mut outcome).await;
        }
        outcome
    }

    async fn passes(&self, owed: &Owed, tally: &mut Tally) -> Result<Ended, StoreError> {
        match owed.kind {
            // Someone else recorded it: there is nothing to bring, and it is done.
            kind if !kind.applies_to(&owed.level) => Ok(Ended::Landed),
            FanoutKind::Access => access::run(self, owed, tally).await,
            FanoutKind::Cascade => cascade::run(self, owed, tally).await,
            FanoutKind::Soft => soft::run(self, owed, tally).await,
            FanoutKind::Params => params::run(self, owed, tally).await,
        }
    }

    /// Runs work until the time is over, if it is not over yet.
    async fn in_time(&self, work: impl Future<Output = Result<Ended, StoreError>>) -> Ended {
        if self.is_out_of_time() {
            return Ended::OutOfTime;
        }
        match self.settings.in_time(self.clock.now(), work).await {
            Some(ended) => ended.unwrap_or_else(Ended::Failed),
            None => Ended::OutOfTime,
        }
    }

    /// Waits until acquires that were in flight at the config writes have landed, then reads what
    /// the buckets show and mends it, where that is still to be done.
    async fn settle(&self, outcomes: Vec<Outcome>, written_at: EpochMs) -> Vec<Outcome> {
        if !outcomes.iter().any(|outcome| outcome.unread) {
            return outcomes;
        }
        let left = self.until_settled(written_at);
        // Whichever ends the wait: a pass that may not begin says so itself.
        let _ = tokio::time::timeout(left, self.settings.stop.wait()).await;
        // By value: a stream of closures over references is not `Send`.
        let mends = stream::iter(outcomes).map(|mut outcome| async move {
            if outcome.unread {
                self.mend(&mut outcome).await;
            }
            outcome
        });
        mends.buffered(LEVELS).collect().await
    }

    async fn mend(&self, outcome: &mut Outcome) {
        let work = access::mend(self, &outcome.owed, &mut outcome.tally);
        outcome.ended = self.in_time(work).await;
        outcome.unread = false;
    }

    /// How long it is until an acquire that was in flight at the config writes has landed.
    fn until_settled(&self, written_at: EpochMs) -> Duration {
        let settle_ms = u64::try_from(self.settings.settle.as_millis()).unwrap_or(u64::MAX);
        let waited_ms = self.clock.now().0.saturating_sub(written_at.0);
        Duration::from_millis(settle_ms.saturating_sub(waited_ms))
    }

    /// Gives up the shares of those that have landed, so that a run that is killed is not begun all
    /// over. What cannot be given up here stays for the end of the run, which says so.
    async fn release(&self, outcomes: &mut [Outcome]) {
        let Some(shares) = self.shares else {
            return;
        };
        let is_due = |outcome: &Outcome| {
            outcome.has_landed() && !outcome.unread && shares.of.contains(&outcome.owed)
        };
        let due = outcomes.iter().filter(|outcome| is_due(outcome));
        let due: Vec<Owed> = due.map(|outcome| outcome.owed.clone()).collect();
        let released = self.store.release(self.ns, &due, shares.token).await;
        for outcome in outcomes.iter_mut().filter(|outcome| is_due(outcome)) {
            outcome.released = released.is_ok();
        }
    }

    fn is_out_of_time(&self) -> bool {
        self.settings.is_over(self.clock.now())
    }
}
