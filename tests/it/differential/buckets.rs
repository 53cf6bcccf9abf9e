//! What a params fan-out writes on a bucket, attribute by attribute, as the reference would.
//!
//! Two things are ours alone (docs/adr/0006-what-is-taken-off-a-bucket.md): the reserved limit is kept from
//! inheriting a schedule, and a dropped limit takes the rest of its fields along.

use super::Part;
use super::source::Source;
use aws_sdk_dynamodb::types::AttributeValue;
use rand::RngExt;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use zae_limits::model::{EpochMs, EpochSeconds, LevelConfig, LimitName, bucket_ttl};
use zae_limits::table::bucket::{BucketChange, parse_limit_attr};
use zae_limits::table::params::{Expiry, Params, ParamsChange};
use zae_limits::table::{Item, stamp};

pub(super) const NOW: EpochMs = EpochMs(1_800_000_000_000);
const NAMES: [&str; 5] = ["a_b", "daily", "rpm", "tpm", "x.y-z"];
/// What the reference takes off a bucket with a limit.
const THEIRS: [&str; 8] = ["tk", "cp", "ra", "rp", "tc", "sched", "rsched", "soft"];
/// What else of a limit may be there.
const REST: [&str; 7] = ["rsa", "ws", "wa", "wtc", "gc", "tu", "rn"];

/// Attributes with their new values; `null` for one that goes.
pub(super) type Changes = BTreeMap<String, Value>;

/// A bucket, and what we change about it.
pub(super) struct Case {
    bucket: Item,
    ours: Changes,
}

impl Case {
    /// What the limits of a level make of a bucket.
    pub(super) fn new(
        config: &LevelConfig,
        bucket: Item,
        expiry: Expiry,
        soft_until: EpochMs,
    ) -> Case {
        let params = Arc::new(Params::new(config, expiry));
        let update = ParamsChange { params, soft_until }.update(&bucket);
        let ours = update
            .changes()
            .map(|(name, value)| (name.to_owned(), value.map_or(Value::Null, json_of)));
        let ours = ours.collect();
        Case { bucket, ours }
    }
}

pub(super) fn buckets_are_changed_the_same() -> Part {
    let mut source = Source::new(6);
    let (questions, cases): (Vec<_>, Vec<_>) = (0..300).map(|_| case(&mut source)).unzip();
    let check = move |answers: &[Value]| {
        for (case, answer) in cases.iter().zip(answers) {
            let theirs = serde_json::from_value(answer["ok"].clone());
            let theirs: Changes = theirs.unwrap_or_else(|_| panic!("{answer}"));
            compare(case, theirs);
        }
    };
    Part {
        questions,
        check: Box::new(check),
    }
}

fn case(source: &mut Source) -> ((&'static str, Value), Case) {
    let mut declared = Vec::new();
    let mut config = LevelConfig::default();
    let always = source.0.random_range(0..NAMES.len());
    for (index, name) in NAMES.iter().enumerate() {
        if index != always && source.0.random_bool(0.5) {
            continue;
        }
        let name = LimitName::parse(name).expect("a name");
        let (mut said, mut limit) = source.limit(&name);
        limit.soft = source.0.random_bool(0.3);
        said["soft"] = json!(limit.soft);
        declared.push(said);
        config.limits.insert(name, limit);
    }
    let (bucket, stale) = bucket(source, &config);
    let expires = source.0.random_bool(0.5);
    let expiry = match bucket_ttl(EpochSeconds(NOW.0 / 1000), &config.limits) {
        Ok(Some(at)) if expires => Expiry::At(at),
        _ => Expiry::Never,
    };
    let soft_until = stamp::deadline(NOW, source.0.random());
    let question = json!({
        "limits": declared, "ttl": if expires { 7 } else { 0 }, "stale": stale, "now_ms": NOW,
    });
    let case = Case::new(&config, bucket, expiry, soft_until);
    (("bucket", question), case)
}

/// A bucket with the reserved limit alone.
pub(super) fn bare() -> Item {
    let balance = AttributeValue::N("1000000".to_owned());
    HashMap::from([("b_wcu_tk".to_owned(), balance)])
}

/// A bucket with the reserved limit and some others, and those of them that no longer apply.
fn bucket(source: &mut Source, config: &LevelConfig) -> (Item, Vec<String>) {
    let mut item = bare();
    let mut stale = Vec::new();
    for name in NAMES.into_iter().chain(["old", "old_cp"]) {
        if source.0.random_bool(0.5) {
            continue;
        }
        for field in THEIRS.iter().chain(&REST) {
            if ["tk", "cp"].contains(field) || source.0.random_bool(0.5) {
                let value = AttributeValue::N(source.0.random_range(0..9).to_string());
                item.insert(format!("b_{name}_{field}"), value);
            }
        }
        if !config.limits.keys().any(|limit| limit.as_str() == name) {
            stale.push(name.to_owned());
        }
    }
    (item, stale)
}

/// A value as the wire has it.
pub(super) fn json_of(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::N(digits) => json!({"N": digits}),
        AttributeValue::S(text) => json!({"S": text}),
        AttributeValue::Bool(truth) => json!({"BOOL": truth}),
        other => panic!("neither a level nor a bucket holds {other:?}"),
    }
}

/// Holds a bucket's changes against the reference's.
pub(super) fn compare(case: &Case, theirs: Changes) {
    let has_default = |field: &str| theirs.get(field).is_some_and(|value| !value.is_null());
    let mut expected = theirs.clone();
    // Removing what is not there is nothing.
    expected.retain(|name, value| {
        let is_dropped = value.is_null() && !case.ours.contains_key(name);
        !is_dropped || case.bucket.contains_key(name)
    });
    for field in ["sched", "rsched"]
        .into_iter()
        .filter(|field| has_default(field))
    {
        expected.insert(format!("b_wcu_{field}"), json!({"S": "-"}));
    }
    for name in case.bucket.keys() {
        let Some((limit, field)) = parse_limit_attr(name) else {
            continue;
        };
        let is_stale = limit != "wcu" && !theirs.contains_key(&format!("b_{limit}_rsa"));
        if is_stale && REST.contains(&field) {
            expected.insert(name.clone(), Value::Null);
        }
    }
    let names: Vec<_> = case.ours.keys().collect();
    assert_eq!(names, expected.keys().collect::<Vec<_>>());
    for (name, ours) in &case.ours {
        let theirs = &expected[name];
        if name == "ttl" && !ours.is_null() {
            assert_expiry(number(ours), number(theirs));
        } else if name.ends_with("_soft") && !ours.is_null() {
            let bounds = NOW.0 + 48_000..=NOW.0 + 60_000;
            assert!(bounds.contains(&number(ours)) && bounds.contains(&number(theirs)));
        } else {
            assert_eq!(ours, theirs, "{name}");
        }
    }
}

/// The reference cuts off to whole seconds where we round up, and computes in floating point, which
/// drifts either way once a product has more than 53 bits.
pub(super) fn assert_expiry(ours: u64, theirs: u64) {
    let later = theirs..=theirs + 1;
    let drift = ours >> 50;
    assert!(
        later.contains(&ours) || ours.abs_diff(theirs) <= drift,
        "expiry {ours} for {theirs}"
    );
}

fn number(value: &Value) -> u64 {
    let digits = value["N"].as_str().and_then(|digits| digits.parse().ok());
    digits.unwrap_or_else(|| panic!("{value} is no number"))
}
