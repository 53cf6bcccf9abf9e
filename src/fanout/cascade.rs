//! The cascade fan-out: whether a bucket's parent is debited too, and who the parent is.
//!
//! Each bucket is stamped from its own resolution and its entity's META. A stamp carries the
//! generation of the parent that META showed; where the bucket already carries a newer one, a move
//! to another parent came in between and everything is read again.

use super::pipeline::{self, Decided, Kind, Pass};
use super::{Ended, Fanouts, ROUNDS, Tally, Target, walk};
use crate::model::{Level, Owed};
use crate::store::{CHANGES_PER_GROUP, FoundBucket, OwnerStamped, Stamped, StoreError};
use crate::table::cascade::OwnerStamp;
use futures::future::join_all;
use std::collections::BTreeSet;

pub(super) async fn run(
    fanouts: &Fanouts<'_>,
    owed: &Owed,
    tally: &mut Tally,
) -> Result<Ended, StoreError> {
    let kind = CascadeKind {
        target: fanouts.target.clone(),
        level: owed.level.clone(),
    };
    pipeline::run(fanouts, &kind, owed, tally).await
}

#[derive(Clone)]
struct CascadeKind {
    target: Target,
    level: Level,
}

impl Kind for CascadeKind {
    type Write = OwnerStamp;
    type Seed = Option<bool>;
    const BATCH: usize = CHANGES_PER_GROUP;

    async fn seed(&self) -> Result<Self::Seed, StoreError> {
        let Target { store, ns, .. } = &self.target;
        let level = BTreeSet::from([self.level.clone()]);
        let policies = store.cascade_policies(ns, &level).await?;
        Ok(policies.get(&self.level).copied())
    }

    async fn decide(
        &self,
        part: &[FoundBucket],
        _: Pass,
    ) -> Result<Decided<OwnerStamp>, StoreError> {
        let Target { store, ns, .. } = &self.target;
        let mut decided = Decided::default();
        let buckets = walk::identify(ns, part, &mut decided);
        let entities = buckets.iter().map(|(_, id)| id.entity.clone()).collect();
        let levels = buckets
            .iter()
            .flat_map(|(_, id)| walk::access_levels(id))
            .collect();
        let (owners, policies) = futures::try_join!(
            store.owners(ns, &entities),
            store.cascade_policies(ns, &levels)
        )?;
        for (bucket, id) in buckets {
            match owners.get(&id.entity) {
                Some(Ok(owner)) => {
                    let mut walk = walk::access_levels(&id).into_iter();
                    let policy = walk.find_map(|level| policies.get(&level).copied());
                    let stamp = OwnerStamp::new(owner, policy);
                    decided.writes.push((bucket.pk.clone(), stamp));
                }
                Some(Err(error)) => decided
                    .undecided
                    .push((bucket.pk.clone(), error.to_string())),
                // Without META nobody owns the bucket; clients do not stamp it either.
                None => {}
            }
        }
        Ok(decided)
    }

    fn agree(one: &OwnerStamp, two: &OwnerStamp) -> bool {
        one == two
    }

    async fn write(&self, batch: &[(String, OwnerStamp)]) -> Vec<Stamped> {
        let stamps: Vec<_> = batch
            .iter()
            .map(|(pk, stamp)| self.stamp(pk, stamp.clone()))
            .collect();
        join_all(stamps).await
    }
}

impl CascadeKind {
    async fn stamp(&self, pk: &str, mut stamp: OwnerStamp) -> Stamped {
        for _ in 0..ROUNDS {
            match self.target.store.stamp_owner(pk, &stamp).await {
                OwnerStamped::Landed => return Stamped::Landed,
                OwnerStamped::Vanished => return Stamped::Vanished,
                OwnerStamped::Failed(error) => return Stamped::Failed(error),
                OwnerStamped::Newer => {}
            }
            match self.decide_one(pk).await {
                Err(error) => return Stamped::Failed(error),
                // META does not know of the newer stamp, so there is nothing better to write.
                Ok(None) => return Stamped::Unchanged,
                Ok(Some(again)) if again == stamp => return Stamped::Unchanged,
                Ok(Some(again)) => stamp = again,
            }
        }
        Stamped::Failed(StoreError::ConditionFailed {
            act: "stamp a bucket's owner".into(),
        })
    }

    async fn decide_one(&self, pk: &str) -> Result<Option<OwnerStamp>, StoreError> {
        let part = [FoundBucket {
            pk: pk.to_owned(),
            shown: None,
        }];
        let mut decided = self.decide(&part, Pass::First).await?;
        Ok(decided.writes.pop().map(|(_, stamp)| stamp))
    }
}
