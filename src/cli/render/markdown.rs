//! Answers for a review, as GitHub renders Markdown.

use super::rows::{counted, level_text, rows};
use super::text;
use crate::report::{ApplyReport, FanoutReport, PlanReport, Status};
use std::fmt::Write;

/// What has a meaning in Markdown or in the HTML inside of it.
const MARKUP: &str = "\\`*_{}[]<>()#!|~&^$";

/// A text in which nothing is markup and nothing can act on a terminal.
pub(in crate::cli) fn safe(text: &str) -> String {
    let mut safe = String::new();
    for c in text::safe(text).chars() {
        if MARKUP.contains(c) {
            safe.push('\\');
        }
        safe.push(c);
        if c == '@' {
            // Nobody is to be notified of what stands in a report.
            safe.push_str("<!-- -->");
        }
    }
    safe
}

/// A name as code: no mention, no link, no emphasis.
pub(in crate::cli) fn code(text: &str) -> String {
    let shown = text::safe(text);
    // A backtick would end the span, and a bar the cell, which no fence keeps.
    if shown.is_empty() || shown.contains(['`', '|', '\\']) {
        safe(text)
    } else {
        format!("`{shown}`")
    }
}

/// A table row of cells that are markup already.
pub(in crate::cli) fn row(cells: &[&str]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// A plan.
pub(in crate::cli) fn plan(plan: &PlanReport, host: &str, refusals: &[String]) -> String {
    let mut out = format!(
        "### {}: {} to change, {} to create, {} to delete, {} unchanged\n\nTable {}, {}.",
        code(&plan.namespace),
        plan.updated,
        plan.created,
        plan.deleted,
        plan.unchanged,
        code(&plan.table),
        code(host)
    );
    if plan.namespace_id.is_none() {
        out.push_str(" The namespace is new: apply registers it.");
    }
    out.push('\n');
    let rows = rows(plan);
    if !rows.is_empty() {
        out.push('\n');
        out.push_str(&row(&["", "level", "change", "reaches"]));
        out.push_str(&row(&["---", "---", "---", "---"]));
        for line in rows {
            let marker = code(line.marker.symbol());
            let (level, change) = (code(&line.level), code(&line.change));
            out.push_str(&row(&[&marker, &level, &change, &safe(&line.note)]));
        }
    }
    let footer = text::footer(plan);
    if !footer.is_empty() {
        let _ = write!(out, "\n{footer}\n");
    }
    if !plan.pending.is_empty() {
        let pending = counted(plan.pending.len() as u64, "fan-out", "fan-outs");
        let _ = write!(out, "\n{pending} of earlier applies unfinished.\n");
    }
    for refusal in refusals {
        let _ = write!(out, "\n**Apply refuses:** {}\n", safe(refusal));
    }
    out.trim_end().to_owned()
}

/// What an apply did.
pub(in crate::cli) fn apply(report: &ApplyReport) -> String {
    let status = match report.status {
        Status::Unchanged => "unchanged",
        Status::Applied => "applied",
        Status::Partial => "partly applied",
    };
    let name = code(&report.plan.namespace);
    let mut out = format!("### {name}: {status}\n\n{}.\n", text::counts(report));
    let effect = |fanout: &_| text::fanout_effect(report, fanout);
    write_fanouts(&mut out, &report.fanouts, effect);
    if report.full_resumed {
        let _ = write!(out, "\n{}\n", text::FULL_RESUMED);
    }
    for error in &report.errors {
        let _ = write!(out, "\n- {}", safe(error));
    }
    out.trim_end().to_owned()
}

/// A table of fan-outs, each with what it brought, and below it what was found that is no bucket.
pub(super) fn write_fanouts(
    out: &mut String,
    fanouts: &[FanoutReport],
    effect: impl Fn(&FanoutReport) -> String,
) {
    if fanouts.is_empty() {
        return;
    }
    out.push('\n');
    out.push_str(&row(&["fan-out", "effect", "found", "failed", "ended"]));
    out.push_str(&row(&["---", "---", "---", "---", "---"]));
    for fanout in fanouts {
        let level = code(&level_text(&fanout.owed.name));
        let (effect, ended) = (safe(&effect(fanout)), safe(&fanout.ended));
        let (found, failed) = (fanout.found.to_string(), fanout.failed.to_string());
        out.push_str(&row(&[&level, &effect, &found, &failed, &ended]));
    }
    for sample in fanouts.iter().flat_map(|fanout| &fanout.foreign_samples) {
        let _ = write!(out, "\n- no bucket, left alone: {}", safe(sample));
    }
}
