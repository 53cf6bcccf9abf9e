//! Stamping one bucket at a time: for engines without PartiQL, and for roles that may update items
//! and not run statements.

use crate::transport::{Layer, Recorder, Request, over};
use crate::world::{World, manifest};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use zae_limits::model::ManifestOwner;
use zae_limits::plan::Policy;
use zae_limits::reconcile;
use zae_limits::report::{ApplyReport, Status};
use zae_limits::store::Embedded;

/// More than two full batches, and one that is not full.
const BUCKETS: usize = 57;

/// How batches of statements are refused.
#[derive(Debug, Clone, Copy)]
pub enum Refusal {
    /// The whole request, with this code.
    Request(&'static str),
    /// Every statement of it, with this code, in an answer that is a success.
    Statements(&'static str),
}

const REFUSALS: [Refusal; 4] = [
    Refusal::Request("com.amazon.coral.service#AccessDeniedException"),
    Refusal::Request("com.amazon.coral.service#UnknownOperationException"),
    Refusal::Request("com.amazon.coral.validate#ValidationException"),
    EVERY_STATEMENT,
];

const EVERY_STATEMENT: Refusal = Refusal::Statements("AccessDenied");

impl Layer for Refusal {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        let read = Request::read(&request);
        if read.operation != "BatchExecuteStatement" {
            return next.call(request);
        }
        match *self {
            Refusal::Request(code) => answer(400, &json!({ "__type": code, "message": "no" })),
            Refusal::Statements(code) => {
                let statements = read.body["Statements"].as_array().map_or(0, Vec::len);
                let refused = json!({ "Error": { "Code": code, "Message": "no" } });
                answer(200, &json!({ "Responses": vec![refused; statements] }))
            }
        }
    }
}

fn answer(status: u16, body: &Value) -> HttpConnectorFuture {
    let status = status.try_into().expect("a status");
    let answer = HttpResponse::new(status, SdkBody::from(body.to_string()));
    HttpConnectorFuture::ready(Ok(answer))
}

/// A table with many buckets of one resource, whose batches are refused.
struct Refusing {
    /// What refuses.
    world: World,
    /// The same table, undisturbed.
    beside: World,
    recorder: Recorder,
}

impl Refusing {
    async fn new(refusal: impl Layer) -> Refusing {
        let embedded = Embedded::memory().expect("an embedded database");
        let beside = World::over(embedded.client()).await;
        for number in 0..BUCKETS {
            let entity = format!("e{number}");
            beside.bucket(&entity, "gpt-4", 0, &[]).await;
        }
        let recorder = Recorder::default();
        let refusing = over(embedded.http_client(), refusal);
        let client = Embedded::client_over(over(refusing, recorder.clone()));
        Refusing {
            world: World::before_first_use(client),
            beside,
            recorder,
        }
    }

    /// Applies with at most so many batches under way.
    async fn apply(&self, yaml: &str, concurrency: usize) -> ApplyReport {
        let world = &self.world;
        let plan = world.plan(&manifest(yaml)).await;
        let guarded = plan.guard(&Policy::strict(ManifestOwner::Cli));
        let guarded = guarded.expect("no guard");
        let mut options = World::options();
        options.fanout.concurrency = concurrency;
        let (store, clock) = (&world.store, &world.clock);
        let report = reconcile::apply(store, clock, &guarded, &options, &()).await;
        report.expect("an apply")
    }

    /// How many buckets show a mode.
    async fn showing(&self, mode: &str) -> usize {
        let dump = self.beside.dump().await;
        let mut showing = 0;
        for (_, item) in dump.into_iter().filter(|((_, sk), _)| sk == "#STATE") {
            let shown = match (item.contains_key("disabled"), item.contains_key("bypass")) {
                (true, false) => "disabled",
                (false, true) => "bypass",
                (false, false) => "enforce",
                (true, true) => "both",
            };
            showing += usize::from(shown == mode);
        }
        showing
    }

    /// Stamps that were sent one by one.
    fn single_stamps(&self) -> usize {
        let all = self.recorder.requests();
        let is_stamp = |request: &&Request| {
            request.operation == "UpdateItem" && request.body.to_string().contains("/BUCKET#")
        };
        all.iter().filter(is_stamp).count()
    }

    fn batches(&self) -> usize {
        self.recorder.count("BatchExecuteStatement")
    }
}

/// Applies, and asserts that every bucket was stamped, each by a request of its own.
async fn stamps_singly(refusal: Refusal, concurrency: usize) -> Refusing {
    let refusing = Refusing::new(refusal).await;
    let stop = "resources: { gpt-4: { disabled: true } }";
    let report = refusing.apply(stop, concurrency).await;
    assert_eq!(report.errors, Vec::<String>::new(), "{refusal:?}");
    assert_eq!((report.status, report.pending), (Status::Applied, 0));
    assert_eq!(report.stamped, BUCKETS as u64, "{refusal:?}");
    assert_eq!(refusing.single_stamps(), BUCKETS, "{refusal:?}");
    assert_eq!(refusing.showing("disabled").await, BUCKETS, "{refusal:?}");
    let plan = refusing.beside.plan(&manifest(stop)).await;
    assert!(plan.is_empty(), "{refusal:?}: {plan:#?}");
    refusing
}

/// Whatever is applied later, by the same store.
async fn never_asks_again(refusing: &Refusing, refusal: Refusal) {
    refusing.recorder.clear();
    let bypass = "resources: { gpt-4: { disabled: bypass } }";
    let report = refusing.apply(bypass, 16).await;
    assert_eq!(report.errors, Vec::<String>::new(), "{refusal:?}");
    assert_eq!(refusing.showing("bypass").await, BUCKETS, "{refusal:?}");
    let sent = (refusing.batches(), refusing.single_stamps());
    assert_eq!(sent, (0, BUCKETS), "{refusal:?}");
}

async fn one_refusal_is_enough(refusal: Refusal) {
    let refusing = stamps_singly(refusal, 1).await;
    assert_eq!(refusing.batches(), 1, "{refusal:?}");
    never_asks_again(&refusing, refusal).await;
}

#[tokio::test]
async fn where_batches_are_refused_every_bucket_is_stamped_by_itself_and_no_batch_is_tried_again() {
    for refusal in REFUSALS {
        if matches!(refusal, Refusal::Request(_)) {
            one_refusal_is_enough(refusal).await;
        }
    }
}

#[tokio::test]
async fn where_every_statement_of_a_batch_is_denied_batches_are_given_up_too() {
    one_refusal_is_enough(EVERY_STATEMENT).await;
}

/// What was under way when the first batch was refused is refused too, and nothing after it.
#[tokio::test]
async fn batches_under_way_at_the_first_refusal_are_stamped_singly_as_well() {
    for refusal in REFUSALS {
        let refusing = stamps_singly(refusal, 16).await;
        let batches = refusing.batches();
        assert!((1..=3).contains(&batches), "{refusal:?}: {batches}");
        never_asks_again(&refusing, refusal).await;
    }
}

/// A lone denial among statements that are answered is that bucket's own, and batches go on.
#[derive(Debug, Clone, Copy)]
struct DeniesOne;

const DENIED: &str = "/BUCKET#e7#";

impl Layer for DeniesOne {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        let read = Request::read(&request);
        if read.operation != "BatchExecuteStatement" {
            return next.call(request);
        }
        let statements = read.body["Statements"].as_array().cloned();
        let is_it = |statement: &Value| statement.to_string().contains(DENIED);
        let Some(at) = statements.unwrap_or_default().iter().position(is_it) else {
            return next.call(request);
        };
        let answer = next.call(request);
        HttpConnectorFuture::new(async move {
            let answer = answer.await?;
            let body = answer.body().bytes().expect("an answer in memory");
            let mut body: Value = serde_json::from_slice(body).expect("JSON");
            body["Responses"][at] = json!({ "Error": { "Code": "AccessDenied", "Message": "no" } });
            let body = SdkBody::from(body.to_string());
            Ok(HttpResponse::new(answer.status(), body))
        })
    }
}

#[tokio::test]
async fn a_statement_that_is_denied_among_others_is_a_failure_of_its_own() {
    let refusing = Refusing::new(DeniesOne).await;
    let stop = "resources: { gpt-4: { disabled: true } }";
    let report = refusing.apply(stop, 1).await;
    assert_eq!((report.status, report.pending), (Status::Partial, 1));
    let ran = &report.fanouts[0];
    assert_eq!((ran.failed, ran.samples.len()), (1, 1), "{ran:#?}");
    assert!(ran.samples[0].contains(DENIED), "{ran:#?}");
    assert_eq!(ran.stamped, BUCKETS as u64 - 1);
    assert_eq!((refusing.batches(), refusing.single_stamps()), (3, 0));
}
