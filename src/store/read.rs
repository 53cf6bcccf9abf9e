//! Reads that every other read is made of: one item, many items, pages of a query.

use super::{Store, StoreError};
use crate::spread::spread;
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

    /// Many items, strongly consistent, in the order in which they are asked for, each with what it
    /// was asked for. What is not stored is left out.
    ///
    /// `read` makes of an item what is wanted of it, on the task that has it: whoever waits for a
    /// thousand items is not kept by them.
    pub(super) async fn get_many<A, T>(
        &self,
        act: &'static str,
        asked: Vec<A>,
        key: impl Fn(&A) -> Key + Clone + Send + 'static,
        projection: Option<Projection>,
        read: impl Fn(&A, Item) -> T + Clone + Send + 'static,
    ) -> Result<Vec<(A, T)>, StoreError>
    where
        A: Send + 'static,
        T: Send + 'static,
    {
        // What one request reads is read where it is asked for.
        if asked.len() <= BATCH {
            return self.get_batch(act, asked, key, projection, read).await;
        }
        let mut batches = Vec::with_capacity(asked.len().div_ceil(BATCH));
        let mut asked = asked.into_iter();
        while asked.len() > 0 {
            batches.push(asked.by_ref().take(BATCH).collect::<Vec<A>>());
        }
        stream::iter(batches)
            .map(|batch| {
                let (store, key, read) = (self.clone(), key.clone(), read.clone());
                spread(async move { store.get_batch(act, batch, key, projection, read).await })
            })
            .buffered(CONCURRENCY)
            .try_concat()
            .await
    }

    async fn get_batch<A, T>(
        &self,
        act: &'static str,
        asked: Vec<A>,
        key: impl Fn(&A) -> Key,
        projection: Option<Projection>,
        read: impl Fn(&A, Item) -> T,
    ) -> Result<Vec<(A, T)>, StoreError> {
        let keys: Vec<Key> = asked.iter().map(key).collect();
        let by_key = keys.iter().map(|key| (key.pk.as_str(), key.sk.as_str()));
        let places: HashMap<(&str, &str), usize> = by_key.zip(0..).collect();
        let mut found: Vec<Option<T>> = Vec::new();
        found.resize_with(asked.len(), || None);
        let mut left: Vec<Item> = keys.iter().map(key_item).collect();
        let mut fruitless = 0;
        while !left.is_empty() {
            let many = left.len();
            let request = self.client.batch_get_item();
            let wanted = wanted(left, projection).map_err(|e| StoreError::unbuilt(act, &e))?;
            let request = request.request_items(self.table(), wanted);
            let mut answer = request.send().await.map_err(|e| self.failed(act, e))?;
            let items = answer
                .responses
                .as_mut()
                .and_then(|tables| tables.remove(self.table()));
            for item in items.into_iter().flatten() {
                let reader = attr::Reader::new(&item);
                if let Some(place) = places.get(&(reader.pk(), reader.sk())).copied() {
                    found[place] = Some(read(&asked[place], item));
                }
            }
            let unread = answer
                .unprocessed_keys
                .and_then(|mut t| t.remove(self.table()));
            left = unread.map(|unread| unread.keys).unwrap_or_default();
            fruitless = if left.len() < many { 0 } else { fruitless + 1 };
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
        let found = asked.into_iter().zip(found);
        let found = found.filter_map(|(asked, found)| Some((asked, found?)));
        Ok(found.collect())
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
