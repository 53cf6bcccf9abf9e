//! Stored items that do not read: which they are, and what becomes of each.
//!
//! One damaged item must not keep the others from being switched. A declared level is repaired by
//! being written, a managed one that is no longer declared is deleted like any other, and what is
//! neither is left alone and named.

use super::{Action, Change};
use crate::model::{Damage, Level, State};
use serde::Serialize;

/// What becomes of an item that does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It is written anew, as declared.
    Rewritten,
    /// It is deleted.
    Deleted,
    /// It stays as it is.
    Left,
}

/// A stored item that does not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The level that it is of; `None` for one that should say what is pending.
    pub level: Option<Level>,
    /// The item and what is wrong with it.
    pub damage: Damage,
    /// What becomes of it.
    pub fate: Fate,
}

impl Unreadable {
    /// What becomes of it, and what to do.
    pub fn remedy(&self) -> &'static str {
        match (self.fate, &self.level) {
            (Fate::Rewritten, _) => "apply writes it anew, as declared",
            (Fate::Deleted, _) => "apply deletes it, as it is no longer declared",
            (Fate::Left, Some(_)) => {
                "apply leaves it alone, and buckets cannot take limits from it: declare the level, \
                 or correct or delete the item"
            }
            (Fate::Left, None) => {
                "apply leaves it alone, and what it stands for is unknown: delete the item, then \
                 apply with every fan-out"
            }
        }
    }
}

pub(super) fn of(changes: &[Change], state: &State) -> Vec<Unreadable> {
    let touched = changes.iter().filter_map(|change| {
        Some(Unreadable {
            level: Some(change.level.clone()),
            damage: change.damage()?.clone(),
            fate: match change.action {
                Action::Delete => Fate::Deleted,
                Action::Create | Action::Update => Fate::Rewritten,
            },
        })
    });
    let beside = state.damaged_beside.iter();
    let beside = beside.map(|(level, damage)| (Some(level.clone()), damage));
    let pending = state.damaged_pending.iter().map(|damage| (None, damage));
    let left = beside.chain(pending).map(|(level, damage)| Unreadable {
        level,
        damage: damage.clone(),
        fate: Fate::Left,
    });
    touched.chain(left).collect()
}
