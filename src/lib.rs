//! The declarative control plane for rate limits and kill switches on DynamoDB.

pub mod apply;
pub mod clock;
pub mod fanout;
#[cfg(feature = "lambda")]
pub mod lambda;
pub mod manifest;
pub mod model;
pub mod plan;
pub mod reconcile;
pub mod report;
pub mod store;
pub mod table;
