//! What every bucket must carry, worked out from the stored bytes alone: by the text of the table's
//! format and by none of the crate's own resolution.

use crate::world::{Dump, Item, bucket_id, n, s};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeMap, BTreeSet};
use zae_limits::model::NamespaceId;

/// What a bucket must carry.
#[derive(Debug, Clone, PartialEq)]
pub struct Carried {
    /// `disabled`, `bypass` or `enforce`.
    mode: &'static str,
    /// Whether the parent is debited too; `None` for an entity without META.
    cascade: Option<bool>,
    parent: Option<String>,
    /// Whether the entity's own level gives the limits: then all of them are as there, and the
    /// bucket does not expire. Shared defaults reach a bucket in other ways.
    own: bool,
    /// By limit, in thousandths: capacity, amount and period; and the window in seconds.
    limits: BTreeMap<String, [Option<u64>; 4]>,
    /// The limits that are counted and not enforced.
    soft: BTreeSet<String>,
}

const FIELDS: [&str; 4] = ["cp", "ra", "rp", "rsa"];

/// The keys that decide about a bucket, the most specific config first, and META last.
pub fn deciding(ns: &NamespaceId, entity: &str, resource: &str) -> [(String, String); 5] {
    [
        (
            format!("{ns}/ENTITY#{entity}"),
            format!("#CONFIG#{resource}"),
        ),
        (
            format!("{ns}/ENTITY#{entity}"),
            "#CONFIG#_default_".to_owned(),
        ),
        (format!("{ns}/RESOURCE#{resource}"), "#CONFIG".to_owned()),
        (format!("{ns}/SYSTEM#"), "#CONFIG".to_owned()),
        (format!("{ns}/ENTITY#{entity}"), "#META".to_owned()),
    ]
}

/// What a bucket of an entity and a resource must carry under what is stored.
pub fn carried(stored: &Dump, ns: &NamespaceId, entity: &str, resource: &str) -> Carried {
    let [config @ .., meta] = deciding(ns, entity, resource).map(|key| stored.get(&key));
    let switch = config
        .iter()
        .flatten()
        .find_map(|item| item.get("disabled"));
    let mode = match switch {
        Some(AttributeValue::Bool(true)) => "disabled",
        Some(AttributeValue::S(text)) if text == "bypass" => "bypass",
        _ => "enforce",
    };
    let policy = config.iter().flatten().find_map(|item| item.get("cascade"));
    let parent = meta.and_then(|meta| meta.get("parent_id")?.as_s().ok().cloned());
    let is_true = |value| matches!(value, Some(&AttributeValue::Bool(true)));
    let cascade =
        meta.map(|meta| parent.is_some() && is_true(policy.or_else(|| meta.get("cascade"))));
    let limits_of = config.map(|item| item.map(limits).unwrap_or_default());
    let winner = limits_of.iter().position(|limits| !limits.is_empty());
    let item = winner.and_then(|index| config[index]);
    let limits = winner.map(|index| limits_of[index].clone());
    let limits = limits.unwrap_or_default();
    let is_soft = |name: &&String| {
        let marks = ["l", "w"].map(|prefix| format!("{prefix}_{name}_soft"));
        marks
            .iter()
            .any(|mark| is_true(item.and_then(|item| item.get(mark))))
    };
    Carried {
        mode,
        cascade,
        parent,
        own: winner.is_some_and(|index| index < 2),
        soft: limits.keys().filter(is_soft).cloned().collect(),
        limits,
    }
}

/// A config item's limits as buckets carry them.
fn limits(item: &Item) -> BTreeMap<String, [Option<u64>; 4]> {
    let mut limits = BTreeMap::new();
    for attribute in item.keys() {
        let name = attribute
            .strip_suffix("_cp")
            .and_then(|rest| rest.strip_prefix("l_").or_else(|| rest.strip_prefix("w_")));
        let Some(name) = name else { continue };
        let prefix = &attribute[..2];
        let field = |field| number(item, &format!("{prefix}{name}_{field}"));
        let [capacity, amount, period, window] = FIELDS.map(field);
        let thousandths = |whole: Option<u64>| whole.map(|whole| whole * 1000);
        let values = [
            thousandths(capacity),
            thousandths(amount),
            thousandths(period),
            window,
        ];
        limits.insert(name.to_owned(), values);
    }
    limits
}

fn number(item: &Item, attribute: &str) -> Option<u64> {
    Some(item.get(attribute)?.as_n().ok()?.parse().expect("a number"))
}

impl Carried {
    /// Everything about a stored bucket that is not as it must be. Of one that was created from
    /// config that had moved by then, its client mends all but access.
    pub fn wrong(&self, bucket: &Item, access: bool, rest: bool) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut check = |what: &str, shown: String, must: String| {
            if shown != must {
                wrong.push(format!("{what} is {shown} and must be {must}"));
            }
        };
        if access {
            check(
                "access",
                shown_mode(bucket).to_owned(),
                self.mode.to_owned(),
            );
        }
        if !rest {
            return wrong;
        }
        if let Some(cascade) = self.cascade {
            let shown = bucket.get("cascade");
            check(
                "cascade",
                format!("{shown:?}"),
                format!("{:?}", Some(AttributeValue::Bool(cascade))),
            );
            let parent = bucket.get("parent_id").map(|parent| parent.as_s().ok());
            check(
                "parent",
                format!("{parent:?}"),
                format!("{:?}", self.parent.as_ref().map(Some)),
            );
        }
        let soft: BTreeSet<String> = bucket
            .keys()
            .filter_map(|attribute| {
                Some(
                    attribute
                        .strip_prefix("b_")?
                        .strip_suffix("_soft")?
                        .to_owned(),
                )
            })
            .collect();
        check("soft", format!("{soft:?}"), format!("{:?}", self.soft));
        check(
            "expiry",
            (!bucket.contains_key("ttl")).to_string(),
            self.own.to_string(),
        );
        if self.own {
            let mut shown = BTreeMap::new();
            for name in bucket
                .keys()
                .filter_map(|attribute| attribute.strip_prefix("b_")?.strip_suffix("_cp"))
            {
                shown.insert(
                    name.to_owned(),
                    FIELDS.map(|field| number(bucket, &format!("b_{name}_{field}"))),
                );
            }
            check("limits", format!("{shown:?}"), format!("{:?}", self.limits));
        }
        wrong
    }

    /// A bucket that carries it, as a client creates one.
    pub fn bucket(&self, ns: &NamespaceId, entity: &str, resource: &str, shard: u32) -> Item {
        let id = bucket_id(entity, resource, shard);
        let (gsi2pk, gsi2sk) = id.resource_index(ns);
        let (gsi3pk, gsi3sk) = id.entity_index(ns);
        let mut item: Item = [
            ("PK", s(&id.pk(ns))),
            ("SK", s("#STATE")),
            ("GSI2PK", s(&gsi2pk)),
            ("GSI2SK", s(&gsi2sk)),
            ("GSI3PK", s(&gsi3pk)),
            ("GSI3SK", s(&gsi3sk)),
            ("GSI4PK", s(ns.as_str())),
            ("GSI4SK", s(&id.suffix())),
            ("entity_id", s(entity)),
            ("resource", s(resource)),
            ("cascade", AttributeValue::Bool(self.cascade == Some(true))),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        let mut put = |name: String, value| item.insert(name, value);
        match self.mode {
            "disabled" => drop(put("disabled".to_owned(), AttributeValue::Bool(true))),
            "bypass" => drop(put("bypass".to_owned(), n(1_800_000_060_000_u64))),
            _ => {}
        }
        if let Some(parent) = &self.parent {
            put("parent_id".to_owned(), s(parent));
        }
        if !self.own {
            put("ttl".to_owned(), n(1_800_000_500));
        }
        for (name, values) in &self.limits {
            for (field, value) in FIELDS.iter().zip(values) {
                value.map(|value| put(format!("b_{name}_{field}"), n(value)));
            }
            put(format!("b_{name}_tk"), n(5000));
            put(format!("b_{name}_tc"), n(7000));
        }
        for name in &self.soft {
            put(format!("b_{name}_soft"), n(1_800_000_060_000_u64));
        }
        item
    }
}

fn shown_mode(bucket: &Item) -> &'static str {
    match (bucket.get("disabled"), bucket.get("bypass")) {
        (None, None) => "enforce",
        (Some(AttributeValue::Bool(true)), None) => "disabled",
        (None, Some(AttributeValue::N(_))) => "bypass",
        _ => "both",
    }
}
