//! Levels: where a limit or a switch can be declared, and what one level declares.

use super::{EntityId, Limit, LimitName, NameError, ResourceName, Switch, Zone};
use litemap::LiteMap;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which resources an entity's level covers.
///
/// `Default` sorts first, so that an entity's own resource is stamped after its `_default_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// `_default_`: every resource of the entity that has no level of its own.
    Default,
    /// One resource.
    Resource(ResourceName),
}

impl Scope {
    /// How the entity-wide scope is spelled, in manifests and in keys.
    pub const DEFAULT: &'static str = "_default_";

    /// Reads `_default_` or a resource name.
    ///
    /// # Errors
    /// [`NameError`] when the text is neither.
    pub fn parse(text: &str) -> Result<Scope, NameError> {
        if text == Self::DEFAULT {
            return Ok(Scope::Default);
        }
        ResourceName::parse(text).map(Scope::Resource)
    }

    /// The scope as manifests and keys spell it.
    pub fn as_str(&self) -> &str {
        match self {
            Scope::Default => Self::DEFAULT,
            Scope::Resource(resource) => resource.as_str(),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One place of the hierarchy. The order is the order of writes: the least specific first, so
/// that a carve-out is stamped after what it is carved out of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Defaults for the whole namespace.
    System,
    /// One resource, for every entity.
    Resource(ResourceName),
    /// One entity, for one resource or for all of its resources.
    Entity(EntityId, Scope),
}

impl Level {
    /// `system`, `resource` or `entity`: the kind as records and reports spell it.
    pub fn kind(&self) -> &'static str {
        match self {
            Level::System => "system",
            Level::Resource(_) => "resource",
            Level::Entity(..) => "entity",
        }
    }

    /// What the level is about: nothing, a resource, or `entity/resource`.
    pub fn target(&self) -> Option<String> {
        match self {
            Level::System => None,
            Level::Resource(resource) => Some(resource.to_string()),
            Level::Entity(entity, scope) => Some(format!("{entity}/{scope}")),
        }
    }

    /// Reads back what [`Level::kind`] and [`Level::target`] wrote. `None` for anything else.
    pub fn from_parts(kind: &str, target: &str) -> Option<Level> {
        match kind {
            "system" if target.is_empty() => Some(Level::System),
            "resource" => ResourceName::parse(target).ok().map(Level::Resource),
            "entity" => {
                // An entity id holds no '/', a resource may.
                let (entity, scope) = target.split_once('/')?;
                Some(Level::Entity(
                    EntityId::parse(entity).ok()?,
                    Scope::parse(scope).ok()?,
                ))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Level {
    /// `system`, `resource gpt-4`, `entity user-1/gpt-4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Level::System => f.write_str("system"),
            Level::Resource(resource) => write!(f, "resource {resource}"),
            Level::Entity(entity, scope) => write!(f, "entity {entity}/{scope}"),
        }
    }
}

/// What clients do when the table cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnUnavailable {
    /// Admit.
    Allow,
    /// Refuse.
    Block,
}

impl OnUnavailable {
    /// `allow` or `block`.
    pub fn as_str(self) -> &'static str {
        match self {
            OnUnavailable::Allow => "allow",
            OnUnavailable::Block => "block",
        }
    }
}

/// What one level declares. Every part may be absent; an empty level is legal.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LevelConfig {
    /// The limits, by name. A level that defines any limit wins outright over less specific ones.
    pub limits: LiteMap<LimitName, Limit>,
    /// The zone of every schedule on this level; `None` when nothing here is scheduled.
    pub zone: Option<Zone>,
    /// The switch; `None` inherits. Always `None` at the system level.
    pub disabled: Option<Switch>,
    /// Whether the entity's parent is debited too; `None` inherits. Always `None` at the system level.
    pub cascade: Option<bool>,
    /// What clients do when the table is away. Only at the system level.
    pub on_unavailable: Option<OnUnavailable>,
}
