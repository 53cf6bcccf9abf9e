//! One JSON form for what a manifest means, however it was written.
//!
//! The shape is the one the Python provisioner hashes and its command line sends: snake case,
//! defaults written out, what was not declared left out. Keys are sorted, so that the same meaning
//! always has the same bytes.

use crate::model::{Level, LevelConfig, NamespaceName};
use serde::Serialize;
use std::collections::BTreeMap;

/// A manifest that is written in its canonical form, level by level: a tree of a hundred thousand
/// levels costs more than all that is done with it. Fields stand in the order of their names.
#[derive(Serialize)]
pub(super) struct Canonical<'m> {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    entities: BTreeMap<&'m str, Entity<'m>>,
    namespace: &'m str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    resources: BTreeMap<&'m str, &'m LevelConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<&'m LevelConfig>,
}

#[derive(Default, Serialize)]
struct Entity<'m> {
    resources: BTreeMap<&'m str, &'m LevelConfig>,
}

impl<'m> Canonical<'m> {
    pub(super) fn new(
        namespace: &'m NamespaceName,
        levels: &'m BTreeMap<Level, LevelConfig>,
    ) -> Canonical<'m> {
        let mut canonical = Canonical {
            entities: BTreeMap::new(),
            namespace: namespace.as_str(),
            resources: BTreeMap::new(),
            system: None,
        };
        for (level, config) in levels {
            match level {
                Level::System => canonical.system = Some(config),
                Level::Resource(resource) => {
                    canonical.resources.insert(resource.as_str(), config);
                }
                Level::Entity(entity, scope) => {
                    let entity = canonical.entities.entry(entity.as_str()).or_default();
                    entity.resources.insert(scope.as_str(), config);
                }
            }
        }
        canonical
    }
}
