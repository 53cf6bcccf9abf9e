//! Stories of events: what is sent, what must be answered, and what the table must then hold.
//!
//! A story is a file in tests/data/cfn: steps, each with an oracle. A step without `levels` must leave
//! every stored byte as it was. `{ns}`, `{id}` and `{last}` stand for the namespace id of
//! tenant-alpha, the id that the story's resource has, and the id of the last answer.

use super::rig::Rig;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::PathBuf;

/// Replaces placeholders in every text.
fn fill(value: &Value, fills: &[(&str, &str)]) -> Value {
    match value {
        Value::String(text) => {
            let filled = fills
                .iter()
                .fold(text.clone(), |text, (from, to)| text.replace(from, to));
            Value::String(filled)
        }
        Value::Array(items) => items.iter().map(|item| fill(item, fills)).collect(),
        Value::Object(fields) => {
            let filled = fields.iter().map(|(k, v)| (k.clone(), fill(v, fills)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}

struct Story<'a> {
    name: &'a str,
    rig: Rig,
    last: String,
}

impl Story<'_> {
    async fn step(&mut self, number: usize, step: &Value) {
        let at = format!("{} step {number}", self.name);
        let ns = self.rig.world.ns.to_string();
        let fills = [("{ns}", ns.as_str()), ("{last}", self.last.as_str())];
        let step = fill(step, &fills);
        let event = self.event(&step);
        let before = self.rig.world.dump().await;
        let times = step["times"].as_u64().unwrap_or(1);
        for time in 0..times {
            let body = self.rig.answered(event.clone()).await;
            let again = time > 0;
            self.check(&at, &step["expect"], &event, &body, again);
            self.last = body["PhysicalResourceId"]
                .as_str()
                .expect("an id")
                .to_owned();
        }
        match step["expect"].get("levels") {
            Some(levels) => {
                let found = json!(self.rig.levels().await);
                assert_eq!(&found, levels, "{at}: levels");
            }
            None => assert_eq!(
                self.rig.world.dump().await,
                before,
                "{at}: the table is untouched"
            ),
        }
    }

    fn event(&self, step: &Value) -> Value {
        let kind = step["type"].as_str().unwrap_or("Create");
        let mut event = self.rig.event(kind, step["properties"].clone());
        if matches!(kind, "Update" | "Delete") {
            event["PhysicalResourceId"] = json!(self.last);
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

    fn check(&self, at: &str, expect: &Value, event: &Value, body: &Value, again: bool) {
        assert_eq!(body["Status"], expect["status"], "{at}: {body}");
        let id = body["PhysicalResourceId"].as_str().expect("an id");
        match expect["id"].as_str() {
            Some("echo") => assert_eq!(
                body["PhysicalResourceId"], event["PhysicalResourceId"],
                "{at}"
            ),
            Some("never") => assert!(id.starts_with("never-created/"), "{at}: {id}"),
            Some(prefix) => {
                let digits = id
                    .strip_prefix(prefix)
                    .unwrap_or_else(|| panic!("{at}: {id}"));
                assert_eq!(digits.len(), 12, "{at}: {id}");
            }
            None => {}
        }
        let reason = body["Reason"].as_str().unwrap_or_default();
        for part in expect["reason"].as_array().into_iter().flatten() {
            let part = part.as_str().expect("a text");
            assert!(reason.contains(part), "{at}: {part:?} is not in: {reason}");
        }
        let data = if again {
            &expect["again"]
        } else {
            &expect["data"]
        };
        for (key, value) in data.as_object().into_iter().flatten() {
            assert_eq!(&body["Data"][key], value, "{at}: {key} of {body}");
        }
    }
}

async fn tell(name: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/cfn")
        .join(format!("{name}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let story: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let rig = Rig::new().await;
    let mut told = Story {
        name,
        rig,
        last: String::new(),
    };
    for (number, step) in story["steps"].as_array().expect("steps").iter().enumerate() {
        told.step(number + 1, step).await;
    }
}

macro_rules! stories {
    ($($name:ident)*) => {
        $(#[tokio::test]
        async fn $name() {
            tell(&stringify!($name).replace('_', "-")).await;
        })*

        #[test]
        fn every_story_is_told() {
            let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/cfn");
            let mut found: Vec<String> = fs::read_dir(folder)
                .expect("a folder")
                .map(|entry| entry.expect("an entry").path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
                .map(|path| path.file_stem().expect("a name").to_string_lossy().replace('-', "_"))
                .collect();
            found.sort();
            let mut told = vec![$(stringify!($name)),*];
            told.sort_unstable();
            assert_eq!(found, told);
        }
    };
}

stories! {
    adopt
    bad_manifest
    create_strings
    delete_foreign
    failed_create_and_rollback
    guards
    legacy_id
    malformed
    manifest_path
    manifest_yaml
    namespace_change
    namespace_unknown
    out_of_band
    renamed_logical_id
    repeated
    rollback
    switches
    table_change
}
