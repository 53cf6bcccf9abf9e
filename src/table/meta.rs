//! An entity's META item as a client writes it when the entity is created. Reading one is
//! [`cascade`](super::cascade)'s subject.

use super::attr::{Item, boolean, number, text};
use super::cascade::BucketOwner;
use super::{audit, keys};
use crate::model::{EntityId, EpochMs, NamespaceId};
use aws_sdk_dynamodb::types::AttributeValue;

/// The item of an entity that is created now.
pub fn encode_new(
    ns: &NamespaceId,
    entity: &EntityId,
    parent: Option<&EntityId>,
    owner: &BucketOwner,
    at: EpochMs,
) -> Item {
    let key = keys::meta(ns, entity);
    let mut item = Item::from([
        ("PK".to_owned(), text(&key.pk)),
        ("SK".to_owned(), text(&key.sk)),
        ("GSI4PK".to_owned(), text(ns.as_str())),
        ("GSI4SK".to_owned(), text(&key.pk)),
        ("entity_id".to_owned(), text(entity.as_str())),
        ("name".to_owned(), text(entity.as_str())),
        ("parent_id".to_owned(), AttributeValue::Null(true)),
        ("cascade".to_owned(), boolean(owner.cascade)),
        ("pgen".to_owned(), number(owner.generation)),
        ("pinc".to_owned(), text(&owner.incarnation)),
        ("metadata".to_owned(), AttributeValue::M(Item::new())),
        ("created_at".to_owned(), text(audit::rfc3339_seconds(at))),
    ]);
    if let Some(parent) = parent {
        let (pk, sk) = keys::child_index(ns, parent, entity);
        item.insert("parent_id".to_owned(), text(parent.as_str()));
        item.insert("GSI1PK".to_owned(), text(pk));
        item.insert("GSI1SK".to_owned(), text(sk));
    }
    item
}

#[cfg(test)]
mod tests {
    use super::super::cascade::decode_owner;
    use super::*;

    #[test]
    fn a_child_reads_back_as_it_was_written_and_is_found_from_its_parent() {
        let ns = NamespaceId::parse("ns1").expect("a namespace id");
        let entity = |id| EntityId::parse(id).expect("an entity id");
        let owner = BucketOwner {
            cascade: true,
            parent: Some("org-1".to_owned()),
            generation: 7,
            incarnation: "00ff".to_owned(),
        };
        let at = EpochMs(1_000);
        let item = encode_new(&ns, &entity("user-1"), Some(&entity("org-1")), &owner, at);
        assert_eq!(decode_owner(&item), Ok(owner));
        assert_eq!(item["GSI1PK"], text("ns1/PARENT#org-1"));
        assert_eq!(item["GSI1SK"], text("CHILD#user-1"));
    }
}
