//! A stack's update that fails at any write, and the Update that takes it back: the guards never stand
//! in its way, and nothing of the failed one is left.

use super::rig::{Rig, levels};
use crate::transport::{Counted, Fault, Landing, over};
use crate::world::World;
use serde_json::{Map, Value, json};
use std::ops::Range;
use std::time::Duration;
use zae_limits::lambda::{Invocation, Tables};
use zae_limits::store::{Embedded, Place, Store};

fn declare(resources: Range<u32>) -> Value {
    let resources = resources.map(|index| (format!("r{index}"), json!({"Disabled": "true"})));
    let resources: Map<String, Value> = resources.collect();
    json!({"Namespace": "tenant-alpha", "Resources": resources})
}

fn update(rig: &Rig, id: &Value, old: &Value, new: &Value) -> Value {
    let mut event = rig.event("Update", new.clone());
    event["OldResourceProperties"] = old.clone();
    event["PhysicalResourceId"] = id.clone();
    event
}

/// A rig over the world of another one, its table reached through a client.
async fn reaching(world: World, client: aws_sdk_dynamodb::Client) -> Rig {
    let tables = Tables::given(move |table| {
        let place = Place {
            table: table.to_owned(),
            host: "memory".to_owned(),
        };
        Store::new(client.clone(), place)
    });
    Rig::with(world, tables, Rig::options()).await
}

async fn dies_and_is_taken_back(before: Value, after: Value, landing: Landing) {
    for at in 1.. {
        let embedded = Embedded::memory().expect("an embedded database");
        let rig = Rig::over(World::over(embedded.client()).await).await;
        rig.world.bucket("user-1", "r5", 0, &[]).await;
        let created = rig.answered(rig.event("Create", before.clone())).await;
        let id = created["PhysicalResourceId"].clone();
        let had = levels(&rig.world.dump().await);

        let crash = Fault::crash(at, Counted::Writes, landing);
        let broken = Embedded::client_over(over(embedded.http_client(), crash.clone()));
        let rig = reaching(rig.world, broken).await;
        let forward = update(&rig, &id, &before, &after);
        rig.function
            .handle(forward, Invocation::default())
            .await
            .expect("answered");
        if !crash.struck() {
            assert!(at > 4, "the writes were counted");
            return;
        }
        // The lease of the one that died runs out meanwhile.
        rig.world.clock.advance(3_600_000);
        let rig = reaching(rig.world, embedded.client()).await;
        let body = rig.answered(update(&rig, &id, &after, &before)).await;
        assert_eq!(body["Status"], "SUCCESS", "write {at}: {body}");
        assert_eq!(body["PhysicalResourceId"], id, "write {at}");
        assert_eq!(levels(&rig.world.dump().await), had, "write {at}");
        assert_eq!(
            rig.world.stamp("user-1", "r5").await,
            "enforce",
            "write {at}"
        );
    }
}

#[tokio::test]
async fn an_update_that_dies_at_any_write_is_taken_back() {
    for landing in [Landing::Before, Landing::After] {
        dies_and_is_taken_back(declare(0..2), declare(0..9), landing).await;
    }
}

#[tokio::test]
async fn an_update_of_an_empty_manifest_that_dies_at_any_write_is_taken_back() {
    dies_and_is_taken_back(declare(0..0), declare(3..9), Landing::After).await;
}

#[tokio::test]
async fn a_create_delivered_late_and_another_owner_are_guarded_all_the_same() {
    let rig = Rig::new().await;
    let (few, many) = (declare(0..2), declare(0..13));
    let create = rig.event("Create", few.clone());
    let created = rig.answered(create.clone()).await;
    let id = created["PhysicalResourceId"].clone();
    rig.answered(update(&rig, &id, &few, &many)).await;
    let before = rig.world.dump().await;
    let body = rig.answered(create).await;
    let reason = body["Reason"].as_str().expect("a reason");
    assert!(reason.contains("11 of 13 managed levels"), "{reason}");

    let mut others = update(&rig, &id, &many, &few);
    others["LogicalResourceId"] = json!("Others");
    let body = rig.answered(others).await;
    let reason = body["Reason"].as_str().expect("a reason");
    assert!(reason.contains("11 of 13 managed levels"), "{reason}");
    assert_eq!(rig.world.dump().await, before);
}

#[tokio::test]
async fn a_fan_out_that_failed_is_taken_back_like_any_other() {
    let rig = Rig::new().await;
    let (few, many) = (declare(0..1), declare(0..8));
    let created = rig.answered(rig.event("Create", few.clone())).await;
    let id = created["PhysicalResourceId"].clone();
    // A bucket that no fan-out can take for one: the stamp fails, and the update with it.
    rig.world.bucket("user-1", "r5", 0, &[]).await;
    let good = rig.world.item("BUCKET#user-1#r5#0", "#STATE").await;
    let mut broken = good.clone();
    broken.insert(
        "PK".to_owned(),
        crate::world::s(&format!("{}/BUCKET#not one#r5#0", rig.world.ns)),
    );
    rig.world.put(broken.clone()).await;
    let body = rig.answered(update(&rig, &id, &few, &many)).await;
    assert_eq!(body["Status"], "FAILED", "{body}");
    assert_eq!(rig.world.stamp("user-1", "r5").await, "disabled");
    rig.world.delete(&broken).await;
    rig.world
        .clock
        .advance(Duration::from_secs(1).as_millis() as u64);
    let body = rig.answered(update(&rig, &id, &many, &few)).await;
    assert_eq!(body["Status"], "SUCCESS", "{body}");
    assert_eq!(body["Data"]["Deleted"], "7");
    assert_eq!(rig.world.stamp("user-1", "r5").await, "enforce");
}
