//! One pass of the shared pipeline for one namespace: plan, guard, register, apply.
//!
//! Both kinds of event end here, so that neither can guard or apply in a way of its own.

use super::failure::{Failure, Spelling};
use super::takeover;
use crate::clock::Clock;
use crate::manifest::Manifest;
use crate::model::NamespaceId;
use crate::plan::{Plan, PlanOptions, Policy};
use crate::reconcile::{self, ApplyOptions};
use crate::report::ApplyReport;
use crate::store::Store;

/// Everything that an apply is made of.
pub(super) struct Intent<'a> {
    pub(super) store: &'a Store,
    pub(super) clock: &'a Clock,
    pub(super) manifest: &'a Manifest,
    pub(super) namespace_id: Option<NamespaceId>,
    pub(super) plan: PlanOptions,
    pub(super) policy: Policy,
    pub(super) options: ApplyOptions,
    pub(super) spelling: Spelling,
}

impl Intent<'_> {
    /// What would change. Reads only.
    pub(super) async fn plan(&self) -> Result<Plan, Failure> {
        let id = self.namespace_id.clone();
        Ok(reconcile::prepare(self.store, self.manifest, id, self.plan).await?)
    }

    /// The policy for a plan: a resource of the same stack under another logical id is the same
    /// resource renamed, and takes the namespace over.
    pub(super) fn policy_for(&self, plan: &Plan) -> Policy {
        let before = plan.record_before.as_ref();
        let owner = before.and_then(|record| record.owner.as_ref());
        let mut policy = self.policy.clone();
        policy.adopt |= !policy.deletes_all
            && owner.is_some_and(|owner| takeover::of_one_stack(owner, &policy.owner));
        policy
    }

    /// Applies, or refuses before anything is written. `placed` hears where levels will be, before
    /// the first of them is written.
    pub(super) async fn apply(
        &self,
        placed: impl FnOnce(&NamespaceId),
    ) -> Result<ApplyReport, Failure> {
        let plan = self.plan().await?;
        let policy = self.policy_for(&plan);
        let guarded = plan
            .guard(&policy)
            .map_err(|refusals| Failure::Refused(refusals, self.spelling))?;
        // Registered here and not by the apply, which finds it registered: an apply that is given up
        // must leave an id behind that names what it wrote.
        let id = match &guarded.plan().namespace_id {
            Some(id) => id.clone(),
            None => {
                let name = &guarded.plan().namespace;
                self.store
                    .register_namespace(name, self.clock.now())
                    .await?
            }
        };
        placed(&id);
        let report = reconcile::apply(self.store, self.clock, &guarded, &self.options, &()).await?;
        // An answer to CloudFormation counts them and names none.
        for item in &report.plan.unreadable {
            tracing::warn!(%item, "a stored item does not read");
        }
        Ok(report)
    }
}
