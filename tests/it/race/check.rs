//! The invariant: what a namespace must be like after a race, and after a person has applied again.

use super::actors::{Did, Ended};
use super::draw::{Applying, Incident, Levels, Scenario};
use super::oracle::carried;
use super::run::{Raced, Track, manifest};
use crate::world::Dump;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeMap, BTreeSet};
use zae_limits::clock::Clock;
use zae_limits::model::{
    Level, LevelConfig, NamespaceId, Pending, ProvisionerRecord, State, StoredLevel,
};
use zae_limits::plan::{PlanOptions, plan};
use zae_limits::table::record::RecordItems;
use zae_limits::table::{BucketId, config, pending, record};

/// What is stored, and whatever is wrong about it.
pub struct Look<'a> {
    scenario: &'a Scenario,
    raced: &'a Raced,
    stored: Dump,
    levels: Levels,
    record: ProvisionerRecord,
    pending: Vec<Pending>,
    wrong: Vec<String>,
}

impl<'a> Look<'a> {
    pub async fn at(track: &Track, scenario: &'a Scenario, raced: &'a Raced) -> Look<'a> {
        let stored = track.dump(&scenario.ns).await;
        let items = |prefix: &str| {
            let of_kind = stored
                .iter()
                .filter(move |((_, sk), _)| sk.starts_with(prefix));
            of_kind.map(|(_, item)| item.clone()).collect::<Vec<_>>()
        };
        let key = (
            format!("{}/SYSTEM#", scenario.ns),
            "#PROVISIONER".to_owned(),
        );
        let record = RecordItems {
            main: stored.get(&key).expect("a record").clone(),
            overflow: items("#PROVISIONER#MANAGED#"),
        };
        let pending = items("#PROVISIONER#PENDING#");
        let pending = pending
            .iter()
            .map(|item| pending::decode(item).expect("readable"));
        Look {
            scenario,
            raced,
            levels: levels(&stored, &scenario.ns),
            record: record::decode(&record).expect("readable"),
            pending: pending.collect(),
            wrong: Vec::new(),
            stored,
        }
    }

    /// Right after the race: each level is as one of those who wrote it says, the record knows it,
    /// and whatever is not done waits for the next apply and for nobody's lease.
    pub fn after_the_race(mut self, clock: &Clock) -> Vec<String> {
        let is_dead = |ended: &Ended| matches!(ended, Ended::Died);
        if self.raced.applies.iter().any(is_dead) {
            return Vec::new();
        }
        let all_content = self.raced.applies.iter().all(Ended::is_success);
        let mut manifests: Vec<&Levels> = self.scenario.applies.iter().map(|a| &a.levels).collect();
        if !all_content {
            manifests.push(&self.scenario.initial.levels);
        }
        for level in self.every_level() {
            let shown = self.levels.get(&level);
            let by_client = self.edited(&level).any(|(config, _)| Some(config) == shown);
            let by_manifest = manifests.iter().any(|levels| self.is_as(levels, &level));
            if !by_client && !by_manifest {
                let shown = format!("{level} is nobody's: {shown:?}");
                self.wrong.push(shown);
            }
            if shown.is_some() && !self.record.managed.contains(&level) {
                self.wrong.push(format!("{level} is lost from the record"));
            }
        }
        let held = |pending: &&Pending| !pending.is_claimable(clock.now());
        let held: Vec<String> = self
            .pending
            .iter()
            .filter(held)
            .map(|p| p.owed.to_string())
            .collect();
        self.wrong.extend(
            held.into_iter()
                .map(|owed| format!("{owed} is held by nobody who lives")),
        );
        if self.pending.is_empty() {
            self.check_buckets();
        }
        self.check_registries();
        self.wrong
    }

    /// After a resume that nobody disturbed: nothing is owed, and every bucket is as config says,
    /// whosever that is.
    pub fn after_a_resume(mut self) -> Vec<String> {
        for pending in std::mem::take(&mut self.pending) {
            self.wrong.push(format!("{} is left pending", pending.owed));
        }
        self.check_buckets();
        let resumed = |wrong: String| format!("after a resume, {wrong}");
        self.wrong.into_iter().map(resumed).collect()
    }

    /// After an apply that nobody disturbed: all is as its manifest says.
    pub fn after(mut self, last: &Applying) -> Vec<String> {
        for level in self.every_level() {
            if !self.is_as(&last.levels, &level) {
                let shown = format!("{level} is not as applied: {:?}", self.levels.get(&level));
                self.wrong.push(shown);
            }
        }
        for pending in std::mem::take(&mut self.pending) {
            self.wrong.push(format!(
                "{} is left pending: {:?}",
                pending.owed, pending.owners
            ));
        }
        let managed: BTreeSet<Level> = last.levels.keys().cloned().collect();
        if self.record.managed != managed {
            self.wrong
                .push(format!("the record manages {:?}", self.record.managed));
        }
        let declared = last.levels.iter();
        let declared =
            declared.filter_map(|(level, config)| Some((level.clone(), config.disabled?)));
        let declared: BTreeMap<_, _> = declared.collect();
        if self.record.switches.as_ref() != Some(&declared) {
            self.wrong
                .push(format!("the record remembers {:?}", self.record.switches));
        }
        self.check_buckets();
        self.check_registries();
        let as_stored = |(level, config): (&Level, &LevelConfig)| {
            let stored = StoredLevel {
                config: config.clone(),
                as_written: true,
                registered: true,
                damage: None,
            };
            (level.clone(), stored)
        };
        let state = State {
            namespace_id: Some(self.scenario.ns.clone()),
            record: Some(self.record.clone()),
            levels: self.levels.iter().map(as_stored).collect(),
            ..State::default()
        };
        let plan = plan(&manifest(&last.levels), &state, PlanOptions::default());
        if !plan.is_empty() {
            self.wrong
                .push(format!("the next plan is not empty: {:?}", plan.changes));
        }
        self.wrong
    }

    fn every_level(&self) -> BTreeSet<Level> {
        let Scenario {
            initial, applies, ..
        } = self.scenario;
        let applies = applies.iter().chain([initial]);
        let declared = applies.flat_map(|applying| applying.levels.keys());
        declared.chain(self.levels.keys()).cloned().collect()
    }

    /// What clients wrote at a level, and whether they turned its switch.
    fn edited(&self, level: &Level) -> impl Iterator<Item = (&LevelConfig, bool)> {
        self.raced.clients.iter().filter_map(move |did| match did {
            Did::Wrote {
                level: at,
                config,
                flipped,
            } if at == level => Some((config, *flipped)),
            _ => None,
        })
    }

    /// Whether a level is as a manifest says; where that is silent about the switch, one that was
    /// turned by hand may have been kept.
    fn is_as(&self, levels: &Levels, level: &Level) -> bool {
        let (Some(declared), Some(shown)) = (levels.get(level), self.levels.get(level)) else {
            return !levels.contains_key(level) && !self.levels.contains_key(level);
        };
        let mut must = declared.clone();
        let by_hand =
            |(config, flipped): (&LevelConfig, bool)| flipped && config.disabled == shown.disabled;
        if declared.disabled.is_none() && self.edited(level).any(by_hand) {
            must.disabled = shown.disabled;
        }
        must == *shown
    }

    fn check_buckets(&mut self) {
        let ns = &self.scenario.ns;
        let waits_for_acquires = !matches!(self.scenario.incident, Some(Incident::Jump { .. }));
        for ((pk, sk), bucket) in &self.stored {
            if sk != "#STATE" {
                continue;
            }
            let id = BucketId::parse(ns, pk).expect("a bucket's key");
            let (entity, resource) = (id.entity.as_str(), id.resource.as_str());
            let is_stale =
                self.raced.clients.iter().any(
                    |did| matches!(did, Did::Created(pair, true) if *pair == (entity, resource)),
                );
            let must = carried(&self.stored, ns, entity, resource);
            let wrong = must.wrong(bucket, !is_stale || waits_for_acquires, !is_stale);
            self.wrong.extend(
                wrong
                    .into_iter()
                    .map(|wrong| format!("{}: {wrong}", id.suffix())),
            );
        }
    }

    /// The registries count what is stored.
    fn check_registries(&mut self) {
        let ns = &self.scenario.ns;
        let registry = |sk: &str| self.stored.get(&(format!("{ns}/SYSTEM#"), sk.to_owned()));
        let mut resources = BTreeSet::new();
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for level in self.levels.keys() {
            match level {
                Level::System => {}
                Level::Resource(resource) => drop(resources.insert(resource.to_string())),
                Level::Entity(_, scope) => {
                    *counts.entry(scope.as_str().to_owned()).or_default() += 1
                }
            }
        }
        let listed = registry("#RESOURCES").and_then(|item| item.get("resources")?.as_ss().ok());
        let listed: BTreeSet<String> = listed.into_iter().flatten().cloned().collect();
        let counted = registry("#ENTITY_CONFIG_RESOURCES").into_iter().flatten();
        let counted = counted.filter_map(|(name, value)| match value {
            AttributeValue::N(count) => Some((name.clone(), count.parse().expect("a count"))),
            _ => None,
        });
        let counted: BTreeMap<String, u64> = counted.filter(|(_, count)| *count > 0).collect();
        if listed != resources {
            self.wrong
                .push(format!("the registry lists {listed:?} of {resources:?}"));
        }
        if counted != counts {
            self.wrong
                .push(format!("the registry counts {counted:?} of {counts:?}"));
        }
    }
}

fn levels(stored: &Dump, ns: &NamespaceId) -> Levels {
    let mut levels = Levels::new();
    for ((pk, sk), item) in stored {
        let Some(scope) = sk.strip_prefix("#CONFIG") else {
            continue;
        };
        let place = pk
            .strip_prefix(&format!("{ns}/"))
            .expect("a key of the namespace");
        let level = match place.split_once('#') {
            Some(("SYSTEM", "")) => Level::from_parts("system", ""),
            Some(("RESOURCE", resource)) => Level::from_parts("resource", resource),
            Some(("ENTITY", entity)) => {
                let scope = scope.strip_prefix('#').expect("a scope");
                Level::from_parts("entity", &format!("{entity}/{scope}"))
            }
            _ => None,
        };
        let level = level.unwrap_or_else(|| panic!("{pk} {sk} names no level"));
        levels.insert(level, config::decode(item).expect("a readable level"));
    }
    levels
}
