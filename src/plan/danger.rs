//! Dangers: what a reviewer must not overlook in a plan.

use crate::model::{LevelConfig, Switch};
use serde::Serialize;
use std::fmt;

/// Why a change is marked and shown first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Danger {
    /// Traffic that was admitted is refused from now on.
    Disables,
    /// Traffic that was refused may be admitted from now on.
    LiftsDisable,
    /// Everything is admitted, whatever the limits say.
    OpensBypass,
    /// The level that refuses traffic goes away.
    DeletesDisabled,
    /// An exception to a less specific level goes away.
    RemovesCarveOut,
}

impl fmt::Display for Danger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Danger::Disables => "stops traffic",
            Danger::LiftsDisable => "lifts a disable",
            Danger::OpensBypass => "opens a bypass",
            Danger::DeletesDisabled => "deletes a disabled level",
            Danger::RemovesCarveOut => "removes a carve-out",
        })
    }
}

pub(super) fn of(before: Option<&LevelConfig>, after: Option<&LevelConfig>) -> Vec<Danger> {
    let was = before.and_then(|config| config.disabled);
    let is = after.and_then(|config| config.disabled);
    let mut dangers = Vec::new();
    if was == is {
        return dangers;
    }
    if is == Some(Switch::Disabled) {
        dangers.push(Danger::Disables);
    }
    if was == Some(Switch::Disabled) {
        dangers.push(if after.is_none() {
            Danger::DeletesDisabled
        } else {
            Danger::LiftsDisable
        });
    }
    if is == Some(Switch::Bypass) {
        dangers.push(Danger::OpensBypass);
    }
    if matches!(was, Some(Switch::Enabled | Switch::Bypass)) && is.is_none() {
        dangers.push(Danger::RemovesCarveOut);
    }
    dangers
}
