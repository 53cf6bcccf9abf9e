//! Acquires in flight: buckets that appear, or are written from old config, while a fan-out runs.

use crate::bucket_items::{level, store_level};
use crate::transport::{Layer, Request, over};
use crate::world::{World, manifest};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use zae_limits::fanout::{Fanouts, Settings};
use zae_limits::model::{FanoutKind, ManifestOwner, Owed};
use zae_limits::plan::{PlanOptions, Policy};
use zae_limits::reconcile::{self, ApplyOptions};
use zae_limits::report::ApplyReport;
use zae_limits::store::Embedded;

/// A client's write that lands right after the n-th query of an index, from 1.
#[derive(Clone)]
pub struct AfterQuery {
    nth: usize,
    seen: Arc<AtomicUsize>,
    embedded: Embedded,
    stamps: Vec<(&'static str, AttributeValue)>,
}

impl AfterQuery {
    /// A bucket of `late` for `gpt-4` appears, with these stamps, in a database that `embedded` is.
    pub fn new(
        nth: usize,
        embedded: &Embedded,
        stamps: &[(&'static str, AttributeValue)],
    ) -> AfterQuery {
        AfterQuery {
            nth,
            seen: Arc::default(),
            embedded: embedded.clone(),
            stamps: stamps.to_vec(),
        }
    }
}

impl fmt::Debug for AfterQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a write after query {}", self.nth)
    }
}

impl Layer for AfterQuery {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        let read = Request::read(&request);
        let is_discovery = read.operation == "Query" && read.body.get("IndexName").is_some();
        let answer = next.call(request);
        if !is_discovery || self.seen.fetch_add(1, Ordering::SeqCst) + 1 != self.nth {
            return answer;
        }
        let this = self.clone();
        HttpConnectorFuture::new(async move {
            let answer = answer.await;
            let client = World::before_first_use(this.embedded.client());
            client.bucket("late", "gpt-4", 0, &this.stamps).await;
            answer
        })
    }
}

/// Applies while a client's write lands, with a reading pass after so long.
async fn applied_while(
    yaml: &str,
    embedded: &Embedded,
    layer: AfterQuery,
    settle: Duration,
) -> ApplyReport {
    let disturbed = Embedded::client_over(over(embedded.http_client(), layer));
    let disturbed = World::before_first_use(disturbed);
    let manifest = manifest(yaml);
    let plan = disturbed.plan_with(&manifest, PlanOptions::default()).await;
    let guarded = plan
        .guard(&Policy::strict(ManifestOwner::Cli))
        .expect("no guard");
    let options = ApplyOptions {
        fanout: Settings {
            settle,
            ..Settings::default()
        },
        ..ApplyOptions::default()
    };
    let report = reconcile::apply(&disturbed.store, &disturbed.clock, &guarded, &options, &());
    let report = report.await.expect("an apply");
    assert_eq!(report.errors, Vec::<String>::new());
    report
}

/// Disables `gpt-4` while a client's write lands after the n-th query, and says what its bucket
/// then shows.
async fn disabled_while(
    nth: usize,
    settle: Duration,
    stamps: &[(&'static str, AttributeValue)],
) -> (&'static str, ApplyReport) {
    let embedded = Embedded::memory().expect("an embedded database");
    let world = World::over(embedded.client()).await;
    world.bucket("alice", "gpt-4", 0, &[]).await;
    if !stamps.is_empty() {
        world.bucket("late", "gpt-4", 0, &[]).await;
    }
    let layer = AfterQuery::new(nth, &embedded, stamps);
    let disabled = "resources: { gpt-4: { disabled: true } }";
    let report = applied_while(disabled, &embedded, layer, settle).await;
    assert_eq!(world.stamp("alice", "gpt-4").await, "disabled");
    (world.stamp("late", "gpt-4").await, report)
}

const SETTLE: Duration = Duration::from_millis(20);

#[tokio::test]
async fn a_bucket_that_appears_during_the_first_pass_is_caught_by_the_second() {
    let (shown, report) = disabled_while(1, Duration::ZERO, &[]).await;
    assert_eq!((shown, report.stamped), ("disabled", 2));
}

#[tokio::test]
async fn a_bucket_that_appears_during_the_second_pass_is_caught_by_the_reading_pass() {
    let (shown, _) = disabled_while(2, Duration::ZERO, &[]).await;
    assert_eq!(
        shown, "enforce",
        "without a reading pass nothing would catch it"
    );
    let (shown, report) = disabled_while(2, SETTLE, &[]).await;
    assert_eq!((shown, report.stamped), ("disabled", 2));
}

#[tokio::test]
async fn a_stamp_that_an_old_resolution_overwrote_is_mended() {
    let renewed = [("bypass", AttributeValue::N("1800000050000".to_owned()))];
    let (shown, report) = disabled_while(2, SETTLE, &renewed).await;
    assert_eq!((shown, report.stamped), ("disabled", 3));
}

/// The index of an entity's buckets does not show what they carry.
#[tokio::test]
async fn a_stamp_of_an_entity_that_was_overwritten_is_mended_too() {
    for scope in ["gpt-4", "_default_"] {
        let disabled =
            format!("entities: {{ late: {{ resources: {{ {scope}: {{ disabled: true }} }} }} }}");
        for (settle, shown, stamped) in [(Duration::ZERO, "enforce", 2), (SETTLE, "disabled", 3)] {
            let embedded = Embedded::memory().expect("an embedded database");
            let world = World::over(embedded.client()).await;
            for shard in 0..2 {
                world.bucket("late", "gpt-4", shard, &[]).await;
            }
            let layer = AfterQuery::new(2, &embedded, &[]);
            let report = applied_while(&disabled, &embedded, layer, settle).await;
            let what = format!("{disabled}, settle {settle:?}");
            assert_eq!(world.stamp("late", "gpt-4").await, shown, "{what}");
            let beside = world.shard_stamp("late", "gpt-4", 1).await;
            assert_eq!((beside, report.stamped), ("disabled", stamped), "{what}");
        }
    }
}

#[tokio::test]
async fn a_reading_pass_that_finds_everything_right_writes_nothing() {
    let (_, report) = disabled_while(usize::MAX, SETTLE, &[]).await;
    assert_eq!(report.stamped, 1);
}

#[tokio::test]
async fn a_fan_out_that_its_level_cannot_owe_is_done_and_touches_nothing() {
    let world = World::new().await;
    let limits = manifest(
        "resources: { gpt-4: { disabled: true, cascade: true, limits: { rpm: { capacity: 9, soft: true } } } }",
    );
    let resource = level("resource", "gpt-4");
    store_level(&world, &resource, &limits.levels()[&resource]).await;
    world.bucket("alice", "gpt-4", 0, &[]).await;
    let before = world.dump().await;
    let settings = Settings {
        settle: SETTLE,
        ..Settings::default()
    };
    let fanouts = Fanouts::new(&world.store, &world.ns, &world.clock, &settings, &());
    for (kind, level) in [
        (FanoutKind::Access, level("system", "")),
        (FanoutKind::Cascade, level("system", "")),
        (FanoutKind::Params, level("system", "")),
        (FanoutKind::Params, resource.clone()),
        (FanoutKind::Soft, level("entity", "alice/gpt-4")),
    ] {
        let outcomes = fanouts
            .run([&Owed { level, kind }], world.clock.now())
            .await;
        assert!(
            outcomes.iter().all(|outcome| outcome.has_landed()),
            "{outcomes:?}"
        );
        assert_eq!(world.dump().await, before, "{outcomes:?}");
    }
}
