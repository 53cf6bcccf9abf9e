//! The access switch: what a level may say, and what a bucket ends up enforcing.

use serde::{Deserialize, Serialize};
use std::fmt;

/// An explicit value of `disabled` at one level. A level that says nothing inherits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// `disabled: true`: every request is refused.
    Disabled,
    /// `disabled: false`: limits apply, whatever a less specific level says (a carve-out).
    Enabled,
    /// `disabled: bypass`: every request is admitted and still counted.
    Bypass,
}

impl Switch {
    /// What a bucket enforces when this value wins.
    pub fn mode(self) -> AccessMode {
        match self {
            Switch::Disabled => AccessMode::Disabled,
            Switch::Enabled => AccessMode::Enforce,
            Switch::Bypass => AccessMode::Bypass,
        }
    }
}

impl fmt::Display for Switch {
    /// The manifest's spelling: `true`, `false` or `bypass`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Switch::Disabled => "true",
            Switch::Enabled => "false",
            Switch::Bypass => "bypass",
        })
    }
}

/// What a bucket enforces, whoever decided it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessMode {
    /// Refuse everything.
    Disabled,
    /// Admit everything, count it.
    Bypass,
    /// Apply the limits.
    Enforce,
}

impl fmt::Display for AccessMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AccessMode::Disabled => "disabled",
            AccessMode::Bypass => "bypass",
            AccessMode::Enforce => "enforce",
        })
    }
}
