//! What the events of a story stand for, spelled out: placeholders, and parts too long or too deep to
//! be written down.
//!
//! - `{ns}`, `{last}`: the id of tenant-alpha, and the id that the last answer gave.
//! - `{"$repeat": [2000, "user-{i}"], "$value": v}`: an object of 2,000 fields.
//! - `{"$times": [256, "x"]}`: a text, so many times; `{"$deep": 200}`: lists within lists.

use super::rig;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::PathBuf;

/// Every story, by name.
pub fn all() -> Vec<(String, Value)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/cfn");
    let mut stories: Vec<(String, Value)> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a story");
            let story =
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
            let name = path.file_stem().expect("a name").to_string_lossy();
            (name.into_owned(), story)
        })
        .collect();
    stories.sort_by(|(one, _), (two, _)| one.cmp(two));
    stories
}

/// A value with its placeholders filled in and its long parts written out.
pub fn fill(value: &Value, fills: &[(&str, &str)]) -> Value {
    match value {
        Value::String(text) => {
            let filled = fills
                .iter()
                .fold(text.clone(), |text, (from, to)| text.replace(from, to));
            Value::String(filled)
        }
        Value::Array(items) => items.iter().map(|item| fill(item, fills)).collect(),
        Value::Object(fields) => written_out(fields, fills).unwrap_or_else(|| {
            let filled = fields.iter().map(|(k, v)| (k.clone(), fill(v, fills)));
            Value::Object(filled.collect())
        }),
        other => other.clone(),
    }
}

fn written_out(fields: &Map<String, Value>, fills: &[(&str, &str)]) -> Option<Value> {
    let (key, part) = fields.iter().next()?;
    let number = |value: &Value| value.as_u64().expect("a number");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    match key.as_str() {
        "$repeat" => {
            let value = fill(&fields["$value"], fills);
            let name = text(&part[1]);
            let field = |index| (name.replace("{i}", &format!("{index}")), value.clone());
            Some(Value::Object((0..number(&part[0])).map(field).collect()))
        }
        "$times" => {
            let times = usize::try_from(number(&part[0])).expect("a number");
            Some(Value::String(text(&part[1]).repeat(times)))
        }
        "$deep" => Some((0..number(part)).fold(json!("x"), |inner, _| json!([inner]))),
        _ => None,
    }
}

/// The event of a step, whose resource has the id `last` by then.
pub fn event(step: &Value, url: &str, last: &str) -> Value {
    let kind = step["type"].as_str().unwrap_or("Create");
    let mut event = rig::event(url, kind, step["properties"].clone());
    if matches!(kind, "Update" | "Delete") {
        event["PhysicalResourceId"] = json!(last);
        event["OldResourceProperties"] = step["old"].clone();
    }
    let nothing = Map::new();
    let patch = step["patch"].as_object().unwrap_or(&nothing);
    for (key, value) in patch {
        match (value, event.as_object_mut()) {
            (Value::Null, Some(fields)) => drop(fields.shift_remove(key)),
            (value, Some(fields)) => drop(fields.insert(key.clone(), value.clone())),
            (_, None) => {}
        }
    }
    event
}
