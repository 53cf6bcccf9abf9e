//! One JSON form for what a manifest means, however it was written.
//!
//! The shape is the one the Python provisioner hashes and its command line sends: snake case,
//! defaults written out, what was not declared left out. Keys are sorted, so that the same meaning
//! always has the same bytes.

use crate::model::{Level, LevelConfig, NamespaceName};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The canonical JSON of a manifest.
pub(super) fn canonical(namespace: &NamespaceName, levels: &BTreeMap<Level, LevelConfig>) -> Value {
    let mut root = Map::new();
    root.insert("namespace".into(), json!(namespace.as_str()));
    let mut resources = Map::new();
    let mut entities: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for (level, config) in levels {
        let value = config.to_json();
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
