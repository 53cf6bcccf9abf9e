//! The soft fan-out: stamps that resource and system limits put on buckets, and whose they are not.

use crate::bucket_items::{Bucket, changes, fan_out, level, store_level, stored};
use crate::transport::{Recorder, over};
use crate::world::{Item, NOW, World, manifest, n};
use zae_limits::model::{FanoutKind, Level, LevelConfig};
use zae_limits::store::Embedded;

/// What a level declares, from the limits in a manifest.
fn limits(yaml: &str) -> LevelConfig {
    manifest(&format!("system: {{ limits: {{ {yaml} }} }}")).levels()[&Level::System].clone()
}

/// A world of alice, with her own level, bob, with an own `_default_`, and carol; each with a
/// bucket of gpt-4, which has a level, and one of claude-3, which has none.
async fn inhabited() -> World {
    let world = World::new().await;
    for entity in ["alice", "bob", "carol"] {
        for resource in ["gpt-4", "claude-3"] {
            let bucket = Bucket::new(&world.ns, entity, resource, 0).limit("rpm", 10, 10, 60);
            world.put(bucket.item()).await;
        }
    }
    let own = limits("rpm: { capacity: 1 }");
    store_level(&world, &level("entity", "alice/gpt-4"), &own).await;
    store_level(&world, &level("entity", "bob/_default_"), &own).await;
    world
}

/// What a soft fan-out of a level changes, by bucket.
async fn after(world: &World, of: Level) -> Vec<(String, Vec<String>)> {
    let before = world.dump().await;
    let outcome = fan_out(world, of, FanoutKind::Soft).await;
    assert!(outcome.has_landed(), "{outcome:?}");
    let after = world.dump().await;
    assert!(before.keys().eq(after.keys()));
    let mut changed = Vec::new();
    for ((pk, _), item) in &after {
        let before: &Item = &before[&(pk.clone(), item["SK"].as_s().expect("a key").clone())];
        let lines = changes(before, item);
        if !lines.is_empty() {
            let bucket = pk
                .split_once("BUCKET#")
                .map_or(pk.as_str(), |(_, bucket)| bucket);
            changed.push((bucket.to_owned(), lines));
        }
    }
    changed
}

fn one(bucket: &str, line: &str) -> (String, Vec<String>) {
    (bucket.to_owned(), vec![line.to_owned()])
}

#[tokio::test]
async fn a_resource_stamps_those_who_follow_it_and_takes_its_stamps_back() {
    let world = inhabited().await;
    let resource = level("resource", "gpt-4");
    store_level(
        &world,
        &resource,
        &limits("rpm: { capacity: 10, soft: true }"),
    )
    .await;
    let changed = after(&world, resource.clone()).await;
    assert_eq!(changed, [one("carol#gpt-4#0", "b_rpm_soft = a deadline")]);
    // Hard again; and the same when the level drops the limit, or has none any more.
    for later in [
        limits("rpm: { capacity: 10 }"),
        limits("tpm: { capacity: 10 }"),
        LevelConfig::default(),
    ] {
        let stamped = world.dump().await;
        store_level(&world, &resource, &later).await;
        let changed = after(&world, resource.clone()).await;
        assert_eq!(changed, [one("carol#gpt-4#0", "- b_rpm_soft")]);
        for item in stamped.into_values() {
            world.put(item).await;
        }
    }
}

#[tokio::test]
async fn the_system_stamps_each_bucket_as_its_own_level_says() {
    let world = inhabited().await;
    // Soft and not yet stamped: the resource's own fan-out may have been cut off.
    let resource = limits("tpm: { capacity: 10, soft: true }");
    store_level(&world, &level("resource", "gpt-4"), &resource).await;
    let soft = limits("rpm: { capacity: 10, soft: true }, tpm: { capacity: 1 }");
    store_level(&world, &Level::System, &soft).await;
    let changed = after(&world, Level::System).await;
    let expected = [
        one("alice#claude-3#0", "b_rpm_soft = a deadline"),
        one("carol#claude-3#0", "b_rpm_soft = a deadline"),
        one("carol#gpt-4#0", "b_tpm_soft = a deadline"),
    ];
    assert_eq!(changed, expected);
}

#[tokio::test]
async fn an_emptied_resource_leaves_the_stamps_to_the_system() {
    let world = inhabited().await;
    store_level(
        &world,
        &Level::System,
        &limits("tpm: { capacity: 1, soft: true }"),
    )
    .await;
    let carol = Bucket::new(&world.ns, "carol", "gpt-4", 0).limit("rpm", 10, 10, 60);
    world.put(carol.with("b_rpm_soft", n(NOW.0)).item()).await;
    let changed = after(&world, level("resource", "gpt-4")).await;
    let lines = ["- b_rpm_soft", "b_tpm_soft = a deadline"].map(String::from);
    assert_eq!(changed, [("carol#gpt-4#0".to_owned(), lines.to_vec())]);
}

#[tokio::test]
async fn a_deadline_counts_from_the_clock_and_is_spread() {
    let world = World::new().await;
    for shard in 0..40 {
        let bucket = Bucket::new(&world.ns, "carol", "gpt-4", shard).limit("rpm", 10, 10, 60);
        world.put(bucket.item()).await;
    }
    let resource = level("resource", "gpt-4");
    store_level(
        &world,
        &resource,
        &limits("rpm: { capacity: 10, soft: true }"),
    )
    .await;
    world.clock.advance(5_000);
    let outcome = fan_out(&world, resource, FanoutKind::Soft).await;
    assert_eq!(outcome.tally.stamped, 40);
    let mut deadlines = Vec::new();
    for shard in 0..40 {
        let item = stored(&world, "carol", "gpt-4", shard).await;
        let digits = item["b_rpm_soft"].as_n().expect("a number");
        deadlines.push(digits.parse::<u64>().expect("a whole number") - NOW.0);
    }
    assert!(
        deadlines
            .iter()
            .all(|after| (53_000..=65_000).contains(after)),
        "{deadlines:?}"
    );
    deadlines.sort_unstable();
    deadlines.dedup();
    assert!(deadlines.len() > 30, "{deadlines:?}");
}

#[tokio::test]
async fn buckets_that_are_right_are_read_and_not_written() {
    let embedded = Embedded::memory().expect("an embedded database");
    let recorder = Recorder::default();
    let transport = over(embedded.http_client(), recorder.clone());
    let world = World::over(Embedded::client_over(transport)).await;
    for shard in 0..30 {
        let bucket = Bucket::new(&world.ns, "carol", "gpt-4", shard).limit("rpm", 10, 10, 60);
        world.put(bucket.item()).await;
    }
    store_level(&world, &Level::System, &limits("rpm: { capacity: 10 }")).await;
    recorder.clear();
    let outcome = fan_out(&world, Level::System, FanoutKind::Soft).await;
    assert!(outcome.has_landed());
    assert_eq!((outcome.tally.found, outcome.tally.stamped), (30, 0));
    assert_eq!(recorder.writes(), 0);
}
