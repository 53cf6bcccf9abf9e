//! One limit: a token bucket's size, and how it recovers.

use super::{Cron, Modifier, ScheduleEntry, Seconds, Tokens};
use thiserror::Error;

/// How a bucket gets its tokens back: it drips or it resets, never both, never neither.
#[derive(Debug, Clone, PartialEq)]
pub enum Recovery {
    /// Tokens come back evenly: `amount` in every refill period.
    Drip {
        /// Tokens a period; at least 1.
        amount: Tokens,
    },
    /// The bucket is full again at each instant of a calendar; at least one entry.
    Calendar(Vec<Cron>),
    /// The bucket is full again this long after the first use of a window.
    Window(Seconds),
}

/// A limit as one level declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// The most tokens the bucket holds; at least 1.
    pub capacity: Tokens,
    /// The period the refill amount counts for. Stored for a limit that resets too.
    pub refill_period: Seconds,
    /// How tokens come back.
    pub recovery: Recovery,
    /// Windows in which other parameters apply; the first entry that matches wins.
    pub schedule: Vec<ScheduleEntry>,
    /// A soft limit is counted and reported, never enforced.
    pub soft: bool,
}

impl Limit {
    /// The refill period of a limit that names none.
    pub const DEFAULT_PERIOD: Seconds = Seconds(60);

    /// A plain dripping limit.
    pub fn drip(capacity: Tokens, amount: Tokens, refill_period: Seconds) -> Limit {
        Limit {
            capacity,
            refill_period,
            recovery: Recovery::Drip { amount },
            schedule: Vec::new(),
            soft: false,
        }
    }

    /// The refill amount as the table stores it: 0 for a limit that resets.
    pub fn refill_amount(&self) -> Tokens {
        match self.recovery {
            Recovery::Drip { amount } => amount,
            Recovery::Calendar(_) | Recovery::Window(_) => Tokens(0),
        }
    }

    /// Checks the rules that no single field can keep.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), LimitError> {
        LimitError::check_tokens("capacity", self.capacity)?;
        LimitError::check_seconds("refill_period", self.refill_period)?;
        match &self.recovery {
            Recovery::Drip { amount } => LimitError::check_tokens("refill_amount", *amount)?,
            Recovery::Window(after) => LimitError::check_seconds("reset_after_seconds", *after)?,
            Recovery::Calendar(entries) if entries.is_empty() => {
                return Err(LimitError::NoRecovery);
            }
            Recovery::Calendar(entries) => {
                if let Some(cron) = entries.iter().find(|cron| cron.is_always_open()) {
                    let cron = Box::new(cron.clone());
                    return Err(LimitError::NeverResets { cron });
                }
            }
        }
        for (entry, number) in self.schedule.iter().zip(1..) {
            self.check_entry(entry).map_err(|rule| LimitError::Entry {
                number,
                rule: Box::new(rule),
            })?;
        }
        Ok(())
    }

    /// Checks one window of the schedule, alone and against this limit.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check_entry(&self, entry: &ScheduleEntry) -> Result<(), LimitError> {
        entry.check()?;
        let sets_refill = matches!(
            entry.modifier,
            Modifier::Absolute {
                refill_amount: Some(_),
                ..
            }
        );
        if sets_refill && !matches!(self.recovery, Recovery::Drip { .. }) {
            return Err(LimitError::RefillWhileResetting);
        }
        Ok(())
    }
}

/// A rule of limits that is broken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LimitError {
    /// A number that must be positive is zero.
    #[error("{field} must be at least 1")]
    Zero {
        /// The field.
        field: &'static str,
    },
    /// A number is above what the table can hold exactly.
    #[error("{field} is {value}, and at most {max} is allowed")]
    TooLarge {
        /// The field.
        field: &'static str,
        /// The value found.
        value: u64,
        /// The largest value allowed.
        max: u64,
    },
    /// The limit neither drips nor resets.
    #[error("the limit neither drips nor resets")]
    NoRecovery,
    /// A reset that matches every minute never starts to match, so it never fires.
    #[error(
        "the reset {cron:?} matches every minute, so it never starts to match and never resets: \
         name the minute at which it does, such as 0 0 * * *",
        cron = cron.to_string()
    )]
    NeverResets {
        /// The reset.
        cron: Box<Cron>,
    },
    /// A window sets none of the values that a window may set.
    #[error(
        "it changes nothing: set `scale` or one of `capacity`, `refill_amount`, \
         `refill_period_seconds`"
    )]
    ChangesNothing,
    /// A window gives a limit that resets a second way to recover.
    #[error("a limit that resets may not set `refill_amount` in a schedule entry: leave it out")]
    RefillWhileResetting,
    /// A window breaks a rule.
    #[error("schedule entry {number}: {rule}")]
    Entry {
        /// Which one, counted from 1.
        number: usize,
        /// The rule.
        rule: Box<LimitError>,
    },
}

impl LimitError {
    /// Checks a number of tokens: at least 1, at most [`Tokens::MAX`].
    pub(super) fn check_tokens(field: &'static str, tokens: Tokens) -> Result<(), LimitError> {
        Self::check_whole(field, tokens.0, Tokens::MAX.0)
    }

    /// Checks a duration: at least 1, at most [`Seconds::MAX`].
    pub(super) fn check_seconds(field: &'static str, seconds: Seconds) -> Result<(), LimitError> {
        Self::check_whole(field, seconds.0, Seconds::MAX.0)
    }

    fn check_whole(field: &'static str, value: u64, max: u64) -> Result<(), LimitError> {
        match value {
            0 => Err(LimitError::Zero { field }),
            value if value > max => Err(LimitError::TooLarge { field, value, max }),
            _ => Ok(()),
        }
    }
}
