//! Schedules in time: which window is open, when that changes, when a quota next resets.
//!
//! A minute is matched by the local time that it begins at, as clients match it. So in a zone with
//! daylight saving an hour that is skipped never opens anything, and an hour that comes twice opens
//! its windows, and fires its resets, twice. Unlike clients, which look ahead for some days or a year
//! and then ask again, this looks far enough for every expression.
//!
//! Pure: the instant is given. Nothing here knows what a window changes.

use super::{Cron, EpochMs, ScheduleEntry, Zone};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};

const MINUTE_MS: u64 = 60_000;
const DAY: i64 = 24 * 60;
/// How far ahead is looked, in minutes. No date is rarer than a 29th of February on a certain day
/// of the week, which can take 40 years.
const HORIZON: i64 = 41 * 366 * DAY;

/// The calendar and the clock of one zone.
#[derive(Debug, Clone)]
pub struct Calendar {
    zone: TimeZone,
}

impl Calendar {
    /// The calendar of a zone.
    pub fn new(zone: &Zone) -> Calendar {
        // The zone was found in the same database when it was parsed.
        let found = TimeZoneDatabase::bundled().get(zone.as_str());
        Calendar {
            zone: found.unwrap_or(TimeZone::UTC),
        }
    }

    /// Whether an expression matches the minute of an instant.
    ///
    /// No instant after the year 9999 matches anything.
    pub fn matches(&self, cron: &Cron, at: EpochMs) -> bool {
        let local = minute_of(at).and_then(|minute| self.local(minute));
        local.is_some_and(|local| State::of(cron, local).matches)
    }

    /// Which window is open at an instant: the first that matches, by its place in the schedule.
    pub fn open_window(&self, schedule: &[ScheduleEntry], at: EpochMs) -> Option<usize> {
        schedule
            .iter()
            .position(|entry| self.matches(&entry.cron, at))
    }

    /// The first minute after an instant in which [`Calendar::open_window`] answers otherwise than
    /// at the instant. `None` when that does not happen any more.
    pub fn next_change(&self, schedule: &[ScheduleEntry], now: EpochMs) -> Option<EpochMs> {
        let next = minute_of(now)? + 1;
        let open = self.open_window(schedule, now);
        // The open window closes, or one that goes before it opens. Later ones do not matter.
        let closing = open.and_then(|open| schedule.get(open));
        let opening = schedule.get(..open.unwrap_or(schedule.len()))?;
        let closing = closing.and_then(|entry| self.first(&entry.cron, false, next));
        let opening = opening
            .iter()
            .filter_map(|entry| self.first(&entry.cron, true, next));
        opening.chain(closing).min().and_then(instant)
    }

    /// The first instant after another at which one of the resets fires: at which its expression
    /// begins to match. `None` when none ever does.
    pub fn next_reset(&self, resets: &[Cron], now: EpochMs) -> Option<EpochMs> {
        let next = minute_of(now)? + 1;
        let fires = |cron: &Cron| {
            let from = match self.matches(cron, now) {
                true => self.first(cron, false, next)?,
                false => next,
            };
            self.first(cron, true, from)
        };
        resets.iter().filter_map(fires).min().and_then(instant)
    }

    /// An instant on the zone's clock: `2026-11-30T17:00+01:00`.
    ///
    /// One after the year 9999 is shown as its milliseconds since 1970.
    pub fn show(&self, at: EpochMs) -> String {
        let millis = i64::try_from(at.0).ok();
        match millis.and_then(|millis| Timestamp::from_millisecond(millis).ok()) {
            Some(timestamp) => timestamp
                .to_zoned_datetime(self.zone.clone())
                .strftime("%Y-%m-%dT%H:%M%:z")
                .to_string(),
            None => at.to_string(),
        }
    }

    /// The first minute from `from` on that an expression matches, or does not match.
    fn first(&self, cron: &Cron, wanted: bool, from: i64) -> Option<i64> {
        if cron.is_always_open() {
            return wanted.then_some(from);
        }
        let mut minute = from;
        // The minute from which the zone's offset may be another one.
        let mut turn = self.turn_after(minute);
        while minute <= from.saturating_add(HORIZON) {
            let state = State::of(cron, self.local(minute)?);
            if state.matches == wanted {
                return Some(minute);
            }
            minute = (minute + state.stays).min(turn);
            if minute >= turn {
                turn = self.turn_after(minute);
            }
        }
        None
    }

    fn local(&self, minute: i64) -> Option<DateTime> {
        let at = Timestamp::from_second(minute.checked_mul(60)?).ok()?;
        Some(self.zone.to_datetime(at))
    }

    /// The first minute after this one in which another offset may hold.
    fn turn_after(&self, minute: i64) -> i64 {
        let Ok(at) = Timestamp::from_second(minute.saturating_mul(60)) else {
            return i64::MAX;
        };
        let turn = self.zone.following(at).next();
        turn.map_or(i64::MAX, |turn| {
            let seconds = turn.timestamp().as_second();
            // A turn within a minute is seen by the next one. Never this one again.
            (seconds + 59).div_euclid(60).max(minute + 1)
        })
    }
}

/// The minute of an instant, counted from 1970.
fn minute_of(at: EpochMs) -> Option<i64> {
    i64::try_from(at.0 / MINUTE_MS).ok()
}

fn instant(minute: i64) -> Option<EpochMs> {
    let minute = u64::try_from(minute).ok()?;
    minute.checked_mul(MINUTE_MS).map(EpochMs)
}

/// Whether an expression matches a local minute, and how long that surely stays so.
struct State {
    matches: bool,
    /// Minutes, at least 1, as long as the zone's offset stays.
    stays: i64,
}

impl State {
    fn of(cron: &Cron, local: DateTime) -> State {
        let number = |n: i8| u8::try_from(n).unwrap_or_default();
        let in_hour = i64::from(local.minute());
        let in_day = i64::from(local.hour()) * 60 + in_hour;
        let (to_hour, to_day) = (60 - in_hour, DAY - in_day);
        let state = |matches, stays| State { matches, stays };
        if !cron.month().matches(number(local.month())) {
            let days = i64::from(local.days_in_month()) - i64::from(local.day());
            return state(false, days * DAY + to_day);
        }
        let weekday = local.weekday().to_monday_one_offset();
        if !cron.matches_day(number(local.day()), number(weekday)) {
            return state(false, to_day);
        }
        if !cron.hour().matches(number(local.hour())) {
            return state(false, to_hour);
        }
        if !cron.minute().matches(number(local.minute())) {
            return state(false, 1);
        }
        let restricted = cron.restricts();
        let stays = match (restricted.minutes, restricted.hours) {
            (true, _) => 1,
            (false, true) => to_hour,
            (false, false) => to_day,
        };
        state(true, stays)
    }
}
