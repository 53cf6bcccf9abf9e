//! Seeded random schedules and limits, as a manifest declares them and as we hold them.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use zae_limits::model::{
    Cron, Limit, LimitName, Modifier, Recovery, ScaleMillis, ScheduleEntry, Seconds, Tokens,
};

/// Random schedules, the same ones at every run.
pub struct Source(pub StdRng);

impl Source {
    pub fn new(seed: u64) -> Source {
        Source(StdRng::seed_from_u64(seed))
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from.choose(&mut self.0).copied().unwrap_or_default()
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.0.random_ratio(1, n)
    }

    fn number(&mut self, max: u32, names: &[&'static str]) -> String {
        if !names.is_empty() && self.one_in(3) {
            return self.pick(names).to_owned();
        }
        let least = u32::from(!self.one_in(40));
        let number = self.0.random_range(least..=max);
        if self.one_in(12) {
            format!("{number:02}")
        } else {
            number.to_string()
        }
    }

    /// A range, at times backwards.
    fn range(&mut self, max: u32, names: &[&'static str]) -> String {
        let (a, b) = (self.number(max, names), self.number(max, names));
        match (a.parse::<u32>(), b.parse::<u32>()) {
            (Ok(first), Ok(last)) if first > last && !self.one_in(10) => format!("{b}-{a}"),
            _ => format!("{a}-{b}"),
        }
    }

    /// A field, mostly valid: numbers may be out of range and ranges backwards.
    fn field(&mut self, max: u32, names: &[&'static str]) -> String {
        if self.one_in(3) {
            return "*".to_owned();
        }
        let items = (0..self.0.random_range(1..=3)).map(|_| {
            let term = match self.0.random_range(0..4) {
                0 => "*".to_owned(),
                1 => self.number(max, names),
                _ => self.range(max, names),
            };
            match self.0.random_range(0..6) {
                0 => format!("{term}/{}", self.0.random_range(0..=12)),
                1 => format!("{term}/{}", self.0.random_range(1..=90)),
                _ => term,
            }
        });
        items.collect::<Vec<_>>().join(",")
    }

    /// Five fields, mostly valid, at times spoiled by a character of cron's extensions.
    pub fn expression(&mut self) -> String {
        const MONTHS: [&str; 4] = ["JAN", "feb", "Jul", "DEC"];
        const WEEKDAYS: [&str; 8] = ["SUN", "sun", "Mon", "TUE", "WED", "thu", "FRI", "SAT"];
        let mut text = [
            self.field(59, &[]),
            self.field(23, &[]),
            self.field(31, &[]),
            self.field(12, &MONTHS),
            self.field(7, &WEEKDAYS),
        ]
        .join(self.pick(&[" ", "  ", "\t"]));
        if self.one_in(6) {
            let at = self.0.random_range(0..=text.len());
            text.insert_str(
                at,
                self.pick(&["L", "W", "#", "?", "-", "/", ",", "*", " ", "7"]),
            );
        }
        text
    }

    pub fn cron(&mut self) -> (String, Cron) {
        loop {
            let text = self.expression();
            if let Ok(cron) = Cron::parse(&text) {
                return (text, cron);
            }
        }
    }

    fn maybe(&mut self, max: u64) -> Option<u64> {
        self.one_in(2).then(|| self.0.random_range(1..=max))
    }

    /// A window as a manifest declares it, and as we hold it.
    pub fn entry(&mut self, may_refill: bool) -> (Value, ScheduleEntry) {
        let (text, cron) = self.cron();
        if self.one_in(2) {
            let factor = match self.0.random_range(0..4) {
                0 => f64::from(self.0.random_range(1..=4000u32)) / 1000.0,
                1 => f64::from(self.0.random_range(1..=4000u32)) / 2000.0,
                2 => self.0.random_range(1e-5..10.0),
                _ => self.0.random_range(1.0..=1e6),
            };
            let modifier = Modifier::Scale(ScaleMillis::from_factor(factor).expect("in range"));
            let declared = json!({"cron": text, "scale": factor});
            return (declared, ScheduleEntry { cron, modifier });
        }
        let capacity = self.maybe(1_000_000);
        let refill_amount = self.maybe(1_000_000).filter(|_| may_refill);
        let period = self
            .maybe(100_000)
            .or(capacity.or(refill_amount).is_none().then_some(90));
        let declared = json!({
            "cron": text, "capacity": capacity, "refill_amount": refill_amount,
            "refill_period_seconds": period,
        });
        let modifier = Modifier::Absolute {
            capacity: capacity.map(Tokens),
            refill_amount: refill_amount.map(Tokens),
            refill_period: period.map(Seconds),
        };
        (declared, ScheduleEntry { cron, modifier })
    }

    pub fn entries(&mut self) -> (Vec<Value>, Vec<ScheduleEntry>) {
        let count = self.0.random_range(1..=3);
        (0..count).map(|_| self.entry(true)).unzip()
    }

    /// A limit as the reference takes it, and as we hold it. Its scales are whole thousandths, since
    /// that is what clients read back and compute with.
    pub fn limit(&mut self, name: &LimitName) -> (Value, Limit) {
        let (declared, schedule): (Vec<_>, Vec<_>) = {
            let count = self.0.random_range(0..=2);
            (0..count).map(|_| self.entry(false)).unzip()
        };
        let (mut after, mut resets, mut amount) = (None, Vec::new(), 0);
        let recovery = match self.0.random_range(0..3) {
            0 => {
                after = Some(self.0.random_range(1..=1_000_000));
                Recovery::Window(Seconds(after.unwrap_or_default()))
            }
            1 => {
                let count = self.0.random_range(1..=3);
                let crons: Vec<_> = (0..count).map(|_| self.cron()).collect();
                resets = crons.iter().map(|(text, _)| text.clone()).collect();
                Recovery::Calendar(crons.into_iter().map(|(_, cron)| cron).collect())
            }
            _ => {
                amount = self.0.random_range(1..=10_000);
                Recovery::Drip {
                    amount: Tokens(amount),
                }
            }
        };
        let limit = Limit {
            capacity: Tokens(self.0.random_range(1..=1_000_000)),
            refill_period: Seconds(self.0.random_range(1..=86_400)),
            recovery,
            schedule,
            soft: false,
        };
        let schedule = declared
            .into_iter()
            .zip(&limit.schedule)
            .map(|(mut entry, ours)| {
                if let Modifier::Scale(scale) = ours.modifier {
                    entry["scale"] = json!(scale.factor());
                }
                entry
            });
        let declared = json!({
            "name": name, "capacity": limit.capacity, "refill_amount": amount,
            "refill_period": limit.refill_period, "schedule": schedule.collect::<Vec<_>>(),
            "reset_schedule": resets, "reset_after_seconds": after,
        });
        (declared, limit)
    }

    /// A stored schedule with one character changed, added or removed.
    pub fn damaged(&mut self, stored: &str) -> String {
        let mut text = stored.to_owned();
        let at = self.0.random_range(0..text.len());
        let found = match self.0.random_range(0..3) {
            0 => "".to_owned(),
            1 => text[at..=at].to_owned(),
            _ => text[at..=at].repeat(2),
        };
        let other = self.pick(&[
            "m", "h", "D", "M", "w", "s", "c", "a", "p", "1", "0", "-", "*", ";", "x", "L",
        ]);
        let replacement = if self.one_in(2) { other } else { &found };
        text.replace_range(at..=at, replacement);
        text
    }
}
