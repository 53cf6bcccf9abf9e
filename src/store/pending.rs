//! Pending fan-outs: written ahead, claimed, released, and their leases ended.
//!
//! Several applies may own one item. Each write touches only the caller's own entry, is
//! conditional, and may be repeated.

use super::read::key_item;
use super::{Store, StoreError, error};
use crate::model::{EpochMs, NamespaceId, Owed, Pending};
use crate::table::pending::{self as wire, OWNERS};
use crate::table::{attr, keys};
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    Delete, Put, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
};
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::HashMap;

/// Items that one transaction takes.
const BATCH: usize = 100;
/// Single-item writes in flight at once.
const CONCURRENCY: usize = 8;
/// How often a share is added anew while other owners come and go.
const ROUNDS: usize = 5;

/// One apply's claim on pending fan-outs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Identifies the apply.
    pub token: String,
    /// When the apply is certainly gone.
    pub lease: EpochMs,
    /// Whether it is a full apply.
    pub full: bool,
    /// The instant of the claim.
    pub now: EpochMs,
}

impl Store {
    /// Records that the claim's apply owes these fan-outs. Another owner never refuses it.
    ///
    /// # Errors
    /// [`StoreError`] when one could not be recorded; the others may have been.
    pub async fn write_ahead(
        &self,
        ns: &NamespaceId,
        owed: &[Owed],
        claim: &Claim,
    ) -> Result<(), StoreError> {
        for batch in owed.chunks(BATCH) {
            if !self.create_pending(ns, batch, claim).await? {
                // Gathered first: a stream of closures over references is not `Send`.
                let shares = batch.iter().map(|owed| self.add_share(ns, owed, claim));
                let shares: Vec<_> = shares.collect();
                stream::iter(shares)
                    .buffer_unordered(CONCURRENCY)
                    .try_collect::<()>()
                    .await?;
            }
        }
        Ok(())
    }

    /// Creates items that nobody owes yet. `false`: at least one exists, and none was created.
    async fn create_pending(
        &self,
        ns: &NamespaceId,
        owed: &[Owed],
        claim: &Claim,
    ) -> Result<bool, StoreError> {
        let act = "record the fan-outs ahead";
        let put = |owed: &Owed| {
            let item = wire::encode_new(ns, owed, &claim.token, claim.lease, claim.full, claim.now);
            Put::builder()
                .table_name(self.table())
                .set_item(Some(item))
                .condition_expression("attribute_not_exists(PK)")
                .build()
                .map(|put| TransactWriteItem::builder().put(put).build())
        };
        self.transact(act, owed.iter().map(put)).await
    }

    /// Sends one transaction. `false`: it was cancelled, by a condition or a conflict.
    async fn transact(
        &self,
        act: &'static str,
        items: impl Iterator<Item = Result<TransactWriteItem, aws_sdk_dynamodb::error::BuildError>>,
    ) -> Result<bool, StoreError> {
        let items: Vec<TransactWriteItem> = items
            .collect::<Result<_, _>>()
            .map_err(|e| StoreError::unbuilt(act, &e))?;
        match self
            .client
            .transact_write_items()
            .set_transact_items(Some(items))
            .send()
            .await
        {
            Ok(_) => Ok(true),
            Err(e) if error::is_transaction_cancelled(&e) => Ok(false),
            Err(e) => Err(self.failed(act, e)),
        }
    }

    /// Adds the claim's share to an item, which it creates or completes as needed.
    async fn add_share(
        &self,
        ns: &NamespaceId,
        owed: &Owed,
        claim: &Claim,
    ) -> Result<(), StoreError> {
        let act = "record a fan-out ahead";
        let key = keys::pending(ns, owed);
        let entry = wire::owner_entry(claim.lease, claim.full);
        for _ in 0..ROUNDS {
            let into_map = self
                .client
                .update_item()
                .table_name(self.table())
                .set_key(Some(key_item(&key)))
                .update_expression("SET #o.#me = :entry")
                .condition_expression("attribute_exists(#o)")
                .expression_attribute_names("#o", OWNERS)
                .expression_attribute_names("#me", &claim.token)
                .expression_attribute_values(":entry", entry.clone());
            if self.held(act, into_map.send().await)? {
                return Ok(());
            }
            if self.create_map(ns, owed, claim, &key).await? {
                return Ok(());
            }
        }
        Err(StoreError::ConditionFailed { act: act.into() })
    }

    async fn create_map(
        &self,
        ns: &NamespaceId,
        owed: &Owed,
        claim: &Claim,
        key: &keys::Key,
    ) -> Result<bool, StoreError> {
        let item = wire::encode_new(ns, owed, &claim.token, claim.lease, claim.full, claim.now);
        let mut sets = Vec::new();
        let mut names = HashMap::new();
        let mut values = HashMap::new();
        let fields = item
            .into_iter()
            .filter(|(name, _)| name != "PK" && name != "SK");
        for (index, (name, value)) in fields.enumerate() {
            sets.push(format!("#f{index} = :f{index}"));
            names.insert(format!("#f{index}"), name);
            values.insert(format!(":f{index}"), value);
        }
        names.insert("#o".to_owned(), OWNERS.to_owned());
        let request = self
            .client
            .update_item()
            .table_name(self.table())
            .set_key(Some(key_item(key)))
            .update_expression(format!("SET {}", sets.join(", ")))
            .condition_expression("attribute_not_exists(#o)")
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values));
        self.held("record a fan-out ahead", request.send().await)
    }

    /// Whether a conditional update landed; `false` when its condition did not hold.
    fn held<T>(
        &self,
        act: &'static str,
        answer: Result<T, SdkError<UpdateItemError>>,
    ) -> Result<bool, StoreError> {
        match answer {
            Ok(_) => Ok(true),
            Err(e) if error::is_conditional_check_failed(&e) => Ok(false),
            Err(e) => Err(self.failed(act, e)),
        }
    }

    /// Takes over the shares of applies that are certainly gone, in one conditional update.
    /// `false`: someone else took them, or finished them.
    ///
    /// # Errors
    /// [`StoreError`] when the item cannot be written.
    pub async fn claim(
        &self,
        ns: &NamespaceId,
        pending: &Pending,
        claim: &Claim,
    ) -> Result<bool, StoreError> {
        let update = wire::claim_update(pending, &claim.token, claim.lease, claim.full, claim.now);
        let names = update.names.into_iter().collect();
        let values = update.values.into_iter().collect();
        let answer = self
            .client
            .update_item()
            .table_name(self.table())
            .set_key(Some(key_item(&keys::pending(ns, &pending.owed))))
            .update_expression(update.expression)
            .condition_expression(update.condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        let act = "take a pending fan-out over";
        match answer {
            Ok(_) => Ok(true),
            Err(e) if error::is_conditional_check_failed(&e) => {
                // A claim whose answer was lost fails when it is sent again: the item already
                // names this apply.
                let current = match e.as_service_error() {
                    Some(UpdateItemError::ConditionalCheckFailedException(failed)) => {
                        failed.item.clone().unwrap_or_default()
                    }
                    _ => HashMap::new(),
                };
                Ok(wire::decode_owners(&current)?.contains_key(&claim.token))
            }
            Err(e) => Err(self.failed(act, e)),
        }
    }

    /// Gives up the claim's shares of fan-outs that have landed; an item goes when no share is left.
    ///
    /// # Errors
    /// [`StoreError`] when a share could not be given up. The fan-out landed all the same, and
    /// the share left behind costs a later apply a repetition.
    pub async fn release(
        &self,
        ns: &NamespaceId,
        owed: &[Owed],
        token: &str,
    ) -> Result<(), StoreError> {
        for batch in owed.chunks(BATCH) {
            if !self.delete_sole(ns, batch, token).await? {
                // Gathered first: a stream of closures over references is not `Send`.
                let shares = batch.iter().map(|owed| self.release_one(ns, owed, token));
                let shares: Vec<_> = shares.collect();
                stream::iter(shares)
                    .buffer_unordered(CONCURRENCY)
                    .try_collect::<()>()
                    .await?;
            }
        }
        Ok(())
    }

    /// Deletes items that the claim owns alone. `false`: at least one is shared, none was deleted.
    async fn delete_sole(
        &self,
        ns: &NamespaceId,
        owed: &[Owed],
        token: &str,
    ) -> Result<bool, StoreError> {
        let delete = |owed: &Owed| {
            Delete::builder()
                .table_name(self.table())
                .set_key(Some(key_item(&keys::pending(ns, owed))))
                .condition_expression(
                    "attribute_exists(#o.#me) AND size(#o) = :one AND attribute_not_exists(#single)",
                )
                .expression_attribute_names("#o", OWNERS)
                .expression_attribute_names("#me", token)
                .expression_attribute_names("#single", wire::SINGLE_TOKEN)
                .expression_attribute_values(":one", attr::number(1))
                .build()
                .map(|delete| TransactWriteItem::builder().delete(delete).build())
        };
        self.transact("release the fan-outs", owed.iter().map(delete))
            .await
    }

    async fn release_one(
        &self,
        ns: &NamespaceId,
        owed: &Owed,
        token: &str,
    ) -> Result<(), StoreError> {
        let act = "release a fan-out";
        let key = keys::pending(ns, owed);
        let request = self
            .client
            .update_item()
            .table_name(self.table())
            .set_key(Some(key_item(&key)))
            .update_expression("REMOVE #o.#me")
            .condition_expression("attribute_exists(#o.#me)")
            .expression_attribute_names("#o", OWNERS)
            .expression_attribute_names("#me", token)
            .return_values(ReturnValue::AllNew);
        match request.send().await {
            Ok(answer) => {
                let left = answer.attributes.unwrap_or_default();
                if !wire::decode_owners(&left)?.is_empty() {
                    return Ok(());
                }
            }
            Err(e) if error::is_conditional_check_failed(&e) => {}
            Err(e) => return Err(self.failed(act, e)),
        }
        self.delete_ownerless(&key).await
    }

    async fn delete_ownerless(&self, key: &keys::Key) -> Result<(), StoreError> {
        let request = self
            .client
            .delete_item()
            .table_name(self.table())
            .set_key(Some(key_item(key)))
            .condition_expression(
                "(attribute_not_exists(#o) OR size(#o) = :none) AND attribute_not_exists(#single)",
            )
            .expression_attribute_names("#o", OWNERS)
            .expression_attribute_names("#single", wire::SINGLE_TOKEN)
            .expression_attribute_values(":none", attr::number(0));
        match request.send().await {
            Ok(_) => Ok(()),
            Err(e) if error::is_conditional_check_failed(&e) => Ok(()),
            Err(e) => Err(self.failed("release a fan-out", e)),
        }
    }

    /// Ends the claim's leases on fan-outs it could not finish, so that the next apply takes them
    /// over at once. An ended share is no interrupted full apply.
    ///
    /// # Errors
    /// [`StoreError`] when a lease could not be ended; the next apply then waits it out.
    pub async fn expire(
        &self,
        ns: &NamespaceId,
        owed: &[Owed],
        token: &str,
        now: EpochMs,
    ) -> Result<(), StoreError> {
        let ended = wire::owner_entry(EpochMs(now.0.saturating_sub(1)), false);
        let expire = |owed: &Owed| {
            let request = self
                .client
                .update_item()
                .table_name(self.table())
                .set_key(Some(key_item(&keys::pending(ns, owed))))
                .update_expression("SET #o.#me = :ended")
                .condition_expression("attribute_exists(#o.#me)")
                .expression_attribute_names("#o", OWNERS)
                .expression_attribute_names("#me", token)
                .expression_attribute_values(":ended", ended.clone());
            async move {
                self.held("end the lease of a fan-out", request.send().await)
                    .map(|_| ())
            }
        };
        stream::iter(owed.iter().map(expire))
            .buffer_unordered(CONCURRENCY)
            .try_collect()
            .await
    }
}
