//! The Lambda function: the environment becomes options, events go to the library.
//!
//! The runtime decodes nothing: an event goes to the library as it came, so that none fails before it
//! can be answered.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a function's metrics are lines on stdout, and why it does not start is one on stderr"
)]

use lambda_runtime::{Error, LambdaEvent, service_fn};
use mimalloc::MiMalloc;
use serde_json::value::RawValue;
use std::env::{self, VarError};
use std::fmt;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use zae_limits::clock::Clock;
use zae_limits::lambda::{Event, Function, Invocation, Options, Tables, log};
use zae_limits::model::EpochMs;
use zae_limits::store::Connection;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

// Two threads at least: one has to keep the time while the other works.
#[tokio::main(worker_threads = 2)]
async fn serve() -> Result<(), Error> {
    let level = log_level("AWS_LAMBDA_LOG_LEVEL")?.or(log_level("LOG_LEVEL")?);
    let level = level.unwrap_or(tracing::Level::INFO);
    tracing::subscriber::set_global_default(log::subscriber(level, std::io::stdout))?;
    std::panic::set_hook(Box::new(log::panicked));
    let defaults = Options::default();
    let options = Options {
        table: given("TABLE_NAME")?,
        root: given("MANIFEST_ROOT")?
            .or(given("LAMBDA_TASK_ROOT")?)
            .map(PathBuf::from),
        budget: time_budget("TIME_BUDGET_SECONDS")?.unwrap_or(defaults.budget),
        fanout: defaults.fanout,
    };
    let tables = Tables::connecting(Connection::default());
    let function = Function::new(options, tables, Clock::system(), |line| println!("{line}"))?;
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Box<RawValue>>| {
        let function = function.clone();
        async move {
            let invocation = Invocation {
                request_id: event.context.request_id,
                deadline: Some(EpochMs(event.context.deadline)),
            };
            function
                .handle(Event::read(&event.payload), invocation)
                .await
        }
    }))
    .await
}

/// A variable that is set, and to something.
fn given(name: &str) -> Result<Option<String>, Error> {
    match env::var(name) {
        Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(text)) => Err(unusable(name, &text, "text in UTF-8")),
    }
}

/// What is set and means nothing stops the function before its first event: a value that is not the
/// one meant would only show when it matters.
fn unusable(name: &str, found: impl fmt::Debug, wanted: &str) -> Error {
    format!("{name} is {found:?}: set it to {wanted}, or not at all").into()
}

fn time_budget(name: &str) -> Result<Option<Duration>, Error> {
    let Some(text) = given(name)? else {
        return Ok(None);
    };
    let seconds: NonZeroU64 = text
        .parse()
        .map_err(|_| unusable(name, &text, "a whole number of seconds, such as 300"))?;
    Ok(Some(Duration::from_secs(seconds.get())))
}

fn log_level(name: &str) -> Result<Option<tracing::Level>, Error> {
    let Some(text) = given(name)? else {
        return Ok(None);
    };
    // Lambda's own name for what is above an error, which nothing here is.
    if text.eq_ignore_ascii_case("fatal") {
        return Ok(Some(tracing::Level::ERROR));
    }
    let level = text.parse();
    let level = level.map_err(|_| unusable(name, &text, "trace, debug, info, warn or error"))?;
    Ok(Some(level))
}
