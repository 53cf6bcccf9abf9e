//! How long a bucket that follows shared defaults lives without being used: zae-limiter's ADR-136
//! (docs/format.md, "Expiry").
//!
//! A bucket that expires comes back full, so it must outlive every debt it can hold: each figure
//! here rounds up. Which buckets expire at all is not decided here: those whose limits come from a
//! resource or from the system do, those with an entity's own limits do not.

use super::{Cron, EpochSeconds, Limit, LimitError, LimitName, Rate, Recovery, Seconds};
use thiserror::Error;

/// A bucket lives for this many of its longest horizons.
const HORIZONS: u128 = 7;

const MINUTE: Seconds = Seconds(60);
const HOUR: Seconds = Seconds(3_600);
const DAY: Seconds = Seconds(86_400);
const WEEK: Seconds = Seconds(7 * DAY.0);
const MONTH: Seconds = Seconds(31 * DAY.0);
const YEAR: Seconds = Seconds(366 * DAY.0);

/// How long a limit takes to recover from nothing to full, rounded up to a whole second.
///
/// For a drip it is capacity over refill amount times period, the slowest of its base and of every
/// window; for a duration window its length; for a calendar the tightest cycle of its resets. What
/// exceeds a `u64` is its maximum.
///
/// # Errors
/// [`LimitError::NoRecovery`] when the limit, or a window of it, neither drips nor resets.
pub fn recovery_horizon(limit: &Limit) -> Result<Seconds, LimitError> {
    horizons(limit, 1).map(Seconds)
}

/// When a bucket with these limits expires if it is not used: seven times the longest
/// [`recovery_horizon`] from now. `None` without limits.
///
/// # Errors
/// [`TtlError`] names the first limit that neither drips nor resets.
pub fn bucket_ttl<'a>(
    now: EpochSeconds,
    limits: impl IntoIterator<Item = (&'a LimitName, &'a Limit)>,
) -> Result<Option<EpochSeconds>, TtlError> {
    let mut longest = None;
    for (name, limit) in limits {
        let life = horizons(limit, HORIZONS).map_err(|source| TtlError::Horizon {
            limit: name.clone(),
            source,
        })?;
        longest = longest.max(Some(life));
    }
    Ok(longest.map(|life| EpochSeconds(now.0.saturating_add(life))))
}

/// The given number of horizons, in whole seconds. Rounded up once, after the multiplication.
fn horizons(limit: &Limit, times: u128) -> Result<u64, LimitError> {
    let whole = |seconds: Seconds| u128::from(seconds.0).saturating_mul(times);
    let seconds = match &limit.recovery {
        Recovery::Drip { .. } => slowest_fill(limit, times)?,
        Recovery::Window(after) => whole(*after),
        Recovery::Calendar(entries) => {
            let tightest = entries.iter().map(cycle).min();
            whole(tightest.ok_or(LimitError::NoRecovery)?)
        }
    };
    Ok(u64::try_from(seconds).unwrap_or(u64::MAX))
}

/// The longest time to fill over the base and every window: the base applies outside of them, and
/// which of them a bucket sits idle through is not known.
fn slowest_fill(limit: &Limit, times: u128) -> Result<u128, LimitError> {
    let base = Rate::base(limit);
    let mut slowest = fill(base, times)?;
    for entry in &limit.schedule {
        slowest = slowest.max(fill(base.during(&entry.modifier), times)?);
    }
    Ok(slowest)
}

fn fill(rate: Rate, times: u128) -> Result<u128, LimitError> {
    let period = u128::from(rate.refill_period.0);
    match rate.refill_amount.0 {
        0 => Err(LimitError::NoRecovery),
        amount => {
            let filling = rate.capacity.0.saturating_mul(period);
            Ok(filling.saturating_mul(times).div_ceil(amount))
        }
    }
}

/// The longest time between two resets of one calendar entry, by the coarsest field it restricts.
///
/// Days of the month come before days of the week: when both are restricted either is enough, and
/// the wider of the two cycles covers it.
fn cycle(cron: &Cron) -> Seconds {
    let restricted = cron.restricts();
    if restricted.months {
        YEAR
    } else if restricted.days_of_month {
        MONTH
    } else if restricted.days_of_week {
        WEEK
    } else if restricted.hours {
        DAY
    } else if restricted.minutes {
        HOUR
    } else {
        MINUTE
    }
}

/// Why a bucket's expiry cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TtlError {
    /// A limit has no horizon.
    #[error("limit {limit} has no recovery horizon: give it a refill amount or a reset")]
    Horizon {
        /// The limit.
        limit: LimitName,
        /// Why not.
        #[source]
        source: LimitError,
    },
}
