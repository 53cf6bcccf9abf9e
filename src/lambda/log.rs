//! What the function logs: JSON lines with the ids of the request, and nothing that is a secret.
//!
//! A response URL, a whole event and the environment are never handed to a log line. The crates below
//! us are kept at warnings whatever level is asked for: at their finest levels some print the events
//! and the requests that pass through them.

use super::Invocation;
use super::answer::{Answer, Status};
use super::envelope::Envelope;
use super::summary::Summary;
use std::panic::PanicHookInfo;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Span, info_span};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

/// The longest panic message that is logged, in characters.
const LONGEST: usize = 500;

/// What is logged at a level: this crate's lines, and the warnings of all others.
pub fn filter(level: Level) -> Targets {
    Targets::new()
        .with_default(LevelFilter::WARN.min(level.into()))
        .with_target("zae_limits", level)
        // Reports events it cannot decode, and panics, with whatever text they hold.
        .with_target("lambda_runtime", LevelFilter::OFF)
}

/// A subscriber that writes one JSON object a line.
pub fn subscriber<W>(level: Level, writer: W) -> impl tracing::Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false)
        .with_writer(writer);
    tracing_subscriber::registry()
        .with(filter(level))
        .with(lines)
}

/// Logs a panic as one line of its own, in place of the default hook's text.
pub fn panicked(info: &PanicHookInfo<'_>) {
    let message = info.payload_as_str().unwrap_or("a panic without a message");
    let message: String = message.chars().take(LONGEST).collect();
    let place = info.location().map(ToString::to_string);
    tracing::error!(message, place, "panicked");
}

pub(super) fn request_span(envelope: &Envelope, invocation: &Invocation) -> Span {
    let text = |id: &Option<String>| id.clone().unwrap_or_default();
    info_span!(
        "request",
        invocation_id = invocation.request_id,
        request_type = %envelope.request_type,
        request_id = text(&envelope.request_id),
        stack_id = text(&envelope.stack_id),
        logical_id = text(&envelope.logical_id),
        physical_id = text(&envelope.physical_id),
    )
}

pub(super) fn invoke_span(invocation: &Invocation) -> Span {
    info_span!("invoke", invocation_id = invocation.request_id)
}

pub(super) fn outcome(answer: &Answer, summary: &Summary, namespace: &str, duration_ms: u64) {
    let succeeded = answer.status() == Status::Success;
    tracing::info!(
        succeeded,
        reason = answer.reason(),
        new_physical_id = answer.physical_id(),
        namespace,
        outcome = summary.status.unwrap_or("failed"),
        created = summary.created,
        updated = summary.updated,
        deleted = summary.deleted,
        unchanged = summary.unchanged,
        failed = summary.failed,
        stamped = summary.stamped,
        pending = summary.pending,
        warnings = summary.warnings,
        duration_ms,
        "done",
    );
}

pub(super) fn invoked(action: &str, summary: &Summary, namespace: &str, duration_ms: u64) {
    tracing::info!(
        action,
        namespace,
        outcome = summary.status.unwrap_or("failed"),
        created = summary.created,
        updated = summary.updated,
        deleted = summary.deleted,
        unchanged = summary.unchanged,
        failed = summary.failed,
        stamped = summary.stamped,
        pending = summary.pending,
        duration_ms,
        "done",
    );
}
