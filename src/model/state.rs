//! What the table holds, as far as a plan needs to know.

use super::{Level, LevelConfig, NamespaceId, Pending, ProvisionerRecord};
use std::collections::BTreeMap;
use std::fmt;

/// One stored level.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredLevel {
    /// What it declares. Of an item that does not read, the switch and the cascade policy alone,
    /// which clients read by themselves; the rest of it is unknown, not absent.
    pub config: LevelConfig,
    /// Whether the item is exactly what this build would write for that config.
    pub as_written: bool,
    /// Whether the registries and the entity index know of it.
    pub registered: bool,
    /// Why the item does not read; `None` when it does.
    pub damage: Option<Damage>,
}

/// Why a stored item does not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The item's key, as people read it.
    pub item: String,
    /// Which attribute, and what is wrong with it.
    pub problem: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "item {}: {}", self.item, self.problem)
    }
}

/// The versions that a table's version record names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Versions {
    /// The schema of its items.
    pub schema: Option<String>,
    /// What is deployed beside it.
    pub lambda: Option<String>,
    /// The oldest client that may still read it.
    pub client_min: Option<String>,
}

impl Versions {
    /// The release of the format that this build speaks.
    pub const SPOKEN: [u64; 3] = [0, 17, 0];
}

/// What the table holds about one namespace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct State {
    /// The namespace's id; `None` when the registry does not know the name.
    pub namespace_id: Option<NamespaceId>,
    /// The version record; `None` when there is none.
    pub versions: Option<Versions>,
    /// The provisioner record; `None` when nothing was ever applied.
    pub record: Option<ProvisionerRecord>,
    /// Every stored level among those that the manifest declares or the record manages.
    pub levels: BTreeMap<Level, StoredLevel>,
    /// Levels that are neither and do not read, among those that declared ones fall back to.
    pub damaged_beside: BTreeMap<Level, Damage>,
    /// Fan-outs that earlier applies left unfinished.
    pub pending: Vec<Pending>,
    /// Items among those of pending fan-outs that name none.
    pub damaged_pending: Vec<Damage>,
}
