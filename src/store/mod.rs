//! The only DynamoDB I/O: setting a client up, and the embedded database that stands in for the service.
//!
//! The seam is the transport: everything speaks to the one SDK client, whatever carries its requests.

pub mod error;

pub use error::{Place, StoreError};
