//! A plan as rows: one for each thing that a reviewer decides about, danger first.

use crate::affected::Affected;
use crate::model::FanoutKind;
use crate::plan::{Danger, Difference};
use crate::report::{ChangeReport, KeptReport, LevelName, PlanReport, UnreadableReport};
use serde_json::Value;

/// What kind of thing a row says. The marker says it without colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) enum Marker {
    /// `!`: something a reviewer must not overlook.
    Danger,
    /// `~`: a change.
    Changed,
    /// `+`: something new.
    Added,
    /// `-`: something that goes.
    Removed,
    /// `=`: something that stays.
    Kept,
}

impl Marker {
    /// The marker.
    pub(in crate::cli) fn symbol(self) -> &'static str {
        match self {
            Marker::Danger => "!",
            Marker::Changed => "~",
            Marker::Added => "+",
            Marker::Removed => "-",
            Marker::Kept => "=",
        }
    }
}

/// One row of a plan. Its texts are not escaped yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct Row {
    /// What kind of thing it says.
    pub(in crate::cli) marker: Marker,
    /// The level.
    pub(in crate::cli) level: String,
    /// What changes.
    pub(in crate::cli) change: String,
    /// Whom it reaches, and how. May be empty.
    pub(in crate::cli) note: String,
}

/// The rows of a plan, dangers first, then in the order of writes, then what is kept.
pub(in crate::cli) fn rows(plan: &PlanReport) -> Vec<Row> {
    let mut changes: Vec<&ChangeReport> = plan.changes.iter().collect();
    changes.sort_by_key(|change| order(&change.name));
    let unreadable = |change: &ChangeReport| {
        let mut items = plan.unreadable.iter();
        items.any(|item| item.name.as_ref() == Some(&change.name))
    };
    let rows_of = |change| rows_of(change, unreadable(change));
    let mut rows: Vec<Row> = changes.into_iter().flat_map(rows_of).collect();
    rows.extend(plan.unreadable.iter().map(unreadable_row));
    rows.sort_by_key(|row| row.marker != Marker::Danger);
    rows.extend(plan.kept.iter().map(kept));
    rows
}

/// A level as a plan names it: `resource gpt-4`.
pub(in crate::cli) fn level_text(name: &LevelName) -> String {
    match &name.target {
        Some(target) => format!("{} {target}", name.level),
        None => name.level.to_owned(),
    }
}

/// The order of writes.
fn order(name: &LevelName) -> (usize, Option<String>) {
    let ranks = ["system", "resource", "entity"];
    let rank = ranks.iter().position(|kind| *kind == name.level);
    (rank.unwrap_or(ranks.len()), name.target.clone())
}

fn kept(kept: &KeptReport) -> Row {
    Row {
        marker: Marker::Kept,
        level: level_text(&kept.name),
        change: format!("disabled: {}", kept.disabled),
        note: "set outside this manifest, kept".to_owned(),
    }
}

fn unreadable_row(item: &UnreadableReport) -> Row {
    let level = item.name.as_ref().map(level_text);
    Row {
        marker: Marker::Danger,
        level: level.unwrap_or_else(|| "pending fan-out".to_owned()),
        change: "what is stored cannot be read".to_owned(),
        note: format!("item {}: {}; {}", item.item, item.problem, item.remedy),
    }
}

/// `unreadable`: nobody can tell what is stored.
fn rows_of(change: &ChangeReport, unreadable: bool) -> Vec<Row> {
    let row = |marker, change_text: String, note: String| Row {
        marker,
        level: level_text(&change.name),
        change: change_text,
        note,
    };
    let mut rows = Vec::new();
    if !change.dangers.is_empty() {
        let note = danger_note(change);
        rows.push(row(Marker::Danger, switch_text(change), note));
    }
    match change.action {
        "create" => {
            let summary = level_summary(&change.after, change.dangers.is_empty());
            if !summary.is_empty() || rows.is_empty() {
                let summary = if summary.is_empty() {
                    "declares nothing".to_owned()
                } else {
                    summary.join(", ")
                };
                rows.push(row(Marker::Added, summary, other_note(change)));
            }
        }
        "delete" => {
            let summary = level_summary(&change.before, change.dangers.is_empty());
            let text = if summary.is_empty() {
                "deleted".to_owned()
            } else {
                format!("deleted, was {}", summary.join(", "))
            };
            rows.push(row(Marker::Removed, text, other_note(change)));
        }
        "update" if unreadable => {
            let summary = level_summary(&change.after, change.dangers.is_empty());
            let text = match summary.is_empty() {
                true => "written anew: declares nothing".to_owned(),
                false => format!("written anew: {}", summary.join(", ")),
            };
            rows.push(row(Marker::Changed, text, other_note(change)));
        }
        _ => rows.extend(updates(change, &row)),
    }
    rows
}

fn updates(change: &ChangeReport, row: &impl Fn(Marker, String, String) -> Row) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut note = other_note(change);
    let shown = change
        .differences
        .iter()
        .filter(|difference| difference.path != "disabled" || change.dangers.is_empty());
    for difference in shown {
        rows.push(row(
            Marker::Changed,
            difference_text(difference),
            std::mem::take(&mut note),
        ));
    }
    if change.differences.is_empty() {
        let text = "rewritten: the same, spelled as this version spells it".to_owned();
        rows.push(row(Marker::Changed, text, String::new()));
    }
    rows
}

/// `disabled: false -> bypass`.
fn switch_text(change: &ChangeReport) -> String {
    change
        .differences
        .iter()
        .find(|difference| difference.path == "disabled")
        .map_or_else(|| "disabled".to_owned(), difference_text)
}

fn difference_text(difference: &Difference) -> String {
    let path = difference
        .path
        .strip_prefix("limits.")
        .unwrap_or(&difference.path);
    let absent = match path {
        "disabled" | "cascade" => "(inherit)",
        _ => "(none)",
    };
    let side = |value: &Option<String>| value.clone().unwrap_or_else(|| absent.to_owned());
    format!(
        "{path}: {} -> {}",
        side(&difference.before),
        side(&difference.after)
    )
}

/// What the worst danger of a change means for traffic, with counts where they were made.
fn danger_note(change: &ChangeReport) -> String {
    let reach = reach(change, &[FanoutKind::Access]);
    let scope = match change.name.level {
        "resource" => "every bucket no entity level decides about",
        _ => "its buckets",
    };
    let of = |verb: &str| match reach {
        Some(count) => format!("{verb} {}", count_text(count)),
        None => format!("{verb} {scope}"),
    };
    let also = |note: &str| match reach {
        Some(count) => format!("{note}: {}", count_text(count)),
        None => note.to_owned(),
    };
    let notes = change.dangers.iter().map(|danger| match danger {
        Danger::Disables => of("stops"),
        Danger::OpensBypass => also("admits everything, still counts"),
        other => also(&other.to_string()),
    });
    notes.collect::<Vec<_>>().join("; ")
}

/// Whom a change reaches apart from its dangers.
fn other_note(change: &ChangeReport) -> String {
    let mut kinds = vec![FanoutKind::Params, FanoutKind::Cascade, FanoutKind::Soft];
    if change.dangers.is_empty() {
        kinds.push(FanoutKind::Access);
    }
    reach(change, &kinds).map_or_else(String::new, count_text)
}

/// The widest of some fan-outs; `None` when none was counted.
fn reach(change: &ChangeReport, kinds: &[FanoutKind]) -> Option<Affected> {
    let counted = change
        .affected
        .iter()
        .filter(|affected| kinds.contains(&affected.kind));
    counted
        .map(|affected| affected.count)
        .max_by_key(|count| count.buckets)
}

/// `12,408 buckets of 9,811 entities`.
fn count_text(count: Affected) -> String {
    format!(
        "{} of {}",
        counted(count.buckets, "bucket", "buckets"),
        counted(count.entities, "entity", "entities")
    )
}

/// A number with its noun.
pub(in crate::cli) fn counted(number: u64, one: &str, many: &str) -> String {
    let noun = if number == 1 { one } else { many };
    format!("{} {noun}", grouped(number))
}

/// A number with its thousands apart.
pub(in crate::cli) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What a level declares, in short: `tpm 200000/60s`, `disabled: bypass`.
pub(in crate::cli) fn level_summary(level: &Value, with_switch: bool) -> Vec<String> {
    let mut parts = Vec::new();
    for key in ["disabled", "cascade", "on_unavailable"] {
        match level.get(key) {
            Some(_) if key == "disabled" && !with_switch => {}
            Some(Value::String(text)) => parts.push(format!("{key}: {text}")),
            Some(value) => parts.push(format!("{key}: {value}")),
            None => {}
        }
    }
    let limits = level.get("limits").and_then(Value::as_object);
    for (name, limit) in limits.into_iter().flatten() {
        parts.push(limit_summary(name, limit));
    }
    parts
}

fn limit_summary(name: &str, limit: &Value) -> String {
    let number = |key| limit.get(key).and_then(Value::as_u64).unwrap_or_default();
    let (capacity, amount) = (number("capacity"), number("refill_amount"));
    let (period, window) = (number("refill_period"), number("reset_after_seconds"));
    let mut text = match limit.get("reset_schedule").and_then(Value::as_array) {
        Some(resets) => {
            let resets = resets
                .iter()
                .filter_map(|reset| reset.get("cron")?.as_str());
            let resets: Vec<&str> = resets.collect();
            format!("{name} {capacity}, reset at {}", resets.join("; "))
        }
        None if window > 0 => format!("{name} {capacity} every {window}s"),
        None if amount == capacity => format!("{name} {capacity}/{period}s"),
        None => format!("{name} {capacity} +{amount}/{period}s"),
    };
    if limit.get("schedule").is_some() {
        text.push_str(" scheduled");
    }
    if limit.get("soft").is_some() {
        text.push_str(" soft");
    }
    text
}
