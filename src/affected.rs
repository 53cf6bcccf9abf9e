//! Whom a plan reaches: the buckets and entities behind each fan-out that it owes, counted before
//! anything is written. Reads only, one page of an index at a time.

use crate::model::resolve;
use crate::model::{FanoutKind, Level, NamespaceId, Owed, Switch};
use crate::plan::Plan;
use crate::store::{Store, StoreError};
use crate::table::{BucketId, keys};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How many buckets a fan-out reaches, and how many entities they belong to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Affected {
    /// Buckets, each shard counted.
    pub buckets: u64,
    /// Entities.
    pub entities: u64,
}

/// Counts what every change of a plan reaches. A bucket that a more specific level decides about,
/// as the plan leaves that level, is not counted for access.
///
/// # Errors
/// [`StoreError`] when an index or a level cannot be read.
pub async fn count(store: &Store, plan: &Plan) -> Result<BTreeMap<Owed, Affected>, StoreError> {
    let mut counts = BTreeMap::new();
    let Some(ns) = &plan.namespace_id else {
        return Ok(counts);
    };
    for change in &plan.changes {
        for kind in &change.owes {
            if change.level == Level::System {
                // Every bucket of the namespace may follow it; which of them do is each bucket's matter.
                continue;
            }
            let owed = Owed {
                level: change.level.clone(),
                kind: *kind,
            };
            let count = count_one(store, plan, ns, &owed).await?;
            counts.insert(owed, count);
        }
    }
    Ok(counts)
}

async fn count_one(
    store: &Store,
    plan: &Plan,
    ns: &NamespaceId,
    owed: &Owed,
) -> Result<Affected, StoreError> {
    let discovery = keys::buckets_of_level(ns, &owed.level);
    let mut count = Affected::default();
    // The index holds the buckets of one entity side by side.
    let mut last = None;
    let mut start = None;
    loop {
        let page = store.bucket_page(&discovery, start).await?;
        let ids: Vec<BucketId> = page
            .buckets
            .iter()
            .filter_map(|bucket| BucketId::parse(ns, &bucket.pk).ok())
            .collect();
        let switches = switches_above(store, plan, ns, owed, &ids).await?;
        for id in ids {
            let decided = |level: &Level| switches.contains_key(level);
            if above(&owed.level, &id).iter().any(decided) {
                continue;
            }
            count.buckets += 1;
            if last.as_ref() != Some(&id.entity) {
                count.entities += 1;
                last = Some(id.entity);
            }
        }
        start = page.next;
        if start.is_none() {
            return Ok(count);
        }
    }
}

/// The switches, as the plan leaves them, of all levels that go before the owed one.
async fn switches_above(
    store: &Store,
    plan: &Plan,
    ns: &NamespaceId,
    owed: &Owed,
    ids: &[BucketId],
) -> Result<HashMap<Level, Switch>, StoreError> {
    if owed.kind != FanoutKind::Access {
        return Ok(HashMap::new());
    }
    let levels: BTreeSet<Level> = ids.iter().flat_map(|id| above(&owed.level, id)).collect();
    let mut switches = store.switches(ns, &levels).await?;
    for change in &plan.changes {
        if !levels.contains(&change.level) {
            continue;
        }
        match change.after.as_ref().and_then(|after| after.disabled) {
            Some(switch) => switches.insert(change.level.clone(), switch),
            None => switches.remove(&change.level),
        };
    }
    Ok(switches)
}

/// The levels that decide about a bucket's access before a level does.
fn above(level: &Level, bucket: &BucketId) -> Vec<Level> {
    let walk = resolve::levels(&bucket.entity, &bucket.resource).map(|(_, level)| level);
    walk.into_iter()
        .take_while(|above| above != level)
        .collect()
}
