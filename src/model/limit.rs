//! One limit: a token bucket's size, and how it recovers.

use super::{Cron, ScheduleEntry, Seconds, Tokens};
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
        let whole = |field, value: u64, max: u64| match value {
            0 => Err(LimitError::Zero { field }),
            value if value > max => Err(LimitError::TooLarge { field, value, max }),
            _ => Ok(()),
        };
        whole("capacity", self.capacity.0, Tokens::MAX.0)?;
        whole("refill_period", self.refill_period.0, Seconds::MAX.0)?;
        match &self.recovery {
            Recovery::Drip { amount } => whole("refill_amount", amount.0, Tokens::MAX.0)?,
            Recovery::Window(after) => whole("reset_after_seconds", after.0, Seconds::MAX.0)?,
            Recovery::Calendar(entries) if entries.is_empty() => {
                return Err(LimitError::NoRecovery);
            }
            Recovery::Calendar(_) => {}
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
}
