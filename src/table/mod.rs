//! The wire format: keys, items, stamps, schedules, records. Pure: bytes in, values out.
//!
//! The table is shared with the Python library `zae-limiter` 0.17, whose clients enforce what is
//! written here. The format is given; nothing in this module may improve on it. The SDK's
//! `AttributeValue` stops here: other modules see model types.

pub mod attr;
pub mod audit;
pub mod bucket;
pub mod cascade;
pub mod config;
pub mod fresh;
pub mod keys;
pub mod meta;
pub mod namespace;
pub mod params;
pub mod pending;
pub mod record;
pub mod registry;
pub mod schedule;
pub mod soft;
pub mod stamp;
pub mod version;
mod written;

pub use attr::{Item, ItemError};
pub use keys::{BucketId, BucketKeyError, Discovery, Key};
