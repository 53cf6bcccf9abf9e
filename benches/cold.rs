//! The function from its start to its first answer, and its size. A runtime of its own hands the process one event,
//! a plan of a small manifest, over a table that answers in no time.
//!
//! What is measured is the binary that is deployed, which no bench is built with: `ZAE_LIMITS_BOOTSTRAP` names it.

use crate::figures::Figure;
use crate::front::{self, Behind};
use crate::levels::Levels;
use crate::meter::{Stopwatch, median};
use crate::{Failure, process, world};
use axum::body::{self, Body};
use axum::http::{HeaderValue, Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use std::env;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How often the function is started. Odd, so that the median is one of them.
const STARTS: usize = 21;
/// More than any answer here.
const LARGEST_BODY: usize = 1 << 20;
/// How long anything here may take.
const PATIENCE: Duration = Duration::from_secs(10);
const MIB: f64 = 1024.0 * 1024.0;

/// Prints the figures, or says why there are none.
pub async fn measure() -> Result<(), Failure> {
    let Ok(bootstrap) = env::var("ZAE_LIMITS_BOOTSTRAP") else {
        eprintln!(
            "cold starts are left out: set ZAE_LIMITS_BOOTSTRAP to the function, as `cargo build --release \
             --no-default-features --features lambda --bin limits-provisioner` makes it"
        );
        return Ok(());
    };
    let bootstrap = Path::new(&bootstrap);
    let manifest = world::switch(false)?;
    let levels = Levels::applied(&process::stand_in_namespace()?, &manifest)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let table = format!("http://{}", listener.local_addr()?);
    tokio::spawn(front::serve(
        Behind::Levels(levels),
        Duration::ZERO,
        listener,
        std::future::pending(),
    ));
    let event = json!({ "action": "plan", "table_name": world::TABLE, "manifest": manifest.canonical_json() });
    let event = Arc::from(event.to_string());
    let (mut ready, mut answered) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let mut runtime = Runtime::start(&event).await?;
        let stopwatch = Stopwatch::start()?;
        let _function = Function::start(bootstrap, &runtime.address, &table)?;
        runtime.asked().await?;
        ready.push(stopwatch.stop()?.wall.as_secs_f64() * 1e3);
        runtime.answered().await?;
        answered.push(stopwatch.stop()?.wall.as_secs_f64() * 1e3);
    }
    let ready = Figure::new("cold start, to asking for an event", "ms", median(ready));
    println!("{ready}");
    let answered = Figure::new("cold start, to the first answer", "ms", median(answered));
    println!("{}", answered.at_most(30.0));
    let size = fs::metadata(bootstrap)?.len() as f64 / MIB;
    println!("{}", Figure::new("the function's binary", "MiB", size));
    match deflated(bootstrap) {
        Ok(bytes) => println!(
            "{}",
            Figure::new("deflated", "MiB", bytes as f64 / MIB).at_most(8.0)
        ),
        Err(reason) => eprintln!("its deflated size is left out: gzip: {reason}"),
    }
    Ok(())
}

/// A zip's only member is as large as this, and its frame a few hundred bytes.
fn deflated(file: &Path) -> Result<usize, Failure> {
    let output = Command::new("gzip").args(["-9", "-c"]).arg(file).output()?;
    match output.status.success() {
        true => Ok(output.stdout.len()),
        false => Err(output.status.to_string().into()),
    }
}

/// A process that ends with its round.
struct Function(Child);

impl Function {
    fn start(bootstrap: &Path, runtime: &str, table: &str) -> Result<Function, Failure> {
        let mut command = Command::new(bootstrap);
        command
            .env_clear()
            .env("AWS_LAMBDA_RUNTIME_API", runtime)
            .env("AWS_LAMBDA_FUNCTION_NAME", "limits")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "1")
            .env("AWS_LAMBDA_LOG_GROUP_NAME", "logs")
            .env("AWS_LAMBDA_LOG_STREAM_NAME", "logs")
            .env("AWS_ENDPOINT_URL_DYNAMODB", table)
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "any")
            .env("AWS_SECRET_ACCESS_KEY", "any")
            .env("TABLE_NAME", world::TABLE)
            .stdout(Stdio::null());
        Ok(Function(command.spawn()?))
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lambda's side for one start: hands the same event to whoever asks, and says what it hears.
struct Runtime {
    address: String,
    asked: mpsc::UnboundedReceiver<()>,
    told: mpsc::UnboundedReceiver<(String, Value)>,
    serving: JoinHandle<()>,
}

impl Runtime {
    async fn start(event: &Arc<str>) -> Result<Runtime, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let (ask, asked) = mpsc::unbounded_channel();
        let (tell, told) = mpsc::unbounded_channel();
        let event = event.clone();
        let app = axum::Router::new().fallback(move |request: Request<Body>| {
            let (event, ask, tell) = (event.clone(), ask.clone(), tell.clone());
            async move {
                let (head, body) = request.into_parts();
                if head.method == Method::GET {
                    let _ = ask.send(());
                    return invocation(&event);
                }
                let body = body::to_bytes(body, LARGEST_BODY).await;
                let body = serde_json::from_slice(&body.unwrap_or_default());
                let _ = tell.send((head.uri.path().to_owned(), body.unwrap_or_default()));
                status(StatusCode::ACCEPTED)
            }
        });
        let serving = tokio::spawn(async move {
            // It ends with the round; a failure before that shows as an answer that never comes.
            let _ = axum::serve(listener, app).await;
        });
        Ok(Runtime {
            address,
            asked,
            told,
            serving,
        })
    }

    async fn asked(&mut self) -> Result<(), Failure> {
        let asked = tokio::time::timeout(PATIENCE, self.asked.recv());
        asked.await?.ok_or_else(|| "the runtime ended".into())
    }

    /// Waits for the answer, which must be a plan without changes.
    async fn answered(&mut self) -> Result<(), Failure> {
        let told = tokio::time::timeout(PATIENCE, self.told.recv());
        let (path, body) = told.await?.ok_or("the runtime ended")?;
        match path.ends_with("/response") && body["changes"] == json!([]) {
            true => Ok(()),
            false => Err(format!("no plan without changes: {path} {body}").into()),
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn invocation(event: &str) -> Response<Body> {
    let mut answer = Response::new(Body::from(event.to_owned()));
    // A deadline in 1970, which the function takes for unknown.
    for (name, value) in [
        ("lambda-runtime-aws-request-id", "1"),
        ("lambda-runtime-deadline-ms", "600000"),
        ("lambda-runtime-invoked-function-arn", "function-arn"),
    ] {
        let value = HeaderValue::from_static(value);
        answer.headers_mut().insert(name, value);
    }
    answer
}

fn status(code: StatusCode) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = code;
    answer
}
