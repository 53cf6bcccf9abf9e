//! The declarative control plane for rate limits and kill switches on DynamoDB.

pub mod manifest;
pub mod model;
