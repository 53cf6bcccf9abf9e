//! A resource renamed within its stack takes the namespace over, and may have to give it back.
//!
//! A stack renames a resource by creating the new one and deleting the old one once all else has
//! succeeded. When something else fails it deletes the new one instead, and the old one, which hears
//! nothing of all this, must then find its levels where they were.

use crate::model::{ManifestOwner, NamespaceId, ProvisionerRecord};
use crate::store::{RecordDelta, Store, StoreError, Takeover};

/// Gives a namespace back to the resource of the same stack that had it, if that one is still there as
/// far as anyone knows. Gives whether it did; the levels stay.
pub(super) async fn give_back(
    store: &Store,
    ns: &NamespaceId,
    record: &ProvisionerRecord,
) -> Result<bool, StoreError> {
    let (Some(from), Some(owner)) = (&record.taken_from, &record.owner) else {
        return Ok(false);
    };
    if !of_one_stack(from, owner) {
        return Ok(false);
    }
    let delta = RecordDelta {
        owner: Some(Takeover {
            from: Some(owner.clone()),
            to: from.clone(),
            or_fail: true,
        }),
        settled: true,
        ..RecordDelta::default()
    };
    match store.update_record(ns, &delta).await {
        Ok(_) => {
            tracing::info!(to = %from, "the namespace goes back to the resource that had it");
            Ok(true)
        }
        // Someone else has it by now: no more this resource's to delete, nor to give back.
        Err(StoreError::OwnerChanged { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// A resource is deleted that owns nothing any more: it will not want back what it had.
pub(super) async fn gone(
    store: &Store,
    ns: &NamespaceId,
    record: &ProvisionerRecord,
    asker: &ManifestOwner,
) {
    let owner = record.owner.as_ref();
    if record.taken_from.as_ref() == Some(asker)
        && owner.is_some_and(|owner| of_one_stack(owner, asker))
    {
        settle(store, ns).await;
    }
}

/// A resource is updated: whatever created it has succeeded, and will not be rolled back.
pub(super) async fn stays(store: &Store, ns: &NamespaceId) {
    match store.record(ns).await {
        Ok(Some(record)) if record.taken_from.is_some() => settle(store, ns).await,
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "whether a takeover is settled could not be read"),
    }
}

/// When this cannot be recorded, the next Update records it.
async fn settle(store: &Store, ns: &NamespaceId) {
    let delta = RecordDelta {
        settled: true,
        ..RecordDelta::default()
    };
    if let Err(error) = store.update_record(ns, &delta).await {
        tracing::warn!(%error, "a takeover could not be settled");
    }
}

/// Whether two owners are resources of one stack.
pub(super) fn of_one_stack(one: &ManifestOwner, two: &ManifestOwner) -> bool {
    matches!(
        (one, two),
        (
            ManifestOwner::Stack { stack_id: one, .. },
            ManifestOwner::Stack { stack_id: two, .. },
        ) if one == two
    )
}
