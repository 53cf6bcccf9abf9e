//! What is legal in a manifest and still worth a second look. Never a reason to refuse it.

use super::problem::{Step, path_text, write_start};
use super::tree::Place;
use crate::model::{EntityId, Level, LevelConfig, ResourceName, Scope, Switch};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// One warning about one level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// The file as it was named by the caller; `None` for JSON and CloudFormation properties.
    pub file: Option<String>,
    /// The line of the level's key, from 1; `None` where the input has no lines.
    pub line: Option<u32>,
    /// The column in characters, from 1.
    pub column: Option<u32>,
    /// The key that is warned about, such as `resources.gpt-4.cascade`.
    pub path: String,
    /// What may surprise.
    pub message: String,
}

impl fmt::Display for Warning {
    /// `file:line:column: path: message`, without the parts that are missing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_start(f, self.file.as_deref(), self.line, self.column, &self.path)?;
        f.write_str(&self.message)
    }
}

/// Every warning, in the order of the levels, each of which comes with its place.
pub(super) fn warnings<'m>(
    levels: impl Iterator<Item = (&'m Level, &'m LevelConfig, Place)> + Clone,
    file: Option<&str>,
) -> Vec<Warning> {
    let facts = Facts::of(levels.clone());
    let mut warnings = Vec::new();
    for (level, config, place) in levels {
        let messages = [
            facts.cascade(level, config),
            facts.bypass(level, config),
            facts.unreachable(level, config),
        ];
        for (key, message) in messages.into_iter().flatten() {
            let place = place.known();
            warnings.push(Warning {
                file: file.map(str::to_owned),
                line: place.map(|place| place.line),
                column: place.map(|place| place.column),
                path: path_of(level, key),
                message,
            });
        }
    }
    warnings
}

/// What the warnings need to know about all levels at once.
#[derive(Default)]
struct Facts<'m> {
    /// Every resource that any level names.
    resources: BTreeSet<&'m ResourceName>,
    /// Resources for which some entity has limits of its own.
    limited: BTreeSet<&'m ResourceName>,
    /// Whether some entity has limits for all of its resources.
    limited_default: bool,
    /// For each entity, the resources for which it sets a switch.
    switched: BTreeMap<&'m EntityId, BTreeSet<&'m ResourceName>>,
}

type Said = Option<(&'static str, String)>;

impl<'m> Facts<'m> {
    fn of(levels: impl Iterator<Item = (&'m Level, &'m LevelConfig, Place)>) -> Facts<'m> {
        let mut facts = Facts::default();
        for (level, config, _) in levels {
            match level {
                Level::System => {}
                Level::Resource(resource) => {
                    facts.resources.insert(resource);
                }
                Level::Entity(_, Scope::Default) => {
                    facts.limited_default |= !config.limits.is_empty();
                }
                Level::Entity(entity, Scope::Resource(resource)) => {
                    facts.resources.insert(resource);
                    if !config.limits.is_empty() {
                        facts.limited.insert(resource);
                    }
                    if config.disabled.is_some() {
                        facts.switched.entry(entity).or_default().insert(resource);
                    }
                }
            }
        }
        facts
    }

    /// A parent that is debited through a cascade is limited by what applies to it. Without limits
    /// of its own it gets the resource's, which are written for one entity.
    fn cascade(&self, level: &Level, config: &LevelConfig) -> Said {
        let Level::Resource(resource) = level else {
            return None;
        };
        let covered = self.limited_default || self.limited.contains(resource);
        (config.cascade == Some(true) && !covered).then(|| {
            let message = "no entity has limits of its own for this resource, so a parent is held \
                           to the limits of a single entity";
            ("cascade", message.to_owned())
        })
    }

    fn bypass(&self, level: &Level, config: &LevelConfig) -> Said {
        let at_resource = matches!(level, Level::Resource(_));
        (at_resource && config.disabled == Some(Switch::Bypass)).then(|| {
            let message = "every entity without a switch of its own is admitted without limits";
            ("disabled", message.to_owned())
        })
    }

    /// Entities and resources are open sets, so a switch of a resource always reaches somebody. A
    /// switch of an entity's `_default_` reaches nothing that the manifest knows of when each
    /// resource it names has a switch for that entity.
    fn unreachable(&self, level: &Level, config: &LevelConfig) -> Said {
        let Level::Entity(entity, Scope::Default) = level else {
            return None;
        };
        config.disabled?;
        let own = self.switched.get(entity)?;
        (own.len() == self.resources.len()).then(|| {
            let message = "nothing here is reached by this switch: for every resource of the \
                           manifest the entity has a switch that is more specific";
            ("disabled", message.to_owned())
        })
    }
}

/// The path of a key of a level.
pub(super) fn path_of(level: &Level, key: &str) -> String {
    let mut steps = match level {
        Level::System => vec![Step::Key("system")],
        Level::Resource(resource) => vec![Step::Key("resources"), Step::Key(resource.as_str())],
        Level::Entity(entity, scope) => vec![
            Step::Key("entities"),
            Step::Key(entity.as_str()),
            Step::Key("resources"),
            Step::Key(scope.as_str()),
        ],
    };
    steps.push(Step::Key(key));
    path_text(&steps)
}
