//! The levels of a manifest: `system`, `resources`, `entities`, and the mapping that holds them.
//!
//! Manifests and CloudFormation properties share everything from here down; only the mapping at the
//! root differs.

use super::keys::{Dialect, Found, Given, Keys, Spelled};
use super::problem::Step;
use super::reader::Reader;
use super::schedules::LevelZone;
use super::tree::{Node, Place, Value};
use crate::model::{
    EntityId, Level, LevelConfig, NamespaceName, OnUnavailable, ResourceName, Scope,
};
use std::collections::BTreeMap;

pub(super) const NAMESPACE: Spelled = Spelled("namespace", "Namespace");
pub(super) const SYSTEM: Spelled = Spelled("system", "System");
pub(super) const RESOURCES: Spelled = Spelled("resources", "Resources");
pub(super) const ENTITIES: Spelled = Spelled("entities", "Entities");
const LIMITS: Spelled = Spelled("limits", "Limits");
const ON_UNAVAILABLE: Spelled = Spelled("on_unavailable", "OnUnavailable");
const DISABLED: Spelled = Spelled("disabled", "Disabled");
const CASCADE: Spelled = Spelled("cascade", "Cascade");

/// Keys that people write at the root and that belong to a level.
pub(super) const NOT_AT_ROOT: &[(Spelled, Spelled)] = &[
    (
        LIMITS,
        Spelled("put it under `system`", "put it under `System`"),
    ),
    (
        ON_UNAVAILABLE,
        Spelled("put it under `system`", "put it under `System`"),
    ),
    (DISABLED, NOT_FOR_SYSTEM),
    (CASCADE, NOT_FOR_SYSTEM),
];
const NOT_FOR_SYSTEM: Spelled = Spelled(
    "set it under resources.<name> or entities.<id>.resources.<name>",
    "set it under Resources.<name> or Entities.<id>.Resources.<name>",
);
const ENTITY_WIDE: Spelled = Spelled(
    "what holds for every resource of the entity goes under `resources: _default_:`",
    "what holds for every resource of the entity goes under Resources._default_",
);

const ROOT: Keys<4> = Keys {
    known: [NAMESPACE, SYSTEM, RESOURCES, ENTITIES],
    elsewhere: NOT_AT_ROOT,
};
const SYSTEM_LEVEL: Keys<2> = Keys {
    known: [ON_UNAVAILABLE, LIMITS],
    elsewhere: &[(DISABLED, NOT_FOR_SYSTEM), (CASCADE, NOT_FOR_SYSTEM)],
};
const LEVEL: Keys<3> = Keys {
    known: [DISABLED, CASCADE, LIMITS],
    elsewhere: &[(
        ON_UNAVAILABLE,
        Spelled("only `system` has it", "only `System` has it"),
    )],
};
const ENTITY: Keys<1> = Keys {
    known: [RESOURCES],
    elsewhere: &[
        (LIMITS, ENTITY_WIDE),
        (DISABLED, ENTITY_WIDE),
        (CASCADE, ENTITY_WIDE),
    ],
};

/// What an input declares, and where.
#[derive(Debug, Default)]
pub(super) struct Declared {
    pub(super) namespace: Option<(NamespaceName, Place)>,
    /// In the order of the text, a level declared twice included.
    pub(super) levels: Vec<Declaration>,
}

/// One declared level.
#[derive(Debug)]
pub(super) struct Declaration {
    pub(super) level: Level,
    pub(super) place: Place,
    pub(super) config: LevelConfig,
}

impl Declared {
    fn insert(&mut self, level: Level, place: Place, config: LevelConfig) {
        self.levels.push(Declaration {
            level,
            place,
            config,
        });
    }

    /// What each level says, in the order in which levels are written.
    pub(super) fn into_levels(self) -> BTreeMap<Level, LevelConfig> {
        let levels = self.levels.into_iter();
        levels
            .map(|declared| (declared.level, declared.config))
            .collect()
    }
}

impl<'t> Reader<'t> {
    /// A whole manifest.
    pub(super) fn manifest(&mut self, root: &'t Node<'t>) -> Declared {
        let mut declared = Declared::default();
        match &root.value {
            Value::Map(_) => {}
            Value::Null => {
                let at = match self.dialect {
                    Dialect::Yaml => Place::START,
                    Dialect::Json | Dialect::Properties => root.place,
                };
                self.report_with(
                    at,
                    "the document is empty",
                    "a manifest needs at least `namespace: NAME`",
                );
                return declared;
            }
            _ => {
                let found = self.describe(root);
                self.report_with(
                    root.place,
                    format!("the document is {found}, not a mapping"),
                    "a manifest starts with `namespace: NAME`",
                );
                return declared;
            }
        }
        let Some([namespace, system, resources, entities]) = self.fields(root, &ROOT) else {
            return declared;
        };
        declared.namespace = self.namespace(root, &namespace);
        self.levels(&system, &resources, &entities, &mut declared);
        declared
    }

    /// The three keys that hold levels.
    pub(super) fn levels(
        &mut self,
        system: &Given<'t>,
        resources: &Given<'t>,
        entities: &Given<'t>,
        declared: &mut Declared,
    ) {
        // `system:` without a value is a level that says nothing, in JSON too.
        let at = system.place();
        let found = self.read(system, |reader, node| Found::Is(reader.system(node)));
        if let Some(at) = at {
            declared.insert(Level::System, at, found.ok().unwrap_or_default());
        }
        self.read(resources, |reader, node| {
            for entry in reader.entries(node) {
                reader.within(Step::Key(entry.name), |reader| {
                    let name = reader.resource(entry.place, entry.name);
                    let config = reader.level(entry.value);
                    if let Some(name) = name {
                        declared.insert(Level::Resource(name), entry.place, config);
                    }
                });
            }
            Found::Is(())
        });
        self.read(entities, |reader, node| {
            for entry in reader.entries(node) {
                reader.within(Step::Key(entry.name), |reader| {
                    let entity = reader.name(entry.place, entry.name, EntityId::parse);
                    reader.entity(entity.as_ref(), entry.value, declared);
                });
            }
            Found::Is(())
        });
    }

    fn resource(&mut self, at: Place, name: &str) -> Option<ResourceName> {
        if name == Scope::DEFAULT {
            let system = self.spelled(SYSTEM);
            self.report_with(
                at,
                format!("`{name}` stands for every resource of one entity"),
                format!("what holds for every resource goes under `{system}`"),
            );
            return None;
        }
        self.name(at, name, ResourceName::parse)
    }

    fn namespace(&mut self, root: &Node<'_>, given: &Given<'t>) -> Option<(NamespaceName, Place)> {
        let found = self.read(given, |reader, node| {
            let name = reader.parsed(node, NamespaceName::parse);
            name.map(|name| (name, node.place))
        });
        self.required(
            root,
            given,
            found,
            "the name of the namespace that this declares",
        )
    }

    fn system(&mut self, node: &'t Node<'t>) -> LevelConfig {
        let Some([on_unavailable, limits]) = self.fields(node, &SYSTEM_LEVEL) else {
            return LevelConfig::default();
        };
        let on_unavailable = self.read(&on_unavailable, |reader, node| {
            reader.word(
                node,
                &[
                    ("allow", OnUnavailable::Allow),
                    ("block", OnUnavailable::Block),
                ],
            )
        });
        LevelConfig {
            on_unavailable: on_unavailable.ok(),
            ..self.limits_of_level(&limits)
        }
    }

    fn entity(&mut self, entity: Option<&EntityId>, node: &'t Node<'t>, declared: &mut Declared) {
        let Some([resources]) = self.fields(node, &ENTITY) else {
            return;
        };
        self.read(&resources, |reader, node| {
            for entry in reader.entries(node) {
                reader.within(Step::Key(entry.name), |reader| {
                    let scope = reader.name(entry.place, entry.name, Scope::parse);
                    let config = reader.level(entry.value);
                    if let (Some(entity), Some(scope)) = (entity, scope) {
                        let level = Level::Entity(entity.clone(), scope);
                        declared.insert(level, entry.place, config);
                    }
                });
            }
            Found::Is(())
        });
    }

    fn level(&mut self, node: &'t Node<'t>) -> LevelConfig {
        let Some([disabled, cascade, limits]) = self.fields(node, &LEVEL) else {
            return LevelConfig::default();
        };
        LevelConfig {
            disabled: self.read(&disabled, Reader::switch).ok(),
            cascade: self.read(&cascade, Reader::flag).ok(),
            ..self.limits_of_level(&limits)
        }
    }

    fn limits_of_level(&mut self, given: &Given<'t>) -> LevelConfig {
        let mut zone = LevelZone::default();
        let limits = self.read(given, |reader, node| {
            Found::Is(reader.limits(node, &mut zone))
        });
        LevelConfig {
            limits: limits.ok().unwrap_or_default(),
            zone: zone.into_zone(),
            ..LevelConfig::default()
        }
    }
}
