//! The provisioner record, with overflow items when a namespace manages more than one item holds.
//!
//! Only its form is here: what is managed and who owns it is decided by plans and applies.

mod overflow;

pub use overflow::{RecordTooLarge, overflow_keys};

use super::attr::{Item, ItemError, Reader, boolean, number, text, texts_of};
use super::{audit, config, keys};
use crate::model::{
    EntityId, EpochMs, Level, ManifestOwner, NamespaceId, ProvisionerRecord, ResourceName, Scope,
    Switch,
};
use aws_sdk_dynamodb::types::AttributeValue;
use overflow::{
    MOST_OVERFLOW, OVERFLOW, OVERFLOW_OF, entities_map, fits_beside, overflow_count,
    overflow_items, split_entities,
};
use std::collections::{BTreeMap, BTreeSet};

/// What one item may hold before entities move to overflow items, in bytes. The table's limit is
/// 400 KiB; the rest is room for attribute overhead.
const ITEM_BUDGET: usize = 350 * 1024;

const FULL_OWED: &str = "full_owed";
const CASCADE_PENDING: &str = "cascade_pending";
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

/// How the record is stored. `write` names the write that stores it: its overflow items are its own,
/// so that no other write, nor one that ends halfway, changes what a stored record is made of.
///
/// # Errors
/// [`RecordTooLarge`] when it manages more than its items hold.
pub fn encode(
    ns: &NamespaceId,
    record: &ProvisionerRecord,
    write: &str,
) -> Result<RecordItems, RecordTooLarge> {
    encode_within(ns, record, write, ITEM_BUDGET)
}

/// The record in items of at most `budget` bytes.
fn encode_within(
    ns: &NamespaceId,
    record: &ProvisionerRecord,
    write: &str,
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
    if record.full_owed {
        main.insert(FULL_OWED.to_owned(), boolean(true));
    }
    if !record.cascade_pending.is_empty() {
        main.insert(CASCADE_PENDING.to_owned(), encode_listed(record));
    }
    main.insert("rev".to_owned(), number(record.rev));
    let parts = split_entities(record, budget);
    if parts.len() > MOST_OVERFLOW {
        let needed = parts.len();
        return Err(RecordTooLarge { needed });
    }
    let spills = parts.len() > 1 || !fits_beside(record, parts.first(), budget);
    let is_here = |level: &&Level| !spills || !matches!(level, Level::Entity(..));
    put_switches(&mut main, record, record.managed.iter().filter(is_here));
    let entities = parts.first().filter(|_| !spills).map(entities_map);
    let entities = AttributeValue::M(entities.unwrap_or_default());
    main.insert(ENTITIES.to_owned(), entities);
    let overflow = if spills {
        main.insert(OVERFLOW_OF.to_owned(), text(write));
        overflow_items(ns, record, &parts, write)
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

/// Reads the record back from its items.
///
/// # Errors
/// [`ItemError`] when an item does not read, or one is missing: what it listed would otherwise be
/// forgotten, and never be deleted.
pub fn decode(items: &RecordItems) -> Result<ProvisionerRecord, ItemError> {
    let reader = Reader::new(&items.main);
    let (counted, found) = (overflow_count(reader)?, items.overflow.len());
    if found != counted {
        let problem = format!("counts {counted} items, of which {found} are there");
        return Err(reader.error(OVERFLOW, problem));
    }
    let mut managed = Vec::new();
    if reader.boolean("managed_system")?.unwrap_or(false) {
        managed.push(Level::System);
    }
    for name in reader.texts("managed_resources")? {
        let resource = ResourceName::parse(name)
            .map_err(|e| reader.error("managed_resources", format!("names {name:?}: {e}")))?;
        managed.push(Level::Resource(resource));
    }
    let mut remembered = BTreeMap::new();
    for item in std::iter::once(&items.main).chain(&items.overflow) {
        let reader = Reader::new(item);
        decode_entities(reader, &mut managed)?;
        decode_switches(reader, &mut remembered)?;
    }
    let last_applied = reader.text("last_applied")?;
    Ok(ProvisionerRecord {
        managed: managed.into_iter().collect(),
        switches: items.main.contains_key(SWITCHES).then_some(remembered),
        owner: decode_owner(reader, OWNER)?,
        taken_from: decode_owner(reader, TAKEN_FROM)?,
        applied_hash: reader.text("applied_hash")?.map(str::to_owned),
        previous_hash: reader.text("previous_hash")?.map(str::to_owned),
        last_applied: last_applied.and_then(instant),
        full_owed: reader.boolean(FULL_OWED)?.unwrap_or(false),
        cascade_pending: decode_listed(reader)?,
        rev: reader.whole("rev")?.unwrap_or(0),
    })
}

fn encode_listed(record: &ProvisionerRecord) -> AttributeValue {
    let entry = |level: &Level| {
        AttributeValue::M(Item::from([
            ("level".to_owned(), text(level.kind())),
            (
                "target".to_owned(),
                text(level.target().unwrap_or_default()),
            ),
        ]))
    };
    AttributeValue::L(record.cascade_pending.iter().map(entry).collect())
}

fn decode_listed(reader: Reader<'_>) -> Result<BTreeSet<Level>, ItemError> {
    let listed = match reader.value(CASCADE_PENDING) {
        None => return Ok(BTreeSet::new()),
        Some(AttributeValue::L(listed)) => listed,
        Some(_) => return Err(reader.error(CASCADE_PENDING, "is not a list")),
    };
    let level = |entry: &AttributeValue| {
        let entry = entry.as_m().ok().map(Reader::new)?;
        let (kind, target) = (entry.text("level").ok()??, entry.text("target").ok()??);
        Level::from_parts(kind, target)
    };
    let levels = listed.iter().map(|entry| {
        level(entry)
            .ok_or_else(|| reader.error(CASCADE_PENDING, "has an entry that names no level"))
    });
    levels.collect()
}

/// An instant that is only shown: one that does not read is left out rather than refused.
fn instant(stored: &str) -> Option<EpochMs> {
    let timestamp: jiff::Timestamp = stored.parse().ok()?;
    u64::try_from(timestamp.as_millisecond()).ok().map(EpochMs)
}

fn decode_entities(reader: Reader<'_>, managed: &mut Vec<Level>) -> Result<(), ItemError> {
    for (entity, scopes) in reader.map(ENTITIES)?.into_iter().flatten() {
        let bad = |problem: String| reader.error(ENTITIES, format!("at {entity:?}: {problem}"));
        let id = EntityId::parse(entity).map_err(|e| bad(e.to_string()))?;
        let scopes = texts_of(scopes).ok_or_else(|| bad("not a list of resources".to_owned()))?;
        for scope in scopes {
            let scope = Scope::parse(scope).map_err(|e| bad(e.to_string()))?;
            managed.push(Level::Entity(id.clone(), scope));
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
        Some(other) => Err(reader.error(
            name,
            format!("is of the kind {other:?}, which this build does not know"),
        )),
        None => Err(reader.error(name, "is of no kind")),
    }
}
