//! One race: everybody's steps, and what a person then does.

use super::actors::{Did, Ended, apply, apply_as, create_bucket, write_level};
use super::draw::{Applying, Incident, Levels, Scenario};
use super::gate::{Picker, Queue};
use crate::transport::over;
use crate::world::{Dump, Item, World, s};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Region, StalledStreamProtectionConfig};
use aws_sdk_dynamodb::types::{KeysAndAttributes, PutRequest, WriteRequest};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use std::time::Duration;
use tokio::task::JoinHandle;
use zae_limits::clock::Clock;
use zae_limits::manifest::Manifest;
use zae_limits::model::NamespaceId;
use zae_limits::reconcile::{self, ApplyOptions};
use zae_limits::store::{Embedded, Place, Store};

/// Longer than any lease of the race's applies.
pub const LONG_MS: u64 = 20 * 60_000;
/// Steps after which a race is no race any more.
const MOST_STEPS: u64 = 5_000;
const APPLIES: usize = 2;
const EDITORS: usize = 2;
const BIRTH: usize = APPLIES + EDITORS;
const ACTORS: usize = BIRTH + 1;

/// How a race went.
#[derive(Debug)]
pub struct Raced {
    pub applies: Vec<Ended>,
    pub clients: Vec<Did>,
    /// Who asked for what, step by step.
    pub trace: Vec<(usize, String)>,
}

/// One table for many races, each in a namespace of its own.
pub struct Track {
    queue: Queue,
    gated: Vec<Client>,
    pub direct: Client,
}

impl Track {
    pub async fn new() -> Track {
        let embedded = Embedded::memory().expect("an embedded database");
        let queue = Queue::default();
        let gated = |actor| plain(over(embedded.http_client(), queue.gate(actor)));
        let gated = (0..ACTORS).map(gated).collect();
        World::over(embedded.client()).await;
        Track {
            queue,
            gated,
            direct: plain(embedded.http_client()),
        }
    }

    /// Stores items as they are.
    pub async fn put_all(&self, items: impl Iterator<Item = Item>) {
        let put = |item| {
            let put = PutRequest::builder().set_item(Some(item)).build();
            WriteRequest::builder()
                .put_request(put.expect("a put"))
                .build()
        };
        let puts: Vec<WriteRequest> = items.map(put).collect();
        for batch in puts.chunks(25) {
            let request = self.direct.batch_write_item();
            let request = request.request_items(TABLE, batch.to_vec());
            request.send().await.expect("items");
        }
    }

    /// Everything stored in a namespace but its audit.
    pub async fn dump(&self, ns: &NamespaceId) -> Dump {
        let request = self.direct.query().table_name(TABLE).index_name("GSI4");
        let request = request.key_condition_expression("GSI4PK = :ns");
        let request = request.expression_attribute_values(":ns", s(ns.as_str()));
        let found = request.send().await.expect("a query");
        assert!(found.last_evaluated_key.is_none(), "one page");
        let keys = found
            .items
            .unwrap_or_default()
            .into_iter()
            .map(|item| key_of(&item));
        let keys: Vec<_> = keys.filter(|(_, sk)| !sk.starts_with("#AUDIT#")).collect();
        read(&self.direct, &keys).await
    }

    /// Lets the actors race.
    pub async fn race(&self, scenario: &Scenario, clock: &Clock) -> Raced {
        self.queue.begin(vec![BIRTH]);
        let scenario_of =
            |index: usize| (scenario.clone(), store(&self.gated[index]), clock.clone());
        let mut applies = Vec::new();
        for index in 0..scenario.applies.len() {
            let (scenario, store, clock) = scenario_of(index);
            applies.push(tokio::spawn(async move {
                apply(&store, &clock, &scenario, index).await
            }));
        }
        let mut clients = Vec::new();
        for (index, (level, edit)) in scenario.edits.iter().cloned().enumerate() {
            let (scenario, store, clock) = scenario_of(APPLIES + index);
            clients.push(tokio::spawn(async move {
                write_level(&store, &clock, &scenario, level, edit).await
            }));
        }
        for pair in scenario.births.iter().copied() {
            let (ns, gated, direct) = (
                scenario.ns.clone(),
                self.gated[BIRTH].clone(),
                self.direct.clone(),
            );
            clients.push(tokio::spawn(async move {
                create_bucket(&gated, &direct, &ns, pair).await
            }));
        }
        let aborts: Vec<_> = applies.iter().map(JoinHandle::abort_handle).collect();
        let is_over = || {
            applies.iter().all(JoinHandle::is_finished)
                && clients.iter().all(JoinHandle::is_finished)
        };
        let mut picker = Picker::new(scenario.seed, scenario.style);
        let mut trace = Vec::new();
        let mut told = tokio::time::Instant::now();
        let mut steps = 0;
        while !is_over() {
            // Ends when nobody can move any more.
            tokio::time::sleep(Duration::from_millis(1)).await;
            let now = tokio::time::Instant::now();
            clock.advance(u64::try_from((now - told).as_millis()).expect("a short while"));
            told = now;
            trace.extend(self.queue.step(&mut picker));
            steps += 1;
            assert!(steps < MOST_STEPS, "the race never ends");
            match scenario.incident {
                Some(Incident::Death { apply, step }) if step == steps => aborts[apply].abort(),
                Some(Incident::Jump { step }) if step == steps => clock.advance(LONG_MS),
                _ => {}
            }
        }
        let mut ended = Vec::new();
        for apply in applies {
            ended.push(match apply.await {
                Ok(ended) => ended,
                Err(error) if error.is_cancelled() => Ended::Died,
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            });
        }
        let mut did = Vec::new();
        for client in clients {
            did.push(client.await.expect("a client"));
        }
        Raced {
            applies: ended,
            clients: did,
            trace,
        }
    }

    /// Finishes what is owed, without a manifest and with nobody in the way.
    pub async fn resume(&self, clock: &Clock, ns: &NamespaceId, settle: Duration) {
        let mut options = ApplyOptions::default();
        options.fanout.settle = settle;
        let report = reconcile::resume(&store(&self.direct), clock, ns, &options, &()).await;
        let report = report.expect("a report");
        assert_eq!(report.errors, Vec::<String>::new());
    }

    /// Applies as a person does who means it, with nobody in the way: it must do.
    pub async fn insist(&self, clock: &Clock, ns: &NamespaceId, applying: &Applying) {
        let store = store(&self.direct);
        clock.advance(1000);
        let ended = apply_as(&store, clock, ns, applying, true, Duration::ZERO).await;
        assert!(
            ended.is_success(),
            "undisturbed, and still not done: {ended:#?}"
        );
    }
}

/// A client without retries and time-outs: nothing here fails, and a race has very many requests.
fn plain(transport: SharedHttpClient) -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("local"))
        .endpoint_url("http://embedded.invalid")
        .allow_no_auth()
        .retry_config(RetryConfig::disabled())
        .timeout_config(TimeoutConfig::disabled())
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .http_client(transport);
    Client::from_conf(config.build())
}

pub const TABLE: &str = "rate-limits";

pub fn store(client: &Client) -> Store {
    let place = Place {
        table: TABLE.to_owned(),
        host: "memory".to_owned(),
    };
    Store::new(client.clone(), place)
}

pub fn manifest(levels: &Levels) -> Manifest {
    Manifest::new("tenant-alpha".parse().expect("a name"), levels.clone()).expect("a manifest")
}

pub async fn read(client: &Client, keys: &[(String, String)]) -> Dump {
    let key = |(pk, sk): &(String, String)| {
        Item::from([("PK".to_owned(), s(pk)), ("SK".to_owned(), s(sk))])
    };
    let keys = keys.iter().map(key).collect();
    let wanted = KeysAndAttributes::builder()
        .set_keys(Some(keys))
        .consistent_read(true);
    let request = client
        .batch_get_item()
        .request_items(TABLE, wanted.build().expect("keys"));
    let answer = request.send().await.expect("a read");
    let items = answer
        .responses
        .unwrap_or_default()
        .remove(TABLE)
        .unwrap_or_default();
    items
        .into_iter()
        .map(|item| (key_of(&item), item))
        .collect()
}

pub fn key_of(item: &Item) -> (String, String) {
    let text = |name: &str| item[name].as_s().expect("a key").clone();
    (text("PK"), text("SK"))
}
