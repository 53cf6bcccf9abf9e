//! What is pending, and what a resume made of it.

use super::{FanoutReport, OwedReport};
use crate::model::{EpochMs, Pending};
use serde::Serialize;

/// One fan-out that an earlier apply left unfinished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PendingReport {
    /// What is owed.
    #[serde(flatten)]
    pub owed: OwedReport,
    /// Until when an apply that may still be running holds it, in milliseconds since 1970; null
    /// when whoever comes next may take it over.
    pub held_until: Option<EpochMs>,
}

impl PendingReport {
    /// How a pending fan-out stands at an instant.
    pub fn at(pending: &Pending, now: EpochMs) -> Self {
        let leases = pending.owners.values().filter_map(|owner| owner.lease);
        PendingReport {
            owed: OwedReport::from(&pending.owed),
            held_until: leases.filter(|lease| *lease >= now).max(),
        }
    }
}

/// What became of fan-outs that earlier applies left.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResumeReport {
    /// How many were taken over.
    pub resumed: usize,
    /// How many were run as well while another apply holds them.
    pub joined: usize,
    /// Buckets written by all of them together.
    pub stamped: u64,
    /// Fan-outs still owed, by whomever.
    pub pending: Vec<PendingReport>,
    /// The fan-outs that ran.
    pub fanouts: Vec<FanoutReport>,
    /// What failed, one line each.
    pub errors: Vec<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

impl ResumeReport {
    /// Whether nothing failed and nothing is owed any more.
    pub fn is_complete(&self) -> bool {
        self.errors.is_empty() && self.pending.is_empty()
    }
}
