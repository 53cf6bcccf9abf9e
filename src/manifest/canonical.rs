//! One JSON form for what a manifest means, however it was written.
//!
//! The shape is the one the Python provisioner hashes and its command line sends: snake case,
//! defaults written out, what was not declared left out. Keys are sorted, so that the same meaning
//! always has the same bytes.

use crate::model::{Level, LevelConfig, Limit, Modifier, NamespaceName, Recovery, Switch, Zone};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The canonical JSON of a manifest.
pub(super) fn canonical(namespace: &NamespaceName, levels: &BTreeMap<Level, LevelConfig>) -> Value {
    let mut root = Map::new();
    root.insert("namespace".into(), json!(namespace.as_str()));
    let mut resources = Map::new();
    let mut entities: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for (level, config) in levels {
        let value = level_json(config);
        match level {
            Level::System => {
                root.insert("system".into(), value);
            }
            Level::Resource(resource) => {
                resources.insert(resource.to_string(), value);
            }
            Level::Entity(entity, scope) => {
                let resources = entities.entry(entity.as_str()).or_default();
                resources.insert(scope.to_string(), value);
            }
        }
    }
    if !resources.is_empty() {
        root.insert("resources".into(), Value::Object(resources));
    }
    if !entities.is_empty() {
        let entities: Map<String, Value> = entities
            .into_iter()
            .map(|(entity, resources)| (entity.to_owned(), json!({ "resources": resources })))
            .collect();
        root.insert("entities".into(), Value::Object(entities));
    }
    let mut root = Value::Object(root);
    root.sort_all_objects();
    root
}

/// One level as a manifest would declare it, in JSON.
pub fn level_json(config: &LevelConfig) -> Value {
    let limits: Map<String, Value> = config
        .limits
        .iter()
        .map(|(name, limit)| (name.to_string(), limit_json(limit, config.zone.as_ref())))
        .collect();
    let mut level = Map::new();
    level.insert("limits".into(), Value::Object(limits));
    if let Some(disabled) = config.disabled {
        let value = match disabled {
            Switch::Disabled => json!(true),
            Switch::Enabled => json!(false),
            Switch::Bypass => json!("bypass"),
        };
        level.insert("disabled".into(), value);
    }
    if let Some(cascade) = config.cascade {
        level.insert("cascade".into(), json!(cascade));
    }
    if let Some(on_unavailable) = config.on_unavailable {
        level.insert("on_unavailable".into(), json!(on_unavailable.as_str()));
    }
    Value::Object(level)
}

fn limit_json(limit: &Limit, zone: Option<&Zone>) -> Value {
    let tz = zone.map_or(Zone::DEFAULT, Zone::as_str);
    let mut json = Map::new();
    json.insert("capacity".into(), json!(limit.capacity));
    json.insert("refill_amount".into(), json!(limit.refill_amount()));
    json.insert("refill_period".into(), json!(limit.refill_period));
    match &limit.recovery {
        Recovery::Drip { .. } => {}
        Recovery::Window(after) => {
            json.insert("reset_after_seconds".into(), json!(after));
        }
        Recovery::Calendar(resets) => {
            let resets = resets
                .iter()
                .map(|cron| json!({ "cron": cron.to_string(), "tz": tz }));
            json.insert("reset_schedule".into(), resets.collect());
        }
    }
    if !limit.schedule.is_empty() {
        let windows = limit.schedule.iter().map(|entry| {
            let mut window = Map::new();
            window.insert("cron".into(), json!(entry.cron.to_string()));
            window.insert("tz".into(), json!(tz));
            modifier_json(&entry.modifier, &mut window);
            Value::Object(window)
        });
        json.insert("schedule".into(), windows.collect());
    }
    if limit.soft {
        json.insert("soft".into(), json!(true));
    }
    Value::Object(json)
}

fn modifier_json(modifier: &Modifier, window: &mut Map<String, Value>) {
    match modifier {
        Modifier::Scale(scale) => {
            window.insert("scale".into(), json!(scale.factor()));
        }
        Modifier::Absolute {
            capacity,
            refill_amount,
            refill_period,
        } => {
            let values = [
                ("capacity", capacity.map(|tokens| tokens.0)),
                ("refill_amount", refill_amount.map(|tokens| tokens.0)),
                (
                    "refill_period_seconds",
                    refill_period.map(|period| period.0),
                ),
            ];
            for (key, value) in values {
                if let Some(value) = value {
                    window.insert(key.into(), json!(value));
                }
            }
        }
    }
}
