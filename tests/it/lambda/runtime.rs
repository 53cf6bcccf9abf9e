//! The binary itself, between a runtime that hands it events and a sink for its answers.
//!
//! The runtime here is what `cargo lambda watch` is: its deadline is in 1970 and its ARN is none.

use super::rig::{STACK, TABLE, well_formed};
use super::sink::{Put, Sink, read};
use crate::world::World;
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};
use zae_limits::store::{Embedded, serve};

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Runtime {
    events: mpsc::Sender<String>,
    told: mpsc::Receiver<Put>,
    address: String,
}

impl Runtime {
    async fn start() -> Runtime {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (events, queue) = mpsc::channel(1);
        let (tell, told) = mpsc::channel(1);
        let queue = Arc::new(Mutex::new(queue));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(exchange(stream, queue.clone(), tell.clone()));
            }
        });
        Runtime {
            events,
            told,
            address,
        }
    }

    /// Hands an event over, and gives what the runtime is told of it.
    async fn hand(&mut self, event: String) -> Put {
        self.events.send(event).await.expect("someone asks");
        let told = tokio::time::timeout(Duration::from_secs(30), self.told.recv());
        told.await.expect("in time").expect("something")
    }
}

async fn exchange(
    mut stream: TcpStream,
    events: Arc<Mutex<mpsc::Receiver<String>>>,
    tell: mpsc::Sender<Put>,
) {
    let Some(request) = read(&mut stream).await else {
        return;
    };
    let answer = if request.line.starts_with("GET ") {
        let Some(event) = events.lock().await.recv().await else {
            return;
        };
        format!(
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\
             lambda-runtime-aws-request-id: 1\r\nlambda-runtime-deadline-ms: 600000\r\n\
             lambda-runtime-invoked-function-arn: function-arn\r\n\r\n{event}",
            event.len()
        )
    } else {
        tell.send(request).await.expect("someone listens");
        "HTTP/1.1 202 Accepted\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".to_owned()
    };
    let _ = stream.write_all(answer.as_bytes()).await;
}

fn function(runtime: &Runtime, database: &str) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_limits-provisioner"));
    command
        .env_clear()
        .env("AWS_LAMBDA_RUNTIME_API", &runtime.address)
        .env("AWS_LAMBDA_FUNCTION_NAME", "limits")
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")
        .env("AWS_LAMBDA_FUNCTION_VERSION", "1")
        .env("AWS_LAMBDA_LOG_GROUP_NAME", "logs")
        .env("AWS_LAMBDA_LOG_STREAM_NAME", "logs")
        .env("AWS_ENDPOINT_URL_DYNAMODB", database)
        .env("AWS_REGION", "local")
        .env("AWS_ACCESS_KEY_ID", "local")
        .env("AWS_SECRET_ACCESS_KEY", "local")
        .env("TABLE_NAME", TABLE)
        // Lambda's own, and one that is set to nothing: both are taken.
        .env("AWS_LAMBDA_LOG_LEVEL", "FATAL")
        .env("TIME_BUDGET_SECONDS", "")
        .stdout(Stdio::null());
    Process(command.spawn().expect("a process"))
}

fn create(sink: &Sink, properties: &str) -> String {
    let url = sink.url();
    format!(
        r#"{{"RequestType": "Create", "ResponseURL": "{url}", "StackId": "{STACK}", "RequestId": "r-1",
            "LogicalResourceId": "Limits", "ResourceProperties": {properties}}}"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn an_emulators_event_and_one_that_cannot_be_decoded_are_answered() {
    let embedded = Embedded::memory().expect("an embedded database");
    let _world = World::over(embedded.client()).await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let served = serve(&embedded, listener, std::future::pending()).expect("a server");
    let sink = Sink::start().await;
    let mut runtime = Runtime::start().await;
    let _function = function(&runtime, &served.url());
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    for (properties, status, reason) in [
        (deep.as_str(), "FAILED", Some("cannot be read")),
        (
            r#"{"Namespace": "\ud800"}"#,
            "FAILED",
            Some("cannot be read"),
        ),
        (
            r#"{"Namespace": "tenant-alpha", "Resources": {"gpt-4": {"Disabled": "true"}}}"#,
            "SUCCESS",
            None,
        ),
    ] {
        let told = runtime.hand(create(&sink, properties)).await;
        assert!(
            told.line.contains("/invocation/1/response"),
            "{}",
            told.line
        );
        let puts = sink.take();
        assert_eq!(puts.len(), 1, "{puts:#?}");
        let event = json!({"StackId": STACK, "RequestId": "r-1", "LogicalResourceId": "Limits"});
        let body = well_formed(&event, &puts[0]);
        assert_eq!(body["Status"], status, "{body}");
        let said = body["Reason"].as_str();
        assert!(
            said.unwrap_or_default()
                .contains(reason.unwrap_or_default()),
            "{body}"
        );
        let told: Value = serde_json::from_slice(&told.body).expect("JSON");
        assert_eq!(told, body);
    }
}

#[test]
fn a_setting_that_means_nothing_is_refused_before_the_first_event() {
    for (name, value, said) in [
        (
            "TIME_BUDGET_SECONDS",
            "5m",
            r#"error: TIME_BUDGET_SECONDS is "5m": set it to a whole number of seconds, such as 300, or not at all"#,
        ),
        (
            "TIME_BUDGET_SECONDS",
            "0",
            r#"error: TIME_BUDGET_SECONDS is "0": set it to a whole number of seconds, such as 300, or not at all"#,
        ),
        (
            "LOG_LEVEL",
            "loud",
            r#"error: LOG_LEVEL is "loud": set it to trace, debug, info, warn or error, or not at all"#,
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_limits-provisioner"));
        let output = command.env_clear().env(name, value).output();
        let output = output.expect("the binary runs");
        assert_eq!(output.status.code(), Some(1), "{name}={value}");
        assert_eq!(String::from_utf8_lossy(&output.stderr).trim_end(), said);
    }
}
