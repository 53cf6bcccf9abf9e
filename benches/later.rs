//! Answering so much later. The runtime's own timer counts in milliseconds, of which a round trip has five: a
//! thread that sleeps is twenty times more exact.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Makes whoever waits wait so long.
#[derive(Debug)]
pub struct Later {
    by: Duration,
    /// When, and whom to tell. All wait equally long, so that they are told in the order in which they came.
    line: mpsc::Sender<(Instant, oneshot::Sender<()>)>,
}

impl Later {
    pub fn by(by: Duration) -> Later {
        let (line, waiting) = mpsc::channel::<(Instant, oneshot::Sender<()>)>();
        thread::spawn(move || {
            for (until, tell) in waiting {
                thread::sleep(until.saturating_duration_since(now()));
                // Whoever has gone does not wait any more.
                let _ = tell.send(());
            }
        });
        Later { by, line }
    }

    pub async fn wait(&self) {
        if self.by.is_zero() {
            return;
        }
        let (tell, told) = oneshot::channel();
        if self.line.send((now() + self.by, tell)).is_ok() {
            let _ = told.await;
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a bench measures time; nothing it measures decides anything by it"
)]
fn now() -> Instant {
    Instant::now()
}
