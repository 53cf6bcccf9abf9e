//! How fan-outs run, and until when.

use super::Stop;
use crate::model::EpochMs;
use std::future::Future;
use std::time::Duration;

/// How a fan-out runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The most write batches in flight; throttling lowers it for a while.
    pub concurrency: usize,
    /// How long after the config writes, or after the fan-out's last stamp, the reading pass follows; zero
    /// turns it off.
    pub settle: Duration,
    /// When to stop, whatever is left; `None`: never.
    pub deadline: Option<EpochMs>,
    /// How long after the deadline requests under way are waited for, their retries included.
    pub grace: Duration,
    /// Set by someone who wants it to end early; what is left stays owed.
    pub stop: Stop,
}

impl Settings {
    /// Whether nothing more may be begun: the deadline is past, or someone asked for the end.
    pub fn is_over(&self, now: EpochMs) -> bool {
        self.stop.is_set() || self.deadline.is_some_and(|deadline| now >= deadline)
    }

    /// Waits for work until deadline and grace are over. `None`: it was not done by then; whatever it
    /// had under way may or may not land.
    pub(crate) async fn in_time<T>(
        &self,
        now: EpochMs,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let Some(deadline) = self.deadline else {
            return Some(work.await);
        };
        let grace_ms = u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX);
        let end = deadline.0.saturating_add(grace_ms);
        let left = Duration::from_millis(end.saturating_sub(now.0));
        tokio::time::timeout(left, work).await.ok()
    }

    /// Waits for work that ends what was begun, however late it is, for as long as the grace. `None`: it
    /// was not done by then.
    pub(crate) async fn in_grace<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        match self.deadline {
            None => Some(work.await),
            Some(_) => tokio::time::timeout(self.grace, work).await.ok(),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            concurrency: 16,
            settle: Duration::from_secs(1),
            deadline: None,
            grace: Duration::from_secs(5),
            stop: Stop::default(),
        }
    }
}
