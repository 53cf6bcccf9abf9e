//! What is known of an entity itself, whatever its limits.

use super::EntityId;

/// An entity's parent, and whether using the entity debits it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Meta {
    /// Whether the parent is debited too, where no level says.
    pub cascade: bool,
    /// The parent.
    pub parent: Option<EntityId>,
    /// Counts moves to another parent; `None` from a client that does not count them.
    pub generation: Option<u64>,
    /// Tells a deleted and recreated entity from the one before.
    pub incarnation: Option<String>,
}
