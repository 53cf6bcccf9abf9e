//! Buckets with everything that clients store on them, one fan-out over them, and what it changed.

use crate::transport::{Layer, over};
use crate::world::{Item, NOW, World, bucket_id, n, s};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use futures::future::BoxFuture;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use zae_limits::fanout::{Fanouts, Outcome, Settings};
use zae_limits::model::{FanoutKind, Level, LevelConfig, NamespaceId, Owed};
use zae_limits::store::Embedded;
use zae_limits::table::config;

/// A bucket in the making.
#[derive(Debug, Clone)]
pub struct Bucket(Item);

impl Bucket {
    /// A shard without limits of its own: its keys, and what every bucket carries.
    pub fn new(ns: &NamespaceId, entity: &str, resource: &str, shard: u32) -> Bucket {
        let id = bucket_id(entity, resource, shard);
        let (gsi2pk, gsi2sk) = id.resource_index(ns);
        let (gsi3pk, gsi3sk) = id.entity_index(ns);
        let bucket = Bucket(Item::new())
            .with("PK", s(&id.pk(ns)))
            .with("SK", s("#STATE"))
            .with("GSI2PK", s(&gsi2pk))
            .with("GSI2SK", s(&gsi2sk))
            .with("GSI3PK", s(&gsi3pk))
            .with("GSI3SK", s(&gsi3sk))
            .with("GSI4PK", s(ns.as_str()))
            .with("GSI4SK", s(&id.suffix()))
            .with("entity_id", s(entity))
            .with("resource", s(resource))
            .with("shard_count", n(1))
            .with("cascade", AttributeValue::Bool(false))
            .with("rf", n(NOW.0 - 5_000));
        bucket.limit("wcu", 1000, 1000, 1)
    }

    /// One more attribute, or another value for it.
    pub fn with(mut self, attribute: &str, value: AttributeValue) -> Bucket {
        self.0.insert(attribute.to_owned(), value);
        self
    }

    /// One more limit in whole tokens and seconds, half spent.
    pub fn limit(self, name: &str, capacity: u64, amount: u64, period: u64) -> Bucket {
        let attribute = |field| format!("b_{name}_{field}");
        self.with(&attribute("tk"), n(capacity * 500))
            .with(&attribute("cp"), n(capacity * 1000))
            .with(&attribute("ra"), n(amount * 1000))
            .with(&attribute("rp"), n(period * 1000))
            .with(&attribute("tc"), n(capacity * 500))
    }

    pub fn item(self) -> Item {
        self.0
    }
}

/// Stores a level as an apply would, without fanning out.
pub async fn store_level(world: &World, level: &Level, config: &LevelConfig) {
    world.put(config::encode(&world.ns, level, config)).await;
}

/// Runs one fan-out from what the table holds.
pub async fn fan_out(world: &World, level: Level, kind: FanoutKind) -> Outcome {
    let settings = Settings {
        settle: Duration::ZERO,
        ..Settings::default()
    };
    let fanouts = Fanouts::new(&world.store, &world.ns, &world.clock, &settings, &());
    let owed = Owed { level, kind };
    let mut outcomes = fanouts.run([&owed], world.clock.now()).await;
    outcomes.pop().expect("one outcome")
}

pub fn level(kind: &str, target: &str) -> Level {
    Level::from_parts(kind, target).expect("a level")
}

/// A bucket as stored; panics when it is not there.
pub async fn stored(world: &World, entity: &str, resource: &str, shard: u32) -> Item {
    let id = bucket_id(entity, resource, shard);
    world.item(&id.suffix(), "#STATE").await
}

/// What differs between two items, a line an attribute, sorted: `vu = 0` for one that is new or
/// has another value, `- ttl` for one that went. The deadline of a stamp is shown as `a deadline`
/// when it counts from [`NOW`] and lies within its bounds.
pub fn changes(before: &Item, after: &Item) -> Vec<String> {
    let set = after
        .iter()
        .filter(|(name, value)| before.get(*name) != Some(value))
        .map(|(name, value)| format!("{name} = {}", shown(name, value)));
    let removed = before
        .keys()
        .filter(|name| !after.contains_key(*name))
        .map(|name| format!("- {name}"));
    let mut lines: Vec<String> = set.chain(removed).collect();
    lines.sort();
    lines
}

fn shown(name: &str, value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) => format!("{text:?}"),
        AttributeValue::N(digits) if name.ends_with("_soft") && is_deadline(digits) => {
            "a deadline".to_owned()
        }
        AttributeValue::N(digits) => digits.clone(),
        AttributeValue::Bool(value) => value.to_string(),
        other => format!("{other:?}"),
    }
}

/// Whether a stamp was made at [`NOW`]: 60 s, shortened by at most a fifth.
pub fn is_deadline(digits: &str) -> bool {
    let bounds = NOW.0 + 48_000..=NOW.0 + 60_000;
    digits.parse().is_ok_and(|at: u64| bounds.contains(&at))
}

/// Lets something else happen right before the first `UpdateItem` that follows. Clones share it.
#[derive(Clone, Default)]
pub struct Meanwhile(Arc<Mutex<Option<BoxFuture<'static, ()>>>>);

impl Meanwhile {
    /// A world whose requests pass here, and the same table for what happens meanwhile.
    pub async fn world() -> (World, World, Meanwhile) {
        let embedded = Embedded::memory().expect("an embedded database");
        let meanwhile = Meanwhile::default();
        let transport = over(embedded.http_client(), meanwhile.clone());
        let world = World::over(Embedded::client_over(transport)).await;
        let beside = World::over(embedded.client()).await;
        (world, beside, meanwhile)
    }

    pub fn happens(&self, act: impl Future<Output = ()> + Send + 'static) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::pin(act));
    }
}

impl Layer for Meanwhile {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let act = target
            .ends_with(".UpdateItem")
            .then(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).take())
            .flatten();
        let next = next.clone();
        HttpConnectorFuture::new(async move {
            if let Some(act) = act {
                act.await;
            }
            next.call(request).await
        })
    }
}

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meanwhile")
    }
}
