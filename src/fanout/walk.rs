//! The levels that decide about a bucket, most specific first, and what the first of them with
//! limits makes of some buckets.

use super::Target;
use super::pipeline::Decided;
use crate::model::resolve::{self, Step};
use crate::model::{EntityId, EpochMs, Level, LevelConfig, NamespaceId, ResourceName};
use crate::store::{FoundBucket, StoreError};
use crate::table::{BucketId, ItemError, stamp};
use std::collections::{BTreeSet, HashMap};

/// Config as stored, by level; what does not read is kept with the reason.
pub(super) type Configs = HashMap<Level, Result<LevelConfig, ItemError>>;

/// Buckets with what their keys say. One whose key does not read is undecided; what cannot
/// be a bucket is set aside.
pub(super) fn identify<'p, W>(
    ns: &NamespaceId,
    part: &'p [FoundBucket],
    decided: &mut Decided<W>,
) -> Vec<(&'p FoundBucket, BucketId)> {
    let mut buckets = Vec::new();
    for bucket in part {
        match BucketId::parse(ns, &bucket.pk) {
            Ok(id) => buckets.push((bucket, id)),
            Err(error) if error.is_foreign => decided.foreign.push((bucket.pk.clone(), error)),
            Err(error) => {
                let reason = format!("its key does not read: {}", error.problem);
                decided.undecided.push((bucket.pk.clone(), reason));
            }
        }
    }
    buckets
}

/// The levels that decide access and the cascade policy.
pub(super) fn access_levels(bucket: &BucketId) -> [Level; 3] {
    let [entity, entity_default, resource, _] = limit_levels(bucket);
    [entity, entity_default, resource]
}

/// The levels that decide the limits.
fn limit_levels(bucket: &BucketId) -> [Level; 4] {
    resolve::levels(&bucket.entity, &bucket.resource).map(|(_, level)| level)
}

/// What a level declares, or why it does not read; `None` when it is not stored.
pub(super) async fn config(
    target: &Target,
    level: &Level,
) -> Result<Option<Result<LevelConfig, ItemError>>, StoreError> {
    let levels = BTreeSet::from([level.clone()]);
    let mut configs = target.store.configs(&target.ns, &levels).await?;
    Ok(configs.remove(level))
}

/// Decides for one part from the limits that apply to each bucket.
///
/// `resolve` says what all buckets of one entity and resource carry, given when config was read;
/// `None` leaves them alone, an error leaves them undecided. `write` makes of it what is written to
/// one bucket, given when that bucket's stamps run out.
pub(super) async fn decide<T: Send, W>(
    target: &Target,
    part: &[FoundBucket],
    resolve: impl Fn(&Configs, &BucketId, EpochMs) -> Result<Option<T>, String> + Send,
    write: impl Fn(&T, EpochMs) -> W + Send,
) -> Result<Decided<W>, StoreError>
where
    W: Send,
{
    let Target {
        store, ns, clock, ..
    } = target;
    let mut decided = Decided::default();
    let buckets = identify(ns, part, &mut decided);
    let levels = buckets.iter().flat_map(|(_, id)| limit_levels(id));
    let levels = levels.collect();
    // Stamps count from before the config that justifies them was read.
    let read_at = clock.now();
    let configs = store.configs(ns, &levels).await?;
    let mut resolved: HashMap<(EntityId, ResourceName), _> = HashMap::new();
    for (bucket, id) in buckets {
        let key = (id.entity.clone(), id.resource.clone());
        let pk = bucket.pk.clone();
        let known = resolved.entry(key);
        match known.or_insert_with(|| resolve(&configs, &id, read_at)) {
            Ok(Some(carried)) => {
                let until = stamp::deadline(read_at, rand::random());
                decided.writes.push((pk, write(carried, until)));
            }
            Ok(None) => {}
            Err(reason) => decided.undecided.push((pk, reason.clone())),
        }
    }
    Ok(decided)
}

/// The level whose limits a bucket has: the first that defines any. `None` when none does.
///
/// # Errors
/// A level that does not read and is reached before one that defines limits: it may define some.
pub(super) fn limits<'c>(
    configs: &'c Configs,
    bucket: &BucketId,
) -> Result<Option<(Step, &'c LevelConfig)>, &'c ItemError> {
    for (step, level) in resolve::levels(&bucket.entity, &bucket.resource) {
        match configs.get(&level) {
            Some(Err(error)) => return Err(error),
            Some(Ok(config)) if !config.limits.is_empty() => return Ok(Some((step, config))),
            _ => {}
        }
    }
    Ok(None)
}
