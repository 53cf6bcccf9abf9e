//! CloudWatch's embedded metric format: one JSON line that is a log line and metrics at once.

use super::summary::Summary;
use crate::model::EpochMs;
use serde_json::json;
use std::fmt;

/// The metrics' namespace in CloudWatch.
const NAMESPACE: &str = "ZaeLimits";

/// One request, as metrics.
pub(super) struct Line<'a> {
    /// `Create`, `Update`, `Delete`, or a direct invoke's action.
    pub(super) kind: &'a str,
    /// The table; empty when it is not known.
    pub(super) table: String,
    /// The namespace of limits; empty when it is not known.
    pub(super) namespace: &'a str,
    pub(super) summary: &'a Summary,
    pub(super) succeeded: bool,
    pub(super) duration_ms: u64,
    /// How long the oldest fan-out of the whole table is owed, in seconds; 0 when none is. `None` when
    /// only a part of the table was looked at.
    pub(super) oldest_pending: Option<u64>,
    pub(super) at: EpochMs,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metric = |name: &str, unit: &str| json!({"Name": name, "Unit": unit});
        let mut metrics = vec![
            metric("Applied", "Count"),
            metric("Failed", "Count"),
            metric("Pending", "Count"),
            metric("Stamped", "Count"),
            metric("Duration", "Milliseconds"),
        ];
        metrics.extend(self.oldest_pending.map(|_| metric("PendingAge", "Seconds")));
        // The namespace is a property and no dimension: every value of a dimension is billed. A table's
        // name and its ARN are one table, and one dimension.
        let table = match self.table.rsplit('/').next() {
            None | Some("") => "unknown",
            Some(name) => name,
        };
        // A request that failed counts once even when no level did.
        let failed = self.summary.failed.max(usize::from(!self.succeeded));
        let mut line = json!({
            "_aws": {
                "Timestamp": self.at.0,
                "CloudWatchMetrics": [{
                    "Namespace": NAMESPACE,
                    "Dimensions": [["Table", "Request"]],
                    "Metrics": metrics,
                }],
            },
            "Table": table,
            "Request": self.kind,
            "LimitsNamespace": self.namespace,
            "Applied": self.summary.written(),
            "Failed": failed,
            "Pending": self.summary.pending,
            "Stamped": self.summary.stamped,
            "Duration": self.duration_ms,
        });
        if let Some(seconds) = self.oldest_pending {
            line["PendingAge"] = json!(seconds);
        }
        line.fmt(f)
    }
}
