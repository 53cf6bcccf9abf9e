//! Access stamps on bucket items: what a client's write is conditioned on (docs/format.md).

use super::attr::Item;
use crate::model::{AccessMode, EpochMs};
use aws_sdk_dynamodb::types::AttributeValue;

const DISABLED: &str = "disabled";
const BYPASS: &str = "bypass";

/// The longest a stamp is honoured without being renewed from config, in milliseconds.
const LIFETIME_MS: f64 = 60_000.0;

/// Until when a bypass or a soft stamp is honoured that was justified by config read no earlier than
/// `read_at`.
///
/// `spread` is in [0, 1): deadlines are spread over a fifth of their lifetime, so that buckets
/// stamped together are not all renewed together.
pub fn deadline(read_at: EpochMs, spread: f64) -> EpochMs {
    let factor = 0.8 + 0.2 * spread.clamp(0.0, 1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    read_at.plus_ms((LIFETIME_MS * factor) as u64)
}

/// What to write on a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamp {
    /// Refuse everything.
    Disabled,
    /// Admit everything until the deadline.
    Bypass(EpochMs),
    /// Neither stamp: the limits apply.
    Enforce,
}

impl Stamp {
    /// The stamp for a mode that was resolved from config read no earlier than `read_at`; `spread`
    /// as in [`deadline`].
    pub fn new(mode: AccessMode, read_at: EpochMs, spread: f64) -> Stamp {
        match mode {
            AccessMode::Disabled => Stamp::Disabled,
            AccessMode::Enforce => Stamp::Enforce,
            AccessMode::Bypass => Stamp::Bypass(deadline(read_at, spread)),
        }
    }

    /// The mode this stamp makes a bucket enforce.
    pub fn mode(self) -> AccessMode {
        match self {
            Stamp::Disabled => AccessMode::Disabled,
            Stamp::Bypass(_) => AccessMode::Bypass,
            Stamp::Enforce => AccessMode::Enforce,
        }
    }

    /// The attribute that a stamped bucket carries; `None` for one that the limits apply to.
    pub fn attribute(self) -> Option<(&'static str, AttributeValue)> {
        let value = self.update().value?;
        let name = match self {
            Stamp::Disabled => DISABLED,
            Stamp::Bypass(_) | Stamp::Enforce => BYPASS,
        };
        Some((name, value))
    }

    /// The stamp as an update of one item that must exist.
    pub fn update(self) -> StampUpdate {
        match self {
            Stamp::Disabled => StampUpdate {
                expression: "SET #disabled = :stamp REMOVE #bypass",
                value: Some(AttributeValue::Bool(true)),
            },
            Stamp::Bypass(deadline) => StampUpdate {
                expression: "SET #bypass = :stamp REMOVE #disabled",
                value: Some(AttributeValue::N(deadline.to_string())),
            },
            Stamp::Enforce => StampUpdate {
                expression: "REMOVE #disabled, #bypass",
                value: None,
            },
        }
    }

    /// The stamp as a PartiQL statement with two parameters, the stamp's value when it has one and
    /// the bucket's partition key. An `UPDATE` never creates an item.
    pub fn statement(self, table: &str) -> (String, Option<AttributeValue>) {
        let change = match self {
            Stamp::Disabled => r#"SET "disabled" = ? REMOVE "bypass""#,
            Stamp::Bypass(_) => r#"SET "bypass" = ? REMOVE "disabled""#,
            Stamp::Enforce => r#"REMOVE "disabled" REMOVE "bypass""#,
        };
        let statement = format!(r#"UPDATE "{table}" {change} WHERE "PK" = ? AND "SK" = '#STATE'"#);
        (statement, self.update().value)
    }
}

/// The parts of an `UpdateItem` that stamps a bucket.
#[derive(Debug, Clone, PartialEq)]
pub struct StampUpdate {
    /// The update expression over `#disabled`, `#bypass` and `:stamp`.
    pub expression: &'static str,
    /// The value of `:stamp`, when the expression has one.
    pub value: Option<AttributeValue>,
}

impl StampUpdate {
    /// A bucket that vanished is not created again.
    pub const CONDITION: &'static str = "attribute_exists(PK)";
    /// The expression's attribute names.
    pub const NAMES: [(&'static str, &'static str); 2] =
        [("#disabled", DISABLED), ("#bypass", BYPASS)];
}

/// The mode a bucket item shows, whatever the age of a bypass: an expired one is renewed from
/// config by the next client that meets it.
pub fn shown_mode(item: &Item) -> AccessMode {
    if matches!(item.get(DISABLED), Some(AttributeValue::Bool(true))) {
        AccessMode::Disabled
    } else if item.contains_key(BYPASS) {
        AccessMode::Bypass
    } else {
        AccessMode::Enforce
    }
}

/// The deadline of a bypass stamp; `None` when there is none or it cannot be read, which clients
/// take as expired.
pub fn bypass_deadline(item: &Item) -> Option<EpochMs> {
    match item.get(BYPASS) {
        Some(AttributeValue::N(digits)) => digits.parse().ok().map(EpochMs),
        _ => None,
    }
}

/// The attributes of a stored bucket that say which it is and what its stamp is.
pub const STORED: [&str; 4] = ["PK", "SK", DISABLED, BYPASS];
/// The same of a bucket in an index that projects whole items and is read for stamps.
pub const SHOWN: [&str; 3] = ["PK", DISABLED, BYPASS];
/// The one that says which bucket an index shows.
pub const NAMED: [&str; 1] = ["PK"];
