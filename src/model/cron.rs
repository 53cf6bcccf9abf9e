//! Cron: five fields that say in which minutes a window is open, or when a quota resets.
//!
//! The spelling kept here is the one the table stores: names are numbers, a stand-alone Sunday is
//! 7, everything else is as it was written. Clients of the table parse that spelling again, so what
//! they refuse is refused here (docs/adr/0003-cron-parsing.md). Nothing here knows a zone, a clock or
//! the compact form.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// What a field is called, the numbers it takes and the names that stand for them.
#[derive(Debug)]
struct Kind {
    name: &'static str,
    min: u8,
    max: u8,
    /// Three-letter names in upper case; the first one stands for `first_name`.
    names: &'static [&'static str],
    first_name: u8,
}

const MINUTE: Kind = Kind {
    name: "minute",
    min: 0,
    max: 59,
    names: &[],
    first_name: 0,
};
const HOUR: Kind = Kind {
    name: "hour",
    min: 0,
    max: 23,
    names: &[],
    first_name: 0,
};
const DAY_OF_MONTH: Kind = Kind {
    name: "day-of-month",
    min: 1,
    max: 31,
    names: &[],
    first_name: 0,
};
const MONTH: Kind = Kind {
    name: "month",
    min: 1,
    max: 12,
    names: &[
        "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
    ],
    first_name: 1,
};
/// Sunday is 0 and 7 in what is read, and 7 in [`Field::matches`].
const DAY_OF_WEEK: Kind = Kind {
    name: "day-of-week",
    min: 0,
    max: 7,
    names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
    first_name: 0,
};

const SUNDAY: u8 = 7;

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

fn parse_field(kind: &'static Kind, spec: &str) -> Result<Field, CronError> {
    let mut values = 0;
    let mut canonical = String::with_capacity(spec.len());
    for item in spec.split(',') {
        let item = parse_item(kind, item)?;
        if !canonical.is_empty() {
            canonical.push(',');
        }
        canonical.push_str(&item.spec);
        values |= item.values;
    }
    // Sunday has two numbers; what matches is asked with one.
    if kind.max == SUNDAY && values & 1 == 1 {
        values = values & !1 | 1 << SUNDAY;
    }
    Ok(Field {
        spec: canonical.into(),
        values,
    })
}

/// Reads one item of a list: `*`, a number, a range, or either with a step.
fn parse_item(kind: &'static Kind, item: &str) -> Result<Field, CronError> {
    let (term, step) = match item.split_once('/') {
        Some((term, step)) => (term, Some(step)),
        None => (item, None),
    };
    let (first, last, mut spec) = if term == "*" {
        (kind.min, kind.max, "*".to_owned())
    } else if let Some((first, last)) = term.split_once('-') {
        let first = parse_number(kind, item, first)?;
        let last = parse_number(kind, item, last)?;
        if last.value < first.value {
            return Err(CronError::backwards(kind, item, last.value));
        }
        (
            first.value,
            last.value,
            format!("{}-{}", first.spec, last.spec),
        )
    } else {
        let number = parse_number(kind, item, term)?;
        let mut spec = number.spec;
        if kind.max == SUNDAY && step.is_none() && spec == "0" {
            spec = SUNDAY.to_string();
        }
        (number.value, number.value, spec)
    };
    let values = match step {
        None => span(first, last, 1),
        Some(text) => {
            spec.push('/');
            spec.push_str(text);
            // One number with a step runs to the end of the field: `5/20` is `5-59/20`.
            let last = if first == last { kind.max } else { last };
            span(first, last, parse_step(kind, item, text)?)
        }
    };
    Ok(Field {
        spec: spec.into(),
        values,
    })
}

/// The bits from `first` to `last`, every `step` of them.
fn span(first: u8, last: u8, step: usize) -> u64 {
    (first..=last)
        .step_by(step)
        .fold(0, |bits, n| bits | 1 << n)
}

struct Number {
    value: u8,
    spec: String,
}

/// Reads a number or a name. Names become numbers, and Sunday becomes 0; digits stay as written.
fn parse_number(kind: &'static Kind, item: &str, text: &str) -> Result<Number, CronError> {
    let named = kind.names.iter().zip(kind.first_name..);
    if let Some((_, value)) = named.clone().find(|(n, _)| n.eq_ignore_ascii_case(text)) {
        return Ok(Number {
            value,
            spec: value.to_string(),
        });
    }
    let Some(number) = digits(text) else {
        return Err(CronError::not_a_number(kind, item, text));
    };
    match u8::try_from(number) {
        Ok(value) if (kind.min..=kind.max).contains(&value) => Ok(Number {
            value,
            spec: text.to_owned(),
        }),
        _ => Err(CronError::OutOfRange {
            field: kind.name,
            found: text.into(),
            min: kind.min,
            max: kind.max,
        }),
    }
}

fn parse_step(kind: &'static Kind, item: &str, text: &str) -> Result<usize, CronError> {
    match digits(text) {
        // A step beyond the field is read as clients read it: the first number alone.
        Some(step) if step > 0 => Ok(usize::try_from(step).unwrap_or(usize::MAX)),
        _ => Err(CronError::Step {
            field: kind.name,
            item: item.into(),
        }),
    }
}

/// A run of ASCII digits as a number; `u64::MAX` for one that is larger. `None` for anything else.
fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Why a text is not a cron expression that clients of the table can read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CronError {
    /// The text has another number of fields.
    #[error(
        "a cron expression has 5 fields (minute hour day-of-month month day-of-week), and this \
         one has {found}{remedy}"
    )]
    FieldCount {
        /// Fields found.
        found: usize,
        /// What to do, with its leading separator.
        remedy: &'static str,
    },
    /// A nickname such as `@daily`.
    #[error("the nickname @{found} is not supported: {remedy}")]
    Nickname {
        /// The nickname, without its `@`.
        found: Box<str>,
        /// What to write instead.
        remedy: &'static str,
    },
    /// `L`, `W`, `#` or `?`.
    #[error("{token} in the {field} field ({item:?}) is not supported: {remedy}")]
    Extension {
        /// The field's name.
        field: &'static str,
        /// The item that holds the token.
        item: Box<str>,
        /// The token.
        token: &'static str,
        /// What to write instead.
        remedy: &'static str,
    },
    /// An item of a field is neither a number nor a name it knows.
    #[error("the {field} field cannot read {found:?} in {item:?}: {rule}")]
    NotANumber {
        /// The field's name.
        field: &'static str,
        /// The item.
        item: Box<str>,
        /// The part of it that cannot be read; may be empty.
        found: Box<str>,
        /// What the field takes.
        rule: &'static str,
    },
    /// A number is outside the field.
    #[error("the {field} field goes from {min} to {max}, and {found} is outside")]
    OutOfRange {
        /// The field's name.
        field: &'static str,
        /// The number as written.
        found: Box<str>,
        /// The least number.
        min: u8,
        /// The greatest number.
        max: u8,
    },
    /// A range ends before it starts.
    #[error("the range {item:?} of the {field} field ends before it starts: {remedy}")]
    Backwards {
        /// The field's name.
        field: &'static str,
        /// The range.
        item: Box<str>,
        /// What to write instead.
        remedy: &'static str,
    },
    /// What follows a `/` is not a number of at least 1.
    #[error("the step of {item:?} in the {field} field must be a whole number of at least 1")]
    Step {
        /// The field's name.
        field: &'static str,
        /// The item.
        item: Box<str>,
    },
    /// No month that is listed has a day that is listed.
    #[error("no month of {months:?} has a day of {days:?}: name a date that exists")]
    NoSuchDate {
        /// The day-of-month field.
        days: Box<str>,
        /// The month field.
        months: Box<str>,
    },
}

impl CronError {
    fn field_count(found: usize) -> CronError {
        let remedy = match found {
            6 => "; a field of seconds or years is not supported, leave it out",
            0..=4 => "; write * for each one that is missing",
            _ => "; leave out what is too much",
        };
        CronError::FieldCount { found, remedy }
    }

    fn nickname(text: &str) -> CronError {
        let found = text.split_whitespace().next().unwrap_or_default();
        let remedy = match found.to_ascii_lowercase().as_str() {
            "yearly" | "annually" => "write 0 0 1 1 *",
            "monthly" => "write 0 0 1 * *",
            "weekly" => "write 0 0 * * SUN",
            "daily" | "midnight" => "write 0 0 * * *",
            "hourly" => "write 0 * * * *",
            _ => "write the five fields: minute hour day-of-month month day-of-week",
        };
        CronError::Nickname {
            found: found.into(),
            remedy,
        }
    }

    fn backwards(kind: &Kind, item: &str, last: u8) -> CronError {
        let remedy = if kind.max == SUNDAY && last == 0 {
            "a range that ends on Sunday ends with 7, such as FRI-7"
        } else {
            "write two items, such as 22-23,0-6 for the hours of a night"
        };
        CronError::Backwards {
            field: kind.name,
            item: item.into(),
            remedy,
        }
    }

    fn not_a_number(kind: &Kind, item: &str, found: &str) -> CronError {
        let has = |letter: char| found.contains([letter, letter.to_ascii_lowercase()]);
        let in_month = kind.name == DAY_OF_MONTH.name;
        let in_week = kind.name == DAY_OF_WEEK.name;
        let last = found.strip_suffix(['L', 'l']);
        let is_last_weekday = last.is_some_and(|day| day.is_empty() || digits(day).is_some())
            || last.is_some_and(|day| kind.names.iter().any(|n| n.eq_ignore_ascii_case(day)));
        let extension = if found.contains('#') {
            Some(("#", "name days of the month, such as 8-14"))
        } else if in_month && has('W') {
            Some(("W", "name plain days of the month, such as 15"))
        } else if in_month && has('L') {
            Some(("L", "name plain days of the month, such as 28"))
        } else if in_week && is_last_weekday {
            Some(("L", "name plain weekdays, such as FRI"))
        } else if found.contains('?') {
            Some(("?", "write * instead"))
        } else {
            None
        };
        if let Some((token, remedy)) = extension {
            return CronError::Extension {
                field: kind.name,
                item: item.into(),
                token,
                remedy,
            };
        }
        let rule = match kind.names.first() {
            Some(&"JAN") => {
                "write 1 to 12 or JAN to DEC, ranges as 1-6, lists as 1,7, steps as */3"
            }
            Some(_) => "write 0 to 7 or SUN to SAT, ranges as 1-5, lists as 6,7, steps as */2",
            None => "write *, numbers, ranges as 1-5, lists as 1,5, steps as */5",
        };
        CronError::NotANumber {
            field: kind.name,
            item: item.into(),
            found: found.into(),
            rule,
        }
    }
}
