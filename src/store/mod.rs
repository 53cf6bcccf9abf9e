//! The only DynamoDB I/O: setting a client up, and the embedded database that stands in for the service.
//!
//! The seam is the transport: everything speaks to the one SDK client, whatever carries its requests.

pub mod connect;
pub mod create;
#[cfg(feature = "local")]
pub mod embedded;
pub mod error;
mod sdk_error;
#[cfg(feature = "local")]
pub mod serve;

pub use connect::{Connected, Connection, Patience};
pub use create::create_table;
#[cfg(feature = "local")]
pub use embedded::Embedded;
pub use error::{Place, StoreError};
#[cfg(feature = "local")]
pub use serve::serve;
