//! The declarative control plane for rate limits and kill switches on DynamoDB.

pub mod affected;
pub mod apply;
#[cfg(feature = "cli")]
pub mod cli;
pub mod clock;
pub mod explain;
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
