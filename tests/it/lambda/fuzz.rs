//! Random and mutated events: no panic, and always an answer when there is a URL to send it to.
//!
//! Generated from nothing, and sent through the whole function; `mutants` changes events that exist.
//! `LAMBDA_ANSWERED_CASES` sets how many; the default is small enough for every run.

use super::rig::{Rig, well_formed};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};
use zae_limits::lambda::Envelope;
use zae_limits::manifest::{parse_json, parse_properties};

/// Cases without a variable that says otherwise: pure ones, and ones through the whole function.
const CASES: (u32, u32) = (2000, 300);

fn cases(default: u32) -> u32 {
    let given = std::env::var("LAMBDA_ANSWERED_CASES").ok();
    given.map_or(default, |given| given.parse().expect("a number of cases"))
}

/// Words that events hold, and words that they do not.
fn word() -> impl Strategy<Value = String> {
    const KNOWN: [&str; 55] = [
        "Namespace",
        "NamespaceId",
        "TableName",
        "System",
        "Resources",
        "Entities",
        "Limits",
        "Disabled",
        "Cascade",
        "Capacity",
        "RefillAmount",
        "RefillPeriod",
        "Burst",
        "Schedule",
        "ResetSchedule",
        "Cron",
        "Tz",
        "Scale",
        "ResetAfterSeconds",
        "Soft",
        "OnUnavailable",
        "ManifestPath",
        "ManifestYaml",
        "ManifestSha256",
        "FullApply",
        "OutOfBand",
        "OnFanoutError",
        "MaxDelete",
        "AllowEmpty",
        "Adopt",
        "ServiceToken",
        "rpm",
        "gpt-4",
        "user-1",
        "_default_",
        "true",
        "false",
        "bypass",
        "keep",
        "revert",
        "fail",
        "report",
        "",
        "1",
        "75000",
        "-1",
        "1e3",
        "18446744073709551616",
        "* * * * *",
        "Europe/Berlin",
        "namespace: a\n",
        "../x",
        "tenant-alpha",
        "default",
        "block",
    ];
    prop_oneof![
        4 => proptest::sample::select(&KNOWN[..]).prop_map(str::to_owned),
        1 => "\\PC{0,12}",
        1 => proptest::collection::vec(any::<char>(), 0..40).prop_map(String::from_iter),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        6 => word().prop_map(Value::String),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            1 => proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            4 => proptest::collection::vec((word(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Properties that are mostly right, so that the fuzz gets past the first check.
fn properties() -> impl Strategy<Value = Value> {
    let level =
        (word(), any_json()).prop_map(|(key, value)| json!({"Disabled": "true", key: value}));
    let resources = proptest::collection::vec((word(), prop_oneof![level, any_json()]), 0..4);
    let rest = proptest::collection::vec((word(), any_json()), 0..2);
    (resources, rest).prop_map(|(resources, rest)| {
        let resources: Map<String, Value> = resources.into_iter().collect();
        let mut fields: Map<String, Value> = rest.into_iter().collect();
        fields.insert("Resources".to_owned(), Value::Object(resources));
        Value::Object(fields)
    })
}

/// What becomes of one field of a good event.
#[derive(Debug, Clone)]
enum Mutation {
    Keep,
    Drop,
    Put(Value),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        6 => Just(Mutation::Keep),
        1 => Just(Mutation::Drop),
        2 => any_json().prop_map(Mutation::Put),
    ]
}

const FIELDS: [&str; 6] = [
    "RequestType",
    "StackId",
    "RequestId",
    "LogicalResourceId",
    "PhysicalResourceId",
    "OldResourceProperties",
];

fn event() -> impl Strategy<Value = Map<String, Value>> {
    let kind = proptest::sample::select(&["Create", "Update", "Delete"][..]);
    let mutations = proptest::collection::vec(mutation(), FIELDS.len());
    (kind, prop_oneof![properties(), any_json()], mutations).prop_map(
        |(kind, properties, mutations)| {
            let mut event = Map::from_iter([
                ("RequestType".to_owned(), json!(kind)),
                ("StackId".to_owned(), json!(super::rig::STACK)),
                ("RequestId".to_owned(), json!("r-1")),
                ("LogicalResourceId".to_owned(), json!("Limits")),
                (
                    "PhysicalResourceId".to_owned(),
                    json!("rate-limits/ns/0123456789ab"),
                ),
                ("ResourceProperties".to_owned(), properties),
            ]);
            for (field, mutation) in FIELDS.iter().zip(mutations) {
                match mutation {
                    Mutation::Keep => {}
                    Mutation::Drop => drop(event.shift_remove(*field)),
                    Mutation::Put(value) => drop(event.insert((*field).to_owned(), value)),
                }
            }
            event
        },
    )
}

#[test]
fn no_event_and_no_property_panics() {
    let config = Config {
        cases: cases(CASES.0),
        failure_persistence: None,
        ..Config::default()
    };
    let strategy = (event(), any_json());
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&strategy, |(event, any)| {
        let _ = parse_properties(&any);
        let _ = parse_json(&any);
        let has_properties = event
            .get("ResourceProperties")
            .is_some_and(|p| !p.is_null());
        if let Ok(envelope) = Envelope::lift(Value::Object(event)) {
            prop_assert_eq!(envelope.properties.is_some(), has_properties);
            let _ = envelope
                .properties
                .map(|properties| parse_properties(&properties));
        }
        let _ = Envelope::lift(any);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[tokio::test]
async fn every_event_with_a_url_is_answered_once_and_well() {
    let rig = Rig::quiet().await;
    let mut runner = TestRunner::deterministic();
    for case in 0..cases(CASES.1) {
        let mut event = event().new_tree(&mut runner).expect("an event").current();
        event.insert("ResponseURL".to_owned(), json!(rig.sink.url()));
        let event = Value::Object(event);
        let told = rig.send(event.clone()).await;
        let puts = rig.sink.take();
        assert_eq!(puts.len(), 1, "case {case}: {event}");
        let body = well_formed(&event, &puts[0]);
        assert_eq!(
            told.expect("the runtime is told that all is well"),
            body,
            "case {case}"
        );
        let reason = body["Reason"].as_str().unwrap_or_default();
        assert!(
            !reason.contains("a mistake of its own"),
            "case {case}: {reason}: {event}"
        );
    }
}

#[tokio::test]
async fn no_direct_invoke_panics() {
    let rig = Rig::quiet().await;
    let mut runner = TestRunner::deterministic();
    for case in 0..cases(CASES.1) {
        let mut event = any_json()
            .new_tree(&mut runner)
            .expect("an event")
            .current();
        if let Some(fields) = event.as_object_mut() {
            let action = ["plan", "apply", "resume"][case as usize % 3];
            fields.insert("action".to_owned(), json!(action));
            if case % 2 == 0 {
                let manifest = any_json().new_tree(&mut runner).expect("JSON").current();
                *fields = Map::from_iter([
                    ("action".to_owned(), json!(action)),
                    ("manifest".to_owned(), manifest),
                ]);
            }
        }
        if let Err(error) = rig.send(event.clone()).await {
            let message = error.to_string();
            assert!(
                !message.contains("a mistake of its own"),
                "case {case}: {message}: {event}"
            );
        }
    }
}
