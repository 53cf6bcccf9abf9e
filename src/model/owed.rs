//! What a change of config owes: one fan-out of one kind over one level's buckets.

use super::Level;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a fan-out brings to the buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FanoutKind {
    /// The access stamps: disabled, bypass, or neither.
    Access,
    /// The cascade policy and the parent.
    Cascade,
    /// The soft stamps of a resource's or the system's limits.
    Soft,
    /// An entity's limits: capacity, refill, windows, schedules, ttl.
    Params,
}

impl FanoutKind {
    /// Every kind, in the order they run over one level.
    pub const ALL: [FanoutKind; 4] = [
        FanoutKind::Access,
        FanoutKind::Cascade,
        FanoutKind::Soft,
        FanoutKind::Params,
    ];

    /// Whether a level can owe this kind: the system has neither switch nor policy, an entity's soft
    /// stamps come with its params, and buckets on shared defaults take new ones when they expire.
    pub fn applies_to(self, level: &Level) -> bool {
        match self {
            FanoutKind::Access | FanoutKind::Cascade => *level != Level::System,
            FanoutKind::Soft => !matches!(level, Level::Entity(..)),
            FanoutKind::Params => matches!(level, Level::Entity(..)),
        }
    }

    /// The kind's name in pending items, shared with the Python provisioner.
    pub fn stored_name(self) -> &'static str {
        match self {
            FanoutKind::Access => "disabled",
            FanoutKind::Cascade => "cascade",
            FanoutKind::Soft => "soft",
            FanoutKind::Params => "sync",
        }
    }

    /// Reads back [`FanoutKind::stored_name`].
    pub fn from_stored(name: &str) -> Option<FanoutKind> {
        FanoutKind::ALL
            .into_iter()
            .find(|kind| kind.stored_name() == name)
    }
}

impl fmt::Display for FanoutKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FanoutKind::Access => "access",
            FanoutKind::Cascade => "cascade",
            FanoutKind::Soft => "soft",
            FanoutKind::Params => "params",
        })
    }
}

/// One fan-out that is due. Sorted by level first: resources before entities, so that an entity's
/// carve-out is stamped last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owed {
    /// The level whose config the fan-out reads.
    pub level: Level,
    /// What it brings.
    pub kind: FanoutKind,
}

impl fmt::Display for Owed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} fan-out of {}", self.kind, self.level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_owes_what_its_config_can_say() {
        use FanoutKind::{Access, Cascade, Params, Soft};
        for (kind, target, owes) in [
            ("system", "", vec![Soft]),
            ("resource", "gpt-4", vec![Access, Cascade, Soft]),
            ("entity", "user-1/gpt-4", vec![Access, Cascade, Params]),
            ("entity", "user-1/_default_", vec![Access, Cascade, Params]),
        ] {
            let level = Level::from_parts(kind, target).expect("a level");
            let can = |kind: &FanoutKind| kind.applies_to(&level);
            let found: Vec<_> = FanoutKind::ALL.into_iter().filter(can).collect();
            assert_eq!(found, owes, "{level}");
        }
    }
}
