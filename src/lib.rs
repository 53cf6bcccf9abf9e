//! The declarative control plane for rate limits and kill switches on DynamoDB.

pub mod clock;
pub mod model;
pub mod store;
pub mod table;
