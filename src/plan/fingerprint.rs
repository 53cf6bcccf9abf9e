//! A plan's fingerprint: the same exactly when the same changes would be made to the same state.

use super::Plan;
use crate::model::{LevelConfig, sha256_hex};
use serde_json::{Value, json};

pub(super) fn of(plan: &Plan) -> String {
    let side = |config: Option<&_>| config.map_or(Value::Null, LevelConfig::to_json);
    let changes: Vec<Value> = plan
        .changes
        .iter()
        .map(|change| {
            let mut described = vec![
                json!(change.action.as_str()),
                json!(change.level.to_string()),
                side(change.before_config()),
                side(change.after.as_ref()),
            ];
            described.extend(change.damage().map(|damage| json!(damage.to_string())));
            Value::Array(described)
        })
        .collect();
    let owed: Vec<String> = plan.owed.iter().map(ToString::to_string).collect();
    let all = json!([plan.namespace.as_str(), changes, owed]);
    sha256_hex(all.to_string())
}
