//! Soft stamps on bucket items: which limits are counted and not enforced, and until when.
//!
//! Pure: which limits are soft is resolved elsewhere.

use super::attr::{Item, number};
use super::bucket::{BucketChange, Update, limit_attr, parse_limit_attr};
use crate::model::{EpochMs, LimitName};
use std::collections::BTreeSet;
use std::sync::Arc;

const SOFT: &str = "soft";

/// Brings one bucket's soft stamps to what applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoftChange {
    /// The soft ones among the limits that apply. Every other limit is hard.
    pub soft: Arc<BTreeSet<LimitName>>,
    /// When the stamps run out.
    pub until: EpochMs,
}

impl BucketChange for SoftChange {
    fn update(&self, bucket: &Item) -> Update {
        let mut update = Update::default();
        for attribute in bucket.keys() {
            if parse_limit_attr(attribute).is_some_and(|(_, field)| field == SOFT) {
                update.remove(attribute);
            }
        }
        for name in self.soft.iter() {
            update.set(limit_attr(name.as_str(), SOFT), number(self.until));
        }
        update
    }
}
