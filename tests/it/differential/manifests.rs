//! Whole manifests: the items that levels are stored as, what clients read back from ours, and what
//! follows for buckets.
//!
//! One thing is ours alone: the keys by which an entity's level stands in the index of entity configs.
//! Clients write them and the Python provisioner does not (docs/adr/0010-where-the-reference-is-left.md).

use super::Part;
use super::buckets::{Case, Changes, NOW, assert_expiry, bare, compare, json_of};
use super::source::Source;
use rand::RngExt;
use rand::seq::IndexedRandom;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use zae_limits::manifest::{Manifest, parse_json};
use zae_limits::model::{EpochSeconds, Level, LevelConfig, LimitName, NamespaceId, bucket_ttl};
use zae_limits::table::params::Expiry;
use zae_limits::table::{Item, config, stamp};

/// Names whose parts look like fields, prefixes and separators of the format.
const LIMITS: [&str; 7] = ["rpm", "tpm", "a_b", "x.y-z", "old_cp", "l_rpm", "w_sched"];
const RESOURCES: [&str; 4] = ["gpt-4", "a/b:c.d", "x_y", "CONFIG"];
const ENTITIES: [&str; 3] = ["user-1", "key@example.org", "42:7"];
const ZONES: [&str; 4] = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Calcutta"];

fn ns() -> NamespaceId {
    NamespaceId::parse("a7x3kq").expect("an id")
}

fn some<'a>(source: &mut Source, from: &[&'a str]) -> Vec<&'a str> {
    let mut chosen = from.to_vec();
    chosen.retain(|_| source.0.random_bool(0.5));
    chosen
}

/// A limit as a manifest declares it, some of what has a default left out.
fn limit(source: &mut Source, name: &str, tz: &str) -> Value {
    let name = LimitName::parse(name).expect("a name");
    let (said, held) = loop {
        let (said, held) = source.limit(&name);
        if held.check().is_ok() {
            break (said, held);
        }
    };
    let with_zone = |mut entry: Value| {
        if let Some(entry) = entry.as_object_mut() {
            entry.retain(|_, value| !value.is_null());
            entry.insert("tz".to_owned(), json!(tz));
        }
        entry
    };
    let entries = |key: &str| said[key].as_array().cloned().unwrap_or_default();
    let windows: Vec<_> = entries("schedule").into_iter().map(with_zone).collect();
    let resets = entries("reset_schedule").into_iter();
    let resets: Vec<_> = resets
        .map(|cron| with_zone(json!({ "cron": cron })))
        .collect();
    let mut limit = Map::from_iter([("capacity".to_owned(), json!(held.capacity))]);
    let mut put = |key: &str, value: Value| limit.insert(key.to_owned(), value);
    if source.0.random_bool(0.7) {
        put("refill_amount", json!(held.refill_amount()));
    }
    if source.0.random_bool(0.7) {
        put("refill_period", json!(held.refill_period));
    }
    if source.0.random_bool(0.2) {
        put(
            "burst",
            json!(source.0.random_range(1..=1_000_000_000_000_000_u64)),
        );
    }
    if !windows.is_empty() {
        put("schedule", json!(windows));
    }
    if !resets.is_empty() {
        put("reset_schedule", json!(resets));
    }
    if !said["reset_after_seconds"].is_null() {
        put("reset_after_seconds", said["reset_after_seconds"].clone());
    }
    if source.0.random_bool(0.4) {
        put("soft", json!(source.0.random_bool(0.5)));
    }
    Value::Object(limit)
}

fn limits(source: &mut Source) -> Value {
    // One zone a level; UTC is what an entry without one is counted in.
    let tz = ZONES.choose(&mut source.0).copied().unwrap_or("UTC");
    let names = some(source, &LIMITS);
    let limits = names
        .into_iter()
        .map(|name| (name.to_owned(), limit(source, name, tz)));
    Value::Object(limits.collect())
}

fn level(source: &mut Source) -> Value {
    let mut level = Map::new();
    if source.0.random_bool(0.8) {
        level.insert("limits".to_owned(), limits(source));
    }
    let switches = [json!(true), json!(false), json!("bypass")];
    if let Some(switch) = switches.get(source.0.random_range(0..6)) {
        level.insert("disabled".to_owned(), switch.clone());
    }
    if source.0.random_bool(0.4) {
        level.insert("cascade".to_owned(), json!(source.0.random_bool(0.5)));
    }
    Value::Object(level)
}

fn levels(source: &mut Source, names: &[&str]) -> Value {
    let names = some(source, names);
    let levels = names
        .into_iter()
        .map(|name| (name.to_owned(), level(source)));
    Value::Object(levels.collect())
}

fn manifest(source: &mut Source) -> Value {
    let mut manifest = Map::from_iter([("namespace".to_owned(), json!("tenant-alpha"))]);
    if source.0.random_bool(0.7) {
        let mut system = json!({ "limits": limits(source) });
        if source.0.random_bool(0.5) {
            let word = ["allow", "block"].choose(&mut source.0);
            system["on_unavailable"] = json!(word);
        }
        manifest.insert("system".to_owned(), system);
    }
    manifest.insert("resources".to_owned(), levels(source, &RESOURCES));
    let scopes: Vec<_> = RESOURCES.into_iter().chain(["_default_"]).collect();
    let entities = some(source, &ENTITIES).into_iter();
    let entities = entities.map(|id| {
        let resources = levels(source, &scopes);
        (id.to_owned(), json!({ "resources": resources }))
    });
    let entities = Value::Object(entities.collect());
    manifest.insert("entities".to_owned(), entities);
    Value::Object(manifest)
}

fn parsed(json: &Value) -> Manifest {
    parse_json(json).unwrap_or_else(|problems| panic!("{json}\n{problems}"))
}

fn wire(item: &Item) -> BTreeMap<String, Value> {
    let attributes = item.iter();
    attributes
        .map(|(name, value)| (name.clone(), json_of(value)))
        .collect()
}

/// Items by their keys.
type Items = BTreeMap<(String, String), BTreeMap<String, Value>>;

fn by_key(items: impl IntoIterator<Item = BTreeMap<String, Value>>) -> Items {
    let key = |item: &BTreeMap<String, Value>, name: &str| item[name]["S"].to_string();
    let items = items.into_iter();
    items
        .map(|item| ((key(&item, "PK"), key(&item, "SK")), item))
        .collect()
}

pub(super) fn levels_are_stored_the_same() -> Part {
    let mut source = Source::new(9);
    let manifests: Vec<_> = (0..300).map(|_| manifest(&mut source)).collect();
    let ask = |manifest| json!({"manifest": manifest, "namespace_id": ns()});
    let questions = manifests
        .iter()
        .map(|json| ("config_items", ask(json)))
        .collect();
    let check = move |answers: &[Value]| {
        let mut compared = 0;
        for (json, answer) in manifests.iter().zip(answers) {
            let theirs: Result<Vec<_>, _> = serde_json::from_value(answer["ok"].clone());
            let theirs = by_key(theirs.unwrap_or_else(|_| panic!("{json}\n{answer}")));
            let manifest = parsed(json);
            let ours = manifest.levels().iter().map(|(level, config)| {
                let mut item = wire(&config::encode(&ns(), level, config));
                let index = ["GSI3PK", "GSI3SK"].map(|key| item.remove(key));
                assert_eq!(
                    index.iter().all(Option::is_some),
                    matches!(level, Level::Entity(..))
                );
                item
            });
            assert_eq!(by_key(ours), theirs, "{json}");
            compared += theirs.len();
        }
        assert!(compared > 1500, "{compared} levels were compared");
    };
    Part {
        questions,
        check: Box::new(check),
    }
}

/// A level of ours: what clients must read, and what becomes of its buckets.
struct Stored {
    level: Level,
    config: LevelConfig,
    life: Option<u64>,
    bucket: Case,
}

fn stored(source: &mut Source, level: &Level, config: &LevelConfig) -> (Value, Stored) {
    let life = bucket_ttl(EpochSeconds(0), &config.limits).expect("every limit recovers");
    let expires = !matches!(level, Level::Entity(..));
    let expiry = match life {
        Some(life) if expires => Expiry::At(EpochSeconds(NOW.0 / 1000 + life.0)),
        _ => Expiry::Never,
    };
    let soft_until = stamp::deadline(NOW, source.0.random());
    let asked = json!({
        "item": wire(&config::encode(&ns(), level, config)),
        "ttl": if expires { 7 } else { 0 },
        "now_ms": NOW,
    });
    let stored = Stored {
        level: level.clone(),
        config: config.clone(),
        life: life.map(|life| life.0),
        bucket: Case::new(config, bare(), expiry, soft_until),
    };
    (asked, stored)
}

pub(super) fn stored_levels_are_read_back() -> Part {
    let mut source = Source::new(10);
    let (mut questions, mut levels) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        let manifest = parsed(&manifest(&mut source));
        for (level, config) in manifest.levels() {
            let (asked, stored) = stored(&mut source, level, config);
            questions.push(("decoded", asked));
            levels.push(stored);
        }
    }
    let check = move |answers: &[Value]| {
        let mut scheduled = 0;
        for (stored, answer) in levels.iter().zip(answers) {
            let (theirs, level) = (&answer["ok"], &stored.level);
            let declared = &stored.config.to_json()["limits"];
            assert_eq!(&theirs["limits"], declared, "{level}: {answer}");
            assert_eq!(theirs["provisioner_agrees"], true, "{level}");
            match (theirs["ttl"].as_u64(), stored.life) {
                (Some(theirs), Some(ours)) => assert_expiry(ours, theirs),
                (theirs, ours) => assert_eq!(theirs, ours, "{level}"),
            }
            if stored.life.is_some() {
                let theirs: Changes =
                    serde_json::from_value(theirs["bucket"].clone()).expect("changes");
                compare(&stored.bucket, theirs);
            }
            scheduled += usize::from(stored.config.zone.is_some());
        }
        assert!(scheduled > 200, "{scheduled} levels had schedules");
    };
    Part {
        questions,
        check: Box::new(check),
    }
}
