//! Writes that did not happen: what a manifest once declared stays its own until it is really gone.

use crate::world::{Item, World, manifest, s};
use aws_sdk_dynamodb::types::AttributeValue;
use zae_limits::fanout::{Settings, Stop};
use zae_limits::model::ManifestOwner;
use zae_limits::plan::Policy;
use zae_limits::reconcile::{self, ApplyOptions};

/// Two buckets of `gpt-4`, under what was applied.
async fn switched(before: &str) -> World {
    let world = World::new().await;
    for entity in ["alice", "bob"] {
        world.bucket(entity, "gpt-4", 0, &[]).await;
    }
    world.apply(before).await;
    world
}

/// Applies a manifest and is stopped before the first config write.
async fn stopped(world: &World, yaml: &str) {
    let plan = world.plan(&manifest(yaml)).await;
    let guarded = plan
        .guard(&Policy::strict(ManifestOwner::Cli))
        .expect("no guard");
    let stop = Stop::default();
    stop.set();
    let fanout = Settings {
        stop,
        ..World::options().fanout
    };
    let options = ApplyOptions {
        fanout,
        ..World::options()
    };
    let report = reconcile::apply(&world.store, &world.clock, &guarded, &options, &()).await;
    let report = report.expect("a report");
    assert!(!report.errors.is_empty(), "what was not written is said");
}

/// Makes the record one of the Python provisioner's, which has no memory of switches.
async fn forget_switches(world: &World) {
    let mut record: Item = world.item("SYSTEM#", "#PROVISIONER").await;
    for ours in ["switches", "owner", "rev", "overflow", "previous_hash"] {
        record.remove(ours);
    }
    record.insert("applied_hash".to_owned(), s("sha256:0"));
    world.put(record).await;
}

/// A removal that was not written is made good by the next apply, whoever wrote the record.
async fn check(before: &str, interrupted: &str, after: &str, alice: &str, bob: &str) {
    for python in [false, true] {
        let world = switched(before).await;
        if python {
            forget_switches(&world).await;
        }
        stopped(&world, interrupted).await;
        let report = world.apply(after).await;
        assert_eq!(
            report.plan.kept,
            [],
            "nobody set it by hand (Python's record: {python})"
        );
        let shown = (
            world.stamp("alice", "gpt-4").await,
            world.stamp("bob", "gpt-4").await,
        );
        assert_eq!(shown, (alice, bob), "Python's record: {python}");
    }
}

const DISABLED: &str = "resources: { gpt-4: { disabled: true, limits: { rpm: { capacity: 5 } } } }";
const SILENT: &str = "resources: { gpt-4: { limits: { rpm: { capacity: 5 } } } }";

#[tokio::test]
async fn a_kill_switch_whose_removal_was_not_written_is_removed_by_the_next_apply() {
    check(DISABLED, SILENT, SILENT, "enforce", "enforce").await;
}

#[tokio::test]
async fn a_bypass_whose_removal_was_not_written_is_closed_by_the_next_apply() {
    let bypassed = "
resources: { gpt-4: { disabled: true } }
entities: { alice: { resources: { gpt-4: { disabled: bypass, limits: { rpm: { capacity: 5 } } } } } }";
    let silent = "
resources: { gpt-4: { disabled: true } }
entities: { alice: { resources: { gpt-4: { limits: { rpm: { capacity: 5 } } } } } }";
    check(bypassed, silent, silent, "disabled", "disabled").await;
}

#[tokio::test]
async fn a_level_whose_delete_was_not_written_and_that_comes_back_silent_has_no_switch() {
    check(
        DISABLED,
        "resources: { claude-3: {} }",
        SILENT,
        "enforce",
        "enforce",
    )
    .await;
}

#[tokio::test]
async fn a_switch_set_by_hand_stays_someone_elses_when_a_write_fails() {
    let world = switched(SILENT).await;
    let mut item = world.item("RESOURCE#gpt-4", "#CONFIG").await;
    item.insert("disabled".to_owned(), AttributeValue::Bool(true));
    world.put(item).await;
    let raised = "resources: { gpt-4: { limits: { rpm: { capacity: 6 } } } }";
    stopped(&world, raised).await;
    let report = world.apply(raised).await;
    assert_eq!(report.plan.kept.len(), 1);
}
