//! `resume` without a namespace: what the schedule asks for, and the metric behind the alarm on it.

use super::rig::Rig;
use crate::world::{Item, NOW, n, s};
use serde_json::{Value, json};
use zae_limits::model::{EpochMs, FanoutKind, Level, NamespaceId, NamespaceName, Owed};
use zae_limits::table::pending;

const MINUTE: u64 = 60_000;

/// A fan-out of a stopped resource that an apply left at an instant, its lease until another.
fn left(ns: &NamespaceId, written: EpochMs, lease: EpochMs) -> Item {
    let owed = Owed {
        level: Level::Resource("gpt-4".parse().expect("a resource")),
        kind: FanoutKind::Access,
    };
    pending::encode_new(ns, &owed, "gone", lease, false, written)
}

async fn register(rig: &Rig, name: &str) -> NamespaceId {
    let name = NamespaceName::parse(name).expect("a name");
    let registered = rig.world.store.register_namespace(&name, NOW).await;
    registered.expect("registered")
}

async fn resume(rig: &Rig) -> Value {
    let answer = rig.send(json!({"action": "resume"})).await;
    answer.expect("a resume")
}

/// The last metrics that were emitted.
fn metrics(rig: &Rig) -> Value {
    let lines = rig.metrics.text();
    let line = lines.lines().last().expect("a line");
    serde_json::from_str(line).expect("JSON")
}

#[tokio::test]
async fn every_namespace_is_finished_and_the_table_owes_nothing() {
    let rig = Rig::new().await;
    let beta = register(&rig, "beta").await;
    let off = json!({"resources": {"gpt-4": {"disabled": true}}});
    for namespace in ["tenant-alpha", "beta"] {
        let apply = json!({"action": "apply", "namespace": namespace, "manifest": off});
        rig.send(apply).await.expect("an apply");
    }
    rig.world.bucket("user-1", "gpt-4", 0, &[]).await;
    assert_eq!(rig.world.stamp("user-1", "gpt-4").await, "enforce");
    for ns in [&rig.world.ns, &beta] {
        let gone = EpochMs(NOW.0 - MINUTE);
        rig.world
            .put(left(ns, EpochMs(NOW.0 - 20 * MINUTE), gone))
            .await;
    }

    let resumed = resume(&rig).await;
    assert_eq!(resumed["errors"], json!([]));
    assert_eq!(resumed["resumed_fanouts"], 2, "{resumed}");
    assert_eq!(resumed["namespaces"], 2);
    assert_eq!(resumed["pending"], 0);
    assert_eq!(resumed["stamped"], 1);
    assert_eq!(rig.world.stamp("user-1", "gpt-4").await, "disabled");
    let metrics = metrics(&rig);
    assert_eq!(metrics["PendingAge"], 0);
    assert_eq!(metrics["Request"], "resume");
    assert_eq!(metrics["Table"], "rate-limits");
    let declared = metrics["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array();
    let age = json!({"Name": "PendingAge", "Unit": "Seconds"});
    assert!(declared.expect("metrics").contains(&age));
}

#[tokio::test]
async fn the_age_is_that_of_the_longest_owed_even_while_its_apply_lives() {
    let rig = Rig::new().await;
    let beta = register(&rig, "beta").await;
    let live = EpochMs(NOW.0 + MINUTE);
    let of_alpha = left(&rig.world.ns, EpochMs(NOW.0 - 16 * MINUTE), live);
    rig.world.put(of_alpha).await;
    rig.world
        .put(left(&beta, EpochMs(NOW.0 - 2 * MINUTE), live))
        .await;
    let resumed = resume(&rig).await;
    assert_eq!(resumed["resumed"], false);
    assert_eq!(resumed["pending"], 2);
    assert_eq!(resumed["oldest_pending_seconds"], 16 * 60);
    assert_eq!(metrics(&rig)["PendingAge"], 16 * 60);

    // One namespace says nothing about the table.
    let one = json!({"action": "resume", "namespace": "beta"});
    let one = rig.send(one).await.expect("a resume");
    assert_eq!(one["pending"], 1);
    assert_eq!(metrics(&rig).get("PendingAge"), None);
}

#[tokio::test]
async fn a_namespace_that_cannot_be_read_keeps_no_other_from_its_turn() {
    let rig = Rig::new().await;
    let beta = register(&rig, "beta").await;
    let key = ("_/SYSTEM#".to_owned(), "#NAMESPACE#tenant-alpha".to_owned());
    let mut broken = rig.world.dump().await.remove(&key).expect("registered");
    broken.insert("namespace_id".to_owned(), n(1));
    rig.world.put(broken).await;
    let gone = EpochMs(NOW.0 - MINUTE);
    rig.world.put(left(&beta, gone, gone)).await;
    let resumed = resume(&rig).await;
    assert_eq!(resumed["resumed_fanouts"], 1, "{resumed}");
    let errors = resumed["errors"].as_array().expect("errors");
    assert_eq!(errors.len(), 1, "{resumed}");
    let error = errors[0].as_str().expect("a text");
    assert!(
        error.starts_with(
            "item \"_/SYSTEM#\" / \"#NAMESPACE#tenant-alpha\": attribute \"namespace_id\""
        ),
        "{error}"
    );
    assert_eq!(metrics(&rig)["Failed"], 1);
}

#[tokio::test]
async fn a_deleted_namespace_is_left_alone() {
    let rig = Rig::new().await;
    let key = ("_/SYSTEM#".to_owned(), "#NAMESPACE#tenant-alpha".to_owned());
    let mut item = rig.world.dump().await.remove(&key).expect("registered");
    item.insert("status".to_owned(), s("deleted"));
    rig.world.put(item).await;
    let gone = EpochMs(NOW.0 - MINUTE);
    let mut pending = left(&rig.world.ns, gone, gone);
    pending.insert("written_ms".to_owned(), n(gone.0));
    rig.world.put(pending).await;
    let before = rig.world.dump().await;
    assert_eq!(resume(&rig).await["namespaces"], 0);
    assert_eq!(rig.world.dump().await, before);
}
