//! The stories' events, mutated: read, converted and answered, without a table.
//!
//! Each event is changed a few times, as a value or as text, and must then be read without a panic and, when
//! it is CloudFormation's, have an answer that CloudFormation takes. `LAMBDA_FUZZ_CASES` sets how
//! many; a million take about a minute a core.

use super::rig::well_formed_body;
use super::story::{all, event, fill};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use zae_limits::lambda::{
    Answer, Envelope, Event, Failure, Named, RequestType, Summary, physical_id,
};
use zae_limits::manifest::{
    Manifest, Properties, Source, parse_json, parse_properties, parse_yaml,
};
use zae_limits::model::NamespaceName;

const CASES: u64 = 20_000;

/// Scalars that have been trouble to somebody.
const SCALARS: [&str; 44] = [
    "",
    " ",
    "0",
    "1",
    "-1",
    "007",
    "1e3",
    "10.0",
    " 7",
    "1_000",
    "18446744073709551615",
    "18446744073709551616",
    "999999999999999999999999",
    "NaN",
    "inf",
    "true",
    "TRUE",
    "False",
    "yes",
    "off",
    "null",
    "~",
    "bypass",
    "BYPASS",
    "keep",
    "revert",
    "report",
    "fail",
    "_default_",
    "#",
    "a#b",
    "a/b",
    "../../etc/passwd",
    "/etc/passwd",
    "Ref",
    "Fn::Sub",
    "{{resolve:ssm:x}}",
    "\u{0}",
    "\u{1}\u{7f}\u{85}\u{2028}",
    "\u{feff}",
    "\u{202e}",
    "😀",
    "* * * * *",
    "Europe/Berlin",
];

/// Every event of every story that is not too long to be changed a thousand times a second.
fn corpus() -> Vec<Value> {
    let fills = [
        ("{ns}", "a7x3kq"),
        ("{last}", "rate-limits/a7x3kq/0123456789ab"),
    ];
    let mut events = Vec::new();
    for (_, story) in all() {
        for step in story["steps"].as_array().expect("steps") {
            let step = fill(step, &fills);
            let event = event(&step, "https://example.com/x?Signature=s", fills[1].1);
            if event.to_string().len() < 20_000 {
                events.push(event);
            }
        }
    }
    let limits = json!({
        "rpm": {"Capacity": "10", "RefillAmount": "5", "RefillPeriod": "60", "Soft": "true", "Schedule": [
            {"Cron": "0 9 * * MON-FRI", "Tz": "Europe/Berlin", "Scale": "0.5"},
            {"Cron": "*/5 1-3 * 1,2 7", "Capacity": "7", "RefillAmount": "1", "RefillPeriodSeconds": "2"},
        ]},
        "day": {"Burst": "9", "ResetSchedule": [{"Cron": "0 0 1 * *", "Tz": "UTC"}]},
        "win": {"Capacity": "9", "ResetAfterSeconds": "3600"},
    });
    let all_of_it = json!({
        "Namespace": "tenant-alpha", "TableName": "t", "FullApply": "true", "MaxDelete": "3", "Adopt": "false",
        "System": {"OnUnavailable": "block", "Limits": limits},
        "Resources": {"gpt-4": {"Cascade": "true", "Limits": limits}},
        "Entities": {"user-1": {"Resources": {"_default_": {"Disabled": "bypass", "Limits": limits}}}},
    });
    for kind in ["Create", "Update"] {
        let step = json!({"type": kind, "properties": all_of_it, "old": all_of_it});
        events.push(event(&step, "https://example.com/", "x"));
    }
    assert!(events.len() > 100, "{} events", events.len());
    events
}

/// A node of a value, any as likely as any other at its depth.
fn node<'v>(value: &'v mut Value, rng: &mut StdRng) -> &'v mut Value {
    let stop = rng.random_ratio(1, 4);
    let inner = match value {
        Value::Object(fields) => fields.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    };
    if stop || inner == 0 {
        return value;
    }
    let at = rng.random_range(0..inner);
    match value {
        Value::Object(fields) => {
            let (_, field) = fields.iter_mut().nth(at).expect("a field");
            node(field, rng)
        }
        Value::Array(items) => node(&mut items[at], rng),
        leaf => leaf,
    }
}

fn scalar(rng: &mut StdRng) -> Value {
    match rng.random_range(0..10) {
        0 => Value::Null,
        1 => json!(rng.random::<bool>()),
        2 => json!(rng.random::<i64>()),
        3 => json!(rng.random::<f64>()),
        4 => json!([]),
        5 => json!({}),
        _ => json!(SCALARS.choose(rng).expect("a scalar")),
    }
}

fn mutate(event: &mut Value, corpus: &[Value], rng: &mut StdRng) {
    let mut other = corpus.choose(rng).expect("an event").clone();
    let graft = node(&mut other, rng).take();
    // Mostly below the root: an event without a root is nobody's.
    let at = match event {
        Value::Object(fields) if !fields.is_empty() && rng.random_ratio(49, 50) => {
            let at = rng.random_range(0..fields.len());
            let (_, field) = fields.iter_mut().nth(at).expect("a field");
            node(field, rng)
        }
        event => event,
    };
    match (rng.random_range(0..8), at) {
        (0, at) => *at = graft,
        (1, at) => *at = json!([at.take()]),
        (2, Value::Object(fields)) if !fields.is_empty() => {
            let at = rng.random_range(0..fields.len());
            let key = fields.keys().nth(at).expect("a key").clone();
            let value = fields.shift_remove(&key);
            // Gone, or under another name.
            if rng.random::<bool>() {
                let name = SCALARS.choose(rng).expect("a name");
                fields.insert((*name).to_owned(), value.unwrap_or_default());
            }
        }
        (3, Value::Object(fields)) => {
            let name = SCALARS.choose(rng).expect("a name");
            fields.insert((*name).to_owned(), graft);
        }
        (4, Value::Array(items)) => items.push(graft),
        (_, Value::String(text)) => *text = changed(text, rng),
        (_, at) => *at = scalar(rng),
    }
}

fn changed(text: &str, rng: &mut StdRng) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let at = rng.random_range(0..=chars.len());
    match rng.random_range(0..5) {
        0 => chars.truncate(at),
        1 => chars.insert(at, rng.random()),
        2 if at < chars.len() => drop(chars.remove(at)),
        3 => return text.repeat(rng.random_range(1..40)),
        _ => return (*SCALARS.choose(rng).expect("a scalar")).to_owned(),
    }
    chars.into_iter().collect()
}

/// Changes a few bytes of a text; it may be no JSON any more.
fn garbled(text: &str, rng: &mut StdRng) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..rng.random_range(1..4) {
        let at = rng.random_range(0..bytes.len());
        match rng.random_range(0..4) {
            0 if bytes.len() > 1 => drop(bytes.remove(at)),
            1 => bytes[at] = *br#"{}[]",:\u0e-"#.choose(rng).expect("a byte"),
            2 => bytes.truncate(at.max(1)),
            _ => bytes[at] = rng.random_range(0x20..0x7f),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What becomes of an event as far as that needs no table.
fn outcome(envelope: &Envelope) -> Result<String, Failure> {
    let missing = Failure::Missing("a field");
    let (Some(stack_id), Some(logical_id)) = (&envelope.stack_id, &envelope.logical_id) else {
        return Err(missing);
    };
    if let Some(reason) = &envelope.unreadable {
        return Err(Failure::Unreadable(reason.clone()));
    }
    match &envelope.request_type {
        RequestType::Unknown(found) => return Err(Failure::UnknownRequest(found.clone())),
        RequestType::Delete => {
            let id = envelope.physical_id.clone().ok_or(missing)?;
            let _ = Named::parse(&id);
            return Ok(id);
        }
        RequestType::Create | RequestType::Update => {}
    }
    let properties = parse_properties(envelope.properties.as_ref().ok_or(missing)?)?;
    let manifest = manifest(&properties)?;
    let _ = (manifest.sha256(), manifest.warnings());
    let table = properties.table_name.as_deref().unwrap_or("rate-limits");
    let ns = properties
        .namespace_id
        .unwrap_or("a7x3kq".parse().expect("an id"));
    let own = envelope.physical_id.as_deref().and_then(Named::parse);
    match own {
        Some(own) if own.is_at(table, &ns, stack_id) => {
            Ok(envelope.physical_id.clone().expect("its own"))
        }
        _ => Ok(physical_id(table, &ns, stack_id, logical_id)),
    }
}

fn manifest(properties: &Properties) -> Result<Manifest, Failure> {
    let name = match &properties.namespace {
        Some(name) => name.clone(),
        None => NamespaceName::parse(Properties::DEFAULT_NAMESPACE).expect("a name"),
    };
    Ok(match &properties.source {
        Source::Structured(levels) => Manifest::new(name, levels.clone())?,
        Source::ManifestYaml(yaml) => parse_yaml("ManifestYaml", yaml.as_bytes())?,
        Source::ManifestPath(_) => Manifest::new(name, [].into())?,
    })
}

/// What came of some events.
#[derive(Default)]
struct Tally {
    /// CloudFormation's, and so answered.
    answered: u64,
    /// Answered with success, as far as that needs no table.
    accepted: u64,
}

/// Holds the answer to an event, if it has one, against what CloudFormation takes.
fn answer(event: Event, tally: &mut Tally) {
    let value = event.value.clone();
    let envelope = match Envelope::lift(event) {
        Ok(envelope) => envelope,
        Err(event) => {
            let asks = |key: &str| event.value.get(key).is_some();
            assert!(
                !asks("ResponseURL") && !asks("RequestType"),
                "{:?}",
                event.value
            );
            let _ = parse_json(&event.value);
            return;
        }
    };
    let summary = Summary::default();
    let answer = match outcome(&envelope) {
        Ok(id) => {
            tally.accepted += 1;
            Answer::success(&envelope, id, &summary)
        }
        Err(failure) => Answer::failure(&envelope, &failure.to_string(), None, &summary),
    };
    tally.answered += 1;
    well_formed_body(&value, &answer.body());
}

fn run(cases: u64, seed: u64, corpus: &[Value]) -> Tally {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut tally = Tally::default();
    for _ in 0..cases {
        let mut event = corpus.choose(&mut rng).expect("an event").clone();
        for _ in 0..rng.random_range(1..5) {
            mutate(&mut event, corpus, &mut rng);
        }
        let as_text = rng.random_ratio(1, 4).then(|| event.to_string());
        // What is no JSON any more never reaches a function.
        let raw = as_text.and_then(|text| {
            (0..20).find_map(|_| RawValue::from_string(garbled(&text, &mut rng)).ok())
        });
        answer(
            raw.map_or_else(|| event.into(), |raw| Event::read(&raw)),
            &mut tally,
        );
    }
    tally
}

#[test]
fn every_mutant_of_every_event_has_an_answer() {
    let given = std::env::var("LAMBDA_FUZZ_CASES").ok();
    let cases = given.map_or(CASES, |given| given.parse().expect("a number of cases"));
    let corpus = corpus();
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let began = tokio::time::Instant::now();
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let share = |index| cases / threads + u64::from(index < cases % threads);
        let run = |index| {
            let corpus = &corpus;
            scope.spawn(move || run(share(index), index, corpus))
        };
        let runs: Vec<_> = (0..threads).map(run).collect();
        let joined = runs.into_iter().map(|run| run.join().expect("no panic"));
        joined.collect()
    });
    let answered: u64 = tallies.iter().map(|tally| tally.answered).sum();
    let accepted: u64 = tallies.iter().map(|tally| tally.accepted).sum();
    println!(
        "{cases} mutants, {answered} of them answered, {accepted} with success, in {:?}",
        began.elapsed()
    );
    assert!(answered > cases / 4 * 3, "{answered} of {cases}");
    assert!(accepted > cases / 20, "{accepted} of {cases}");
}
