//! Writes that every other write is made of: one that may lose to its condition, a transaction that
//! may be cancelled, many at once. What losing means is for the caller to say.

use super::{Store, StoreError, error};
use crate::table::Item;
use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use futures::{TryStreamExt, stream};
use std::error::Error;
use std::fmt;
use std::future::Future;

/// The condition of an item that nobody has written yet.
const IS_NEW: &str = "attribute_not_exists(PK)";

impl Store {
    /// Whether a conditional write landed; `false` when its condition did not hold.
    pub(super) fn landed<T, E, R>(
        &self,
        act: &'static str,
        answer: Result<T, SdkError<E, R>>,
    ) -> Result<bool, StoreError>
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
        R: fmt::Debug + Send + Sync + 'static,
    {
        match answer {
            Ok(_) => Ok(true),
            Err(e) if error::is_conditional_check_failed(&e) => Ok(false),
            Err(e) => Err(self.failed(act, e)),
        }
    }

    /// Puts an item unless there is one. `false`: there is, and it stays.
    pub(super) async fn put_new(&self, act: &'static str, item: Item) -> Result<bool, StoreError> {
        let request = self.client.put_item().table_name(self.table());
        let request = request.set_item(Some(item)).condition_expression(IS_NEW);
        self.landed(act, request.send().await)
    }

    /// The same as part of a transaction.
    pub(super) fn putting_new(&self, item: Item) -> Result<TransactWriteItem, BuildError> {
        let put = Put::builder().table_name(self.table()).set_item(Some(item));
        let put = put.condition_expression(IS_NEW).build()?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    /// Sends one transaction. `false`: it was cancelled, by a condition or a conflict.
    pub(super) async fn transact(
        &self,
        act: &'static str,
        items: impl Iterator<Item = Result<TransactWriteItem, BuildError>>,
    ) -> Result<bool, StoreError> {
        let items: Vec<TransactWriteItem> = items
            .collect::<Result<_, _>>()
            .map_err(|e| StoreError::unbuilt(act, &e))?;
        let request = self.client.transact_write_items();
        match request.set_transact_items(Some(items)).send().await {
            Ok(_) => Ok(true),
            Err(e) if error::is_transaction_cancelled(&e) => Ok(false),
            Err(e) => Err(self.failed(act, e)),
        }
    }
}

/// Makes many writes, so many at once. The first failure ends it.
pub(super) async fn each<F>(writes: Vec<F>, at_once: usize) -> Result<(), StoreError>
where
    F: Future<Output = Result<(), StoreError>>,
{
    stream::iter(writes.into_iter().map(Ok))
        .try_for_each_concurrent(at_once, |write| write)
        .await
}
