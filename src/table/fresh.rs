//! A bucket item as a client leaves it at its first use: full but for one token of every limit.
//!
//! For sample data. Fan-outs change buckets and never make one; what they would change, they would
//! leave on this item as it is.

use super::attr::{Item, number, text};
use super::bucket::{BucketChange, RESERVED_LIMIT, Update, limit_attr};
use super::cascade::OwnerStamp;
use super::params::{Expiry, Params, ParamsChange};
use super::stamp::Stamp;
use super::{BucketId, keys};
use crate::model::{
    EpochMs, LevelConfig, Limit, LimitName, NamespaceId, Recovery, Seconds, Tokens,
};
use std::sync::Arc;

/// What one partition of the table can write in a second: the reserved limit of every bucket.
const WRITES: Tokens = Tokens(1000);
/// What the first use took of every limit, in thousandths of a token.
const USED: i64 = 1000;

/// What a bucket is made of.
#[derive(Debug, Clone, Copy)]
pub struct FreshBucket<'a> {
    /// Which one.
    pub id: &'a BucketId,
    /// How many shards there are.
    pub shards: u32,
    /// The level whose limits apply.
    pub config: &'a LevelConfig,
    /// When it expires.
    pub expiry: Expiry,
    /// Whose it is, and whether a parent is debited too; `None` where the entity has no META.
    pub owner: Option<&'a OwnerStamp>,
    /// The access stamp.
    pub stamp: Stamp,
    /// Until when a soft limit is soft.
    pub soft_until: EpochMs,
}

impl FreshBucket<'_> {
    /// The whole item.
    pub fn encode(&self, ns: &NamespaceId, at: EpochMs) -> Item {
        let mut item = self.keys(ns);
        item.insert("shard_count".to_owned(), number(self.shards));
        item.insert("rf".to_owned(), number(at));
        item.insert("cascade".to_owned(), super::attr::boolean(false));
        put_reserved(&mut item);
        for (name, limit) in &self.config.limits {
            let share = limit.capacity.millis().0 / i64::from(self.shards.max(1));
            put_balance(&mut item, name.as_str(), share - USED, USED);
            put_window(&mut item, name, limit, at);
        }
        let params = ParamsChange {
            params: Arc::new(Params::new(self.config, self.expiry)),
            soft_until: self.soft_until,
        };
        let update = params.update(&item);
        take(&mut item, &update);
        // Only a bucket with a schedule has an instant at which its parameters next change.
        if !item.contains_key("sched_tz") {
            item.remove("vu");
        }
        if let Some(owner) = self.owner {
            take(&mut item, &owner.update());
        }
        if let Some((attribute, value)) = self.stamp.attribute() {
            item.insert(attribute.to_owned(), value);
        }
        item
    }

    fn keys(&self, ns: &NamespaceId) -> Item {
        let id = self.id;
        let (resource_pk, resource_sk) = id.resource_index(ns);
        let (entity_pk, entity_sk) = id.entity_index(ns);
        Item::from([
            ("PK".to_owned(), text(id.pk(ns))),
            ("SK".to_owned(), text(keys::BUCKET_SK)),
            ("GSI2PK".to_owned(), text(resource_pk)),
            ("GSI2SK".to_owned(), text(resource_sk)),
            ("GSI3PK".to_owned(), text(entity_pk)),
            ("GSI3SK".to_owned(), text(entity_sk)),
            ("GSI4PK".to_owned(), text(ns.as_str())),
            ("GSI4SK".to_owned(), text(id.suffix())),
            ("entity_id".to_owned(), text(id.entity.as_str())),
            ("resource".to_owned(), text(id.resource.as_str())),
        ])
    }
}

/// The item that an update makes of an item.
fn take(item: &mut Item, update: &Update) {
    for (attribute, value) in update.changes() {
        match value {
            Some(value) => item.insert(attribute.to_owned(), value.clone()),
            None => item.remove(attribute),
        };
    }
}

fn put_balance(item: &mut Item, limit: &str, tokens: i64, consumed: i64) {
    item.insert(limit_attr(limit, "tk"), number(tokens));
    item.insert(limit_attr(limit, "tc"), number(consumed));
}

fn put_reserved(item: &mut Item) {
    put_balance(item, RESERVED_LIMIT, WRITES.millis().0, 0);
    for (field, value) in [
        ("cp", number(WRITES.millis())),
        ("ra", number(WRITES.millis())),
        ("rp", number(Seconds(1).millis())),
    ] {
        item.insert(limit_attr(RESERVED_LIMIT, field), value);
    }
}

/// A first use opens a duration window.
fn put_window(item: &mut Item, name: &LimitName, limit: &Limit, at: EpochMs) {
    if let Recovery::Window(_) = limit.recovery {
        item.insert(limit_attr(name.as_str(), "ws"), number(at));
        item.insert(limit_attr(name.as_str(), "wa"), number(at));
    }
}
