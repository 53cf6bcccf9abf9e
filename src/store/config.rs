//! Writing levels: each with its registry entry and its audit event, in one transaction, and only
//! while the stored level is still the one that was planned against. Which levels to write, and what
//! to do about one that moved, is decided by the apply.

use super::read::key_item;
use super::state::stored_level;
use super::{Store, StoreError, error, in_place};
use crate::model::{EpochMs, Level, LevelConfig, NamespaceId, Scope, StoredLevel};
use crate::table::audit::AuditEvent;
use crate::table::registry::{self, RegistryChange, RegistryUpdate};
use crate::table::{config, keys};
use aws_sdk_dynamodb::error::{BuildError, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    CancellationReason, Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// Levels that one transaction writes: each brings its audit event, and the registries two more,
/// within the service's hundred items.
pub const LEVELS_PER_TRANSACTION: usize = 48;
/// How often a transaction is sent again after another one was in its way.
const CONFLICTS: u32 = 8;

/// One level to write.
#[derive(Debug, Clone, Copy)]
pub struct LevelWrite<'a> {
    /// Where.
    pub level: &'a Level,
    /// What was stored when the write was decided; `None`: nothing.
    pub before: Option<&'a StoredLevel>,
    /// What to store; `None` deletes the level.
    pub after: Option<&'a LevelConfig>,
    /// Write whatever is stored by now: for an item whose bytes differ from what they decode to.
    pub whatever: bool,
}

/// Who writes, and when: for the audit.
#[derive(Debug, Clone, Copy)]
pub struct Author<'a> {
    /// The caller's ARN or the stack's id; `None` when nobody could be named.
    pub principal: Option<&'a str>,
    /// When the apply began.
    pub at: EpochMs,
}

/// What became of one write.
#[derive(Debug)]
pub enum LevelOutcome {
    /// It landed.
    Written,
    /// Someone wrote in between; nothing was written. What is stored now.
    Moved(Option<Box<StoredLevel>>),
    /// It landed, and whether beside another's was to be read, which failed.
    Unseen(StoreError),
    /// It failed for good.
    Failed(StoreError),
}

impl Store {
    /// Writes a group of levels of one kind. A level that cannot be written does not keep the
    /// others from being written.
    pub async fn write_levels(
        &self,
        ns: &NamespaceId,
        writes: &[LevelWrite<'_>],
        author: Author<'_>,
    ) -> Vec<LevelOutcome> {
        let mut outcomes: Vec<Option<LevelOutcome>> = writes.iter().map(|_| None).collect();
        let all: Vec<usize> = (0..writes.len()).collect();
        let mut groups: Vec<Vec<usize>> = all
            .chunks(LEVELS_PER_TRANSACTION)
            .rev()
            .map(<[usize]>::to_vec)
            .collect();
        // Levels written without the registry, which is unusable.
        let mut unlisted: BTreeSet<usize> = BTreeSet::new();
        while let Some(group) = groups.pop() {
            let members: Vec<LevelWrite<'_>> = group.iter().map(|index| writes[*index]).collect();
            let registries = match group.iter().any(|index| unlisted.contains(index)) {
                true => RegistryChange::default(),
                false => registry_change(&members),
            };
            match self
                .transact_levels(ns, &members, &registries, author)
                .await
            {
                Ok(None) => {
                    for index in group {
                        outcomes[index] = Some(LevelOutcome::Written);
                    }
                }
                Ok(Some(moved)) => {
                    let left = settle(&group, moved, &mut outcomes);
                    if !left.is_empty() {
                        groups.push(left);
                    }
                }
                Err(error @ StoreError::RegistryUnusable { .. })
                    if members.iter().all(is_listed) =>
                {
                    tracing::warn!(%error, "levels that are listed already are written without it");
                    unlisted.extend(&group);
                    groups.push(group);
                }
                Err(error) if group.len() == 1 || !is_about_content(&error) => {
                    fail(&group, error, &mut outcomes);
                }
                // One of them is to blame: find it, so that the others are written.
                Err(_) => groups.extend(group.into_iter().rev().map(|index| vec![index])),
            }
        }
        let mut outcomes: Vec<LevelOutcome> = outcomes
            .into_iter()
            .map(|outcome| outcome.unwrap_or(LevelOutcome::Written))
            .collect();
        self.look_again(ns, writes, &mut outcomes).await;
        outcomes
    }

    /// Removes counts of entity configs that have come down to nothing, as clients do, so that
    /// their listings end where the configs do.
    ///
    /// # Errors
    /// [`StoreError`] when the registry can be neither read nor written.
    pub async fn tidy_registry(&self, ns: &NamespaceId) -> Result<(), StoreError> {
        let act = "tidy the registry of entity configs";
        let Some(item) = self.get(act, &keys::entity_config_registry(ns)).await? else {
            return Ok(());
        };
        let Some(tidy) = registry::tidy_entity_configs(ns, &item)? else {
            return Ok(());
        };
        let request = self
            .client
            .update_item()
            .table_name(self.table())
            .set_key(Some(key_item(&tidy.key)))
            .update_expression(tidy.expression)
            .condition_expression(tidy.condition)
            .set_expression_attribute_names(Some(tidy.names.into_iter().collect()))
            .set_expression_attribute_values(Some(tidy.values.into_iter().collect()));
        // Where it does not hold a config came meanwhile, and its count stays.
        self.landed(act, request.send().await)?;
        Ok(())
    }

    /// One transaction. `None`: it landed. Otherwise, for each member, what moved.
    async fn transact_levels(
        &self,
        ns: &NamespaceId,
        members: &[LevelWrite<'_>],
        registries: &RegistryChange,
        author: Author<'_>,
    ) -> Result<Option<Vec<Option<LevelOutcome>>>, StoreError> {
        let act = "write the levels";
        let registries = registries.updates(ns);
        let items = self
            .transaction(ns, members, &registries, author)
            .map_err(|e| StoreError::unbuilt(act, &e))?;
        let mut conflicts = 0;
        loop {
            let request = self.client.transact_write_items();
            let Err(error) = request.set_transact_items(Some(items.clone())).send().await else {
                return Ok(None);
            };
            let reasons = cancellation_reasons(&error);
            let moved: Vec<Option<LevelOutcome>> = members
                .iter()
                .enumerate()
                .map(|(index, write)| moved(ns, write.level, reasons.get(2 * index)?))
                .collect();
            if moved.iter().any(Option::is_some) {
                return Ok(Some(moved));
            }
            let registered = reasons.iter().skip(2 * members.len()).zip(&registries);
            if let Some(error) = registered.filter_map(unusable).next() {
                return Err(error);
            }
            if conflicts == CONFLICTS || !reasons.iter().any(is_contention) {
                return Err(self.failed(act, error));
            }
            let wait = 10 << conflicts;
            tokio::time::sleep(Duration::from_millis(wait + rand::random_range(0..wait))).await;
            conflicts += 1;
        }
    }

    /// Each member's write at an even place and its audit event after it; the registries last.
    fn transaction(
        &self,
        ns: &NamespaceId,
        members: &[LevelWrite<'_>],
        registries: &[RegistryUpdate],
        author: Author<'_>,
    ) -> Result<Vec<TransactWriteItem>, BuildError> {
        let mut items = Vec::with_capacity(2 * members.len() + 2);
        for write in members {
            items.push(self.level_item(ns, write)?);
            let audit = AuditEvent {
                at: author.at,
                random: rand::random(),
                principal: author.principal,
                before: write.before,
                after: write.after,
            };
            let put = Put::builder().table_name(self.table());
            let put = put.set_item(Some(audit.encode(ns, write.level))).build()?;
            items.push(TransactWriteItem::builder().put(put).build());
        }
        for update in registries {
            items.push(self.registry_item(update)?);
        }
        Ok(items)
    }

    fn level_item(
        &self,
        ns: &NamespaceId,
        write: &LevelWrite<'_>,
    ) -> Result<TransactWriteItem, BuildError> {
        let mut condition = config::unmoved(write.before, write.level);
        if write.whatever {
            condition.expression = "attribute_exists(PK)".to_owned();
            condition.names.clear();
            condition.values.clear();
        }
        let names = (!condition.names.is_empty())
            .then(|| condition.names.into_iter().collect::<HashMap<_, _>>());
        let values = (!condition.values.is_empty())
            .then(|| condition.values.into_iter().collect::<HashMap<_, _>>());
        let on_failure = ReturnValuesOnConditionCheckFailure::AllOld;
        let item = TransactWriteItem::builder();
        if let Some(change) = in_place::change(ns, write) {
            let names = names.into_iter().flatten().chain(change.names());
            let values = values.into_iter().flatten().chain(change.values());
            let update = Update::builder()
                .table_name(self.table())
                .set_key(Some(key_item(&keys::config(ns, write.level))))
                .update_expression(change.expression())
                .condition_expression(condition.expression)
                .set_expression_attribute_names(Some(names.collect()))
                .set_expression_attribute_values(Some(values.collect()))
                .return_values_on_condition_check_failure(on_failure)
                .build()?;
            return Ok(item.update(update).build());
        }
        Ok(match write.after {
            Some(after) => item
                .put(
                    Put::builder()
                        .table_name(self.table())
                        .set_item(Some(config::encode(ns, write.level, after)))
                        .condition_expression(condition.expression)
                        .set_expression_attribute_names(names)
                        .set_expression_attribute_values(values)
                        .return_values_on_condition_check_failure(on_failure)
                        .build()?,
                )
                .build(),
            None => item
                .delete(
                    Delete::builder()
                        .table_name(self.table())
                        .set_key(Some(key_item(&keys::config(ns, write.level))))
                        .condition_expression(condition.expression)
                        .set_expression_attribute_names(names)
                        .set_expression_attribute_values(values)
                        .return_values_on_condition_check_failure(on_failure)
                        .build()?,
                )
                .build(),
        })
    }

    fn registry_item(&self, update: &RegistryUpdate) -> Result<TransactWriteItem, BuildError> {
        let names = (!update.names.is_empty()).then(|| update.names.clone().into_iter().collect());
        let values = update.values.clone().into_iter().collect();
        let update = Update::builder()
            .table_name(self.table())
            .set_key(Some(key_item(&update.key)))
            .update_expression(&update.expression)
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(Some(values))
            .build()?;
        Ok(TransactWriteItem::builder().update(update).build())
    }
}

fn registry_change(members: &[LevelWrite<'_>]) -> RegistryChange {
    let mut registries = RegistryChange::default();
    for write in members {
        register(write, &mut registries);
    }
    registries
}

/// The error of a registry item that cannot be changed, if that is what a reason says.
fn unusable((reason, update): (&CancellationReason, &RegistryUpdate)) -> Option<StoreError> {
    error::is_refusal(reason).then(|| StoreError::RegistryUnusable {
        act: "write the levels".into(),
        item: update.key.clone(),
        problem: update.expects,
        message: error::refusal_words(reason),
    })
}

/// Whether a level is in its registry whatever becomes of the write: it is stored, and stays. What an
/// update adds is there already, so a kill switch can do without it.
fn is_listed(write: &LevelWrite<'_>) -> bool {
    matches!(write.level, Level::Resource(_)) && write.before.is_some() && write.after.is_some()
}

fn register(write: &LevelWrite<'_>, registries: &mut RegistryChange) {
    let registered = write.before.is_some_and(|before| before.registered);
    let mut count = |scope: &Scope, by| {
        *registries.entity_configs.entry(scope.clone()).or_default() += by;
    };
    match (write.level, write.after) {
        (Level::Entity(_, scope), Some(_)) if !registered => count(scope, 1),
        (Level::Entity(_, scope), None) if registered => count(scope, -1),
        (Level::Resource(resource), Some(_)) => {
            registries.resources_added.insert(resource.clone());
        }
        (Level::Resource(resource), None) => {
            registries.resources_removed.insert(resource.clone());
        }
        _ => {}
    }
}

/// Notes what moved and returns the members that are still to be written.
fn settle(
    group: &[usize],
    moved: Vec<Option<LevelOutcome>>,
    outcomes: &mut [Option<LevelOutcome>],
) -> Vec<usize> {
    let mut left = Vec::new();
    for (index, moved) in group.iter().zip(moved) {
        match moved {
            Some(outcome) => outcomes[*index] = Some(outcome),
            None => left.push(*index),
        }
    }
    left
}

fn fail(group: &[usize], error: StoreError, outcomes: &mut [Option<LevelOutcome>]) {
    for (index, error) in group.iter().zip(error.repeated(group.len())) {
        outcomes[*index] = Some(LevelOutcome::Failed(error));
    }
}

fn moved(ns: &NamespaceId, level: &Level, reason: &CancellationReason) -> Option<LevelOutcome> {
    if reason.code.as_deref() != Some("ConditionalCheckFailed") {
        return None;
    }
    let item = reason.item.as_ref().filter(|item| !item.is_empty());
    let stored = item.map(|item| Box::new(stored_level(ns, level, item)));
    Some(LevelOutcome::Moved(stored))
}

fn cancellation_reasons(error: &SdkError<TransactWriteItemsError>) -> &[CancellationReason] {
    match error.as_service_error() {
        Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
            cancelled.cancellation_reasons()
        }
        _ => &[],
    }
}

/// Whether another request was in the way, so that sending again may succeed.
fn is_contention(reason: &CancellationReason) -> bool {
    matches!(
        reason.code.as_deref(),
        Some(
            "TransactionConflict"
                | "ProvisionedThroughputExceeded"
                | "ThrottlingError"
                | "RequestLimitExceeded"
        )
    )
}

/// Whether what was written is to blame, rather than the way to the table.
fn is_about_content(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Service { .. }
            | StoreError::TransactionCancelled { .. }
            | StoreError::TransactionRefused { .. }
            | StoreError::RegistryUnusable { .. }
    )
}
