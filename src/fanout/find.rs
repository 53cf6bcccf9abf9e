//! Finding a level's buckets and deciding what each must carry, a bounded way ahead of the writes.
//! Nothing is written here.

use super::Fanouts;
use super::pipeline::{Decided, Kind, Pass};
use super::seen::Seen;
use crate::store::{BucketPage, FoundBucket, PageStart, StoreError};
use crate::table::Discovery;
use futures::stream::{self, StreamExt};
use tokio::sync::mpsc;

/// Buckets decided together. With two levels of its own a bucket, and one or two that all share, their
/// config is 8 full batches, which are read at once.
pub(super) const DECIDED_TOGETHER: usize = 399;
/// How many decided parts may wait for their writes.
pub(super) const AHEAD: usize = 2;
/// Pages that a second pass reads at once.
const READING: usize = 8;

/// Buckets found, and what they come to.
pub(super) struct Found<W> {
    /// How many, for the count of the first pass.
    pub(super) buckets: u64,
    pub(super) decided: Decided<W>,
}

/// Finds the buckets of one level in one pass.
pub(super) struct Finder<'f, K: Kind> {
    pub(super) fanouts: &'f Fanouts<'f>,
    pub(super) kind: &'f K,
    pub(super) discovery: &'f Discovery,
    pub(super) pass: Pass,
}

impl<K: Kind> Finder<'_, K> {
    /// Page by page, the next being read while one is decided for. `false`: out of time.
    pub(super) async fn in_order(
        &self,
        first: BucketPage,
        mut seen: Option<&mut Seen>,
        send: mpsc::Sender<Found<K::Write>>,
    ) -> Result<bool, StoreError> {
        let (mut page, mut start) = (first, None);
        loop {
            if self.fanouts.is_out_of_time() {
                return Ok(false);
            }
            if let Some(seen) = &mut seen {
                seen.remember(start, &page.buckets);
            }
            start = page.next.take();
            let following = self.page(start.clone());
            let decided = self.decide(&page.buckets, &send);
            let (decided, following) = futures::join!(decided, following);
            if !decided? {
                return Ok(false);
            }
            match following? {
                Some(following) => page = following,
                None => return Ok(true),
            }
        }
    }

    async fn page(&self, start: Option<PageStart>) -> Result<Option<BucketPage>, StoreError> {
        match start {
            None => Ok(None),
            some => {
                let page = self.fanouts.store.bucket_page(self.discovery, some);
                page.await.map(Some)
            }
        }
    }

    /// The pages of an earlier pass, several at once; only what that pass did not see is decided for.
    /// `false`: out of time.
    pub(super) async fn unseen(
        &self,
        seen: &Seen,
        send: mpsc::Sender<Found<K::Write>>,
    ) -> Result<bool, StoreError> {
        // By index: a stream of closures over references is not `Send`.
        let ranges = stream::iter(0..seen.pages()).map(|page| self.unseen_of(seen, page));
        let mut reading = ranges.buffer_unordered(READING);
        while let Some(buckets) = reading.next().await {
            let Some(buckets) = buckets? else {
                return Ok(false);
            };
            if !self.decide(&buckets, &send).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What a page's part of the index holds that was not seen. `None`: out of time.
    async fn unseen_of(
        &self,
        seen: &Seen,
        page: usize,
    ) -> Result<Option<Vec<FoundBucket>>, StoreError> {
        let mut buckets = Vec::new();
        let Some(range) = seen.range(page) else {
            return Ok(Some(buckets));
        };
        let mut start = range.start.cloned();
        loop {
            if self.fanouts.is_out_of_time() {
                return Ok(None);
            }
            let store = self.fanouts.store;
            let page = store.bucket_range(self.discovery, start, range.end);
            let page = page.await?;
            buckets.extend(page.buckets);
            start = page.next;
            if start.is_none() {
                break;
            }
        }
        if seen.digest(&buckets) == range.digest {
            buckets.clear();
        }
        buckets.retain(|bucket| !seen.contains(&bucket.pk));
        Ok(Some(buckets))
    }

    /// How many parts are decided at once: what is written in one round trip, and one part more.
    fn at_once(&self) -> usize {
        let written = self.fanouts.settings.concurrency * K::BATCH;
        written.div_ceil(DECIDED_TOGETHER) + 1
    }

    /// Decides for buckets and hands it on. `false`: out of time.
    async fn decide(
        &self,
        buckets: &[FoundBucket],
        send: &mpsc::Sender<Found<K::Write>>,
    ) -> Result<bool, StoreError> {
        let mut found = buckets.len() as u64;
        // Gathered first: a stream of closures over references is not `Send`.
        let parts: Vec<_> = buckets
            .chunks(DECIDED_TOGETHER)
            .map(|part| async move {
                if self.fanouts.is_out_of_time() {
                    return Ok(None);
                }
                self.kind.decide(part, self.pass).await.map(Some)
            })
            .collect();
        let mut deciding = stream::iter(parts).buffered(self.at_once());
        while let Some(decided) = deciding.next().await {
            let Some(mut decided) = decided? else {
                return Ok(false);
            };
            if self.pass == Pass::Reading {
                // The passes before it have counted them.
                decided.foreign.clear();
            }
            let buckets = std::mem::take(&mut found);
            if send.send(Found { buckets, decided }).await.is_err() {
                // Nothing more is being written.
                return Ok(false);
            }
        }
        Ok(true)
    }
}
