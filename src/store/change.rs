//! Changing buckets one item at a time: read it, let the change look at it, update it.
//!
//! Every update is conditioned on the bucket still being there. What it is to become is decided
//! elsewhere.

use super::bucket::{Stamped, bucket_key};
use super::read::key_item;
use super::{Store, StoreError, error};
use crate::table::Item;
use crate::table::bucket::{BucketChange, Update};
use crate::table::cascade::OwnerStamp;
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;
use futures::future::join_all;
use std::collections::HashMap;

/// Buckets that one call of [`Store::change_buckets`] is meant for.
pub const CHANGES_PER_GROUP: usize = 10;

/// What became of one owner stamp.
#[derive(Debug)]
pub enum OwnerStamped {
    /// It landed.
    Landed,
    /// The bucket is no longer there.
    Vanished,
    /// The bucket carries a newer stamp of the same incarnation, which stays.
    Newer,
    /// It failed; [`StoreError::is_transient`] says whether sending it again may help.
    Failed(StoreError),
}

/// Why an update did not happen.
enum NotUpdated {
    /// Its condition did not hold.
    Refused {
        /// Whether the bucket is there.
        exists: bool,
    },
    Failed(StoreError),
}

impl Store {
    /// Reads buckets, named by their partition keys, strongly consistent, and brings each to what
    /// its change makes of it. Says for each what became of it, in the same order.
    pub async fn change_buckets<C: BucketChange>(&self, changes: &[(String, C)]) -> Vec<Stamped> {
        let pks = changes.iter().map(|(pk, _)| pk.clone()).collect();
        let key = |pk: &String| bucket_key(pk);
        let stored = self.get_many("read the buckets", pks, key, None, |_, item| item);
        let stored: HashMap<String, Item> = match stored.await {
            Ok(stored) => stored.into_iter().collect(),
            Err(error) => return error.repeated(changes.len()).map(Stamped::Failed).collect(),
        };
        let change = |(pk, change): &(String, C)| {
            let update = stored.get(pk).map(|item| change.update(item));
            self.change_bucket(pk.clone(), update)
        };
        join_all(changes.iter().map(change).collect::<Vec<_>>()).await
    }

    async fn change_bucket(&self, pk: String, update: Option<Update>) -> Stamped {
        let Some(update) = update else {
            return Stamped::Vanished;
        };
        if update.is_empty() {
            return Stamped::Unchanged;
        }
        match self.update_bucket("change a bucket", &pk, &update).await {
            Ok(()) => Stamped::Landed,
            Err(NotUpdated::Refused { .. }) => Stamped::Vanished,
            Err(NotUpdated::Failed(error)) => Stamped::Failed(error),
        }
    }

    /// Stamps the owner of one bucket.
    pub async fn stamp_owner(&self, pk: &str, stamp: &OwnerStamp) -> OwnerStamped {
        let update = stamp.update();
        match self
            .update_bucket("stamp a bucket's owner", pk, &update)
            .await
        {
            Ok(()) => OwnerStamped::Landed,
            Err(NotUpdated::Refused { exists: false }) => OwnerStamped::Vanished,
            Err(NotUpdated::Refused { exists: true }) => OwnerStamped::Newer,
            Err(NotUpdated::Failed(error)) => OwnerStamped::Failed(error),
        }
    }

    async fn update_bucket(
        &self,
        act: &'static str,
        pk: &str,
        update: &Update,
    ) -> Result<(), NotUpdated> {
        let values = Some(update.values()).filter(|values| !values.is_empty());
        let request = self
            .client
            .update_item()
            .table_name(self.table())
            .set_key(Some(key_item(&bucket_key(pk))))
            .update_expression(update.expression())
            .condition_expression(update.condition())
            .set_expression_attribute_names(Some(update.names()))
            .set_expression_attribute_values(values)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        match request.send().await {
            Ok(_) => Ok(()),
            Err(refused) if error::is_conditional_check_failed(&refused) => {
                let exists = error::refused_item(&refused).is_some();
                Err(NotUpdated::Refused { exists })
            }
            Err(error) => Err(NotUpdated::Failed(self.failed(act, error))),
        }
    }
}
