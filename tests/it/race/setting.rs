//! What a race begins with: a namespace as an earlier apply left it, with its buckets.

use super::draw::{OWNERS, Scenario};
use super::oracle::carried;
use super::run::key_of;
use crate::world::{Dump, Item, n, s};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::BTreeMap;
use zae_limits::model::{Level, NamespaceId, ProvisionerRecord};
use zae_limits::table::{config, record};

/// Every item of a scenario's namespace.
pub fn items(scenario: &Scenario) -> Dump {
    let Scenario { ns, initial, .. } = scenario;
    let levels = initial.levels.iter();
    let configs = levels
        .clone()
        .map(|(level, declared)| config::encode(ns, level, declared));
    let switches = levels.filter_map(|(level, config)| Some((level.clone(), config.disabled?)));
    let record = ProvisionerRecord {
        managed: initial.levels.keys().cloned().collect(),
        switches: Some(switches.collect()),
        owner: initial.owner.clone(),
        rev: 1,
        ..ProvisionerRecord::default()
    };
    let record = record::encode(ns, &record, "1").expect("a small record");
    let metas = OWNERS.iter().map(|owner| meta(ns, *owner));
    let items = configs.chain(metas).chain(registries(scenario));
    let items = items.chain([record.main]);
    let mut stored: Dump = items.map(|item| (key_of(&item), item)).collect();
    for ((entity, resource), shards) in &scenario.buckets {
        let carried = carried(&stored, ns, entity, resource);
        for shard in 0..*shards {
            let bucket = carried.bucket(ns, entity, resource, shard);
            stored.insert(key_of(&bucket), bucket);
        }
    }
    stored
}

/// What clients list from: the resources with a config, and how many entities have one for each.
fn registries(scenario: &Scenario) -> Vec<Item> {
    let ns = &scenario.ns;
    let pk = format!("{ns}/SYSTEM#");
    let item = |sk: &str| -> Item {
        [
            ("PK", s(&pk)),
            ("SK", s(sk)),
            ("GSI4PK", s(ns.as_str())),
            ("GSI4SK", s(&pk)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    };
    let mut names = Vec::new();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for level in scenario.initial.levels.keys() {
        match level {
            Level::System => {}
            Level::Resource(resource) => names.push(resource.to_string()),
            Level::Entity(_, scope) => *counts.entry(scope.as_str().to_owned()).or_default() += 1,
        }
    }
    let (mut resources, mut entities) = (item("#RESOURCES"), item("#ENTITY_CONFIG_RESOURCES"));
    if !names.is_empty() {
        resources.insert("resources".to_owned(), AttributeValue::Ss(names));
    }
    entities.extend(counts.into_iter().map(|(scope, count)| (scope, n(count))));
    vec![resources, entities]
}

fn meta(ns: &NamespaceId, (entity, cascade, parent): (&str, bool, Option<&str>)) -> Item {
    let pk = format!("{ns}/ENTITY#{entity}");
    let parent = parent.map_or(AttributeValue::Null(true), s);
    [
        ("PK", s(&pk)),
        ("SK", s("#META")),
        ("GSI4PK", s(ns.as_str())),
        ("GSI4SK", s(&pk)),
        ("cascade", AttributeValue::Bool(cascade)),
        ("parent_id", parent),
        ("pgen", n(1)),
        ("pinc", s("2026-01-01T00:00:00Z")),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
