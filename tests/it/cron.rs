//! Cron expressions: their one spelling, what they match, and what is refused.

use proptest::prelude::*;
use zae_limits::model::Cron;

/// An expression that is known to be valid.
pub fn cron(text: &str) -> Cron {
    Cron::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// One line a case: the input and what is said about it.
pub fn refusals<E: std::fmt::Display>(
    cases: &[&str],
    read: impl Fn(&str) -> Result<String, E>,
) -> String {
    let mut lines = String::new();
    for case in cases {
        let answer = match read(case) {
            Ok(accepted) => format!("ACCEPTED as {accepted}"),
            Err(error) => error.to_string(),
        };
        lines += &format!("{case:?}\n    {answer}\n");
    }
    lines
}

#[test]
fn one_meaning_of_names_and_sundays_has_one_spelling() {
    for (written, canonical) in [
        ("* 9-17 * * MON-FRI", "* 9-17 * * 1-5"),
        ("* 9-17 * * 1-5", "* 9-17 * * 1-5"),
        ("  *\t9-17  * * mon-Fri ", "* 9-17 * * 1-5"),
        ("0 0 1 jan,JUL *", "0 0 1 1,7 *"),
        ("0 0 1 feb-apr/2 *", "0 0 1 2-4/2 *"),
        ("* * * * SUN", "* * * * 7"),
        ("* * * * 0", "* * * * 7"),
        ("* * * * 7", "* * * * 7"),
        ("* * * * sat,sun", "* * * * 6,7"),
        ("* * * * 0,3", "* * * * 7,3"),
        ("* * * * SUN-THU", "* * * * 0-4"),
        ("* * * * SUN-SUN", "* * * * 0-0"),
        ("* * * * SUN-7", "* * * * 0-7"),
        ("* * * * SUN/2", "* * * * 0/2"),
        ("* * * * 5-7", "* * * * 5-7"),
        ("* * * * 7/2", "* * * * 7/2"),
        // What has no names stays as it was written.
        ("*/15 0-23 1,15 * *", "*/15 0-23 1,15 * *"),
        ("007 * * 01 *", "007 * * 01 *"),
        ("5/20,*/30 * * * *", "5/20,*/30 * * * *"),
    ]
    .map(|(written, canonical)| (cron(written).to_string(), canonical))
    {
        assert_eq!(written, canonical);
    }
}

#[test]
fn fields_match_the_numbers_that_clients_match() {
    let minutes = |text: &str| {
        let parsed = cron(&format!("{text} * * * *"));
        parsed.minute().values().collect::<Vec<_>>()
    };
    assert_eq!(minutes("*/20"), [0, 20, 40]);
    assert_eq!(minutes("50/4"), [50, 54, 58]);
    assert_eq!(minutes("50-50/4"), [50, 54, 58]);
    assert_eq!(minutes("10-20/5"), [10, 15, 20]);
    assert_eq!(minutes("3,1,2-3"), [1, 2, 3]);
    assert_eq!(minutes("*/99999999999999999999"), [0]);

    let weekdays = |text: &str| {
        let parsed = cron(&format!("* * * * {text}"));
        parsed.day_of_week().values().collect::<Vec<_>>()
    };
    assert_eq!(weekdays("*"), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(weekdays("SUN-TUE"), [1, 2, 7]);
    assert_eq!(weekdays("SUN/2"), [2, 4, 6, 7]);
    assert_eq!(weekdays("7/2"), [7]);
    assert_eq!(weekdays("MON/2"), [1, 3, 5, 7]);
}

#[test]
fn day_fields_join_as_standard_cron_joins_them() {
    // (expression, day of month, weekday, does the day match)
    for (text, day, weekday, expected) in [
        ("0 0 13 * FRI", 13, 1, true),
        ("0 0 13 * FRI", 12, 5, true),
        ("0 0 13 * FRI", 12, 4, false),
        ("0 0 13 * *", 13, 2, true),
        ("0 0 13 * *", 12, 5, false),
        ("0 0 * * FRI", 12, 5, true),
        ("0 0 * * FRI", 13, 4, false),
        ("0 0 */2 * FRI", 3, 5, true),
        ("0 0 */2 * FRI", 3, 4, false),
        ("0 0 */2 * FRI", 4, 5, false),
        ("0 0 13 * */2", 13, 2, true),
        ("0 0 13 * */2", 13, 1, false),
        ("0 0 1-31 * FRI", 3, 1, true),
    ] {
        assert_eq!(
            cron(text).matches_day(day, weekday),
            expected,
            "{text}, day {day}, weekday {weekday}"
        );
    }
}

#[test]
fn an_expression_that_is_always_open_is_known() {
    for always in [
        "* * * * *",
        "*/1 0-23 * * *",
        "* * 1-31 * MON",
        "* * 1 * 0-7",
    ] {
        assert!(cron(always).is_always_open(), "{always}");
    }
    for sometimes in [
        "*/2 * * * *",
        "* * * * 1-6",
        "* * */1 * MON",
        "* * 2-31 * *",
    ] {
        assert!(!cron(sometimes).is_always_open(), "{sometimes}");
    }
}

#[test]
fn refused_cron() {
    let cases = [
        "",
        "* * * *",
        "0 * * * * *",
        "* * * * * * *",
        "@daily",
        " @Weekly",
        "@reboot",
        "0 0 L * *",
        "0 0 LW * *",
        "0 0 l-3 * *",
        "0 0 15W * *",
        "0 0 * * 5L",
        "0 0 * * friL",
        "0 0 * * L",
        "0 0 * * FRI#2",
        "0 0 ? * MON",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "99999999999999999999999999 * * * *",
        "22-3 * * * *",
        "* * * * FRI-SUN",
        "* * * * 7-0",
        "*/0 * * * *",
        "1/2/3 * * * *",
        "*/ * * * *",
        "* * * * */MON",
        "1,,2 * * * *",
        "5- * * * *",
        "-5 * * * *",
        "*-5 * * * *",
        "1-2-3 * * * *",
        "+5 * * * *",
        "MON * * * *",
        "* * * MON *",
        "* * * * monday",
        "H * * * *",
        "٣ * * * *",
        "0 0 30 2 *",
        "0 0 31 4,6 */2",
    ];
    insta::assert_snapshot!(refusals(&cases, |text| Cron::parse(text).map(|c| c.to_string())));
}

#[test]
fn a_date_that_one_month_or_one_weekday_allows_is_accepted() {
    for text in ["0 0 29 2 *", "0 0 31 2,3 *", "0 0 30 2 MON", "0 0 */30 2 *"] {
        cron(text);
    }
}

/// A field of cron: items of every shape, from numbers in range and from names.
fn field(min: u8, max: u8, names: &'static [&'static str]) -> impl Strategy<Value = String> {
    let number = (min..=max).prop_map(|n| n.to_string());
    let item = prop_oneof![
        Just("*".to_owned()),
        number,
        (min..=max, min..=max).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        (1u16..100).prop_map(|step| format!("*/{step}")),
        (min..=max, 1u16..100).prop_map(|(n, step)| format!("{n}/{step}")),
        (min..=max, min..=max, 1u8..9).prop_map(|(a, b, step)| format!(
            "{}-{}/{step}",
            a.min(b),
            a.max(b)
        )),
        (0..names.len().max(1)).prop_map(move |i| names.get(i).unwrap_or(&"*").to_string()),
    ];
    prop_oneof![
        2 => Just("*".to_owned()),
        5 => prop::collection::vec(item, 1..4).prop_map(|items| items.join(",")),
    ]
}

/// Any expression, in any spelling.
pub fn any_cron() -> impl Strategy<Value = Cron> {
    let months = &["JAN", "feb", "Mar", "DEC"];
    let weekdays = &["SUN", "mon", "FRI-Sat", "SUN-WED", "SUN/2"];
    (
        field(0, 59, &[]),
        field(0, 23, &[]),
        field(1, 31, &[]),
        field(1, 12, months),
        field(0, 7, weekdays),
    )
        .prop_filter_map("a date that no month has", |(m, h, day, month, weekday)| {
            Cron::parse(&format!("{m} {h} {day} {month} {weekday}")).ok()
        })
}

proptest! {
    #[test]
    fn a_canonical_expression_reads_back_as_itself(cron in any_cron()) {
        let text = cron.to_string();
        prop_assert_eq!(Cron::parse(&text), Ok(cron));
        prop_assert!(!text.bytes().any(|b| b.is_ascii_alphabetic()), "{}", text);
    }
}
