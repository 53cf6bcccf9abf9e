//! What a resume did, and what is still pending.

use super::markdown::{code, safe as safe_markdown, write_fanouts};
use super::paint;
use super::rows::counted;
use super::text::{effect, owed_text, safe, write_fanout};
use crate::model::EpochMs;
use crate::report::{PendingReport, ResumeReport};
use std::fmt::Write;

/// How a resume ended, in a word.
pub(in crate::cli) fn status(report: &ResumeReport) -> &'static str {
    match (report.is_complete(), report.fanouts.is_empty()) {
        (false, _) => "partial",
        (true, true) => "unchanged",
        (true, false) => "resumed",
    }
}

/// A resume in text.
pub(in crate::cli) fn text(
    report: &ResumeReport,
    namespace: &str,
    now: EpochMs,
    verbose: bool,
    colours: bool,
) -> String {
    let name = safe(namespace);
    if status(report) == "unchanged" {
        let heading = paint::HEADING.when(colours, &format!("{name}: nothing is pending"));
        return heading;
    }
    let heading = if report.is_complete() {
        paint::HEADING.when(colours, &format!("{name}: resumed"))
    } else {
        paint::ERROR.when(colours, &format!("{name}: partly resumed"))
    };
    let mut text = format!("{heading}  {}", counts(report));
    if !report.fanouts.is_empty() {
        text.push('\n');
    }
    for fanout in &report.fanouts {
        write_fanout(&mut text, fanout, &effect(fanout), verbose);
    }
    if !report.pending.is_empty() {
        text.push_str("\n\nStill pending; the next resume or apply retries it:");
        for pending in &report.pending {
            let _ = write!(text, "\n  {}", pending_text(pending, now));
        }
    }
    text
}

/// A resume in Markdown.
pub(in crate::cli) fn markdown(report: &ResumeReport, namespace: &str, now: EpochMs) -> String {
    let status = match status(report) {
        "unchanged" => return format!("### {}: nothing is pending", code(namespace)),
        "resumed" => "resumed",
        _ => "partly resumed",
    };
    let mut out = format!("### {}: {status}\n\n{}.\n", code(namespace), counts(report));
    write_fanouts(&mut out, &report.fanouts, effect);
    for pending in &report.pending {
        let line = pending_text(pending, now);
        let _ = write!(out, "\n- pending: {}", safe_markdown(&line));
    }
    for error in &report.errors {
        let _ = write!(out, "\n- {}", safe_markdown(error));
    }
    out.trim_end().to_owned()
}

/// `2 fan-outs, 12 buckets stamped, in 0.3 s`.
fn counts(report: &ResumeReport) -> String {
    format!(
        "{}, {} stamped, in {:.1} s",
        counted(report.fanouts.len() as u64, "fan-out", "fan-outs"),
        counted(report.stamped, "bucket", "buckets"),
        report.duration_ms as f64 / 1000.0,
    )
}

/// One pending fan-out, and who holds it for how long.
pub(in crate::cli) fn pending_text(pending: &PendingReport, now: EpochMs) -> String {
    let owed = owed_text(&pending.owed);
    match pending.held_until {
        Some(until) => {
            let left = until.0.saturating_sub(now.0).div_ceil(1000);
            format!("{owed}, held for another {left} s by an apply that may still be running")
        }
        None => owed,
    }
}
