//! Sending requests from tasks of their own, so that many at once are encoded, signed and decoded on
//! every core and not on that of whoever waits for them.

use std::future::Future;
use tokio::task::JoinSet;

/// Runs a request on a task of its own. When this is dropped, so is the request.
pub(super) async fn spread<T: Send + 'static>(
    request: impl Future<Output = T> + Send + 'static,
) -> T {
    let mut task = JoinSet::new();
    task.spawn(request);
    match task.join_next().await {
        Some(Ok(answer)) => answer,
        Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime is being shut down, and whoever waits with it.
        _ => std::future::pending().await,
    }
}
