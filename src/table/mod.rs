//! The wire format of the table: how what exists is spelled in items.
//!
//! Pure: it turns model types into stored text and back, and does no I/O.

pub mod schedule;
