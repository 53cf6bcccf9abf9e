//! The one integration-test binary: a list of its modules.

mod crash;
mod cron;
mod differential;
mod fixture;
mod in_flight;
mod lambda;
mod layers;
mod manifest;
mod plan;
mod property;
mod scenario;
mod schedule;
mod store_connect;
mod store_create;
mod store_embedded;
mod table;
mod transport;
mod ttl;
mod world;
