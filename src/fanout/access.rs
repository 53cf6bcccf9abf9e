//! The access fan-out: disabled, bypass or neither, on every bucket that a switch reaches.
//!
//! Each bucket is stamped from its own resolution, read after the config was written. A resource's
//! fan-out leaves alone an entity whose own level decides: that is what makes an entity's
//! `disabled: false` survive inside a disabled resource.

use super::pipeline::{self, Decided, Kind, Pass};
use super::{Ended, Fanouts, Tally, Target, walk};
use crate::model::resolve::{Access, Step, access};
use crate::model::{AccessMode, Level, Owed, Switch};
use crate::store::{FoundBucket, STAMPS_PER_BATCH, Stamped, StoreError};
use crate::table::stamp::Stamp;
use std::collections::{BTreeSet, HashMap};

pub(super) async fn run(
    fanouts: &Fanouts<'_>,
    owed: &Owed,
    tally: &mut Tally,
) -> Result<Ended, StoreError> {
    pipeline::run(fanouts, &AccessKind::new(fanouts, owed), owed, tally).await
}

/// The reading pass: looks at what the buckets show and stamps what is wrong.
pub(super) async fn mend(
    fanouts: &Fanouts<'_>,
    owed: &Owed,
    tally: &mut Tally,
) -> Result<Ended, StoreError> {
    pipeline::read(fanouts, &AccessKind::new(fanouts, owed), owed, tally).await
}

#[derive(Clone)]
struct AccessKind {
    target: Target,
    level: Level,
}

impl AccessKind {
    fn new(fanouts: &Fanouts<'_>, owed: &Owed) -> Self {
        AccessKind {
            target: fanouts.target.clone(),
            level: owed.level.clone(),
        }
    }

    /// Whether this fan-out is to touch a bucket whose access resolves so.
    fn is_ours(&self, access: Access) -> bool {
        match (&self.level, access.winner) {
            (Level::Resource(_), Some((step, _))) => step == Step::Resource,
            _ => true,
        }
    }
}

impl Kind for AccessKind {
    type Write = Stamp;
    type Seed = Option<Switch>;
    const BATCH: usize = STAMPS_PER_BATCH;

    async fn seed(&self) -> Result<Self::Seed, StoreError> {
        let level = BTreeSet::from([self.level.clone()]);
        let switches = self.target.store.switches(&self.target.ns, &level).await?;
        Ok(switches.get(&self.level).copied())
    }

    async fn decide(&self, part: &[FoundBucket], pass: Pass) -> Result<Decided<Stamp>, StoreError> {
        let Target {
            store, ns, clock, ..
        } = &self.target;
        let mut decided = Decided::default();
        let buckets = walk::identify(ns, part, &mut decided);
        let shown = match pass {
            Pass::Reading if part.iter().any(|bucket| bucket.shown.is_none()) => {
                store
                    .shown_modes(buckets.iter().map(|(bucket, _)| bucket.pk.as_str()))
                    .await?
            }
            _ => HashMap::new(),
        };
        let levels: BTreeSet<Level> = buckets
            .iter()
            .flat_map(|(_, id)| walk::access_levels(id))
            .collect();
        // A bypass counts from before the config that justifies it was read.
        let read_at = clock.now();
        let switches = store.switches(ns, &levels).await?;
        for (bucket, id) in buckets {
            let [entity, entity_default, resource] =
                walk::access_levels(&id).map(|level| switches.get(&level).copied());
            let access = access(entity, entity_default, resource);
            let shows = bucket
                .shown
                .or_else(|| shown.get(bucket.pk.as_str()).copied());
            let is_right = pass == Pass::Reading && shows.is_none_or(|mode| mode == access.mode);
            // What this fan-out has written, or someone beside it, is mended whichever level decides.
            let is_ours = matches!(pass, Pass::Reading | Pass::Again) || self.is_ours(access);
            if is_ours && !is_right {
                let stamp = Stamp::new(access.mode, read_at, rand::random());
                decided.writes.push((bucket.pk.clone(), stamp));
            }
        }
        Ok(decided)
    }

    fn is_checked(pass: Pass) -> bool {
        pass == Pass::Reading
    }

    fn agree(one: &Stamp, two: &Stamp) -> bool {
        one.mode() == two.mode()
    }

    fn mode(write: &Stamp) -> Option<AccessMode> {
        Some(write.mode())
    }

    async fn write(&self, batch: &[(String, Stamp)]) -> Vec<Stamped> {
        self.target.store.stamp_buckets(batch).await
    }
}
