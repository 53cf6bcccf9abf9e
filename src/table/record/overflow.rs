//! What of the record one item does not hold: its entities, in items that each write makes anew.

use super::super::attr::{Item, ItemError, Reader, text};
use super::super::keys;
use super::{ENTITIES, keyed, put_switches};
use crate::model::{EntityId, Level, NamespaceId, ProvisionerRecord, Scope};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::BTreeMap;
use thiserror::Error;

/// The most overflow items of one record: their numbers have three digits.
pub(super) const MOST_OVERFLOW: usize = 999;

pub(super) const OVERFLOW: &str = "overflow";
pub(super) const OVERFLOW_OF: &str = "overflow_of";

/// A record that its items cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the provisioner record needs {needed} overflow items, and {MOST_OVERFLOW} is the most: \
     spread the entities over several namespaces"
)]
pub struct RecordTooLarge {
    /// How many it needs.
    pub needed: usize,
}

pub(super) type Part<'a> = BTreeMap<&'a EntityId, Vec<&'a Scope>>;

/// Entities in parts that each fit an item together with their switches.
pub(super) fn split_entities(record: &ProvisionerRecord, budget: usize) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    let mut used = usize::MAX;
    for level in &record.managed {
        let Level::Entity(entity, scope) = level else {
            continue;
        };
        let cost = entity_cost(entity, scope);
        if used.saturating_add(cost) > budget {
            parts.push(Part::new());
            used = 0;
        }
        used += cost;
        if let Some(part) = parts.last_mut() {
            part.entry(entity).or_default().push(scope);
        }
    }
    parts
}

/// The scope in its list, the entity's name and its list when it is new, and the switch.
fn entity_cost(entity: &EntityId, scope: &Scope) -> usize {
    2 * scope.as_str().len() + 2 * entity.as_str().len() + 32
}

/// Whether the only part of the entities fits the record's own item, beside the resources.
pub(super) fn fits_beside(
    record: &ProvisionerRecord,
    part: Option<&Part<'_>>,
    budget: usize,
) -> bool {
    let resources = record.managed.iter().filter_map(|level| match level {
        // In its list, and the switch.
        Level::Resource(resource) => Some(2 * resource.as_str().len() + 32),
        _ => None,
    });
    let entities = part.into_iter().flatten();
    let entities = entities.flat_map(|(entity, scopes)| {
        let cost = |scope: &&Scope| entity_cost(entity, scope);
        scopes.iter().map(cost)
    });
    resources.sum::<usize>() + entities.sum::<usize>() <= budget
}

pub(super) fn entities_map(part: &Part<'_>) -> Item {
    part.iter()
        .map(|(entity, scopes)| {
            let scopes = scopes.iter().map(|scope| text(scope.as_str())).collect();
            (entity.to_string(), AttributeValue::L(scopes))
        })
        .collect()
}

pub(super) fn overflow_items(
    ns: &NamespaceId,
    record: &ProvisionerRecord,
    parts: &[Part<'_>],
    write: &str,
) -> Vec<Item> {
    let item = |(index, part): (usize, &Part<'_>)| {
        let mut item = keyed(ns, &keys::managed_overflow(ns, write, index));
        item.insert(ENTITIES.to_owned(), AttributeValue::M(entities_map(part)));
        let level = |entity: &EntityId, scope: &Scope| Level::Entity(entity.clone(), scope.clone());
        let levels = part
            .iter()
            .flat_map(|(entity, scopes)| scopes.iter().map(|scope| level(entity, scope)));
        put_switches(&mut item, record, levels.collect::<Vec<_>>().iter());
        item
    };
    parts.iter().enumerate().map(item).collect()
}

/// Where the overflow items of a record are.
///
/// # Errors
/// [`ItemError`] when their count does not read, or is more than a record can have.
pub fn overflow_keys(ns: &NamespaceId, main: &Item) -> Result<Vec<keys::Key>, ItemError> {
    let reader = Reader::new(main);
    let count = overflow_count(reader)?;
    if count == 0 {
        return Ok(Vec::new());
    }
    let write = reader.required_text(OVERFLOW_OF)?;
    let keys = (0..count).map(|index| keys::managed_overflow(ns, write, index));
    Ok(keys.collect())
}

pub(super) fn overflow_count(reader: Reader<'_>) -> Result<usize, ItemError> {
    let count = reader.whole(OVERFLOW)?.unwrap_or(0);
    usize::try_from(count)
        .ok()
        .filter(|count| *count <= MOST_OVERFLOW)
        .ok_or_else(|| reader.error(OVERFLOW, format!("is {count}, above {MOST_OVERFLOW}")))
}

#[cfg(test)]
mod tests {
    use super::super::{decode, encode_within};
    use super::*;
    use crate::table::attr::number;

    fn record(entities: usize) -> ProvisionerRecord {
        let level = |index| Level::from_parts("entity", &format!("user-{index}/gpt-4"));
        ProvisionerRecord {
            managed: (0..entities).filter_map(level).collect(),
            ..ProvisionerRecord::default()
        }
    }

    #[test]
    fn a_record_has_as_many_overflow_items_as_their_numbers_name() {
        let ns = NamespaceId::parse("a7x3kq").expect("an id");
        // One entity an item.
        let most = encode_within(&ns, &record(999), "w", 1).expect("it fits");
        assert_eq!(overflow_count(Reader::new(&most.main)), Ok(999));
        assert_eq!(most.overflow[998]["SK"], text("#PROVISIONER#MANAGED#w#998"));
        assert_eq!(decode(&most).expect("it reads"), record(999));
        let refused = encode_within(&ns, &record(1000), "w", 1).expect_err("it does not fit");
        assert_eq!(refused.needed, 1000);
        insta::assert_snapshot!(refused, @"the provisioner record needs 1000 overflow items, and 999 is the most: spread the entities over several namespaces");
    }

    #[test]
    fn a_count_that_no_record_has_is_refused_before_anything_is_read_for_it() {
        for count in [1000, u64::MAX] {
            let main = Item::from([(OVERFLOW.to_owned(), number(count))]);
            let refused = overflow_count(Reader::new(&main)).expect_err("it is refused");
            assert_eq!(refused.attribute, OVERFLOW);
            assert_eq!(refused.problem, format!("is {count}, above 999"));
        }
    }
}
