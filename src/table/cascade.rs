//! Who owns a bucket and whether its parent is debited too: the entity's META, and the stamp on each
//! of its buckets.
//!
//! The two carry a generation and an incarnation: an entity that moves to another parent raises its
//! generation, one that is created anew has another incarnation. A stamp of an older generation
//! must not undo a newer one.

use super::attr::{Item, ItemError, Reader, boolean, number, text};
use super::bucket::Update;
use super::config::Condition;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::BTreeMap;

/// The incarnation of an entity whose META says nothing of any.
const UNKNOWN_INCARNATION: &str = "-";

/// What an entity's META says of its buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketOwner {
    /// The entity's own cascade policy, for when no level sets one.
    pub cascade: bool,
    /// The parent entity.
    pub parent: Option<String>,
    /// Raised by every move to another parent.
    pub generation: u64,
    /// Changed when the entity is created anew.
    pub incarnation: String,
}

/// Reads an entity's META.
///
/// # Errors
/// [`ItemError`] when an attribute does not follow the format.
pub fn decode_owner(meta: &Item) -> Result<BucketOwner, ItemError> {
    let reader = Reader::new(meta);
    let parent = match reader.value("parent_id") {
        // Clients store the parent of a root entity so.
        Some(AttributeValue::Null(_)) => None,
        _ => reader.text("parent_id")?.map(str::to_owned),
    };
    let incarnation = [reader.text("pinc")?, reader.text("created_at")?]
        .into_iter()
        .flatten()
        .find(|incarnation| !incarnation.is_empty())
        .unwrap_or(UNKNOWN_INCARNATION);
    Ok(BucketOwner {
        cascade: reader.boolean("cascade")?.unwrap_or(false),
        parent: parent.filter(|parent| !parent.is_empty()),
        generation: reader.whole("pgen")?.unwrap_or(0),
        incarnation: incarnation.to_owned(),
    })
}

/// The stamp of a bucket's owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerStamp {
    cascade: bool,
    parent: Option<String>,
    generation: u64,
    incarnation: String,
}

impl OwnerStamp {
    /// The stamp under a policy that a level sets; with `None` the owner's own counts. Without a
    /// parent nothing cascades.
    pub fn new(owner: &BucketOwner, policy: Option<bool>) -> OwnerStamp {
        OwnerStamp {
            cascade: owner.parent.is_some() && policy.unwrap_or(owner.cascade),
            parent: owner.parent.clone(),
            generation: owner.generation,
            incarnation: owner.incarnation.clone(),
        }
    }

    /// The stamp as an update that a newer stamp of the same incarnation stops.
    pub fn update(&self) -> Update {
        let mut update = Update::default();
        update.set("cascade", boolean(self.cascade));
        update.put("parent_id", self.parent.as_deref().map(text));
        update.set("pgen", number(self.generation));
        update.set("pinc", text(&self.incarnation));
        let names = [("#c0", "pinc"), ("#c1", "pgen")];
        let values = [
            (":c0", text(&self.incarnation)),
            (":c1", number(self.generation)),
        ];
        update.only_if(Condition {
            expression: "attribute_not_exists(#c0) OR #c0 <> :c0 \
                         OR attribute_not_exists(#c1) OR #c1 <= :c1"
                .to_owned(),
            names: names
                .map(|(a, name)| (a.to_owned(), name.to_owned()))
                .into(),
            values: BTreeMap::from(values.map(|(a, value)| (a.to_owned(), value))),
        });
        update
    }
}
