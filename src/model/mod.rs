//! What exists: names, levels, limits, the access switch and how it resolves.
//!
//! Everything here is pure data. Nothing here knows how a manifest is written, how an item is
//! stored, or what time it is.

pub mod access;
pub mod calendar;
pub mod cron;
mod digest;
mod json;
pub mod level;
pub mod limit;
pub mod name;
pub mod owed;
pub mod pending;
pub mod physical_id;
pub mod rate;
pub mod record;
pub mod resolve;
pub mod schedule;
pub mod state;
pub mod ttl;
pub mod units;

pub use access::{AccessMode, Switch};
pub use calendar::Calendar;
pub use cron::{Cron, CronError};
pub use digest::sha256_hex;
pub use level::{Level, LevelConfig, OnUnavailable, Scope};
pub use limit::{Limit, LimitError, Recovery};
pub use name::{EntityId, LimitName, NameError, NamespaceId, NamespaceName, ResourceName};
pub use owed::{FanoutKind, Owed};
pub use pending::{LONGEST_LEASE_MS, Owner, Pending};
pub use rate::{Rate, Thousandths};
pub use record::{ManifestOwner, ProvisionerRecord};
pub use schedule::{Modifier, ScaleError, ScaleMillis, ScheduleEntry, Zone, ZoneError};
pub use state::{Damage, State, StoredLevel, Versions};
pub use ttl::{TtlError, bucket_ttl, recovery_horizon};
pub use units::{EpochMs, EpochSeconds, MilliTokens, Seconds, Tokens};
