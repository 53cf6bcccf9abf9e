//! What holds for every input: nothing panics, and the three spellings of a manifest agree.

use proptest::collection::btree_map;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use zae_limits::manifest::{Source, parse_json, parse_properties, parse_yaml, to_properties};

const EVERYTHING: &str = include_str!("../../data/manifests/everything.limits.yaml");

/// Parses, and shows whatever came of it.
fn exercise(bytes: &[u8]) {
    match parse_yaml("t.yaml", bytes) {
        Ok(manifest) => {
            let again = parse_json(&manifest.canonical_json());
            assert_eq!(again.as_ref(), Ok(&manifest));
        }
        Err(problems) => {
            for problem in &problems {
                assert!(
                    problem.line.is_some() && problem.column.is_some(),
                    "{problem}"
                );
                assert!(!problem.to_string().contains(char::is_control), "{problem}");
            }
        }
    }
}

/// One change to a text: a piece taken out, and another put in.
fn edit() -> impl Strategy<Value = (prop::sample::Index, usize, String)> {
    let pieces = prop::sample::select(vec![
        "",
        "\n",
        " ",
        "  ",
        ":",
        "- ",
        "{",
        "}",
        "[",
        "]",
        "&a ",
        "*a",
        "<<: *standard\n",
        "~",
        "'",
        "\"",
        "#",
        "|",
        ">",
        "!x ",
        "? ",
        "---\n",
        "off",
        "true",
        "1e9",
        "-1",
        "0",
        "disabled:",
        "limits:",
        "\u{202e}",
        "\u{7f}",
        "é",
        "%",
        "@",
        "\t",
    ]);
    (
        any::<prop::sample::Index>(),
        0_usize..12,
        pieces.prop_map(str::to_owned),
    )
}

fn name(first: &'static str) -> impl Strategy<Value = String> {
    proptest::string::string_regex(&format!("[{first}][A-Za-z0-9_.-]{{0,12}}")).unwrap()
}

fn window() -> impl Strategy<Value = Value> {
    prop_oneof![
        (1_u64..2_000_000).prop_map(|millis| json!({ "cron": "* 9-17 * * MON-FRI", "scale": millis as f64 / 1000.0 })),
        (1_u64..1000, 1_u64..1000).prop_map(|(capacity, period)| {
            json!({ "cron": "0 0 1 JAN *", "tz": "UTC", "capacity": capacity, "refill_period_seconds": period })
        }),
    ]
}

fn limit() -> impl Strategy<Value = Value> {
    let drips = (
        1_u64..=1_000_000_000_000_000,
        prop::option::of(1_u64..1000),
        prop::option::of(1_u64..1_000_000_000),
    )
        .prop_map(|(capacity, amount, period)| {
            let mut limit = json!({ "capacity": capacity });
            amount
                .into_iter()
                .for_each(|amount| limit["refill_amount"] = amount.into());
            period
                .into_iter()
                .for_each(|period| limit["refill_period"] = period.into());
            limit
        });
    let kinds = prop_oneof![
        drips,
        (1_u64..1000, 1_u64..1000).prop_map(
            |(capacity, after)| json!({ "capacity": capacity, "reset_after_seconds": after })
        ),
        (1_u64..1000).prop_map(
            |capacity| json!({ "capacity": capacity, "reset_schedule": [{ "cron": "0 0 * * 7" }] })
        ),
        (1_u64..1000, 1_u64..1000)
            .prop_map(|(capacity, burst)| json!({ "capacity": capacity, "burst": burst })),
    ];
    (
        kinds,
        prop::option::of(any::<bool>()),
        prop::collection::vec(window(), 0..3),
    )
        .prop_map(|(mut limit, soft, windows)| {
            soft.into_iter()
                .for_each(|soft| limit["soft"] = soft.into());
            if !windows.is_empty() {
                limit["schedule"] = windows.into();
            }
            limit
        })
}

fn limits() -> impl Strategy<Value = Value> {
    btree_map(name("a-v"), limit(), 0..3).prop_map(|limits| Value::Object(Map::from_iter(limits)))
}

fn level() -> impl Strategy<Value = Value> {
    let switch = prop::sample::select(vec![
        None,
        Some(json!(true)),
        Some(json!(false)),
        Some(json!("bypass")),
    ]);
    (switch, prop::option::of(any::<bool>()), limits()).prop_map(|(switch, cascade, limits)| {
        let mut level = json!({ "limits": limits });
        switch
            .into_iter()
            .for_each(|switch| level["disabled"] = switch);
        cascade
            .into_iter()
            .for_each(|cascade| level["cascade"] = cascade.into());
        level
    })
}

/// A valid manifest as JSON.
fn manifest() -> impl Strategy<Value = Value> {
    let resources = || btree_map(name("A-Za-z"), level(), 0..4);
    let entities = btree_map(name("A-Za-z0-9"), resources(), 0..4);
    (limits(), resources(), entities).prop_map(|(limits, resources, entities)| {
        let entities = entities
            .into_iter()
            .map(|(id, resources)| (id, json!({ "resources": resources })));
        json!({
            "namespace": "tenant-alpha",
            "system": { "limits": limits, "on_unavailable": "allow" },
            "resources": resources,
            "entities": Map::from_iter(entities),
        })
    })
}

/// A manifest as CloudFormation would deliver it: pascal case, and a string for every scalar.
fn delivered(json: &Value) -> Value {
    let pascal = |key: &str| -> String {
        key.split('_')
            .map(|word| word[..1].to_uppercase() + &word[1..])
            .collect()
    };
    let scalar = |value: &Value| match value {
        Value::String(text) => json!(text),
        other => json!(other.to_string()),
    };
    fn fields(json: &Value, each: impl Fn(&str, &Value) -> (String, Value)) -> Value {
        let entries = json.as_object().unwrap().iter();
        Value::Object(entries.map(|(key, value)| each(key, value)).collect())
    }
    let entry = |json: &Value| fields(json, |key, value| (pascal(key), scalar(value)));
    let limit = |json: &Value| {
        fields(json, |key, value| {
            let value = match value {
                Value::Array(entries) => entries.iter().map(entry).collect(),
                other => scalar(other),
            };
            (pascal(key), value)
        })
    };
    let level = |json: &Value| {
        fields(json, |key, value| {
            let value = match value {
                Value::Object(_) => fields(value, |name, value| (name.to_owned(), limit(value))),
                other => scalar(other),
            };
            (pascal(key), value)
        })
    };
    let levels = |json: &Value| fields(json, |name, value| (name.to_owned(), level(value)));
    json!({
        "Namespace": json["namespace"],
        "System": level(&json["system"]),
        "Resources": levels(&json["resources"]),
        "Entities": fields(&json["entities"], |id, value| (id.to_owned(), json!({ "Resources": levels(&value["resources"]) }))),
    })
}

/// Whether every scalar is a string, as CloudFormation delivers them.
fn holds_only_texts(json: &Value) -> bool {
    match json {
        Value::Object(fields) => fields.values().all(holds_only_texts),
        Value::Array(entries) => entries.iter().all(holds_only_texts),
        scalar => scalar.is_string(),
    }
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        exercise(&bytes);
    }

    #[test]
    fn any_text_is_answered(text in "\\PC{0,300}") {
        exercise(text.as_bytes());
    }

    #[test]
    fn any_edit_of_a_manifest_is_answered(edits in prop::collection::vec(edit(), 1..6)) {
        let mut text: Vec<char> = EVERYTHING.chars().collect();
        for (at, length, piece) in edits {
            let at = at.index(text.len() + 1);
            let end = text.len().min(at + length);
            text.splice(at..end, piece.chars());
        }
        exercise(String::from_iter(text).as_bytes());
    }

    #[test]
    fn any_json_is_answered(json in json_value()) {
        let _ = parse_json(&json).map_err(|problems| problems.to_string());
        let _ = parse_properties(&json).map_err(|problems| problems.to_string());
    }

    #[test]
    fn three_spellings_of_one_manifest(json in manifest()) {
        let from_json = parse_json(&json).unwrap();
        // JSON is YAML.
        let from_yaml = parse_yaml("t.yaml", json.to_string().as_bytes()).unwrap();
        prop_assert_eq!(&from_yaml, &from_json);
        prop_assert_eq!(from_yaml.sha256(), from_json.sha256());
        let properties = parse_properties(&delivered(&json)).unwrap();
        prop_assert_eq!(properties.source, Source::Structured(from_json.levels().clone()));
        let canonical = from_json.canonical_json();
        let again = parse_json(&canonical).unwrap();
        prop_assert_eq!(&again, &from_json);
        prop_assert_eq!(again.canonical_json().to_string(), canonical.to_string());
    }

    #[test]
    fn properties_of_a_manifest_mean_the_manifest(json in manifest()) {
        let manifest = parse_json(&json).unwrap();
        let properties = to_properties(&manifest).unwrap();
        prop_assert!(holds_only_texts(&properties), "{}", properties);
        let read = parse_properties(&properties).unwrap();
        prop_assert_eq!(read.namespace.as_ref(), Some(manifest.namespace()));
        prop_assert_eq!(read.source, Source::Structured(manifest.levels().clone()));
    }
}

/// JSON whose keys are those of a manifest, and whose values are anything.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "namespace",
        "system",
        "resources",
        "entities",
        "limits",
        "disabled",
        "cascade",
        "capacity",
        "schedule",
        "cron",
        "Namespace",
        "System",
        "Resources",
        "Entities",
        "Limits",
        "Disabled",
        "Capacity",
        "Schedule",
        "gpt-4",
        "user-1",
        "_default_",
    ]);
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(keys.clone(), inner, 0..6).prop_map(|map| {
                Value::Object(
                    map.into_iter()
                        .map(|(key, value)| (key.to_owned(), value))
                        .collect(),
                )
            }),
        ]
    })
}
