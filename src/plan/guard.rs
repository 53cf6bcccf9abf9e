//! Guards: what an apply refuses to do unless it was told that it may.

use super::{Action, Plan};
use crate::model::ManifestOwner;
use thiserror::Error;

/// The share of managed levels that may be deleted without being told so, in percent.
const DELETE_PERCENT: usize = 30;
/// This many deletes are always fine, so that small namespaces can change.
const DELETE_FLOOR: usize = 3;

/// What the caller allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Who applies.
    pub owner: ManifestOwner,
    /// Take a namespace over from another owner.
    pub adopt: bool,
    /// Let an empty manifest delete everything that is managed.
    pub allow_empty: bool,
    /// How many levels may be deleted; `None`: 30 % of the managed ones, or 3.
    pub max_delete: Option<usize>,
    /// The fingerprint of the plan that was reviewed; `None` when none was.
    pub reviewed: Option<String>,
    /// A stack deletes what it owns: an empty manifest and many deletes are the point.
    pub deletes_all: bool,
    /// A stack goes back to what it had: the manifest that was applied last, or the one before, may be
    /// empty and may delete many levels, as long as the same owner applied them.
    pub goes_back: bool,
}

impl Policy {
    /// The policy of an owner who allows nothing unusual.
    pub fn strict(owner: ManifestOwner) -> Policy {
        Policy {
            owner,
            adopt: false,
            allow_empty: false,
            max_delete: None,
            reviewed: None,
            deletes_all: false,
            goes_back: false,
        }
    }

    /// Whether deletes are what a plan is for, however many.
    fn expects_deletes(&self, plan: &Plan) -> bool {
        self.deletes_all || (self.goes_back && plan.goes_back(&self.owner))
    }
}

/// The guard that refused, and so the flag that allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guard {
    /// Allowed by `--allow-empty`.
    AllowEmpty,
    /// Allowed by `--max-delete`.
    MaxDelete,
    /// Allowed by `--adopt`.
    Adopt,
    /// Plan again.
    Stale,
    /// Upgrade what is deployed.
    Versions,
}

/// Why a plan may not be applied.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The manifest is empty and the namespace is not.
    #[error(
        "the manifest declares nothing, and the namespace manages {}: all would be deleted",
        levels(*.managed)
    )]
    Empty {
        /// Levels managed.
        managed: usize,
    },
    /// Too many levels would go.
    #[error("{deletes} of {managed} managed levels would be deleted, and at most {allowed} may be")]
    TooManyDeletes {
        /// Levels that would be deleted.
        deletes: usize,
        /// Levels managed.
        managed: usize,
        /// Deletes allowed.
        allowed: usize,
    },
    /// The namespace is someone else's.
    #[error("the namespace is managed by {owner}")]
    OtherOwner {
        /// Who applied last.
        owner: ManifestOwner,
    },
    /// The table's versions forbid it.
    #[error(transparent)]
    Versions(#[from] super::GateError),
    /// The reviewed plan is no longer the plan.
    #[error(
        "the table or the manifest changed since the plan was saved (it was {reviewed}, it is now {current})"
    )]
    Stale {
        /// The fingerprint that was reviewed.
        reviewed: String,
        /// The fingerprint now.
        current: String,
    },
}

fn levels(count: usize) -> String {
    match count {
        1 => "1 level".to_owned(),
        count => format!("{count} levels"),
    }
}

impl Refusal {
    /// The guard behind the refusal.
    pub fn guard(&self) -> Guard {
        match self {
            Refusal::Empty { .. } => Guard::AllowEmpty,
            Refusal::TooManyDeletes { .. } => Guard::MaxDelete,
            Refusal::OtherOwner { .. } => Guard::Adopt,
            Refusal::Stale { .. } => Guard::Stale,
            Refusal::Versions(_) => Guard::Versions,
        }
    }

    /// How many deletes would have to be allowed, when that is what is missing.
    pub fn deletes(&self) -> Option<usize> {
        match self {
            Refusal::TooManyDeletes { deletes, .. } => Some(*deletes),
            _ => None,
        }
    }
}

/// A plan that every guard let pass. Only this can be applied.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a guarded plan does nothing until it is applied"]
pub struct GuardedPlan {
    plan: Plan,
}

impl GuardedPlan {
    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

impl Plan {
    /// Every reason why this plan may not be applied under a policy. Empty when it may.
    pub fn refusals(&self, policy: &Policy) -> Vec<Refusal> {
        let managed = self
            .record_before
            .as_ref()
            .map_or(0, |record| record.managed.len());
        let deletes = self.count(Action::Delete);
        let default = (managed * DELETE_PERCENT / 100).max(DELETE_FLOOR);
        let allowed = policy.max_delete.unwrap_or(default);
        let owner = self
            .record_before
            .as_ref()
            .and_then(|record| record.owner.as_ref());
        let mut refusals: Vec<Refusal> = self.gate.clone().into_iter().map(Refusal::from).collect();
        if let Some(owner) = owner.filter(|owner| !policy.adopt && **owner != policy.owner) {
            refusals.push(Refusal::OtherOwner {
                owner: owner.clone(),
            });
        }
        let expected = policy.expects_deletes(self);
        if self.declared == 0 && managed > 0 && !policy.allow_empty && !expected {
            refusals.push(Refusal::Empty { managed });
        } else if deletes > allowed && self.declared > 0 && !expected {
            refusals.push(Refusal::TooManyDeletes {
                deletes,
                managed,
                allowed,
            });
        }
        let current = self.fingerprint();
        if let Some(reviewed) = policy
            .reviewed
            .as_ref()
            .filter(|reviewed| **reviewed != current)
        {
            refusals.push(Refusal::Stale {
                reviewed: reviewed.clone(),
                current,
            });
        }
        refusals
    }

    /// Whether an owner has applied this manifest before: last, which leaves only what an unfinished
    /// apply added, or next to last, which takes the last one back.
    fn goes_back(&self, owner: &ManifestOwner) -> bool {
        let (Some(before), Some(hash)) = (&self.record_before, &self.record.applied_hash) else {
            return false;
        };
        before.owner.as_ref() == Some(owner)
            && [&before.applied_hash, &before.previous_hash].contains(&&Some(hash.clone()))
    }

    /// Lets the plan pass, or says every reason why not.
    ///
    /// # Errors
    /// Every [`Refusal`], at least one.
    pub fn guard(mut self, policy: &Policy) -> Result<GuardedPlan, Vec<Refusal>> {
        let refusals = self.refusals(policy);
        if !refusals.is_empty() {
            return Err(refusals);
        }
        self.record.owner = Some(policy.owner.clone());
        Ok(GuardedPlan { plan: self })
    }
}
