//! An entity's META item: who its parent is, and the policy that holds where no level sets one.

use super::attr::{Item, ItemError, Reader, boolean, number, text};
use super::{audit, keys};
use crate::model::{EntityId, EpochMs, Meta, NamespaceId};
use aws_sdk_dynamodb::types::AttributeValue;

/// What an entity's META says. A parent of NULL is none.
///
/// # Errors
/// [`ItemError`] when an attribute does not follow the format.
pub fn decode(item: &Item) -> Result<Meta, ItemError> {
    let reader = Reader::new(item);
    let parent = match reader.value("parent_id") {
        Some(value) if value.is_null() => None,
        _ => reader.text("parent_id")?,
    };
    let parent = parent
        .map(|id| EntityId::parse(id).map_err(|error| reader.error("parent_id", error.to_string())))
        .transpose()?;
    Ok(Meta {
        cascade: reader.boolean("cascade")?.unwrap_or(false),
        parent,
        generation: reader.whole("pgen")?,
        incarnation: reader.text("pinc")?.map(str::to_owned),
    })
}

/// The item of an entity that is created now, as a client writes it.
pub fn encode_new(ns: &NamespaceId, entity: &EntityId, meta: &Meta, at: EpochMs) -> Item {
    let key = keys::meta(ns, entity);
    let mut item = Item::from([
        ("PK".to_owned(), text(&key.pk)),
        ("SK".to_owned(), text(&key.sk)),
        ("GSI4PK".to_owned(), text(ns.as_str())),
        ("GSI4SK".to_owned(), text(&key.pk)),
        ("entity_id".to_owned(), text(entity.as_str())),
        ("name".to_owned(), text(entity.as_str())),
        ("cascade".to_owned(), boolean(meta.cascade)),
        ("metadata".to_owned(), AttributeValue::M(Item::new())),
        ("created_at".to_owned(), text(audit::rfc3339_seconds(at))),
    ]);
    if let Some(generation) = meta.generation {
        item.insert("pgen".to_owned(), number(generation));
    }
    if let Some(incarnation) = &meta.incarnation {
        item.insert("pinc".to_owned(), text(incarnation));
    }
    match &meta.parent {
        None => {
            item.insert("parent_id".to_owned(), AttributeValue::Null(true));
        }
        Some(parent) => {
            let (pk, sk) = keys::child_index(ns, parent, entity);
            item.insert("parent_id".to_owned(), text(parent.as_str()));
            item.insert("GSI1PK".to_owned(), text(pk));
            item.insert("GSI1SK".to_owned(), text(sk));
        }
    }
    item
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(id: &str) -> EntityId {
        EntityId::parse(id).expect("an entity id")
    }

    #[test]
    fn a_child_reads_back_as_it_was_written() {
        let ns = NamespaceId::parse("ns1").expect("a namespace id");
        let meta = Meta {
            cascade: true,
            parent: Some(entity("org-1")),
            generation: Some(7),
            incarnation: Some("00ff".to_owned()),
        };
        let item = encode_new(&ns, &entity("user-1"), &meta, EpochMs(1_000));
        assert_eq!(decode(&item), Ok(meta));
        assert_eq!(item["GSI1PK"], text("ns1/PARENT#org-1"));
        assert_eq!(item["GSI1SK"], text("CHILD#user-1"));
    }

    #[test]
    fn an_entity_of_an_older_client_has_neither_generation_nor_parent() {
        let item = Item::from([
            ("PK".to_owned(), text("ns1/ENTITY#a")),
            ("parent_id".to_owned(), AttributeValue::Null(true)),
        ]);
        assert_eq!(decode(&item), Ok(Meta::default()));
    }
}
