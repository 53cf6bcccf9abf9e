//! Sample entities and buckets for the embedded store, as clients would have left them. Never for a
//! table that is in use: real buckets come from clients.

use super::{Store, StoreError};
use crate::model::resolve::{self, Step, Walk};
use crate::model::{
    EntityId, EpochMs, Level, LevelConfig, Limit, LimitName, NameError, NamespaceId, ResourceName,
    Seconds, Tokens,
};
use crate::table::cascade::{BucketOwner, OwnerStamp};
use crate::table::fresh::FreshBucket;
use crate::table::params::Expiry;
use crate::table::stamp::{self, Stamp};
use crate::table::{BucketId, Item, meta};
use litemap::LiteMap;
use std::collections::{BTreeSet, HashMap};

/// The organisation that the sample users belong to.
const ORGANISATION: &str = "org-1";

/// An entity of the sample.
struct Sample {
    entity: &'static str,
    parent: Option<&'static str>,
    /// Its own cascade policy.
    cascade: bool,
    /// How many shards it has of which resource.
    buckets: &'static [(&'static str, u32)],
}

const SAMPLES: [Sample; 4] = [
    Sample {
        entity: ORGANISATION,
        parent: None,
        cascade: false,
        buckets: &[("gpt-4", 2)],
    },
    Sample {
        entity: "user-123",
        parent: Some(ORGANISATION),
        cascade: true,
        buckets: &[("gpt-4", 2), ("claude-3", 1)],
    },
    Sample {
        entity: "user-456",
        parent: Some(ORGANISATION),
        cascade: false,
        buckets: &[("gpt-4", 1), ("legacy-model", 1)],
    },
    Sample {
        entity: "user-789",
        parent: None,
        cascade: false,
        buckets: &[("gpt-4", 1), ("claude-3", 1), ("legacy-model", 1)],
    },
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
        for sample in SAMPLES {
            let entity = name(sample.entity, EntityId::parse)?;
            let parent = sample.parent.map(|id| name(id, EntityId::parse));
            let parent = parent.transpose()?;
            let created = BucketOwner {
                cascade: sample.cascade,
                parent: parent.as_ref().map(ToString::to_string),
                generation: now.0,
                incarnation: format!("{:016x}", rand::random::<u64>()),
            };
            let item = meta::encode_new(ns, &entity, parent.as_ref(), &created, now);
            seeded.entities += usize::from(self.add(item, &mut seeded.existing).await?);
            for (resource, shards) in sample.buckets {
                let resource = name(resource, ResourceName::parse)?;
                for item in self.sample(ns, &entity, &resource, *shards, now).await? {
                    seeded.buckets += usize::from(self.add(item, &mut seeded.existing).await?);
                }
            }
        }
        Ok(seeded)
    }

    /// The shards of one entity and resource, from what is stored about both.
    async fn sample(
        &self,
        ns: &NamespaceId,
        entity: &EntityId,
        resource: &ResourceName,
        shards: u32,
        now: EpochMs,
    ) -> Result<Vec<Item>, StoreError> {
        let levels = resolve::levels(entity, resource);
        let wanted = levels.iter().map(|(_, level)| level.clone()).collect();
        let mut stored: HashMap<Level, LevelConfig> = HashMap::new();
        for (level, config) in self.configs(ns, &wanted).await? {
            stored.insert(level, config?);
        }
        let config = |level: &Level| stored.get(level);
        let walk = Walk::over(&levels, config);
        let mut owners = self.owners(ns, &BTreeSet::from([entity.clone()])).await?;
        let owner = owners.remove(entity).transpose()?;
        let policy = walk.cascade().map(|(_, policy)| policy);
        let owner = owner.map(|owner| OwnerStamp::new(&owner, policy));
        let fallback = own_limits()?;
        let (step, limits) = walk.limits().unwrap_or((Step::System, &fallback));
        let expiry = Expiry::of(step, limits, now).map_err(|source| StoreError::Sample {
            source: Box::new(source),
        })?;
        let shard = |shard| {
            let bucket = FreshBucket {
                id: &BucketId {
                    entity: entity.clone(),
                    resource: resource.clone(),
                    shard,
                },
                shards,
                config: limits,
                expiry,
                owner: owner.as_ref(),
                stamp: Stamp::new(walk.access().mode, now, rand::random()),
                soft_until: stamp::deadline(now, rand::random()),
            };
            bucket.encode(ns, now)
        };
        Ok((0..shards).map(shard).collect())
    }

    /// Writes an item unless there is one, which counts as existing then.
    async fn add(&self, item: Item, existing: &mut usize) -> Result<bool, StoreError> {
        let is_new = self.put_new("write a sample item", item).await?;
        *existing += usize::from(!is_new);
        Ok(is_new)
    }
}

/// The limits of a client that brings its own.
fn own_limits() -> Result<LevelConfig, StoreError> {
    let limit = Limit::drip(Tokens(1000), Tokens(1000), Seconds(60));
    Ok(LevelConfig {
        limits: LiteMap::from_iter([(name("rpm", LimitName::parse)?, limit)]),
        ..LevelConfig::default()
    })
}

fn name<T>(text: &str, parse: fn(&str) -> Result<T, NameError>) -> Result<T, StoreError> {
    parse(text).map_err(|source| StoreError::Sample {
        source: Box::new(source),
    })
}
