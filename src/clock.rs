//! The only reader of the wall clock. Everything else is handed a [`Clock`] or, better, an instant.
//!
//! Sleeping and measuring time-outs is the runtime's business and stays with tokio.

use crate::model::EpochMs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Tells the time: the system's, or one that stands still until it is moved.
#[derive(Debug, Clone)]
pub struct Clock(Source);

#[derive(Debug, Clone)]
enum Source {
    System,
    Fixed(Arc<AtomicU64>),
}

impl Clock {
    /// The system's wall clock.
    pub fn system() -> Clock {
        Clock(Source::System)
    }

    /// A clock that always says `at`, until it is moved. Its clones move with it.
    pub fn fixed(at: EpochMs) -> Clock {
        Clock(Source::Fixed(Arc::new(AtomicU64::new(at.0))))
    }

    /// Now. A system clock set before 1970 reads as 1970.
    pub fn now(&self) -> EpochMs {
        match &self.0 {
            Source::System => system_now(),
            Source::Fixed(at) => EpochMs(at.load(Ordering::SeqCst)),
        }
    }

    /// Moves a fixed clock later by a number of milliseconds. The system's clock takes no orders.
    pub fn advance(&self, ms: u64) {
        if let Source::Fixed(at) = &self.0 {
            at.fetch_add(ms, Ordering::SeqCst);
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that reads the clock"
)]
fn system_now() -> EpochMs {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    EpochMs(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_clock_stands_still_until_moved_and_its_clones_move_with_it() {
        let clock = Clock::fixed(EpochMs(1_000));
        let clone = clock.clone();
        assert_eq!(clock.now(), EpochMs(1_000));
        clock.advance(250);
        assert_eq!((clock.now(), clone.now()), (EpochMs(1_250), EpochMs(1_250)));
    }

    #[test]
    fn the_system_clock_reads_milliseconds_of_this_era() {
        let clock = Clock::system();
        clock.advance(1 << 50);
        let now = clock.now();
        assert!(
            now > EpochMs(1_700_000_000_000),
            "seconds or nothing: {now}"
        );
        assert!(
            now < EpochMs(10_000_000_000_000),
            "micros, or it was moved: {now}"
        );
    }
}
