//! The Python library as the judge: what it parses, stores and computes for seeded random schedules
//! and buckets must be what we do.
//!
//! Needs a Python with `zae-limiter` 0.17.0, and is skipped without ([`crate::python`]). Starting it takes longer
//! than all of its answers, so every part asks its questions of one process.

mod buckets;
mod instants;
mod manifests;
mod source;
mod versions;

use crate::python::PEER;
use rand::RngExt;
use serde_json::{Value, json};
use source::Source;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use zae_limits::model::{Cron, EpochSeconds, LimitName, Modifier, ScheduleEntry, Zone, bucket_ttl};
use zae_limits::table::schedule::{decode, decode_reset, encode, encode_reset};

type Check = Box<dyn FnOnce(&[Value])>;

/// Questions for the reference, each `(kind, subject)`, and what its answers must be.
struct Part {
    questions: Vec<(&'static str, Value)>,
    check: Check,
}

#[test]
fn the_reference_agrees() {
    let parts = parts();
    let questions: Vec<_> = parts
        .iter()
        .flat_map(|(_, part)| part.questions.clone())
        .collect();
    let Some(python) = PEER.interpreter() else {
        return;
    };
    let answers = run(python, &questions);
    let mut rest = &answers[..];
    let mut failed = Vec::new();
    for (name, part) in parts {
        let (answers, others) = rest.split_at(part.questions.len());
        // Every part has its say; its own panic has told what differs.
        if catch_unwind(AssertUnwindSafe(|| (part.check)(answers))).is_err() {
            failed.push(name);
        }
        rest = others;
    }
    assert!(failed.is_empty(), "these parts differ: {failed:?}");
}

/// Every part, by the name that a failure shows.
fn parts() -> [(&'static str, Part); 12] {
    [
        ("cron means the same", cron_means_the_same()),
        ("windows are stored the same", windows_are_stored_the_same()),
        ("resets are stored the same", resets_are_stored_the_same()),
        ("damage is refused by both", damage_is_refused_by_both()),
        ("zones are known to both", zones_are_known_to_both()),
        (
            "expiry is equal or a second later",
            expiry_is_equal_or_a_second_later(),
        ),
        (
            "buckets are changed the same",
            buckets::buckets_are_changed_the_same(),
        ),
        (
            "levels are stored the same",
            manifests::levels_are_stored_the_same(),
        ),
        (
            "stored levels are read back",
            manifests::stored_levels_are_read_back(),
        ),
        (
            "versions prove the same",
            versions::versions_prove_the_same(),
        ),
        (
            "windows open at the same instants",
            instants::windows_open_at_the_same_instants(),
        ),
        (
            "quotas reset at the same instants",
            instants::quotas_reset_at_the_same_instants(),
        ),
    ]
}

fn run(python: &Path, questions: &[(&str, Value)]) -> Vec<Value> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/reference.py");
    let mut child = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a Python process");
    let asked = questions
        .iter()
        .map(|(kind, of)| json!({"ask": kind, "of": of}));
    let asked = Value::Array(asked.collect()).to_string();
    let mut input = child.stdin.take().expect("its input");
    let written = input.write_all(asked.as_bytes());
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the reference failed: {stderr}");
    written.expect("the questions are read");
    let answers: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON answers");
    assert_eq!(answers.len(), questions.len());
    answers
}

fn ours(entry: &ScheduleEntry) -> Value {
    let (mut scale, mut absolute) = (None, (None, None, None));
    match entry.modifier {
        Modifier::Scale(factor) => scale = Some(factor.millis()),
        Modifier::Absolute {
            capacity,
            refill_amount,
            refill_period,
        } => {
            absolute = (capacity, refill_amount, refill_period);
        }
    }
    json!({
        "cron": entry.cron.to_string(), "scale": scale, "capacity": absolute.0,
        "refill_amount": absolute.1, "refill_period_seconds": absolute.2,
    })
}

fn cron_means_the_same() -> Part {
    let mut source = Source::new(1);
    let texts: Vec<_> = (0..800).map(|_| source.expression()).collect();
    let questions = texts.iter().map(|text| ("fields", json!(text))).collect();
    let check = move |answers: &[Value]| {
        let mut accepted = 0;
        for (text, answer) in texts.iter().zip(answers) {
            match Cron::parse(text) {
                Ok(cron) => {
                    let values: Vec<Vec<u8>> =
                        cron.fields().iter().map(|f| f.values().collect()).collect();
                    let fields = json!({"values": values, "and": cron.joins_days_with_and()});
                    assert_eq!(answer["ok"], fields, "{text:?}: {answer}");
                    accepted += 1;
                }
                Err(error) => assert!(answer["error"].is_string(), "{text:?}: we say {error}"),
            }
        }
        assert!(
            (200..700).contains(&accepted),
            "{accepted} of 800 were valid"
        );
    };
    Part {
        questions,
        check: Box::new(check),
    }
}

fn windows_are_stored_the_same() -> Part {
    let mut source = Source::new(2);
    let (declared, held): (Vec<_>, Vec<_>) = (0..300).map(|_| source.entries()).unzip();
    let stored: Vec<_> = held.iter().map(|entries| encode(entries)).collect();
    let mut questions: Vec<_> = declared.iter().map(|d| ("encode", json!(d))).collect();
    questions.extend(stored.iter().map(|text| ("decode", json!(text))));
    let check = move |answers: &[Value]| {
        let (encoded, decoded) = answers.split_at(stored.len());
        for (i, stored) in stored.iter().enumerate() {
            assert_eq!(encoded[i]["ok"], **stored, "{:?}", declared[i]);
            let read: Vec<_> = held[i].iter().map(ours).collect();
            assert_eq!(decoded[i]["ok"], json!(read), "{stored}");
        }
    };
    Part {
        questions,
        check: Box::new(check),
    }
}

fn resets_are_stored_the_same() -> Part {
    let mut source = Source::new(3);
    let mut questions = Vec::new();
    let mut held = Vec::new();
    for _ in 0..200 {
        let count = source.0.random_range(1..=3);
        let (texts, crons): (Vec<_>, Vec<_>) = (0..count).map(|_| source.cron()).unzip();
        // The reference stores a lone `* * * * *` as a version without entries, and cannot read it.
        if crons.iter().any(Cron::is_always_open) {
            continue;
        }
        questions.push(("encode_reset", json!(texts)));
        questions.push(("decode_reset", json!(encode_reset(&crons))));
        held.push(crons);
    }
    assert!(held.len() > 150, "{} schedules are left", held.len());
    let check = move |answers: &[Value]| {
        for (held, answers) in held.iter().zip(answers.chunks(2)) {
            assert_eq!(answers[0]["ok"], encode_reset(held));
            let read: Vec<_> = held.iter().map(Cron::to_string).collect();
            assert_eq!(answers[1]["ok"], json!(read));
        }
    };
    Part {
        questions,
        check: Box::new(check),
    }
}

fn damage_is_refused_by_both() -> Part {
    let mut source = Source::new(4);
    let texts: Vec<_> = (0..600)
        .map(|_| {
            let stored = encode(&source.entries().1);
            source.damaged(&stored)
        })
        .collect();
    let mut questions: Vec<_> = texts.iter().map(|text| ("recode", json!(text))).collect();
    questions.extend(texts.iter().map(|text| ("decode_reset", json!(text))));
    let check = move |answers: &[Value]| {
        let (windows, resets) = answers.split_at(texts.len());
        let mut accepted = 0;
        for (i, text) in texts.iter().enumerate() {
            match decode(text) {
                Ok(entries) => {
                    assert_eq!(
                        windows[i]["ok"],
                        encode(&entries),
                        "{text:?}: {}",
                        windows[i]
                    );
                    accepted += 1;
                }
                Err(error) => {
                    assert!(windows[i]["error"].is_string(), "{text:?}: we say {error}");
                }
            }
            let refused = decode_reset(text).is_err();
            assert_eq!(
                refused,
                resets[i]["error"].is_string(),
                "{text:?}: {}",
                resets[i]
            );
        }
        assert!(
            (100..500).contains(&accepted),
            "{accepted} of 600 were readable"
        );
    };
    Part {
        questions,
        check: Box::new(check),
    }
}

fn zones_are_known_to_both() -> Part {
    const NAMES: [&str; 25] = [
        "UTC",
        "Etc/UTC",
        "GMT",
        "Europe/Berlin",
        "Europe/Kyiv",
        "America/New_York",
        "US/Pacific",
        "Asia/Calcutta",
        "Asia/Kathmandu",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "EST5EDT",
        "CET",
        "America/Argentina/ComodRivadavia",
        "Zulu",
        "",
        " UTC",
        "UTC ",
        "UTC+5",
        "+05:00",
        "Europe",
        "Mars/Olympus_Mons",
        "../UTC",
        "zone.tab",
        "Z",
    ];
    let check = |answers: &[Value]| {
        for (name, answer) in NAMES.iter().zip(answers) {
            let known = Zone::parse(name).is_ok();
            assert_eq!(known, answer["ok"].is_string(), "{name:?}: {answer}");
        }
    };
    Part {
        questions: NAMES.iter().map(|name| ("zone", json!(name))).collect(),
        check: Box::new(check),
    }
}

/// The reference cuts the product off to whole seconds, in floating point; ours rounds it up.
fn expiry_is_equal_or_a_second_later() -> Part {
    let mut source = Source::new(5);
    let names = ["rpm", "tpm", "daily"].map(|name| LimitName::parse(name).expect("a name"));
    let mut questions = Vec::new();
    let mut lives = Vec::new();
    for _ in 0..400 {
        let count = source.0.random_range(1..=names.len());
        let (declared, limits): (Vec<_>, Vec<_>) = names
            .iter()
            .take(count)
            .map(|name| source.limit(name))
            .unzip();
        let ttl = bucket_ttl(EpochSeconds(0), names.iter().zip(&limits));
        lives.push(
            ttl.expect("every limit recovers")
                .expect("there are limits")
                .0,
        );
        questions.push(("ttl", json!(declared)));
    }
    let asked = questions.clone();
    let check = move |answers: &[Value]| {
        let mut equal = 0;
        for (((_, limits), life), answer) in asked.iter().zip(lives).zip(answers) {
            let Some(theirs) = answer["ok"].as_u64() else {
                panic!("{limits}: {answer}");
            };
            assert!(
                (theirs..=theirs + 1).contains(&life),
                "{life} for {theirs}: {limits}"
            );
            equal += usize::from(life == theirs);
        }
        assert!((200..400).contains(&equal), "{equal} of 400 were equal");
    };
    Part {
        questions,
        check: Box::new(check),
    }
}
