//! The plan: what would change, from what to what, and which fan-outs that owes. Pure.
//!
//! [`plan`] compares a manifest with the stored [`State`] and returns data: sorted, comparable,
//! fingerprinted. [`Plan::guard`] is the only way to a [`GuardedPlan`], and nothing else can be
//! applied.

mod beside;
mod danger;
mod difference;
mod fingerprint;
mod gate;
mod guard;
mod switch;
mod unreadable;

pub use danger::Danger;
pub use difference::{Difference, differences};
pub use gate::{Feature, GateError, Release, Requirement, check_table, ratchet, requirement};
pub use guard::{Guard, GuardedPlan, Policy, Refusal};
pub use unreadable::{Fate, Unreadable};

use crate::manifest::{Manifest, OutOfBand};
use crate::model::{
    Damage, FanoutKind, Level, LevelConfig, NamespaceId, NamespaceName, Owed, ProvisionerRecord,
    State, StoredLevel, Switch,
};
use beside::Beside;
use std::collections::{BTreeMap, BTreeSet};

/// What happens to a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// The level is not stored yet.
    Create,
    /// The level is stored and differs.
    Update,
    /// The level was managed and is no longer declared.
    Delete,
}

impl Action {
    /// `create`, `update` or `delete`.
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Create => "create",
            Action::Update => "update",
            Action::Delete => "delete",
        }
    }
}

/// One level that changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Where.
    pub level: Level,
    /// What happens.
    pub action: Action,
    /// The stored level; `None` for a create.
    pub before: Option<StoredLevel>,
    /// The level to write; `None` for a delete.
    pub after: Option<LevelConfig>,
    /// The fan-outs that the change makes necessary.
    pub owes: BTreeSet<FanoutKind>,
    /// What a reader must not overlook.
    pub dangers: Vec<Danger>,
}

impl Change {
    /// The stored config; `None` for a create.
    pub fn before_config(&self) -> Option<&LevelConfig> {
        self.before.as_ref().map(|stored| &stored.config)
    }

    /// Why the stored level does not read; `None` when it does, or when there is none.
    pub fn damage(&self) -> Option<&Damage> {
        self.before.as_ref()?.damage.as_ref()
    }
}

/// A switch that someone set outside the manifest, at a level whose entry is silent about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSwitch {
    /// Where.
    pub level: Level,
    /// The value that stays.
    pub switch: Switch,
}

/// How a plan is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlanOptions {
    /// What becomes of switches set outside the manifest.
    pub out_of_band: OutOfBand,
    /// Owe every fan-out of every declared level, changed or not.
    pub full: bool,
}

/// What an apply would do.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The namespace by name.
    pub namespace: NamespaceName,
    /// Its id; `None` when it would have to be registered first.
    pub namespace_id: Option<NamespaceId>,
    /// The levels that change, in the order of writes: system, resources, entities, each sorted.
    pub changes: Vec<Change>,
    /// How many declared levels are already as declared.
    pub unchanged: usize,
    /// Stored items that do not read, and what becomes of each.
    pub unreadable: Vec<Unreadable>,
    /// Switches that stay although the manifest does not name them.
    pub kept: Vec<KeptSwitch>,
    /// Every fan-out the apply owes by itself, pending ones of earlier applies aside.
    pub owed: BTreeSet<Owed>,
    /// Fan-outs that earlier applies left unfinished.
    pub pending: BTreeSet<Owed>,
    /// What the record must say once the apply has succeeded; `rev`, time, `previous_hash` and
    /// `taken_from`, which follow from what is stored by then, aside.
    pub record: ProvisionerRecord,
    /// The record that the plan was made against.
    pub record_before: Option<ProvisionerRecord>,
    /// How many levels the manifest declares.
    pub declared: usize,
    /// What becomes of switches set outside the manifest.
    pub out_of_band: OutOfBand,
    /// Why the table's versions forbid the manifest; `None` when they allow it.
    pub gate: Option<GateError>,
    /// Features that the manifest uses and old readers would get wrong.
    pub requirement: Option<Requirement>,
}

impl Plan {
    /// Whether an apply would write no level and owe no fan-out.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.owed.is_empty() && self.pending.is_empty()
    }

    /// How many changes do one thing.
    pub fn count(&self, action: Action) -> usize {
        self.changes
            .iter()
            .filter(|change| change.action == action)
            .count()
    }

    /// The fan-outs that the changes themselves owe.
    pub fn owed_by_changes(&self) -> impl Iterator<Item = Owed> + '_ {
        owed_by(&self.changes)
    }

    /// Whether the record differs from what it must say, its owner aside: who applies is not known
    /// before a policy is.
    pub fn record_changes(&self) -> bool {
        self.record_before.as_ref().is_none_or(|before| {
            before.managed != self.record.managed
                || before.switches != self.record.switches
                || before.applied_hash != self.record.applied_hash
        })
    }

    /// The config to write for a change whose stored level moved since it was planned: a switch
    /// set by hand meanwhile is treated as one that had been set before. `memory` is what the
    /// record, read by now, says of declared switches: one that another apply declared and set
    /// meanwhile was not set by hand.
    pub fn resettled(
        &self,
        change: &Change,
        current: Option<&StoredLevel>,
        memory: Option<&BTreeMap<Level, Switch>>,
    ) -> Option<LevelConfig> {
        let mut after = change.after.clone()?;
        let planned = change.before_config().and_then(|before| before.disabled);
        let current = current.and_then(|current| current.config.disabled);
        if current != planned {
            let declares = self.record.switches.as_ref();
            let declared = declares.and_then(|switches| switches.get(&change.level));
            let theirs = memory.and_then(|memory| memory.get(&change.level)).copied();
            // An earlier apply's is what was planned against. This one is a later apply's, or was
            // set by hand.
            let was_declared = current.is_some() && current == theirs;
            after.disabled =
                switch::settled(declared.copied(), current, was_declared, self.out_of_band);
        }
        Some(after)
    }

    /// Whether a switch that a change's level shows by now, and did not show when it was planned,
    /// would be kept had somebody set it by hand.
    pub fn may_keep_switch(&self, change: &Change, current: Option<Switch>) -> bool {
        let mut declared = self.record.switches.iter().flatten();
        let planned = change.before_config().and_then(|before| before.disabled);
        self.out_of_band == OutOfBand::Keep
            && current != planned
            && !declared.any(|(level, _)| *level == change.level)
    }

    /// A hash of everything the plan would do, to recognise it by when it is applied later.
    pub fn fingerprint(&self) -> String {
        fingerprint::of(self)
    }
}

/// Compares a manifest with what is stored.
pub fn plan(manifest: &Manifest, state: &State, options: PlanOptions) -> Plan {
    let record_before = state.record.clone();
    let memory = switch::Memory::new(record_before.as_ref(), options.out_of_band);
    let mut changes = Vec::new();
    let mut kept = Vec::new();
    let mut unchanged = 0;
    let mut found = Beside::of(&state.levels);
    for (level, declared) in manifest.levels() {
        let stored = found.at(level);
        let (disabled, keeps) = memory.settle(level, declared.disabled, stored);
        kept.extend(keeps.map(|switch| KeptSwitch {
            level: level.clone(),
            switch,
        }));
        if stored.is_some_and(|stored| is_unchanged(stored, declared, disabled)) {
            unchanged += 1;
        } else {
            let after = LevelConfig {
                disabled,
                ..declared.clone()
            };
            changes.push(change(level, stored, Some(after)));
        }
    }
    changes.extend(deletes(manifest, state));
    changes.sort_by(|a, b| a.level.cmp(&b.level));
    let owed = owed(manifest, &changes, options.full);
    let requirement = requirement(manifest);
    Plan {
        unreadable: unreadable::of(&changes, state),
        namespace: manifest.namespace().clone(),
        namespace_id: state.namespace_id.clone(),
        changes,
        unchanged,
        kept,
        owed,
        pending: pending(state),
        record: record_after(manifest),
        record_before,
        declared: manifest.levels().len(),
        out_of_band: options.out_of_band,
        gate: check_table(state.versions.as_ref(), requirement).err(),
        requirement,
    }
}

/// What earlier applies left, in whatever shape.
fn pending(state: &State) -> BTreeSet<Owed> {
    let recorded = state.pending.iter().map(|pending| pending.owed.clone());
    let listed = state.record.iter().flat_map(ProvisionerRecord::listed);
    recorded.chain(listed).collect()
}

/// Whether a stored level is what it is brought to, `disabled` in place of the declared switch.
/// Compared where they stand: copies of a hundred thousand levels are most of a plan.
fn is_unchanged(stored: &StoredLevel, declared: &LevelConfig, disabled: Option<Switch>) -> bool {
    let LevelConfig {
        limits,
        zone,
        disabled: _,
        cascade,
        on_unavailable,
    } = declared;
    let found = &stored.config;
    stored.as_written
        && found.disabled == disabled
        && found.limits == *limits
        && found.zone == *zone
        && found.cascade == *cascade
        && found.on_unavailable == *on_unavailable
}

/// Managed levels that are no longer declared and still stored.
fn deletes<'a>(manifest: &'a Manifest, state: &'a State) -> impl Iterator<Item = Change> + 'a {
    let mut declared = Beside::of(manifest.levels());
    let mut found = Beside::of(&state.levels);
    state
        .record
        .iter()
        .flat_map(|record| &record.managed)
        .filter(move |level| declared.at(level).is_none())
        .filter_map(move |level| {
            found
                .at(level)
                .map(|stored| change(level, Some(stored), None))
        })
}

fn change(level: &Level, stored: Option<&StoredLevel>, after: Option<LevelConfig>) -> Change {
    let before = stored.map(|stored| &stored.config);
    let owes = fanouts_of(level, stored, after.as_ref());
    let action = match (before, &after) {
        (_, None) => Action::Delete,
        (None, Some(_)) => Action::Create,
        (Some(_), Some(_)) => Action::Update,
    };
    Change {
        owes,
        dangers: danger::of(before, after.as_ref()),
        level: level.clone(),
        action,
        before: stored.cloned(),
        after,
    }
}

/// The fan-outs that a change of one level makes necessary. An absent level is an empty one, and what
/// cannot be read of the stored one counts as changed.
pub fn fanouts_of(
    level: &Level,
    stored: Option<&StoredLevel>,
    after: Option<&LevelConfig>,
) -> BTreeSet<FanoutKind> {
    let nothing = LevelConfig::default();
    // With an entity's level goes whatever limit somebody added to it unseen.
    let goes = stored.is_some() && after.is_none();
    let unknown = stored.is_some_and(|stored| stored.damage.is_some());
    let before = stored.map_or(&nothing, |stored| &stored.config);
    let after = after.unwrap_or(&nothing);
    let differs = |kind| match kind {
        FanoutKind::Access => before.disabled != after.disabled,
        FanoutKind::Cascade => before.cascade != after.cascade,
        FanoutKind::Soft => unknown || soft_limits(before) != soft_limits(after),
        FanoutKind::Params => {
            goes || unknown || before.limits != after.limits || before.zone != after.zone
        }
    };
    every_fanout(level).filter(|kind| differs(*kind)).collect()
}

fn soft_limits(config: &LevelConfig) -> BTreeSet<&crate::model::LimitName> {
    config
        .limits
        .iter()
        .filter(|(_, limit)| limit.soft)
        .map(|(name, _)| name)
        .collect()
}

fn owed(manifest: &Manifest, changes: &[Change], full: bool) -> BTreeSet<Owed> {
    let mut owed: BTreeSet<Owed> = owed_by(changes).collect();
    if full {
        for level in manifest.levels().keys() {
            owed.extend(every_fanout(level).map(|kind| Owed {
                level: level.clone(),
                kind,
            }));
        }
    }
    owed
}

fn owed_by(changes: &[Change]) -> impl Iterator<Item = Owed> + '_ {
    changes.iter().flat_map(|change| {
        change.owes.iter().map(|kind| Owed {
            level: change.level.clone(),
            kind: *kind,
        })
    })
}

/// Every fan-out a level can owe.
fn every_fanout(level: &Level) -> impl Iterator<Item = FanoutKind> {
    FanoutKind::ALL
        .into_iter()
        .filter(|kind| kind.applies_to(level))
}

fn record_after(manifest: &Manifest) -> ProvisionerRecord {
    let switches: BTreeMap<Level, Switch> = manifest
        .levels()
        .iter()
        .filter_map(|(level, config)| config.disabled.map(|switch| (level.clone(), switch)))
        .collect();
    ProvisionerRecord {
        managed: manifest.levels().keys().cloned().collect(),
        switches: Some(switches),
        owner: None,
        taken_from: None,
        applied_hash: Some(manifest.sha256()),
        previous_hash: None,
        last_applied: None,
        full_owed: false,
        cascade_pending: BTreeSet::new(),
        rev: 0,
    }
}
