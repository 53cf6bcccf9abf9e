//! Answers for people, on a terminal or in a log.

use super::paint::{self, Paint};
use super::rows::{Marker, Row, counted, grouped, level_text, rows};
use crate::model::{AccessMode, FanoutKind, Scope};
use crate::report::{ApplyReport, FanoutReport, OwedReport, PlanReport, Status};
use std::fmt::Write;

/// Columns wider than this do not push the next column further out.
const WIDEST: usize = 44;

/// Why a full apply ran less than everything.
pub(in crate::cli) const FULL_RESUMED: &str = "It went on with a full apply that was interrupted: what that one had finished was not run again.";

/// A text in which nothing can act on a terminal or look like another line.
pub(in crate::cli) fn safe(text: &str) -> String {
    crate::manifest::printable(text)
}

/// A plan. `host` is what holds the table; `refusals` are lines ready to be shown.
pub(in crate::cli) fn plan(
    plan: &PlanReport,
    host: &str,
    refusals: &[String],
    verbose: bool,
    colours: bool,
) -> String {
    let mut text = header(plan, host, colours);
    if plan.namespace_id.is_none() {
        text.push_str("\n\nThe namespace is new: apply registers it.");
    }
    let rows = rows(plan);
    if !rows.is_empty() {
        text.push('\n');
        write_rows(&mut text, &rows, colours);
    }
    let footer = footer(plan);
    if !footer.is_empty() {
        let _ = write!(text, "\n\n{footer}");
    }
    if !plan.pending.is_empty() {
        text.push_str("\n\nUnfinished from earlier applies; apply runs them too:");
        for owed in &plan.pending {
            let _ = write!(text, "\n  {}", owed_text(owed));
        }
    }
    for refusal in refusals {
        let line = format!("! apply refuses: {}", safe(refusal));
        let _ = write!(text, "\n\n{}", paint::DANGER.when(colours, &line));
    }
    if verbose {
        let _ = write!(text, "\n\nFingerprint: {}", plan.fingerprint);
    }
    text
}

fn header(plan: &PlanReport, host: &str, colours: bool) -> String {
    let mut counts = Vec::new();
    for (count, what) in [
        (plan.updated, "to change"),
        (plan.created, "to create"),
        (plan.deleted, "to delete"),
    ] {
        if count > 0 {
            counts.push(format!("{} {what}", grouped(count as u64)));
        }
    }
    if counts.is_empty() {
        counts.push(match plan.fanouts_to_run() {
            0 => "no changes".to_owned(),
            run => {
                let run = counted(run as u64, "fan-out", "fan-outs");
                format!("no level changes; {run} will run")
            }
        });
    }
    counts.push(format!("{} unchanged", grouped(plan.unchanged as u64)));
    let name = paint::HEADING.when(colours, &safe(&plan.namespace));
    format!(
        "{name}  (table {}, {})  {}",
        safe(&plan.table),
        safe(host),
        counts.join(", ")
    )
}

fn write_rows(text: &mut String, rows: &[Row], colours: bool) {
    let width = |column: fn(&Row) -> &str| {
        let widths = rows.iter().map(|row| safe(column(row)).chars().count());
        widths.filter(|width| *width <= WIDEST).max().unwrap_or(0)
    };
    let (level_width, change_width) = (width(|row| &row.level), width(|row| &row.change));
    for row in rows {
        let (level, change) = (safe(&row.level), safe(&row.change));
        let line = format!(
            "{} {level:level_width$}   {change:change_width$}   {}",
            row.marker.symbol(),
            safe(&row.note)
        );
        let line = paint_of(row.marker).when(colours, line.trim_end());
        let _ = write!(text, "\n  {line}");
    }
}

fn paint_of(marker: Marker) -> Paint {
    match marker {
        Marker::Danger => paint::DANGER,
        Marker::Changed => paint::CHANGED,
        Marker::Added => paint::ADDED,
        Marker::Removed => paint::REMOVED,
        Marker::Kept => paint::QUIET,
    }
}

/// How much fans out, and when it is felt.
pub(in crate::cli) fn footer(plan: &PlanReport) -> String {
    let mut sentences = Vec::new();
    if !plan.fanouts.is_empty() {
        let counts = FanoutKind::ALL.iter().filter_map(|kind| {
            let count = plan
                .fanouts
                .iter()
                .filter(|owed| owed.kind == *kind)
                .count();
            (count > 0).then(|| format!("{} {kind}", grouped(count as u64)))
        });
        let counts: Vec<String> = counts.collect();
        sentences.push(format!(
            "Fan-outs: {}. Takes effect when apply returns.",
            counts.join(", ")
        ));
    }
    let shared_limits = plan.changes.iter().any(|change| {
        change.name.level != "entity"
            && change
                .differences
                .iter()
                .any(|d| d.path.starts_with("limits."))
    });
    if shared_limits {
        sentences.push(
            "Limits of resources and of the system reach a bucket when it expires and is made anew."
                .to_owned(),
        );
    }
    sentences.join("\n")
}

/// `access fan-out of resource gpt-4`.
pub(in crate::cli) fn owed_text(owed: &OwedReport) -> String {
    format!("{} fan-out of {}", owed.kind, safe(&level_text(&owed.name)))
}

/// What an apply did.
pub(in crate::cli) fn apply(report: &ApplyReport, verbose: bool, colours: bool) -> String {
    let name = safe(&report.plan.namespace);
    let heading = match report.status {
        Status::Unchanged => paint::HEADING.when(colours, &format!("{name}: unchanged")),
        Status::Applied => paint::HEADING.when(colours, &format!("{name}: applied")),
        Status::Partial => paint::ERROR.when(colours, &format!("{name}: partly applied")),
    };
    let mut text = format!("{heading}  {}", counts(report));
    if !report.fanouts.is_empty() {
        text.push('\n');
    }
    for fanout in &report.fanouts {
        write_fanout(&mut text, fanout, &fanout_effect(report, fanout), verbose);
    }
    if report.resumed > 0 {
        let _ = write!(
            text,
            "\n\n{} of earlier applies taken over.",
            counted(report.resumed as u64, "fan-out", "fan-outs")
        );
    }
    if report.full_resumed {
        text.push_str("\n\n");
        text.push_str(FULL_RESUMED);
    }
    if report.pending > 0 {
        let _ = write!(
            text,
            "\n\n{} still owed and recorded: run apply again to finish.",
            counted(report.pending as u64, "fan-out is", "fan-outs are")
        );
    }
    text
}

/// `1 created, 2 updated, 0 deleted, 5 unchanged in 0.3 s`.
pub(in crate::cli) fn counts(report: &ApplyReport) -> String {
    format!(
        "{} created, {} updated, {} deleted, {} unchanged, in {:.1} s",
        grouped(report.created as u64),
        grouped(report.updated as u64),
        grouped(report.deleted as u64),
        grouped(report.unchanged as u64),
        report.duration_ms as f64 / 1000.0,
    )
}

/// One fan-out, and below it the buckets that could not be written.
pub(in crate::cli) fn write_fanout(
    text: &mut String,
    fanout: &FanoutReport,
    effect: &str,
    verbose: bool,
) {
    let _ = write!(text, "\n  {}", fanout_line(fanout, effect, verbose));
    for sample in &fanout.samples {
        let _ = write!(text, "\n      {}", safe(sample));
    }
    for sample in &fanout.foreign_samples {
        let _ = write!(text, "\n      no bucket, left alone: {}", safe(sample));
    }
}

fn fanout_line(fanout: &FanoutReport, effect: &str, verbose: bool) -> String {
    let marker = if fanout.landed { " " } else { "!" };
    let level = safe(&level_text(&fanout.owed.name));
    let mut line = format!("{marker} {level}: {effect}");
    let rest = fanout
        .found
        .saturating_sub(fanout.stamped + fanout.vanished + fanout.failed);
    if fanout.landed && rest > 0 {
        let others = counted(rest, "other follows", "others follow");
        let _ = write!(line, "; {others} a more specific level");
    } else if fanout.found != fanout.stamped {
        let _ = write!(line, ", {} found", grouped(fanout.found));
    }
    if fanout.vanished > 0 {
        let _ = write!(line, ", {} gone by then", grouped(fanout.vanished));
    }
    if fanout.failed > 0 {
        let _ = write!(line, ", {} could not be written", grouped(fanout.failed));
    }
    if fanout.foreign > 0 {
        let items = counted(fanout.foreign, "item", "items");
        let _ = write!(line, ", {items} in the index that cannot be a bucket");
    }
    if !fanout.landed {
        let _ = write!(line, " ({})", safe(&fanout.ended));
    }
    if verbose {
        let _ = write!(line, " [{}]", fanout.owed.kind);
    }
    line
}

/// `stopped 4 buckets`: what the stamps of one fan-out mean.
pub(in crate::cli) fn fanout_effect(report: &ApplyReport, fanout: &FanoutReport) -> String {
    let buckets = counted(fanout.stamped, "bucket", "buckets");
    if fanout.owed.kind != FanoutKind::Access {
        return effect(fanout);
    }
    if report.unwritten.contains(&fanout.owed.name) {
        return format!("{buckets} stamped as before: the level was not written");
    }
    let change = report
        .plan
        .changes
        .iter()
        .find(|change| change.name == fanout.owed.name);
    // An entity's `_default_` stamps every bucket from that bucket's own resolution.
    let target = fanout.owed.name.target.as_deref();
    let mixed = target
        .and_then(|target| target.split_once('/'))
        .is_some_and(|(_, scope)| scope == Scope::DEFAULT);
    match change.map(|change| change.after.get("disabled")) {
        Some(Some(value)) if !mixed && value == true => format!("stopped {buckets}"),
        Some(Some(value)) if !mixed && value == "bypass" => {
            format!("bypassed the limits of {buckets}")
        }
        Some(Some(_)) if !mixed => format!("enabled {buckets}"),
        Some(None) if !mixed => {
            let follow = counted(fanout.stamped, "bucket follows", "buckets follow");
            format!("{follow} the next level again")
        }
        _ => effect(fanout),
    }
}

/// `stopped 3 buckets, enabled 1 bucket`, or `params brought to 4 buckets`: what one fan-out brought,
/// whatever changed at its level.
pub(in crate::cli) fn effect(fanout: &FanoutReport) -> String {
    let buckets = counted(fanout.stamped, "bucket", "buckets");
    if fanout.owed.kind != FanoutKind::Access {
        return format!("{} brought to {buckets}", fanout.owed.kind);
    }
    let said = fanout.modes.iter().map(|(mode, count)| {
        let buckets = counted(*count, "bucket", "buckets");
        match mode {
            AccessMode::Disabled => format!("stopped {buckets}"),
            AccessMode::Bypass => format!("bypassed the limits of {buckets}"),
            AccessMode::Enforce => format!("enabled {buckets}"),
        }
    });
    let said: Vec<String> = said.collect();
    match said.is_empty() {
        true => format!("{buckets} stamped"),
        false => said.join(", "),
    }
}
