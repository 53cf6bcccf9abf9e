//! The limits that apply, at one instant: the parameters in force, until when, and the next reset.
//!
//! Pure: the instant is given, and the level has been resolved.

use crate::model::{Calendar, EpochMs, LevelConfig, Limit, LimitName, Rate, Recovery, Seconds};
use serde::Serialize;

/// One limit at an instant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitNow {
    /// Its name.
    pub name: LimitName,
    /// The parameters in force.
    pub in_force: Rate,
    /// The parameters while no window is open.
    pub base: Rate,
    /// Every window, in the order in which they are tried: the first that matches is open.
    pub windows: Vec<WindowNow>,
    /// When another window, or none, holds instead. Null when that never happens.
    pub until: Option<EpochMs>,
    /// The instants at which the bucket is full again. Empty for a limit that does not go by the
    /// calendar.
    pub resets: Vec<String>,
    /// The first of them to come. Null without any, and when none ever comes.
    pub next_reset: Option<EpochMs>,
    /// How long after the first use of a window the bucket is full again, in seconds. Null for a
    /// limit without one.
    pub reset_after: Option<Seconds>,
}

/// One window of a limit's schedule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WindowNow {
    /// The minutes in which it matches.
    pub cron: String,
    /// The parameters while it is open.
    #[serde(flatten)]
    pub rate: Rate,
    /// Whether it is the one that is open.
    pub open: bool,
}

impl LimitNow {
    /// Whether anything about the limit goes by the calendar.
    pub fn is_scheduled(&self) -> bool {
        !self.windows.is_empty() || !self.resets.is_empty()
    }
}

/// Every limit of the level whose limits apply.
pub(super) fn limits_now(config: &LevelConfig, at: EpochMs) -> Vec<LimitNow> {
    let zone = config.zone.clone().unwrap_or_default();
    let calendar = Calendar::new(&zone);
    let limits = config.limits.iter();
    limits
        .map(|(name, limit)| limit_now(name, limit, &calendar, at))
        .collect()
}

fn limit_now(name: &LimitName, limit: &Limit, calendar: &Calendar, at: EpochMs) -> LimitNow {
    let base = Rate::base(limit);
    let open = calendar.open_window(&limit.schedule, at);
    let windows = limit.schedule.iter().enumerate();
    let windows: Vec<WindowNow> = windows
        .map(|(index, entry)| WindowNow {
            cron: entry.cron.to_string(),
            rate: base.during(&entry.modifier),
            open: open == Some(index),
        })
        .collect();
    let in_force = windows.iter().find(|window| window.open);
    let (resets, reset_after) = match &limit.recovery {
        Recovery::Drip { .. } => (&[][..], None),
        Recovery::Calendar(resets) => (&resets[..], None),
        Recovery::Window(after) => (&[][..], Some(*after)),
    };
    LimitNow {
        name: name.clone(),
        in_force: in_force.map_or(base, |window| window.rate),
        base,
        until: calendar.next_change(&limit.schedule, at),
        windows,
        resets: resets.iter().map(ToString::to_string).collect(),
        next_reset: calendar.next_reset(resets, at),
        reset_after,
    }
}
