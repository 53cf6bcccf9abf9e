//! The passes that every fan-out is made of: find buckets page by page, decide what each must carry,
//! write it, and look whether config still says so, side by side.
//!
//! A bucket is decided by several levels, and other fan-outs, of other levels too, write it
//! meanwhile: what was decided before theirs may land after theirs. So a bucket is done only when
//! config, read after the write, still demands what was written.

use super::find::{self, Finder, Found};
use super::queue::Queue;
use super::seen::Seen;
use super::{Ended, Fanouts, ROUNDS, Tally, Target};
use crate::model::{AccessMode, Owed};
use crate::spread::spread;
use crate::store::{FoundBucket, Stamped, StoreError};
use crate::table::{BucketKeyError, keys};
use futures::stream::{FuturesUnordered, StreamExt};
use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;
use tokio::sync::mpsc;

/// How often a write that the table throttles is sent.
const ATTEMPTS: u32 = 7;

/// What a pass does with a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Write every bucket; the index is not trusted.
    First,
    /// Write buckets that the first pass did not see: an acquire in flight may have created them.
    Second,
    /// Write buckets that show something wrong.
    Reading,
    /// Decide anew about buckets that a pass has written, whichever level they follow by now.
    Again,
}

/// What one part of a page comes to.
pub(super) struct Decided<W> {
    /// Buckets to write, by partition key.
    pub(super) writes: Vec<(String, W)>,
    /// Buckets for which nothing could be decided, with the reason.
    pub(super) undecided: Vec<(String, String)>,
    /// What the index holds besides buckets, by partition key, with where the key departs from a bucket's.
    pub(super) foreign: Vec<(String, BucketKeyError)>,
}

impl<W> Default for Decided<W> {
    fn default() -> Self {
        Decided {
            writes: Vec::new(),
            undecided: Vec::new(),
            foreign: Vec::new(),
        }
    }
}

/// One kind of fan-out over one level.
pub(super) trait Kind: Clone + Send + Sync + 'static {
    /// What is written to a bucket.
    type Write: Clone + Send + Sync + 'static;
    /// What of the level's config decides; compared before and after.
    type Seed: PartialEq + Send;
    /// Buckets that one request writes.
    const BATCH: usize;

    /// Reads what decides, from the table.
    fn seed(&self) -> impl Future<Output = Result<Self::Seed, StoreError>> + Send;
    /// Decides for one part, from config read now.
    fn decide(
        &self,
        part: &[FoundBucket],
        pass: Pass,
    ) -> impl Future<Output = Result<Decided<Self::Write>, StoreError>> + Send;
    /// What a write makes a bucket enforce, for a report; `None` where it is about something else.
    fn mode(_write: &Self::Write) -> Option<AccessMode> {
        None
    }
    /// Whether config is read again after a write. Of access the reading pass comes to it in any case.
    fn is_checked(_pass: Pass) -> bool {
        true
    }
    /// Whether two writes bring a bucket to the same, instants aside.
    fn agree(one: &Self::Write, two: &Self::Write) -> bool;
    /// Writes at most [`Kind::BATCH`] buckets, answered in order.
    fn write(&self, batch: &[(String, Self::Write)]) -> impl Future<Output = Vec<Stamped>> + Send;
}

/// Two passes, from config that did not move meanwhile; three rounds at most.
pub(super) async fn run<K: Kind>(
    fanouts: &Fanouts<'_>,
    kind: &K,
    owed: &Owed,
    tally: &mut Tally,
) -> Result<Ended, StoreError> {
    let discovery = keys::buckets_of_level(&fanouts.target.ns, &owed.level);
    for _ in 0..ROUNDS {
        // What decides is read before anything is decided.
        let first = find::first::<K>(fanouts, &discovery);
        let (seed, first) = futures::join!(kind.seed(), first);
        let (seed, first) = (seed?, first?);
        let failed = tally.failed;
        let mut seen = Seen::default();
        let finder = |pass| Finder {
            fanouts,
            kind,
            discovery: &discovery,
            pass,
        };
        let found = |send| async {
            finder(Pass::First)
                .in_order(first, Some(&mut seen), send)
                .await
        };
        if let Some(early) = pass(fanouts, kind, owed, Pass::First, tally, found).await? {
            return Ok(early);
        }
        let settled = tally.settled();
        let found = |send| async { finder(Pass::Second).unseen(&seen, send).await };
        let second = pass(fanouts, kind, owed, Pass::Second, tally, found);
        let (early, now) = futures::join!(second, kind.seed());
        if let Some(early) = early? {
            return Ok(early);
        }
        let now = if tally.settled() == settled {
            now?
        } else {
            kind.seed().await?
        };
        if now == seed {
            return Ok(tally.ended_since(failed));
        }
    }
    Ok(Ended::Moving)
}

/// The reading pass alone.
pub(super) async fn read<K: Kind>(
    fanouts: &Fanouts<'_>,
    kind: &K,
    owed: &Owed,
    tally: &mut Tally,
) -> Result<Ended, StoreError> {
    let discovery = keys::buckets_of_level(&fanouts.target.ns, &owed.level).with_stamps();
    let failed = tally.failed;
    let first = find::first::<K>(fanouts, &discovery).await?;
    let finder = Finder {
        fanouts,
        kind,
        discovery: &discovery,
        pass: Pass::Reading,
    };
    let found = |send| async { finder.in_order(first, None, send).await };
    let early = pass(fanouts, kind, owed, Pass::Reading, tally, found).await?;
    Ok(early.unwrap_or_else(|| tally.ended_since(failed)))
}

/// One pass. `None`: it is through; otherwise, why not.
///
/// Buckets are found and decided ahead of those being written, by a bounded queue, so that neither
/// waits for the other's answers.
async fn pass<K: Kind, F>(
    fanouts: &Fanouts<'_>,
    kind: &K,
    owed: &Owed,
    pass: Pass,
    tally: &mut Tally,
    find: impl FnOnce(mpsc::Sender<Found<K::Write>>) -> F,
) -> Result<Option<Ended>, StoreError>
where
    F: Future<Output = Result<bool, StoreError>>,
{
    let (send, receive) = mpsc::channel(find::ahead::<K>(fanouts));
    let found = Box::pin(find(send));
    let written = Box::pin(write_all(fanouts, kind, owed, pass, receive, tally));
    let (found, written) = futures::join!(found, written);
    let early = written?;
    let in_time = found?;
    Ok(early.or((!in_time).then_some(Ended::OutOfTime)))
}

/// What is done with some buckets at once.
pub(super) enum Work<W> {
    Write(Vec<(String, W)>),
    Check(Vec<(String, W)>),
}

/// What came of it.
enum Done<W> {
    /// The buckets were written as far as they could be; those to check, and whether in time.
    Written(Vec<(String, W)>, Tally, bool),
    /// What config demands of written buckets now, where that is something else.
    Checked(Result<Decided<W>, StoreError>),
}

/// Writes buckets as they are decided, in full batches, and checks what was written, in larger
/// ones; a bounded number of them at once. `None`: config demands what was written; otherwise, why
/// that is not known.
async fn write_all<K: Kind>(
    fanouts: &Fanouts<'_>,
    kind: &K,
    owed: &Owed,
    pass: Pass,
    mut receive: mpsc::Receiver<Found<K::Write>>,
    tally: &mut Tally,
) -> Result<Option<Ended>, StoreError> {
    // Half as many again as may be in flight stand ready: one begins where another ends, not where this hears of it.
    let most = fanouts.target.settings.concurrency.max(1);
    let most = most + most.div_ceil(2);
    let mut running = FuturesUnordered::new();
    let mut queue = Queue::<K>::new();
    let mut comes_more = true;
    let mut early = Ok(None);
    loop {
        while running.len() < most
            && let Some(work) = queue.next(comes_more)
        {
            running.push(carry_out(fanouts, kind, pass, work));
        }
        tokio::select! {
            biased;
            Some(done) = running.next() => {
                let ended = match done {
                    Done::Written(batch, done, in_time) => {
                        tally.add(done);
                        fanouts.progress.advanced(owed, tally);
                        queue.written(batch);
                        (!in_time).then(|| Ok(Some(Ended::OutOfTime)))
                    }
                    Done::Checked(Ok(decided)) => queue
                        .checked(decided, tally)
                        .then(|| Ok(Some(Ended::Moving))),
                    Done::Checked(Err(error)) => Some(Err(error)),
                };
                if let Some(ended) = ended {
                    (early, comes_more) = (ended, false);
                    receive.close();
                    queue.clear();
                }
            }
            found = receive.recv(), if comes_more && queue.has_room() => match found {
                None => comes_more = false,
                Some(found) => queue.found(found, pass, tally),
            },
            else => return early,
        }
    }
}

async fn carry_out<K: Kind>(
    fanouts: &Fanouts<'_>,
    kind: &K,
    pass: Pass,
    work: Work<K::Write>,
) -> Done<K::Write> {
    match work {
        Work::Write(batch) => {
            let checked = match K::is_checked(pass) {
                true => batch.clone(),
                false => Vec::new(),
            };
            let (kind, target) = (kind.clone(), fanouts.target.clone());
            let written = async move { write_batch(&target, &kind, batch).await };
            let (done, in_time) = spread(written).await;
            Done::Written(checked, done, in_time)
        }
        Work::Check(batch) if fanouts.is_out_of_time() => {
            Done::Written(batch, Tally::default(), false)
        }
        Work::Check(batch) => {
            let kind = kind.clone();
            Done::Checked(spread(async move { check(&kind, batch).await }).await)
        }
    }
}

/// Decides anew about written buckets, and keeps what differs from what was written.
async fn check<K: Kind>(
    kind: &K,
    batch: Vec<(String, K::Write)>,
) -> Result<Decided<K::Write>, StoreError> {
    let found = |(pk, _): &(String, K::Write)| FoundBucket {
        pk: pk.clone(),
        shown: None,
    };
    let part: Vec<FoundBucket> = batch.iter().map(found).collect();
    let mut decided = kind.decide(&part, Pass::Again).await?;
    let written: HashMap<String, K::Write> = batch.into_iter().collect();
    decided.writes.retain(|(pk, write)| {
        let before = written.get(pk);
        before.is_none_or(|before| !K::agree(before, write))
    });
    Ok(decided)
}

/// Writes one batch and, of what the table throttles, the rest again, ever more slowly. `false`:
/// out of time.
async fn write_batch<K: Kind>(
    target: &Target,
    kind: &K,
    mut left: Vec<(String, K::Write)>,
) -> (Tally, bool) {
    let mut done = Tally::default();
    let mut errors = Vec::new();
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            target.pace.slow_down();
            let wait = 25 << attempt;
            tokio::time::sleep(Duration::from_millis(wait + rand::random_range(0..wait))).await;
        }
        let answers = {
            let _slot = target.pace.slot().await;
            if target.is_out_of_time() {
                return (done, false);
            }
            kind.write(&left).await
        };
        (left, errors) = count::<K>(left, answers, &mut done);
        if left.is_empty() {
            target.pace.speed_up();
            break;
        }
    }
    for ((pk, _), error) in left.iter().zip(errors) {
        done.fail(pk, &error);
    }
    (done, true)
}

/// Counts answers, and returns the writes that may succeed when they are sent again, and why they did
/// not.
fn count<K: Kind>(
    writes: Vec<(String, K::Write)>,
    answers: Vec<Stamped>,
    done: &mut Tally,
) -> (Vec<(String, K::Write)>, Vec<StoreError>) {
    let (mut again, mut errors) = (Vec::new(), Vec::new());
    for (write, answer) in writes.into_iter().zip(answers) {
        match answer {
            Stamped::Landed => {
                done.stamped += 1;
                if let Some(mode) = K::mode(&write.1) {
                    *done.modes.entry(mode).or_default() += 1;
                }
            }
            Stamped::Unchanged => {}
            Stamped::Vanished => done.vanished += 1,
            Stamped::Failed(error) if error.is_transient() => {
                again.push(write);
                errors.push(error);
            }
            Stamped::Failed(error) => done.fail(&write.0, &error),
        }
    }
    (again, errors)
}
