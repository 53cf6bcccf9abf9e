//! The two registries of a namespace: which resources have a config, and how many entities have
//! one for each resource. Clients list from them.

use super::attr::{Item, ItemError, Reader, number, text};
use super::keys;
use crate::model::{NamespaceId, ResourceName, Scope};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeMap, BTreeSet};

/// An update expression with its names and values, ready for one request.
#[derive(Debug, Clone, PartialEq)]
pub struct RegistryUpdate {
    /// The item.
    pub key: keys::Key,
    /// The update expression.
    pub expression: String,
    /// Attribute names by alias.
    pub names: BTreeMap<String, String>,
    /// Attribute values by alias.
    pub values: BTreeMap<String, AttributeValue>,
    /// What is wrong with an item that cannot be changed so.
    pub expects: &'static str,
}

/// What a group of level writes changes about the registries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistryChange {
    /// Resources whose config appears.
    pub resources_added: BTreeSet<ResourceName>,
    /// Resources whose config goes.
    pub resources_removed: BTreeSet<ResourceName>,
    /// By how much the count of entity configs changes, per scope.
    pub entity_configs: BTreeMap<Scope, i64>,
}

impl RegistryChange {
    /// The updates that make the change: one for each registry that changes, since an item may
    /// take part only once in a transaction. A set cannot grow and shrink in one update, so
    /// a group of writes holds either added or removed resources, never both.
    pub fn updates(&self, ns: &NamespaceId) -> Vec<RegistryUpdate> {
        self.resource_update(ns)
            .into_iter()
            .chain(self.entity_config_update(ns))
            .collect()
    }

    fn resource_update(&self, ns: &NamespaceId) -> Option<RegistryUpdate> {
        let (verb, resources) = match (&self.resources_added, &self.resources_removed) {
            (added, _) if !added.is_empty() => ("ADD", added),
            (_, removed) if !removed.is_empty() => ("DELETE", removed),
            _ => return None,
        };
        let key = keys::resource_registry(ns);
        let mut values = index_values(ns, &key);
        let names = resources.iter().map(ToString::to_string).collect();
        values.insert(":resources".to_owned(), AttributeValue::Ss(names));
        Some(RegistryUpdate {
            key,
            expression: format!("{KEEP_INDEXED} {verb} resources :resources"),
            names: BTreeMap::new(),
            values,
            expects: "has an attribute \"resources\" that is no set of strings",
        })
    }

    fn entity_config_update(&self, ns: &NamespaceId) -> Option<RegistryUpdate> {
        let changed: Vec<_> = self
            .entity_configs
            .iter()
            .filter(|(_, by)| **by != 0)
            .collect();
        if changed.is_empty() {
            return None;
        }
        let key = keys::entity_config_registry(ns);
        let mut values = index_values(ns, &key);
        let mut names = BTreeMap::new();
        let mut additions = Vec::new();
        for (index, (scope, by)) in changed.into_iter().enumerate() {
            names.insert(format!("#r{index}"), scope.to_string());
            values.insert(format!(":r{index}"), number(by));
            additions.push(format!("#r{index} :r{index}"));
        }
        let expression = format!("{KEEP_INDEXED} ADD {}", additions.join(", "));
        Some(RegistryUpdate {
            key,
            expression,
            names,
            values,
            expects: "has a count that is no number",
        })
    }
}

const KEEP_INDEXED: &str =
    "SET GSI4PK = if_not_exists(GSI4PK, :ns), GSI4SK = if_not_exists(GSI4SK, :pk)";

fn index_values(ns: &NamespaceId, key: &keys::Key) -> BTreeMap<String, AttributeValue> {
    BTreeMap::from([
        (":ns".to_owned(), text(ns.as_str())),
        (":pk".to_owned(), text(&key.pk)),
    ])
}

/// The update that removes counts that have come down to nothing; `None` when there are none. It is
/// conditioned on them still being so.
///
/// # Errors
/// [`ItemError`] when a count does not read.
pub fn tidy_entity_configs(ns: &NamespaceId, item: &Item) -> Result<Option<Tidy>, ItemError> {
    let mut empty = Vec::new();
    for (name, value) in item {
        if let AttributeValue::N(count) = value {
            let count: i64 = count
                .parse()
                .map_err(|_| Reader::new(item).error(name, "is not a count"))?;
            if count <= 0 {
                empty.push(name.clone());
            }
        }
    }
    empty.sort();
    let names: BTreeMap<String, String> = empty
        .into_iter()
        .take(TIDIED_AT_ONCE)
        .enumerate()
        .map(|(index, name)| (format!("#r{index}"), name))
        .collect();
    let aliases: Vec<&str> = names.keys().map(String::as_str).collect();
    let conditions: Vec<String> = aliases
        .iter()
        .map(|alias| format!("{alias} <= :none"))
        .collect();
    Ok((!names.is_empty()).then(|| Tidy {
        key: keys::entity_config_registry(ns),
        expression: format!("REMOVE {}", aliases.join(", ")),
        condition: conditions.join(" AND "),
        values: BTreeMap::from([(":none".to_owned(), number(0))]),
        names: names.clone(),
    }))
}

/// Counts that one update removes, well within what an expression may hold.
const TIDIED_AT_ONCE: usize = 100;

/// A conditional removal from a registry.
#[derive(Debug, Clone, PartialEq)]
pub struct Tidy {
    /// The item.
    pub key: keys::Key,
    /// The update expression.
    pub expression: String,
    /// The condition expression.
    pub condition: String,
    /// Attribute names by alias.
    pub names: BTreeMap<String, String>,
    /// Attribute values by alias.
    pub values: BTreeMap<String, AttributeValue>,
}
