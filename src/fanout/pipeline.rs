//! The passes that every fan-out is made of: find a page of buckets, decide what each must carry,
//! write it, while the next page is being read.

use super::seen::Seen;
use super::{Ended, Fanouts, ROUNDS, Tally};
use crate::model::Owed;
use crate::store::{BucketPage, FoundBucket, PageStart, Stamped, StoreError};
use crate::table::{BucketKeyError, Discovery, keys};
use futures::{StreamExt, stream};
use std::future::Future;
use std::time::Duration;

/// How often a write that the table throttles is sent.
const ATTEMPTS: u32 = 7;

/// What a pass does with a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Write every bucket; the index is not trusted.
    First,
    /// Write buckets that the first pass did not: an acquire in flight may have created them.
    Second,
    /// Write buckets that show something wrong.
    Reading,
}

/// What one page of buckets comes to.
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
pub(super) trait Kind: Sync {
    /// What is written to a bucket.
    type Write: Send + Sync;
    /// What of the level's config decides; compared before and after.
    type Seed: PartialEq + Send;
    /// Buckets that one request writes.
    const BATCH: usize;

    /// Reads what decides, from the table.
    fn seed(&self) -> impl Future<Output = Result<Self::Seed, StoreError>> + Send;
    /// Decides for one page, from config read now.
    fn decide(
        &self,
        page: &[FoundBucket],
        pass: Pass,
    ) -> impl Future<Output = Result<Decided<Self::Write>, StoreError>> + Send;
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
    for _ in 0..ROUNDS {
        let seed = kind.seed().await?;
        let failed = tally.failed;
        let mut seen = Seen::new();
        for pass in [Pass::First, Pass::Second] {
            if !run_pass(fanouts, kind, owed, pass, &mut seen, tally).await? {
                return Ok(Ended::OutOfTime);
            }
        }
        if kind.seed().await? == seed {
            return Ok(tally.ended_since(failed));
        }
    }
    Ok(Ended::Moving)
}

/// One pass. `false`: the deadline came first.
pub(super) async fn run_pass<K: Kind>(
    fanouts: &Fanouts<'_>,
    kind: &K,
    owed: &Owed,
    pass: Pass,
    seen: &mut Seen,
    tally: &mut Tally,
) -> Result<bool, StoreError> {
    let discovery = keys::buckets_of_level(fanouts.ns, &owed.level);
    let mut page = fanouts.store.bucket_page(&discovery, None).await?;
    loop {
        if fanouts.is_out_of_time() {
            return Ok(false);
        }
        if pass == Pass::First {
            tally.found += page.buckets.len() as u64;
        }
        if pass == Pass::Second {
            page.buckets.retain(|bucket| !seen.contains(&bucket.pk));
        }
        let decided = kind.decide(&page.buckets, pass).await?;
        for (pk, error) in decided.foreign {
            if pass == Pass::First {
                tally.found -= 1;
            }
            let is_new = match pass {
                Pass::First => true,
                Pass::Second => !seen.contains(&pk),
                Pass::Reading => false,
            };
            if is_new {
                tally.skip(&pk, &error);
            }
            seen.remember(&pk);
        }
        for (pk, reason) in decided.undecided {
            if pass != Pass::Second || !seen.contains(&pk) {
                tally.fail(&pk, &reason);
            }
            seen.remember(&pk);
        }
        for (pk, _) in &decided.writes {
            seen.remember(pk);
        }
        let next = page.next.take();
        let write = write_all(fanouts, kind, owed, &decided.writes, tally);
        let (in_time, following) = futures::join!(write, next_page(fanouts, &discovery, next));
        if !in_time {
            return Ok(false);
        }
        match following? {
            Some(following) => page = following,
            None => return Ok(true),
        }
    }
}

async fn next_page(
    fanouts: &Fanouts<'_>,
    discovery: &Discovery,
    start: Option<PageStart>,
) -> Result<Option<BucketPage>, StoreError> {
    match start {
        None => Ok(None),
        some => fanouts.store.bucket_page(discovery, some).await.map(Some),
    }
}

/// Writes a page's buckets, a bounded number of batches at once. `false`: out of time.
async fn write_all<K: Kind>(
    fanouts: &Fanouts<'_>,
    kind: &K,
    owed: &Owed,
    writes: &[(String, K::Write)],
    tally: &mut Tally,
) -> bool {
    // Gathered first: a stream of closures over references is not `Send`.
    let batches: Vec<_> = writes
        .chunks(K::BATCH)
        .map(|batch| async move {
            let mut done = Tally::default();
            let in_time = write_batch(fanouts, kind, batch, &mut done).await;
            (in_time, done)
        })
        .collect();
    let mut running = stream::iter(batches).buffer_unordered(fanouts.settings.concurrency.max(1));
    let mut all_in_time = true;
    while let Some((in_time, done)) = running.next().await {
        all_in_time &= in_time;
        tally.stamped += done.stamped;
        tally.vanished += done.vanished;
        tally.failed += done.failed;
        let room = super::SAMPLES.saturating_sub(tally.samples.len());
        tally.samples.extend(done.samples.into_iter().take(room));
        fanouts.progress.advanced(owed, tally);
    }
    all_in_time
}

/// Writes one batch and, of what the table throttles, the rest again, ever more slowly.
async fn write_batch<K: Kind>(
    fanouts: &Fanouts<'_>,
    kind: &K,
    batch: &[(String, K::Write)],
    done: &mut Tally,
) -> bool {
    let answers = {
        let _slot = fanouts.pace.slot().await;
        if fanouts.is_out_of_time() {
            return false;
        }
        kind.write(batch).await
    };
    let mut again = count(batch.iter().zip(answers), done);
    if again.is_empty() {
        fanouts.pace.speed_up();
    }
    for attempt in 1..ATTEMPTS {
        if again.is_empty() {
            return true;
        }
        fanouts.pace.slow_down();
        let wait = 25 << attempt;
        tokio::time::sleep(Duration::from_millis(wait + rand::random_range(0..wait))).await;
        let mut left = Vec::new();
        for (write, _) in again {
            let _slot = fanouts.pace.slot().await;
            if fanouts.is_out_of_time() {
                return false;
            }
            let answers = kind.write(std::slice::from_ref(write)).await;
            left.extend(count(std::iter::once(write).zip(answers), done));
        }
        again = left;
    }
    for ((pk, _), error) in again {
        done.fail(pk, &error);
    }
    true
}

/// Counts answers, and returns the writes that may succeed when they are sent again.
fn count<'w, W>(
    answers: impl Iterator<Item = (&'w (String, W), Stamped)>,
    done: &mut Tally,
) -> Vec<(&'w (String, W), StoreError)> {
    let mut again = Vec::new();
    for (write, answer) in answers {
        match answer {
            Stamped::Landed => done.stamped += 1,
            Stamped::Unchanged => {}
            Stamped::Vanished => done.vanished += 1,
            Stamped::Failed(error) if error.is_transient() => again.push((write, error)),
            Stamped::Failed(error) => done.fail(&write.0, &error),
        }
    }
    again
}
