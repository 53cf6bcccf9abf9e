//! The one integration-test binary: a list of its modules.

mod store_connect;
//! The one integration-test binary. It only lists its modules.

mod cron;
mod differential;
mod schedule;
mod ttl;
