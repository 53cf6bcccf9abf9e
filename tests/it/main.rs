//! The one integration-test binary: a list of its modules.

mod cron;
mod differential;
mod lambda;
mod manifest;
mod scenario;
mod schedule;
mod store_connect;
mod transport;
mod ttl;
mod world;
