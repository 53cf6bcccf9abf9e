//! The compact form of schedules: `* 9-17 * * MON-FRI` at half scale is `1h9-17w1-5s500`.
//!
//! Both directions, for windows and for resets, of the form that clients of the table read and
//! write (version 1). What a cron expression may say is [`Cron`]'s subject and which zone it is
//! counted in is the item's; nothing here knows either.

use crate::model::{
    Cron, CronError, LimitError, Modifier, ScaleError, ScaleMillis, ScheduleEntry, Seconds, Tokens,
};
use std::fmt::Write;
use thiserror::Error;

/// The version of the form, its first byte.
const VERSION: char = '1';

/// The tags of the five fields, in cron's order.
const FIELDS: [char; 5] = ['m', 'h', 'D', 'M', 'w'];

/// The tags of the modifiers: scale, capacity, refill amount, refill period.
const MODIFIERS: [char; 4] = ['s', 'c', 'a', 'p'];

/// Writes the windows of one limit. No windows are the empty text, which is not stored.
///
/// The entries have passed [`Limit::check`](crate::model::Limit::check): one that changes nothing
/// cannot be read back.
pub fn encode(entries: &[ScheduleEntry]) -> String {
    join(entries, |text, entry| {
        push_cron(text, &entry.cron);
        match entry.modifier {
            Modifier::Scale(scale) => push(text, 's', Some(scale.millis())),
            Modifier::Absolute {
                capacity,
                refill_amount,
                refill_period,
            } => {
                push(text, 'c', capacity.map(|c| c.0));
                push(text, 'a', refill_amount.map(|a| a.0));
                push(text, 'p', refill_period.map(|p| p.0));
            }
        }
    })
}

/// Writes the resets of one limit. No resets are the empty text, which is not stored.
pub fn encode_reset(entries: &[Cron]) -> String {
    join(entries, push_cron)
}

/// Reads what [`encode`] wrote. The empty text is no windows, as clients read it.
///
/// # Errors
/// [`ScheduleError`] says what is wrong and in which entry.
pub fn decode(text: &str) -> Result<Vec<ScheduleEntry>, ScheduleError> {
    entries(text, |parts| {
        let entry = ScheduleEntry {
            cron: parts.cron()?,
            modifier: parts.modifier()?,
        };
        entry.check()?;
        Ok(entry)
    })
}

/// Reads what [`encode_reset`] wrote. The empty text is no resets, as clients read it.
///
/// # Errors
/// [`ScheduleError`] says what is wrong and in which entry; a modifier is an error here.
pub fn decode_reset(text: &str) -> Result<Vec<Cron>, ScheduleError> {
    entries(text, |parts| match parts.first_modifier() {
        Some(tag) => Err(EntryError::ModifierInReset { tag }),
        None => parts.cron(),
    })
}

fn join<T>(entries: &[T], mut push_entry: impl FnMut(&mut String, &T)) -> String {
    let mut text = String::new();
    for (entry, separator) in entries
        .iter()
        .zip([VERSION].into_iter().chain(std::iter::repeat(';')))
    {
        text.push(separator);
        push_entry(&mut text, entry);
    }
    text
}

fn push_cron(text: &mut String, cron: &Cron) {
    for (tag, field) in FIELDS.into_iter().zip(cron.fields()) {
        if !field.is_wildcard() {
            text.push(tag);
            text.push_str(field.spec());
        }
    }
}

fn push(text: &mut String, tag: char, value: Option<u64>) {
    if let Some(value) = value {
        // Writing to a String cannot fail.
        let _ = write!(text, "{tag}{value}");
    }
}

fn entries<T>(
    text: &str,
    read: impl Fn(Parts<'_>) -> Result<T, EntryError>,
) -> Result<Vec<T>, ScheduleError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let read_entry = |(entry, number)| {
        Parts::split(entry)
            .and_then(&read)
            .map_err(|problem| ScheduleError::Entry {
                number,
                entry: String::from(entry).into(),
                problem,
            })
    };
    body(text)?.split(';').zip(1..).map(read_entry).collect()
}

/// Checks and removes the version.
fn body(text: &str) -> Result<&str, ScheduleError> {
    let body = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let version = &text[..text.len() - body.len()];
    if version.is_empty() {
        return Err(ScheduleError::NoVersion { text: text.into() });
    }
    match version.trim_start_matches('0') {
        "1" if body.is_empty() => Err(ScheduleError::NoEntries),
        "1" => Ok(body),
        "" => Err(ScheduleError::VersionZero { text: text.into() }),
        higher => Err(ScheduleError::HigherVersion {
            found: higher.into(),
        }),
    }
}

/// The parts of one entry by their tags, which may stand in any order.
#[derive(Default)]
struct Parts<'a> {
    fields: [Option<&'a str>; FIELDS.len()],
    modifiers: [Option<&'a str>; MODIFIERS.len()],
}

impl<'a> Parts<'a> {
    fn split(entry: &'a str) -> Result<Parts<'a>, EntryError> {
        let mut parts = Parts::default();
        let mut rest = entry;
        while let Some(tag) = rest.chars().next() {
            let offset = entry.len() - rest.len();
            let Some(slot) = parts.slot(tag) else {
                return Err(EntryError::stray(tag, offset));
            };
            let after = &rest[tag.len_utf8()..];
            let end = after.find(|c| !is_value(c)).unwrap_or(after.len());
            let (value, next) = after.split_at(end);
            if value.is_empty() {
                return Err(EntryError::NoValue { tag, offset });
            }
            if slot.replace(value).is_some() {
                return Err(EntryError::DuplicateTag { tag, offset });
            }
            rest = next;
        }
        Ok(parts)
    }

    fn slot(&mut self, tag: char) -> Option<&mut Option<&'a str>> {
        let field = FIELDS.iter().position(|known| *known == tag);
        let modifier = MODIFIERS.iter().position(|known| *known == tag);
        match (field, modifier) {
            (Some(i), _) => self.fields.get_mut(i),
            (_, Some(i)) => self.modifiers.get_mut(i),
            (None, None) => None,
        }
    }

    fn first_modifier(&self) -> Option<char> {
        let mut tagged = MODIFIERS.iter().zip(&self.modifiers);
        tagged.find_map(|(tag, value)| value.map(|_| *tag))
    }

    fn cron(&self) -> Result<Cron, EntryError> {
        let fields = self.fields.map(|field| field.unwrap_or("*"));
        Ok(Cron::parse(&fields.join(" "))?)
    }

    fn modifier(&self) -> Result<Modifier, EntryError> {
        let mut numbers = [None; MODIFIERS.len()];
        for ((number, value), tag) in numbers.iter_mut().zip(self.modifiers).zip(MODIFIERS) {
            *number = value.map(|value| parse_number(tag, value)).transpose()?;
        }
        match numbers {
            [Some(scale), None, None, None] => {
                Ok(Modifier::Scale(ScaleMillis::from_millis(scale)?))
            }
            [Some(_), ..] => Err(EntryError::ScaleAndAbsolute),
            [None, capacity, refill_amount, refill_period] => Ok(Modifier::Absolute {
                capacity: capacity.map(Tokens),
                refill_amount: refill_amount.map(Tokens),
                refill_period: refill_period.map(Seconds),
            }),
        }
    }
}

fn is_value(c: char) -> bool {
    c.is_ascii_digit() || "*-,/".contains(c)
}

fn parse_number(tag: char, value: &str) -> Result<u64, EntryError> {
    // `parse` alone would take a leading sign.
    let plain = value.bytes().all(|b| b.is_ascii_digit());
    match value.parse() {
        Ok(number) if plain => Ok(number),
        _ => Err(EntryError::BadNumber {
            tag,
            value: value.into(),
        }),
    }
}

/// Why a stored text is not a compact schedule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// The text does not begin with a version.
    #[error("the schedule {text:?} carries no version: it is corrupt, declare the limit anew")]
    NoVersion {
        /// The stored text.
        text: Box<str>,
    },
    /// The version is 0, which never existed.
    #[error("the schedule {text:?} has version 0: it is corrupt, declare the limit anew")]
    VersionZero {
        /// The stored text.
        text: Box<str>,
    },
    /// The version is one that this build does not know.
    #[error(
        "the schedule has version {found} and this build reads version 1: it was written by a newer release, upgrade"
    )]
    HigherVersion {
        /// The version, in decimal.
        found: Box<str>,
    },
    /// Nothing follows the version.
    #[error("the schedule is a version without entries: it is corrupt, declare the limit anew")]
    NoEntries,
    /// An entry cannot be read.
    #[error("schedule entry {number} ({entry:?}): {problem}")]
    Entry {
        /// Which one, counted from 1.
        number: usize,
        /// The entry as stored.
        entry: Box<str>,
        /// What is wrong with it.
        problem: EntryError,
    },
}

/// What is wrong with one entry of a compact schedule. Offsets count bytes of the entry.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EntryError {
    /// A letter stands where a tag is expected, and is none.
    #[error("the tag {tag:?} at offset {offset} is unknown")]
    UnknownTag {
        /// The letter.
        tag: char,
        /// Where it stands.
        offset: usize,
    },
    /// Something that can be neither a tag nor a value.
    #[error("bytes are left over from offset {offset} on, beginning with {found:?}")]
    Leftover {
        /// The first of them.
        found: char,
        /// Where it stands.
        offset: usize,
    },
    /// A tag stands twice.
    #[error("the tag {tag:?} is a duplicate at offset {offset}")]
    DuplicateTag {
        /// The tag.
        tag: char,
        /// Where it stands the second time.
        offset: usize,
    },
    /// No value follows a tag.
    #[error("the tag {tag:?} at offset {offset} has no value")]
    NoValue {
        /// The tag.
        tag: char,
        /// Where it stands.
        offset: usize,
    },
    /// The value of a modifier is not a whole number, or too large for any.
    #[error("the value {value:?} of the tag {tag:?} is a bad number")]
    BadNumber {
        /// The tag.
        tag: char,
        /// The value.
        value: Box<str>,
    },
    /// The fields are not a cron expression.
    #[error(transparent)]
    Cron(#[from] CronError),
    /// The scale is out of range.
    #[error(transparent)]
    Scale(#[from] ScaleError),
    /// A number is out of range, or there is none.
    #[error(transparent)]
    Modifier(#[from] LimitError),
    /// The entry scales and sets values too.
    #[error("it has both a scale and absolute values, and only one of them is allowed")]
    ScaleAndAbsolute,
    /// A reset carries a modifier.
    #[error("a reset changes no parameters, and this one carries the tag {tag:?}")]
    ModifierInReset {
        /// The first such tag.
        tag: char,
    },
}

impl EntryError {
    fn stray(found: char, offset: usize) -> EntryError {
        if found.is_ascii_alphabetic() {
            EntryError::UnknownTag { tag: found, offset }
        } else {
            EntryError::Leftover { found, offset }
        }
    }
}
