//! The soft fan-out: which limits of a resource or of the system are counted and not enforced.
//!
//! Each bucket is stamped from its own resolution. An entity's own limits carry their stamps with
//! the params fan-out, so buckets that have them are left alone here; under a system change, so are
//! those whose limits come from their resource.

use super::pipeline::{self, Decided, Kind, Pass};
use super::walk::{self, Configs};
use super::{Ended, Fanouts, Tally};
use crate::model::resolve::Step;
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
        fanouts,
        level: &owed.level,
    };
    pipeline::run(fanouts, &kind, owed, tally).await
}

struct SoftKind<'a> {
    fanouts: &'a Fanouts<'a>,
    level: &'a Level,
}

impl Kind for SoftKind<'_> {
    type Write = SoftChange;
    type Seed = Option<Result<LevelConfig, ItemError>>;
    const BATCH: usize = CHANGES_PER_GROUP;

    async fn seed(&self) -> Result<Self::Seed, StoreError> {
        walk::config(self.fanouts, self.level).await
    }

    async fn decide(
        &self,
        page: &[FoundBucket],
        pass: Pass,
    ) -> Result<Decided<SoftChange>, StoreError> {
        let resolve = |configs: &Configs, id: &BucketId, _| self.resolve(configs, id, pass);
        let write = |soft: &Arc<BTreeSet<LimitName>>, until| SoftChange {
            soft: soft.clone(),
            until,
        };
        walk::decide(self.fanouts, page, resolve, write).await
    }

    fn agree(one: &SoftChange, two: &SoftChange) -> bool {
        one.soft == two.soft
    }

    async fn write(&self, batch: &[(String, SoftChange)]) -> Vec<Stamped> {
        self.fanouts.store.change_buckets(batch).await
    }
}

impl SoftKind<'_> {
    /// The soft limits of a bucket; `None` when its stamps are not this level's.
    fn resolve(
        &self,
        configs: &Configs,
        bucket: &BucketId,
        pass: Pass,
    ) -> Result<Option<Arc<BTreeSet<LimitName>>>, String> {
        let Some((step, config)) = walk::limits(configs, bucket).map_err(ToString::to_string)?
        else {
            return Ok(Some(Arc::default()));
        };
        let is_ours = match step {
            _ if pass == Pass::Again => true,
            Step::Entity | Step::EntityDefault => false,
            Step::Resource => *self.level != Level::System,
            Step::System => true,
        };
        let soft = config.limits.iter().filter(|(_, limit)| limit.soft);
        Ok(is_ours.then(|| Arc::new(soft.map(|(name, _)| name.clone()).collect())))
    }
}
