//! How many write batches are in flight: halved when the table throttles, grown back when it does not.

use std::pin::pin;
use std::sync::Mutex;
use tokio::sync::Notify;

/// A limit on work in flight that adapts to throttling.
#[derive(Debug)]
pub(super) struct Pace {
    state: Mutex<State>,
    freed: Notify,
    max: usize,
}

#[derive(Debug)]
struct State {
    limit: usize,
    in_flight: usize,
    /// Batches that landed since the limit last changed.
    landed: usize,
    /// Batches that were in flight when it was last halved, and still are.
    older: usize,
}

/// The right to have one batch in flight.
pub(super) struct Slot<'a>(&'a Pace);

impl Pace {
    pub(super) fn new(max: usize) -> Pace {
        let max = max.max(1);
        Pace {
            state: Mutex::new(State {
                limit: max,
                in_flight: 0,
                landed: 0,
                older: 0,
            }),
            freed: Notify::new(),
            max,
        }
    }

    /// Waits for a place.
    pub(super) async fn slot(&self) -> Slot<'_> {
        loop {
            let mut freed = pin!(self.freed.notified());
            // Heard from here on, so that of several places freed at once each wakes somebody.
            freed.as_mut().enable();
            {
                let mut state = self.lock();
                if state.in_flight < state.limit {
                    state.in_flight += 1;
                    return Slot(self);
                }
            }
            freed.await;
        }
    }

    /// The table throttled: half as many from here on. What was sent before that says nothing new.
    pub(super) fn slow_down(&self) {
        let mut state = self.lock();
        if state.older > 0 {
            return;
        }
        state.limit = (state.limit / 2).max(1);
        state.landed = 0;
        state.older = state.in_flight;
    }

    /// A batch landed: after as many as are allowed at once, one more is allowed.
    pub(super) fn speed_up(&self) {
        let mut state = self.lock();
        state.landed += 1;
        if state.landed >= state.limit && state.limit < self.max {
            state.limit += 1;
            state.landed = 0;
            self.freed.notify_one();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // A panic while it was held leaves numbers that are still numbers.
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.in_flight -= 1;
        state.older = state.older.saturating_sub(1);
        drop(state);
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn throttling_halves_and_success_grows_back_to_the_maximum() {
        let pace = Pace::new(8);
        pace.slow_down();
        pace.slow_down();
        assert_eq!(pace.lock().limit, 2);
        for _ in 0..100 {
            pace.speed_up();
        }
        assert_eq!(pace.lock().limit, 8);
        for _ in 0..10 {
            pace.slow_down();
        }
        assert_eq!(pace.lock().limit, 1);
    }

    #[test]
    fn what_was_in_flight_when_it_was_halved_halves_nothing() {
        let pace = Pace::new(8);
        let held: Vec<_> = (0..3).filter_map(|_| pace.slot().now_or_never()).collect();
        pace.slow_down();
        for slot in held {
            pace.slow_down();
            assert_eq!(pace.lock().limit, 4);
            drop(slot);
        }
        pace.slow_down();
        assert_eq!(pace.lock().limit, 2);
    }

    #[test]
    fn a_full_pace_waits_until_a_slot_is_dropped() {
        let pace = Pace::new(1);
        let held = pace.slot().now_or_never();
        assert!(held.is_some());
        assert!(pace.slot().now_or_never().is_none());
        drop(held);
        assert!(pace.slot().now_or_never().is_some());
    }

    #[test]
    fn one_more_place_goes_to_somebody_who_waits() {
        let pace = Pace::new(2);
        pace.slow_down();
        let held = pace.slot().now_or_never();
        let mut waiting = std::pin::pin!(pace.slot());
        assert!(waiting.as_mut().now_or_never().is_none());
        pace.speed_up();
        assert!(waiting.now_or_never().is_some());
        drop(held);
    }
}
