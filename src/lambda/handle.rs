//! A CloudFormation request: Create, Update and Delete of `Custom::ZaeLimiterLimits`.
//!
//! Create and Update are one thing: the table becomes what the properties say. An Update may be a
//! rollback, so the old properties are not looked at, and a manifest that this resource applied
//! before may delete what came after it. A Delete looks at no properties at all, only at its id and
//! at who owns what that id names. Answering is not done here.
//!
//! Caveat: a Create that is cancelled has not given its id yet, so its Delete comes with an id of
//! CloudFormation's own making, perhaps while the Create still runs. Such an id names no table, and
//! that Delete touches nothing, leaves no tombstone either: a Create that ends later leaves its levels
//! behind. They are owned by stack and logical id, so the same resource, created again, goes on from them.
//! Likewise a Create that is delivered once more after its Delete is carried out once more: its
//! RequestId does not tell it from a new attempt, which may carry the same one. How late that can be
//! is set where events are queued: by template.yaml four minutes after the request, so that at least a
//! Create that CloudFormation gave up by its timeout is over before the rollback begins.

use super::budget::Budget;
use super::envelope::{Envelope, PROPERTIES, RequestType};
use super::failure::{Failure, Spelling};
use super::id::{self, Named};
use super::pipeline::Intent;
use super::summary::Summary;
use super::{Function, source, takeover};
use crate::manifest::{Manifest, OnFanoutError, Properties, parse_properties};
use crate::model::{ManifestOwner, NamespaceId, ProvisionerRecord};
use crate::plan::{Guard, PlanOptions, Policy};
use crate::reconcile::ApplyOptions;
use crate::store::{Store, StoreError};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

/// The shortest and the longest pause between two looks at fan-outs that another apply holds.
const PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(2));

/// What is known of a request while it runs, for the answer of one that does not end by itself.
#[derive(Debug, Default)]
pub(super) struct Fate {
    /// The id of the resource, known before its first level is written.
    pub(super) physical_id: OnceLock<String>,
    /// The namespace by name.
    pub(super) namespace: OnceLock<String>,
}

/// A request that succeeded.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) physical_id: String,
    pub(super) summary: Summary,
}

/// One request under way.
pub(super) struct Request<'a> {
    pub(super) function: &'a Function,
    pub(super) envelope: &'a Envelope,
    pub(super) budget: Budget,
    pub(super) fate: &'a Fate,
}

/// Which resource asks.
struct Asker<'a> {
    stack_id: &'a str,
    logical_id: &'a str,
}

impl Asker<'_> {
    fn owner(&self) -> ManifestOwner {
        ManifestOwner::Stack {
            stack_id: self.stack_id.to_owned(),
            logical_id: self.logical_id.to_owned(),
        }
    }
}

impl Request<'_> {
    pub(super) async fn run(&self) -> Result<Done, Failure> {
        let needed = |value, name| match value {
            Some(value) => Ok(value),
            None => Err(Failure::Missing(name)),
        };
        if let RequestType::Unknown(found) = &self.envelope.request_type {
            return Err(Failure::UnknownRequest(found.clone()));
        }
        needed(self.envelope.request_id.as_deref(), "RequestId")?;
        let asker = Asker {
            stack_id: needed(self.envelope.stack_id.as_deref(), "StackId")?,
            logical_id: needed(self.envelope.logical_id.as_deref(), "LogicalResourceId")?,
        };
        match self.envelope.request_type {
            RequestType::Delete => self.delete(&asker).await,
            _ => self.converge(&asker).await,
        }
    }

    /// Create and Update.
    async fn converge(&self, asker: &Asker<'_>) -> Result<Done, Failure> {
        if let Some(reason) = &self.envelope.unreadable {
            return Err(Failure::Unreadable(reason.clone()));
        }
        let Some(properties) = &self.envelope.properties else {
            return Err(Failure::Missing(PROPERTIES));
        };
        let properties = parse_properties(properties)?;
        let given = properties.table_name.as_deref();
        let table = given
            .or(self.function.options().table.as_deref())
            .ok_or(Failure::NoTable(Spelling::Properties))?;
        let store = self.function.tables().open(table).await?;
        let root = self.function.options().root.as_deref();
        let (manifest, namespace_id) = source::manifest(&store, &properties, root).await?;
        let _ = self
            .fate
            .namespace
            .set(manifest.namespace().as_str().to_owned());
        let mut intent = self.intent(&store, &manifest, namespace_id, &properties, asker);
        let summary = self.apply(&mut intent, &properties, asker).await?;
        if let (RequestType::Update, Some(ns)) = (&self.envelope.request_type, &intent.namespace_id)
        {
            takeover::stays(&store, ns).await;
        }
        let report = properties.on_fanout_error == OnFanoutError::Report;
        let is_done = summary.failed == 0
            && summary.other_errors == 0
            && (report || (summary.pending == 0 && summary.errors.is_empty()));
        match (is_done, self.fate.physical_id.get()) {
            (true, Some(id)) => Ok(Done {
                physical_id: id.clone(),
                summary,
            }),
            _ => Err(Failure::Unfinished(Box::new(summary))),
        }
    }

    fn intent<'i>(
        &'i self,
        store: &'i Store,
        manifest: &'i Manifest,
        namespace_id: Option<NamespaceId>,
        properties: &Properties,
        asker: &Asker<'_>,
    ) -> Intent<'i> {
        let max_delete = properties.max_delete.map(|most| most.try_into());
        Intent {
            store,
            clock: self.function.clock(),
            manifest,
            namespace_id,
            plan: PlanOptions {
                out_of_band: properties.out_of_band,
                full: properties.full_apply,
            },
            policy: Policy {
                adopt: properties.adopt,
                allow_empty: properties.allow_empty,
                max_delete: max_delete.map(|most| most.unwrap_or(usize::MAX)),
                goes_back: self.envelope.request_type == RequestType::Update,
                ..Policy::strict(asker.owner())
            },
            options: ApplyOptions {
                principal: Some(asker.stack_id.to_owned()),
                fanout: self.function.fanout_within(self.budget),
                full: properties.full_apply,
                // Waits for another live apply instead: one of two deliveries is enough.
                join: false,
                forget: false,
                warnings: manifest
                    .warnings()
                    .iter()
                    .map(ToString::to_string)
                    .collect(),
            },
            spelling: Spelling::Properties,
        }
    }

    /// Applies, and stays while another apply of the namespace holds a fan-out: an event delivered
    /// twice is answered by the one that has nothing to do too, and it must not answer too early.
    async fn apply(
        &self,
        intent: &mut Intent<'_>,
        properties: &Properties,
        asker: &Asker<'_>,
    ) -> Result<Summary, Failure> {
        let mut summary = self.pass(intent, asker).await?;
        // Only the first pass fans out every level; the next ones finish what is owed.
        intent.plan.full = false;
        let mut pause = PAUSE.0;
        while summary.pending > 0
            && summary.errors.is_empty()
            && properties.on_fanout_error == OnFanoutError::Fail
            && intent.clock.now() < self.budget.work_until()
        {
            tokio::time::sleep(pause).await;
            pause = PAUSE.1.min(pause * 2);
            let Some(ns) = intent.namespace_id.clone() else {
                break;
            };
            let pending = intent.store.pending(&ns).await?;
            let now = intent.clock.now();
            if pending.is_empty() || pending.iter().any(|pending| pending.is_claimable(now)) {
                summary = summary.followed_by(self.pass(intent, asker).await?);
            }
        }
        Ok(summary)
    }

    async fn pass(&self, intent: &mut Intent<'_>, asker: &Asker<'_>) -> Result<Summary, Failure> {
        let table = intent.store.table();
        let mut placed = None;
        let report = intent
            .apply(|ns| {
                let _ = self
                    .fate
                    .physical_id
                    .set(self.physical_id(table, ns, asker));
                placed = Some(ns.clone());
            })
            .await?;
        intent.namespace_id = placed;
        Ok(Summary::of(&report))
    }

    /// The event's own id while it names the same place; a new one is a replacement.
    fn physical_id(&self, table: &str, ns: &NamespaceId, asker: &Asker<'_>) -> String {
        let own = self.envelope.physical_id.as_ref();
        match own.and_then(|own| Some((own, Named::parse(own)?))) {
            Some((own, named)) if named.is_at(table, ns, asker.stack_id) => own.clone(),
            _ => id::physical_id(table, ns, asker.stack_id, asker.logical_id),
        }
    }

    /// Delete: what the id names, if this resource owns it. Whatever is not there, or is not this
    /// resource's, is as deleted as it can be.
    async fn delete(&self, asker: &Asker<'_>) -> Result<Done, Failure> {
        let own = self.envelope.physical_id.clone();
        let physical_id =
            own.unwrap_or_else(|| id::never_created(asker.stack_id, asker.logical_id));
        let skipped = |why: &'static str| {
            tracing::info!(why, "nothing to delete");
            let summary = Summary {
                status: Some("skipped"),
                ..Summary::default()
            };
            Ok(Done {
                physical_id: physical_id.clone(),
                summary,
            })
        };
        let Some(named) = Named::parse(&physical_id) else {
            return skipped("the id names no table and namespace");
        };
        let store = self.function.tables().open(&named.table).await?;
        match self.delete_named(&store, &named, asker).await {
            Ok(Some(summary)) => Ok(Done {
                physical_id,
                summary,
            }),
            Ok(None) => skipped("the resource owns nothing there"),
            Err(Failure::Store(StoreError::TableMissing { .. })) => skipped("the table is gone"),
            Err(failure) => Err(failure),
        }
    }

    /// Deletes what the record lists, and the record. `None` when it is not this resource's.
    async fn delete_named(
        &self,
        store: &Store,
        named: &Named,
        asker: &Asker<'_>,
    ) -> Result<Option<Summary>, Failure> {
        let ns = &named.namespace_id;
        let Some(name) = store.namespace_name(ns).await? else {
            return Ok(None);
        };
        let _ = self.fate.namespace.set(name.as_str().to_owned());
        let Some(record) = store.record(ns).await? else {
            return Ok(None);
        };
        if !owns(&record, named, &asker.owner()) {
            takeover::gone(store, ns, &record, &asker.owner()).await;
            return Ok(None);
        }
        if takeover::give_back(store, ns, &record).await? {
            return Ok(None);
        }
        let intent = Intent {
            store,
            clock: self.function.clock(),
            manifest: &Manifest::new(name, BTreeMap::new())?,
            namespace_id: Some(ns.clone()),
            plan: PlanOptions::default(),
            policy: Policy {
                deletes_all: true,
                ..Policy::strict(asker.owner())
            },
            options: ApplyOptions {
                principal: Some(asker.stack_id.to_owned()),
                fanout: self.function.fanout_within(self.budget),
                forget: true,
                ..ApplyOptions::default()
            },
            spelling: Spelling::Properties,
        };
        match intent.apply(|_| {}).await {
            Ok(report) => {
                let mut summary = Summary::of(&report);
                if summary.failed > 0 || summary.other_errors > 0 {
                    return Err(Failure::Unfinished(Box::new(summary)));
                }
                summary.status = Some("deleted");
                Ok(Some(summary))
            }
            // Someone took the namespace over since the record was read.
            Err(Failure::Refused(refusals, _))
                if refusals
                    .iter()
                    .any(|refusal| refusal.guard() == Guard::Adopt) =>
            {
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }
}

/// Whether a resource owns what a record lists. The Python provisioner left records without an
/// owner, and ids that only it gave.
fn owns(record: &ProvisionerRecord, named: &Named, asker: &ManifestOwner) -> bool {
    match &record.owner {
        Some(owner) => owner == asker,
        None => named.legacy,
    }
}
