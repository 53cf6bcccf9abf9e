//! Pending fan-outs: written ahead, claimed, released, and their leases ended.
//!
//! Several applies may own one item. Each write touches only the caller's own entry, is
//! conditional, and may be repeated. No fan-out is run here, and no lease is judged.

use super::read::key_item;
use super::write::each;
use super::{Store, StoreError, error};
use crate::model::{EpochMs, NamespaceId, Owed, Pending};
use crate::table::pending::{self as wire, OWNERS};
use crate::table::{Item, attr, keys};
use aws_sdk_dynamodb::types::{
    Delete, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
};
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
                let shares = batch.iter().map(|owed| self.add_share(ns, owed, claim));
                each(shares.collect(), CONCURRENCY).await?;
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
        let put = |owed: &Owed| self.putting_new(new_item(ns, owed, claim));
        self.transact("record the fan-outs ahead", owed.iter().map(put))
            .await
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
            if self.landed(act, into_map.send().await)? {
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
        let item = new_item(ns, owed, claim);
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
        self.landed("record a fan-out ahead", request.send().await)
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
        if pending.damaged {
            return self.replace_damaged(ns, &pending.owed, claim).await;
        }
        let gone: Vec<_> = pending.gone(claim.now).collect();
        let mut parts = gone.chunks(wire::TAKEN_TOGETHER).map(|part| Pending {
            owners: part
                .iter()
                .map(|(token, owner)| ((*token).to_owned(), **owner))
                .collect(),
            ..pending.clone()
        });
        let first = parts.next().unwrap_or_else(|| pending.clone());
        if !self.claim_part(ns, &first, claim).await? {
            return Ok(false);
        }
        for part in parts {
            // The share is held: what stays of the others is for the next one to take over.
            if let Err(error) = self.claim_part(ns, &part, claim).await {
                tracing::warn!(%error, owed = %pending.owed, "shares of applies that are gone stay");
            }
        }
        Ok(true)
    }

    async fn claim_part(
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
                let owners = error::refused_item(&e)
                    .map(wire::decode_owners)
                    .transpose()?;
                Ok(owners.is_some_and(|owners| owners.contains_key(&claim.token)))
            }
            Err(e) => Err(self.failed(act, e)),
        }
    }

    /// Takes over an item of which only the key reads, by writing it anew. Whose it was is lost, so it
    /// may be that another apply runs the same fan-out: both bring what the table holds.
    async fn replace_damaged(
        &self,
        ns: &NamespaceId,
        owed: &Owed,
        claim: &Claim,
    ) -> Result<bool, StoreError> {
        let request = self.client.put_item().table_name(self.table());
        let request = request
            .set_item(Some(new_item(ns, owed, claim)))
            .condition_expression("attribute_exists(PK)");
        self.landed("take a pending fan-out over", request.send().await)
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
                let shares = batch.iter().map(|owed| self.release_one(ns, owed, token));
                each(shares.collect(), CONCURRENCY).await?;
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
        // Somebody owes it again, or it is gone already: either will do.
        self.landed("release a fan-out", request.send().await)?;
        Ok(())
    }

    /// Ends the claim's leases on fan-outs it could not finish, so that the next apply takes them
    /// over at once. `full`: an interrupted full apply goes on with them.
    ///
    /// # Errors
    /// [`StoreError`] when a lease could not be ended; the next apply then waits it out.
    pub async fn expire(
        &self,
        ns: &NamespaceId,
        owed: &[Owed],
        token: &str,
        now: EpochMs,
        full: bool,
    ) -> Result<(), StoreError> {
        let ended = wire::owner_entry(EpochMs(now.0.saturating_sub(1)), full);
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
                // A share that is gone has no lease left to end.
                self.landed("end the lease of a fan-out", request.send().await)?;
                Ok(())
            }
        };
        each(owed.iter().map(expire).collect(), CONCURRENCY).await
    }
}

/// The item of a fan-out that only the claim's apply owes.
fn new_item(ns: &NamespaceId, owed: &Owed, claim: &Claim) -> Item {
    wire::encode_new(ns, owed, &claim.token, claim.lease, claim.full, claim.now)
}
