//! What an apply says in the provisioner record: before its first write what is about to come, and at
//! the end what is really there.

use super::Run;
use crate::apply::ConfigWrites;
use crate::fanout::Outcome;
use crate::model::{Level, Switch};
use crate::plan::{Action, Change};
use crate::store::{RecordDelta, StoreError, Takeover};
use std::collections::BTreeSet;

impl Run<'_> {
    /// Before levels appear or switches are set, the record says that they are this manifest's:
    /// an apply that dies after them leaves nothing that no later one would clean up.
    pub(super) async fn record_intent(&self) -> Result<(), StoreError> {
        let plan = self.guarded.plan();
        let before = plan.record_before.clone().unwrap_or_default();
        let known = before.switches.unwrap_or_default();
        let is_new = |level: &&Level| !before.managed.contains(*level);
        let managed: BTreeSet<Level> = plan.record.managed.iter().filter(is_new).cloned().collect();
        let switches = plan.record.switches.iter().flatten();
        let switches: Vec<_> = switches
            .filter(|(level, switch)| known.get(*level) != Some(*switch))
            .collect();
        let owner_differs = before.owner != plan.record.owner;
        if managed.is_empty() && switches.is_empty() && !owner_differs {
            return Ok(());
        }
        let delta = RecordDelta {
            managed,
            switches: switches.into_iter().map(|(l, s)| (l.clone(), *s)).collect(),
            owner: self.takeover(true),
            remembers: plan
                .record_before
                .as_ref()
                .is_none_or(|before| before.switches.is_some()),
            ..RecordDelta::default()
        };
        self.store.update_record(self.ns, &delta).await?;
        Ok(())
    }

    fn takeover(&self, or_fail: bool) -> Option<Takeover> {
        let plan = self.guarded.plan();
        let from = plan
            .record_before
            .as_ref()
            .and_then(|record| record.owner.clone());
        Some(Takeover {
            from,
            to: plan.record.owner.clone()?,
            or_fail,
        })
    }

    pub(super) async fn mark_full(&self, full_owed: bool) -> Result<(), StoreError> {
        let delta = RecordDelta {
            full_owed: Some(full_owed),
            ..RecordDelta::default()
        };
        self.store.update_record(self.ns, &delta).await?;
        Ok(())
    }

    /// The switches that were to be removed and still stand, because their levels could not be
    /// written. They stay the manifest's: forgotten, they would be taken for set by hand and kept
    /// for good.
    fn unremoved(&self, writes: &ConfigWrites) -> impl Iterator<Item = (Level, Switch)> {
        let plan = self.guarded.plan();
        let failed = |change: &&Change| writes.failed.contains_key(&change.level);
        plan.changes.iter().filter(failed).filter_map(|change| {
            let stands = change.before_config()?.disabled?;
            let declared = change.after.as_ref().and_then(|after| after.disabled);
            let ours = plan.record_before.as_ref()?.owns_switch(&change.level);
            (ours && declared.is_none()).then(|| (change.level.clone(), stands))
        })
    }

    /// The record lists what is really there: not levels that could not be created, and levels
    /// that could not be deleted still.
    pub(super) async fn record_outcome(
        &self,
        writes: &ConfigWrites,
        outcomes: &[Outcome],
        tidied: bool,
    ) -> Option<String> {
        let plan = self.guarded.plan();
        // What is pending is recorded on its own: a record that lists nothing and still names an
        // owner who is gone would only be in the next one's way.
        if self.options.forget && writes.failed.is_empty() && tidied {
            let owner = plan.record.owner.as_ref();
            let deleted = self.store.delete_record(self.ns, owner).await;
            return Some(deleted.err()?.to_string());
        }
        // One that may have landed after all stays managed: a managed level that is not there costs
        // nothing, and one that is there and not managed would be left behind.
        let failed_create = |change: &&Change| {
            change.action == Action::Create
                && writes.failed.contains_key(&change.level)
                && !writes.uncertain.contains(&change.level)
        };
        let missing: BTreeSet<Level> = plan
            .changes
            .iter()
            .filter(failed_create)
            .map(|change| change.level.clone())
            .collect();
        let before = plan.record_before.iter().flat_map(|record| &record.managed);
        // Until their counts are tidied, those that went stay listed: the next apply then tidies.
        let gone = before.filter(|level| {
            !plan.record.managed.contains(*level)
                && !writes.failed.contains_key(*level)
                && (tidied || !matches!(level, Level::Entity(..)))
        });
        let here = |level: &&Level| !missing.contains(*level);
        let switches = plan.record.switches.clone().unwrap_or_default();
        let silent = plan
            .record
            .managed
            .iter()
            .filter(|level| !switches.contains_key(*level));
        let delta = RecordDelta {
            managed: plan.record.managed.iter().filter(here).cloned().collect(),
            released: gone.cloned().chain(missing.iter().cloned()).collect(),
            silent: silent.cloned().collect(),
            switches: switches
                .into_iter()
                .filter(|(level, _)| here(&level))
                .chain(self.unremoved(writes))
                .collect(),
            owner: self.takeover(false),
            applied_hash: plan
                .record
                .applied_hash
                .clone()
                .filter(|_| writes.failed.is_empty()),
            last_applied: Some(self.clock.now()),
            remembers: true,
            settled: false,
            wrote: !writes.written.is_empty(),
            full_owed: self
                .options
                .full
                .then(|| outcomes.iter().any(Outcome::was_interrupted)),
            unlisted: plan
                .record_before
                .iter()
                .flat_map(|record| record.cascade_pending.iter().cloned())
                .collect(),
        };
        Some(
            self.store
                .update_record(self.ns, &delta)
                .await
                .err()?
                .to_string(),
        )
    }
}
