//! The function `limits-provisioner`: CloudFormation's requests and direct invokes.
//!
//! Expected flow: raw JSON comes in, the envelope is lifted, and from there on everything, a panic and a
//! deadline included, ends in exactly one answer.
//!
//! ```text
//! text -> event -> envelope -> request (handle) -> pipeline -> answer -> respond
//!               -> direct invoke (invoke)       -> pipeline -> JSON
//! ```
//!
//! Guarantees: a request with a response URL is answered on every path; once the answer was
//! delivered the runtime is told that all is well, whatever the answer said; a request delivered
//! again reaches the same end and is answered again. No log line holds a response URL, a whole
//! event, or the environment.
//!
//! Caveat: a failure of the process itself (killed, out of memory) is answered by the runtime's
//! retry of the event, not by this code.

mod answer;
mod budget;
mod envelope;
mod event;
mod failure;
mod handle;
mod id;
mod invoke;
pub mod log;
mod metrics;
mod pipeline;
mod respond;
mod resume;
mod source;
mod summary;
mod tables;
mod takeover;

pub use answer::{Answer, MOST_BYTES, Status};
pub use envelope::{Envelope, RequestType};
pub use event::Event;
pub use failure::{Failure, Spelling};
pub use id::{Named, never_created, physical_id};
pub use invoke::ACTIONS;
pub use respond::{RespondError, Responder};
pub use summary::Summary;
pub use tables::Tables;

use crate::clock::Clock;
use crate::fanout::Settings;
use crate::model::EpochMs;
use budget::{Budget, until};
use futures::future::BoxFuture;
use handle::{Done, Fate, Request};
use lambda_runtime::Diagnostic;
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::task::{JoinError, JoinHandle};
use tracing::Instrument;

/// How the function is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// The table of requests that name none.
    pub table: Option<String>,
    /// The folder that bundled manifests are read from, and from nowhere else.
    pub root: Option<PathBuf>,
    /// How long an invocation runs whose deadline is unknown.
    pub budget: Duration,
    /// How fan-outs run, their deadline aside.
    pub fanout: Settings,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            table: None,
            root: None,
            budget: Duration::from_secs(300),
            fanout: Settings::default(),
        }
    }
}

/// What the runtime says about one invocation.
#[derive(Debug, Clone, Default)]
pub struct Invocation {
    /// The runtime's own id of the invocation.
    pub request_id: String,
    /// When the process is stopped; `None` when the runtime does not say.
    pub deadline: Option<EpochMs>,
}

/// Why the runtime is told of an error.
#[derive(Debug, Error)]
pub enum FunctionError {
    /// No answer got through: the runtime's retry is wanted.
    #[error(transparent)]
    Unanswered(#[from] RespondError),
    /// A direct invoke failed. Its caller reads the message.
    #[error(transparent)]
    Invoke(#[from] Failure),
}

impl From<FunctionError> for Diagnostic {
    fn from(error: FunctionError) -> Diagnostic {
        let error_type = match &error {
            FunctionError::Unanswered(_) => "Unanswered",
            FunctionError::Invoke(Failure::Refused(..)) => "Refused",
            FunctionError::Invoke(Failure::Problems(_)) => "BadManifest",
            FunctionError::Invoke(_) => "Failed",
        };
        Diagnostic {
            error_type: error_type.to_owned(),
            error_message: error.to_string(),
        }
    }
}

/// The function. Cheap to clone; clones share the connection.
#[derive(Clone)]
pub struct Function(Arc<Parts>);

struct Parts {
    options: Options,
    tables: Tables,
    clock: Clock,
    responder: Responder,
    emit: Box<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Function").field(&self.0.options).finish()
    }
}

impl Function {
    /// A function. `emit` gets one line of CloudWatch's embedded metric format a request.
    ///
    /// # Errors
    /// [`RespondError::Client`] when TLS cannot be set up.
    pub fn new(
        options: Options,
        tables: Tables,
        clock: Clock,
        emit: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Function, RespondError> {
        Ok(Function(Arc::new(Parts {
            options,
            tables,
            clock,
            responder: Responder::new()?,
            emit: Box::new(emit),
        })))
    }

    /// Handles one event. A CloudFormation request gives back the answer that was delivered.
    ///
    /// # Errors
    /// [`FunctionError`] when CloudFormation could not be answered, or a direct invoke failed.
    pub async fn handle(
        &self,
        event: impl Into<Event>,
        invocation: Invocation,
    ) -> Result<Value, FunctionError> {
        let budget = Budget::new(
            self.clock().now(),
            invocation.deadline,
            self.options().budget,
        );
        match Envelope::lift(event) {
            Ok(envelope) => {
                let span = log::request_span(&envelope, &invocation);
                self.request(envelope, budget).instrument(span).await
            }
            Err(event) => {
                let span = log::invoke_span(&invocation);
                self.invoke(event, budget).instrument(span).await
            }
        }
    }

    async fn request(&self, envelope: Envelope, budget: Budget) -> Result<Value, FunctionError> {
        let fate = Arc::new(Fate::default());
        let (outcome, envelope) = self.work(envelope, budget, &fate).await;
        let created_id = fate.physical_id.get().cloned();
        let (answer, summary) = match &outcome {
            Ok(done) => (
                Answer::success(&envelope, done.physical_id.clone(), &done.summary),
                done.summary.clone(),
            ),
            Err(failure) => {
                let summary = match failure {
                    Failure::Unfinished(summary) => (**summary).clone(),
                    _ => Summary::default(),
                };
                let reason = failure.to_string();
                let answer = Answer::failure(&envelope, &reason, created_id, &summary);
                (answer, summary)
            }
        };
        let namespace = fate.namespace.get().map(String::as_str).unwrap_or_default();
        let duration_ms = self.clock().now().0.saturating_sub(budget.began.0);
        log::outcome(&answer, &summary, namespace, duration_ms);
        self.emit(&metrics::Line {
            kind: &envelope.request_type.to_string(),
            table: outcome_table(&answer),
            namespace,
            summary: &summary,
            succeeded: answer.status() == Status::Success,
            duration_ms,
            oldest_pending: None,
            at: self.clock().now(),
        });
        let Some(url) = &envelope.response_url else {
            tracing::warn!("the event has no usable ResponseURL: nobody is answered");
            return Ok(answer.to_json());
        };
        let within = until(self.clock().now(), budget.answer_until());
        match self.0.responder.deliver(url, &answer, within).await {
            Ok(attempts) => {
                tracing::info!(attempts, "answered");
                Ok(answer.to_json())
            }
            Err(error) => {
                tracing::error!(%error, "not answered");
                Err(error.into())
            }
        }
    }

    /// Does what a request asks for, on a task of its own: its panic is caught here, and it is given
    /// up in time to answer.
    async fn work(
        &self,
        envelope: Envelope,
        budget: Budget,
        fate: &Arc<Fate>,
    ) -> (Result<Done, Failure>, Arc<Envelope>) {
        let envelope = Arc::new(envelope);
        let (function, asked, known) = (self.clone(), envelope.clone(), fate.clone());
        let task = async move {
            let request = Request {
                function: &function,
                envelope: &asked,
                budget,
                fate: &known,
            };
            request.run().await
        };
        (self.guarded(Box::pin(task), budget).await, envelope)
    }

    async fn guarded<T: Send + 'static>(
        &self,
        task: BoxFuture<'static, Result<T, Failure>>,
        budget: Budget,
    ) -> Result<T, Failure> {
        let patience = until(self.clock().now(), budget.abandon_at());
        let mut task = Abandoned(tokio::spawn(task.in_current_span()));
        match tokio::time::timeout(patience, &mut task.0).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(stopped)) => Err(Failure::Panicked(panic_message(stopped))),
            Err(_) => Err(Failure::OutOfTime),
        }
    }

    fn emit(&self, line: &metrics::Line<'_>) {
        (self.0.emit)(&line.to_string());
    }

    pub(self) fn options(&self) -> &Options {
        &self.0.options
    }

    pub(self) fn tables(&self) -> &Tables {
        &self.0.tables
    }

    pub(self) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub(self) fn fanout_within(&self, budget: Budget) -> Settings {
        self.fanout_until(budget.work_until(), budget)
    }

    /// Stops at the deadline, waits for what is under way for half of the time between the end of work
    /// and its being given up, and has the other half to record what is owed.
    pub(self) fn fanout_until(&self, deadline: EpochMs, budget: Budget) -> Settings {
        Settings {
            deadline: Some(deadline),
            grace: until(budget.work_until(), budget.abandon_at()) / 2,
            ..self.options().fanout.clone()
        }
    }
}

/// A task that ends when nobody waits for it any more.
struct Abandoned<T>(JoinHandle<T>);

impl<T> Drop for Abandoned<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn panic_message(stopped: JoinError) -> String {
    let payload = match stopped.try_into_panic() {
        Ok(payload) => payload,
        Err(stopped) => return stopped.to_string(),
    };
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}

/// The table that a physical id names, for the metrics.
fn outcome_table(answer: &Answer) -> String {
    Named::parse(answer.physical_id()).map_or_else(String::new, |named| named.table)
}
