//! Who owns a switch: the manifest that declares or declared it, or whoever set it out of band.

use crate::manifest::OutOfBand;
use crate::model::{Level, LevelConfig, ProvisionerRecord, StoredLevel, Switch};

/// What the last apply declared, as far as the record remembers.
pub(super) struct Memory<'a> {
    record: Option<&'a ProvisionerRecord>,
    out_of_band: OutOfBand,
}

impl<'a> Memory<'a> {
    pub(super) fn new(record: Option<&'a ProvisionerRecord>, out_of_band: OutOfBand) -> Self {
        Memory {
            record,
            out_of_band,
        }
    }

    /// The config to bring a declared level to, and the switch that is kept although the manifest
    /// is silent about it.
    pub(super) fn settle(
        &self,
        level: &Level,
        declared: &LevelConfig,
        stored: Option<&StoredLevel>,
    ) -> (LevelConfig, Option<Switch>) {
        let mut after = declared.clone();
        let set_by_hand = match (declared.disabled, stored.and_then(|s| s.config.disabled)) {
            (None, Some(switch)) if !self.was_declared(level) => Some(switch),
            _ => None,
        };
        let kept = set_by_hand.filter(|_| self.out_of_band == OutOfBand::Keep);
        if kept.is_some() {
            after.disabled = kept;
        }
        (after, kept)
    }

    /// A record of the Python provisioner does not remember switches: there, every stored switch
    /// at a managed level counts as the manifest's.
    fn was_declared(&self, level: &Level) -> bool {
        self.record.is_some_and(|record| record.owns_switch(level))
    }
}
