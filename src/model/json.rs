//! The one JSON form of a level, which canonical manifests, reports and fingerprints share.
//!
//! Defaults are written out, what was not declared is left out: the Python provisioner's form. Fields stand
//! in the order of their names, so that the same meaning always has the same bytes.

use super::{
    Cron, LevelConfig, Limit, Modifier, OnUnavailable, Recovery, ScheduleEntry, Seconds, Switch,
    Tokens, Zone,
};
use serde::{Serialize, Serializer};
use serde_json::Value;

impl LevelConfig {
    /// The level in JSON: `limits`, and of `disabled`, `cascade` and `on_unavailable` what is declared.
    pub fn to_json(&self) -> Value {
        // Keys are texts and numbers finite, so that this does not fail.
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl Serialize for LevelConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let level = LevelJson {
            cascade: self.cascade,
            disabled: self.disabled.map(SwitchJson),
            limits: LimitsJson(self),
            on_unavailable: self.on_unavailable,
        };
        level.serialize(serializer)
    }
}

#[derive(Serialize)]
struct LevelJson<'l> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cascade: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled: Option<SwitchJson>,
    limits: LimitsJson<'l>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_unavailable: Option<OnUnavailable>,
}

/// A switch as manifests write it.
struct SwitchJson(Switch);

impl Serialize for SwitchJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Switch::Disabled => serializer.serialize_bool(true),
            Switch::Enabled => serializer.serialize_bool(false),
            Switch::Bypass => serializer.serialize_str("bypass"),
        }
    }
}

struct LimitsJson<'l>(&'l LevelConfig);

impl Serialize for LimitsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let LevelConfig { limits, zone, .. } = self.0;
        let tz = zone.as_ref().map_or(Zone::DEFAULT, Zone::as_str);
        let limits = limits.iter();
        serializer
            .collect_map(limits.map(|(name, limit)| (name.as_str(), LimitJson::new(limit, tz))))
    }
}

#[derive(Serialize)]
struct LimitJson<'l> {
    capacity: Tokens,
    refill_amount: Tokens,
    refill_period: Seconds,
    #[serde(skip_serializing_if = "Option::is_none")]
    reset_after_seconds: Option<Seconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reset_schedule: Option<Vec<EntryJson<'l>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    schedule: Vec<EntryJson<'l>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    soft: bool,
}

impl<'l> LimitJson<'l> {
    fn new(limit: &'l Limit, tz: &'l str) -> Self {
        let reset = |cron: &Cron| EntryJson::new(cron, tz);
        let window = |entry: &ScheduleEntry| EntryJson::new(&entry.cron, tz).with(&entry.modifier);
        LimitJson {
            capacity: limit.capacity,
            refill_amount: limit.refill_amount(),
            refill_period: limit.refill_period,
            reset_after_seconds: match limit.recovery {
                Recovery::Window(after) => Some(after),
                Recovery::Drip { .. } | Recovery::Calendar(_) => None,
            },
            reset_schedule: match &limit.recovery {
                Recovery::Calendar(resets) => Some(resets.iter().map(reset).collect()),
                Recovery::Drip { .. } | Recovery::Window(_) => None,
            },
            schedule: limit.schedule.iter().map(window).collect(),
            soft: limit.soft,
        }
    }
}

/// One entry of a schedule; of one that resets, `cron` and `tz` alone.
#[derive(Serialize)]
struct EntryJson<'l> {
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity: Option<Tokens>,
    cron: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    refill_amount: Option<Tokens>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refill_period_seconds: Option<Seconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<f64>,
    tz: &'l str,
}

impl<'l> EntryJson<'l> {
    fn new(cron: &Cron, tz: &'l str) -> Self {
        EntryJson {
            capacity: None,
            cron: cron.to_string(),
            refill_amount: None,
            refill_period_seconds: None,
            scale: None,
            tz,
        }
    }

    fn with(self, modifier: &Modifier) -> Self {
        match *modifier {
            Modifier::Scale(scale) => EntryJson {
                scale: Some(scale.factor()),
                ..self
            },
            Modifier::Absolute {
                capacity,
                refill_amount,
                refill_period,
            } => EntryJson {
                capacity,
                refill_amount,
                refill_period_seconds: refill_period,
                ..self
            },
        }
    }
}
