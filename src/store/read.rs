//! Reads that every other read is made of: one item, many items, pages of a query.

use super::spread::spread;
use super::{Store, StoreError};
use crate::table::{Item, Key, attr};
use aws_sdk_dynamodb::types::KeysAndAttributes;
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::HashMap;
use std::time::Duration;

/// Keys that one `BatchGetItem` takes.
pub(super) const BATCH: usize = 100;
/// Batches in flight at once.
pub(super) const CONCURRENCY: usize = 8;
/// How often a batch may come back with nothing read before the read gives up.
const FRUITLESS: u32 = 8;

/// The attributes to read, with an alias for each name, since some are reserved words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Projection(pub &'static [&'static str]);

impl Projection {
    pub(super) fn expression(self) -> String {
        let aliases: Vec<String> = (0..self.0.len())
            .map(|index| format!("#p{index}"))
            .collect();
        aliases.join(", ")
    }

    pub(super) fn names(self) -> HashMap<String, String> {
        let alias = |(index, name): (usize, &&str)| (format!("#p{index}"), (*name).to_owned());
        self.0.iter().enumerate().map(alias).collect()
    }
}

pub(super) fn key_item(key: &Key) -> Item {
    Item::from([
        ("PK".to_owned(), attr::text(&key.pk)),
        ("SK".to_owned(), attr::text(&key.sk)),
    ])
}

/// The key of an item as it was read.
pub(super) fn key_of(item: &Item) -> Key {
    let reader = attr::Reader::new(item);
    Key {
        pk: reader.pk().to_owned(),
        sk: reader.sk().to_owned(),
    }
}

impl Store {
    /// One item, strongly consistent.
    pub(super) async fn get(
        &self,
        act: &'static str,
        key: &Key,
    ) -> Result<Option<Item>, StoreError> {
        let request = self
            .client
            .get_item()
            .table_name(self.table())
            .set_key(Some(key_item(key)));
        let answer = request.consistent_read(true).send().await;
        Ok(answer.map_err(|e| self.failed(act, e))?.item)
    }

    /// Many items, strongly consistent, in no order. Keys that are not stored are left out.
    pub(super) async fn get_many(
        &self,
        act: &'static str,
        keys: &[Key],
        projection: Option<Projection>,
    ) -> Result<Vec<Item>, StoreError> {
        // By index: a stream of closures over borrowed keys is not `Send`.
        stream::iter(0..keys.len().div_ceil(BATCH))
            .map(|index| {
                let batch = keys.iter().skip(index * BATCH).take(BATCH);
                self.get_batch(act, batch.map(key_item).collect(), projection)
            })
            .buffer_unordered(CONCURRENCY)
            .try_concat()
            .await
    }

    async fn get_batch(
        &self,
        act: &'static str,
        mut left: Vec<Item>,
        projection: Option<Projection>,
    ) -> Result<Vec<Item>, StoreError> {
        let mut found = Vec::new();
        let mut fruitless = 0;
        while !left.is_empty() {
            let asked = left.len();
            let request = self.client.batch_get_item();
            let wanted = wanted(left, projection).map_err(|e| StoreError::unbuilt(act, &e))?;
            let request = request.request_items(self.table(), wanted);
            let answer = spread(request.send()).await;
            let mut answer = answer.map_err(|e| self.failed(act, e))?;
            let items = answer
                .responses
                .as_mut()
                .and_then(|tables| tables.remove(self.table()));
            found.extend(items.into_iter().flatten());
            let unread = answer
                .unprocessed_keys
                .and_then(|mut t| t.remove(self.table()));
            left = unread.map(|unread| unread.keys).unwrap_or_default();
            fruitless = if left.len() < asked { 0 } else { fruitless + 1 };
            if fruitless > FRUITLESS {
                return Err(StoreError::Throttled {
                    act: act.into(),
                    code: "UnprocessedKeys".to_owned(),
                });
            }
            if !left.is_empty() {
                tokio::time::sleep(Duration::from_millis(20 << fruitless)).await;
            }
        }
        Ok(found)
    }

    /// Every item of a partition whose sort key starts with a prefix, strongly consistent.
    pub(super) async fn query_all(
        &self,
        act: &'static str,
        pk: &str,
        prefix: &str,
    ) -> Result<Vec<Item>, StoreError> {
        self.query(act, pk, prefix, None).await
    }

    /// The keys of those items.
    pub(super) async fn keys_of(
        &self,
        act: &'static str,
        pk: &str,
        prefix: &str,
    ) -> Result<Vec<Key>, StoreError> {
        let items = self
            .query(act, pk, prefix, Some(Projection(&["PK", "SK"])))
            .await?;
        Ok(items.iter().map(key_of).collect())
    }

    async fn query(
        &self,
        act: &'static str,
        pk: &str,
        prefix: &str,
        projection: Option<Projection>,
    ) -> Result<Vec<Item>, StoreError> {
        let mut items = Vec::new();
        let mut start = None;
        loop {
            let request = self
                .client
                .query()
                .table_name(self.table())
                .consistent_read(true)
                .key_condition_expression("PK = :pk AND begins_with(SK, :prefix)")
                .expression_attribute_values(":pk", attr::text(pk))
                .expression_attribute_values(":prefix", attr::text(prefix))
                .set_projection_expression(projection.map(Projection::expression))
                .set_expression_attribute_names(projection.map(Projection::names))
                .set_exclusive_start_key(start);
            let page = request.send().await.map_err(|e| self.failed(act, e))?;
            items.extend(page.items.unwrap_or_default());
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok(items);
            }
        }
    }
}

fn wanted(
    keys: Vec<Item>,
    projection: Option<Projection>,
) -> Result<KeysAndAttributes, aws_sdk_dynamodb::error::BuildError> {
    KeysAndAttributes::builder()
        .set_keys(Some(keys))
        .consistent_read(true)
        .set_projection_expression(projection.map(Projection::expression))
        .set_expression_attribute_names(projection.map(Projection::names))
        .build()
}
