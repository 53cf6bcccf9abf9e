//! Sample entities and buckets for the embedded store, as clients would have left them. Never for a
//! table that is in use: real buckets come from clients.

use super::{Store, StoreError, error};
use crate::model::resolve::{Step, Walk};
use crate::model::{
    EntityId, EpochMs, EpochSeconds, Level, LevelConfig, Limit, LimitName, Meta, NameError,
    NamespaceId, ResourceName, Scope, Seconds, StoredLevel, Tokens, bucket_ttl,
};
use crate::table::fresh::FreshBucket;
use crate::table::stamp::Stamp;
use crate::table::{BucketId, Item, meta};
use std::collections::{BTreeMap, BTreeSet};

/// The organisation that the sample users belong to.
const ORGANISATION: &str = "org-1";

/// The sample: an entity, its parent and its own cascade policy, and its shards by resource.
const ENTITIES: [(&str, Option<&str>, bool, &[(&str, u32)]); 4] = [
    (ORGANISATION, None, false, &[("gpt-4", 2)]),
    (
        "user-123",
        Some(ORGANISATION),
        true,
        &[("gpt-4", 2), ("claude-3", 1)],
    ),
    (
        "user-456",
        Some(ORGANISATION),
        false,
        &[("gpt-4", 1), ("legacy-model", 1)],
    ),
    (
        "user-789",
        None,
        false,
        &[("gpt-4", 1), ("claude-3", 1), ("legacy-model", 1)],
    ),
];

/// What a seeding made, and what was there already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seeded {
    /// Entities made.
    pub entities: usize,
    /// Buckets made, each shard counted.
    pub buckets: usize,
    /// Entities and buckets that were there and were left as they are.
    pub existing: usize,
}

impl Store {
    /// Adds the sample to a namespace. What is there already stays as it is.
    ///
    /// Limits, cascade and stamps follow the config that is stored now. Where no level defines
    /// limits the buckets are those of a client that brings its own.
    ///
    /// # Errors
    /// [`StoreError`] when config cannot be read or an item cannot be written.
    pub async fn seed(&self, ns: &NamespaceId, now: EpochMs) -> Result<Seeded, StoreError> {
        let mut seeded = Seeded::default();
        for (entity, parent, cascade, buckets) in ENTITIES {
            let entity = name(entity, EntityId::parse)?;
            let parent = parent.map(|id| name(id, EntityId::parse)).transpose()?;
            let fresh = Meta {
                cascade,
                parent,
                generation: Some(now.0),
                incarnation: Some(format!("{:016x}", rand::random::<u64>())),
            };
            if self.add(meta::encode_new(ns, &entity, &fresh, now)).await? {
                seeded.entities += 1;
            } else {
                seeded.existing += 1;
            }
            // Its buckets belong to the entity as it is stored, whoever made it.
            let meta = self.meta(ns, &entity).await?;
            for (resource, shards) in buckets {
                let resource = name(resource, ResourceName::parse)?;
                let items = self.sample(ns, &entity, &resource, *shards, meta.as_ref(), now);
                for item in items.await? {
                    if self.add(item).await? {
                        seeded.buckets += 1;
                    } else {
                        seeded.existing += 1;
                    }
                }
            }
        }
        Ok(seeded)
    }

    /// The shards of one entity and resource.
    async fn sample(
        &self,
        ns: &NamespaceId,
        entity: &EntityId,
        resource: &ResourceName,
        shards: u32,
        meta: Option<&Meta>,
        now: EpochMs,
    ) -> Result<Vec<Item>, StoreError> {
        let own = Level::Entity(entity.clone(), Scope::Resource(resource.clone()));
        let default = Level::Entity(entity.clone(), Scope::Default);
        let shared = Level::Resource(resource.clone());
        let wanted = BTreeSet::from([&own, &default, &shared, &Level::System]);
        let stored = self.levels(ns, wanted.into_iter()).await?;
        let walk = Walk {
            entity: config(&stored, &own),
            entity_default: config(&stored, &default),
            resource: config(&stored, &shared),
            system: config(&stored, &Level::System),
        };
        let fallback = LevelConfig {
            limits: fallback_limits()?,
            ..LevelConfig::default()
        };
        let (step, level) = walk.limits().unwrap_or((Step::System, &fallback));
        let shares_config = matches!(step, Step::Resource | Step::System);
        let expires = match shares_config {
            true => bucket_ttl(EpochSeconds(now.0 / 1000), &level.limits).map_err(|source| {
                StoreError::Sample {
                    source: Box::new(source),
                }
            })?,
            false => None,
        };
        let policy = walk.cascade().map(|(_, policy)| policy);
        let policy = policy.unwrap_or_else(|| meta.is_some_and(|meta| meta.cascade));
        let has_parent = meta.is_some_and(|meta| meta.parent.is_some());
        let shard = |shard| {
            let id = BucketId {
                entity: entity.clone(),
                resource: resource.clone(),
                shard,
            };
            let stamp = Stamp::new(walk.access().mode, now, rand::random());
            let soft = Stamp::new(crate::model::AccessMode::Bypass, now, rand::random());
            FreshBucket {
                id: &id,
                shards,
                limits: &level.limits,
                zone: level.zone.as_ref(),
                meta,
                cascades: policy && has_parent,
                ttl: expires,
                stamp,
                soft_until: match soft {
                    Stamp::Bypass(until) => until,
                    Stamp::Disabled | Stamp::Enforce => now,
                },
            }
            .encode(ns, now)
        };
        Ok((0..shards).map(shard).collect())
    }

    /// Writes an item unless there is one. `false`: there is.
    async fn add(&self, item: Item) -> Result<bool, StoreError> {
        let request = self
            .client
            .put_item()
            .table_name(self.table())
            .set_item(Some(item))
            .condition_expression("attribute_not_exists(PK)");
        match request.send().await {
            Ok(_) => Ok(true),
            Err(e) if error::is_conditional_check_failed(&e) => Ok(false),
            Err(e) => Err(self.failed("write a sample item", e)),
        }
    }
}

fn config<'a>(stored: &'a BTreeMap<Level, StoredLevel>, level: &Level) -> Option<&'a LevelConfig> {
    stored.get(level).map(|stored| &stored.config)
}

/// The limits of a client that brings its own.
fn fallback_limits() -> Result<BTreeMap<LimitName, Limit>, StoreError> {
    let limit = Limit::drip(Tokens(1000), Tokens(1000), Seconds(60));
    Ok(BTreeMap::from([(name("rpm", LimitName::parse)?, limit)]))
}

fn name<T>(text: &str, parse: fn(&str) -> Result<T, NameError>) -> Result<T, StoreError> {
    parse(text).map_err(|source| StoreError::Sample {
        source: Box::new(source),
    })
}
