//! The time of one invocation, divided: work, giving up, answering.
//!
//! A deadline that has passed, or that no function can have, is an emulator's and means "unknown".

use crate::model::EpochMs;
use crate::reconcile::LONGEST_RUN_MS;
use std::time::Duration;

/// When each part of an invocation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// When the invocation began.
    pub began: EpochMs,
    end: EpochMs,
}

impl Budget {
    /// Divides what is left until `deadline`, or `unknown` when the deadline tells nothing.
    pub fn new(now: EpochMs, deadline: Option<EpochMs>, unknown: Duration) -> Budget {
        let unknown_ms = u64::try_from(unknown.as_millis()).unwrap_or(LONGEST_RUN_MS);
        let end = match deadline {
            // An hour of grace: a clock may be off, a function's deadline is never that far.
            Some(end) if end > now && end.0 - now.0 <= 4 * LONGEST_RUN_MS => end,
            _ => now.plus_ms(unknown_ms.clamp(1, LONGEST_RUN_MS)),
        };
        let end = end.min(now.plus_ms(LONGEST_RUN_MS));
        Budget { began: now, end }
    }

    /// When an apply stops by itself, and says how far it came.
    pub fn work_until(&self) -> EpochMs {
        self.before_end(25_000, 2, 5)
    }

    /// When work that did not stop is given up, and answered for.
    pub fn abandon_at(&self) -> EpochMs {
        self.before_end(15_000, 1, 4)
    }

    /// When the last attempt to answer ends, so that a failure can still be reported.
    pub fn answer_until(&self) -> EpochMs {
        self.before_end(1_000, 1, 20)
    }

    /// `most_ms` before the end, or a share of the time when that is less.
    fn before_end(&self, most_ms: u64, share: u64, of: u64) -> EpochMs {
        let whole = self.end.0 - self.began.0;
        EpochMs(self.end.0 - most_ms.min(whole * share / of))
    }
}

/// How long it is until an instant.
pub fn until(now: EpochMs, then: EpochMs) -> Duration {
    Duration::from_millis(then.0.saturating_sub(now.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: EpochMs = EpochMs(1_750_000_000_000);

    fn budget(deadline: Option<EpochMs>) -> Budget {
        Budget::new(NOW, deadline, Duration::from_secs(300))
    }

    #[test]
    fn a_deadline_in_the_past_or_absurdly_far_away_is_unknown() {
        let unknown = budget(None);
        assert_eq!(unknown.answer_until(), NOW.plus_ms(299_000));
        for absurd in [0, 600_000, NOW.0, u64::MAX] {
            assert_eq!(budget(Some(EpochMs(absurd))), unknown, "{absurd}");
        }
    }

    #[test]
    fn work_ends_before_it_is_given_up_and_that_before_the_answer_ends() {
        for ms in [3, 100, 3_000, 60_000, 900_000] {
            let end = NOW.plus_ms(ms);
            let budget = budget(Some(end));
            let parts = [
                budget.work_until(),
                budget.abandon_at(),
                budget.answer_until(),
            ];
            assert!(parts.is_sorted() && parts[2] <= end, "{ms}: {parts:?}");
            assert!(parts[0] > NOW, "{ms}");
        }
    }
}
