//! An explanation: the walk, level by level, what is in force now, and the stamps of the buckets.

use super::markdown::{code, row, safe as safe_markdown};
use super::rows::{level_summary, level_text};
use super::text::safe;
use super::{now, paint, resume};
use crate::explain::{CascadeWalk, Explanation, Part, Shard, StepReport, Verdict};
use crate::model::resolve::Step;
use crate::model::{AccessMode, EpochMs, FanoutKind};
use crate::report::PendingReport;
use serde_json::json;
use std::fmt::Write;

/// What an explanation in text is headed with.
pub(in crate::cli) struct Heading<'a> {
    /// The namespace.
    pub(in crate::cli) namespace: &'a str,
    /// The table.
    pub(in crate::cli) table: &'a str,
    /// What holds the table.
    pub(in crate::cli) host: &'a str,
}

/// An explanation in text.
pub(in crate::cli) fn text(
    explanation: &Explanation,
    heading: &Heading<'_>,
    now: EpochMs,
    colours: bool,
) -> String {
    let title = format!("{} on {}", explanation.entity, explanation.resource);
    let mut out = format!(
        "{}  (namespace {}, table {}, {})\n",
        paint::HEADING.when(colours, &safe(&title)),
        safe(heading.namespace),
        safe(heading.table),
        safe(heading.host)
    );
    let access = format!("Access: {}", access_sentence(explanation));
    let access = match explanation.access.mode {
        AccessMode::Disabled => paint::DANGER.when(colours, &access),
        AccessMode::Bypass => paint::CHANGED.when(colours, &access),
        AccessMode::Enforce => paint::HEADING.when(colours, &access),
    };
    let _ = write!(out, "\n{access}\n");
    write_steps(&mut out, &explanation.access.steps, &switch_text, colours);
    let limits = match (explanation.limits.winner, &explanation.limits.unreadable) {
        (Some(step), _) => format!(
            "Limits: those of {}",
            step_text(&explanation.limits.steps, step)
        ),
        (None, Some(damage)) => format!("Limits: unknown, {}", safe(&unreadable(damage))),
        (None, None) => "Limits: none, no level defines any".to_owned(),
    };
    let _ = write!(out, "\n{}\n", paint::HEADING.when(colours, &limits));
    write_steps(&mut out, &explanation.limits.steps, &limits_text, colours);
    now::write_text(&mut out, &explanation.limits, colours);
    let cascade = format!("Cascade: {}", safe(&cascade_sentence(&explanation.cascade)));
    let _ = write!(out, "\n{}\n", paint::HEADING.when(colours, &cascade));
    let buckets = if explanation.shards.is_empty() {
        "Buckets: none yet; a client makes one at the first use, from the config above"
    } else {
        "Buckets:"
    };
    let _ = write!(out, "\n{}", paint::HEADING.when(colours, buckets));
    for shard in &explanation.shards {
        let line = format!(
            "{} shard {}: {}",
            verdict_marker(shard.verdict),
            shard.shard,
            shard_sentence(shard, explanation, now)
        );
        let line = match shard.verdict {
            Verdict::Mismatch => paint::DANGER.when(colours, &line),
            Verdict::Match | Verdict::Expired => line,
        };
        let _ = write!(out, "\n  {line}");
    }
    if !explanation.pending.is_empty() {
        let pending =
            "Pending: fan-outs of earlier applies, so the buckets may lag behind the above";
        let _ = write!(out, "\n\n{}", paint::CHANGED.when(colours, pending));
    }
    for pending in &explanation.pending {
        let _ = write!(out, "\n  {}", resume::pending_text(pending, now));
    }
    out
}

fn write_steps(
    out: &mut String,
    steps: &[StepReport],
    value: &impl Fn(&StepReport) -> String,
    colours: bool,
) {
    let width = |text: &dyn Fn(&StepReport) -> String| {
        let widths = steps.iter().map(|step| text(step).chars().count());
        widths.filter(|width| *width <= 60).max().unwrap_or(0)
    };
    let name = |step: &StepReport| safe(&level_text(&step.name));
    let (name_width, value_width) = (width(&name), width(&|step| safe(&value(step))));
    for step in steps {
        let (marker, part) = match step.part {
            Part::Decides => ("=", "decides"),
            Part::Overruled => ("-", "overruled"),
            Part::Silent => (" ", ""),
            Part::Unreadable => ("!", "may decide"),
            Part::Unknown => ("?", "may be overruled"),
        };
        let value = safe(&value(step));
        let line = format!(
            "{marker} {:name_width$}   {value:value_width$}   {part}",
            name(step)
        );
        let line = match step.part {
            Part::Decides => paint::ADDED.when(colours, line.trim_end()),
            Part::Unreadable => paint::DANGER.when(colours, line.trim_end()),
            Part::Overruled | Part::Silent | Part::Unknown => {
                paint::QUIET.when(colours, line.trim_end())
            }
        };
        let _ = writeln!(out, "  {line}");
    }
}

fn switch_text(step: &StepReport) -> String {
    match &step.value {
        value if value.is_null() => silent_text(step),
        value if value.is_string() => format!("disabled: {}", value.as_str().unwrap_or_default()),
        value => format!("disabled: {value}"),
    }
}

fn limits_text(step: &StepReport) -> String {
    if step.value.is_null() {
        return silent_text(step);
    }
    level_summary(&json!({ "limits": step.value }), false).join(", ")
}

fn silent_text(step: &StepReport) -> String {
    match (step.part, step.stored) {
        (Part::Unreadable, _) => "cannot be read",
        (_, true) => "says nothing",
        (_, false) => "not stored",
    }
    .to_owned()
}

/// Why nobody can tell which limits apply, and what to do.
fn unreadable(damage: &str) -> String {
    format!("{damage}: correct or delete the item, or apply a manifest that declares the level")
}

/// What happens to requests, and who says so.
fn access_sentence(explanation: &Explanation) -> String {
    let access = &explanation.access;
    let what = match access.mode {
        AccessMode::Disabled => "refused, every request",
        AccessMode::Bypass => "admitted, every request, whatever the limits say, and still counted",
        AccessMode::Enforce => "admitted within its limits",
    };
    let overrules = access
        .steps
        .iter()
        .find(|step| step.part == Part::Overruled);
    match access.winner {
        None => format!("{what}; no level sets a switch"),
        Some(winner) => {
            let who = step_text(&access.steps, winner);
            match overrules {
                Some(step) => format!("{what}; {who} overrules {}", safe(&level_text(&step.name))),
                None => format!("{what}; {who} decides"),
            }
        }
    }
}

fn step_text(steps: &[StepReport], step: Step) -> String {
    let found = steps.iter().find(|other| other.step == step);
    found.map_or_else(String::new, |step| safe(&level_text(&step.name)))
}

fn cascade_sentence(cascade: &CascadeWalk) -> String {
    let who = match (cascade.winner, cascade.has_record) {
        (Some(Step::Resource), _) => "the resource says so",
        (Some(_), _) => "the entity's level says so",
        (None, true) => "the entity's record says so",
        (None, false) => "nothing says otherwise",
    };
    match (&cascade.parent, cascade.policy) {
        (Some(parent), true) => format!("{parent} is debited too; {who}"),
        (Some(parent), false) => format!("its parent {parent} is not debited; {who}"),
        (None, true) => format!("wanted, and there is no parent to debit; {who}"),
        (None, false) if cascade.has_record => "no, the entity has no parent".to_owned(),
        (None, false) => "no, the entity has no record, and so no parent".to_owned(),
    }
}

fn verdict_marker(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Match => "=",
        Verdict::Mismatch => "!",
        Verdict::Expired => "~",
    }
}

fn shard_sentence(shard: &Shard, explanation: &Explanation, now: EpochMs) -> String {
    let demanded = explanation.access.mode;
    let shows = match (shard.shows, shard.bypass_until) {
        (AccessMode::Bypass, Some(until)) if until > now => {
            let left = until.0.saturating_sub(now.0).div_ceil(1000);
            format!("bypass for another {left} s")
        }
        (mode, _) => mode.to_string(),
    };
    match shard.verdict {
        Verdict::Match => format!("{shows}, as it must"),
        Verdict::Mismatch => {
            let is_pending = |pending: &PendingReport| pending.owed.kind == FanoutKind::Access;
            let remedy = if explanation.pending.iter().any(is_pending) {
                "run resume"
            } else {
                "apply with --full"
            };
            format!("{shows}, and it must show {demanded}: {remedy} to mend it")
        }
        Verdict::Expired => {
            format!("{shows}, run out; the next request asks the config and gets {demanded}")
        }
    }
}

/// An explanation in Markdown.
pub(in crate::cli) fn markdown(explanation: &Explanation, namespace: &str, now: EpochMs) -> String {
    let mut out = format!(
        "### {} on {} in {}\n\n**Access:** {}\n\n",
        code(explanation.entity.as_str()),
        code(explanation.resource.as_str()),
        code(namespace),
        safe_markdown(&access_sentence(explanation)),
    );
    let mut table = |title: &str, steps: &[StepReport], value: fn(&StepReport) -> String| {
        out.push_str(&row(&[title, "says", ""]));
        out.push_str(&row(&["---", "---", "---"]));
        for step in steps {
            let part = match step.part {
                Part::Decides => "**decides**",
                Part::Overruled => "overruled",
                Part::Silent => "",
                Part::Unreadable => "**may decide**",
                Part::Unknown => "may be overruled",
            };
            let (name, value) = (code(&level_text(&step.name)), code(&value(step)));
            out.push_str(&row(&[&name, &value, part]));
        }
        out.push('\n');
    };
    table("access", &explanation.access.steps, switch_text);
    table("limits", &explanation.limits.steps, limits_text);
    if let Some(damage) = &explanation.limits.unreadable {
        let damage = safe_markdown(&unreadable(damage));
        let _ = write!(out, "**Limits:** unknown, {damage}\n\n");
    }
    now::write_markdown(&mut out, &explanation.limits);
    let cascade = safe_markdown(&cascade_sentence(&explanation.cascade));
    let _ = writeln!(out, "**Cascade:** {cascade}");
    for shard in &explanation.shards {
        let verdict = match shard.verdict {
            Verdict::Match => "as it must",
            Verdict::Mismatch => "**wrong**",
            Verdict::Expired => "run out",
        };
        let _ = write!(out, "\n- shard {}: {}, {verdict}", shard.shard, shard.shows);
    }
    for pending in &explanation.pending {
        let pending = safe_markdown(&resume::pending_text(pending, now));
        let _ = write!(out, "\n- pending: {pending}");
    }
    out.trim_end().to_owned()
}
