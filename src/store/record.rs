//! Writing the provisioner record: a change merged into what is stored by then, never over it.
//! What an apply changes about it is decided by the apply; this keeps races from losing any of it.

use super::read::key_item;
use super::write::each;
use super::{Store, StoreError};
use crate::model::{EpochMs, Level, ManifestOwner, NamespaceId, ProvisionerRecord, Switch};
use crate::table::{Key, attr, keys, record};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How often a lost race is run again.
const ROUNDS: usize = 8;
/// Overflow items in flight at once.
const CONCURRENCY: usize = 4;

/// What one apply changes about the record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordDelta {
    /// Levels that are managed from now on.
    pub managed: BTreeSet<Level>,
    /// Levels that are no longer managed, unless they are stored all the same: another apply wrote
    /// them meanwhile, and whatever the record does not list is never deleted.
    pub released: BTreeSet<Level>,
    /// Switches that were declared. Every other managed level of this apply declared none.
    pub switches: BTreeMap<Level, Switch>,
    /// Levels whose declared switch is forgotten, unless it stands: another apply set it meanwhile,
    /// and forgotten it would be taken for set by hand and kept for good.
    pub silent: BTreeSet<Level>,
    /// Who applies, and from whom they take the namespace over; `None` keeps the stored owner.
    pub owner: Option<Takeover>,
    /// The manifest's hash; `None` keeps the stored one.
    pub applied_hash: Option<String>,
    /// When the apply finished; `None` keeps the stored instant.
    pub last_applied: Option<EpochMs>,
    /// Whether the record remembers switches from now on, where it did not before.
    pub remembers: bool,
    /// Whether nobody will want the namespace back from its owner any more.
    pub settled: bool,
    /// Whether a full apply is to be continued should it be interrupted; `None` keeps what is stored.
    pub full_owed: Option<bool>,
    /// Levels whose listed cascade fan-outs are pending items by now.
    pub unlisted: BTreeSet<Level>,
    /// Whether levels were written: another apply that is about to forget them must see it, even
    /// where the record says the same before and after.
    pub wrote: bool,
}

/// A change of owner, from the one that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Takeover {
    /// The owner when the plan was made.
    pub from: Option<ManifestOwner>,
    /// The owner from now on.
    pub to: ManifestOwner,
    /// Whether an owner who came meanwhile is an error. Otherwise that owner stays.
    pub or_fail: bool,
}

impl Takeover {
    fn is_late(&self, stored: Option<&ManifestOwner>) -> bool {
        stored != self.from.as_ref() && stored != Some(&self.to)
    }
}

impl RecordDelta {
    /// The levels about which this change forgets something.
    fn forgets(&self, record: &ProvisionerRecord) -> BTreeSet<Level> {
        let remembered = |level: &&Level| {
            let switches = record.switches.as_ref();
            switches.is_some_and(|switches| switches.contains_key(*level))
        };
        let managed = |level: &&Level| record.managed.contains(*level);
        let released = self.released.iter().filter(managed);
        released
            .chain(self.silent.iter().filter(remembered))
            .cloned()
            .collect()
    }

    /// The change without forgetting what stands: levels that are stored, with the switch of each.
    fn sparing(
        &self,
        record: &ProvisionerRecord,
        stored: &HashMap<Level, Option<Switch>>,
    ) -> RecordDelta {
        let mut delta = self.clone();
        delta.released.retain(|level| !stored.contains_key(level));
        let remembered = |level: &Level| record.switches.as_ref()?.get(level).copied();
        let stands = |level: &Level| stored.get(level).copied().flatten();
        delta
            .silent
            .retain(|level| stands(level).is_none() || stands(level) != remembered(level));
        delta
    }

    /// The record after this change.
    pub fn merged(&self, stored: Option<ProvisionerRecord>) -> ProvisionerRecord {
        let mut record = stored.unwrap_or_default();
        record.managed.extend(self.managed.iter().cloned());
        record
            .managed
            .retain(|level| !self.released.contains(level));
        // A record without a memory keeps none until a whole apply can fill it: half a memory would
        // make the switches that it lacks someone else's.
        let remembers = self.remembers || record.switches.is_some();
        let mut switches = record.switches.unwrap_or_default();
        switches.retain(|level, _| !self.silent.contains(level) && !self.released.contains(level));
        switches.extend(
            self.switches
                .iter()
                .map(|(level, switch)| (level.clone(), *switch)),
        );
        record.switches = remembers.then_some(switches);
        let owner = record.owner.as_ref();
        if let Some(takeover) = self.owner.as_ref().filter(|t| !t.is_late(owner))
            && owner != Some(&takeover.to)
        {
            record.taken_from = record.owner.replace(takeover.to.clone());
        }
        if self.settled {
            record.taken_from = None;
        }
        if let Some(applied) = &self.applied_hash
            && record.applied_hash.as_ref() != Some(applied)
        {
            record.previous_hash = record.applied_hash.replace(applied.clone());
        }
        record.full_owed = self.full_owed.unwrap_or(record.full_owed);
        record
            .cascade_pending
            .retain(|level| !self.unlisted.contains(level));
        record.last_applied = self.last_applied.or(record.last_applied);
        record
    }
}

impl Store {
    /// Merges a change into the record and returns it. Writes nothing when the record says so
    /// already, the instant aside.
    ///
    /// # Errors
    /// [`StoreError`] when the record cannot be read or written, keeps changing, or has got another
    /// owner meanwhile.
    pub async fn update_record(
        &self,
        ns: &NamespaceId,
        delta: &RecordDelta,
    ) -> Result<ProvisionerRecord, StoreError> {
        for _ in 0..ROUNDS {
            let stored = self.record(ns).await?;
            let owner = stored.as_ref().and_then(|record| record.owner.as_ref());
            if delta
                .owner
                .as_ref()
                .is_some_and(|t| t.or_fail && t.is_late(owner))
            {
                return Err(StoreError::OwnerChanged {
                    owner: owner.map_or("nobody".to_owned(), ToString::to_string),
                });
            }
            let delta = self.spare(ns, delta, stored.as_ref()).await?;
            let mut merged = delta.merged(stored.clone());
            if let Some(stored) = stored.as_ref().filter(|_| !delta.wrote) {
                let mut same = merged.clone();
                same.last_applied = stored.last_applied;
                if same == *stored {
                    return Ok(same);
                }
            }
            // A revision that nobody counted up to begins anew.
            let rev = stored.as_ref().map_or(0, |record| record.rev);
            merged.rev = rev.checked_add(1).unwrap_or(1);
            if self
                .put_record(ns, &merged, stored.map(|record| record.rev))
                .await?
            {
                return Ok(merged);
            }
        }
        Err(StoreError::ConditionFailed {
            act: "write the provisioner record".into(),
        })
    }

    /// The change without forgetting what config, read after the record, still holds. Whoever
    /// writes config later writes the record after that, and this one then fails its condition or
    /// is corrected by theirs.
    async fn spare(
        &self,
        ns: &NamespaceId,
        delta: &RecordDelta,
        stored: Option<&ProvisionerRecord>,
    ) -> Result<RecordDelta, StoreError> {
        let Some(record) = stored else {
            return Ok(delta.clone());
        };
        let forgets = delta.forgets(record);
        if forgets.is_empty() {
            return Ok(delta.clone());
        }
        let standing = self.standing(ns, &forgets).await?;
        Ok(delta.sparing(record, &standing))
    }

    /// Deletes the record and its overflow items while it is still `owner`'s. A record that is gone
    /// is deleted already, and one that someone else has taken over stays.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read or deleted, or keeps changing.
    pub async fn delete_record(
        &self,
        ns: &NamespaceId,
        owner: Option<&ManifestOwner>,
    ) -> Result<(), StoreError> {
        let act = "delete the provisioner record";
        for _ in 0..ROUNDS {
            let Some(stored) = self.record(ns).await? else {
                return Ok(());
            };
            if stored.owner.as_ref() != owner {
                return Ok(());
            }
            let overflow = self.overflow(ns).await?;
            let condition = unmoved(Some(stored.rev));
            let request = self
                .client
                .delete_item()
                .table_name(self.table())
                .set_key(Some(key_item(&keys::provisioner(ns))))
                .condition_expression(condition.expression)
                .set_expression_attribute_values(condition.values());
            if self.landed(act, request.send().await)? {
                return self.delete_overflow(overflow).await;
            }
        }
        Err(StoreError::ConditionFailed { act: act.into() })
    }

    /// Overflow items of its own first, so that the record never counts one that is not there; then
    /// the record, if it is still at the revision that was read; then the overflow items that were
    /// there before: those of the record that was replaced, and those of writes that lost or died.
    async fn put_record(
        &self,
        ns: &NamespaceId,
        new: &ProvisionerRecord,
        read_rev: Option<u64>,
    ) -> Result<bool, StoreError> {
        let act = "write the provisioner record";
        // Listed before the record is replaced: whoever writes from the new one on is not in it.
        let before = self.overflow(ns).await?;
        let items = record::encode(ns, new, &format!("{:016x}", rand::random::<u64>()))?;
        let puts = items.overflow.into_iter().map(|item| {
            let request = self
                .client
                .put_item()
                .table_name(self.table())
                .set_item(Some(item));
            async move {
                let answer = request.send().await;
                answer.map(|_| ()).map_err(|e| self.failed(act, e))
            }
        });
        each(puts.collect(), CONCURRENCY).await?;
        let condition = unmoved(read_rev);
        let request = self
            .client
            .put_item()
            .table_name(self.table())
            .set_item(Some(items.main))
            .condition_expression(condition.expression)
            .set_expression_attribute_values(condition.values());
        if !self.landed(act, request.send().await)? {
            return Ok(false);
        }
        self.delete_overflow(before).await?;
        Ok(true)
    }

    /// Every overflow item there is, of whichever write.
    async fn overflow(&self, ns: &NamespaceId) -> Result<Vec<Key>, StoreError> {
        let act = "read the provisioner record";
        let (pk, prefix) = (keys::system_pk(ns), keys::MANAGED_PREFIX);
        self.keys_of(act, &pk, prefix).await
    }

    async fn delete_overflow(&self, keys: Vec<Key>) -> Result<(), StoreError> {
        let delete = |key: Key| async move {
            let request = self.client.delete_item().table_name(self.table());
            let answer = request.set_key(Some(key_item(&key))).send().await;
            answer
                .map(|_| ())
                .map_err(|e| self.failed("shrink the provisioner record", e))
        };
        each(keys.into_iter().map(delete).collect(), CONCURRENCY).await
    }
}

/// That the record is still at the revision that was read.
struct Unmoved {
    expression: &'static str,
    rev: Option<u64>,
}

fn unmoved(read_rev: Option<u64>) -> Unmoved {
    let (expression, rev) = match read_rev {
        None => ("attribute_not_exists(PK)", None),
        // A record without a revision is the Python provisioner's.
        Some(0) => ("attribute_not_exists(rev)", None),
        Some(rev) => ("rev = :rev", Some(rev)),
    };
    Unmoved { expression, rev }
}

impl Unmoved {
    fn values(&self) -> Option<HashMap<String, AttributeValue>> {
        let rev = self.rev?;
        Some(HashMap::from([(":rev".to_owned(), attr::number(rev))]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_whom_a_namespace_was_taken_is_remembered_until_it_is_settled() {
        let stack = |logical_id: &str| ManifestOwner::Stack {
            stack_id: "stack".to_owned(),
            logical_id: logical_id.to_owned(),
        };
        let take = |record: &ProvisionerRecord, to: &str, settled| {
            let delta = RecordDelta {
                owner: Some(Takeover {
                    from: record.owner.clone(),
                    to: stack(to),
                    or_fail: false,
                }),
                settled,
                ..RecordDelta::default()
            };
            delta.merged(Some(record.clone()))
        };
        let first = take(&ProvisionerRecord::default(), "Limits", false);
        assert_eq!(
            (&first.owner, &first.taken_from),
            (&Some(stack("Limits")), &None)
        );
        let second = take(&first, "Renamed", false);
        assert_eq!(second.taken_from, Some(stack("Limits")));
        let again = take(&second, "Renamed", false);
        assert_eq!(again, second, "the same owner takes nothing");
        let back = take(&second, "Limits", true);
        assert_eq!(
            (&back.owner, &back.taken_from),
            (&Some(stack("Limits")), &None)
        );
    }

    #[test]
    fn the_hash_before_the_last_change_is_remembered() {
        let apply = |record, hash: Option<&str>| {
            let delta = RecordDelta {
                applied_hash: hash.map(str::to_owned),
                ..RecordDelta::default()
            };
            delta.merged(Some(record))
        };
        let hashes = |record: &ProvisionerRecord| {
            let text = |hash: &Option<String>| hash.clone().unwrap_or_default();
            (text(&record.previous_hash), text(&record.applied_hash))
        };
        let pair = |previous: &str, applied: &str| (previous.to_owned(), applied.to_owned());
        let mut record = ProvisionerRecord::default();
        for (hash, expected) in [
            (None, pair("", "")),
            (Some("a"), pair("", "a")),
            (Some("a"), pair("", "a")),
            (Some("b"), pair("a", "b")),
            (None, pair("a", "b")),
            (Some("b"), pair("a", "b")),
            (Some("a"), pair("b", "a")),
        ] {
            record = apply(record, hash);
            assert_eq!(hashes(&record), expected, "{hash:?}");
        }
    }
}
