//! Working from tasks of their own, so that many requests at once are made, signed, decoded and forgotten on
//! every core and not on that of whoever waits for them.

use std::future::Future;
use tokio::task::JoinSet;
use tracing::Instrument;

/// Runs work on a task of its own, within the span of whoever waits for it. When this is dropped, so is the work.
pub(crate) async fn spread<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let mut task = JoinSet::new();
    task.spawn(work.in_current_span());
    match task.join_next().await {
        Some(Ok(answer)) => answer,
        Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime is being shut down, and whoever waits with it.
        _ => std::future::pending().await,
    }
}
