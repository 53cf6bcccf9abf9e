//! Loading what is stored and planning against it. Writes nothing, and decides nothing that the plan
//! does not decide.

use crate::manifest::Manifest;
use crate::model::NamespaceId;
use crate::plan::{Plan, PlanOptions, plan};
use crate::store::{Store, StoreError};

/// How often a plan is made while another apply declares what it would keep.
const ROUNDS: usize = 3;

/// Loads what is stored and plans a manifest against it. Reads only.
///
/// # Errors
/// [`StoreError`] when something cannot be read.
pub async fn prepare(
    store: &Store,
    manifest: &Manifest,
    namespace_id: Option<NamespaceId>,
    options: PlanOptions,
) -> Result<Plan, StoreError> {
    let namespace_id = match namespace_id {
        Some(id) => Some(id),
        None => store.namespace_id(manifest.namespace()).await?,
    };
    for _ in 1..ROUNDS {
        let made = load_and_plan(store, manifest, namespace_id.clone(), options).await?;
        if made.kept.is_empty() || keeps_still(store, &made).await? {
            return Ok(made);
        }
    }
    load_and_plan(store, manifest, namespace_id, options).await
}

async fn load_and_plan(
    store: &Store,
    manifest: &Manifest,
    namespace_id: Option<NamespaceId>,
    options: PlanOptions,
) -> Result<Plan, StoreError> {
    let levels = manifest.levels().keys();
    let state = store.load_state(namespace_id, levels).await?;
    Ok(plan(manifest, &state, options))
}

/// Whether the switches that a plan keeps were set by hand. The record is read before the levels
/// that it names, so another apply may have declared and set one of them in between.
async fn keeps_still(store: &Store, plan: &Plan) -> Result<bool, StoreError> {
    let Some(ns) = &plan.namespace_id else {
        return Ok(true);
    };
    let record = store.record(ns).await?.unwrap_or_default();
    let mut kept = plan.kept.iter();
    Ok(!kept.any(|kept| record.owns_switch(&kept.level)))
}
