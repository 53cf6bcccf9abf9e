//! What differs between a level before and after, field by field, for people to read.

use crate::model::LevelConfig;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// One field that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The field within its level, such as `disabled` or `limits.rpm.capacity`.
    pub path: String,
    /// The value before; `None` when the field was absent.
    pub before: Option<String>,
    /// The value after; `None` when the field goes.
    pub after: Option<String>,
}

/// The fields that differ, sorted by path. An absent level is an empty one.
pub fn differences(before: Option<&LevelConfig>, after: Option<&LevelConfig>) -> Vec<Difference> {
    let (before, after) = (fields(before), fields(after));
    let paths: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    paths
        .into_iter()
        .filter(|path| before.get(*path) != after.get(*path))
        .map(|path| Difference {
            path: path.clone(),
            before: before.get(path).cloned(),
            after: after.get(path).cloned(),
        })
        .collect()
}

fn fields(config: Option<&LevelConfig>) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    if let Some(config) = config {
        flatten("", &config.to_json(), &mut fields);
    }
    fields
}

fn flatten(path: &str, value: &Value, fields: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                flatten(&path, value, fields);
            }
        }
        Value::Null => {}
        Value::String(text) => {
            fields.insert(path.to_owned(), text.clone());
        }
        other => {
            fields.insert(path.to_owned(), other.to_string());
        }
    }
}
