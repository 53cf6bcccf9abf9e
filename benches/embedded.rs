//! What one request to the embedded database costs, through the SDK in this process: the floor under every
//! other figure measured on it.

use crate::meter::{Stopwatch, median};
use crate::{Failure, Kept, ROUNDS, world};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, Put, TransactWriteItem};
use std::collections::HashMap;
use zae_limits::model::NamespaceId;
use zae_limits::store::{STAMPS_PER_BATCH, Stamped, Store};
use zae_limits::table::keys::{self, BUCKET_SK};
use zae_limits::table::stamp::Stamp;

/// Buckets in the table.
const BUCKETS: usize = 2_000;
/// Requests of each kind that are measured at a time.
const REQUESTS: usize = 200;
/// Keys of a `BatchGetItem`.
const KEYS: usize = 100;

/// A table of rates, requests a second except where it says otherwise.
pub async fn measure() -> Result<(), Failure> {
    let memory = rates(Kept::InMemory).await?;
    let file = rates(Kept::InAFile).await?;
    println!("\n| request | memory | file |\n| --- | --: | --: |");
    for ((name, memory), (_, file)) in memory.iter().zip(file) {
        println!("| {name} | {memory:.0} | {file:.0} |");
    }
    Ok(())
}

async fn rates(kept: Kept) -> Result<Vec<(&'static str, f64)>, Failure> {
    let (embedded, _folder) = kept.open()?;
    let client = embedded.client();
    let store = world::store(client.clone());
    let ns = world::create(&store).await?;
    world::seed_buckets(&client, &ns, BUCKETS).await?;
    let pks = found(&store, &ns).await?;
    let one = |index: usize| &pks[index % pks.len()..][..1];
    let many = |index: usize, count: usize| &pks[index * count % (pks.len() - count)..][..count];
    let item_us = 1e6 / (rate(5, |_| found(&store, &ns)).await? * BUCKETS as f64);
    Ok(vec![
        (
            "GetItem",
            rate(REQUESTS, |index| get(&client, one(index))).await?,
        ),
        (
            "UpdateItem, a stamp",
            rate(REQUESTS, |index| stamp(&store, one(index))).await?,
        ),
        (
            "BatchExecuteStatement of 25 stamps",
            rate(REQUESTS, |index| {
                stamp(&store, many(index, STAMPS_PER_BATCH))
            })
            .await?,
        ),
        (
            "TransactWriteItems of 25",
            rate(REQUESTS, |index| transact(&client, index)).await?,
        ),
        (
            "BatchGetItem of 100",
            rate(REQUESTS, |index| get_many(&client, many(index, KEYS))).await?,
        ),
        ("Query of an index, µs an item", item_us),
    ])
}

/// How many a second, of requests made one after the other.
async fn rate<T>(
    requests: usize,
    request: impl AsyncFn(usize) -> Result<T, Failure>,
) -> Result<f64, Failure> {
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let stopwatch = Stopwatch::start()?;
        for index in 0..requests {
            request(index).await?;
        }
        rates.push(requests as f64 / stopwatch.stop()?.wall.as_secs_f64());
    }
    Ok(median(rates))
}

/// The keys of every bucket, page by page.
async fn found(store: &Store, ns: &NamespaceId) -> Result<Vec<String>, Failure> {
    let discovery = keys::buckets_of_resource(ns, &world::RESOURCE.parse()?);
    let mut pks = Vec::new();
    let mut start = None;
    loop {
        let page = store.bucket_page(&discovery, start).await?;
        pks.extend(page.buckets.into_iter().map(|bucket| bucket.pk));
        start = page.next;
        if start.is_none() {
            return Ok(pks);
        }
    }
}

async fn get(client: &Client, pks: &[String]) -> Result<(), Failure> {
    let key = pks.first().map(|pk| key(pk));
    let request = client.get_item().table_name(world::TABLE).set_key(key);
    match request.consistent_read(true).send().await?.item {
        Some(_) => Ok(()),
        None => Err("a bucket is gone".into()),
    }
}

async fn get_many(client: &Client, pks: &[String]) -> Result<(), Failure> {
    let wanted = pks.iter().map(|pk| key(pk)).collect();
    let wanted = KeysAndAttributes::builder()
        .set_keys(Some(wanted))
        .build()?;
    let request = client.batch_get_item().request_items(world::TABLE, wanted);
    let found = request.send().await?.responses.unwrap_or_default();
    match found.values().map(Vec::len).sum::<usize>() == pks.len() {
        true => Ok(()),
        false => Err("some buckets are gone".into()),
    }
}

/// Stamps buckets; a single one goes out as an `UpdateItem`.
async fn stamp(store: &Store, pks: &[String]) -> Result<(), Failure> {
    let stamps: Vec<_> = pks.iter().map(|pk| (pk.clone(), Stamp::Disabled)).collect();
    let outcomes = store.stamp_buckets(&stamps).await;
    match outcomes
        .iter()
        .all(|outcome| matches!(outcome, Stamped::Landed))
    {
        true => Ok(()),
        false => Err(format!("not stamped: {outcomes:?}").into()),
    }
}

async fn transact(client: &Client, index: usize) -> Result<(), Failure> {
    let put = |row: usize| {
        let put = Put::builder()
            .table_name(world::TABLE)
            .set_item(Some(key(&format!("row/{index}/{row}"))));
        Ok(TransactWriteItem::builder().put(put.build()?).build())
    };
    let puts = (0..25).map(put).collect::<Result<Vec<_>, Failure>>()?;
    client
        .transact_write_items()
        .set_transact_items(Some(puts))
        .send()
        .await?;
    Ok(())
}

fn key(pk: &str) -> HashMap<String, AttributeValue> {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    [
        ("PK".to_owned(), text(pk)),
        ("SK".to_owned(), text(BUCKET_SK)),
    ]
    .into()
}
