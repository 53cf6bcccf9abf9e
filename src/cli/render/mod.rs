//! What answers look like. Nothing here decides or reads anything.
//!
//! Everything that comes from a file, the table or a service passes [`text::safe`] or
//! [`markdown::safe`]: an id can neither move a cursor nor open a link.

pub(super) mod explain;
pub(super) mod markdown;
mod now;
pub(super) mod paint;
pub(super) mod resume;
pub(super) mod rows;
pub(super) mod snippet;
pub(super) mod text;
