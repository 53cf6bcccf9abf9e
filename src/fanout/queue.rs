//! What a pass has still to do: buckets to write, and written ones to check.
//!
//! Nothing is read or written here.

use super::find::Found;
use super::pipeline::{Decided, Kind, Pass, Work};
use super::{ROUNDS, Tally};
use std::collections::{HashMap, VecDeque};

/// Written buckets that are checked together: their config is 8 full batches of reads, at two levels a bucket and
/// one or two that all share.
const CHECKED_TOGETHER: usize = 399;

/// Buckets on their way through a pass.
pub(super) struct Queue<K: Kind> {
    waiting: VecDeque<(String, K::Write)>,
    written: Vec<(String, K::Write)>,
    /// Batches that are being written.
    writing: usize,
    /// How often buckets were written anew, because config had moved under the write.
    again: HashMap<String, u32>,
}

impl<K: Kind> Queue<K> {
    pub(super) fn new() -> Self {
        Queue {
            waiting: VecDeque::new(),
            written: Vec::new(),
            writing: 0,
            again: HashMap::new(),
        }
    }

    /// Whether more buckets may be found.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < K::BATCH && self.written.len() < 2 * CHECKED_TOGETHER
    }

    /// What can be begun: full batches while more may come, and whatever is left after that. What is
    /// written is checked first, or it would pile up behind the writes.
    pub(super) fn next(&mut self, comes_more: bool) -> Option<Work<K::Write>> {
        if self.written.len() >= CHECKED_TOGETHER {
            return Some(self.check());
        }
        if self.waiting.len() >= K::BATCH || !comes_more && !self.waiting.is_empty() {
            let many = self.waiting.len().min(K::BATCH);
            self.writing += 1;
            return Some(Work::Write(self.waiting.drain(..many).collect()));
        }
        let is_last = !comes_more && self.writing == 0 && !self.written.is_empty();
        is_last.then(|| self.check())
    }

    fn check(&mut self) -> Work<K::Write> {
        let many = self.written.len().min(CHECKED_TOGETHER);
        Work::Check(self.written.drain(..many).collect())
    }

    /// Takes buckets that were found, and counts them.
    pub(super) fn found(&mut self, found: Found<K::Write>, pass: Pass, tally: &mut Tally) {
        let decided = found.decided;
        if pass == Pass::First {
            tally.found += found.buckets;
            tally.found -= decided.foreign.len() as u64;
        }
        for (pk, error) in decided.foreign {
            tally.skip(&pk, &error);
        }
        for (pk, reason) in decided.undecided {
            tally.fail(&pk, &reason);
        }
        self.waiting.extend(decided.writes);
    }

    /// Takes what of a written batch is to be checked.
    pub(super) fn written(&mut self, batch: Vec<(String, K::Write)>) {
        self.writing = self.writing.saturating_sub(1);
        self.written.extend(batch);
    }

    /// Takes what config demands of written buckets by now, where that is something else. Whether
    /// one of them moved too often.
    pub(super) fn checked(&mut self, decided: Decided<K::Write>, tally: &mut Tally) -> bool {
        for (pk, reason) in decided.undecided {
            tally.fail(&pk, &reason);
        }
        for (pk, write) in decided.writes {
            let rounds = self.again.entry(pk.clone()).or_default();
            *rounds += 1;
            if *rounds >= ROUNDS {
                return true;
            }
            self.waiting.push_back((pk, write));
        }
        false
    }

    /// Gives up whatever is left.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.written.clear();
    }
}
