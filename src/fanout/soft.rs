//! The soft fan-out: which limits of a resource or of the system are counted and not enforced.
//!
//! Each bucket is stamped from its own resolution, whichever level that comes from. Those that carry what
//! it demands are not written.

use super::pipeline::{self, Decided, Kind, Pass};
use super::walk::{self, Configs};
use super::{Ended, Fanouts, Tally, Target};
use crate::model::{Level, LevelConfig, LimitName, Owed};
use crate::store::{CHANGES_PER_GROUP, FoundBucket, Stamped, StoreError};
use crate::table::soft::SoftChange;
use crate::table::{BucketId, ItemError};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) async fn run(
    fanouts: &Fanouts<'_>,
    owed: &Owed,
    tally: &mut Tally,
) -> Result<Ended, StoreError> {
    let kind = SoftKind {
        target: fanouts.target.clone(),
        level: owed.level.clone(),
    };
    pipeline::run(fanouts, &kind, owed, tally).await
}

#[derive(Clone)]
struct SoftKind {
    target: Target,
    level: Level,
}

impl Kind for SoftKind {
    type Write = SoftChange;
    type Seed = Option<Result<LevelConfig, ItemError>>;
    const BATCH: usize = CHANGES_PER_GROUP;

    async fn seed(&self) -> Result<Self::Seed, StoreError> {
        walk::config(&self.target, &self.level).await
    }

    async fn decide(
        &self,
        part: &[FoundBucket],
        _: Pass,
    ) -> Result<Decided<SoftChange>, StoreError> {
        let resolve = |configs: &Configs, id: &BucketId, _| resolve(configs, id).map(Some);
        let write = |soft: &Arc<BTreeSet<LimitName>>, until| SoftChange {
            soft: soft.clone(),
            until,
        };
        walk::decide(&self.target, part, resolve, write).await
    }

    fn agree(one: &SoftChange, two: &SoftChange) -> bool {
        one.soft == two.soft
    }

    async fn write(&self, batch: &[(String, SoftChange)]) -> Vec<Stamped> {
        self.target.store.change_buckets(batch).await
    }
}

/// The soft limits of a bucket, whichever level they come from: a fan-out that was cut off after it
/// wrote, and before it looked, may have brought it another level's.
fn resolve(configs: &Configs, bucket: &BucketId) -> Result<Arc<BTreeSet<LimitName>>, String> {
    let limits = walk::limits(configs, bucket).map_err(ToString::to_string)?;
    let limits = limits.iter().flat_map(|(_, config)| &config.limits);
    let soft = limits.filter(|(_, limit)| limit.soft);
    Ok(Arc::new(soft.map(|(name, _)| name.clone()).collect()))
}
