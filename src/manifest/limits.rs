//! Limits: what a level says under `limits`, with the rules that join several keys.
//!
//! How a bucket recovers is decided here and nowhere else in the manifest: it drips or it resets,
//! never both, never neither. What a cron expression or a zone may be is the model's.

use super::problem::Step;
use super::reader::{Found, Given, Keys, Reader, Spelled};
use super::tree::{Node, Place, Value};
use crate::model::{
    Cron, Limit, LimitName, Modifier, Recovery, ScaleMillis, ScheduleEntry, Seconds, Tokens, Zone,
};
use std::collections::BTreeMap;

const CAPACITY: Spelled = Spelled("capacity", "Capacity");
const REFILL_AMOUNT: Spelled = Spelled("refill_amount", "RefillAmount");
const REFILL_PERIOD: Spelled = Spelled("refill_period", "RefillPeriod");
const BURST: Spelled = Spelled("burst", "Burst");
const SCHEDULE: Spelled = Spelled("schedule", "Schedule");
const RESET_SCHEDULE: Spelled = Spelled("reset_schedule", "ResetSchedule");
const RESET_AFTER: Spelled = Spelled("reset_after_seconds", "ResetAfterSeconds");
const SOFT: Spelled = Spelled("soft", "Soft");
const CRON: Spelled = Spelled("cron", "Cron");
const TZ: Spelled = Spelled("tz", "Tz");
const SCALE: Spelled = Spelled("scale", "Scale");
const ENTRY_PERIOD: Spelled = Spelled("refill_period_seconds", "RefillPeriodSeconds");

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
const WINDOW: Keys<6> = Keys {
    known: [CRON, TZ, SCALE, CAPACITY, REFILL_AMOUNT, ENTRY_PERIOD],
    elsewhere: &[],
};
const NO_MODIFIER: Spelled = Spelled(
    "a reset has `cron` and `tz` only: it fills the bucket and changes nothing else",
    "a reset has `Cron` and `Tz` only: it fills the bucket and changes nothing else",
);
const RESET: Keys<2> = Keys {
    known: [CRON, TZ],
    elsewhere: &[
        (SCALE, NO_MODIFIER),
        (CAPACITY, NO_MODIFIER),
        (REFILL_AMOUNT, NO_MODIFIER),
        (ENTRY_PERIOD, NO_MODIFIER),
    ],
};

/// The one zone that every schedule of a level is counted in.
#[derive(Debug, Default)]
pub(super) struct LevelZone(Option<(Zone, Place)>);

impl LevelZone {
    pub(super) fn into_zone(self) -> Option<Zone> {
        self.0.map(|(zone, _)| zone)
    }
}

impl<'t> Reader<'t> {
    /// The limits of one level. A limit with a problem is left out.
    pub(super) fn limits(
        &mut self,
        node: &'t Node<'t>,
        zone: &mut LevelZone,
    ) -> BTreeMap<LimitName, Limit> {
        let mut limits = BTreeMap::new();
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
        if stated.is_absent() {
            let name = capacity.name;
            let at = capacity.place().unwrap_or(node.place);
            self.report_with(
                at,
                format!("`{name}` is required"),
                format!("add `{name}`: the most tokens the bucket holds"),
            );
            return None;
        }
        let stated = stated.ok();
        burst.or(stated?).filter(|_| stated.is_some())
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
                let at = after.place().unwrap_or_default();
                let other = calendar.name;
                self.within(Step::Key(after.name), |reader| {
                    reader.report_with(
                        at,
                        format!("excludes `{other}`: a limit resets in one way"),
                        "keep one of the two",
                    );
                });
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
        let at = given.place().unwrap_or_default();
        match (resets, amount) {
            (Found::Absent, Found::Absent) => Some(Recovery::Drip { amount: capacity? }),
            (Found::Absent, Found::Is(0)) => {
                let calendar = self.spelled(RESET_SCHEDULE);
                let after = self.spelled(RESET_AFTER);
                self.within(Step::Key(given.name), |reader| {
                    reader.report_with(
                        at,
                        "0 means that the limit does not drip, and it does not reset either",
                        format!("give an amount, or add `{calendar}` or `{after}`"),
                    );
                });
                None
            }
            (Found::Absent, Found::Is(amount)) => Some(Recovery::Drip {
                amount: Tokens(amount),
            }),
            (_, Found::Is(1..)) => {
                self.within(Step::Key(given.name), |reader| {
                    reader.report_with(
                        at,
                        "a limit drips or resets, never both, and this one resets",
                        "leave it out: it is 0 for a limit that resets",
                    );
                });
                None
            }
            (_, Found::Wrong) => None,
            (resets, _) => resets.ok(),
        }
    }

    fn window(
        &mut self,
        node: &'t Node<'t>,
        resets: bool,
        zone: &mut LevelZone,
    ) -> Option<ScheduleEntry> {
        let [cron, tz, scale, capacity, amount, period] = self.fields(node, &WINDOW)?;
        let cron = self.cron(node, &cron);
        self.zone(node, &tz, zone);
        let factor = self.read(&scale, Reader::scale);
        let absolute = (
            self.read(&capacity, tokens),
            self.read(&amount, tokens),
            self.read(&period, seconds),
        );
        if resets && let (false, Some(at)) = (absolute.1.is_absent(), amount.place()) {
            self.within(Step::Key(amount.name), |reader| {
                reader.report_with(
                    at,
                    "a limit that resets does not drip, in a window either",
                    "leave it out",
                );
            });
        }
        let changes_nothing =
            absolute.0.is_absent() && absolute.1.is_absent() && absolute.2.is_absent();
        let modifier = match (factor, changes_nothing) {
            (Found::Absent, true) => {
                self.report(
                    node.place,
                    format!(
                        "the entry changes nothing: it needs `{}`, or any of `{}`, `{}` and `{}`",
                        scale.name, capacity.name, amount.name, period.name
                    ),
                );
                return None;
            }
            (Found::Absent, false) => Modifier::Absolute {
                capacity: optional(absolute.0)?,
                refill_amount: optional(absolute.1)?,
                refill_period: optional(absolute.2)?,
            },
            (_, false) => {
                let at = scale.place().unwrap_or(node.place);
                self.within(Step::Key(scale.name), |reader| {
                    reader.report_with(
                        at,
                        format!(
                            "excludes `{}`, `{}` and `{}`",
                            capacity.name, amount.name, period.name
                        ),
                        "scale the limit or give its values, not both",
                    );
                });
                return None;
            }
            (factor, true) => Modifier::Scale(factor.ok()?),
        };
        Some(ScheduleEntry {
            cron: cron?,
            modifier,
        })
    }

    fn reset(&mut self, node: &'t Node<'t>, zone: &mut LevelZone) -> Option<Cron> {
        let [cron, tz] = self.fields(node, &RESET)?;
        let parsed = self.cron(node, &cron);
        self.zone(node, &tz, zone);
        let parsed = parsed?;
        if parsed.is_always_open() {
            let at = cron.place().unwrap_or(node.place);
            self.within(Step::Key(cron.name), |reader| {
                reader.report_with(
                    at,
                    "a reset that matches every minute never starts to match, so it never resets",
                    "name the minute at which it does, such as 0 0 * * *",
                );
            });
            return None;
        }
        Some(parsed)
    }

    /// A list in which each item has its own index in paths. One bad item spoils the list, and the
    /// others are still read.
    fn all<T>(
        &mut self,
        node: &'t Node<'t>,
        mut read: impl FnMut(&mut Self, &'t Node<'t>) -> Option<T>,
    ) -> Found<Vec<T>> {
        let Some(items) = self.list(node) else {
            return Found::Wrong;
        };
        let mut all = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            all.extend(self.within(Step::Index(index), |reader| read(reader, item)));
        }
        if all.len() == items.len() {
            Found::Is(all)
        } else {
            Found::Wrong
        }
    }

    fn cron(&mut self, node: &Node<'_>, given: &Given<'t>) -> Option<Cron> {
        let found = self.read(given, |reader, node| {
            let Found::Is(text) = reader.text(node) else {
                return Found::Wrong;
            };
            match Cron::parse(text) {
                Ok(cron) => Found::Is(cron),
                Err(error) => {
                    reader.report(node.place, error.to_string());
                    Found::Wrong
                }
            }
        });
        if found.is_absent() {
            let name = given.name;
            self.report_with(
                given.place().unwrap_or(node.place),
                format!("`{name}` is required"),
                format!("add `{name}`: minute, hour, day of month, month, day of week"),
            );
        }
        found.ok()
    }

    /// Reads the zone of an entry and holds it against the zone of the level.
    fn zone(&mut self, node: &Node<'_>, given: &Given<'t>, level: &mut LevelZone) {
        let found = self.read(given, |reader, node| {
            let Found::Is(text) = reader.text(node) else {
                return Found::Wrong;
            };
            match Zone::parse(text) {
                Ok(zone) => Found::Is(zone),
                Err(error) => {
                    reader.report(node.place, error.to_string());
                    Found::Wrong
                }
            }
        });
        let at = given.place().unwrap_or(node.place);
        let Some(zone) = found.or(Zone::default()) else {
            return;
        };
        let Some((first, place)) = &level.0 else {
            level.0 = Some((zone, at));
            return;
        };
        if *first != zone {
            let line = match place.known() {
                Some(place) => format!(" (line {})", place.line),
                None => String::new(),
            };
            let message =
                format!("the zone is {zone}, and another schedule of this level has {first}{line}");
            self.within(Step::Key(given.name), |reader| {
                reader.report_with(at, message, "all schedules of one level share one zone");
            });
        }
    }

    fn scale(&mut self, node: &'t Node<'t>) -> Found<ScaleMillis> {
        let factor = match self.number(node) {
            Found::Is(factor) => factor,
            Found::Absent => return Found::Absent,
            Found::Wrong => return Found::Wrong,
        };
        match ScaleMillis::from_factor(factor) {
            Ok(scale) => Found::Is(scale),
            Err(error) => {
                let found = self.describe(node);
                self.report(node.place, format!("{error} (found {found})"));
                Found::Wrong
            }
        }
    }
}

fn tokens<'t>(reader: &mut Reader<'t>, node: &'t Node<'t>) -> Found<Tokens> {
    reader.whole(node, 1, Tokens::MAX.0).map(Tokens)
}

fn seconds<'t>(reader: &mut Reader<'t>, node: &'t Node<'t>) -> Found<Seconds> {
    reader.whole(node, 1, Seconds::MAX.0).map(Seconds)
}

/// `Some(None)` when nothing was given, `None` after a problem.
fn optional<T>(found: Found<T>) -> Option<Option<T>> {
    found.map(Some).or(None)
}
