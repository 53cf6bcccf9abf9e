//! The entries of `schedule` and `reset_schedule`: cron, zone, and what a window changes.
//!
//! What a cron expression, a zone or a scale may be is the model's to say; here they get their place.

use super::keys::{Found, Given, Keys, Spelled};
use super::limits::{CAPACITY, REFILL_AMOUNT, seconds, tokens};
use super::problem::Step;
use super::reader::Reader;
use super::tree::{Node, Place};
use crate::model::{Cron, Modifier, ScaleMillis, ScheduleEntry, Seconds, Tokens, Zone};

pub(super) const CRON: Spelled = Spelled("cron", "Cron");
pub(super) const TZ: Spelled = Spelled("tz", "Tz");
pub(super) const SCALE: Spelled = Spelled("scale", "Scale");
pub(super) const ENTRY_PERIOD: Spelled = Spelled("refill_period_seconds", "RefillPeriodSeconds");

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
    pub(super) fn window(
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
        if resets && !absolute.1.is_absent() {
            self.report_key(
                &amount,
                "a limit that resets does not drip, in a window either",
                "leave it out",
            );
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
                None
            }
            (Found::Absent, false) => absolute_modifier(absolute),
            (factor, true) => factor.ok().map(Modifier::Scale),
            (_, false) => {
                self.report_key(
                    &scale,
                    format!(
                        "excludes `{}`, `{}` and `{}`",
                        capacity.name, amount.name, period.name
                    ),
                    "scale the limit or give its values, not both",
                );
                None
            }
        };
        Some(ScheduleEntry {
            cron: cron?,
            modifier: modifier?,
        })
    }

    pub(super) fn reset(&mut self, node: &'t Node<'t>, zone: &mut LevelZone) -> Option<Cron> {
        let [cron, tz] = self.fields(node, &RESET)?;
        let parsed = self.cron(node, &cron);
        self.zone(node, &tz, zone);
        let parsed = parsed?;
        if parsed.is_always_open() {
            self.report_key(
                &cron,
                "a reset that matches every minute never starts to match, so it never resets",
                "name the minute at which it does, such as 0 0 * * *",
            );
            return None;
        }
        Some(parsed)
    }

    /// A list in which each item has its own index in paths. One bad item spoils the list, and the
    /// others are still read.
    pub(super) fn all<T>(
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
        let found = self.read(given, |reader, node| reader.parsed(node, Cron::parse));
        let what = "minute, hour, day of month, month, day of week";
        self.required(node, given, found, what)
    }

    /// Reads the zone of an entry and holds it against the zone of the level.
    fn zone(&mut self, node: &Node<'_>, given: &Given<'t>, level: &mut LevelZone) {
        let found = self.read(given, |reader, node| reader.parsed(node, Zone::parse));
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

/// What a window sets, unless one of the values is wrong.
fn absolute_modifier(
    (capacity, refill_amount, refill_period): (Found<Tokens>, Found<Tokens>, Found<Seconds>),
) -> Option<Modifier> {
    Some(Modifier::Absolute {
        capacity: optional(capacity)?,
        refill_amount: optional(refill_amount)?,
        refill_period: optional(refill_period)?,
    })
}

/// `Some(None)` when nothing was given, `None` after a problem.
fn optional<T>(found: Found<T>) -> Option<Option<T>> {
    found.map(Some).or(None)
}
