//! Numbers that carry their unit, so that a count of seconds is never taken for milliseconds.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

unit!(
    /// Whole tokens, as a manifest and a config item count them.
    Tokens(u64)
);
unit!(
    /// Thousandths of a token, as a bucket item counts them. Negative while a bucket is in debt.
    MilliTokens(i64)
);
unit!(
    /// Whole seconds of duration.
    Seconds(u64)
);
unit!(
    /// Milliseconds since the Unix epoch.
    EpochMs(u64)
);
unit!(
    /// Seconds since the Unix epoch, the unit of the table's `ttl`.
    EpochSeconds(u64)
);

impl Tokens {
    /// The most a capacity or a refill amount may be: 10^15, so that thousandths stay exact.
    pub const MAX: Tokens = Tokens(1_000_000_000_000_000);

    /// The same amount in thousandths. Exact for every amount up to [`Tokens::MAX`].
    pub fn millis(self) -> MilliTokens {
        MilliTokens(i64::try_from(self.0.saturating_mul(1000)).unwrap_or(i64::MAX))
    }
}

impl Seconds {
    /// The longest a period or a window may be: 10^9 seconds, some 31 years.
    pub const MAX: Seconds = Seconds(1_000_000_000);

    /// The same duration in milliseconds.
    pub fn millis(self) -> u64 {
        self.0.saturating_mul(1000)
    }
}

impl EpochMs {
    /// This instant moved later by a number of milliseconds.
    #[must_use]
    pub fn plus_ms(self, ms: u64) -> EpochMs {
        EpochMs(self.0.saturating_add(ms))
    }
}
