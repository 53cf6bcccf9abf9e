//! Who owns a switch: the manifest that declares or declared it, or whoever set it out of band.

use crate::manifest::OutOfBand;
use crate::model::{Level, ProvisionerRecord, StoredLevel, Switch};

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

    /// The switch to bring a declared level to, and the one that is kept although the manifest is
    /// silent about it.
    pub(super) fn settle(
        &self,
        level: &Level,
        declared: Option<Switch>,
        stored: Option<&StoredLevel>,
    ) -> (Option<Switch>, Option<Switch>) {
        let found = stored.and_then(|stored| stored.config.disabled);
        // Of a switch that is not there it does not matter.
        let was_declared = found.is_some() && self.was_declared(level);
        let disabled = settled(declared, found, was_declared, self.out_of_band);
        let kept = disabled.filter(|_| declared.is_none());
        (disabled, kept)
    }

    /// A record of the Python provisioner does not remember switches: there, every stored switch
    /// at a managed level counts as the manifest's.
    fn was_declared(&self, level: &Level) -> bool {
        self.record.is_some_and(|record| record.owns_switch(level))
    }
}

/// The switch that a level is brought to. What the manifest declares is the manifest's, and so is
/// what it declared before; any other value that is found was set by hand.
pub(super) fn settled(
    declared: Option<Switch>,
    found: Option<Switch>,
    was_declared: bool,
    out_of_band: OutOfBand,
) -> Option<Switch> {
    match out_of_band {
        OutOfBand::Keep if !was_declared => declared.or(found),
        OutOfBand::Keep | OutOfBand::Revert => declared,
    }
}
