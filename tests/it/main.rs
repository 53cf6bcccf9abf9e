//! The one integration-test binary: a list of its modules.

mod cron;
mod differential;
mod layers;
mod fixture;
mod manifest;
mod property;
mod scenario;
mod schedule;
mod store_connect;
mod table;
mod store_create;
mod store_embedded;
mod transport;
mod ttl;
mod world;
