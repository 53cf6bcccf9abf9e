//! The Lambda function: the environment becomes options, events go to the library.
//!
//! The runtime decodes nothing: an event goes to the library as it came, so that none fails before it
//! can be answered.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::value::RawValue;
use std::env;
use std::str::FromStr;
use std::time::Duration;
use zae_limits::clock::Clock;
use zae_limits::lambda::{Event, Function, Invocation, Options, Tables, log};
use zae_limits::model::EpochMs;
use zae_limits::store::Connection;

// Two threads at least: one has to keep the time while the other works.
#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Error> {
    let level = given("AWS_LAMBDA_LOG_LEVEL").or(given("LOG_LEVEL"));
    let level = level.unwrap_or(tracing::Level::INFO);
    tracing::subscriber::set_global_default(log::subscriber(level, std::io::stdout))?;
    std::panic::set_hook(Box::new(log::panicked));
    let defaults = Options::default();
    let options = Options {
        table: given("TABLE_NAME"),
        root: given("MANIFEST_ROOT").or(given("LAMBDA_TASK_ROOT")),
        budget: given("TIME_BUDGET_SECONDS").map_or(defaults.budget, Duration::from_secs),
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

fn given<T: FromStr>(name: &str) -> Option<T> {
    let text = env::var(name).ok().filter(|text| !text.is_empty())?;
    text.parse().ok()
}
