//! Which buckets a first pass has stamped, in bounded memory.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// Buckets remembered, as 8 bytes each. Beyond them the second pass stamps again, which is
/// harmless.
const CAPACITY: usize = 200_000;

/// Remembers buckets by a keyed hash of their partition keys.
pub(super) struct Seen {
    hasher: RandomState,
    hashes: HashSet<u64>,
}

impl Seen {
    pub(super) fn new() -> Seen {
        Seen {
            hasher: RandomState::new(),
            hashes: HashSet::new(),
        }
    }

    pub(super) fn remember(&mut self, pk: &str) {
        if self.hashes.len() < CAPACITY {
            self.hashes.insert(self.hasher.hash_one(pk));
        }
    }

    pub(super) fn contains(&self, pk: &str) -> bool {
        self.hashes.contains(&self.hasher.hash_one(pk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_forgets_the_newest_only() {
        let mut seen = Seen::new();
        for bucket in 0..CAPACITY + 10 {
            seen.remember(&bucket.to_string());
        }
        assert!(seen.hashes.len() <= CAPACITY);
        assert!(seen.contains("0") && seen.contains("1"));
        assert!(!seen.contains("never"));
    }
}
