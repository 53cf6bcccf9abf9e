//! Schedules: when other parameters apply, and when a quota resets.

use super::{Seconds, Tokens};
use std::fmt;

/// A five-field cron expression in canonical form: names as numbers, a stand-alone Sunday as 7.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cron(Box<str>);

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An IANA time zone that this build's zone database knows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Zone(Box<str>);

impl Zone {
    /// The zone as IANA spells it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A factor in thousandths: 500 halves, 1000 leaves as is. At least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScaleMillis(pub u64);

/// What a window changes while it is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Modifier {
    /// Capacity and refill amount, both times this factor.
    Scale(ScaleMillis),
    /// Absolute values; what is `None` keeps the base. At least one is `Some`.
    Absolute {
        /// Another capacity.
        capacity: Option<Tokens>,
        /// Another refill amount.
        refill_amount: Option<Tokens>,
        /// Another refill period.
        refill_period: Option<Seconds>,
    },
}

/// One window of a limit's schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleEntry {
    /// The minutes in which the window is open.
    pub cron: Cron,
    /// What applies while it is open.
    pub modifier: Modifier,
}
