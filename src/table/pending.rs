//! Pending items: fan-outs that are owed, and which applies owe them (docs/format.md).
//!
//! The shape is the Python provisioner's, so that each can finish what the other left.

use super::attr::{Item, ItemError, Reader, boolean, number, text};
use super::keys;
use crate::model::{
    EpochMs, FanoutKind, LONGEST_LEASE_MS, Level, NamespaceId, Owed, Owner, Pending,
};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::BTreeMap;

/// Since when a fan-out is owed.
const WRITTEN: &str = "written_ms";
/// The map from apply token to lease.
pub const OWNERS: &str = "owners";
/// An owner's lease within the map.
pub const LEASE: &str = "lease";
/// An owner's mark of a full apply, within the map and on the item of the older shape.
pub const FULL: &str = "full";
/// The older shape: one owner, spread over the item.
pub const SINGLE_TOKEN: &str = "token";
/// The older shape's lease.
pub const SINGLE_LEASE: &str = "lease_until_ms";

/// One owner's entry.
pub fn owner_entry(lease: EpochMs, full: bool) -> AttributeValue {
    AttributeValue::M(Item::from([
        (LEASE.to_owned(), number(lease)),
        (FULL.to_owned(), boolean(full)),
    ]))
}

/// A new pending item with one owner.
pub fn encode_new(
    ns: &NamespaceId,
    owed: &Owed,
    token: &str,
    lease: EpochMs,
    full: bool,
    at: EpochMs,
) -> Item {
    let key = keys::pending(ns, owed);
    let owners = Item::from([(token.to_owned(), owner_entry(lease, full))]);
    Item::from([
        ("PK".to_owned(), text(&key.pk)),
        ("SK".to_owned(), text(key.sk)),
        ("GSI4PK".to_owned(), text(ns.as_str())),
        ("GSI4SK".to_owned(), text(key.pk)),
        ("kind".to_owned(), text(owed.kind.stored_name())),
        ("level".to_owned(), text(owed.level.kind())),
        (
            "target".to_owned(),
            text(owed.level.target().unwrap_or_default()),
        ),
        (WRITTEN.to_owned(), number(at)),
        (OWNERS.to_owned(), AttributeValue::M(owners)),
    ])
}

/// What a pending item says is owed, and by whom.
///
/// # Errors
/// [`ItemError`] when the item does not read.
pub fn decode(item: &Item) -> Result<Pending, ItemError> {
    let reader = Reader::new(item);
    let kind = reader.required_text("kind")?;
    let level = reader.required_text("level")?;
    let target = reader.required_text("target")?;
    let kind = FanoutKind::from_stored(kind)
        .ok_or_else(|| reader.error("kind", format!("is {kind:?}, an unknown fan-out")))?;
    let level = Level::from_parts(level, target).ok_or_else(|| {
        reader.error(
            "target",
            format!("is {target:?}, which names no {level} level"),
        )
    })?;
    Ok(Pending {
        owed: Owed { level, kind },
        owners: owners(reader)?,
        has_map: item.contains_key(OWNERS),
        written: reader.whole(WRITTEN)?.map(EpochMs),
        damaged: false,
    })
}

/// What a stored item says is owed. Where its attributes do not read, or say something else than
/// its key, the key does: a kill switch that waits for its fan-out is not lost with its owners.
///
/// # Errors
/// [`ItemError`] when the key names no fan-out either.
pub fn decode_stored(ns: &NamespaceId, item: &Item) -> Result<Pending, ItemError> {
    let reader = Reader::new(item);
    let problem = match decode(item) {
        Ok(pending) if keys::pending(ns, &pending.owed).sk == reader.sk() => return Ok(pending),
        Ok(_) => reader.error("SK", "is not that of the fan-out which the item names"),
        Err(error) => error,
    };
    let owed = keys::parse_pending_sk(reader.sk()).ok_or(problem)?;
    Ok(Pending {
        owed,
        owners: BTreeMap::new(),
        has_map: false,
        written: None,
        damaged: true,
    })
}

/// The owners left on an item, the older single-owner shape included.
///
/// # Errors
/// [`ItemError`] when an entry does not read.
pub fn decode_owners(item: &Item) -> Result<BTreeMap<String, Owner>, ItemError> {
    owners(Reader::new(item))
}

fn owners(reader: Reader<'_>) -> Result<BTreeMap<String, Owner>, ItemError> {
    let mut owners = BTreeMap::new();
    for (token, entry) in reader.map(OWNERS)?.into_iter().flatten() {
        let AttributeValue::M(entry) = entry else {
            return Err(reader.error(OWNERS, format!("holds {token:?}, which is not a map")));
        };
        let entry = Reader::new(entry);
        let owner = |error: ItemError| reader.error(OWNERS, error.problem);
        owners.insert(
            token.clone(),
            Owner {
                lease: entry.whole(LEASE).map_err(owner)?.map(EpochMs),
                full: entry.boolean(FULL).map_err(owner)?.unwrap_or(false),
                single: false,
            },
        );
    }
    if let Some(token) = reader.text(SINGLE_TOKEN)? {
        owners.insert(
            token.to_owned(),
            Owner {
                lease: reader.whole(SINGLE_LEASE)?.map(EpochMs),
                full: reader.boolean(FULL)?.unwrap_or(false),
                single: true,
            },
        );
    }
    Ok(owners)
}

/// A conditional update of one pending item.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimUpdate {
    /// The update expression.
    pub expression: String,
    /// The condition expression.
    pub condition: String,
    /// Attribute names by alias.
    pub names: BTreeMap<String, String>,
    /// Attribute values by alias.
    pub values: BTreeMap<String, AttributeValue>,
}

/// Shares that one update takes over: a condition for each must fit an expression.
pub const TAKEN_TOGETHER: usize = 20;

/// Replaces the shares of applies that are gone by one of `token`, while each of them is still
/// there and still gone. Live owners keep their shares. Of [`TAKEN_TOGETHER`] shares at most.
pub fn claim_update(
    pending: &Pending,
    token: &str,
    lease: EpochMs,
    full: bool,
    now: EpochMs,
) -> ClaimUpdate {
    let mut names = BTreeMap::from([("#o".to_owned(), OWNERS.to_owned())]);
    let mut values = BTreeMap::new();
    let mut conditions = vec!["attribute_exists(PK)".to_owned()];
    let mut removes = Vec::new();
    for (index, (gone, owner)) in pending.gone(now).enumerate() {
        values.insert(":now".to_owned(), number(now));
        values.insert(":far".to_owned(), number(now.plus_ms(LONGEST_LEASE_MS)));
        if owner.single {
            names.insert("#single".to_owned(), SINGLE_TOKEN.to_owned());
            names.insert("#singlelease".to_owned(), SINGLE_LEASE.to_owned());
            names.insert("#singlefull".to_owned(), FULL.to_owned());
            values.insert(":single".to_owned(), text(gone));
            conditions.push("#single = :single".to_owned());
            conditions.push(
                "(attribute_not_exists(#singlelease) OR NOT #singlelease BETWEEN :now AND :far)"
                    .to_owned(),
            );
            removes.extend(["#single", "#singlelease", "#singlefull"].map(str::to_owned));
        } else {
            names.insert(format!("#t{index}"), gone.to_owned());
            names.insert("#lease".to_owned(), LEASE.to_owned());
            conditions.push(format!("attribute_exists(#o.#t{index})"));
            conditions.push(format!(
                "(attribute_not_exists(#o.#t{index}.#lease) \
                 OR NOT #o.#t{index}.#lease BETWEEN :now AND :far)"
            ));
            removes.push(format!("#o.#t{index}"));
        }
    }
    let entry = owner_entry(lease, full);
    let set = if pending.has_map {
        names.insert("#me".to_owned(), token.to_owned());
        values.insert(":entry".to_owned(), entry);
        conditions.push("attribute_exists(#o)".to_owned());
        "SET #o.#me = :entry"
    } else {
        values.insert(
            ":map".to_owned(),
            AttributeValue::M(Item::from([(token.to_owned(), entry)])),
        );
        conditions.push("attribute_not_exists(#o)".to_owned());
        "SET #o = :map"
    };
    if pending.owners.is_empty() {
        if pending.has_map {
            values.insert(":none".to_owned(), number(0));
            conditions.push("size(#o) = :none".to_owned());
        }
        names.insert("#single".to_owned(), SINGLE_TOKEN.to_owned());
        conditions.push("attribute_not_exists(#single)".to_owned());
    }
    let remove = if removes.is_empty() {
        String::new()
    } else {
        format!(" REMOVE {}", removes.join(", "))
    };
    ClaimUpdate {
        expression: format!("{set}{remove}"),
        condition: conditions.join(" AND "),
        names,
        values,
    }
}
