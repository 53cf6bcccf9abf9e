//! Cron: five fields that say in which minutes a window is open, or when a quota resets.
//!
//! The spelling kept here is the one the table stores: names are numbers, a stand-alone Sunday is
//! 7, everything else is as it was written. Clients of the table parse that spelling again, so what
//! they refuse is refused here (docs/adr/0003-cron-parsing.md). Nothing here knows a zone, a clock or
//! the compact form.

mod parse;

pub use parse::CronError;
use parse::{DAY_OF_MONTH, DAY_OF_WEEK, HOUR, MINUTE, MONTH, parse_field};
use std::fmt;
use std::str::FromStr;

/// One field of a cron expression.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Field {
    spec: Box<str>,
    /// Bit `n` is set when the field matches the number `n`.
    values: u64,
}

impl Field {
    /// The canonical spelling, `*` for a wildcard.
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// Whether the field is a plain `*`, which the table leaves out.
    pub fn is_wildcard(&self) -> bool {
        &*self.spec == "*"
    }

    /// Whether the field matches this number: a minute, an hour, a day, a month from 1, or a
    /// weekday from Monday 1 to Sunday 7.
    pub fn matches(&self, number: u8) -> bool {
        number < 64 && self.values >> number & 1 == 1
    }

    /// Every number that the field matches, ascending.
    pub fn values(&self) -> impl Iterator<Item = u8> + '_ {
        (0..64).filter(|number| self.matches(*number))
    }

    /// How many numbers the field matches.
    fn count(&self) -> u32 {
        self.values.count_ones()
    }
}

/// A five-field cron expression in canonical form: names as numbers, a stand-alone Sunday as 7.
///
/// Two expressions are equal when the table stores the same bytes for them: `MON-FRI` and `1-5`
/// are, `0-59` and `*` are not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cron {
    fields: [Field; 5],
}

impl Cron {
    /// Reads `minute hour day-of-month month day-of-week`, with any amount of blanks between.
    ///
    /// # Errors
    /// [`CronError`] says which field and which part of it, and what to write instead.
    pub fn parse(text: &str) -> Result<Cron, CronError> {
        if let Some(nickname) = text.trim_start().strip_prefix('@') {
            return Err(CronError::nickname(nickname));
        }
        let specs: Vec<&str> = text.split_whitespace().collect();
        let &[minute, hour, day, month, weekday] = specs.as_slice() else {
            return Err(CronError::field_count(specs.len()));
        };
        let cron = Cron {
            fields: [
                parse_field(&MINUTE, minute)?,
                parse_field(&HOUR, hour)?,
                parse_field(&DAY_OF_MONTH, day)?,
                parse_field(&MONTH, month)?,
                parse_field(&DAY_OF_WEEK, weekday)?,
            ],
        };
        cron.check_dates()?;
        Ok(cron)
    }

    /// The five fields, in the order they are written.
    pub fn fields(&self) -> &[Field; 5] {
        &self.fields
    }

    /// Minutes, 0 to 59.
    pub fn minute(&self) -> &Field {
        &self.fields[0]
    }

    /// Hours, 0 to 23.
    pub fn hour(&self) -> &Field {
        &self.fields[1]
    }

    /// Days of the month, 1 to 31.
    pub fn day_of_month(&self) -> &Field {
        &self.fields[2]
    }

    /// Months, 1 to 12.
    pub fn month(&self) -> &Field {
        &self.fields[3]
    }

    /// Days of the week, Monday 1 to Sunday 7.
    pub fn day_of_week(&self) -> &Field {
        &self.fields[4]
    }

    /// Whether a day must satisfy both day fields. Otherwise one of them is enough.
    ///
    /// A field that starts with `*`, such as `*/2`, counts as unrestricted.
    pub fn joins_days_with_and(&self) -> bool {
        self.day_of_month().spec().starts_with('*') || self.day_of_week().spec().starts_with('*')
    }

    /// Whether a day satisfies the day fields.
    ///
    /// `day_of_month` counts from 1, `day_of_week` from Monday 1 to Sunday 7.
    pub fn matches_day(&self, day_of_month: u8, day_of_week: u8) -> bool {
        let by_month = self.day_of_month().matches(day_of_month);
        let by_week = self.day_of_week().matches(day_of_week);
        if self.joins_days_with_and() {
            by_month && by_week
        } else {
            by_month || by_week
        }
    }

    /// Whether months, days of the month, days of the week, hours and minutes are restricted, the
    /// coarsest first. `1-12` restricts no month, `*/2` does.
    pub fn restricts(&self) -> Restricted {
        Restricted {
            months: self.month().count() < 12,
            days_of_month: self.day_of_month().count() < 31,
            days_of_week: self.day_of_week().count() < 7,
            hours: self.hour().count() < 24,
            minutes: self.minute().count() < 60,
        }
    }

    /// Whether the expression matches every minute there is. It then never starts to match, so as
    /// a reset it never fires.
    pub fn is_always_open(&self) -> bool {
        let restricted = self.restricts();
        let days = if self.joins_days_with_and() {
            restricted.days_of_month || restricted.days_of_week
        } else {
            restricted.days_of_month && restricted.days_of_week
        };
        !(restricted.months || days || restricted.hours || restricted.minutes)
    }

    /// Refuses dates that no year has, as clients do: the 30th of February, the 31st of April.
    fn check_dates(&self) -> Result<(), CronError> {
        const LONGEST: [u8; 13] = [0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let first_day = self.day_of_month().values().next().unwrap_or(1);
        let exists = self
            .month()
            .values()
            .any(|month| first_day <= LONGEST[usize::from(month)]);
        // A weekday can open the window by itself when either day field is enough.
        if exists || !self.joins_days_with_and() {
            return Ok(());
        }
        Err(CronError::NoSuchDate {
            days: self.day_of_month().spec().into(),
            months: self.month().spec().into(),
        })
    }
}

/// Which fields of a cron expression leave something out. Made by [`Cron::restricts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restricted {
    /// Some months never match.
    pub months: bool,
    /// Some days of the month never match.
    pub days_of_month: bool,
    /// Some days of the week never match.
    pub days_of_week: bool,
    /// Some hours never match.
    pub hours: bool,
    /// Some minutes never match.
    pub minutes: bool,
}

impl fmt::Display for Cron {
    /// The five fields, one blank between each: `* 9-17 * * 1-5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [minute, hour, day, month, weekday] = &self.fields;
        write!(f, "{minute} {hour} {day} {month} {weekday}")
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spec)
    }
}

impl FromStr for Cron {
    type Err = CronError;
    fn from_str(text: &str) -> Result<Cron, CronError> {
        Cron::parse(text)
    }
}
