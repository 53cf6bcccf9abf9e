//! The limits that apply now, for a level that has schedules. Without any, the walk says it all.

use super::markdown::{code, row, safe as safe_markdown};
use super::paint;
use super::text::safe;
use crate::explain::{LimitNow, LimitsWalk};
use crate::model::{Calendar, Rate};
use std::fmt::Write;

fn is_scheduled(walk: &LimitsWalk) -> bool {
    walk.now.iter().any(LimitNow::is_scheduled)
}

/// One line a limit, and below it one line a window.
pub(super) fn write_text(out: &mut String, walk: &LimitsWalk, colours: bool) {
    if !is_scheduled(walk) {
        return;
    }
    let calendar = Calendar::new(&walk.zone);
    let heading = format!("Now: {}, {}", calendar.show(walk.at), walk.zone);
    let _ = write!(out, "\n{}\n", paint::HEADING.when(colours, &safe(&heading)));
    for limit in &walk.now {
        let line = format!("{}: {}", limit.name, sentence(limit, &calendar));
        let _ = writeln!(out, "    {}", safe(&line));
        write_windows(out, limit, colours);
    }
}

fn write_windows(out: &mut String, limit: &LimitNow, colours: bool) {
    let rows = windows(limit);
    let width = rows.iter().map(|(cron, ..)| cron.chars().count()).max();
    let width = width.unwrap_or_default();
    for (cron, rate, in_force) in rows {
        let line = safe(&format!("{cron:width$}   {}", rate_text(&rate)));
        let line = match in_force {
            true => paint::ADDED.when(colours, &format!("= {line}")),
            false => paint::QUIET.when(colours, &format!("  {line}")),
        };
        let _ = writeln!(out, "      {line}");
    }
}

/// The same as a table.
pub(super) fn write_markdown(out: &mut String, walk: &LimitsWalk) {
    if !is_scheduled(walk) {
        return;
    }
    let calendar = Calendar::new(&walk.zone);
    let zone = code(walk.zone.as_str());
    let _ = write!(out, "**Now:** {}, {zone}\n\n", calendar.show(walk.at));
    for limit in &walk.now {
        let said = safe_markdown(&sentence(limit, &calendar));
        let _ = writeln!(out, "- {}: {said}", code(limit.name.as_str()));
    }
    out.push('\n');
    let scheduled = walk.now.iter().filter(|limit| !limit.windows.is_empty());
    let mut rows = scheduled.flat_map(|limit| windows(limit).into_iter().map(move |w| (limit, w)));
    if let Some(first) = rows.next() {
        out.push_str(&row(&["limit", "window", "gives", ""]));
        out.push_str(&row(&["---", "---", "---", "---"]));
        for (limit, (cron, rate, in_force)) in std::iter::once(first).chain(rows) {
            let (name, cron) = (code(limit.name.as_str()), code(cron));
            let mark = if in_force { "**now**" } else { "" };
            out.push_str(&row(&[
                &name,
                &cron,
                &safe_markdown(&rate_text(&rate)),
                mark,
            ]));
        }
        out.push('\n');
    }
}

/// The windows of a limit and what holds otherwise, each with whether it is in force.
fn windows(limit: &LimitNow) -> Vec<(&str, Rate, bool)> {
    let windows = limit.windows.iter();
    let mut rows: Vec<_> = windows
        .map(|window| (window.cron.as_str(), window.rate, window.open))
        .collect();
    if !rows.is_empty() {
        let none_open = rows.iter().all(|(.., open)| !open);
        rows.push(("otherwise", limit.base, none_open));
    }
    rows
}

/// `capacity 50, +25/60s (window * 9-17 * * 1-5, until 2026-11-30T18:00+01:00)`.
fn sentence(limit: &LimitNow, calendar: &Calendar) -> String {
    let mut said = rate_text(&limit.in_force);
    if !limit.windows.is_empty() {
        let open = limit.windows.iter().find(|window| window.open);
        let which = open.map_or_else(
            || "no window".to_owned(),
            |window| format!("window {}", window.cron),
        );
        let until = limit.until.map_or_else(
            || "always".to_owned(),
            |until| format!("until {}", calendar.show(until)),
        );
        let _ = write!(said, " ({which}, {until})");
    }
    match limit.next_reset {
        Some(at) => {
            let _ = write!(said, "; next reset: {}", calendar.show(at));
        }
        None if !limit.resets.is_empty() => said.push_str("; next reset: never"),
        None => {}
    }
    if let Some(after) = limit.reset_after {
        let _ = write!(said, "; full again {after}s after a window's first use");
    }
    said
}

/// `capacity 50, +25/60s`, and for a limit that resets `capacity 50`.
fn rate_text(rate: &Rate) -> String {
    let capacity = format!("capacity {}", rate.capacity);
    match rate.refill_amount.0 {
        0 => capacity,
        _ => format!(
            "{capacity}, +{}/{}s",
            rate.refill_amount, rate.refill_period
        ),
    }
}
