//! The provisioner record, with overflow items when a namespace manages more than one item holds.
//!
//! Only its form is here: what is managed and who owns it is decided by plans and applies.

use super::attr::{Item, ItemError, Reader, boolean, number, text, texts_of};
use super::{audit, config, keys};
use crate::model::{
    EntityId, EpochMs, Level, ManifestOwner, NamespaceId, ProvisionerRecord, ResourceName, Scope,
    Switch,
};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// What one item may hold before entities move to overflow items, in bytes. The table's limit is
/// 400 KiB; the rest is room for attribute overhead.
const ITEM_BUDGET: usize = 350 * 1024;

/// The most overflow items of one record: their numbers have three digits.
const MOST_OVERFLOW: usize = 999;

const OVERFLOW: &str = "overflow";
const SWITCHES: &str = "switches";
const ENTITIES: &str = "managed_entities";
const OWNER: &str = "owner";
const TAKEN_FROM: &str = "taken_from";

/// The record as items: the record itself, then its overflow items in order.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordItems {
    /// The `#PROVISIONER` item.
    pub main: Item,
    /// The `#PROVISIONER#MANAGED#` items that its `overflow` counts.
    pub overflow: Vec<Item>,
}

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

/// How the record is stored.
///
/// # Errors
/// [`RecordTooLarge`] when it manages more than its items hold.
pub fn encode(ns: &NamespaceId, record: &ProvisionerRecord) -> Result<RecordItems, RecordTooLarge> {
    encode_within(ns, record, ITEM_BUDGET)
}

/// The record in items of at most `budget` bytes.
fn encode_within(
    ns: &NamespaceId,
    record: &ProvisionerRecord,
    budget: usize,
) -> Result<RecordItems, RecordTooLarge> {
    let mut main = keyed(ns, &keys::provisioner(ns));
    main.insert(
        "managed_system".to_owned(),
        boolean(record.managed.contains(&Level::System)),
    );
    let resources = record.managed.iter().filter_map(|level| match level {
        Level::Resource(resource) => Some(text(resource.as_str())),
        _ => None,
    });
    main.insert(
        "managed_resources".to_owned(),
        AttributeValue::L(resources.collect()),
    );
    if let Some(hash) = &record.applied_hash {
        main.insert("applied_hash".to_owned(), text(hash));
    }
    if let Some(hash) = &record.previous_hash {
        main.insert("previous_hash".to_owned(), text(hash));
    }
    if let Some(at) = record.last_applied {
        main.insert("last_applied".to_owned(), text(audit::rfc3339_seconds(at)));
    }
    if let Some(owner) = &record.owner {
        main.insert(OWNER.to_owned(), encode_owner(owner));
    }
    if let Some(owner) = &record.taken_from {
        main.insert(TAKEN_FROM.to_owned(), encode_owner(owner));
    }
    main.insert("rev".to_owned(), number(record.rev));
    let parts = split_entities(record, budget);
    if parts.len() > MOST_OVERFLOW {
        let needed = parts.len();
        return Err(RecordTooLarge { needed });
    }
    let spills = parts.len() > 1;
    let is_here = |level: &&Level| !spills || !matches!(level, Level::Entity(..));
    put_switches(&mut main, record, record.managed.iter().filter(is_here));
    let entities = parts.first().filter(|_| !spills).map(entities_map);
    let entities = AttributeValue::M(entities.unwrap_or_default());
    main.insert(ENTITIES.to_owned(), entities);
    let overflow = if spills {
        overflow_items(ns, record, &parts)
    } else {
        Vec::new()
    };
    main.insert(OVERFLOW.to_owned(), number(overflow.len()));
    Ok(RecordItems { main, overflow })
}

fn keyed(ns: &NamespaceId, key: &keys::Key) -> Item {
    Item::from([
        ("PK".to_owned(), text(&key.pk)),
        ("SK".to_owned(), text(&key.sk)),
        ("GSI4PK".to_owned(), text(ns.as_str())),
        ("GSI4SK".to_owned(), text(&key.pk)),
    ])
}

type Part<'a> = BTreeMap<&'a EntityId, Vec<&'a Scope>>;

/// Entities in parts that each fit an item together with their switches.
fn split_entities(record: &ProvisionerRecord, budget: usize) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    let mut used = usize::MAX;
    for level in &record.managed {
        let Level::Entity(entity, scope) = level else {
            continue;
        };
        // The scope in its list, the entity's name and its list when it is new, and the switch.
        let cost = scope.as_str().len() + 2 * entity.as_str().len() + scope.as_str().len() + 32;
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

fn entities_map(part: &Part<'_>) -> Item {
    part.iter()
        .map(|(entity, scopes)| {
            let scopes = scopes.iter().map(|scope| text(scope.as_str())).collect();
            (entity.to_string(), AttributeValue::L(scopes))
        })
        .collect()
}

fn overflow_items(ns: &NamespaceId, record: &ProvisionerRecord, parts: &[Part<'_>]) -> Vec<Item> {
    let item = |(index, part): (usize, &Part<'_>)| {
        let mut item = keyed(ns, &keys::managed_overflow(ns, index));
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

/// The remembered switches of some levels. A record without a memory gets no attribute for one, as
/// the Python provisioner writes it.
fn put_switches<'a>(
    item: &mut Item,
    record: &ProvisionerRecord,
    levels: impl Iterator<Item = &'a Level>,
) {
    let Some(switches) = &record.switches else {
        return;
    };
    let remembered = levels
        .filter_map(|level| Some((switch_name(level), switches.get(level)?)))
        .map(|(name, switch)| (name, config::encode_switch(*switch)));
    let remembered = AttributeValue::M(remembered.collect());
    item.insert(SWITCHES.to_owned(), remembered);
}

fn switch_name(level: &Level) -> String {
    format!("{}#{}", level.kind(), level.target().unwrap_or_default())
}

fn encode_owner(owner: &ManifestOwner) -> AttributeValue {
    let fields = match owner {
        ManifestOwner::Cli => vec![("kind", "cli")],
        ManifestOwner::Stack {
            stack_id,
            logical_id,
        } => {
            vec![
                ("kind", "stack"),
                ("stack_id", stack_id),
                ("logical_id", logical_id),
            ]
        }
    };
    AttributeValue::M(
        fields
            .into_iter()
            .map(|(name, value)| (name.to_owned(), text(value)))
            .collect(),
    )
}

/// How many overflow items the record has.
///
/// # Errors
/// [`ItemError`] when the count does not read, or is more than a record can have.
pub fn overflow_count(main: &Item) -> Result<usize, ItemError> {
    let reader = Reader::new(main);
    let count = reader.whole(OVERFLOW)?.unwrap_or(0);
    usize::try_from(count)
        .ok()
        .filter(|count| *count <= MOST_OVERFLOW)
        .ok_or_else(|| reader.error(OVERFLOW, format!("is {count}, above {MOST_OVERFLOW}")))
}

/// Reads the record back from its items.
///
/// # Errors
/// [`ItemError`] when an item does not read, or one is missing: what it listed would otherwise be
/// forgotten, and never be deleted.
pub fn decode(items: &RecordItems) -> Result<ProvisionerRecord, ItemError> {
    let reader = Reader::new(&items.main);
    let (counted, found) = (overflow_count(&items.main)?, items.overflow.len());
    if found != counted {
        let problem = format!("counts {counted} items, of which {found} are there");
        return Err(reader.error(OVERFLOW, problem));
    }
    let mut managed = BTreeSet::new();
    if reader.boolean("managed_system")?.unwrap_or(false) {
        managed.insert(Level::System);
    }
    for name in reader.texts("managed_resources")? {
        let resource = ResourceName::parse(name)
            .map_err(|e| reader.error("managed_resources", format!("names {name:?}: {e}")))?;
        managed.insert(Level::Resource(resource));
    }
    let mut remembered = BTreeMap::new();
    for item in std::iter::once(&items.main).chain(&items.overflow) {
        let reader = Reader::new(item);
        decode_entities(reader, &mut managed)?;
        decode_switches(reader, &mut remembered)?;
    }
    let last_applied = reader.text("last_applied")?;
    Ok(ProvisionerRecord {
        managed,
        switches: items.main.contains_key(SWITCHES).then_some(remembered),
        owner: decode_owner(reader, OWNER)?,
        taken_from: decode_owner(reader, TAKEN_FROM)?,
        applied_hash: reader.text("applied_hash")?.map(str::to_owned),
        previous_hash: reader.text("previous_hash")?.map(str::to_owned),
        last_applied: last_applied.and_then(instant),
        rev: reader.whole("rev")?.unwrap_or(0),
    })
}

/// An instant that is only shown: one that does not read is left out rather than refused.
fn instant(stored: &str) -> Option<EpochMs> {
    let timestamp: jiff::Timestamp = stored.parse().ok()?;
    u64::try_from(timestamp.as_millisecond()).ok().map(EpochMs)
}

fn decode_entities(reader: Reader<'_>, managed: &mut BTreeSet<Level>) -> Result<(), ItemError> {
    for (entity, scopes) in reader.map(ENTITIES)?.into_iter().flatten() {
        let bad = |problem: String| reader.error(ENTITIES, format!("at {entity:?}: {problem}"));
        let id = EntityId::parse(entity).map_err(|e| bad(e.to_string()))?;
        let scopes = texts_of(scopes).ok_or_else(|| bad("not a list of resources".to_owned()))?;
        for scope in scopes {
            let scope = Scope::parse(scope).map_err(|e| bad(e.to_string()))?;
            managed.insert(Level::Entity(id.clone(), scope));
        }
    }
    Ok(())
}

fn decode_switches(
    reader: Reader<'_>,
    remembered: &mut BTreeMap<Level, Switch>,
) -> Result<(), ItemError> {
    for (name, value) in reader.map(SWITCHES)?.into_iter().flatten() {
        let level = name
            .split_once('#')
            .and_then(|(kind, target)| Level::from_parts(kind, target))
            .ok_or_else(|| reader.error(SWITCHES, format!("names no level at {name:?}")))?;
        let stored = Item::from([("disabled".to_owned(), value.clone())]);
        if let Some(switch) = config::decode_switch(&stored) {
            remembered.insert(level, switch);
        }
    }
    Ok(())
}

fn decode_owner(
    reader: Reader<'_>,
    name: &'static str,
) -> Result<Option<ManifestOwner>, ItemError> {
    let Some(owner) = reader.map(name)? else {
        return Ok(None);
    };
    let owner = Reader::new(owner);
    let named = |error: ItemError| reader.error(name, format!("has {}", error.problem));
    match owner.text("kind").map_err(named)? {
        Some("cli") => Ok(Some(ManifestOwner::Cli)),
        Some("stack") => Ok(Some(ManifestOwner::Stack {
            stack_id: owner.required_text("stack_id").map_err(named)?.to_owned(),
            logical_id: owner.required_text("logical_id").map_err(named)?.to_owned(),
        })),
        other => Err(reader.error(name, format!("is of unknown kind {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let most = encode_within(&ns, &record(999), 1).expect("it fits");
        assert_eq!(overflow_count(&most.main), Ok(999));
        assert_eq!(most.overflow[998]["SK"], text("#PROVISIONER#MANAGED#998"));
        assert_eq!(decode(&most).expect("it reads"), record(999));
        let refused = encode_within(&ns, &record(1000), 1).expect_err("it does not fit");
        assert_eq!(refused.needed, 1000);
        insta::assert_snapshot!(refused, @"the provisioner record needs 1000 overflow items, and 999 is the most: spread the entities over several namespaces");
    }

    #[test]
    fn a_count_that_no_record_has_is_refused_before_anything_is_read_for_it() {
        for count in [1000, u64::MAX] {
            let main = Item::from([(OVERFLOW.to_owned(), number(count))]);
            let refused = overflow_count(&main).expect_err("it is refused");
            assert_eq!(refused.attribute, OVERFLOW);
            assert_eq!(refused.problem, format!("is {count}, above 999"));
        }
    }
}
