//! Limits: what a level says under `limits`, with the rules that join several keys.
//!
//! How a bucket recovers is decided here and nowhere else in the manifest: it drips or it resets,
//! never both, never neither. The entries of its schedules are read by `schedules`.

use super::keys::{Found, Given, Keys, Spelled};
use super::problem::Step;
use super::reader::Reader;
use super::schedules::{CRON, ENTRY_PERIOD, LevelZone, SCALE, TZ};
use super::tree::{Node, Value};
use crate::model::{Limit, LimitName, Recovery, Seconds, Tokens};
use litemap::LiteMap;

pub(super) const CAPACITY: Spelled = Spelled("capacity", "Capacity");
pub(super) const REFILL_AMOUNT: Spelled = Spelled("refill_amount", "RefillAmount");
const REFILL_PERIOD: Spelled = Spelled("refill_period", "RefillPeriod");
const BURST: Spelled = Spelled("burst", "Burst");
const SCHEDULE: Spelled = Spelled("schedule", "Schedule");
const RESET_SCHEDULE: Spelled = Spelled("reset_schedule", "ResetSchedule");
const RESET_AFTER: Spelled = Spelled("reset_after_seconds", "ResetAfterSeconds");
const SOFT: Spelled = Spelled("soft", "Soft");
const IN_SCHEDULE: Spelled = Spelled(
    "it belongs to an entry of `schedule` or `reset_schedule`",
    "it belongs to an entry of `Schedule` or `ResetSchedule`",
);
const LIMIT: Keys<8> = Keys {
    known: [
        CAPACITY,
        REFILL_AMOUNT,
        REFILL_PERIOD,
        BURST,
        SCHEDULE,
        RESET_SCHEDULE,
        RESET_AFTER,
        SOFT,
    ],
    elsewhere: &[
        (CRON, IN_SCHEDULE),
        (TZ, IN_SCHEDULE),
        (SCALE, IN_SCHEDULE),
        (
            ENTRY_PERIOD,
            Spelled(
                "a limit's own period is `refill_period`",
                "a limit's own period is `RefillPeriod`",
            ),
        ),
    ],
};
impl<'t> Reader<'t> {
    /// The limits of one level. A limit with a problem is left out.
    pub(super) fn limits(
        &mut self,
        node: &'t Node<'t>,
        zone: &mut LevelZone,
    ) -> LiteMap<LimitName, Limit> {
        let mut limits = LiteMap::new();
        for entry in self.entries(node) {
            self.within(Step::Key(entry.name), |reader| {
                let name = reader.name(entry.place, entry.name, LimitName::parse);
                let limit = reader.limit(entry.value, zone);
                if let (Some(name), Some(limit)) = (name, limit) {
                    limits.insert(name, limit);
                }
            });
        }
        limits
    }

    fn limit(&mut self, node: &'t Node<'t>, zone: &mut LevelZone) -> Option<Limit> {
        if let Value::Whole(_) | Value::Text(_) = node.value {
            let capacity = self.spelled(CAPACITY);
            let found = self.describe(node);
            self.report_with(
                node.place,
                format!("expected a mapping, found {found}"),
                format!("write the number under `{capacity}`"),
            );
            return None;
        }
        let [
            capacity,
            amount,
            period,
            burst,
            schedule,
            calendar,
            after,
            soft,
        ] = self.fields(node, &LIMIT)?;
        let capacity = self.capacity(node, &capacity, &burst);
        let period = self.read(&period, seconds).or(Limit::DEFAULT_PERIOD);
        let resets = self.resets(&calendar, &after, zone);
        let is_reset = !resets.is_absent();
        let schedule = self.read(&schedule, |reader, node| {
            reader.all(node, |reader, item| reader.window(item, is_reset, zone))
        });
        let recovery = self.recovery(&amount, resets, capacity);
        let soft = self.read(&soft, Reader::flag).or(false);
        Some(Limit {
            capacity: capacity?,
            refill_period: period?,
            recovery: recovery?,
            schedule: schedule.or(Vec::new())?,
            soft: soft?,
        })
    }

    /// The size of the bucket: `burst` is the older name of the same number and replaces it.
    fn capacity(
        &mut self,
        node: &Node<'_>,
        capacity: &Given<'t>,
        burst: &Given<'t>,
    ) -> Option<Tokens> {
        let stated = self.read(capacity, tokens);
        let burst = self.read(burst, tokens);
        let what = if burst.is_absent() {
            "the most tokens the bucket holds"
        } else {
            "the older `burst` replaces its value and does not stand for it"
        };
        let stated = self.required(node, capacity, stated, what)?;
        burst.or(stated)
    }

    /// How the limit resets, when it does. A reset that is wrong is still a reset.
    fn resets(
        &mut self,
        calendar: &Given<'t>,
        after: &Given<'t>,
        zone: &mut LevelZone,
    ) -> Found<Recovery> {
        let entries = self.read(calendar, |reader, node| {
            reader.all(node, |reader, item| reader.reset(item, zone))
        });
        let entries = match entries {
            // An empty list says no more than no list.
            Found::Is(entries) if entries.is_empty() => Found::Absent,
            other => other,
        };
        let window = self.read(after, seconds);
        match (entries, window) {
            (Found::Absent, Found::Absent) => Found::Absent,
            (Found::Is(entries), Found::Absent) => Found::Is(Recovery::Calendar(entries)),
            (Found::Absent, Found::Is(window)) => Found::Is(Recovery::Window(window)),
            (Found::Absent, Found::Wrong) | (Found::Wrong, Found::Absent) => Found::Wrong,
            (_, _) => {
                let message = format!("excludes `{}`: a limit resets in one way", calendar.name);
                self.report_key(after, message, "keep one of the two");
                Found::Wrong
            }
        }
    }

    /// A limit drips or resets: never both, never neither.
    fn recovery(
        &mut self,
        given: &Given<'t>,
        resets: Found<Recovery>,
        capacity: Option<Tokens>,
    ) -> Option<Recovery> {
        let amount = self.read(given, |reader, node| reader.whole(node, 0, Tokens::MAX.0));
        match (resets, amount) {
            (Found::Absent, Found::Absent) => Some(Recovery::Drip { amount: capacity? }),
            (Found::Absent, Found::Is(0)) => {
                let calendar = self.spelled(RESET_SCHEDULE);
                let after = self.spelled(RESET_AFTER);
                self.report_key(
                    given,
                    "0 means that the limit does not drip, and it does not reset either",
                    format!("give an amount, or add `{calendar}` or `{after}`"),
                );
                None
            }
            (Found::Absent, Found::Is(amount)) => Some(Recovery::Drip {
                amount: Tokens(amount),
            }),
            (_, Found::Is(1..)) => {
                self.report_key(
                    given,
                    "a limit drips or resets, never both, and this one resets",
                    "leave it out: it is 0 for a limit that resets",
                );
                None
            }
            (_, Found::Wrong) => None,
            (resets, _) => resets.ok(),
        }
    }
}

pub(super) fn tokens<'t>(reader: &mut Reader<'t>, node: &'t Node<'t>) -> Found<Tokens> {
    reader.whole(node, 1, Tokens::MAX.0).map(Tokens)
}

pub(super) fn seconds<'t>(reader: &mut Reader<'t>, node: &'t Node<'t>) -> Found<Seconds> {
    reader.whole(node, 1, Seconds::MAX.0).map(Seconds)
}
