//! What a first pass has found, so that the second reads its pages side by side, passes over those
//! that hold the same buckets still, and in the others over the buckets it knows.
//!
//! Of a page its beginning is kept and a hash over its buckets: some hundred bytes for a few thousand
//! buckets. Of each bucket a hash is kept while there is room.

use crate::store::{FoundBucket, PageStart};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// Buckets remembered one by one, as 8 bytes each. Beyond them a page that changed is stamped again,
/// which is harmless.
const CAPACITY: usize = 200_000;

/// Remembers pages, and buckets by a keyed hash of their partition keys.
#[derive(Default)]
pub(super) struct Seen {
    hasher: RandomState,
    hashes: HashSet<u64>,
    pages: Vec<(Option<PageStart>, Digest)>,
}

/// What a page held, in whatever order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Digest {
    buckets: u64,
    sum: u64,
}

/// One page's part of an index.
pub(super) struct Range<'s> {
    /// Where it begins; `None`: with the index partition.
    pub(super) start: Option<&'s PageStart>,
    /// Where it ends; `None`: with the index partition.
    pub(super) end: Option<&'s PageStart>,
    /// What it held.
    pub(super) digest: Digest,
}

impl Seen {
    /// Remembers a page, in the order of the index.
    pub(super) fn remember(&mut self, start: Option<PageStart>, buckets: &[FoundBucket]) {
        for bucket in buckets.iter().take(CAPACITY - self.hashes.len()) {
            self.hashes.insert(self.hasher.hash_one(&bucket.pk));
        }
        let digest = self.digest(buckets);
        self.pages.push((start, digest));
    }

    /// Whether a bucket is known. One that is not may have been found all the same.
    pub(super) fn contains(&self, pk: &str) -> bool {
        self.hashes.contains(&self.hasher.hash_one(pk))
    }

    pub(super) fn digest(&self, buckets: &[FoundBucket]) -> Digest {
        let hash = |bucket: &FoundBucket| self.hasher.hash_one(&bucket.pk);
        Digest {
            buckets: buckets.len() as u64,
            sum: buckets.iter().map(hash).fold(0, u64::wrapping_add),
        }
    }

    /// How many pages there were.
    pub(super) fn pages(&self) -> usize {
        self.pages.len()
    }

    /// A page's part of the index. Together they are the whole partition.
    pub(super) fn range(&self, page: usize) -> Option<Range<'_>> {
        let (start, digest) = self.pages.get(page)?;
        let next = self.pages.get(page + 1);
        Some(Range {
            start: start.as_ref(),
            end: next.and_then(|(start, _)| start.as_ref()),
            digest: *digest,
        })
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

    #[test]
    fn memory_is_bounded_and_forgets_the_newest_only() {
        let mut seen = Seen::default();
        for start in 0..3 {
            seen.remember(
                None,
                &page(start * CAPACITY..start * CAPACITY + CAPACITY - 1),
            );
        }
        assert_eq!(seen.hashes.len(), CAPACITY);
        assert!(seen.contains("0") && seen.contains("1"));
        assert!(!seen.contains("never"));
    }

    #[test]
    fn a_page_is_known_by_its_buckets_in_any_order() {
        let seen = Seen::default();
        let digest = |names: &[usize]| seen.digest(&page(names.iter().copied()));
        assert_eq!(digest(&[1, 2, 3]), digest(&[3, 1, 2]));
        assert_ne!(digest(&[1, 2, 3]), digest(&[1, 2]));
        assert_ne!(digest(&[1, 2, 3]), digest(&[1, 2, 4]));
        assert_ne!(digest(&[]), digest(&[1]));
    }
}
