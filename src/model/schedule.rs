//! Schedules: when other parameters apply, and in which zone that is counted.
//!
//! A window names the minutes in which it is open; a calendar of resets is a list of [`Cron`]s and
//! lives on the limit. Nothing here evaluates either ([`Calendar`](super::Calendar) does), or knows how
//! the table stores them.

use super::{Cron, LimitError, Seconds, Tokens};
use jiff::tz::TimeZoneDatabase;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// An IANA time zone that this build's zone database knows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Zone(Box<str>);

impl Zone {
    /// The zone of a schedule that names none.
    pub const DEFAULT: &'static str = "UTC";

    /// Reads the name of a zone, such as `Europe/Berlin`, in IANA's own spelling.
    ///
    /// Clients look the stored name up in a database that tells upper from lower case, so another
    /// spelling is refused rather than stored where they cannot read it. Older names of a zone, such
    /// as `Asia/Calcutta`, are kept as given.
    ///
    /// # Errors
    /// [`ZoneError`] when no zone has that name; it says which one is meant when that is clear.
    pub fn parse(text: &str) -> Result<Zone, ZoneError> {
        // The bundled database, never the machine's: what is valid must not depend on where it runs.
        let database = TimeZoneDatabase::bundled();
        let found = database.get(text).ok().filter(|zone| !zone.is_unknown());
        match found.as_ref().and_then(|zone| zone.iana_name()) {
            Some(name) if name == text => Ok(Zone(text.into())),
            Some(name) => Err(ZoneError::Spelling {
                found: text.into(),
                name: name.into(),
            }),
            None => Err(ZoneError::Unknown { found: text.into() }),
        }
    }

    /// The zone as IANA spells it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Zone {
    fn default() -> Zone {
        Zone(Zone::DEFAULT.into())
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Zone {
    type Err = ZoneError;
    fn from_str(text: &str) -> Result<Zone, ZoneError> {
        Zone::parse(text)
    }
}

/// Why a text is not a time zone.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ZoneError {
    /// The zone exists under another spelling.
    #[error(
        "the time zone {found:?} is spelled {name:?}: write it that way, clients tell upper from lower case"
    )]
    Spelling {
        /// The spelling found.
        found: Box<str>,
        /// IANA's spelling.
        name: Box<str>,
    },
    /// No zone has this name.
    #[error("there is no time zone {found:?}: write an IANA name, such as UTC or Europe/Berlin")]
    Unknown {
        /// The text found.
        found: Box<str>,
    },
}

/// A factor in thousandths: 500 halves, 1000 leaves as is. From 1 to 10^9.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScaleMillis(u64);

impl ScaleMillis {
    /// The largest factor, as a manifest writes it.
    pub const MAX_FACTOR: u64 = 1_000_000;

    /// Takes a factor as a manifest writes it: 0.5 halves.
    ///
    /// The table holds thousandths, rounded half to even; what rounds to none of them is one.
    ///
    /// # Errors
    /// [`ScaleError`] when the factor is not finite, not positive, or above
    /// [`ScaleMillis::MAX_FACTOR`].
    pub fn from_factor(factor: f64) -> Result<ScaleMillis, ScaleError> {
        if !factor.is_finite() {
            return Err(ScaleError::NotFinite);
        }
        if factor <= 0.0 {
            return Err(ScaleError::NotPositive);
        }
        if factor > Self::MAX_FACTOR as f64 {
            return Err(ScaleError::TooLarge);
        }
        // At most 10^9 by the check above, so the conversion keeps every digit.
        Ok(ScaleMillis(
            ((factor * 1000.0).round_ties_even() as u64).max(1),
        ))
    }

    /// Takes a factor as the table stores it, in thousandths.
    ///
    /// # Errors
    /// [`ScaleError`] when it is 0 or above 1000 times [`ScaleMillis::MAX_FACTOR`].
    pub fn from_millis(millis: u64) -> Result<ScaleMillis, ScaleError> {
        match millis {
            0 => Err(ScaleError::NotPositive),
            millis if millis > Self::MAX_FACTOR * 1000 => Err(ScaleError::TooLarge),
            millis => Ok(ScaleMillis(millis)),
        }
    }

    /// The factor in thousandths.
    pub fn millis(self) -> u64 {
        self.0
    }

    /// The factor as a manifest writes it.
    pub fn factor(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}

impl fmt::Display for ScaleMillis {
    /// The factor as a manifest writes it: `0.5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.factor().fmt(f)
    }
}

/// Why a number is not a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ScaleError {
    /// The number is infinite or not a number.
    #[error("scale must be a finite number")]
    NotFinite,
    /// The number is zero or negative.
    #[error("scale must be positive; to refuse everything, use the switch `disabled`")]
    NotPositive,
    /// The number is too large for the table.
    #[error("scale may be at most {}", ScaleMillis::MAX_FACTOR)]
    TooLarge,
}

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

impl ScheduleEntry {
    /// Checks the numbers of the modifier. What depends on the limit is checked by
    /// [`Limit::check`](super::Limit::check).
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), LimitError> {
        let Modifier::Absolute {
            capacity,
            refill_amount,
            refill_period,
        } = self.modifier
        else {
            return Ok(());
        };
        if (capacity, refill_amount, refill_period) == (None, None, None) {
            return Err(LimitError::ChangesNothing);
        }
        if let Some(capacity) = capacity {
            LimitError::check_tokens("capacity", capacity)?;
        }
        if let Some(amount) = refill_amount {
            LimitError::check_tokens("refill_amount", amount)?;
        }
        if let Some(period) = refill_period {
            LimitError::check_seconds("refill_period_seconds", period)?;
        }
        Ok(())
    }
}
