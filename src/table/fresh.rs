//! A bucket item as a client leaves it at its first use: full but for one token of every limit.
//!
//! For sample data. Fan-outs change buckets and never make one.

use super::attr::{Item, boolean, number, text};
use super::stamp::Stamp;
use super::{BucketId, keys, schedule};
use crate::model::{
    EpochMs, EpochSeconds, Limit, LimitName, Meta, NamespaceId, Recovery, Seconds, Tokens, Zone,
};
use std::collections::BTreeMap;

/// The limit that every bucket carries for the table's own sake: what one partition can write.
const WRITES: &str = "wcu";
const WRITES_PER_SECOND: Tokens = Tokens(1000);
/// What a limit carries that has no schedule, so that it inherits no other limit's.
const NO_SCHEDULE: &str = "-";

/// What a bucket is made of.
#[derive(Debug, Clone, Copy)]
pub struct FreshBucket<'a> {
    /// Which one.
    pub id: &'a BucketId,
    /// How many shards there are.
    pub shards: u32,
    /// The limits that apply.
    pub limits: &'a BTreeMap<LimitName, Limit>,
    /// The zone of their schedules.
    pub zone: Option<&'a Zone>,
    /// The entity's record; `None` when it has none.
    pub meta: Option<&'a Meta>,
    /// Whether the parent is debited too.
    pub cascades: bool,
    /// When it expires; `None`: never.
    pub ttl: Option<EpochSeconds>,
    /// The access stamp.
    pub stamp: Stamp,
    /// Until when a soft limit is soft.
    pub soft_until: EpochMs,
}

impl FreshBucket<'_> {
    /// The whole item.
    pub fn encode(&self, ns: &NamespaceId, at: EpochMs) -> Item {
        let id = self.id;
        let (resource_pk, resource_sk) = id.resource_index(ns);
        let (entity_pk, entity_sk) = id.entity_index(ns);
        let mut item = Item::from([
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
            ("shard_count".to_owned(), number(self.shards)),
            ("cascade".to_owned(), boolean(self.cascades)),
            ("rf".to_owned(), number(at)),
        ]);
        if let Some(ttl) = self.ttl {
            item.insert("ttl".to_owned(), number(ttl));
        }
        self.put_owner(&mut item);
        item.extend(
            self.stamp
                .attribute()
                .map(|(name, value)| (name.to_owned(), value)),
        );
        let writes = Limit::drip(WRITES_PER_SECOND, WRITES_PER_SECOND, Seconds(1));
        put_limit(&mut item, WRITES, &writes, WRITES_PER_SECOND.millis().0, 0);
        for (name, limit) in self.limits {
            let share = limit.capacity.millis().0 / i64::from(self.shards.max(1));
            put_limit(&mut item, name.as_str(), limit, share - 1000, 1000);
            self.put_extras(&mut item, name, limit, at);
        }
        self.put_schedules(&mut item);
        item
    }

    fn put_owner(&self, item: &mut Item) {
        let Some(meta) = self.meta else { return };
        if let Some(parent) = &meta.parent {
            item.insert("parent_id".to_owned(), text(parent.as_str()));
        }
        if let Some(generation) = meta.generation {
            item.insert("pgen".to_owned(), number(generation));
        }
        if let Some(incarnation) = &meta.incarnation {
            item.insert("pinc".to_owned(), text(incarnation));
        }
    }

    fn put_extras(&self, item: &mut Item, name: &LimitName, limit: &Limit, at: EpochMs) {
        let mut put = |field: &str, value| item.insert(format!("b_{name}_{field}"), value);
        if let Recovery::Window(length) = limit.recovery {
            put("rsa", number(length));
            put("ws", number(at));
            put("wa", number(at));
        }
        if limit.soft {
            put("soft", number(self.soft_until));
        }
    }

    /// Every limit names its own schedules, so that none is taken for the item's default. With
    /// `vu` at 0 the next client computes when the parameters next change.
    fn put_schedules(&self, item: &mut Item) {
        let Some(zone) = self.zone else { return };
        item.insert("sched_tz".to_owned(), text(zone.as_str()));
        item.insert("vu".to_owned(), number(0));
        for (name, limit) in self.limits {
            let or_none = |text: String| {
                if text.is_empty() {
                    NO_SCHEDULE.to_owned()
                } else {
                    text
                }
            };
            let resets = match &limit.recovery {
                Recovery::Calendar(resets) => schedule::encode_reset(resets),
                Recovery::Drip { .. } | Recovery::Window(_) => String::new(),
            };
            let windows = schedule::encode(&limit.schedule);
            item.insert(format!("b_{name}_sched"), text(or_none(windows)));
            item.insert(format!("b_{name}_rsched"), text(or_none(resets)));
        }
    }
}

fn put_limit(item: &mut Item, name: &str, limit: &Limit, tokens: i64, consumed: i64) {
    let mut put =
        |field: &str, value: String| item.insert(format!("b_{name}_{field}"), number(value));
    put("tk", tokens.to_string());
    put("cp", limit.capacity.millis().to_string());
    put("ra", limit.refill_amount().millis().to_string());
    put("rp", limit.refill_period.millis().to_string());
    put("tc", consumed.to_string());
}
