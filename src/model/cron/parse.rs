//! Reading cron's fields: numbers, names, ranges, steps and lists, and what is wrong with a text.
//!
//! Takes one field at a time. What the five fields mean together is the parent's subject.

use super::Field;
use thiserror::Error;

/// What a field is called, the numbers it takes and the names that stand for them.
#[derive(Debug)]
pub(super) struct Kind {
    name: &'static str,
    min: u8,
    max: u8,
    /// Three-letter names in upper case; the first one stands for `first_name`.
    names: &'static [&'static str],
    first_name: u8,
}

pub(super) const MINUTE: Kind = Kind {
    name: "minute",
    min: 0,
    max: 59,
    names: &[],
    first_name: 0,
};
pub(super) const HOUR: Kind = Kind {
    name: "hour",
    min: 0,
    max: 23,
    names: &[],
    first_name: 0,
};
pub(super) const DAY_OF_MONTH: Kind = Kind {
    name: "day-of-month",
    min: 1,
    max: 31,
    names: &[],
    first_name: 0,
};
pub(super) const MONTH: Kind = Kind {
    name: "month",
    min: 1,
    max: 12,
    names: &[
        "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
    ],
    first_name: 1,
};
/// Sunday is 0 and 7 in what is read, and 7 in [`Field::matches`].
pub(super) const DAY_OF_WEEK: Kind = Kind {
    name: "day-of-week",
    min: 0,
    max: 7,
    names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
    first_name: 0,
};

const SUNDAY: u8 = 7;

/// Reads one field, a list of items.
pub(super) fn parse_field(kind: &'static Kind, spec: &str) -> Result<Field, CronError> {
    let mut values = 0;
    let mut canonical = String::with_capacity(spec.len());
    for item in spec.split(',') {
        if item.is_empty() {
            return Err(CronError::EmptyItem {
                field: kind.name,
                spec: spec.into(),
            });
        }
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
    /// A comma with nothing before or after it.
    #[error("the list {spec:?} of the {field} field has an empty item: remove the comma")]
    EmptyItem {
        /// The field's name.
        field: &'static str,
        /// The list.
        spec: Box<str>,
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
    #[error("the day-of-month {days} is in none of the months {months}: name a date that exists")]
    NoSuchDate {
        /// The day-of-month field.
        days: Box<str>,
        /// The month field.
        months: Box<str>,
    },
}

impl CronError {
    pub(super) fn field_count(found: usize) -> CronError {
        let remedy = match found {
            6 => "; a field of seconds or years is not supported, leave it out",
            0..=4 => "; write * for each one that is missing",
            _ => "; leave out what is too much",
        };
        CronError::FieldCount { found, remedy }
    }

    pub(super) fn nickname(text: &str) -> CronError {
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
