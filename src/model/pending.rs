//! Fan-outs that an earlier apply left unfinished, and who still holds them.

use super::{EpochMs, Owed};
use std::collections::BTreeMap;

/// One apply's share of a pending fan-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// When that apply is certainly gone; `None` was never recorded and reads as gone.
    pub lease: Option<EpochMs>,
    /// Whether it was a full apply.
    pub full: bool,
    /// Whether it is stored in the older single-owner shape.
    pub single: bool,
}

impl Owner {
    /// Whether the apply that holds this share is certainly gone.
    pub fn is_gone(&self, now: EpochMs) -> bool {
        let farthest = now.plus_ms(LONGEST_LEASE_MS);
        self.lease
            .is_none_or(|lease| lease < now || lease > farthest)
    }
}

/// No apply holds a lease for longer, in milliseconds. One that ends later is nobody's, or some other
/// clock's, and would never run out.
pub const LONGEST_LEASE_MS: u64 = 24 * 60 * 60_000;

/// One fan-out that is owed, with every apply that holds a share of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// What is owed.
    pub owed: Owed,
    /// By apply token.
    pub owners: BTreeMap<String, Owner>,
    /// Whether the item has the owners map, empty or not.
    pub has_map: bool,
    /// Since when it is owed; `None` was never recorded.
    pub written: Option<EpochMs>,
    /// Whether nothing but the item's key reads. It has no owners then, and whoever takes it over
    /// writes it anew.
    pub damaged: bool,
}

impl Pending {
    /// The tokens of applies that are certainly gone.
    pub fn gone(&self, now: EpochMs) -> impl Iterator<Item = (&str, &Owner)> {
        self.owners
            .iter()
            .filter(move |(_, owner)| owner.is_gone(now))
            .map(|(token, owner)| (token.as_str(), owner))
    }

    /// Whether another apply may take a share over: an owner is gone, or none is left.
    pub fn is_claimable(&self, now: EpochMs) -> bool {
        self.owners.is_empty() || self.gone(now).next().is_some()
    }
}
