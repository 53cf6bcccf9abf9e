//! Finishing what earlier applies left, of one namespace or of all that a table has.
//!
//! All of them is what a schedule asks for, and the only way to know how long the oldest fan-out of a
//! table is owed. Needs no manifest, and writes no level.

use super::Function;
use super::budget::Budget;
use super::failure::Failure;
use super::summary::Summary;
use crate::model::{EpochMs, NamespaceId, NamespaceName, Pending};
use crate::reconcile::{self, ApplyOptions};
use crate::report::ResumeReport;
use crate::store::{Store, StoreError};
use futures::{StreamExt, stream};
use serde_json::{Value, json};

/// Namespaces whose pending fan-outs are read at once.
const READS: usize = 8;

/// What was resumed.
pub(super) struct Resumed {
    pub(super) answer: Value,
    pub(super) summary: Summary,
    /// By name; empty when it was all of them.
    pub(super) namespace: String,
    /// How long the oldest fan-out of the table is owed, in seconds, when all of them were looked at.
    pub(super) oldest_pending: Option<u64>,
}

/// What is pending in one namespace.
struct Owing {
    name: NamespaceName,
    id: NamespaceId,
    pending: Vec<Pending>,
}

impl Owing {
    fn since(&self) -> Option<EpochMs> {
        self.pending.iter().filter_map(|one| one.written).min()
    }

    fn is_claimable(&self, now: EpochMs) -> bool {
        self.pending.iter().any(|one| one.is_claimable(now))
    }
}

/// What a run over several namespaces came to.
#[derive(Default)]
struct Tally {
    resumed: usize,
    stamped: u64,
    pending: usize,
    /// Namespaces in which something could not even be tried.
    failed: usize,
    errors: Vec<String>,
}

impl Function {
    /// Finishes what is owed in one namespace.
    pub(super) async fn resume_one(
        &self,
        store: &Store,
        name: &NamespaceName,
        id: Option<NamespaceId>,
        budget: Budget,
    ) -> Result<Resumed, Failure> {
        let Some(ns) = id else {
            return Err(Failure::Namespace(format!(
                "the namespace {:?} is not registered in table {}: name another one",
                name.as_str(),
                store.table()
            )));
        };
        let report = self.finish(store, &ns, budget.work_until(), budget).await?;
        let tally = Tally {
            resumed: report.resumed,
            stamped: report.stamped,
            pending: report.pending.len(),
            failed: 0,
            errors: report.errors,
        };
        Ok(Resumed {
            answer: answer(&tally),
            summary: summary(tally),
            namespace: name.to_string(),
            oldest_pending: None,
        })
    }

    /// Finishes what is owed in every namespace, the longest owed first. A namespace that fails is
    /// reported, and keeps none of the others from its turn.
    pub(super) async fn resume_all(
        &self,
        store: &Store,
        budget: Budget,
    ) -> Result<Resumed, Failure> {
        let (namespaces, damaged) = store.namespaces().await?;
        let count = namespaces.len() + damaged.len();
        let mut tally = Tally::default();
        for error in damaged {
            tracing::error!(%error, "could not resume a namespace that does not read");
            tally.failed += 1;
            tally.errors.push(error.to_string());
        }
        // Gathered first: a stream of closures over references is not `Send`.
        let reads: Vec<_> = namespaces
            .into_iter()
            .map(|(name, id)| async move {
                let pending = store.pending(&id).await;
                (name, id, pending)
            })
            .collect();
        let read: Vec<_> = stream::iter(reads).buffered(READS).collect().await;
        let mut owing = Vec::new();
        for (name, id, pending) in read {
            match pending {
                Ok(pending) => owing.push(Owing { name, id, pending }),
                Err(error) => tally.failed(&name, &error),
            }
        }
        owing.retain(|owing| !owing.pending.is_empty());
        owing.sort_by_key(Owing::since);
        self.finish_each(store, &mut owing, &mut tally, budget)
            .await;
        let now = self.clock().now();
        let since = owing.iter().filter_map(Owing::since).min();
        let oldest = since.map_or(0, |since| now.0.saturating_sub(since.0) / 1000);
        let mut answer = answer(&tally);
        answer["namespaces"] = json!(count);
        answer["oldest_pending_seconds"] = json!(oldest);
        Ok(Resumed {
            answer,
            summary: summary(tally),
            namespace: String::new(),
            oldest_pending: Some(oldest),
        })
    }

    /// Runs what may be taken over, and leaves in `owing` what is pending afterwards.
    async fn finish_each(
        &self,
        store: &Store,
        owing: &mut [Owing],
        tally: &mut Tally,
        budget: Budget,
    ) {
        let now = self.clock().now();
        let mut left = owing.iter().filter(|owing| owing.is_claimable(now)).count() as u64;
        for owing in owing.iter_mut() {
            if owing.is_claimable(now) {
                let now = self.clock().now();
                // An equal share of what is left: one namespace without end must not starve the rest.
                let share = budget.work_until().0.saturating_sub(now.0) / left.max(1);
                left = left.saturating_sub(1);
                match self
                    .finish(store, &owing.id, now.plus_ms(share), budget)
                    .await
                {
                    Ok(report) => tally.add(&owing.name, report),
                    Err(error) => tally.failed(&owing.name, &error),
                }
                match store.pending(&owing.id).await {
                    Ok(pending) => owing.pending = pending,
                    Err(error) => tally.failed(&owing.name, &error),
                }
            }
            tally.pending += owing.pending.len();
        }
    }

    async fn finish(
        &self,
        store: &Store,
        ns: &NamespaceId,
        until: EpochMs,
        budget: Budget,
    ) -> Result<ResumeReport, StoreError> {
        let options = ApplyOptions {
            fanout: self.fanout_until(until, budget),
            ..ApplyOptions::default()
        };
        reconcile::resume(store, self.clock(), ns, &options, &()).await
    }
}

impl Tally {
    fn add(&mut self, name: &NamespaceName, report: ResumeReport) {
        self.resumed += report.resumed;
        self.stamped += report.stamped;
        let errors = report.errors.into_iter();
        self.errors
            .extend(errors.map(|error| format!("namespace {:?}: {error}", name.as_str())));
    }

    fn failed(&mut self, name: &NamespaceName, error: &StoreError) {
        tracing::error!(namespace = name.as_str(), %error, "could not resume");
        self.failed += 1;
        self.errors
            .push(format!("namespace {:?}: {error}", name.as_str()));
    }
}

fn answer(tally: &Tally) -> Value {
    json!({
        "status": "resumed",
        "changes": [],
        "created": 0,
        "updated": 0,
        "deleted": 0,
        "unchanged": 0,
        "full": false,
        "resumed": tally.resumed > 0,
        "resumed_fanouts": tally.resumed,
        "stamped": tally.stamped,
        "pending": tally.pending,
        "errors": tally.errors,
    })
}

fn summary(tally: Tally) -> Summary {
    Summary {
        status: Some("resumed"),
        stamped: tally.stamped,
        pending: tally.pending,
        failed: tally.failed,
        errors: tally.errors,
        ..Summary::default()
    }
}
