//! The one resolution: which level decides for an entity and a resource.
//!
//! Fan-outs, explanations and sample data all ask here, so they cannot disagree. The walk is entity and
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every triple of what the entity's level, its `_default_` and the resource say (`-` nothing, `D`
    /// disabled, `E` enabled, `B` bypass), and which of the three decides, with what.
    const TRIPLES: &str = "
        ---=- --D=3D --E=3E --B=3B
        -D-=2D -DD=2D -DE=2D -DB=2D
        -E-=2E -ED=2E -EE=2E -EB=2E
        -B-=2B -BD=2B -BE=2B -BB=2B
        D--=1D D-D=1D D-E=1D D-B=1D
        DD-=1D DDD=1D DDE=1D DDB=1D
        DE-=1D DED=1D DEE=1D DEB=1D
        DB-=1D DBD=1D DBE=1D DBB=1D
        E--=1E E-D=1E E-E=1E E-B=1E
        ED-=1E EDD=1E EDE=1E EDB=1E
        EE-=1E EED=1E EEE=1E EEB=1E
        EB-=1E EBD=1E EBE=1E EBB=1E
        B--=1B B-D=1B B-E=1B B-B=1B
        BD-=1B BDD=1B BDE=1B BDB=1B
        BE-=1B BED=1B BEE=1B BEB=1B
        BB-=1B BBD=1B BBE=1B BBB=1B";

    fn switch(letter: char) -> Option<Switch> {
        match letter {
            'D' => Some(Switch::Disabled),
            'E' => Some(Switch::Enabled),
            'B' => Some(Switch::Bypass),
            _ => None,
        }
    }

    #[test]
    fn the_most_specific_switch_decides_for_every_triple() {
        let mut seen = std::collections::BTreeSet::new();
        for row in TRIPLES.split_whitespace() {
            let (triple, winner) = row.split_once('=').expect("a triple and its winner");
            let said: Vec<_> = triple.chars().map(switch).collect();
            let step = match &winner[..1] {
                "1" => Some(Step::Entity),
                "2" => Some(Step::EntityDefault),
                "3" => Some(Step::Resource),
                _ => None,
            };
            let decides = winner.chars().nth(1).and_then(switch);
            let mode = match decides {
                Some(Switch::Disabled) => AccessMode::Disabled,
                Some(Switch::Bypass) => AccessMode::Bypass,
                Some(Switch::Enabled) | None => AccessMode::Enforce,
            };
            let resolved = access(said[0], said[1], said[2]);
            assert_eq!(resolved.winner, step.zip(decides), "{row}");
            assert_eq!(resolved.mode, mode, "{row}");
            seen.insert(triple);
        }
        assert_eq!(seen.len(), 64);
    }
}
