//! In which order fan-outs run: resource levels before entity levels, a few at once, and the reading
//! pass of each once it is due. What a pass does is not decided here. Due is an instant of the runtime's,
//! for waiting; what is compared with the table's instants comes from the clock.

use super::{Ended, Fanouts, Outcome, Tally, access, cascade, params, soft};
use crate::model::{EpochMs, FanoutKind, Level, Owed};
use crate::store::StoreError;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use std::collections::VecDeque;
use std::future::Future;
use std::time::Duration;
use tokio::time::Instant;

/// Levels fanned out at once.
const LEVELS: usize = 8;
/// Fan-outs after which those that landed are given up together. A run that is killed repeats few more.
const RELEASED_TOGETHER: usize = 25;

/// What is done with a fan-out at a time.
enum Turn<'o> {
    Passes(&'o Owed),
    Reading(Box<Outcome>),
    /// Giving up the shares of those that landed.
    Release(Vec<Outcome>),
}

/// What came of it.
enum Taken {
    /// Its passes are through, and its reading pass is due then.
    Settles(Box<Outcome>, Instant),
    Done(Box<Outcome>),
    Released(Vec<Outcome>),
}

/// What is still to be done.
struct Order<'o> {
    resources: VecDeque<&'o Owed>,
    entities: VecDeque<&'o Owed>,
    /// Fan-outs of resources whose passes run.
    running: usize,
    /// By when the reading pass is due.
    settling: VecDeque<(Instant, Box<Outcome>)>,
    /// Done, and their shares not given up yet.
    fresh: Vec<Outcome>,
    done: Vec<Outcome>,
}

impl<'o> Order<'o> {
    fn new(owed: impl IntoIterator<Item = &'o Owed>) -> Self {
        let is_entity = |owed: &&Owed| matches!(owed.level, Level::Entity(..));
        let (entities, resources) = owed.into_iter().partition(is_entity);
        Order {
            resources,
            entities,
            running: 0,
            settling: VecDeque::new(),
            fresh: Vec::new(),
            done: Vec::new(),
        }
    }

    /// What can be begun; with `over` nothing is waited for.
    fn next(&mut self, over: bool) -> Option<Turn<'o>> {
        if self.fresh.len() >= RELEASED_TOGETHER {
            return Some(Turn::Release(std::mem::take(&mut self.fresh)));
        }
        let is_due = |(due, _): &mut (Instant, Box<Outcome>)| over || *due <= Instant::now();
        if let Some((_, outcome)) = self.settling.pop_front_if(is_due) {
            return Some(Turn::Reading(outcome));
        }
        if let Some(owed) = self.resources.pop_front() {
            self.running += 1;
            return Some(Turn::Passes(owed));
        }
        // An entity's carve-out is stamped last.
        let entity = match self.running {
            0 => self.entities.pop_front(),
            _ => None,
        };
        entity.map(Turn::Passes)
    }

    /// How long it is until a reading pass is due; `None` when none is to come.
    fn wait(&self) -> Option<Duration> {
        let (due, _) = self.settling.front()?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    fn take_back(&mut self, taken: Taken) {
        match taken {
            Taken::Done(outcome) => self.fresh.push(*outcome),
            Taken::Released(outcomes) => self.done.extend(outcomes),
            Taken::Settles(outcome, due) => {
                let at = self.settling.partition_point(|(other, _)| *other <= due);
                self.settling.insert(at, (due, outcome));
            }
        }
    }
}

impl Fanouts<'_> {
    /// Runs fan-outs, resource levels before entity levels, and the reading pass over those of
    /// access that landed. `written_at` is when the last config write landed. Sorted by what was
    /// owed.
    pub async fn run(
        &self,
        owed: impl IntoIterator<Item = &Owed>,
        written_at: EpochMs,
    ) -> Vec<Outcome> {
        let mut order = Order::new(owed);
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < LEVELS
                && let Some(turn) = order.next(self.is_out_of_time())
            {
                running.push(self.take(turn, written_at));
            }
            let wait = order.wait().map(|wait| wait.min(self.until_deadline()));
            tokio::select! {
                biased;
                Some((taken, of_resource)) = running.next() => {
                    order.running -= usize::from(of_resource);
                    order.take_back(taken);
                }
                // Whichever ends the wait: a pass that may not begin says so itself.
                _ = tokio::time::timeout(wait.unwrap_or_default(), self.target.settings.stop.wait()),
                    if wait.is_some() && running.len() < LEVELS => {}
                else => break,
            }
        }
        let mut done = order.done;
        done.append(&mut order.fresh);
        done.sort_by(|a, b| a.owed.cmp(&b.owed));
        done
    }

    /// Does what is next for a fan-out. Also says whether these were the passes of a resource's.
    async fn take(&self, turn: Turn<'_>, written_at: EpochMs) -> (Taken, bool) {
        let (mut taken, of_resource) = match turn {
            Turn::Passes(owed) => {
                let of_resource = !matches!(owed.level, Level::Entity(..));
                (self.begin(owed, written_at).await, of_resource)
            }
            Turn::Reading(outcome) => (Taken::Done(self.mend(outcome).await), false),
            Turn::Release(mut outcomes) => {
                self.release(&mut outcomes).await;
                (Taken::Released(outcomes), false)
            }
        };
        if let Taken::Done(outcome) = &mut taken {
            if self.target.settings.stop.is_set() && matches!(outcome.ended, Ended::OutOfTime) {
                outcome.ended = Ended::Stopped;
            }
            self.progress.ended(outcome);
        }
        (taken, of_resource)
    }

    async fn begin(&self, owed: &Owed, written_at: EpochMs) -> Taken {
        self.progress.began(owed);
        let mut tally = Tally::default();
        let ended = self.in_time(self.passes(owed, &mut tally)).await;
        let outcome = Box::new(Outcome {
            owed: owed.clone(),
            ended,
            tally,
            released: false,
        });
        let is_read = owed.kind == FanoutKind::Access && owed.kind.applies_to(&owed.level);
        if !is_read || !outcome.has_landed() || self.target.settings.settle.is_zero() {
            return Taken::Done(outcome);
        }
        // By then acquires that were in flight at the config writes have landed, and the index
        // shows what was written here.
        let left = match outcome.tally.stamped {
            0 => self.until_settled(written_at),
            _ => self.target.settings.settle,
        };
        if left.is_zero() {
            return Taken::Done(self.mend(outcome).await);
        }
        Taken::Settles(outcome, Instant::now() + left)
    }

    async fn passes(&self, owed: &Owed, tally: &mut Tally) -> Result<Ended, StoreError> {
        match owed.kind {
            // Someone else recorded it: there is nothing to bring, and it is done.
            kind if !kind.applies_to(&owed.level) => Ok(Ended::Landed),
            // Boxed: each is large, and one stands inside the other.
            FanoutKind::Access => Box::pin(access::run(self, owed, tally)).await,
            FanoutKind::Cascade => Box::pin(cascade::run(self, owed, tally)).await,
            FanoutKind::Soft => Box::pin(soft::run(self, owed, tally)).await,
            FanoutKind::Params => Box::pin(params::run(self, owed, tally)).await,
        }
    }

    async fn mend(&self, mut outcome: Box<Outcome>) -> Box<Outcome> {
        let work = Box::pin(access::mend(self, &outcome.owed, &mut outcome.tally));
        outcome.ended = self.in_time(work).await;
        outcome
    }

    /// Runs work until the time is over, if it is not over yet.
    async fn in_time(&self, work: impl Future<Output = Result<Ended, StoreError>>) -> Ended {
        if self.is_out_of_time() {
            return Ended::OutOfTime;
        }
        match self
            .target
            .settings
            .in_time(self.target.clock.now(), work)
            .await
        {
            Some(ended) => ended.unwrap_or_else(Ended::Failed),
            None => Ended::OutOfTime,
        }
    }

    /// How long it is until an acquire that was in flight at the config writes has landed.
    fn until_settled(&self, written_at: EpochMs) -> Duration {
        let settle_ms = u64::try_from(self.target.settings.settle.as_millis()).unwrap_or(u64::MAX);
        let waited_ms = self.target.clock.now().0.saturating_sub(written_at.0);
        Duration::from_millis(settle_ms.saturating_sub(waited_ms))
    }

    fn until_deadline(&self) -> Duration {
        let now = self.target.clock.now();
        let left = self
            .target
            .settings
            .deadline
            .map(|end| end.0.saturating_sub(now.0));
        left.map_or(Duration::MAX, Duration::from_millis)
    }

    /// Gives up the shares of those that have landed, so that a run that is killed is not begun all
    /// over. What cannot be given up here stays for the end of the run, which says so.
    async fn release(&self, outcomes: &mut [Outcome]) {
        let Some(shares) = self.shares else {
            return;
        };
        let is_due = |outcome: &Outcome| outcome.has_landed() && shares.of.contains(&outcome.owed);
        let due = outcomes.iter().filter(|outcome| is_due(outcome));
        let due: Vec<Owed> = due.map(|outcome| outcome.owed.clone()).collect();
        let released = self
            .target
            .store
            .release(&self.target.ns, &due, shares.token)
            .await;
        for outcome in outcomes.iter_mut().filter(|outcome| is_due(outcome)) {
            outcome.released = released.is_ok();
        }
    }
}
