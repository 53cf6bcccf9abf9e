//! Real clients enforce what we write: Python processes with the released library, over a table that this crate
//! serves and applies manifests to.
//!
//! What is asserted is what the clients do, never what the table holds alone. The library is the judge: where it
//! disagrees, this crate is wrong. One test runs the scenarios on an engine of others. Needs Python, and is skipped without ([`crate::python`]).

mod access;
mod binaries;
mod cascade;
mod client;
mod engine;
mod flight;
mod limits;
mod listings;
mod old_readers;
mod served;
mod turns;

pub use client::{Became, Client, Peer};
pub use served::Served;
