//! Stories of events: what is sent, what must be answered, and what the table must then hold.
//!
//! A story is a file in tests/data/cfn: steps, each with an oracle. A step without `levels` must leave
//! every stored byte as it was, and every step is answered by one well-formed PUT unless it says
//! otherwise (`puts`).
//!
//! - Of a story: `tables`, which exist besides the one; `buckets`, as `entity/resource`;
//!   `quiet`, when logs of the finest level would be too many.
//! - Before a step: `by_hand`, switches set past the function; `gone`, the sort keys that someone
//!   deleted, or `table`; `sink`, how the answer's receiver behaves.
//! - Expected: `status`, `id` (`echo`, `never`, or what precedes its digits), parts of the `reason`,
//!   some of `data` (`again`: of a repeated event's), `bytes` of the body, `event_bytes` at least of the
//!   event, `levels` or how many, `elsewhere` (levels of other tables), `stamps`, and `told`: `error`
//!   when no answer gets through.

use super::rig::{Rig, TABLE, levels, well_formed};
use super::role::Needed;
use super::sink::Act;
use super::story::{all, event, fill};
use crate::world::{Dump, World};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use std::time::Duration;
use zae_limits::store::{Place, Store};

struct Story<'a> {
    name: &'a str,
    rig: Rig,
    last: String,
    has_table: bool,
}

impl Story<'_> {
    async fn set_up(&self, story: &Value) {
        for table in texts(&story["tables"]) {
            let now = self.rig.world.clock.now();
            let world = self.elsewhere(table);
            world.store.create(now).await.expect("a table");
        }
        for bucket in texts(&story["buckets"]) {
            let (entity, resource) = bucket.split_once('/').expect("a bucket");
            self.rig.world.bucket(entity, resource, 0, &[]).await;
        }
    }

    fn elsewhere(&self, table: &str) -> World {
        let place = Place {
            table: table.to_owned(),
            host: "memory".to_owned(),
        };
        let world = &self.rig.world;
        World {
            store: Store::new(world.client.clone(), place),
            client: world.client.clone(),
            clock: world.clock.clone(),
            ns: world.ns.clone(),
        }
    }

    async fn dump(&self) -> Dump {
        match self.has_table {
            true => self.rig.world.dump().await,
            false => Dump::new(),
        }
    }

    async fn step(&mut self, number: usize, step: &Value) {
        let at = format!("{} step {number}", self.name);
        let ns = self.rig.world.ns.to_string();
        let step = fill(
            step,
            &[("{ns}", ns.as_str()), ("{last}", self.last.as_str())],
        );
        self.meddle(&step).await;
        let event = event(&step, &self.rig.sink.url(), &self.last);
        let before = self.dump().await;
        for time in 0..step["times"].as_u64().unwrap_or(1) {
            self.rig.sink.acts(&acts(&step["sink"]));
            let body = self.answered(&at, &event, &step["expect"]).await;
            check(&at, &step["expect"], &event, &body, time > 0);
            self.last = body["PhysicalResourceId"]
                .as_str()
                .expect("an id")
                .to_owned();
        }
        self.look(&at, &step["expect"], &before).await;
    }

    /// What others do before an event comes.
    async fn meddle(&mut self, step: &Value) {
        for (level, switch) in step["by_hand"].as_object().into_iter().flatten() {
            let mut item = self.rig.world.item(level, "#CONFIG").await;
            let value = switch.as_bool().expect("a switch");
            item.insert("disabled".to_owned(), AttributeValue::Bool(value));
            self.rig.world.put(item).await;
        }
        match step["gone"].as_str() {
            Some("table") => {
                let request = self.rig.world.client.delete_table().table_name(TABLE);
                request.send().await.expect("a deleted table");
                self.has_table = false;
            }
            Some(gone) => {
                let dump = self.rig.world.dump().await;
                let (keys, items): (Vec<_>, Vec<_>) = dump
                    .iter()
                    .filter(|((_, sk), _)| sk.starts_with(gone))
                    .unzip();
                assert!(!keys.is_empty(), "{gone} was there");
                for item in items {
                    self.rig.world.delete(item).await;
                }
            }
            None => {}
        }
    }

    /// Sends an event, and gives what CloudFormation is told; without a PUT, what it would be.
    async fn answered(&self, at: &str, event: &Value, expect: &Value) -> Value {
        let length = event.to_string().len() as u64;
        assert!(
            expect["event_bytes"].as_u64().unwrap_or(0) <= length,
            "{at}: {length} bytes sent"
        );
        let told = self.rig.send(event.clone()).await;
        let puts = self.rig.sink.take();
        self.rig.assert_nothing_leaked();
        let number = expect["puts"].as_u64().unwrap_or(1);
        assert_eq!(puts.len() as u64, number, "{at}: {puts:#?}");
        if let [low, high] = numbers(&expect["bytes"])[..] {
            let length = puts[0].body.len() as u64;
            assert!(low <= length && length <= high, "{at}: {length} bytes");
        }
        let Some(put) = puts.last() else {
            return told.expect("the runtime is told what nobody else is");
        };
        let body = well_formed(event, put);
        if expect["told"] == "error" {
            told.expect_err("the runtime is asked to deliver the event again");
        } else {
            let told = told.unwrap_or_else(|error| panic!("{at}: {error}"));
            assert_eq!(
                told, body,
                "{at}: the runtime is told what CloudFormation is"
            );
        }
        body
    }

    async fn look(&self, at: &str, expect: &Value, before: &Dump) {
        let after = self.dump().await;
        match expect.get("levels") {
            Some(Value::Number(count)) => {
                assert_eq!(Some(levels(&after).len() as u64), count.as_u64(), "{at}");
            }
            Some(expected) => assert_eq!(&json!(levels(&after)), expected, "{at}: levels"),
            None => assert_eq!(&after, before, "{at}: the table is untouched"),
        }
        for (table, expected) in expect["elsewhere"].as_object().into_iter().flatten() {
            let found = levels(&self.elsewhere(table).dump().await);
            assert_eq!(&json!(found), expected, "{at}: levels of {table}");
        }
        for (bucket, expected) in expect["stamps"].as_object().into_iter().flatten() {
            let (entity, resource) = bucket.split_once('/').expect("a bucket");
            let found = self.rig.world.stamp(entity, resource).await;
            assert_eq!(&json!(found), expected, "{at}: the stamp of {bucket}");
        }
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    let texts = list.as_array().into_iter().flatten();
    texts.map(|text| text.as_str().expect("a text"))
}

fn numbers(list: &Value) -> Vec<u64> {
    let numbers = list.as_array().into_iter().flatten();
    numbers
        .map(|number| number.as_u64().expect("a number"))
        .collect()
}

fn acts(list: &Value) -> Vec<Act> {
    let act = |act: &Value| match act.as_u64() {
        Some(status) => Act::Status(u16::try_from(status).expect("a status")),
        None if act == "close" => Act::Close,
        None if act == "slowly" => Act::Slowly(Duration::from_millis(200)),
        None => panic!("{act} is nothing that a sink does"),
    };
    list.as_array().into_iter().flatten().map(act).collect()
}

fn check(at: &str, expect: &Value, event: &Value, body: &Value, again: bool) {
    assert_eq!(body["Status"], expect["status"], "{at}: {body}");
    let id = body["PhysicalResourceId"].as_str().expect("an id");
    match expect["id"].as_str() {
        Some("echo") => assert_eq!(id, event["PhysicalResourceId"], "{at}"),
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
    for part in texts(&expect["reason"]) {
        assert!(reason.contains(part), "{at}: {part:?} is not in: {reason}");
    }
    let data = &expect[if again { "again" } else { "data" }];
    for (key, value) in data.as_object().into_iter().flatten() {
        assert_eq!(&body["Data"][key], value, "{at}: {key} of {body}");
    }
}

async fn tell(name: &str) {
    let (_, story) = all()
        .into_iter()
        .find(|(told, _)| told == name)
        .unwrap_or_else(|| panic!("no story {name}"));
    let needed = Needed::default();
    let rig = match story["quiet"].as_bool() {
        Some(true) => needed.rig().await.quietly(),
        _ => needed.rig().await,
    };
    tell_over(name, &story, rig).await;
    needed.assert_allowed();
}

/// Tells a story to a function that was set up elsewhere.
pub async fn tell_over(name: &str, story: &Value, rig: Rig) {
    let mut told = Story {
        name,
        rig,
        last: String::new(),
        has_table: true,
    };
    told.set_up(story).await;
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
            let found: Vec<String> = all().into_iter().map(|(name, _)| name.replace('-', "_")).collect();
            let mut told = vec![$(stringify!($name)),*];
            told.sort_unstable();
            assert_eq!(found, told);
        }
    };
}

stories! {
    adopt
    bad_manifest
    body_at_the_limit
    create_strings
    delete_foreign
    failed_create_and_rollback
    guards
    legacy_id
    malformed
    manifest_path
    manifest_yaml
    many_entities
    namespace_change
    namespace_gone
    namespace_unknown
    no_response_url
    out_of_band
    record_gone
    renamed_logical_id
    renamed_rolled_back
    repeated
    rollback
    sink
    switches
    table_change
    table_gone
    table_replaced
    unreadable
}
