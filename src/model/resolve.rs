//! The one resolution: which level decides for an entity and a resource.
//!
//! Fan-out, explain and verify all ask here, so they cannot disagree. The walk is entity and
//! resource, entity and `_default_`, resource, and for limits the system level last.

use super::{AccessMode, EntityId, Level, LevelConfig, ResourceName, Scope, Switch};
use serde::Serialize;

/// The step of the walk that decided, most specific first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The entity's level for this resource.
    Entity,
    /// The entity's `_default_` level.
    EntityDefault,
    /// The resource's level.
    Resource,
    /// The system level. Limits only.
    System,
}

/// Every level of the walk of an entity and a resource, most specific first.
pub fn levels(entity: &EntityId, resource: &ResourceName) -> [(Step, Level); 4] {
    let own = Scope::Resource(resource.clone());
    let of_entity = |scope| Level::Entity(entity.clone(), scope);
    [
        (Step::Entity, of_entity(own)),
        (Step::EntityDefault, of_entity(Scope::Default)),
        (Step::Resource, Level::Resource(resource.clone())),
        (Step::System, Level::System),
    ]
}

/// The levels of one walk, as they are stored. A level that is not stored is `None`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Walk<'a> {
    /// The entity's level for this resource.
    pub entity: Option<&'a LevelConfig>,
    /// The entity's `_default_` level.
    pub entity_default: Option<&'a LevelConfig>,
    /// The resource's level.
    pub resource: Option<&'a LevelConfig>,
    /// The system level.
    pub system: Option<&'a LevelConfig>,
}

/// Who decides access, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// What buckets must enforce.
    pub mode: AccessMode,
    /// The level that said so; `None` when none sets a switch.
    pub winner: Option<(Step, Switch)>,
}

impl<'a> Walk<'a> {
    /// The walk over [`levels`], given what is stored of each.
    pub fn over(
        levels: &[(Step, Level); 4],
        stored: impl Fn(&Level) -> Option<&'a LevelConfig>,
    ) -> Walk<'a> {
        let [entity, entity_default, resource, system] = levels;
        Walk {
            entity: stored(&entity.1),
            entity_default: stored(&entity_default.1),
            resource: stored(&resource.1),
            system: stored(&system.1),
        }
    }

    fn steps(self) -> [(Step, Option<&'a LevelConfig>); 4] {
        [
            (Step::Entity, self.entity),
            (Step::EntityDefault, self.entity_default),
            (Step::Resource, self.resource),
            (Step::System, self.system),
        ]
    }

    /// The first level that sets a switch wins, whether or not it has limits; none means enforce.
    pub fn access(self) -> Access {
        access(
            self.entity.and_then(|l| l.disabled),
            self.entity_default.and_then(|l| l.disabled),
            self.resource.and_then(|l| l.disabled),
        )
    }

    /// The first level that sets a cascade policy. `None`: the entity's own META decides.
    pub fn cascade(self) -> Option<(Step, bool)> {
        self.steps()
            .into_iter()
            .filter(|(step, _)| *step != Step::System)
            .find_map(|(step, level)| level?.cascade.map(|cascade| (step, cascade)))
    }

    /// The first level that defines any limit; it wins outright.
    pub fn limits(self) -> Option<(Step, &'a LevelConfig)> {
        self.steps()
            .into_iter()
            .find_map(|(step, level)| level.filter(|l| !l.limits.is_empty()).map(|l| (step, l)))
    }
}

/// Resolves access from the switches alone: entity and resource, entity `_default_`, resource.
pub fn access(
    entity: Option<Switch>,
    entity_default: Option<Switch>,
    resource: Option<Switch>,
) -> Access {
    let winner = [
        (Step::Entity, entity),
        (Step::EntityDefault, entity_default),
        (Step::Resource, resource),
    ]
    .into_iter()
    .find_map(|(step, switch)| switch.map(|switch| (step, switch)));
    Access {
        mode: winner.map_or(AccessMode::Enforce, |(_, switch)| switch.mode()),
        winner,
    }
}
