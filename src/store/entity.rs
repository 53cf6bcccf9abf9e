//! Reading the stamps of one entity's buckets of one resource.

use super::{BucketStamps, Store, StoreError};
use crate::model::{EntityId, NamespaceId, ResourceName, Scope};
use crate::table::{BucketId, keys};

impl Store {
    /// The stamps of every shard of an entity and a resource, by shard. Which shards there are is
    /// asked of an index, which may lag by a moment; what they carry is read consistently.
    ///
    /// # Errors
    /// [`StoreError`] when the index or a bucket cannot be read.
    pub async fn shard_stamps(
        &self,
        ns: &NamespaceId,
        entity: &EntityId,
        resource: &ResourceName,
    ) -> Result<Vec<(u32, BucketStamps)>, StoreError> {
        let discovery = keys::buckets_of_entity(ns, entity, &Scope::Resource(resource.clone()));
        let mut shards = Vec::new();
        let mut start = None;
        loop {
            let page = self.bucket_page(&discovery, start).await?;
            for found in &page.buckets {
                let Ok(id) = BucketId::parse(ns, &found.pk) else {
                    continue;
                };
                if let Some(stamps) = self.bucket_stamps(ns, &id).await? {
                    shards.push((id.shard, stamps));
                }
            }
            start = page.next;
            if start.is_none() {
                shards.sort_by_key(|(shard, _)| *shard);
                return Ok(shards);
            }
        }
    }
}
