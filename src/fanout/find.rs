//! Finding a level's buckets and deciding what each must carry, a bounded way ahead of the writes.
//! Nothing is written here.

use super::Fanouts;
use super::pipeline::{Decided, Kind, Pass};
use super::seen::Seen;
use crate::spread::spread;
use crate::store::{BucketPage, FoundBucket, StoreError};
use crate::table::Discovery;
use futures::stream::{self, Stream, StreamExt};
use std::pin::pin;
use tokio::sync::mpsc;

/// Buckets decided together. Of a resource, with two levels of its own a bucket and one or two that all share,
/// their config is one full batch of reads. Many small parts, one after another, hold up the answers to writes less
/// than a few large ones.
const DECIDED_TOGETHER: usize = 49;
/// Pages that a second pass reads at once.
const READING: usize = 10;

/// The first page of a pass: what is written in one round trip, so that writes begin while the next
/// page, which is as large as the table makes it, is on its way.
pub(super) async fn first<K: Kind>(
    fanouts: &Fanouts<'_>,
    discovery: &Discovery,
) -> Result<BucketPage, StoreError> {
    let store = &fanouts.target.store;
    store
        .first_buckets(discovery, written_at_once::<K>(fanouts))
        .await
}

/// How many parts are decided at once, and how many decided ones may wait for their writes: what is
/// written in one round trip, and one more.
pub(super) fn ahead<K: Kind>(fanouts: &Fanouts<'_>) -> usize {
    written_at_once::<K>(fanouts).div_ceil(DECIDED_TOGETHER) + 1
}

/// Buckets that are written in one round trip.
fn written_at_once<K: Kind>(fanouts: &Fanouts<'_>) -> usize {
    fanouts.target.settings.concurrency.max(1) * K::BATCH
}

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
        seen: Option<&mut Seen>,
        send: mpsc::Sender<Found<K::Write>>,
    ) -> Result<bool, StoreError> {
        let (hand_on, pages) = mpsc::channel(1);
        // A page that cannot be read keeps nothing from what was found before it.
        let (read, decided) =
            futures::join!(self.read(first, seen, hand_on), self.decide(pages, send));
        Ok(decided? && read?)
    }

    /// Hands page after page on. `false`: out of time, or nobody takes them.
    async fn read(
        &self,
        first: BucketPage,
        mut seen: Option<&mut Seen>,
        hand_on: mpsc::Sender<Vec<FoundBucket>>,
    ) -> Result<bool, StoreError> {
        let (mut page, mut start) = (first, None);
        loop {
            if let Some(seen) = &mut seen {
                seen.remember(start, &page.buckets);
            }
            start = page.next;
            if hand_on.send(page.buckets).await.is_err() {
                return Ok(false);
            }
            if start.is_none() {
                return Ok(true);
            }
            // Once there is room for the next page, the one before it is being decided for.
            if hand_on.reserve().await.is_err() || self.fanouts.is_out_of_time() {
                return Ok(false);
            }
            let store = &self.fanouts.target.store;
            page = store.bucket_page(self.discovery, start.clone()).await?;
        }
    }

    /// The pages of an earlier pass, several at once; only what that pass did not see is decided for.
    /// `false`: out of time.
    pub(super) async fn unseen(
        &self,
        seen: &Seen,
        send: mpsc::Sender<Found<K::Write>>,
    ) -> Result<bool, StoreError> {
        let (hand_on, pages) = mpsc::channel(1);
        let read = async move {
            // By index: a stream of closures over references is not `Send`.
            let ranges = stream::iter(0..seen.pages()).map(|page| self.unseen_of(seen, page));
            let mut reading = ranges.buffer_unordered(READING);
            while let Some(buckets) = reading.next().await {
                let Some(buckets) = buckets? else {
                    return Ok(false);
                };
                if !buckets.is_empty() && hand_on.send(buckets).await.is_err() {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        // By itself the reading would not hear that nothing more is decided: most pages hold nothing new.
        let (read, decided) = futures::try_join!(read, self.decide(pages, send))?;
        Ok(read && decided)
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
            let store = &self.fanouts.target.store;
            let page = store.bucket_range(self.discovery, start, range.end);
            let page = page.await?;
            buckets.extend(page.buckets);
            start = page.next;
            if start.is_none() {
                break;
            }
        }
        range.forget_known(&mut buckets);
        Ok(Some(buckets))
    }

    /// Decides for buckets, a part of them at a time, and hands it on in their order. `false`: out of time.
    async fn decide(
        &self,
        pages: mpsc::Receiver<Vec<FoundBucket>>,
        send: mpsc::Sender<Found<K::Write>>,
    ) -> Result<bool, StoreError> {
        let deciding = parts(pages).map(|part| self.decide_part(part));
        let mut deciding = pin!(deciding.buffered(ahead::<K>(self.fanouts)));
        while let Some(found) = deciding.next().await {
            let Some(mut found) = found? else {
                return Ok(false);
            };
            if self.pass == Pass::Reading {
                // The passes before it have counted them.
                found.decided.foreign.clear();
            }
            if send.send(found).await.is_err() {
                // Nothing more is being written.
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// `None`: out of time.
    async fn decide_part(
        &self,
        part: Vec<FoundBucket>,
    ) -> Result<Option<Found<K::Write>>, StoreError> {
        if self.fanouts.is_out_of_time() {
            return Ok(None);
        }
        let (kind, pass) = (self.kind.clone(), self.pass);
        let buckets = part.len() as u64;
        let decided = spread(async move { kind.decide(&part, pass).await }).await?;
        Ok(Some(Found { buckets, decided }))
    }
}

/// The buckets of pages, so many together as are decided for at once: fewer where a page ends and the next
/// has not come yet.
fn parts(pages: mpsc::Receiver<Vec<FoundBucket>>) -> impl Stream<Item = Vec<FoundBucket>> + Send {
    let begun = (pages, Vec::new().into_iter());
    stream::unfold(begun, |(mut pages, mut rest)| async move {
        let mut part = Vec::new();
        loop {
            part.extend(rest.by_ref().take(DECIDED_TOGETHER - part.len()));
            if part.len() == DECIDED_TOGETHER {
                break;
            }
            rest = match pages.try_recv() {
                Ok(page) => page.into_iter(),
                Err(_) if !part.is_empty() => break,
                Err(_) => pages.recv().await?.into_iter(),
            };
        }
        Some((part, (pages, rest)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn page(buckets: std::ops::Range<usize>) -> Vec<FoundBucket> {
        let bucket = |name: usize| FoundBucket {
            pk: name.to_string(),
            shown: None,
        };
        buckets.map(bucket).collect()
    }

    /// The lengths of parts, after a look at whether they are the buckets in their order.
    fn lengths(parts: &[Vec<FoundBucket>]) -> Vec<usize> {
        let all: Vec<FoundBucket> = parts.iter().flatten().cloned().collect();
        assert_eq!(all, page(0..all.len()));
        parts.iter().map(Vec::len).collect()
    }

    #[tokio::test]
    async fn parts_are_full_across_pages_that_have_come() {
        let (send, pages) = mpsc::channel(8);
        for buckets in [0..30, 30..60, 60..60, 60..200, 200..203] {
            send.send(page(buckets)).await.expect("room");
        }
        drop(send);
        let parts: Vec<_> = parts(pages).collect().await;
        assert_eq!(lengths(&parts), [49, 49, 49, 49, 7]);
    }

    #[tokio::test]
    async fn what_has_come_does_not_wait_for_the_next_page() {
        let (send, pages) = mpsc::channel(8);
        let mut parts = pin!(parts(pages));
        assert!(parts.next().now_or_never().is_none());
        send.send(page(0..60)).await.expect("room");
        let first = parts.next().now_or_never().flatten().expect("a part");
        let second = parts.next().now_or_never().flatten().expect("a part");
        assert!(parts.next().now_or_never().is_none());
        send.send(page(60..61)).await.expect("room");
        drop(send);
        let third = parts.next().await.expect("a part");
        assert_eq!(lengths(&[first, second, third]), [49, 11, 1]);
        assert!(parts.next().await.is_none());
    }
}
