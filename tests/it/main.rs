//! The one integration-test binary: a list of its modules.

mod cron;
mod differential;
mod schedule;
mod store_connect;
mod ttl;
