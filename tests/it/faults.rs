//! A table that throttles, fails, is slow, loses answers and answers batches in part delays an apply.
//! It corrupts nothing, loses nothing, and never makes a success of something that is undone.
//!
//! The runtime's clock is paused: the pauses between retries cost no time. `ZAE_LIMITS_FAULT_SEEDS=N` tries
//! N schedules of each kind in place of the few of a default run.

use crate::stage::{Stage, Stored, assert_same, comparable};
use crate::transport::{Layer, Request, over};
use crate::weather::{Misbehaviour, Weather};
use crate::world::{World, bucket_id, manifest, s};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use zae_limits::fanout::Settings;
use zae_limits::model::ManifestOwner;
use zae_limits::plan::{PlanOptions, Policy};
use zae_limits::reconcile::{self, ApplyOptions};
use zae_limits::report::Status;
use zae_limits::store::{Embedded, Patience};

// The limits of shared levels stay as they are: they reach a bucket only when it is made anew, so what
// a bucket falls back to would depend on which of several writes came through first.

const EVERYTHING: &str = "
system: { limits: { rpm: { capacity: 100, soft: true } } }
resources:
  gpt-4: { disabled: true, cascade: true, limits: { rpm: { capacity: 50, soft: true } } }
  claude-3: { disabled: bypass }
entities:
  alice: { resources: { gpt-4: { disabled: false, limits: { rpm: { capacity: 5 } } } } }
  bob: { resources: { _default_: { cascade: true, limits: { rpm: { capacity: 7 } } } } }";

const OTHER: &str = "
system: { limits: { rpm: { capacity: 100 } } }
resources: { gpt-4: { disabled: bypass, limits: { rpm: { capacity: 50 } } } }
entities: { carol: { resources: { gpt-4: { cascade: true, limits: { rpm: { capacity: 9 } } } } } }";

const LITTLE: &str = "
system: { limits: { rpm: { capacity: 100 } } }
resources: { gpt-4: { limits: { rpm: { capacity: 50 } } } }";

const SWITCHES: &str = "
resources: { gpt-4: { disabled: true }, claude-3: { disabled: bypass } }
entities: { alice: { resources: { gpt-4: { disabled: false } } } }";

/// What is applied over what, in bad weather.
struct Case {
    stage: Stage,
    after: &'static str,
    options: PlanOptions,
    /// How long the reading pass waits; zero: there is none.
    settle: Duration,
    expected: Stored,
}

impl Case {
    async fn new(before: &str, after: &'static str, full: bool) -> Case {
        let options = PlanOptions {
            full,
            ..PlanOptions::default()
        };
        let stage = Stage::after(before).await;
        let world = World::before_first_use(stage.set().await.client());
        let report = world.apply_once(&manifest(after), options).await;
        assert_eq!((report.errors.len(), report.pending), (0, 0));
        let expected = comparable(world.dump().await);
        Case {
            stage,
            after,
            options,
            settle: Duration::ZERO,
            expected,
        }
    }

    /// The same, with a reading pass.
    fn settling(self) -> Case {
        Case {
            settle: Duration::from_secs(1),
            ..self
        }
    }

    async fn all() -> [Case; 5] {
        [
            Case::new("", EVERYTHING, false).await,
            Case::new(EVERYTHING, OTHER, false).await,
            Case::new(OTHER, LITTLE, false).await,
            Case::new(SWITCHES, "", false).await,
            Case::new(EVERYTHING, EVERYTHING, true).await,
        ]
    }

    /// Applies in bad weather, then in good weather until it is done. Says whether the first was a
    /// success.
    async fn check(&self, weather: &Weather, what: &str) -> bool {
        let target = manifest(self.after);
        let embedded = self.stage.set().await;
        let disturbed = over(embedded.http_client(), weather.clone());
        let disturbed = on_paused_time(&Embedded::client_over(disturbed));
        let disturbed = World::before_first_use(disturbed);
        let claimed = disturbed
            .try_apply_settling(&target, self.options, self.settle)
            .await;
        let world = World::before_first_use(embedded.client());
        let pending = world.store.pending(&world.ns).await.expect("pending").len();
        let succeeded = match &claimed {
            Err(_) => false,
            Ok(report) => {
                let done = report.status != Status::Partial;
                assert_eq!(
                    done,
                    report.errors.is_empty() && report.pending == 0,
                    "{what}"
                );
                done
            }
        };
        if succeeded {
            assert_eq!(pending, 0, "{what}: a success with something pending");
            let stored = comparable(world.dump().await);
            assert_same(
                &stored,
                &self.expected,
                &format!("{what}: a success was claimed"),
            );
        }
        // Leases that could not be ended run out.
        world.clock.advance(20 * 60_000);
        let report = world.apply_once(&target, self.options).await;
        assert_eq!(report.errors, Vec::<String>::new(), "{what}");
        assert_eq!(report.pending, 0, "{what}");
        let stored = comparable(world.dump().await);
        assert_same(
            &stored,
            &self.expected,
            &format!("{what}: after {claimed:#?}"),
        );
        let plan = world.plan(&target).await;
        assert!(plan.is_empty(), "{what}: {plan:#?}");
        succeeded
    }
}

/// The client with its retries as they are, but for the limiter that throttling sets off: it goes by
/// the system's clock, which stands still where a paused runtime's sleeps end at once.
fn on_paused_time(client: &Client) -> Client {
    let patience = Patience::default();
    let retries = RetryConfig::standard()
        .with_max_attempts(patience.attempts)
        .with_initial_backoff(Duration::from_millis(200))
        .with_max_backoff(Duration::from_secs(5));
    let config = client.config().to_builder().retry_config(retries);
    Client::from_conf(config.build())
}

fn seeds(default: u64) -> u64 {
    let asked = std::env::var("ZAE_LIMITS_FAULT_SEEDS").ok();
    asked.map_or(default, |n| n.parse().expect("a number of seeds"))
}

/// Weather of some kinds over every case, lightly and heavily. Both ends must have been seen: what
/// is weathered, and what is not.
async fn weathered(kinds: &[Misbehaviour], fails: bool) {
    weathered_over(&Case::all().await, kinds, fails).await;
}

async fn weathered_over(cases: &[Case], kinds: &[Misbehaviour], fails: bool) {
    let (mut tried, mut struck, mut succeeded) = (0, 0, 0);
    for seed in 0..seeds(3) {
        for (index, case) in cases.iter().enumerate() {
            for percent in [5, 40, 85] {
                let weather = Weather::new(seed, kinds, percent);
                let what = format!("{kinds:?}, seed {seed}, case {index}, {percent} %");
                succeeded += usize::from(case.check(&weather, &what).await);
                struck += weather.struck();
                tried += 1;
            }
        }
    }
    println!("{tried} schedules, {struck} requests struck, {succeeded} applies came through");
    assert!(struck > 10 * tried, "{struck} in {tried}");
    assert!(succeeded > tried / 4, "{succeeded} of {tried} came through");
    assert_eq!(succeeded < tried, fails, "{succeeded} of {tried}");
}

#[tokio::test(start_paused = true)]
async fn throttling() {
    weathered(&[Misbehaviour::Throttles], true).await;
}

#[tokio::test(start_paused = true)]
async fn server_errors() {
    weathered(&[Misbehaviour::Fails], true).await;
}

#[tokio::test(start_paused = true)]
async fn answers_that_do_not_come_in_time() {
    weathered(&[Misbehaviour::TimesOut], true).await;
}

#[tokio::test(start_paused = true)]
async fn broken_connections() {
    weathered(&[Misbehaviour::Disconnects], true).await;
}

#[tokio::test(start_paused = true)]
async fn slow_answers() {
    weathered(&[Misbehaviour::IsSlow], false).await;
}

#[tokio::test(start_paused = true)]
async fn batches_answered_in_part() {
    let cases = Case::all().await;
    let mut struck = 0;
    for seed in 0..seeds(8) {
        for (index, case) in cases.iter().enumerate() {
            // What is in part is asked for again until it is whole.
            let weather = Weather::new(seed, &[Misbehaviour::AnswersInPart], 60);
            let what = format!("seed {seed}, case {index}");
            assert!(case.check(&weather, &what).await, "{what}");
            struck += weather.struck();
        }
    }
    println!("{struck} requests struck");
}

#[tokio::test(start_paused = true)]
async fn everything_at_once() {
    weathered(&Misbehaviour::ALL, true).await;
}

#[tokio::test(start_paused = true)]
async fn everything_at_once_with_a_reading_pass() {
    let cases = Case::all().await.map(Case::settling);
    weathered_over(&cases, &Misbehaviour::ALL, true).await;
}

/// Statements of a batch that fail for good: each is named, and the others are stamped.
#[derive(Debug, Clone)]
struct Refuses(&'static str);

impl Layer for Refuses {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        let read = Request::read(&request);
        if read.operation != "BatchExecuteStatement" || !read.body.to_string().contains(self.0) {
            return next.call(request);
        }
        let statements = read.body["Statements"].as_array().cloned();
        let refused = |statement: &Value| statement.to_string().contains(self.0);
        let refused: Vec<bool> = statements.iter().flatten().map(refused).collect();
        let answer = next.call(request);
        HttpConnectorFuture::new(async move {
            let answer = answer.await?;
            let mut body: Value =
                serde_json::from_slice(answer.body().bytes().expect("bytes")).expect("JSON");
            for (index, _) in refused.iter().enumerate().filter(|(_, refused)| **refused) {
                let error = serde_json::json!({ "Code": "ItemCollectionSizeLimitExceeded", "Message": "too large" });
                body["Responses"][index] = serde_json::json!({ "Error": error });
            }
            Ok(HttpResponse::new(
                answer.status(),
                SdkBody::from(body.to_string()),
            ))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_statement_that_fails_for_good_is_named_and_stays_owed() {
    let stage = Stage::after("").await;
    let embedded = stage.set().await;
    let refusing = over(embedded.http_client(), Refuses("BUCKET#bob#gpt-4"));
    let disturbed = World::before_first_use(Embedded::client_over(refusing));
    let target = manifest("resources: { gpt-4: { disabled: true } }");
    let report = disturbed.apply_once(&target, PlanOptions::default()).await;
    assert_eq!((report.status, report.pending), (Status::Partial, 1));
    let failed = &report.fanouts[0];
    assert!(
        failed.samples[0].contains("BUCKET#bob#gpt-4#0"),
        "{failed:#?}"
    );
    let world = World::before_first_use(embedded.client());
    assert_eq!(world.stamp("alice", "gpt-4").await, "disabled");
    world.clock.advance(1);
    let report = world.apply_once(&target, PlanOptions::default()).await;
    assert_eq!((report.resumed, report.pending), (1, 0));
}

/// An index that lags: for a number of queries it does not show a bucket that is there, and shows
/// one that is gone.
#[derive(Debug, Clone)]
struct Lagging {
    queries: usize,
    hidden: String,
    phantom: Value,
    passed: Arc<AtomicUsize>,
}

impl Layer for Lagging {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        let read = Request::read(&request);
        let of_index = read.operation == "Query" && read.body.get("IndexName").is_some();
        if !of_index || self.passed.fetch_add(1, Ordering::SeqCst) >= self.queries {
            return next.call(request);
        }
        let (this, answer) = (self.clone(), next.call(request));
        HttpConnectorFuture::new(async move {
            let answer = answer.await?;
            let mut body: Value =
                serde_json::from_slice(answer.body().bytes().expect("bytes")).expect("JSON");
            let items = body["Items"].as_array_mut().expect("items");
            items.retain(|item| item["PK"]["S"] != this.hidden.as_str());
            items.push(this.phantom.clone());
            Ok(HttpResponse::new(
                answer.status(),
                SdkBody::from(body.to_string()),
            ))
        })
    }
}

/// Applies over an index that lags for so many queries, with a reading pass.
async fn over_lagging(stage: &Stage, after: &str, queries: usize) -> (Embedded, Status) {
    let embedded = stage.set().await;
    let world = World::before_first_use(embedded.client());
    let ns = &world.ns;
    let lagging = Lagging {
        queries,
        hidden: bucket_id("bob", "gpt-4", 0).pk(ns),
        phantom: serde_json::json!({ "PK": { "S": bucket_id("gone", "gpt-4", 0).pk(ns) } }),
        passed: Arc::default(),
    };
    let disturbed = Embedded::client_over(over(embedded.http_client(), lagging));
    let disturbed = World::before_first_use(disturbed);
    let plan = disturbed.plan(&manifest(after)).await;
    let guarded = plan.guard(&Policy::strict(ManifestOwner::Cli));
    let options = ApplyOptions {
        fanout: Settings {
            settle: Duration::from_secs(1),
            ..Settings::default()
        },
        ..World::options()
    };
    let guarded = guarded.expect("no guard");
    let (store, clock) = (&disturbed.store, &disturbed.clock);
    let report = reconcile::apply(store, clock, &guarded, &options, &()).await;
    let report = report.expect("a report");
    assert_eq!(report.errors, Vec::<String>::new());
    (embedded, report.status)
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_the_index_shows_late_is_stamped_and_one_it_still_shows_is_not_made() {
    let stage = Stage::after("").await;
    let stopped = "resources: { gpt-4: { disabled: true } }";
    // One query a pass: hidden in the first, in the first two, in none.
    for queries in 0..3 {
        let (embedded, status) = over_lagging(&stage, stopped, queries).await;
        let world = World::before_first_use(embedded.client());
        assert_eq!(status, Status::Applied, "{queries}");
        assert_eq!(world.stamp("bob", "gpt-4").await, "disabled", "{queries}");
        assert_eq!(world.stamp("gone", "gpt-4").await, "gone", "{queries}");
    }
    // Limits have no reading pass: their second pass must show it.
    let limited =
        "entities: { bob: { resources: { gpt-4: { limits: { rpm: { capacity: 3 } } } } } }";
    for queries in 0..2 {
        let (embedded, _) = over_lagging(&stage, limited, queries).await;
        let world = World::before_first_use(embedded.client());
        let bucket = world.item("BUCKET#bob#gpt-4#0", "#STATE").await;
        assert_eq!(bucket["b_rpm_cp"], AttributeValue::N("3000".to_owned()));
        assert_eq!(bucket["entity_id"], s("bob"));
        assert_eq!(world.stamp("gone", "gpt-4").await, "gone", "{queries}");
    }
}
