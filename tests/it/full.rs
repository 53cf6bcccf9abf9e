//! Full applies: everything declared is fanned out, and one that was interrupted is gone on with
//! instead of begun again, but never where something would be left out.

use crate::transport::{Counted, Fault, Landing, Layer, Recorder, over};
use crate::world::{NOW, World, manifest};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use std::collections::BTreeSet;
use zae_limits::clock::Clock;
use zae_limits::fanout::Settings;
use zae_limits::manifest::Manifest;
use zae_limits::model::{EpochMs, ManifestOwner};
use zae_limits::plan::{PlanOptions, Policy};
use zae_limits::reconcile::{self, ApplyOptions};
use zae_limits::report::{ApplyReport, OwedReport};
use zae_limits::store::{Embedded, StoreError};

/// Entities with a level of their own: more fan-outs than one transaction records.
const ENTITIES: usize = 40;
const FULL: PlanOptions = PlanOptions {
    out_of_band: zae_limits::manifest::OutOfBand::Keep,
    full: true,
};

fn yaml() -> String {
    let entity =
        |index| format!("  user-{index}: {{ resources: {{ gpt-4: {{ disabled: true }} }} }}");
    let entities: Vec<String> = (0..ENTITIES).map(entity).collect();
    format!(
        "resources: {{ gpt-4: {{ limits: {{ rpm: {{ capacity: 5 }} }} }} }}\nentities:\n{}",
        entities.join("\n")
    )
}

/// Fan-outs that a full apply of it owes: three of each level.
const OWED: usize = 3 * (ENTITIES + 1);

/// A table in which the manifest is applied and then every stamp is lost.
async fn drifted() -> (Embedded, Manifest) {
    let embedded = Embedded::memory().expect("an embedded database");
    let world = World::over(embedded.client()).await;
    let manifest = manifest(&yaml());
    world.apply_once(&manifest, PlanOptions::default()).await;
    for index in 0..ENTITIES {
        world
            .bucket(&format!("user-{index}"), "gpt-4", 0, &[])
            .await;
    }
    (embedded, manifest)
}

/// How many buckets are stamped.
async fn stamped(world: &World) -> usize {
    let dump = world.dump().await;
    let buckets = dump.iter().filter(|((_, sk), _)| sk == "#STATE");
    buckets
        .filter(|(_, item)| item.contains_key("disabled"))
        .count()
}

fn ran(report: &ApplyReport) -> BTreeSet<String> {
    let name = |owed: &OwedReport| format!("{} {:?}", owed.kind, owed.name);
    report.fanouts.iter().map(|ran| name(&ran.owed)).collect()
}

/// Dies at a request, and says what is pending then.
async fn dead_at(embedded: &Embedded, manifest: &Manifest, at: usize) -> BTreeSet<String> {
    let fault = Fault::crash(at, Counted::Requests, Landing::After);
    let dying = Embedded::client_over(over(embedded.http_client(), fault.clone()));
    let _ = World::before_first_use(dying)
        .try_apply(manifest, FULL)
        .await;
    assert!(fault.struck());
    let world = World::before_first_use(embedded.client());
    let plan = world.plan(manifest).await;
    let pending = plan.pending.iter().map(OwedReport::from);
    pending
        .map(|owed| format!("{} {:?}", owed.kind, owed.name))
        .collect()
}

/// The requests of an undisturbed full apply.
async fn requests() -> Vec<String> {
    let (embedded, manifest) = drifted().await;
    let recorder = Recorder::default();
    let recorded = Embedded::client_over(over(embedded.http_client(), recorder.clone()));
    let world = World::before_first_use(recorded);
    let report = world.apply_once(&manifest, FULL).await;
    assert_eq!(report.fanouts.len(), OWED);
    assert!(!report.full_resumed);
    let requests = recorder.requests().into_iter();
    requests.map(|request| request.operation).collect()
}

#[tokio::test]
async fn a_full_apply_that_died_is_gone_on_with_and_what_it_finished_is_not_run_again() {
    let all = requests().await.len();
    for share in [50, 65, 80, 95] {
        let (embedded, manifest) = drifted().await;
        let left = dead_at(&embedded, &manifest, all * share / 100).await;
        assert!(
            !left.is_empty() && left.len() + 20 < OWED,
            "{} of {OWED} are left at {share} %",
            left.len()
        );
        let world = World::before_first_use(embedded.client());
        world.clock.advance(20 * 60_000);
        let report = world.apply_once(&manifest, FULL).await;
        assert!(report.full_resumed, "{share} %");
        assert_eq!(ran(&report), left, "{share} %");
        assert_eq!((report.errors.len(), report.pending), (0, 0));
        assert_eq!(stamped(&world).await, ENTITIES, "{share} %");
        // It is through: the next one is a whole one again.
        let report = world.apply_once(&manifest, FULL).await;
        assert_eq!((report.full_resumed, report.fanouts.len()), (false, OWED));
    }
}

/// One that died before it had recorded all it owes has left only a part of the work to be seen.
#[tokio::test]
async fn a_full_apply_that_died_while_it_recorded_what_it_owes_is_begun_again() {
    let requests = requests().await;
    let first_query = "Query";
    let records = requests.iter().position(|op| op == "TransactWriteItems");
    let first = records.expect("a transaction") + 1;
    let fans_out = requests[first..].iter().position(|op| op == first_query);
    let last = first + fans_out.expect("a discovery");
    let mut partly = 0;
    for at in first..last {
        let (embedded, manifest) = drifted().await;
        let left = dead_at(&embedded, &manifest, at).await;
        let world = World::before_first_use(embedded.client());
        world.clock.advance(20 * 60_000);
        let report = world.apply_once(&manifest, FULL).await;
        assert_eq!(report.fanouts.len(), OWED, "{at}: {} were left", left.len());
        assert_eq!(stamped(&world).await, ENTITIES, "{at}");
        partly += usize::from((1..OWED).contains(&left.len()));
    }
    assert!(partly > 0, "none died between two transactions");
}

/// Time passes with every request, and at no other time.
#[derive(Debug)]
struct Ticking(Clock);

impl Layer for Ticking {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        self.0.advance(1);
        next.call(request)
    }
}

/// Applies within so many requests, about.
async fn within(
    embedded: &Embedded,
    manifest: &Manifest,
    start: EpochMs,
    requests: u64,
) -> Result<ApplyReport, StoreError> {
    let clock = Clock::fixed(start);
    let ticking = over(embedded.http_client(), Ticking(clock.clone()));
    let mut world = World::before_first_use(Embedded::client_over(ticking));
    world.clock = clock;
    let plan = world.plan_with(manifest, FULL).await;
    let guarded = plan.guard(&Policy::strict(ManifestOwner::Cli));
    let guarded = guarded.expect("no guard");
    let options = ApplyOptions {
        full: true,
        fanout: Settings {
            deadline: Some(start.plus_ms(requests)),
            concurrency: 2,
            ..World::options().fanout
        },
        ..World::options()
    };
    reconcile::apply(&world.store, &world.clock, &guarded, &options, &()).await
}

/// An apply too large for the time that it is given comes to its end in pieces.
#[tokio::test]
async fn a_full_apply_that_is_too_large_for_its_time_converges() {
    let all = requests().await.len() as u64;
    let (embedded, manifest) = drifted().await;
    let mut left = OWED;
    let mut start = NOW;
    let mut rounds = 0;
    while left > 0 {
        rounds += 1;
        assert!(rounds < 12, "{left} are still left");
        let report = within(&embedded, &manifest, start, all / 4).await;
        let report = report.expect("an apply");
        assert_eq!(report.full_resumed, rounds > 1, "round {rounds}");
        let done = report.fanouts.iter().filter(|ran| ran.landed).count();
        assert!(done > 0, "round {rounds} got nowhere");
        assert_eq!(report.pending, left - done, "round {rounds}");
        left = report.pending;
        assert_eq!(report.errors.len(), left, "what is undone is said");
        start = start.plus_ms(10 * 60_000);
    }
    assert!(rounds > 2, "it all fitted into {rounds} rounds");
    let world = World::before_first_use(embedded.client());
    assert_eq!(stamped(&world).await, ENTITIES);
    assert_eq!(world.store.pending(&world.ns).await.expect("pending"), []);
    let report = world.apply_once(&manifest, FULL).await;
    assert_eq!((report.full_resumed, report.fanouts.len()), (false, OWED));
}

/// What failed is no interruption: a full apply is the one repair of buckets that drifted, and a
/// bucket that cannot be written must not quietly turn it into less.
#[tokio::test]
async fn a_fan_out_that_fails_keeps_no_later_full_apply_from_being_whole() {
    let (embedded, manifest) = drifted().await;
    let world = World::before_first_use(embedded.client());
    let mut broken = world.item("BUCKET#user-0#gpt-4#0", "#STATE").await;
    let pk = crate::world::s(&format!("{}/BUCKET#not one#gpt-4#0", world.ns));
    broken.insert("PK".to_owned(), pk);
    world.put(broken).await;
    for _ in 0..2 {
        let report = world.apply_once(&manifest, FULL).await;
        assert_eq!((report.full_resumed, report.fanouts.len()), (false, OWED));
        assert!(report.pending > 0 && !report.errors.is_empty());
    }
}

#[tokio::test]
async fn an_apply_in_between_finishes_the_interrupted_one_and_the_next_is_whole() {
    let all = requests().await.len();
    let (embedded, manifest) = drifted().await;
    let left = dead_at(&embedded, &manifest, all * 65 / 100).await;
    let world = World::before_first_use(embedded.client());
    world.clock.advance(20 * 60_000);
    let report = world.apply_once(&manifest, PlanOptions::default()).await;
    assert_eq!(ran(&report), left);
    assert_eq!((report.full_resumed, report.pending), (false, 0));
    assert_eq!(stamped(&world).await, ENTITIES);
    let report = world.apply_once(&manifest, FULL).await;
    assert_eq!((report.full_resumed, report.fanouts.len()), (false, OWED));
}
