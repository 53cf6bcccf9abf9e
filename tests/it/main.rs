//! The one integration-test binary: a list of its modules.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by a panic, and says what it skips"
)]

mod at_once;
mod between;
mod bucket_items;
mod calendar;
#[cfg(unix)]
mod cli;
mod crash;
mod cron;
mod damaged;
mod deadline;
mod deploy;
mod differential;
mod explain;
mod fanout_cascade;
mod fanout_params;
mod fanout_soft;
mod faults;
mod first_page;
mod fixture;
mod full;
mod gate;
mod in_flight;
mod interop;
mod lambda;
mod layers;
mod manifest;
mod moved;
mod moving;
mod pages;
mod pending;
mod plan;
mod property;
mod python;
mod race;
mod record;
mod scenario;
mod schedule;
mod seed;
mod singly;
mod stage;
mod store_connect;
mod store_create;
mod store_embedded;
mod store_read;
mod table;
mod templates;
mod transport;
mod ttl;
mod unwritten;
mod weather;
mod world;
