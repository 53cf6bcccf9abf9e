//! Zones, scales and windows as they are read, and the compact form in which the table stores them.

use crate::cron::{any_cron, cron, refusals};
use proptest::prelude::*;
use zae_limits::model::{
    Cron, Limit, LimitError, Modifier, Recovery, ScaleError, ScaleMillis, ScheduleEntry, Seconds,
    Tokens, Zone, ZoneError,
};
use zae_limits::table::schedule::{decode, decode_reset, encode, encode_reset};

fn scale(factor: f64) -> Modifier {
    Modifier::Scale(ScaleMillis::from_factor(factor).expect("a scale"))
}

fn absolute(capacity: Option<u64>, amount: Option<u64>, period: Option<u64>) -> Modifier {
    Modifier::Absolute {
        capacity: capacity.map(Tokens),
        refill_amount: amount.map(Tokens),
        refill_period: period.map(Seconds),
    }
}

fn entry(text: &str, modifier: Modifier) -> ScheduleEntry {
    ScheduleEntry {
        cron: cron(text),
        modifier,
    }
}

#[test]
fn zones_are_kept_as_iana_spells_them() {
    for name in [
        "UTC",
        "Etc/UTC",
        "Europe/Berlin",
        "America/Argentina/Ushuaia",
        "Asia/Calcutta",
        "Asia/Kolkata",
        "US/Pacific",
        "EST5EDT",
        "GMT+0",
    ] {
        assert_eq!(Zone::parse(name).expect(name).as_str(), name);
    }
    assert_eq!(Zone::default(), Zone::parse(Zone::DEFAULT).expect("UTC"));
}

#[test]
fn refused_zones() {
    let cases = [
        "",
        "utc",
        "europe/BERLIN",
        "Mars/Olympus_Mons",
        "Etc/Unknown",
        "Europe",
        "Europe/",
        " UTC",
        "+02:00",
        "UTC+2",
        "../UTC",
        "/usr/share/zoneinfo/UTC",
    ];
    insta::assert_snapshot!(refusals(&cases, |text| Zone::parse(text).map(|z| z.to_string())));
    assert_eq!(
        Zone::parse("asia/tokyo"),
        Err(ZoneError::Spelling {
            found: "asia/tokyo".into(),
            name: "Asia/Tokyo".into(),
        })
    );
}

#[test]
fn scales_are_thousandths_rounded_half_to_even() {
    for (factor, millis) in [
        (0.5, 500),
        (1.0, 1000),
        (2.3, 2300),
        (1.0 / 3.0, 333),
        (0.0005, 1),
        (0.0015, 2),
        (0.0025, 2),
        (0.0035, 4),
        (1.0005, 1000),
        (0.0001, 1),
        (f64::MIN_POSITIVE, 1),
        (1e6, 1_000_000_000),
    ] {
        let scale = ScaleMillis::from_factor(factor).expect("in range");
        assert_eq!(scale.millis(), millis, "{factor}");
    }
    assert_eq!(
        ScaleMillis::from_factor(f64::NAN),
        Err(ScaleError::NotFinite)
    );
    assert_eq!(
        ScaleMillis::from_factor(f64::INFINITY),
        Err(ScaleError::NotFinite)
    );
    assert_eq!(ScaleMillis::from_factor(0.0), Err(ScaleError::NotPositive));
    assert_eq!(ScaleMillis::from_factor(-0.5), Err(ScaleError::NotPositive));
    assert_eq!(
        ScaleMillis::from_factor(1_000_000.1),
        Err(ScaleError::TooLarge)
    );
    assert_eq!(ScaleMillis::from_millis(0), Err(ScaleError::NotPositive));
    assert_eq!(
        ScaleMillis::from_millis(1_000_000_001),
        Err(ScaleError::TooLarge)
    );
}

fn resetting(recovery: Recovery) -> Limit {
    Limit {
        capacity: Tokens(100),
        refill_period: Limit::DEFAULT_PERIOD,
        recovery,
        schedule: Vec::new(),
        soft: false,
    }
}

#[test]
fn a_limit_that_resets_takes_no_refill_from_a_window() {
    let resets = [
        Recovery::Calendar(vec![cron("0 0 * * *")]),
        Recovery::Window(Seconds(3600)),
    ];
    for recovery in resets {
        let mut limit = resetting(recovery);
        limit.schedule = vec![
            entry("* 9 * * *", absolute(Some(5), None, Some(30))),
            entry("* 10 * * *", scale(0.5)),
        ];
        assert_eq!(limit.check(), Ok(()));

        limit
            .schedule
            .push(entry("* 11 * * *", absolute(None, Some(5), None)));
        assert_eq!(
            limit.check(),
            Err(LimitError::Entry {
                number: 3,
                rule: Box::new(LimitError::RefillWhileResetting),
            })
        );
    }
    let mut drip = Limit::drip(Tokens(100), Tokens(100), Seconds(60));
    drip.schedule = vec![entry("* 11 * * *", absolute(None, Some(5), None))];
    assert_eq!(drip.check(), Ok(()));
}

#[test]
fn the_numbers_of_a_window_are_checked() {
    for (modifier, problem) in [
        (absolute(None, None, None), LimitError::ChangesNothing),
        (
            absolute(Some(0), None, None),
            LimitError::Zero { field: "capacity" },
        ),
        (
            absolute(None, Some(0), None),
            LimitError::Zero {
                field: "refill_amount",
            },
        ),
        (
            absolute(Some(1), None, Some(1_000_000_001)),
            LimitError::TooLarge {
                field: "refill_period_seconds",
                value: 1_000_000_001,
                max: 1_000_000_000,
            },
        ),
        (
            absolute(Some(1_000_000_000_000_001), None, None),
            LimitError::TooLarge {
                field: "capacity",
                value: 1_000_000_000_000_001,
                max: 1_000_000_000_000_000,
            },
        ),
    ] {
        assert_eq!(entry("* 9 * * *", modifier).check(), Err(problem));
    }
    let most = absolute(
        Some(Tokens::MAX.0),
        Some(Tokens::MAX.0),
        Some(Seconds::MAX.0),
    );
    assert_eq!(entry("* 9 * * *", most).check(), Ok(()));
}

#[test]
fn a_reset_that_never_fires_is_refused() {
    let limit = resetting(Recovery::Calendar(vec![
        cron("0 0 * * *"),
        cron("*/1 * * * *"),
    ]));
    let problem = limit.check().expect_err("the second reset never fires");
    assert_eq!(
        problem.to_string(),
        "the reset \"*/1 * * * *\" matches every minute, so it never starts to match and never \
         resets: name the minute at which it does, such as 0 0 * * *"
    );
}

#[test]
fn windows_have_one_compact_form() {
    for (text, modifier, stored) in [
        ("* 9-17 * * MON-FRI", scale(0.5), "1h9-17w1-5s500"),
        ("* 9-17 * * 1-5", scale(0.5), "1h9-17w1-5s500"),
        (
            "* 0-6 * * *",
            absolute(Some(2000), None, None),
            "1h0-6c2000",
        ),
        ("* * * * *", scale(0.5), "1s500"),
        (
            "* * * * *",
            absolute(Some(7), Some(3), Some(30)),
            "1c7a3p30",
        ),
        ("* * * * *", absolute(None, Some(9), None), "1a9"),
        ("* * * * *", absolute(None, None, Some(86400)), "1p86400"),
        ("*/15 * * * SAT,SUN", scale(0.25), "1m*/15w6,7s250"),
        (
            "0 0 1 JAN,JUL *",
            absolute(Some(5000), None, None),
            "1m0h0D1M1,7c5000",
        ),
        (
            "30 8 1-7 */3 SUN-THU",
            scale(2.0),
            "1m30h8D1-7M*/3w0-4s2000",
        ),
        ("0-59 * * * *", scale(0.0001), "1m0-59s1"),
    ] {
        let entries = vec![entry(text, modifier)];
        assert_eq!(encode(&entries), stored, "{text}");
        assert_eq!(decode(stored).as_deref(), Ok(&*entries), "{stored}");
    }
    let several = [
        entry("* 9-17 * * MON-FRI", scale(0.5)),
        entry("* 0-6 * * *", absolute(Some(2000), None, None)),
        entry("* * * * *", scale(3.0)),
    ];
    assert_eq!(encode(&several), "1h9-17w1-5s500;h0-6c2000;s3000");
    assert_eq!(encode(&[]), "");
    assert_eq!(decode(""), Ok(vec![]));
}

#[test]
fn resets_have_the_same_form_without_modifiers() {
    let entries = vec![
        cron("0 0 * * *"),
        cron("30 12 1,15 * *"),
        cron("0 0 * * SUN"),
    ];
    let stored = "1m0h0;m30h12D1,15;m0h0w7";
    assert_eq!(encode_reset(&entries), stored);
    assert_eq!(decode_reset(stored), Ok(entries));
    assert_eq!(encode_reset(&[]), "");
    assert_eq!(decode_reset(""), Ok(vec![]));
}

#[test]
fn clients_may_have_written_tags_in_another_order_or_spelled_out_a_wildcard() {
    let expected = vec![entry("* 9 * * 1", scale(0.5))];
    for stored in ["1w1h9s500", "1s500h9w1", "1m*h9w1s0500", "01h9w1s500"] {
        assert_eq!(decode(stored).as_ref(), Ok(&expected), "{stored}");
    }
}

#[test]
fn refused_compact_windows() {
    let cases = [
        "h9-17s500",
        "-",
        "é1h9s500",
        "0h9s500",
        "2h9s500",
        "19s500",
        "340282366920938463463374607431768211456h9s500",
        "1",
        "1;",
        "1h9s500;",
        "1h9-17",
        "1h9s500h0-6",
        "1h9s500s500",
        "1h9s500c10",
        "1h9s500x7",
        "1xh9s500",
        "1h9s500 ",
        "1h9\u{e9}s500",
        "1h9.5s500",
        "1h9s",
        "1hs500",
        "1h9s5-7",
        "1h9s*",
        "1h9c99999999999999999999",
        "1h9c1000000000000001",
        "1h9c0",
        "1h9s0",
        "1h9s1000000001",
        "1h24s500",
        "1m0h0D30M2s500",
        "1h9s500;h10s500;w8s1",
    ];
    insta::assert_snapshot!(refusals(&cases, |text| decode(text).map(|e| encode(&e))));
}

#[test]
fn refused_compact_resets() {
    let cases = [
        "m0h0",
        "3m0h0",
        "1",
        "1m0h0s500",
        "1m0h0;c5",
        "1m0m0",
        "1m0h",
        "1m60",
    ];
    insta::assert_snapshot!(refusals(&cases, |text| {
        decode_reset(text).map(|e| encode_reset(&e))
    }));
}

fn any_modifier() -> impl Strategy<Value = Modifier> {
    let tokens = || prop::option::of(1..=Tokens::MAX.0);
    prop_oneof![
        (1..=1_000_000_000u64).prop_map(|millis| {
            Modifier::Scale(ScaleMillis::from_millis(millis).expect("in range"))
        }),
        (tokens(), tokens(), prop::option::of(1..=Seconds::MAX.0))
            .prop_filter("changes something", |all| *all != (None, None, None))
            .prop_map(|(capacity, amount, period)| absolute(capacity, amount, period)),
    ]
}

pub fn any_entry() -> impl Strategy<Value = ScheduleEntry> {
    (any_cron(), any_modifier()).prop_map(|(cron, modifier)| ScheduleEntry { cron, modifier })
}

proptest! {
    #[test]
    fn windows_come_back_from_the_table(entries in prop::collection::vec(any_entry(), 0..5)) {
        let stored = encode(&entries);
        let read = decode(&stored);
        prop_assert_eq!(read.as_ref(), Ok(&entries));
        prop_assert_eq!(encode(&read.unwrap()), stored);
    }

    #[test]
    fn resets_come_back_from_the_table(entries in prop::collection::vec(any_cron(), 0..5)) {
        prop_assume!(entries.iter().all(|cron| !cron.is_always_open()));
        let stored = encode_reset(&entries);
        let read = decode_reset(&stored);
        prop_assert_eq!(read.as_ref(), Ok(&entries));
        prop_assert_eq!(encode_reset(&read.unwrap()), stored);
    }

    #[test]
    fn a_factor_written_in_thousandths_is_stored_exactly(millis in 1..=1_000_000_000u64) {
        let scale = ScaleMillis::from_factor(millis as f64 / 1000.0);
        prop_assert_eq!(scale.map(ScaleMillis::millis), Ok(millis));
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".*") {
        let _ = Cron::parse(&text);
        let _ = Zone::parse(&text);
        let _ = decode(&text);
        let _ = decode_reset(&text);
    }

    /// Whatever is read, in whatever order it was stored, is written in the one form.
    #[test]
    fn stored_text_is_read_or_refused(text in "[01][mhDMwscap][0-9*,/;mhDMwscapé-]{0,12}") {
        if let Ok(entries) = decode(&text) {
            prop_assert_eq!(decode(&encode(&entries)), Ok(entries));
        }
        if let Ok(entries) = decode_reset(&text) {
            let alone_and_always_open = encode_reset(&entries) == "1";
            prop_assert!(alone_and_always_open || decode_reset(&encode_reset(&entries)) == Ok(entries));
        }
    }
}
