//! What one request came to, in counts: for the answer's `Data`, the logs and the metrics.
//!
//! Counts, never lists: an answer is at most 4,096 bytes, whatever the manifest holds.

use crate::report::{ApplyReport, Status};
use serde_json::{Map, Value};

/// The counts of one request. Levels unless they say otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// `applied`, `unchanged`, `partial`, `deleted`, `skipped`, or `failed` when nothing else is.
    pub status: Option<&'static str>,
    /// Created.
    pub created: usize,
    /// Updated.
    pub updated: usize,
    /// Deleted.
    pub deleted: usize,
    /// Already as declared.
    pub unchanged: usize,
    /// Buckets stamped.
    pub stamped: u64,
    /// Fan-outs that are still owed.
    pub pending: usize,
    /// Warnings about the manifest and about stored items, and switches kept although it does not name
    /// them.
    pub warnings: usize,
    /// Levels that could not be written.
    pub failed: usize,
    /// Identifies the plan; empty when none was made.
    pub fingerprint: String,
    /// What failed, one line each.
    pub errors: Vec<String>,
    /// Errors that are neither a level nor a fan-out: the record, or what is pending.
    pub other_errors: usize,
}

impl Summary {
    /// What an apply came to.
    pub fn of(report: &ApplyReport) -> Summary {
        let planned = report.plan.created + report.plan.updated + report.plan.deleted;
        let failed = planned.saturating_sub(report.created + report.updated + report.deleted);
        let unfinished = report
            .fanouts
            .iter()
            .filter(|fanout| !fanout.landed)
            .count();
        Summary {
            status: Some(match report.status {
                Status::Unchanged => "unchanged",
                Status::Applied => "applied",
                Status::Partial => "partial",
            }),
            created: report.created,
            updated: report.updated,
            deleted: report.deleted,
            unchanged: report.unchanged,
            stamped: report.stamped,
            pending: report.pending,
            warnings: report.all_warnings().count() + report.plan.kept.len(),
            failed,
            fingerprint: report.plan.fingerprint.clone(),
            errors: report.errors.clone(),
            other_errors: report.errors.len().saturating_sub(failed + unfinished),
        }
    }

    /// Adds an apply that continued this one: what was written adds up, what is left is the later's.
    #[must_use]
    pub fn followed_by(self, later: Summary) -> Summary {
        let wrote = self.written() + later.written() > 0 || self.stamped + later.stamped > 0;
        Summary {
            status: match later.status {
                Some("unchanged") if wrote => Some("applied"),
                status => status,
            },
            created: self.created + later.created,
            updated: self.updated + later.updated,
            deleted: self.deleted + later.deleted,
            unchanged: self.unchanged,
            stamped: self.stamped + later.stamped,
            fingerprint: self.fingerprint,
            ..later
        }
    }

    /// Levels written.
    pub fn written(&self) -> usize {
        self.created + self.updated + self.deleted
    }

    /// `Data`: flat, every value a string, and the same keys every time, so that no template's
    /// attribute reference depends on what happened.
    pub fn data(&self) -> Map<String, Value> {
        let text = |text: &dyn ToString| Value::String(text.to_string());
        [
            ("Status", text(&self.status.unwrap_or("failed"))),
            ("Created", text(&self.created)),
            ("Updated", text(&self.updated)),
            ("Deleted", text(&self.deleted)),
            ("Unchanged", text(&self.unchanged)),
            ("Stamped", text(&self.stamped)),
            ("Pending", text(&self.pending)),
            ("Warnings", text(&self.warnings)),
            ("Fingerprint", text(&self.fingerprint)),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
    }
}
