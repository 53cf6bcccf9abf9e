//! The pipeline: load, plan, guard, then write ahead, write config, fan out, record, report.
//!
//! Expected flow: [`prepare`] makes a plan, the caller shows it, [`Plan::guard`](crate::plan::Plan::guard) lets it pass,
//! [`apply`] carries it out.
//!
//! Guarantees: nothing is written before the plan is guarded and what it owes is recorded; every
//! write may be repeated; what did not land is in the report and stays recorded, so that the next
//! apply, by whomever, finishes it.

mod pending;
mod prepare;
mod record;

pub use pending::{LONGEST_RUN_MS, resume};
pub use prepare::prepare;

use crate::apply::{ConfigWrites, Writer};
use crate::clock::Clock;
use crate::fanout::{Fanouts, Outcome, Progress, Settings, Shares};
use crate::model::{EpochMs, Level, NamespaceId, Owed};
use crate::plan::{Action, GuardedPlan, Requirement, ratchet};
use crate::report::{ApplyReport, FanoutReport, LevelName, PlanReport, Status};
use crate::store::{Author, Claim, Store, StoreError};
use pending::Taken;
use std::collections::BTreeSet;

/// How often the oldest client version is raised while others raise it too.
const RATCHET_ROUNDS: usize = 4;

/// How an apply runs.
#[derive(Debug, Clone, Default)]
pub struct ApplyOptions {
    /// Who applies, for the audit: a caller's ARN or a stack's id.
    pub principal: Option<String>,
    /// How the fan-outs run, the deadline of the whole apply included.
    pub fanout: Settings,
    /// Every fan-out of every declared level was planned.
    pub full: bool,
    /// Run the fan-outs too that another apply holds and may still be running: should it be dead,
    /// its switches are in effect now and not only when its lease has run out.
    pub join: bool,
    /// Once every level is as planned, delete the record too: the namespace is given up.
    pub forget: bool,
    /// What the manifest is warned about, for the report.
    pub warnings: Vec<String>,
}

/// Carries a guarded plan out.
///
/// # Errors
/// [`StoreError`] when it failed before any config was written. Later failures are in the report.
pub async fn apply(
    store: &Store,
    clock: &Clock,
    guarded: &GuardedPlan,
    options: &ApplyOptions,
    progress: &dyn Progress,
) -> Result<ApplyReport, StoreError> {
    let began = clock.now();
    let plan = guarded.plan();
    let ns = match &plan.namespace_id {
        Some(id) => id.clone(),
        None => store.register_namespace(&plan.namespace, began).await?,
    };
    let run = Run {
        store,
        clock,
        ns: &ns,
        guarded,
        options,
        progress,
        claim: pending::new_claim(options, began),
    };
    raise_client_min(store, plan.requirement).await?;
    run.record_intent().await?;
    let taken = if plan.pending.is_empty() {
        Taken::default()
    } else {
        let found = store.pending(&ns).await?;
        pending::claim(store, &ns, &found, &run.claim).await?
    };
    let resumes = run.resumes(&taken);
    let owed = run.owed(&taken, resumes);
    run.write_ahead(&owed, &taken, resumes).await?;
    let mut due: BTreeSet<Owed> = owed.into_iter().chain(taken.owed.clone()).collect();
    // Boxed, as the fan-outs are: each is large, and stands inside whatever runs the apply.
    let writes = Box::pin(run.write_configs(&due)).await;
    let tidied = run.tidy().await;
    due.extend(writes.also_owed.iter().cloned());
    let outcomes = Box::pin(run.fan_out(&due, &writes, began)).await;
    let mut errors = errors_of(&writes, &outcomes);
    errors.extend(tidied.as_ref().err().map(ToString::to_string));
    // What is there first: giving up shares may take longer than there is time for.
    errors.extend(run.record_outcome(&writes, &outcomes, tidied.is_ok()).await);
    errors.extend(run.settle(&taken, &writes, &outcomes).await);
    let pending = if due.is_empty() && plan.pending.is_empty() {
        0
    } else {
        let pending = run.still_pending(&outcomes).await;
        pending.unwrap_or_else(|error| {
            errors.push(error.to_string());
            plan.pending.len()
        })
    };
    Ok(ApplyReport {
        resumed: taken.owed.len(),
        pending,
        full_resumed: resumes,
        ..run.report(&writes, &outcomes, pending, errors, began)
    })
}

struct Run<'a> {
    store: &'a Store,
    clock: &'a Clock,
    ns: &'a NamespaceId,
    guarded: &'a GuardedPlan,
    options: &'a ApplyOptions,
    progress: &'a dyn Progress,
    claim: Claim,
}

impl Run<'_> {
    /// Whether this full apply only goes on with one that was interrupted. A full apply that is too
    /// large for the time it is given would otherwise begin all over each time and never end.
    ///
    /// The record says that the interrupted one had recorded all it owes: of one that died before,
    /// what is pending is not all there is to do.
    fn resumes(&self, taken: &Taken) -> bool {
        let before = self.guarded.plan().record_before.as_ref();
        let is_recorded = before.is_some_and(|record| record.full_owed);
        self.options.full && is_recorded && !taken.full.is_empty()
    }

    /// What is recorded ahead: what the plan owes, what an older record lists, and what another
    /// apply holds and this one runs as well. That one's share stays: it may yet write.
    fn owed(&self, taken: &Taken, resumes: bool) -> Vec<Owed> {
        let plan = self.guarded.plan();
        let mut owed: BTreeSet<Owed> = if resumes {
            plan.owed_by_changes().collect()
        } else {
            plan.owed.clone()
        };
        owed.extend(plan.record_before.iter().flat_map(|record| record.listed()));
        if self.options.join {
            owed.extend(plan.pending.difference(&taken.owed).cloned());
        }
        owed.into_iter().collect()
    }

    /// How many fan-outs are still owed.
    async fn still_pending(&self, outcomes: &[Outcome]) -> Result<usize, StoreError> {
        let left = self.store.pending(self.ns).await?;
        Ok(pending::still_owed(&left, self.options, outcomes).len())
    }

    /// Records what is owed. When that fails nothing else is written, and what was taken over is
    /// given back at once.
    async fn write_ahead(
        &self,
        owed: &[Owed],
        taken: &Taken,
        resumes: bool,
    ) -> Result<(), StoreError> {
        let written = self.try_write_ahead(owed, resumes).await;
        if written.is_err() {
            let now = self.clock.now();
            pending::give_back(self.store, self.ns, owed, taken, &self.claim, now).await;
        }
        written
    }

    async fn try_write_ahead(&self, owed: &[Owed], resumes: bool) -> Result<(), StoreError> {
        let plan = self.guarded.plan();
        let begins = self.options.full && !resumes;
        let is_marked = plan.record_before.as_ref().is_some_and(|r| r.full_owed);
        if begins && is_marked {
            // Until this one has recorded all it owes there is nothing to go on with.
            self.mark_full(false).await?;
        }
        self.store.write_ahead(self.ns, owed, &self.claim).await?;
        if begins && !owed.is_empty() {
            self.mark_full(true).await?;
        }
        Ok(())
    }

    async fn write_configs(&self, recorded: &BTreeSet<Owed>) -> ConfigWrites {
        let writer = Writer {
            store: self.store,
            ns: self.ns,
            clock: self.clock,
            claim: &self.claim,
            author: Author {
                principal: self.options.principal.as_deref(),
                at: self.claim.now,
            },
            settings: &self.options.fanout,
            recorded,
        };
        writer.write(self.guarded).await
    }

    /// Once entity levels are gone, deleted now or by an apply that did not finish, their counts may
    /// be empty.
    async fn tidy(&self) -> Result<(), StoreError> {
        let plan = self.guarded.plan();
        let mut before = plan.record_before.iter().flat_map(|record| &record.managed);
        let goes = |level: &Level| {
            matches!(level, Level::Entity(..)) && !plan.record.managed.contains(level)
        };
        match before.any(goes) {
            true => self.store.tidy_registry(self.ns).await,
            false => Ok(()),
        }
    }

    async fn fan_out(
        &self,
        due: &BTreeSet<Owed>,
        writes: &ConfigWrites,
        began: EpochMs,
    ) -> Vec<Outcome> {
        let certain = due
            .iter()
            .filter(|owed| !writes.uncertain.contains(&owed.level));
        let certain: BTreeSet<Owed> = certain.cloned().collect();
        let shares = Shares {
            token: &self.claim.token,
            of: &certain,
        };
        let (store, ns, settings) = (self.store, self.ns, &self.options.fanout);
        let fanouts =
            Fanouts::new(store, ns, self.clock, settings, self.progress).releasing(shares);
        fanouts.run(due, writes.last_at.unwrap_or(began)).await
    }

    async fn settle(
        &self,
        taken: &Taken,
        writes: &ConfigWrites,
        outcomes: &[Outcome],
    ) -> Vec<String> {
        let (claim, now) = (&self.claim, self.clock.now());
        let (store, ns, uncertain) = (self.store, self.ns, &writes.uncertain);
        let settle = pending::settle(store, ns, claim, taken, uncertain, outcomes, now);
        let errors = self.options.fanout.in_grace(settle).await;
        errors.unwrap_or_else(|| {
            let late = "the time ran out while what is left was handed on: the next apply takes it \
                        over once this one's lease has run out";
            vec![late.to_owned()]
        })
    }

    fn report(
        &self,
        writes: &ConfigWrites,
        outcomes: &[Outcome],
        pending: usize,
        errors: Vec<String>,
        began: EpochMs,
    ) -> ApplyReport {
        let plan = self.guarded.plan();
        let count = |action| {
            writes
                .written
                .values()
                .filter(|done| **done == action)
                .count()
        };
        let nothing = plan.changes.is_empty() && outcomes.is_empty();
        let mut described =
            PlanReport::new(plan, self.store.table(), self.options.warnings.clone(), &[]);
        described.namespace_id = Some(self.ns.to_string());
        ApplyReport {
            status: match (errors.is_empty() && pending == 0, nothing) {
                (true, true) => Status::Unchanged,
                (true, false) => Status::Applied,
                (false, _) => Status::Partial,
            },
            plan: described,
            created: count(Action::Create),
            updated: count(Action::Update),
            deleted: count(Action::Delete),
            unchanged: plan.unchanged,
            stamped: outcomes.iter().map(|outcome| outcome.tally.stamped).sum(),
            resumed: 0,
            full_resumed: false,
            pending,
            unwritten: writes.failed.keys().map(LevelName::from).collect(),
            fanouts: outcomes.iter().map(FanoutReport::from).collect(),
            errors,
            duration_ms: self.clock.now().0.saturating_sub(began.0),
        }
    }
}

fn errors_of(writes: &ConfigWrites, outcomes: &[Outcome]) -> Vec<String> {
    let levels = writes
        .failed
        .iter()
        .map(|(level, reason)| format!("{level}: {reason}"));
    levels.chain(pending::unfinished(outcomes)).collect()
}

/// Raises the oldest client that may read the table, before anything it would get wrong is written.
async fn raise_client_min(
    store: &Store,
    requirement: Option<Requirement>,
) -> Result<(), StoreError> {
    for _ in 0..RATCHET_ROUNDS {
        if requirement.is_none() {
            return Ok(());
        }
        let versions = store.versions().await?;
        let Some(to) = ratchet(versions.as_ref(), requirement) else {
            return Ok(());
        };
        let from = versions.and_then(|versions| versions.client_min);
        if store
            .raise_client_min(from.as_deref(), &to.to_string())
            .await?
        {
            return Ok(());
        }
    }
    Err(StoreError::ConditionFailed {
        act: "raise the oldest client version".into(),
    })
}
