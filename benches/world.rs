//! What the figures are measured on: a namespace, manifests of any size, and buckets as a client stores them.

use crate::Failure;
use crate::meter::{Stopwatch, median};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use std::collections::HashMap;
use std::fmt::Write;
use std::time::Duration;
use zae_limits::clock::Clock;
use zae_limits::fanout::{Fanouts, Settings};
use zae_limits::manifest::{Manifest, parse_yaml};
use zae_limits::model::{AccessMode, FanoutKind, Level, ManifestOwner, NamespaceId, Owed};
use zae_limits::plan::{Plan, PlanOptions, Policy};
use zae_limits::reconcile::{self, ApplyOptions};
use zae_limits::report::ApplyReport;
use zae_limits::store::{Place, STAMPS_PER_BATCH, Stamped, Store};
use zae_limits::table::BucketId;
use zae_limits::table::stamp::Stamp;

/// The table.
pub const TABLE: &str = "rate-limits";
/// The resource whose switch is thrown.
pub const RESOURCE: &str = "gpt-4";
/// Items that one `BatchWriteItem` takes.
const BATCH: usize = 25;
/// Entities and resources of a large manifest: each entity has a level for each of so many resources.
const RESOURCES: usize = 100;

/// The levels of the smallest manifest that has one of every kind.
pub const SMALLEST: usize = RESOURCES + 2;

/// The store behind a client.
pub fn store(client: Client) -> Store {
    let place = Place {
        table: TABLE.to_owned(),
        host: "bench".to_owned(),
    };
    Store::new(client, place)
}

/// Creates the table and the namespace of every manifest here.
pub async fn create(store: &Store) -> Result<NamespaceId, Failure> {
    let now = Clock::system().now();
    store.create(now).await?;
    let manifest = switch(false)?;
    Ok(store.register_namespace(manifest.namespace(), now).await?)
}

/// A manifest of one resource with a switch.
pub fn switch(disabled: bool) -> Result<Manifest, Failure> {
    let text = format!(
        "namespace: bench\nresources:\n  {RESOURCE}:\n    disabled: {disabled}\n    limits:\n      rpm: {{ capacity: 1000 }}\n"
    );
    Ok(parse_yaml("switch.limits.yaml", text.as_bytes())?)
}

/// The text of a manifest of so many levels: the system's, a hundred resources', and entities' for the rest.
pub fn yaml(levels: usize) -> String {
    let mut text =
        "namespace: bench\nsystem:\n  limits:\n    rpm: { capacity: 10000 }\nresources:\n"
            .to_owned();
    for resource in 0..RESOURCES {
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "  model-{resource}:\n    limits:\n      rpm: {{ capacity: 1000 }}\n      tpm: {{ capacity: 75000, refill_amount: 50000, refill_period: 60 }}\n"
        );
    }
    text.push_str("entities:\n");
    for level in 0..levels.saturating_sub(1 + RESOURCES) {
        let (entity, resource) = (level / 3, level % 3);
        if resource == 0 {
            let _ = write!(text, "  user-{entity}:\n    resources:\n");
        }
        let _ = write!(
            text,
            "      model-{resource}:\n        limits:\n          rpm: {{ capacity: 500 }}\n"
        );
    }
    text
}

/// That manifest.
pub fn levels(levels: usize) -> Result<Manifest, Failure> {
    Ok(parse_yaml("bench.limits.yaml", yaml(levels).as_bytes())?)
}

/// Stores so many buckets of [`RESOURCE`], each of an entity of its own.
pub async fn seed_buckets(client: &Client, ns: &NamespaceId, count: usize) -> Result<(), Failure> {
    let buckets: Vec<usize> = (0..count).collect();
    for batch in buckets.chunks(BATCH) {
        let puts = batch.iter().map(|index| {
            let put = PutRequest::builder().set_item(Some(bucket(ns, *index)?));
            Ok(WriteRequest::builder().put_request(put.build()?).build())
        });
        let puts = puts.collect::<Result<Vec<_>, Failure>>()?;
        let request = client.batch_write_item().request_items(TABLE, puts);
        let answer = request.send().await?;
        if answer
            .unprocessed_items
            .is_some_and(|left| !left.is_empty())
        {
            return Err("the engine left items of a batch unwritten".into());
        }
    }
    Ok(())
}

fn bucket(ns: &NamespaceId, index: usize) -> Result<HashMap<String, AttributeValue>, Failure> {
    let id = BucketId {
        entity: format!("user-{index}").parse()?,
        resource: RESOURCE.parse()?,
        shard: 0,
    };
    let (gsi2pk, gsi2sk) = id.resource_index(ns);
    let (gsi3pk, gsi3sk) = id.entity_index(ns);
    let texts = [
        ("PK", id.pk(ns)),
        ("SK", "#STATE".to_owned()),
        ("GSI2PK", gsi2pk),
        ("GSI2SK", gsi2sk),
        ("GSI3PK", gsi3pk),
        ("GSI3SK", gsi3sk),
        ("GSI4PK", ns.to_string()),
        ("GSI4SK", id.suffix()),
        ("entity_id", id.entity.to_string()),
        ("resource", id.resource.to_string()),
    ];
    let numbers = [
        ("shard_count", 1),
        ("rf", 1_800_000_000_000_u64),
        ("b_rpm_tk", 1_000_000),
        ("b_rpm_cp", 1_000_000),
        ("b_rpm_ra", 1_000_000),
        ("b_rpm_rp", 60_000),
        ("b_rpm_tc", 7_000),
    ];
    let texts = texts.map(|(name, text)| (name.to_owned(), AttributeValue::S(text)));
    let numbers = numbers.map(|(name, n)| (name.to_owned(), AttributeValue::N(n.to_string())));
    let cascade = ("cascade".to_owned(), AttributeValue::Bool(false));
    Ok(texts.into_iter().chain(numbers).chain([cascade]).collect())
}

/// A plan of a manifest.
pub async fn plan(store: &Store, manifest: &Manifest) -> Result<Plan, Failure> {
    Ok(reconcile::prepare(store, manifest, None, PlanOptions::default()).await?)
}

/// Plans and applies a manifest, from the first read to the last write. The reading pass that
/// waits for lagging indexes is off: its second of sleep would be all that is measured.
pub async fn apply(store: &Store, manifest: &Manifest) -> Result<ApplyReport, Failure> {
    let guarded = plan(store, manifest)
        .await?
        .guard(&Policy::strict(ManifestOwner::Cli))
        .map_err(|refusals| format!("refused: {refusals:?}"))?;
    let options = ApplyOptions {
        fanout: without_settling(),
        ..ApplyOptions::default()
    };
    let report = reconcile::apply(store, &Clock::system(), &guarded, &options, &()).await?;
    match report.errors.first() {
        None => Ok(report),
        Some(error) => Err(error.clone().into()),
    }
}

fn without_settling() -> Settings {
    Settings {
        settle: Duration::ZERO,
        ..Settings::default()
    }
}

/// Fans out the switch of [`RESOURCE`] as the table has it, with no apply around it and at most so many
/// write batches in flight.
pub async fn fan_out(store: &Store, ns: &NamespaceId, concurrency: usize) -> Result<(), Failure> {
    let clock = Clock::system();
    let settings = Settings {
        concurrency,
        ..without_settling()
    };
    let owed = Owed {
        level: resource()?,
        kind: FanoutKind::Access,
    };
    let fanouts = Fanouts::new(store, ns, &clock, &settings, &());
    match &fanouts.run([&owed], clock.now()).await[..] {
        [outcome] if outcome.has_landed() && outcome.tally.stamped > 0 => Ok(()),
        outcomes => Err(format!("the fan-out did not land: {outcomes:?}").into()),
    }
}

/// The median time of one write batch with no other request under way, in seconds.
pub async fn round_trip(store: &Store, ns: &NamespaceId) -> Result<f64, Failure> {
    let mut batch = Vec::new();
    for index in 0..STAMPS_PER_BATCH {
        let id = BucketId {
            entity: format!("user-{index}").parse()?,
            resource: RESOURCE.parse()?,
            shard: 0,
        };
        let stamp = Stamp::new(AccessMode::Disabled, Clock::system().now(), 0.0);
        batch.push((id.pk(ns), stamp));
    }
    let mut seconds = Vec::new();
    for _ in 0..51 {
        let stopwatch = Stopwatch::start()?;
        let outcomes = store.stamp_buckets(&batch).await;
        seconds.push(stopwatch.stop()?.wall.as_secs_f64());
        if let Some(failed) = outcomes
            .iter()
            .find(|outcome| !matches!(outcome, Stamped::Landed))
        {
            return Err(format!("a stamp did not land: {failed:?}").into());
        }
    }
    Ok(median(seconds))
}

fn resource() -> Result<Level, Failure> {
    Ok(Level::Resource(RESOURCE.parse()?))
}
