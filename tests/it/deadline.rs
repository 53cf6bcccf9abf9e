//! A deadline ends everything in time, wherever the table stops answering, and what is owed stays
//! recorded and free to be taken over.
//!
//! The runtime's clock is paused: a wait costs no time and lasts exactly as long as it says.

use crate::stage::{Stage, Stored, assert_same, comparable};
use crate::transport::{Layer, Request, over};
use crate::world::{NOW, World, manifest};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use zae_limits::fanout::Settings;
use zae_limits::model::{FanoutKind, ManifestOwner};
use zae_limits::plan::{PlanOptions, Policy};
use zae_limits::reconcile::{self, ApplyOptions};
use zae_limits::report::{ApplyReport, Status};
use zae_limits::store::{Embedded, StoreError};

const DEADLINE: Duration = Duration::from_secs(10);
const GRACE: Duration = Duration::from_secs(2);
/// When everything is over, in milliseconds; leases that were not ended run out long after.
const OVER_MS: u64 = 14_000;

/// Which requests a [`Hang`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    /// Those that find, read and write buckets and what decides about them.
    FanOuts,
    /// Transactions that write levels.
    Levels,
}

impl About {
    fn includes(self, request: &Request) -> bool {
        let body = request.body.to_string();
        match self {
            About::FanOuts => {
                let reads = matches!(request.operation.as_str(), "BatchGetItem");
                request.body.get("IndexName").is_some() || body.contains("/BUCKET#") || reads
            }
            About::Levels => request.operation == "TransactWriteItems" && body.contains("#AUDIT#"),
        }
    }
}

/// The k-th of some requests, from 1, and all later ones of them are never answered.
#[derive(Debug, Clone)]
struct Hang {
    about: About,
    from: usize,
    lands: bool,
    passed: Arc<AtomicUsize>,
}

impl Hang {
    fn new(about: About, from: usize, lands: bool) -> Hang {
        let passed = Arc::default();
        Hang {
            about,
            from,
            lands,
            passed,
        }
    }

    fn struck(&self) -> bool {
        self.passed.load(Ordering::SeqCst) >= self.from
    }
}

impl Layer for Hang {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        if !self.about.includes(&Request::read(&request))
            || self.passed.fetch_add(1, Ordering::SeqCst) + 1 < self.from
        {
            return next.call(request);
        }
        let (lands, next) = (self.lands, next.clone());
        HttpConnectorFuture::new(async move {
            if lands {
                let _ = next.call(request).await;
            }
            std::future::pending().await
        })
    }
}

const EVERYTHING: &str = "
system: { limits: { rpm: { capacity: 100, soft: true } } }
resources: { gpt-4: { disabled: true, cascade: true, limits: { rpm: { capacity: 50, soft: true } } } }
entities: { alice: { resources: { gpt-4: { disabled: false, limits: { rpm: { capacity: 5 } } } } } }";

/// Plans over a healthy table and applies over a disturbed one, by the deadline.
async fn apply_by_deadline(
    embedded: &Embedded,
    layer: impl Layer,
    settle: Duration,
) -> Result<ApplyReport, StoreError> {
    let world = World::before_first_use(embedded.client());
    let plan = world.plan(&manifest(EVERYTHING)).await;
    let guarded = plan.guard(&Policy::strict(ManifestOwner::Cli));
    let guarded = guarded.expect("no guard");
    let disturbed = Embedded::client_over(over(embedded.http_client(), layer));
    let disturbed = World::before_first_use(disturbed);
    let options = ApplyOptions {
        fanout: Settings {
            deadline: Some(NOW.plus_ms(DEADLINE.as_millis() as u64)),
            grace: GRACE,
            settle,
            ..World::options().fanout
        },
        ..World::options()
    };
    let clock = disturbed.clock.clone();
    let ticking = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            clock.advance(20);
        }
    });
    let applied = reconcile::apply(&disturbed.store, &disturbed.clock, &guarded, &options, &());
    let applied = applied.await;
    ticking.abort();
    applied
}

/// Goes on over a healthy table, at once, and must end where an undisturbed apply ends.
async fn goes_on(embedded: &Embedded, expected: &Stored, what: &str) {
    let world = World::before_first_use(embedded.client());
    world.clock.advance(OVER_MS);
    let report = world
        .apply_once(&manifest(EVERYTHING), PlanOptions::default())
        .await;
    assert_eq!(report.errors, Vec::<String>::new(), "{what}");
    assert_eq!(report.pending, 0, "{what}");
    assert_same(&comparable(world.dump().await), expected, what);
}

async fn expected(stage: &Stage) -> Stored {
    let world = World::before_first_use(stage.set().await.client());
    let report = world
        .apply_once(&manifest(EVERYTHING), PlanOptions::default())
        .await;
    assert_eq!((report.errors.len(), report.pending), (0, 0));
    comparable(world.dump().await)
}

/// A table that stops answering at any request of a fan-out, and how many of these there are.
async fn hangs_everywhere(settle: Duration) -> usize {
    let stage = Stage::after("").await;
    let expected = expected(&stage).await;
    let mut hung = 0;
    for lands in [false, true] {
        for from in 1.. {
            let embedded = stage.set().await;
            let hang = Hang::new(About::FanOuts, from, lands);
            let began = Instant::now();
            let report = apply_by_deadline(&embedded, hang.clone(), settle).await;
            let report = report.expect("a report");
            let what = format!("from {from}, lands {lands}");
            if !hang.struck() {
                assert_eq!(report.status, Status::Applied, "{what}");
                break;
            }
            hung += 1;
            // A table that answered up to the deadline left nothing to wait for.
            assert!(
                began.elapsed() <= DEADLINE + GRACE + Duration::from_secs(1),
                "{what}"
            );
            assert_eq!(report.status, Status::Partial, "{what}");
            let world = World::before_first_use(embedded.client());
            let pending = world.store.pending(&world.ns).await.expect("pending");
            let undone = report.fanouts.iter().filter(|ran| !ran.landed).count();
            assert!(undone > 0, "{what}");
            assert_eq!((report.pending, pending.len()), (undone, undone), "{what}");
            assert_eq!(report.errors.len(), undone, "{what}: {:#?}", report.errors);
            let free = pending
                .iter()
                .all(|left| left.is_claimable(NOW.plus_ms(OVER_MS)));
            assert!(free, "{what}: {pending:#?}");
            goes_on(&embedded, &expected, &what).await;
        }
    }
    println!("{hung} places to hang");
    hung
}

#[tokio::test(start_paused = true)]
async fn a_table_that_stops_answering_in_a_fan_out_holds_an_apply_no_longer_than_its_grace() {
    let hung = hangs_everywhere(Duration::ZERO).await;
    assert!(hung >= 94, "{hung}");
}

#[tokio::test(start_paused = true)]
async fn a_table_that_stops_answering_in_a_reading_pass_holds_it_no_longer_either() {
    let hung = hangs_everywhere(Duration::from_secs(1)).await;
    assert!(hung >= 104, "{hung}");
}

/// The n-th query of an index, from 1, is never answered.
#[derive(Debug, Clone)]
struct NoPage {
    nth: usize,
    passed: Arc<AtomicUsize>,
}

impl Layer for NoPage {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        let is_discovery = Request::read(&request).body.get("IndexName").is_some();
        if !is_discovery || self.passed.fetch_add(1, Ordering::SeqCst) + 1 < self.nth {
            return next.call(request);
        }
        HttpConnectorFuture::new(std::future::pending())
    }
}

/// What was stamped before the reading pass hung is in effect; that the pass is missing is said and owed.
#[tokio::test(start_paused = true)]
async fn a_reading_pass_that_hangs_leaves_every_stamp_and_its_fan_out_owed() {
    let stage = Stage::after("").await;
    let expected = expected(&stage).await;
    let embedded = stage.set().await;
    let passed = Arc::new(AtomicUsize::new(0));
    // Two passes of each of six fan-outs; the two of access are read after a second.
    let hang = NoPage {
        nth: 13,
        passed: passed.clone(),
    };
    let began = Instant::now();
    let report = apply_by_deadline(&embedded, hang, Duration::from_secs(1)).await;
    let report = report.expect("a report");
    assert!(passed.load(Ordering::SeqCst) >= 14, "both were asked for");
    assert!(began.elapsed() <= DEADLINE + GRACE + Duration::from_secs(1));
    assert_eq!((report.status, report.pending), (Status::Partial, 2));
    for ran in &report.fanouts {
        let hung = ran.owed.kind == FanoutKind::Access;
        let ended = if hung { "the time ran out" } else { "landed" };
        assert_eq!((ran.landed, ran.ended.as_str()), (!hung, ended), "{ran:#?}");
    }
    let world = World::before_first_use(embedded.client());
    let (mut stored, audits) = comparable(world.dump().await);
    stored.retain(|(_, sk), _| !sk.starts_with("#PROVISIONER#PENDING#"));
    assert_same(&(stored, audits), &expected, "all but what is owed");
    goes_on(&embedded, &expected, "a reading pass").await;
}

#[tokio::test(start_paused = true)]
async fn a_level_of_which_nothing_was_heard_is_neither_lost_nor_called_written() {
    let stage = Stage::after("").await;
    let expected = expected(&stage).await;
    for lands in [false, true] {
        // The system's, the resources' and the entities' transactions.
        for from in 1..=3 {
            let what = format!("from {from}, lands {lands}");
            let embedded = stage.set().await;
            let hang = Hang::new(About::Levels, from, lands);
            let began = Instant::now();
            let report = apply_by_deadline(&embedded, hang.clone(), Duration::ZERO).await;
            let report = report.expect("a report");
            assert!(hang.struck(), "{what}");
            assert!(
                began.elapsed() <= DEADLINE + GRACE + Duration::from_secs(1),
                "{what}"
            );
            assert_eq!(report.status, Status::Partial, "{what}");
            assert_eq!(report.unwritten.len(), 4 - from, "{what}");
            let world = World::before_first_use(embedded.client());
            // It may have landed, or land yet: it stays managed, and what it owes stays owed.
            let record = world.store.record(&world.ns).await.expect("readable");
            let managed = record.expect("a record").managed;
            assert!(managed.len() >= from, "{what}: {managed:?}");
            assert!(report.pending > 0, "{what}");
            goes_on(&embedded, &expected, &what).await;
        }
    }
}

/// A write of which nothing was heard lands after the apply is over: its fan-outs are still owed,
/// although they had run, and the next apply runs them although no level differs any more.
#[tokio::test(start_paused = true)]
async fn a_level_that_lands_after_all_is_fanned_out() {
    const STOPPED: &str = "resources: { gpt-4: { disabled: true } }";
    let stage = Stage::after("").await;
    let embedded = stage.set().await;
    let world = World::before_first_use(embedded.client());
    let plan = world.plan(&manifest(STOPPED)).await;
    let guarded = plan.guard(&Policy::strict(ManifestOwner::Cli));
    let guarded = guarded.expect("no guard");
    // No deadline: the SDK gives up by itself, and the fan-outs then run.
    let hang = Hang::new(About::Levels, 1, false);
    let disturbed = Embedded::client_over(over(embedded.http_client(), hang));
    let disturbed = World::before_first_use(disturbed);
    let options = World::options();
    let applied =
        reconcile::apply(&disturbed.store, &disturbed.clock, &guarded, &options, &()).await;
    let report = applied.expect("a report");
    assert_eq!(report.status, Status::Partial);
    assert_eq!(world.stamp("bob", "gpt-4").await, "enforce");
    assert_eq!((report.pending, report.unwritten.len()), (1, 1));

    // The level as the hung transaction stores it.
    let other = World::before_first_use(stage.set().await.client());
    other
        .apply_once(&manifest(STOPPED), PlanOptions::default())
        .await;
    world
        .put(other.item("RESOURCE#gpt-4", "#CONFIG").await)
        .await;
    world.clock.advance(1);
    let plan = world.plan(&manifest(STOPPED)).await;
    assert_eq!((plan.changes.len(), plan.owed.len()), (0, 0));
    let report = world
        .apply_once(&manifest(STOPPED), PlanOptions::default())
        .await;
    assert_eq!((report.errors.len(), report.pending), (0, 0));
    assert_eq!(world.stamp("bob", "gpt-4").await, "disabled");
}
