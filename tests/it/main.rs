//! The one integration-test binary: a list of its modules.

mod fixture;
mod store_connect;
mod store_create;
mod store_embedded;
mod transport;
