//! Transports for tests: each wraps another one and does one thing to the requests that pass.
//!
//! ```text
//! let recorder = Recorder::default();
//! let transport = over(over(embedded.http_client(), ReadOnly), recorder.clone());
//! let client = Embedded::client_over(transport);
//! ```
//!
//! The last one added sees a request first. They sit below the SDK's retries: a retried request passes, and is
//! counted, again. What is a write is decided by [`Request::is_write`] alone.

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use serde_json::Value;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One request as it passes: the operation and its JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Such as `UpdateItem`.
    pub operation: String,
    /// What DynamoDB is sent.
    pub body: Value,
}

impl Request {
    /// What a request asks for.
    pub fn read(request: &HttpRequest) -> Request {
        let target = request
            .headers()
            .get("x-amz-target")
            .expect("a DynamoDB request");
        let operation = target.rsplit('.').next().unwrap_or(target).to_owned();
        let body = request.body().bytes().expect("a body in memory");
        Request {
            operation,
            body: serde_json::from_slice(body).expect("a JSON body"),
        }
    }

    /// Whether it can change anything. PartiQL changes nothing when every statement is a SELECT.
    pub fn is_write(&self) -> bool {
        match self.operation.as_str() {
            "GetItem" | "BatchGetItem" | "TransactGetItems" | "Query" | "Scan" => false,
            operation if operation.starts_with("Describe") || operation.starts_with("List") => {
                false
            }
            "ExecuteStatement" => !is_select(&self.body),
            "BatchExecuteStatement" => !all_select(&self.body["Statements"]),
            "ExecuteTransaction" => !all_select(&self.body["TransactStatements"]),
            _ => true,
        }
    }
}

fn is_select(statement: &Value) -> bool {
    statement["Statement"]
        .as_str()
        .is_some_and(|text| text.trim_start().to_uppercase().starts_with("SELECT"))
}

fn all_select(statements: &Value) -> bool {
    statements
        .as_array()
        .is_some_and(|all| all.iter().all(is_select))
}

/// What a transport does to a request on its way.
pub trait Layer: Debug + Send + Sync + 'static {
    /// Passes the request to `next`, or answers in its place.
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture;
}

/// `layer` over `inner`.
pub fn over(inner: SharedHttpClient, layer: impl Layer) -> SharedHttpClient {
    SharedHttpClient::new(Layered {
        inner,
        layer: Arc::new(layer),
    })
}

#[derive(Debug)]
struct Layered {
    inner: SharedHttpClient,
    layer: Arc<dyn Layer>,
}

impl HttpClient for Layered {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let next = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(Passing {
            next,
            layer: self.layer.clone(),
        })
    }
}

#[derive(Debug)]
struct Passing {
    next: SharedHttpConnector,
    layer: Arc<dyn Layer>,
}

impl HttpConnector for Passing {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        self.layer.pass(request, &self.next)
    }
}

/// Keeps every request. Clones share what they have seen.
#[derive(Debug, Clone, Default)]
pub struct Recorder(Arc<Mutex<Vec<Request>>>);

impl Recorder {
    /// Every request so far, in the order they were sent.
    pub fn requests(&self) -> Vec<Request> {
        self.seen().clone()
    }

    /// How many requests of one operation.
    pub fn count(&self, operation: &str) -> usize {
        self.seen()
            .iter()
            .filter(|request| request.operation == operation)
            .count()
    }

    /// How many requests that can change something.
    pub fn writes(&self) -> usize {
        self.seen()
            .iter()
            .filter(|request| request.is_write())
            .count()
    }

    /// Forgets them.
    pub fn clear(&self) {
        self.seen().clear();
    }

    fn seen(&self) -> MutexGuard<'_, Vec<Request>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Layer for Recorder {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        self.seen().push(Request::read(&request));
        next.call(request)
    }
}

/// Denies every write, as a role without write permissions would.
#[derive(Debug, Clone, Copy)]
pub struct ReadOnly;

impl Layer for ReadOnly {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        let read = Request::read(&request);
        if !read.is_write() {
            return next.call(request);
        }
        let message = format!(
            "no identity-based policy allows dynamodb:{}",
            read.operation
        );
        service_error("com.amazon.coral.service#AccessDeniedException", &message)
    }
}

/// Which requests a [`Fault`] or a [`Throttle`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Every request.
    Requests,
    /// Those that can change something.
    Writes,
}

impl Counted {
    fn includes(self, request: &HttpRequest) -> bool {
        self == Counted::Requests || Request::read(request).is_write()
    }
}

/// Where a failing request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    /// The database never sees it.
    Before,
    /// The database has carried it out; only the answer is lost.
    After,
}

/// Breaks the connection under one request. Clones share the count.
#[derive(Debug, Clone)]
pub struct Fault {
    at: usize,
    counted: Counted,
    landing: Landing,
    for_good: bool,
    passed: Arc<AtomicUsize>,
}

impl Fault {
    /// The k-th request, from 1, loses its connection; the SDK tries again and finds everything well.
    pub fn blip(at: usize, counted: Counted, landing: Landing) -> Fault {
        Fault {
            at,
            counted,
            landing,
            for_good: false,
            passed: Arc::default(),
        }
    }

    /// As if the process died at the k-th request, from 1: it fails, every later one fails, and no retry helps.
    pub fn crash(at: usize, counted: Counted, landing: Landing) -> Fault {
        Fault {
            for_good: true,
            ..Fault::blip(at, counted, landing)
        }
    }

    /// Whether the request that was to fail has been reached.
    pub fn struck(&self) -> bool {
        self.passed.load(Ordering::SeqCst) >= self.at
    }

    fn failure(&self) -> ConnectorError {
        let cause = "the test broke the connection".into();
        if self.for_good {
            ConnectorError::other(cause, None)
        } else {
            ConnectorError::io(cause)
        }
    }
}

impl Layer for Fault {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        if self.for_good && self.struck() {
            return HttpConnectorFuture::ready(Err(self.failure()));
        }
        let counted = self.counted.includes(&request);
        if !counted || self.passed.fetch_add(1, Ordering::SeqCst) + 1 != self.at {
            return next.call(request);
        }
        let failure = self.failure();
        if self.landing == Landing::Before {
            return HttpConnectorFuture::ready(Err(failure));
        }
        let landing = next.call(request);
        HttpConnectorFuture::new(async move {
            landing.await?;
            Err(failure)
        })
    }
}

/// Answers the first requests with "throughput exceeded". Clones share the count.
#[derive(Debug, Clone)]
pub struct Throttle {
    first: usize,
    counted: Counted,
    passed: Arc<AtomicUsize>,
}

impl Throttle {
    /// Refuses the first `first` requests and lets the rest pass.
    pub fn first(first: usize, counted: Counted) -> Throttle {
        Throttle {
            first,
            counted,
            passed: Arc::default(),
        }
    }

    /// Refuses all of them.
    pub fn always(counted: Counted) -> Throttle {
        Throttle::first(usize::MAX, counted)
    }
}

impl Layer for Throttle {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        if !self.counted.includes(&request)
            || self.passed.fetch_add(1, Ordering::SeqCst) >= self.first
        {
            return next.call(request);
        }
        let code = "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException";
        service_error(
            code,
            "The level of configured provisioned throughput for the table was exceeded.",
        )
    }
}

/// Makes every request take longer before it reaches the database.
#[derive(Debug, Clone, Copy)]
pub struct Latency(pub Duration);

impl Layer for Latency {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        let (delay, next) = (self.0, next.clone());
        HttpConnectorFuture::new(async move {
            tokio::time::sleep(delay).await;
            next.call(request).await
        })
    }
}

/// An error as the service words it.
pub fn service_error(code: &str, message: &str) -> HttpConnectorFuture {
    let body = serde_json::json!({ "__type": code, "message": message }).to_string();
    let status = 400.try_into().expect("a status");
    HttpConnectorFuture::ready(Ok(HttpResponse::new(status, SdkBody::from(body))))
}

mod tests {
    use super::*;
    use aws_sdk_dynamodb::Client;
    use aws_sdk_dynamodb::types::AttributeValue;
    use zae_limits::store::error::{is_access_denied, is_throttling};
    use zae_limits::store::{Embedded, Patience, StoreError, create_table};

    const TABLE: &str = "rate-limits";

    async fn database() -> Embedded {
        let embedded = Embedded::memory().expect("memory");
        create_table(&embedded.client(), TABLE, false)
            .await
            .expect("create");
        embedded
    }

    fn key(id: &str) -> AttributeValue {
        AttributeValue::S(id.to_owned())
    }

    async fn put(client: &Client, id: &str) -> Result<(), StoreError> {
        let put = client
            .put_item()
            .table_name(TABLE)
            .item("PK", key(id))
            .item("SK", key("x"));
        put.send()
            .await
            .map(drop)
            .map_err(|error| StoreError::from_sdk("put", error))
    }

    async fn exists(client: &Client, id: &str) -> bool {
        let get = client
            .get_item()
            .table_name(TABLE)
            .key("PK", key(id))
            .key("SK", key("x"));
        get.send().await.expect("get").item.is_some()
    }

    #[tokio::test]
    async fn a_recorder_keeps_operations_bodies_and_the_count_of_writes() {
        let recorder = Recorder::default();
        let client = Embedded::client_over(over(database().await.http_client(), recorder.clone()));
        put(&client, "a").await.expect("put");
        assert!(exists(&client, "a").await);
        assert!(!exists(&client, "b").await);

        assert_eq!(
            (
                recorder.writes(),
                recorder.count("GetItem"),
                recorder.requests().len()
            ),
            (1, 2, 3)
        );
        let first = &recorder.requests()[0];
        assert_eq!(
            (first.operation.as_str(), &first.body["Item"]["PK"]["S"]),
            ("PutItem", &Value::from("a"))
        );
        recorder.clear();
        assert_eq!(recorder.requests(), []);
    }

    #[test]
    fn a_partiql_batch_of_selects_is_no_write() {
        let batch = |statements: &[&str]| Request {
            operation: "BatchExecuteStatement".to_owned(),
            body: serde_json::json!({
                "Statements": statements.iter().map(|text| serde_json::json!({ "Statement": text })).collect::<Vec<_>>(),
            }),
        };
        assert!(!batch(&["SELECT * FROM t", "select a from t"]).is_write());
        assert!(batch(&["SELECT * FROM t", "UPDATE t SET a=1"]).is_write());
    }

    #[tokio::test]
    async fn a_read_only_transport_denies_writes_at_once_and_passes_reads() {
        let recorder = Recorder::default();
        let embedded = database().await;
        let client = Embedded::client_over(over(
            over(embedded.http_client(), ReadOnly),
            recorder.clone(),
        ));
        let error = client
            .put_item()
            .table_name(TABLE)
            .item("PK", key("a"))
            .item("SK", key("x"))
            .send()
            .await;
        assert!(is_access_denied(&error.expect_err("denied")));
        assert_eq!(recorder.writes(), 1, "not retried");
        assert!(!exists(&client, "a").await);
    }

    #[tokio::test]
    async fn a_crash_before_landing_leaves_nothing_and_nothing_later_lands() {
        let embedded = database().await;
        let crash = Fault::crash(2, Counted::Writes, Landing::Before);
        let client = Embedded::client_over(over(embedded.http_client(), crash.clone()));
        put(&client, "a").await.expect("the first lands");
        assert!(exists(&client, "a").await, "reads are not counted");
        assert!(!crash.struck());
        put(&client, "b").await.expect_err("the second does not");
        assert!(crash.struck());
        put(&client, "c")
            .await
            .expect_err("and the process is dead");

        let after = embedded.client();
        assert_eq!(
            (
                exists(&after, "a").await,
                exists(&after, "b").await,
                exists(&after, "c").await
            ),
            (true, false, false)
        );
    }

    #[tokio::test]
    async fn a_crash_after_landing_leaves_the_write() {
        let embedded = database().await;
        let client = Embedded::client_over(over(
            embedded.http_client(),
            Fault::crash(1, Counted::Writes, Landing::After),
        ));
        put(&client, "a").await.expect_err("the answer is lost");
        assert!(exists(&embedded.client(), "a").await);
    }

    #[tokio::test]
    async fn a_blip_is_retried_and_a_write_whose_answer_was_lost_lands_twice() {
        for (landing, landed) in [(Landing::Before, 1), (Landing::After, 2)] {
            let (inner, outer) = (Recorder::default(), Recorder::default());
            let recorded = over(database().await.http_client(), inner.clone());
            let blip = over(recorded, Fault::blip(1, Counted::Requests, landing));
            let client = Embedded::client_over(over(blip, outer.clone()));
            put(&client, "a").await.expect("the retry lands");
            assert_eq!((outer.writes(), inner.writes()), (2, landed), "{landing:?}");
        }
    }

    #[tokio::test]
    async fn a_throttled_write_is_retried_until_it_passes() {
        let recorder = Recorder::default();
        let throttled = over(
            database().await.http_client(),
            Throttle::first(2, Counted::Writes),
        );
        let client = Embedded::client_over(over(throttled, recorder.clone()));
        put(&client, "a").await.expect("the third attempt");
        assert_eq!(recorder.writes(), 3);
        assert!(exists(&client, "a").await);
    }

    #[tokio::test]
    async fn an_early_refusal_does_not_slow_the_rest_to_a_crawl() {
        let throttled = over(
            database().await.http_client(),
            Throttle::first(1, Counted::Writes),
        );
        let client = Embedded::client_over(throttled);
        let started = tokio::time::Instant::now();
        for n in 0..50 {
            put(&client, &format!("k{n}")).await.expect("put");
        }
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "{:?}",
            started.elapsed()
        );
    }

    #[tokio::test]
    async fn a_write_that_stays_throttled_says_so() {
        let client = Embedded::client_over(over(
            database().await.http_client(),
            Throttle::always(Counted::Writes),
        ));
        let twice = Patience {
            attempts: 2,
            ..Patience::default()
        };
        let put = client
            .put_item()
            .table_name(TABLE)
            .item("PK", key("a"))
            .item("SK", key("x"));
        let error = put
            .customize()
            .config_override(twice.overriding())
            .send()
            .await
            .expect_err("throttled");
        assert!(is_throttling(&error));
        insta::assert_snapshot!(
            StoreError::from_sdk("stamp a bucket", error),
            @"could not stamp a bucket: still throttled after every retry (ProvisionedThroughputExceededException): wait and run it again, or raise the capacity of the table"
        );
    }
}
