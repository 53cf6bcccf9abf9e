//! Asking work that is under way to end between two requests.

use std::sync::Arc;
use tokio::sync::watch;

/// A wish that work ends early. Clones share it; once set it stays set.
#[derive(Debug, Clone)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Stop {
    /// Asks for the end.
    pub fn set(&self) {
        self.0.send_replace(true);
    }

    /// Whether the end was asked for.
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the end is asked for.
    pub async fn wait(&self) {
        let mut changes = self.0.subscribe();
        // It fails only when the sender is gone, and this holds it.
        let _ = changes.wait_for(|set| *set).await;
    }
}

impl Default for Stop {
    fn default() -> Self {
        Stop(Arc::new(watch::Sender::new(false)))
    }
}

/// Equal when they are the same wish.
impl PartialEq for Stop {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Stop {}
