//! The embedded database: an SDK transport that answers in this process, from memory or from one file.
//!
//! The engine (`dynoxide`) is DynamoDB's operations over SQLite. [`Embedded::http_client`] takes the place of
//! the HTTPS client below the SDK, so everything above it, retries and error types included, is the code that
//! talks to AWS. Requests are not signed and no environment is read.
//!
//! The engine is one mutex around one SQLite connection, and it blocks. Calls are made on the task that polls
//! the request: of the 68 µs of a small GetItem half are the SDK's, and handing the other half to another thread
//! makes it 107 µs (`spawn_blocking`) or 126 µs (`block_in_place`, which a single-threaded runtime refuses). The
//! longest calls are pages of a query, some 25 µs an item. After every request the task yields once, so a timer
//! or Ctrl-C in the same runtime is served between any two requests.
//!
//! A file is in WAL mode with `synchronous = NORMAL`: a crash of the process loses nothing, a power cut may
//! lose the last writes but never damages the file. Two processes may use one file: reads pass, each write takes
//! SQLite's lock, and a process waits up to five seconds for it, six while opening, and then fails with
//! [`StoreError::EmbeddedLocked`].
//!
//! Not here: tables and their records (`create`), serving over HTTP (`serve`). Expired items stay until
//! someone sweeps them, there are no transaction conflicts, no throttling and no stale index reads.

use super::connect::Patience;
use super::error::StoreError;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, HttpClient, Region};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// The region every embedded table is in. It is part of no key and no answer.
pub const REGION: &str = "local";

/// How long opening a file may take, a lock that another process holds included.
const OPENING: Duration = Duration::from_secs(6);

/// An embedded database. Clones share it; it closes with the last of them and of the clients made from them.
#[derive(Clone)]
pub struct Embedded {
    database: Database,
    path: Option<PathBuf>,
}

impl Embedded {
    /// A database in memory, gone with its last handle.
    ///
    /// # Errors
    /// [`StoreError::EmbeddedOpen`] when SQLite cannot start.
    pub fn memory() -> Result<Embedded, StoreError> {
        let database =
            Database::memory().map_err(|error| open_failed(Path::new(":memory:"), error))?;
        Ok(Embedded {
            database,
            path: None,
        })
    }

    /// The database in a file, created if it is not there. Its folder must exist.
    ///
    /// # Errors
    /// [`StoreError::EmbeddedOpen`] when the file cannot be created, is not such a database, or was written by a
    /// newer engine; [`StoreError::EmbeddedLocked`] when another process holds it.
    pub fn file(path: &Path) -> Result<Embedded, StoreError> {
        let text = path.to_str().ok_or_else(|| StoreError::EmbeddedOpen {
            path: path.to_owned(),
            reason: "the path is not UTF-8".to_owned(),
            remedy: "choose another path",
        })?;
        let database = open_in_time(path, text.to_owned())?;
        // The engine opens at SQLite's default, FULL, an fsync a write: a batch of 25 puts takes 56 ms in place of
        // 6. This call is its only way to say NORMAL; the other settings it makes are in force already.
        database
            .disable_bulk_loading()
            .map_err(|error| open_failed(path, error))?;
        Ok(Embedded {
            database,
            path: Some(path.to_owned()),
        })
    }

    /// The transport: give it to an SDK client, or wrap it first.
    pub fn http_client(&self) -> SharedHttpClient {
        SharedHttpClient::new(Transport(SharedHttpConnector::new(self.clone())))
    }

    /// A client of this database.
    pub fn client(&self) -> Client {
        Embedded::client_over(self.http_client())
    }

    /// A client of an embedded database reached through another transport, such as one that injects faults.
    pub fn client_over(transport: impl HttpClient + 'static) -> Client {
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static(REGION))
            .endpoint_url("http://embedded.invalid")
            .allow_no_auth()
            .http_client(transport);
        Client::from_conf(Patience::default().set(config).build())
    }

    /// The file, or `memory`: what [`super::Place::host`] says of this database.
    pub fn host(&self) -> String {
        match &self.path {
            Some(path) => path.display().to_string(),
            None => "memory".to_owned(),
        }
    }

    /// The engine itself, for the server.
    pub(super) fn database(&self) -> Database {
        self.database.clone()
    }

    fn answer(&self, request: &HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let operation =
            operation(request).ok_or_else(|| refused("the request names no DynamoDB operation"))?;
        let body = request
            .body()
            .bytes()
            .ok_or_else(|| refused("the request's body is a stream"))?;
        let (status, answer) = match dispatch(&self.database, operation, body) {
            Ok(answer) => (200, answer),
            Err(error) if is_locked(&error) => {
                let path = self.path.clone().unwrap_or_default();
                return Err(ConnectorError::other(
                    Box::new(StoreError::EmbeddedLocked { path }),
                    None,
                ));
            }
            Err(error) => (error.status_code(), error.to_json().into_bytes()),
        };
        let status = status
            .try_into()
            .map_err(|error| ConnectorError::other(Box::new(error), None))?;
        Ok(HttpResponse::new(status, SdkBody::from(answer)))
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Embedded").field(&self.host()).finish()
    }
}

impl HttpConnector for Embedded {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let embedded = self.clone();
        HttpConnectorFuture::new(async move {
            let answer = embedded.answer(&request);
            tokio::task::yield_now().await;
            answer
        })
    }
}

#[derive(Debug)]
struct Transport(SharedHttpConnector);

impl HttpClient for Transport {
    fn http_connector(
        &self,
        _: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        self.0.clone()
    }
}

/// The operation a request asks for: the part of `X-Amz-Target` after the API's version.
pub(super) fn operation(request: &HttpRequest) -> Option<&str> {
    request
        .headers()
        .get("x-amz-target")?
        .split_once('.')
        .map(|(_, operation)| operation)
}

fn refused(reason: &'static str) -> ConnectorError {
    ConnectorError::user(reason.into())
}

/// The engine waits half a minute for the lock while it opens a file, and takes no other time. So it opens on
/// a thread that is left to itself when that takes too long: it ends with the engine's own patience.
fn open_in_time(path: &Path, text: String) -> Result<Database, StoreError> {
    let (done, opened) = mpsc::channel();
    let opening = std::thread::Builder::new().spawn(move || {
        // Nobody listens any more once it has taken too long.
        let _ = done.send(Database::new(&text));
    });
    opening.map_err(|error| StoreError::EmbeddedOpen {
        path: path.to_owned(),
        reason: error.to_string(),
        remedy: "free some memory or processes, then run this again",
    })?;
    match opened.recv_timeout(OPENING) {
        Ok(database) => database.map_err(|error| open_failed(path, error)),
        Err(_) => Err(StoreError::EmbeddedLocked {
            path: path.to_owned(),
        }),
    }
}

fn open_failed(path: &Path, error: DynoxideError) -> StoreError {
    let reason = error.to_string();
    if is_locked(&error) {
        return StoreError::EmbeddedLocked {
            path: path.to_owned(),
        };
    }
    let (reason, remedy) = if reason.contains("not a valid SQLite database") {
        ("it is a file of another kind", "choose another path")
    } else {
        let reason = reason.strip_prefix("Internal error: ").unwrap_or(&reason);
        (
            reason,
            "check that its folder exists and is writable, or choose another path",
        )
    };
    StoreError::EmbeddedOpen {
        path: path.to_owned(),
        reason: reason.to_owned(),
        remedy,
    }
}

/// SQLite's "busy" and "locked" reach us as text only: the engine wraps them in two error types, one of them private.
fn is_locked(error: &DynoxideError) -> bool {
    error.status_code() == 500 && error.to_string().contains("locked")
}

/// Runs one operation of the low-level API. The engine has such a function only inside its HTTP server.
fn dispatch(db: &Database, operation: &str, body: &[u8]) -> dynoxide::Result<Vec<u8>> {
    match operation {
        "GetItem" => run(body, |request| db.get_item(request)),
        "PutItem" => run(body, |request| db.put_item(request)),
        "UpdateItem" => run(body, |request| db.update_item(request)),
        "DeleteItem" => run(body, |request| db.delete_item(request)),
        "Query" => run(body, |request| db.query(request)),
        "Scan" => run(body, |request| db.scan(request)),
        "BatchGetItem" => run(body, |request| db.batch_get_item(request)),
        "BatchWriteItem" => run(body, |request| db.batch_write_item(request)),
        "TransactGetItems" => run(body, |request| db.transact_get_items(request)),
        "TransactWriteItems" => run(body, |request| db.transact_write_items(request)),
        "ExecuteStatement" => run(body, |request| db.execute_statement(request)),
        "BatchExecuteStatement" => run(body, |request| db.batch_execute_statement(request)),
        "ExecuteTransaction" => run(body, |request| db.execute_transaction(request)),
        "CreateTable" => run(body, |request| db.create_table(request)),
        "DescribeTable" => run(body, |request| db.describe_table(request)),
        "UpdateTable" => run(body, |request| db.update_table(request)),
        "DeleteTable" => run(body, |request| db.delete_table(request)),
        "ListTables" => run(body, |request| db.list_tables(request)),
        "UpdateTimeToLive" => run(body, |request| db.update_time_to_live(request)),
        "DescribeTimeToLive" => run(body, |request| db.describe_time_to_live(request)),
        other => Err(DynoxideError::ValidationException(format!(
            "the embedded database does not serve {other}"
        ))),
    }
}

fn run<Request, Answer>(
    body: &[u8],
    act: impl FnOnce(Request) -> dynoxide::Result<Answer>,
) -> dynoxide::Result<Vec<u8>>
where
    Request: DeserializeOwned,
    Answer: Serialize,
{
    let request = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    serde_json::to_vec(&act(request)?)
        .map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

/// A request the engine refuses while reading it. The SDK builds well-formed requests, so a value in it is not
/// allowed; the engine's readers mark which kind of refusal with a prefix that its server strips.
fn unreadable(error: &serde_json::Error) -> DynoxideError {
    let text = error.to_string();
    let unmarked = [
        "VALIDATION",
        "VALIDATION_REQUEST",
        "VALIDATION_AS_READ",
        "SERIALIZATION",
        "SERIALIZATION_AS_READ",
    ]
    .iter()
    .find_map(|marker| text.strip_prefix(marker)?.strip_prefix(':'))
    .unwrap_or(&text);
    let message = unmarked
        .rsplit_once(" at line ")
        .map_or(unmarked, |(message, _)| message);
    DynoxideError::ValidationException(message.to_owned())
}
