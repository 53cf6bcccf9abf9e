//! The one integration-test binary: a list of its modules.

mod store_connect;
mod transport;
