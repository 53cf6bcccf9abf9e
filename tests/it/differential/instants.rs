//! What is in force at an instant, when that changes, and when a quota next resets, as the reference
//! finds it. Half of the instants lie around a change of the clocks.
//!
//! The reference looks ahead for a bounded time, and then answers that it found nothing. There it is
//! asked how far it looked, and what we find must lie beyond (docs/adr/0010-where-the-reference-is-left.md).

use super::Part;
use super::source::Source;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rand::RngExt;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};
use zae_limits::model::{
    Calendar, Cron, EpochMs, Limit, Modifier, Rate, ScaleMillis, ScheduleEntry, Seconds, Tokens,
    Zone,
};

const ZONES: [&str; 6] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Asia/Kathmandu",
];
/// 2025 to 2035: the rules of a zone are the same for all of these years, in every database.
const YEARS: std::ops::Range<u64> = 1_735_689_600_000..2_051_222_400_000;
const HOUR_MS: u64 = 3_600_000;

fn instant(source: &mut Source, zone: &str) -> EpochMs {
    let at = source.0.random_range(YEARS);
    let millis = i64::try_from(at).expect("this century");
    let from = Timestamp::from_millisecond(millis).expect("this century");
    let zone = TimeZone::get(zone).expect("a zone");
    let turn = zone.following(from).next();
    match turn.filter(|_| source.0.random_bool(0.5)) {
        Some(turn) => {
            let turn = u64::try_from(turn.timestamp().as_millisecond()).expect("this century");
            EpochMs(turn - 3 * HOUR_MS + source.0.random_range(0..6 * HOUR_MS))
        }
        None => EpochMs(at),
    }
}

fn zone(source: &mut Source) -> &'static str {
    ZONES.choose(&mut source.0).copied().unwrap_or("UTC")
}

/// An expression with something to say about nights and dates, or any.
fn expression(source: &mut Source) -> Cron {
    const KNOWN: [&str; 18] = [
        "30 2 * * *",
        "0 2 * * *",
        "* 2 * * *",
        "0-29 1 * * *",
        "*/15 1,2 * * SUN",
        "* 0-2 * * *",
        "45-59 1,2 * * *",
        "* 23 * * *",
        "0 0 * * *",
        "59 23 31 * *",
        "0 0 1 * *",
        "0 0 29 2 *",
        "0 0 13 * */5",
        "* * 1,15 * SAT",
        "* * */2 * *",
        "* 9-17 * * MON-FRI",
        "* * * 3,10 *",
        "0 3 25-31 3,10 */7",
    ];
    if source.0.random_bool(0.5) {
        return source.cron().1;
    }
    let known = KNOWN.choose(&mut source.0).copied().unwrap_or_default();
    Cron::parse(known).expect(known)
}

fn entry(source: &mut Source) -> ScheduleEntry {
    let modifier = match source.0.random_bool(0.6) {
        true => {
            let millis = source.0.random_range(1..=1_000_000_000);
            Modifier::Scale(ScaleMillis::from_millis(millis).expect("in range"))
        }
        false => source.entry(true).1.modifier,
    };
    ScheduleEntry {
        cron: expression(source),
        modifier,
    }
}

fn declared(entry: &ScheduleEntry) -> Value {
    let cron = entry.cron.to_string();
    match &entry.modifier {
        Modifier::Scale(scale) => json!({"cron": cron, "scale": scale.factor()}),
        Modifier::Absolute {
            capacity,
            refill_amount,
            refill_period,
        } => json!({
            "cron": cron, "capacity": capacity, "refill_amount": refill_amount,
            "refill_period_seconds": refill_period,
        }),
    }
}

fn calendar(zone: &str) -> Calendar {
    Calendar::new(&Zone::parse(zone).expect("a zone"))
}

/// What we say about the windows of one limit.
struct InForce {
    now: EpochMs,
    open: Option<usize>,
    params: [String; 3],
    change: Option<EpochMs>,
}

fn in_force(source: &mut Source) -> (Value, InForce) {
    let zone = zone(source);
    let now = instant(source, zone);
    let count = source.0.random_range(1..=3);
    let schedule: Vec<_> = (0..count).map(|_| entry(source)).collect();
    let capacity = Tokens(source.0.random_range(1..=Tokens::MAX.0));
    let most = Tokens::MAX.0 >> source.0.random_range(0..49);
    let amount = Tokens(source.0.random_range(1..=most));
    let limit = Limit::drip(capacity, amount, Seconds(60));
    let asked = json!({
        "schedule": schedule.iter().map(declared).collect::<Vec<_>>(),
        "tz": zone,
        "now_ms": now,
        "base": [capacity.millis(), amount.millis(), json!(limit.refill_period.millis())],
    });
    let calendar = calendar(zone);
    let open = calendar.open_window(&schedule, now);
    let base = Rate::base(&limit);
    let rate = open.map_or(base, |open| base.during(&schedule[open].modifier));
    let period = u128::from(rate.refill_period.millis());
    let params = [rate.capacity.0, rate.refill_amount.0, period].map(|n| n.to_string());
    let change = calendar.next_change(&schedule, now);
    let ours = InForce {
        now,
        open,
        params,
        change,
    };
    (asked, ours)
}

pub(super) fn windows_open_at_the_same_instants() -> Part {
    let mut source = Source::new(7);
    let (asked, ours): (Vec<_>, Vec<_>) = (0..400).map(|_| in_force(&mut source)).unzip();
    let questions = asked.iter().map(|of| ("in_force", of.clone())).collect();
    let check = move |answers: &[Value]| {
        let (mut changes, mut open) = (0, 0);
        for ((asked, ours), answer) in asked.iter().zip(ours).zip(answers) {
            let theirs = &answer["ok"];
            assert_eq!(theirs["open"], json!(ours.open), "{asked}: {answer}");
            assert_eq!(theirs["params"], json!(ours.params), "{asked}");
            let last = ours.now.0 + theirs["reach"].as_u64().expect("a reach");
            let reached = ours.change.filter(|change| change.0 <= last);
            let expected = reached.unwrap_or(EpochMs(last));
            assert_eq!(
                theirs["change"],
                json!(expected),
                "{asked}: {:?}",
                ours.change
            );
            changes += usize::from(reached.is_some());
            open += usize::from(ours.open.is_some());
        }
        assert!(changes > 250 && open > 50, "{changes} changes, {open} open");
    };
    Part {
        questions,
        check: Box::new(check),
    }
}

/// When each reset of one limit next fires.
fn resets_next(source: &mut Source) -> (Value, (EpochMs, Vec<Option<EpochMs>>)) {
    let zone = zone(source);
    let now = instant(source, zone);
    let count = source.0.random_range(1..=3);
    let resets: Vec<_> = (0..count).map(|_| expression(source)).collect();
    let texts: Vec<_> = resets.iter().map(Cron::to_string).collect();
    let calendar = calendar(zone);
    let next = |resets| calendar.next_reset(resets, now);
    let each: Vec<_> = resets.chunks(1).map(next).collect();
    assert_eq!(next(&resets), each.iter().flatten().min().copied());
    let asked = json!({"resets": texts, "tz": zone, "now_ms": now});
    (asked, (now, each))
}

pub(super) fn quotas_reset_at_the_same_instants() -> Part {
    let mut source = Source::new(8);
    let (asked, ours): (Vec<_>, Vec<_>) = (0..300).map(|_| resets_next(&mut source)).unzip();
    let questions = asked.iter().map(|of| ("resets_next", of.clone())).collect();
    let check = move |answers: &[Value]| {
        let (mut near, mut far) = (0, 0);
        for ((asked, (now, each)), answer) in asked.iter().zip(ours).zip(answers) {
            let edges = answer["ok"]["edges"].as_array().expect("edges");
            assert_eq!(edges.len(), each.len());
            let mut earliest = None;
            for (edge, reset) in edges.iter().zip(each) {
                let last = now.0 + edge[1].as_u64().expect("a reach");
                let reached = reset.filter(|reset| reset.0 <= last);
                assert_eq!(edge[0], json!(reached), "{asked}: {reset:?}");
                near += usize::from(reached.is_some());
                far += usize::from(reset.is_some() && reached.is_none());
                earliest = earliest.into_iter().chain(reached).min();
            }
            assert_eq!(answer["ok"]["next"], json!(earliest), "{asked}");
        }
        assert!(near > 300 && far > 5, "{near} within reach, {far} beyond");
    };
    Part {
        questions,
        check: Box::new(check),
    }
}
