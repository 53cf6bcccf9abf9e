//! What a limit gives at a time: its capacity and how it drips, and what a window makes of them.
//!
//! The arithmetic is the clients', rounding included. Which window is open is not decided here.

use super::{Limit, Modifier, ScaleMillis, Seconds, Tokens};
use serde::{Serialize, Serializer};
use std::fmt;

/// Thousandths of a token, as wide as a scaled capacity can be: up to 10^24.
///
/// Shown and serialised in tokens: `12.5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thousandths(pub u128);

impl Thousandths {
    /// Times a factor, as clients compute it: in floating point, cut off, and at least 1 unless it
    /// was 0.
    fn scaled(self, factor: ScaleMillis) -> Thousandths {
        let product = (self.0 as f64 * factor.factor()) as u128;
        Thousandths(product.max(self.0.min(1)))
    }
}

impl From<Tokens> for Thousandths {
    fn from(tokens: Tokens) -> Thousandths {
        Thousandths(u128::from(tokens.0) * 1000)
    }
}

impl fmt::Display for Thousandths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0 / 1000)?;
        match self.0 % 1000 {
            0 => Ok(()),
            rest => write!(f, ".{}", format!("{rest:03}").trim_end_matches('0')),
        }
    }
}

impl Serialize for Thousandths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match u64::try_from(self.0 / 1000) {
            Ok(whole) if self.0.is_multiple_of(1000) => serializer.serialize_u64(whole),
            // What is no whole number comes out of floating point, so nothing is lost here.
            _ => serializer.serialize_f64(self.0 as f64 / 1000.0),
        }
    }
}

/// Capacity, refill amount and refill period that hold together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Rate {
    /// The most tokens that the bucket holds.
    pub capacity: Thousandths,
    /// What comes back in each period; 0 for a limit that resets.
    pub refill_amount: Thousandths,
    /// The period, in seconds.
    pub refill_period: Seconds,
}

impl Rate {
    /// What a limit gives while no window of it is open.
    pub fn base(limit: &Limit) -> Rate {
        Rate {
            capacity: limit.capacity.into(),
            refill_amount: limit.refill_amount().into(),
            refill_period: limit.refill_period,
        }
    }

    /// What a window makes of this base while it is open.
    #[must_use]
    pub fn during(self, modifier: &Modifier) -> Rate {
        match *modifier {
            // Capacity and amount are cut off apart, so a scaled limit may fill a little slower
            // than its base.
            Modifier::Scale(factor) => Rate {
                capacity: self.capacity.scaled(factor),
                refill_amount: self.refill_amount.scaled(factor),
                refill_period: self.refill_period,
            },
            Modifier::Absolute {
                capacity,
                refill_amount,
                refill_period,
            } => Rate {
                capacity: capacity.map_or(self.capacity, Thousandths::from),
                refill_amount: refill_amount.map_or(self.refill_amount, Thousandths::from),
                refill_period: refill_period.unwrap_or(self.refill_period),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousandths_are_shown_as_tokens() {
        let shown = [0, 1, 500, 1000, 12_340, 50_000_000].map(|n| Thousandths(n).to_string());
        assert_eq!(shown, ["0", "0.001", "0.5", "1", "12.34", "50000"]);
        let json = [Thousandths(12_500), Thousandths(50_000)]
            .map(|amount| serde_json::json!(amount).to_string());
        assert_eq!(json, ["12.5", "50"]);
        // However the exponent of a number beyond 64 bits is spelled.
        let widest = serde_json::json!(Thousandths(10_u128.pow(24) + 1)).to_string();
        assert_eq!(widest.parse(), Ok(1e21));
    }
}
