//! How many writes are in flight at once, and the setting that says so.

use crate::transport::{Layer, Request, over};
use crate::world::{World, manifest};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use zae_limits::model::ManifestOwner;
use zae_limits::plan::Policy;
use zae_limits::reconcile;
use zae_limits::report::{ApplyReport, Status};
use zae_limits::store::Embedded;

/// What stops the resource of [`database`].
pub const STOP: &str = "resources: { gpt-4: { disabled: true } }";

/// A database with so many buckets of one resource, which its index shows by their numbers.
pub async fn database(buckets: usize) -> Embedded {
    let embedded = Embedded::memory().expect("an embedded database");
    let world = World::over(embedded.client()).await;
    for number in 0..buckets {
        let entity = format!("e{number:03}");
        world.bucket(&entity, "gpt-4", 0, &[]).await;
    }
    embedded
}

/// Stops that resource, with so many write batches in flight and a reading pass after so long.
pub async fn stop(
    transport: SharedHttpClient,
    concurrency: usize,
    settle: Duration,
) -> ApplyReport {
    let world = World::before_first_use(Embedded::client_over(transport));
    let plan = world.plan(&manifest(STOP)).await;
    let guarded = plan.guard(&Policy::strict(ManifestOwner::Cli));
    let guarded = guarded.expect("no guard");
    let mut options = World::options();
    options.fanout.concurrency = concurrency;
    options.fanout.settle = settle;
    let (store, clock) = (&world.store, &world.clock);
    let report = reconcile::apply(store, clock, &guarded, &options, &()).await;
    report.expect("an apply")
}

/// Holds every batch of statements for a while, and until so many have once been held together, but not for
/// good. Clones share the counts.
#[derive(Debug, Clone)]
struct Held {
    together: usize,
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

const WHILE: Duration = Duration::from_millis(5);
const NOT_FOR_GOOD: Duration = Duration::from_secs(2);

impl Held {
    async fn hold(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let others = async {
            while self.most.load(Ordering::SeqCst) < self.together {
                tokio::time::sleep(WHILE).await;
            }
        };
        let _ = tokio::time::timeout(NOT_FOR_GOOD, others).await;
        tokio::time::sleep(WHILE).await;
    }
}

impl Layer for Held {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        if Request::read(&request).operation != "BatchExecuteStatement" {
            return next.call(request);
        }
        let (this, next) = (self.clone(), next.clone());
        HttpConnectorFuture::new(async move {
            this.hold().await;
            let answer = next.call(request).await;
            this.now.fetch_sub(1, Ordering::SeqCst);
            answer
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn as_many_write_batches_are_in_flight_as_the_settings_allow_and_never_more() {
    let held = Held {
        together: 3,
        now: Arc::default(),
        most: Arc::default(),
    };
    let embedded = database(400).await;
    let transport = over(embedded.http_client(), held.clone());
    let report = stop(transport, held.together, Duration::ZERO).await;
    assert_eq!(report.errors, Vec::<String>::new());
    assert_eq!((report.status, report.stamped), (Status::Applied, 400));
    assert_eq!(held.most.load(Ordering::SeqCst), held.together);
    assert_eq!(held.now.load(Ordering::SeqCst), 0);
}
