//! Schedules on a real clock: which window is open, when that changes, when a quota next resets.
//!
//! Berlin skips 02:00 to 03:00 on 2026-03-29 and has it twice on 2026-10-25; New York skips 02:00 to
//! 03:00 on 2026-03-08 and has 01:00 to 02:00 twice on 2026-11-01.

use crate::cron::cron;
use jiff::Timestamp;
use proptest::prelude::*;
use zae_limits::model::{Calendar, Cron, EpochMs, Modifier, ScaleMillis, ScheduleEntry, Zone};

const BERLIN: &str = "Europe/Berlin";
const NEW_YORK: &str = "America/New_York";

fn calendar(zone: &str) -> Calendar {
    Calendar::new(&Zone::parse(zone).expect("a zone"))
}

fn at(text: &str) -> EpochMs {
    let timestamp: Timestamp = text.parse().expect(text);
    EpochMs(timestamp.as_millisecond().try_into().expect("after 1970"))
}

fn crons(texts: &[&str]) -> Vec<Cron> {
    texts.iter().map(|text| cron(text)).collect()
}

fn windows(texts: &[&str]) -> Vec<ScheduleEntry> {
    let modifier = Modifier::Scale(ScaleMillis::from_millis(500).expect("in range"));
    let entry = |cron| ScheduleEntry {
        cron,
        modifier: modifier.clone(),
    };
    crons(texts).into_iter().map(entry).collect()
}

/// The cells of a table's rows. Lines that begin with a dash are comments.
fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    let lines = table.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('-'));
    lines.map(|line| line.split('|').map(str::trim).collect())
}

/// The cron expressions of a cell.
fn listed(cell: &str) -> Vec<&str> {
    cell.split(';').filter(|text| !text.is_empty()).collect()
}

/// Zone, windows, an instant, which window is open then, and until when.
const WINDOWS: &str = "
    - A plain working week; 2026-11-30 is a Monday.
    Europe/Berlin    | * 9-17 * * MON-FRI | 2026-11-30T08:59:59+01:00 | none | 2026-11-30T09:00+01:00
    Europe/Berlin    | * 9-17 * * MON-FRI | 2026-11-30T09:00:00+01:00 | 0    | 2026-11-30T18:00+01:00
    Europe/Berlin    | * 9-17 * * MON-FRI | 2026-12-04T18:00:00+01:00 | none | 2026-12-07T09:00+01:00
    - The first entry that matches wins, and a later one is seen only where it ends.
    UTC              | * 12 * * *; * 9-17 * * * | 2026-11-30T11:30:00Z | 1 | 2026-11-30T12:00+00:00
    UTC              | * 12 * * *; * 9-17 * * * | 2026-11-30T12:30:00Z | 0 | 2026-11-30T13:00+00:00
    UTC              | * * * * *; */2 * * * *   | 2026-11-30T12:30:00Z | 0 | never
    UTC              | * 9-17 * * *; * * * * *  | 2026-11-30T20:30:00Z | 1 | 2026-12-01T09:00+00:00
    - The hour that is skipped opens nothing.
    Europe/Berlin    | * 2 * * *          | 2026-03-28T12:00:00+01:00 | none | 2026-03-30T02:00+02:00
    Europe/Berlin    | * 3 * * *          | 2026-03-29T01:59:00+01:00 | none | 2026-03-29T03:00+02:00
    Europe/Berlin    | * 1-2 * * *        | 2026-03-29T01:30:00+01:00 | 0    | 2026-03-29T03:00+02:00
    America/New_York | 30-45 2 * * *      | 2026-03-08T01:59:00-05:00 | none | 2026-03-09T02:30-04:00
    America/New_York | * 9-17 * * MON-FRI | 2026-03-06T18:00:00-05:00 | none | 2026-03-09T09:00-04:00
    - The hour that comes twice is one long window, and two where minutes are restricted.
    Europe/Berlin    | * 2 * * *          | 2026-10-25T02:30:00+02:00 | 0    | 2026-10-25T03:00+01:00
    Europe/Berlin    | 0-29 2 * * *       | 2026-10-25T02:10:00+02:00 | 0    | 2026-10-25T02:30+02:00
    Europe/Berlin    | 0-29 2 * * *       | 2026-10-25T02:30:00+02:00 | none | 2026-10-25T02:00+01:00
    Europe/Berlin    | 0-29 2 * * *       | 2026-10-25T02:30:00+01:00 | none | 2026-10-26T02:00+01:00
    America/New_York | 30-59 1 * * *      | 2026-11-01T01:59:00-04:00 | 0    | 2026-11-01T01:00-05:00
    - Offsets and turns that are no whole hours, and a day that an island left out.
    Asia/Kathmandu      | * 9 * * *       | 2026-11-30T00:00:00Z      | none | 2026-11-30T09:00+05:45
    Australia/Lord_Howe | 45-59 1 * * *   | 2026-04-05T01:59:00+11:00 | 0    | 2026-04-05T01:30+10:30
    Pacific/Apia        | * * 30 12 *     | 2011-12-29T12:00:00-10:00 | none | 2012-12-30T00:00+14:00
    - Ends of months, and years.
    UTC              | * * 31 * *         | 2026-04-01T00:00:00Z      | none | 2026-05-31T00:00+00:00
    UTC              | * * 31 * *         | 2026-05-31T12:00:00Z      | 0    | 2026-06-01T00:00+00:00
    UTC              | * * * DEC *        | 2026-12-31T23:59:59Z      | 0    | 2027-01-01T00:00+00:00
    UTC              | * * 29 2 *         | 2096-02-29T12:00:00Z      | 0    | 2096-03-01T00:00+00:00
    UTC              | * * 29 2 *         | 2096-03-01T00:00:00Z      | none | 2104-02-29T00:00+00:00
    - Two restricted day fields: either is enough.
    UTC              | * * 1 * MON        | 2026-11-30T12:00:00Z      | 0    | 2026-12-02T00:00+00:00
    - Unless one begins with a star: both must match, here an odd day that is a Monday.
    UTC              | * * */2 * MON      | 2026-11-30T12:00:00Z      | none | 2026-12-07T00:00+00:00
    UTC              | * * */2 * MON      | 2026-12-07T12:00:00Z      | 0    | 2026-12-08T00:00+00:00
    UTC              | * * 29 2 */7       | 2004-02-29T23:59:00Z      | 0    | 2004-03-01T00:00+00:00
    UTC              | * * 29 2 */7       | 2088-03-01T00:00:00Z      | none | 2128-02-29T00:00+00:00
";

#[test]
fn windows_open_and_close() {
    for row in rows(WINDOWS) {
        let [zone, entries, now, open, until] = row[..] else {
            panic!("{row:?} has five cells");
        };
        let (calendar, entries) = (calendar(zone), windows(&listed(entries)));
        let found = calendar.open_window(&entries, at(now));
        assert_eq!(found, open.parse().ok(), "{row:?}");
        let change = calendar.next_change(&entries, at(now));
        let shown = change.map_or("never".to_owned(), |at| calendar.show(at));
        assert_eq!(shown, until, "{row:?}");
    }
}

/// Zone, resets, an instant, and the next reset.
const RESETS: &str = "
    Europe/Berlin    | 0 0 * * *        | 2026-11-30T23:59:59+01:00 | 2026-12-01T00:00+01:00
    Europe/Berlin    | 0 0 * * *        | 2026-12-01T00:00:00+01:00 | 2026-12-02T00:00+01:00
    - A range resets once, at its beginning, and not again before it has ended.
    UTC              | * 0-5 * * *      | 2026-11-30T03:00:00Z      | 2026-12-01T00:00+00:00
    - The earliest of several.
    UTC              | 0 0 1 * *; 0 12 * * * | 2026-11-30T11:00:00Z | 2026-11-30T12:00+00:00
    UTC              | 0 0 1 * *; 0 12 * * * | 2026-11-30T12:00:00Z | 2026-12-01T00:00+00:00
    - Daylight saving: never in the hour that is skipped, twice in the one that comes twice.
    Europe/Berlin    | 30 2 * * *       | 2026-03-28T02:30:00+01:00 | 2026-03-30T02:30+02:00
    Europe/Berlin    | 30 2 * * *       | 2026-10-25T02:30:00+02:00 | 2026-10-25T02:30+01:00
    America/New_York | 30 1 * * *       | 2026-11-01T01:30:00-04:00 | 2026-11-01T01:30-05:00
    America/New_York | 30 1 * * *       | 2026-11-01T01:30:00-05:00 | 2026-11-02T01:30-05:00
    America/New_York | 0 1 * * *        | 2026-11-01T00:30:00-04:00 | 2026-11-01T01:00-04:00
    America/New_York | * 1 * * *        | 2026-11-01T01:30:00-04:00 | 2026-11-02T01:00-05:00
    - Months, quarters, leap years, and dates that need a certain day of the week.
    UTC              | 0 0 31 * *       | 2026-12-31T00:00:00Z      | 2027-01-31T00:00+00:00
    UTC              | 0 0 1 1,4,7,10 * | 2026-11-30T00:00:00Z      | 2027-01-01T00:00+00:00
    UTC              | 0 0 29 2 *       | 2026-11-30T00:00:00Z      | 2028-02-29T00:00+00:00
    UTC              | 0 0 29 2 *       | 2096-02-29T00:00:00Z      | 2104-02-29T00:00+00:00
    UTC              | 0 0 */31 * FRI   | 2027-01-01T00:00:00Z      | 2027-10-01T00:00+00:00
    - The last Sunday of March, in the hour that it skips.
    Europe/Berlin    | 30 2 25-31 3 */7 | 2026-11-30T00:00:00Z      | never
    UTC              |                  | 2026-11-30T00:00:00Z      | never
";

#[test]
fn quotas_reset_when_an_expression_begins_to_match() {
    for row in rows(RESETS) {
        let [zone, resets, now, next] = row[..] else {
            panic!("{row:?} has four cells");
        };
        let calendar = calendar(zone);
        let reset = calendar.next_reset(&crons(&listed(resets)), at(now));
        let shown = reset.map_or("never".to_owned(), |at| calendar.show(at));
        assert_eq!(shown, next, "{row:?}");
    }
}

#[test]
fn an_instant_that_no_calendar_has_answers_nothing() {
    let calendar = calendar(BERLIN);
    for beyond in [EpochMs(u64::MAX), EpochMs(i64::MAX as u64)] {
        let always = windows(&["* * * * *", "0 0 * * *"]);
        assert_eq!(calendar.open_window(&always, beyond), None);
        assert_eq!(calendar.next_change(&windows(&["0 0 * * *"]), beyond), None);
        assert_eq!(calendar.next_reset(&crons(&["0 0 * * *"]), beyond), None);
        assert_eq!(calendar.show(beyond), beyond.to_string());
    }
}

fn field(spellings: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop_oneof![1 => Just("*"), 2 => prop::sample::select(spellings)]
}

fn expression() -> impl Strategy<Value = Cron> {
    (
        field(&["0", "30", "*/15", "0-29", "59", "1-58", "0-59"]),
        field(&["0", "1", "2", "3", "1-2", "*/2", "9-17", "23", "0-23"]),
        field(&["1", "8", "25-31", "*/2", "1-31"]),
        field(&["3", "10-11", "*/2", "1-12"]),
        field(&["SUN", "MON-FRI", "*/2", "0-7"]),
    )
        .prop_map(|(minute, hour, day, month, weekday)| {
            cron(&format!("{minute} {hour} {day} {month} {weekday}"))
        })
}

/// Instants around the turns of 2026 in these zones, and any other.
fn place_and_instant() -> impl Strategy<Value = (&'static str, EpochMs)> {
    const TURNS: [(&str, &str); 6] = [
        (BERLIN, "2026-03-29T01:00:00Z"),
        (BERLIN, "2026-10-25T01:00:00Z"),
        (NEW_YORK, "2026-03-08T07:00:00Z"),
        (NEW_YORK, "2026-11-01T06:00:00Z"),
        ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"),
        ("America/Santiago", "2026-04-05T03:00:00Z"),
    ];
    let near = (prop::sample::select(&TURNS[..]), 0..2 * DAY_MS)
        .prop_map(|((zone, turn), after)| (zone, EpochMs(at(turn).0 - DAY_MS + after)));
    let any = (prop::sample::select(&TURNS[..]), 0..4_000_000_000_000_u64)
        .prop_map(|((zone, _), at)| (zone, EpochMs(at)));
    prop_oneof![3 => near, 1 => any]
}

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// The minutes of the next two days, one by one.
fn minutes(now: EpochMs) -> impl Iterator<Item = EpochMs> {
    let next = now.0 / MINUTE_MS + 1;
    (next..next + 2 * 24 * 60).map(|minute| EpochMs(minute * MINUTE_MS))
}

/// What is found beyond the minutes that were walked is not judged.
fn within(found: Option<EpochMs>, now: EpochMs) -> Option<EpochMs> {
    let last = minutes(now).last();
    found.filter(|found| Some(*found) <= last)
}

proptest! {
    #[test]
    fn the_next_change_is_the_first(
        crons in prop::collection::vec(expression(), 1..4), (zone, now) in place_and_instant(),
    ) {
        let calendar = calendar(zone);
        let modifier = Modifier::Scale(ScaleMillis::from_millis(500).expect("in range"));
        let entries: Vec<_> = crons
            .into_iter()
            .map(|cron| ScheduleEntry { cron, modifier: modifier.clone() })
            .collect();
        let open = calendar.open_window(&entries, now);
        let walked = minutes(now).find(|minute| calendar.open_window(&entries, *minute) != open);
        let found = within(calendar.next_change(&entries, now), now);
        prop_assert_eq!(found, walked, "{:?} in {} at {}", entries, zone, calendar.show(now));
    }

    #[test]
    fn the_next_reset_is_the_first(cron in expression(), (zone, now) in place_and_instant()) {
        let calendar = calendar(zone);
        let mut before = calendar.matches(&cron, now);
        let walked = minutes(now).find(|minute| {
            let was = std::mem::replace(&mut before, calendar.matches(&cron, *minute));
            before && !was
        });
        let found = within(calendar.next_reset(std::slice::from_ref(&cron), now), now);
        prop_assert_eq!(found, walked, "{} in {} at {}", cron, zone, calendar.show(now));
    }
}
