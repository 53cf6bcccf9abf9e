//! The one JSON form of a level, which canonical manifests, reports and fingerprints share.
//!
//! Defaults are written out, what was not declared is left out: the Python provisioner's form.

use super::{LevelConfig, Limit, Modifier, Recovery, Switch, Zone};
use serde_json::{Map, Value, json};

impl LevelConfig {
    /// The level in JSON: `limits`, and of `disabled`, `cascade` and `on_unavailable` what is declared.
    pub fn to_json(&self) -> Value {
        let limits: Map<String, Value> = self
            .limits
            .iter()
            .map(|(name, limit)| (name.to_string(), limit_json(limit, self.zone.as_ref())))
            .collect();
        let mut level = Map::new();
        level.insert("limits".into(), Value::Object(limits));
        if let Some(disabled) = self.disabled {
            let value = match disabled {
                Switch::Disabled => json!(true),
                Switch::Enabled => json!(false),
                Switch::Bypass => json!("bypass"),
            };
            level.insert("disabled".into(), value);
        }
        if let Some(cascade) = self.cascade {
            level.insert("cascade".into(), json!(cascade));
        }
        if let Some(on_unavailable) = self.on_unavailable {
            level.insert("on_unavailable".into(), json!(on_unavailable.as_str()));
        }
        Value::Object(level)
    }
}

fn limit_json(limit: &Limit, zone: Option<&Zone>) -> Value {
    let tz = zone.map_or(Zone::DEFAULT, Zone::as_str);
    let mut json = Map::new();
    json.insert("capacity".into(), json!(limit.capacity));
    json.insert("refill_amount".into(), json!(limit.refill_amount()));
    json.insert("refill_period".into(), json!(limit.refill_period));
    match &limit.recovery {
        Recovery::Drip { .. } => {}
        Recovery::Window(after) => {
            json.insert("reset_after_seconds".into(), json!(after));
        }
        Recovery::Calendar(resets) => {
            let resets = resets
                .iter()
                .map(|cron| json!({ "cron": cron.to_string(), "tz": tz }));
            json.insert("reset_schedule".into(), resets.collect());
        }
    }
    if !limit.schedule.is_empty() {
        let windows = limit.schedule.iter().map(|entry| {
            let mut window = Map::new();
            window.insert("cron".into(), json!(entry.cron.to_string()));
            window.insert("tz".into(), json!(tz));
            modifier_json(&entry.modifier, &mut window);
            Value::Object(window)
        });
        json.insert("schedule".into(), windows.collect());
    }
    if limit.soft {
        json.insert("soft".into(), json!(true));
    }
    Value::Object(json)
}

fn modifier_json(modifier: &Modifier, window: &mut Map<String, Value>) {
    match modifier {
        Modifier::Scale(scale) => {
            window.insert("scale".into(), json!(scale.factor()));
        }
        Modifier::Absolute {
            capacity,
            refill_amount,
            refill_period,
        } => {
            let values = [
                ("capacity", capacity.map(|tokens| tokens.0)),
                ("refill_amount", refill_amount.map(|tokens| tokens.0)),
                (
                    "refill_period_seconds",
                    refill_period.map(|period| period.0),
                ),
            ];
            for (key, value) in values {
                if let Some(value) = value {
                    window.insert(key.into(), json!(value));
                }
            }
        }
    }
}
