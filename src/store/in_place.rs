//! Levels that are there are changed in place and read again.
//!
//! No condition can say that nothing else was added to an item, such as another limit. The whole item
//! would wipe it out unseen; a change leaves it there, and the read finds it.

use super::config::{LevelOutcome, LevelWrite};
use super::{Store, StoreError};
use crate::model::{LevelConfig, NamespaceId, StoredLevel};
use crate::table::bucket::Update;
use crate::table::config;

/// Attributes that one update expression changes, with room to spare below the service's limit.
const MOST_CHANGES: usize = 200;

/// The write of a level as a change of what was read of it. `None` where the whole item must do: a
/// new level, one spelled in a way of its own, one to be written whatever is there, or one with more
/// attributes than an expression holds.
pub(super) fn change(ns: &NamespaceId, write: &LevelWrite<'_>) -> Option<Update> {
    let (before, after) = (write.before?, write.after?);
    let new = config::encode(ns, write.level, after);
    let old = config::encode_fields(&before.config);
    if write.whatever || !before.as_written || new.len() + old.len() > MOST_CHANGES {
        return None;
    }
    let mut change = Update::default();
    for name in old.into_keys().filter(|name| !new.contains_key(name)) {
        change.remove(name);
    }
    for (name, value) in new {
        if name != "PK" && name != "SK" {
            change.set(name, value);
        }
    }
    Some(change)
}

impl Store {
    /// Reads the levels that were changed in place. One that holds more than was written has moved.
    pub(super) async fn look_again(
        &self,
        ns: &NamespaceId,
        writes: &[LevelWrite<'_>],
        outcomes: &mut [LevelOutcome],
    ) {
        let mut changed: Vec<(&LevelWrite<'_>, &mut LevelOutcome)> = writes
            .iter()
            .zip(outcomes)
            .filter(|(write, outcome)| {
                matches!(outcome, LevelOutcome::Written) && change(ns, write).is_some()
            })
            .collect();
        if changed.is_empty() {
            return;
        }
        let levels = changed.iter().map(|(write, _)| write.level);
        match self.levels(ns, levels).await {
            Ok(mut stored) => {
                for (write, outcome) in &mut changed {
                    let current = stored.remove(write.level);
                    let current = current.filter(|current| is_mixed(write.after, current));
                    if let Some(current) = current {
                        **outcome = LevelOutcome::Moved(Some(Box::new(current)));
                    }
                }
            }
            Err(error) => fail(changed, error),
        }
    }
}

fn fail(changed: Vec<(&LevelWrite<'_>, &mut LevelOutcome)>, error: StoreError) {
    let errors = error.repeated(changed.len());
    for ((_, outcome), error) in changed.into_iter().zip(errors) {
        *outcome = LevelOutcome::Unseen(error);
    }
}

/// Whether a level holds all that was written and something else besides.
fn is_mixed(after: Option<&LevelConfig>, current: &StoredLevel) -> bool {
    let Some(after) = after else {
        return false;
    };
    let written = config::encode_fields(after);
    let shown = config::encode_fields(&current.config);
    let is_there = |(name, value)| shown.get(name) == Some(value);
    current.damage.is_some() || (written.len() < shown.len() && written.iter().all(is_there))
}
