//! Bucket items: how their limits' attributes are named, and how one item is changed
//! (docs/format.md).
//!
//! What a change is to be is decided elsewhere; here is only its form, in which an attribute is set or
//! removed and never both.

use super::attr::Item;
use super::config::Condition;
use crate::model::LimitName;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeMap, HashMap};

/// The limit that clients keep on every bucket for the partition's own write capacity.
pub const RESERVED_LIMIT: &str = LimitName::RESERVED;

/// Every field a limit has on a bucket. A field that is not here is another writer's.
const FIELDS: [&str; 15] = [
    "tk", "cp", "ra", "rp", "tc", "sched", "rsched", "soft", "rsa", "ws", "wa", "wtc", "gc", "tu",
    "rn",
];

/// The attribute that holds one field of a limit.
pub fn limit_attr(limit: &str, field: &str) -> String {
    format!("b_{limit}_{field}")
}

/// The limit and the field that an attribute holds; `None` when it holds none.
pub fn parse_limit_attr(attribute: &str) -> Option<(&str, &str)> {
    // A limit's name may hold underscores, a field does not.
    let (limit, field) = attribute.strip_prefix("b_")?.rsplit_once('_')?;
    (!limit.is_empty() && FIELDS.contains(&field)).then_some((limit, field))
}

/// What a fan-out makes of a bucket, once the bucket as stored is known.
pub trait BucketChange {
    /// The update that brings this bucket to what it must carry; empty when it already does.
    fn update(&self, bucket: &Item) -> Update;
}

/// One update of one bucket that must exist.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Update {
    /// Each attribute with its new value, or `None` when it goes. One change an attribute: the
    /// service refuses an expression that sets and removes the same one.
    changes: BTreeMap<String, Option<AttributeValue>>,
    only_if: Option<Condition>,
}

impl Update {
    /// Sets an attribute.
    pub fn set(&mut self, attribute: impl Into<String>, value: AttributeValue) {
        self.changes.insert(attribute.into(), Some(value));
    }

    /// Removes an attribute, if it is there.
    pub fn remove(&mut self, attribute: impl Into<String>) {
        self.changes.insert(attribute.into(), None);
    }

    /// Sets an attribute, or removes it when there is no value.
    pub fn put(&mut self, attribute: impl Into<String>, value: Option<AttributeValue>) {
        self.changes.insert(attribute.into(), value);
    }

    /// Leaves an attribute as it is after all.
    pub fn leave(&mut self, attribute: &str) {
        self.changes.remove(attribute);
    }

    /// Writes only where this holds too. Its aliases start with `#c` and `:c`.
    pub fn only_if(&mut self, condition: Condition) {
        self.only_if = Some(condition);
    }

    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Each attribute that changes, sorted, with its new value or `None` when it goes.
    pub fn changes(&self) -> impl Iterator<Item = (&str, Option<&AttributeValue>)> {
        self.changes
            .iter()
            .map(|(attribute, value)| (attribute.as_str(), value.as_ref()))
    }

    /// The update expression, with an alias for each attribute: limit names hold characters that
    /// an expression does not take.
    pub fn expression(&self) -> String {
        let (mut sets, mut removes) = (Vec::new(), Vec::new());
        for (index, value) in self.changes.values().enumerate() {
            match value {
                Some(_) => sets.push(format!("#a{index} = :a{index}")),
                None => removes.push(format!("#a{index}")),
            }
        }
        let clause = |verb: &str, parts: Vec<String>| {
            (!parts.is_empty()).then(|| format!("{verb} {}", parts.join(", ")))
        };
        let clauses = [clause("SET", sets), clause("REMOVE", removes)];
        clauses.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// The condition: a bucket that vanished is not created again.
    pub fn condition(&self) -> String {
        match &self.only_if {
            None => "attribute_exists(PK)".to_owned(),
            Some(condition) => format!("attribute_exists(PK) AND ({})", condition.expression),
        }
    }

    /// The attribute names by alias, the condition's included.
    pub fn names(&self) -> HashMap<String, String> {
        let aliased = self.changes.keys().cloned().enumerate();
        let mut names: HashMap<_, _> = aliased.map(|(i, n)| (format!("#a{i}"), n)).collect();
        names.extend(self.only_if.iter().flat_map(|c| c.names.clone()));
        names
    }

    /// The attribute values by alias, the condition's included.
    pub fn values(&self) -> HashMap<String, AttributeValue> {
        let aliased = self.changes.values().cloned().enumerate();
        let mut values: HashMap<_, _> = aliased
            .filter_map(|(i, value)| Some((format!(":a{i}"), value?)))
            .collect();
        values.extend(self.only_if.iter().flat_map(|c| c.values.clone()));
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::attr::{number, text};

    #[test]
    fn attributes_of_limits_read_back_whatever_the_name_holds() {
        for limit in ["rpm", "a_b", "a_sched", "b_tk", "x.y-z"] {
            for field in FIELDS {
                let attribute = limit_attr(limit, field);
                assert_eq!(parse_limit_attr(&attribute), Some((limit, field)));
            }
        }
        for other in [
            "b_cp",
            "b__cp",
            "rf",
            "sched",
            "b_rpm_note",
            "l_rpm_cp",
            "b_rpm",
        ] {
            assert_eq!(parse_limit_attr(other), None, "{other}");
        }
    }

    #[test]
    fn the_last_change_of_an_attribute_is_the_only_one() {
        let mut update = Update::default();
        assert!(update.is_empty());
        update.set("b_x.y_cp", number(1));
        update.remove("b_x.y_cp");
        update.remove("vu");
        update.set("vu", number(0));
        update.set("sched_tz", text("UTC"));
        assert_eq!(update.expression(), "SET #a1 = :a1, #a2 = :a2 REMOVE #a0");
        assert_eq!(update.condition(), "attribute_exists(PK)");
        assert_eq!(update.names().len(), 3);
        assert_eq!(update.values().len(), 2);
    }
}
