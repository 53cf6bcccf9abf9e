//! The only DynamoDB I/O: setting a client up, reads, writes, and the embedded database.
//!
//! The seam is the transport: everything speaks to the one SDK client, whatever carries its
//! requests. Nothing here decides what to write; nothing here knows manifests or plans.

mod bucket;
#[cfg(feature = "cli")]
mod caller;
mod change;
mod config;
pub mod connect;
pub mod create;
#[cfg(feature = "local")]
pub mod embedded;
mod endpoint;
mod entity;
pub mod error;
mod in_place;
mod pending;
mod read;
mod record;
mod register;
mod resolve;
mod sdk_error;
#[cfg(feature = "local")]
mod seed;
#[cfg(feature = "local")]
pub mod serve;
mod state;
mod words;
mod write;

pub use bucket::{BucketPage, BucketStamps, FoundBucket, PageStart, STAMPS_PER_BATCH, Stamped};
#[cfg(feature = "cli")]
pub use caller::Caller;
pub use change::{CHANGES_PER_GROUP, OwnerStamped};
pub use config::{Author, LEVELS_PER_TRANSACTION, LevelOutcome, LevelWrite};
pub use connect::{Connected, Connection, Patience};
pub use create::create_table;
#[cfg(feature = "local")]
pub use embedded::Embedded;
pub use error::{Place, StoreError};
pub use pending::Claim;
pub use record::{RecordDelta, Takeover};
#[cfg(feature = "local")]
pub use seed::Seeded;
#[cfg(feature = "local")]
pub use serve::serve;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// One table, through one client. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    client: Client,
    place: Arc<Place>,
    /// Whether stamps still go out as PartiQL batches; cleared when engine or role refuse them.
    batches_stamps: Arc<AtomicBool>,
}

impl Store {
    /// The table at a place, through a client that reaches it.
    pub fn new(client: Client, place: Place) -> Store {
        let batches_stamps = Arc::new(AtomicBool::new(true));
        Store {
            client,
            place: Arc::new(place),
            batches_stamps,
        }
    }

    /// The table's name.
    pub fn table(&self) -> &str {
        &self.place.table
    }

    /// Where the table is, for people.
    pub fn place(&self) -> &Place {
        &self.place
    }

    fn failed<E, R>(&self, act: impl Into<Cow<'static, str>>, error: SdkError<E, R>) -> StoreError
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
        R: fmt::Debug + Send + Sync + 'static,
    {
        StoreError::from_sdk(act, error).at(&self.place)
    }
}
