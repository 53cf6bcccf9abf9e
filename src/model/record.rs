//! The provisioner record: which levels applies manage, which switches they declared, who owns them.

use super::{EpochMs, FanoutKind, Level, Owed, Switch};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Who applies a namespace's manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ManifestOwner {
    /// A resource of a CloudFormation stack.
    Stack {
        /// The stack's ARN.
        stack_id: String,
        /// The resource's logical id within the stack.
        logical_id: String,
    },
    /// The command line, or a direct invoke.
    Cli,
}

impl fmt::Display for ManifestOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ManifestOwner::Cli => f.write_str("the command line"),
            ManifestOwner::Stack {
                stack_id,
                logical_id,
            } => {
                write!(f, "resource {logical_id:?} of stack {stack_id:?}")
            }
        }
    }
}

/// What the table remembers between applies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProvisionerRecord {
    /// Every level that applies manage. Only these are ever deleted.
    pub managed: BTreeSet<Level>,
    /// The switches that the last apply declared. `None`: the record was written by the Python
    /// provisioner, which has no memory of switches.
    pub switches: Option<BTreeMap<Level, Switch>>,
    /// Who applied last; `None` is anyone's.
    pub owner: Option<ManifestOwner>,
    /// From whom that one took the namespace over, until it is certain that they do not want it back.
    pub taken_from: Option<ManifestOwner>,
    /// `sha256:` of the canonical manifest of the last apply.
    pub applied_hash: Option<String>,
    /// `applied_hash` before it last changed: what a failed update of a stack goes back to. `None`:
    /// there was none, or the Python provisioner wrote the record, which does not know it.
    pub previous_hash: Option<String>,
    /// When the last apply finished.
    pub last_applied: Option<EpochMs>,
    /// Whether a full apply has recorded every fan-out it owes and has not ended: should it be
    /// interrupted, what of them is still pending is all that the next full apply has to do.
    pub full_owed: bool,
    /// Levels whose cascade fan-out a Python provisioner before 0.17 left to the next apply.
    pub cascade_pending: BTreeSet<Level>,
    /// Counts writes of the record; 0 when a record carries none.
    pub rev: u64,
}

impl ProvisionerRecord {
    /// The fan-outs that the record itself lists as owed.
    pub fn listed(&self) -> impl Iterator<Item = Owed> + '_ {
        self.cascade_pending.iter().map(|level| Owed {
            level: level.clone(),
            kind: FanoutKind::Cascade,
        })
    }

    /// Whether a switch stored at a level is the manifest's: the last apply declared it. A record
    /// without a memory makes every switch at a managed level the manifest's.
    pub fn owns_switch(&self, level: &Level) -> bool {
        match &self.switches {
            Some(switches) => switches.contains_key(level),
            None => self.managed.contains(level),
        }
    }
}
