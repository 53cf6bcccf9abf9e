//! The params fan-out: an entity's limits on its buckets, with windows, schedules, soft stamps and
//! expiry.
//!
//! Each bucket is written from the limits that now apply to it, wherever they come from: `_default_`
//! differs by resource, and a level that was deleted or emptied leaves its buckets to the next one.
//! Which limits to take off a bucket is read from the bucket and not from what the level used to
//! say, so that a fan-out that another run began takes them off too.

use super::pipeline::{self, Decided, Kind, Pass};
use super::walk::{self, Configs};
use super::{Ended, Fanouts, Tally, Target};
use crate::model::{EpochMs, Level, LevelConfig, Owed};
use crate::store::{CHANGES_PER_GROUP, FoundBucket, Stamped, StoreError};
use crate::table::params::{Expiry, Params, ParamsChange};
use crate::table::{BucketId, ItemError};
use std::sync::Arc;

pub(super) async fn run(
    fanouts: &Fanouts<'_>,
    owed: &Owed,
    tally: &mut Tally,
) -> Result<Ended, StoreError> {
    let kind = ParamsKind {
        target: fanouts.target.clone(),
        level: owed.level.clone(),
    };
    pipeline::run(fanouts, &kind, owed, tally).await
}

#[derive(Clone)]
struct ParamsKind {
    target: Target,
    level: Level,
}

impl Kind for ParamsKind {
    type Write = ParamsChange;
    type Seed = Option<Result<LevelConfig, ItemError>>;
    const BATCH: usize = CHANGES_PER_GROUP;

    async fn seed(&self) -> Result<Self::Seed, StoreError> {
        walk::config(&self.target, &self.level).await
    }

    async fn decide(
        &self,
        part: &[FoundBucket],
        _: Pass,
    ) -> Result<Decided<ParamsChange>, StoreError> {
        let write = |params: &Arc<Params>, soft_until| ParamsChange {
            params: params.clone(),
            soft_until,
        };
        walk::decide(&self.target, part, resolve, write).await
    }

    fn agree(one: &ParamsChange, two: &ParamsChange) -> bool {
        one.params.agrees(&two.params)
    }

    async fn write(&self, batch: &[(String, ParamsChange)]) -> Vec<Stamped> {
        self.target.store.change_buckets(batch).await
    }
}

/// What a bucket carries. Where nothing applies there is no right value, and it keeps what it has.
fn resolve(
    configs: &Configs,
    bucket: &BucketId,
    read_at: EpochMs,
) -> Result<Option<Arc<Params>>, String> {
    let Some((step, config)) = walk::limits(configs, bucket).map_err(ToString::to_string)? else {
        return Ok(None);
    };
    let expiry = Expiry::of(step, config, read_at).map_err(|e| e.to_string())?;
    Ok(Some(Arc::new(Params::new(config, expiry))))
}
