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

pub use pending::{LONGEST_RUN_MS, resume};
pub use prepare::prepare;

use crate::apply::{ConfigWrites, Writer};
use crate::clock::Clock;
use crate::fanout::{Fanouts, Outcome, Progress, Settings};
use crate::model::{EpochMs, Level, NamespaceId, Owed, Switch};
use crate::plan::{Action, Change, GuardedPlan, Requirement, ratchet};
use crate::report::{ApplyReport, FanoutReport, LevelName, PlanReport, Status};
use crate::store::{Author, Claim, RecordDelta, Store, StoreError, Takeover};
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
    let resumed = if plan.pending.is_empty() {
        Vec::new()
    } else {
        let found = store.pending(&ns).await?;
        pending::claim(store, &ns, &found, &run.claim).await?
    };
    let joined = run.joined(&resumed);
    let owed: BTreeSet<Owed> = plan.owed.iter().chain(&joined).cloned().collect();
    let owed: Vec<Owed> = owed.into_iter().collect();
    run.write_ahead(&owed, &resumed).await?;
    let writes = run.write_configs().await;
    let tidied = run.tidy(&writes, !resumed.is_empty()).await;
    let due: BTreeSet<Owed> = owed
        .into_iter()
        .chain(writes.also_owed.iter().cloned())
        .chain(resumed.clone())
        .collect();
    let outcomes = run.fan_out(&due, writes.last_at.unwrap_or(began)).await;
    let mut errors = errors_of(&writes, &outcomes);
    errors.extend(tidied);
    errors.extend(pending::settle(store, &ns, &run.claim, &outcomes, clock.now()).await);
    errors.extend(run.record_outcome(&writes).await);
    let pending = if due.is_empty() && plan.pending.is_empty() {
        0
    } else {
        run.still_pending(&outcomes).await
    };
    Ok(run.report(&writes, &outcomes, resumed.len(), pending, errors, began))
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
    /// What another apply holds and this one runs as well. Its own share stays: it may yet write.
    fn joined(&self, resumed: &[Owed]) -> BTreeSet<Owed> {
        let plan = self.guarded.plan();
        let held = plan
            .pending
            .iter()
            .filter(|owed| self.options.join && !resumed.contains(owed));
        held.cloned().collect()
    }

    /// How many fan-outs are still owed.
    async fn still_pending(&self, outcomes: &[Outcome]) -> usize {
        match self.store.pending(self.ns).await {
            Ok(left) => pending::still_owed(&left, self.options, outcomes).len(),
            Err(_) => self.guarded.plan().pending.len(),
        }
    }

    /// Before levels appear or switches are set, the record says that they are this manifest's:
    /// an apply that dies after them leaves nothing that no later one would clean up.
    async fn record_intent(&self) -> Result<(), StoreError> {
        let plan = self.guarded.plan();
        let before = plan.record_before.clone().unwrap_or_default();
        let known = before.switches.unwrap_or_default();
        let is_new = |level: &&Level| !before.managed.contains(*level);
        let managed: BTreeSet<Level> = plan.record.managed.iter().filter(is_new).cloned().collect();
        let switches = plan.record.switches.iter().flatten();
        let switches: Vec<_> = switches
            .filter(|(level, switch)| known.get(*level) != Some(*switch))
            .collect();
        let owner_differs = before.owner != plan.record.owner;
        if managed.is_empty() && switches.is_empty() && !owner_differs {
            return Ok(());
        }
        let delta = RecordDelta {
            managed,
            switches: switches.into_iter().map(|(l, s)| (l.clone(), *s)).collect(),
            owner: self.takeover(true),
            remembers: plan
                .record_before
                .as_ref()
                .is_none_or(|before| before.switches.is_some()),
            ..RecordDelta::default()
        };
        self.store.update_record(self.ns, &delta).await?;
        Ok(())
    }

    fn takeover(&self, or_fail: bool) -> Option<Takeover> {
        let plan = self.guarded.plan();
        let from = plan
            .record_before
            .as_ref()
            .and_then(|record| record.owner.clone());
        Some(Takeover {
            from,
            to: plan.record.owner.clone()?,
            or_fail,
        })
    }

    /// Records what is owed. When that fails nothing else is written, and what was taken over is
    /// given back at once.
    async fn write_ahead(&self, owed: &[Owed], resumed: &[Owed]) -> Result<(), StoreError> {
        let written = self.store.write_ahead(self.ns, owed, &self.claim).await;
        if written.is_err() {
            let shares = [owed, resumed].concat();
            let now = self.clock.now();
            pending::give_back(self.store, self.ns, &shares, &self.claim, now).await;
        }
        written
    }

    async fn write_configs(&self) -> ConfigWrites {
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
        };
        writer.write(self.guarded).await
    }

    /// After entity levels went, now or in an apply that did not finish, their counts may be empty.
    async fn tidy(&self, writes: &ConfigWrites, resumed: bool) -> Option<String> {
        let went = writes
            .written
            .iter()
            .any(|(level, action)| matches!(level, Level::Entity(..)) && *action == Action::Delete);
        if !went && !resumed {
            return None;
        }
        Some(self.store.tidy_registry(self.ns).await.err()?.to_string())
    }

    async fn fan_out(&self, due: &BTreeSet<Owed>, written_at: EpochMs) -> Vec<Outcome> {
        let settings = &self.options.fanout;
        let fanouts = Fanouts::new(self.store, self.ns, self.clock, settings, self.progress);
        fanouts.run(due, written_at).await
    }

    /// The switches that were to be removed and still stand, because their levels could not be
    /// written. They stay the manifest's: forgotten, they would be taken for set by hand and kept
    /// for good.
    fn unremoved(&self, writes: &ConfigWrites) -> impl Iterator<Item = (Level, Switch)> {
        let plan = self.guarded.plan();
        let failed = |change: &&Change| writes.failed.contains_key(&change.level);
        plan.changes.iter().filter(failed).filter_map(|change| {
            let stands = change.before_config()?.disabled?;
            let declared = change.after.as_ref().and_then(|after| after.disabled);
            let ours = plan.record_before.as_ref()?.owns_switch(&change.level);
            (ours && declared.is_none()).then(|| (change.level.clone(), stands))
        })
    }

    /// The record lists what is really there: not levels that could not be created, and levels
    /// that could not be deleted still.
    async fn record_outcome(&self, writes: &ConfigWrites) -> Option<String> {
        let plan = self.guarded.plan();
        // What is pending is recorded on its own: a record that lists nothing and still names an
        // owner who is gone would only be in the next one's way.
        if self.options.forget && writes.failed.is_empty() {
            let owner = plan.record.owner.as_ref();
            let deleted = self.store.delete_record(self.ns, owner).await;
            return Some(deleted.err()?.to_string());
        }
        let failed_create = |change: &&Change| {
            change.action == Action::Create && writes.failed.contains_key(&change.level)
        };
        let missing: BTreeSet<Level> = plan
            .changes
            .iter()
            .filter(failed_create)
            .map(|change| change.level.clone())
            .collect();
        let before = plan.record_before.iter().flat_map(|record| &record.managed);
        let gone = before.filter(|level| {
            !plan.record.managed.contains(*level) && !writes.failed.contains_key(*level)
        });
        let here = |level: &&Level| !missing.contains(*level);
        let switches = plan.record.switches.clone().unwrap_or_default();
        let silent = plan
            .record
            .managed
            .iter()
            .filter(|level| !switches.contains_key(*level));
        let delta = RecordDelta {
            managed: plan.record.managed.iter().filter(here).cloned().collect(),
            released: gone.cloned().chain(missing.iter().cloned()).collect(),
            silent: silent.cloned().collect(),
            switches: switches
                .into_iter()
                .filter(|(level, _)| here(&level))
                .chain(self.unremoved(writes))
                .collect(),
            owner: self.takeover(false),
            applied_hash: plan
                .record
                .applied_hash
                .clone()
                .filter(|_| writes.failed.is_empty()),
            last_applied: Some(self.clock.now()),
            remembers: true,
            settled: false,
            wrote: !writes.written.is_empty(),
        };
        Some(
            self.store
                .update_record(self.ns, &delta)
                .await
                .err()?
                .to_string(),
        )
    }

    fn report(
        &self,
        writes: &ConfigWrites,
        outcomes: &[Outcome],
        resumed: usize,
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
            resumed,
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
