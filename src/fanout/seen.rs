//! What a first pass has found, so that the second reads its pages side by side, passes over those
//! that hold the same buckets still, and in the others over the buckets it knows.
//!
//! Of a page its beginning is kept and a hash over its buckets: some hundred bytes for a few thousand
//! buckets. Of each bucket a hash is kept while there is room.

use crate::store::{FoundBucket, PageStart};
use std::hash::{BuildHasher, RandomState};

/// Buckets remembered one by one, as 8 bytes each. Beyond them a page that changed is stamped again,
/// which is harmless.
const CAPACITY: usize = 200_000;

/// Remembers pages, and buckets by a keyed hash of their partition keys.
#[derive(Default)]
pub(super) struct Seen {
    hasher: RandomState,
    pages: Vec<Page>,
    /// Buckets remembered, of all pages together.
    remembered: usize,
}

struct Page {
    start: Option<PageStart>,
    digest: Digest,
    /// Hashes of its buckets, sorted; of the last pages' not all.
    known: Box<[u64]>,
}

/// What a page held, in whatever order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Digest {
    buckets: u64,
    sum: u64,
}

/// One page's part of an index.
pub(super) struct Range<'s> {
    seen: &'s Seen,
    known: &'s [u64],
    /// Where it begins; `None`: with the index partition.
    pub(super) start: Option<&'s PageStart>,
    /// Where it ends; `None`: with the index partition.
    pub(super) end: Option<&'s PageStart>,
    /// What it held.
    digest: Digest,
}

impl Seen {
    /// Remembers a page, in the order of the index.
    pub(super) fn remember(&mut self, start: Option<PageStart>, buckets: &[FoundBucket]) {
        let mut known = self.hashes(buckets);
        let digest = Digest::of(&known);
        known.truncate(CAPACITY - self.remembered);
        known.sort_unstable();
        self.remembered += known.len();
        self.pages.push(Page {
            start,
            digest,
            known: known.into(),
        });
    }

    fn hashes(&self, buckets: &[FoundBucket]) -> Vec<u64> {
        let hash = |bucket: &FoundBucket| self.hasher.hash_one(&bucket.pk);
        buckets.iter().map(hash).collect()
    }

    /// How many pages there were.
    pub(super) fn pages(&self) -> usize {
        self.pages.len()
    }

    /// A page's part of the index. Together they are the whole partition.
    pub(super) fn range(&self, page: usize) -> Option<Range<'_>> {
        let next = self.pages.get(page + 1);
        let page = self.pages.get(page)?;
        Some(Range {
            seen: self,
            known: &page.known,
            start: page.start.as_ref(),
            end: next.and_then(|next| next.start.as_ref()),
            digest: page.digest,
        })
    }
}

impl Range<'_> {
    /// Takes those buckets away that the page held when it was remembered. One that is left may have been
    /// there all the same.
    pub(super) fn forget_known(&self, buckets: &mut Vec<FoundBucket>) {
        let hashes = self.seen.hashes(buckets);
        if Digest::of(&hashes) == self.digest {
            buckets.clear();
            return;
        }
        let mut hashes = hashes.into_iter();
        buckets.retain(|_| {
            let hash = hashes.next();
            hash.is_none_or(|hash| self.known.binary_search(&hash).is_err())
        });
    }
}

impl Digest {
    fn of(hashes: &[u64]) -> Digest {
        Digest {
            buckets: hashes.len() as u64,
            sum: hashes.iter().copied().fold(0, u64::wrapping_add),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(names: impl IntoIterator<Item = usize>) -> Vec<FoundBucket> {
        let bucket = |name: usize| FoundBucket {
            pk: name.to_string(),
            shown: None,
        };
        names.into_iter().map(bucket).collect()
    }

    fn new(seen: &Seen, at: usize, names: &[usize]) -> Vec<String> {
        let mut buckets = page(names.iter().copied());
        let range = seen.range(at).expect("a page");
        range.forget_known(&mut buckets);
        buckets.into_iter().map(|bucket| bucket.pk).collect()
    }

    #[test]
    fn memory_is_bounded_and_forgets_the_newest_only() {
        let mut seen = Seen::default();
        for start in 0..3 {
            let first = start * CAPACITY;
            seen.remember(None, &page(first..first + CAPACITY - 1));
        }
        assert_eq!(seen.remembered, CAPACITY);
        assert_eq!(new(&seen, 0, &[0, 1, 7 * CAPACITY]), ["1400000"]);
        assert_eq!(new(&seen, 1, &[CAPACITY, CAPACITY + 1]), ["200001"]);
        assert_eq!(new(&seen, 2, &[2 * CAPACITY]), ["400000"]);
        // A page of which nothing is kept is known while it holds the same.
        let same: Vec<usize> = (2 * CAPACITY..3 * CAPACITY - 1).rev().collect();
        assert!(new(&seen, 2, &same).is_empty());
    }

    #[test]
    fn of_a_page_what_came_is_left_in_any_order() {
        let mut seen = Seen::default();
        seen.remember(None, &page([1, 2, 3]));
        assert!(new(&seen, 0, &[3, 1, 2]).is_empty());
        assert!(new(&seen, 0, &[1, 2]).is_empty());
        assert!(new(&seen, 0, &[]).is_empty());
        assert_eq!(new(&seen, 0, &[4, 2, 1]), ["4"]);
        assert_eq!(new(&seen, 0, &[5, 3, 2, 4, 1]), ["5", "4"]);
    }
}
