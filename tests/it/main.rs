//! The one integration-test binary: a list of its modules.

mod cron;
mod differential;
mod scenario;
mod schedule;
mod store_connect;
mod ttl;
mod world;
mod transport;
//! The integration tests: one binary, one module a subject.

mod manifest;
