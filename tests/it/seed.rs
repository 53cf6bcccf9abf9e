//! The sample data of the embedded store: attribute by attribute what zae-limiter 0.17 leaves at an
//! entity's creation and at its first use of a resource.

use crate::world::{Item, NOW, World, n, s};
use aws_sdk_dynamodb::types::AttributeValue;
use zae_limits::model::EpochMs;

const EXAMPLE: &str = include_str!("../data/manifests/tenant-alpha.limits.yaml");
/// Within a second: an expiry is rounded up to a whole one.
const SEEDED_AT: EpochMs = EpochMs(NOW.0 + 250);

/// An item of the namespace, by the rest of its keys.
async fn item(world: &World, pk: &str, sk: &str) -> Item {
    let key = (format!("{}/{pk}", world.ns), sk.to_owned());
    world
        .dump()
        .await
        .remove(&key)
        .unwrap_or_else(|| panic!("{pk} is there"))
}

fn items<const N: usize>(attributes: [(&str, AttributeValue); N]) -> Item {
    attributes
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

async fn seeded() -> World {
    let world = World::new().await;
    let (_, levels) = EXAMPLE
        .split_once("namespace: tenant-alpha")
        .expect("the namespace");
    world.apply(levels).await;
    world
        .store
        .seed(&world.ns, SEEDED_AT)
        .await
        .expect("seeded");
    world
}

#[tokio::test]
async fn an_entity_is_as_a_client_creates_it() {
    let world = seeded().await;
    let mut meta = item(&world, "ENTITY#user-123", "#META").await;
    let incarnation = meta.remove("pinc").expect("an incarnation");
    assert_eq!(incarnation.as_s().map(String::len), Ok(16));
    let ns = &world.ns;
    let pk = format!("{ns}/ENTITY#user-123");
    let expected = items([
        ("PK", s(&pk)),
        ("SK", s("#META")),
        ("GSI1PK", s(&format!("{ns}/PARENT#org-1"))),
        ("GSI1SK", s("CHILD#user-123")),
        ("GSI4PK", s(ns.as_str())),
        ("GSI4SK", s(&pk)),
        ("entity_id", s("user-123")),
        ("name", s("user-123")),
        ("parent_id", s("org-1")),
        ("cascade", AttributeValue::Bool(true)),
        ("pgen", n(SEEDED_AT.0)),
        ("metadata", AttributeValue::M(Item::new())),
        ("created_at", s("2027-01-15T08:00:00Z")),
    ]);
    assert_eq!(meta, expected);
    let root = item(&world, "ENTITY#org-1", "#META").await;
    assert_eq!(root["parent_id"], AttributeValue::Null(true));
    assert!(!root.contains_key("GSI1PK"));
}

#[tokio::test]
async fn a_bucket_is_as_a_client_creates_it() {
    let world = seeded().await;
    let meta = item(&world, "ENTITY#org-1", "#META").await;
    let bucket = item(&world, "BUCKET#org-1#gpt-4#1", "#STATE").await;
    let ns = &world.ns;
    let expected = items([
        ("PK", s(&format!("{ns}/BUCKET#org-1#gpt-4#1"))),
        ("SK", s("#STATE")),
        ("GSI2PK", s(&format!("{ns}/RESOURCE#gpt-4"))),
        ("GSI2SK", s("BUCKET#org-1#1")),
        ("GSI3PK", s(&format!("{ns}/ENTITY#org-1"))),
        ("GSI3SK", s("BUCKET#gpt-4#1")),
        ("GSI4PK", s(ns.as_str())),
        ("GSI4SK", s("BUCKET#org-1#gpt-4#1")),
        ("entity_id", s("org-1")),
        ("resource", s("gpt-4")),
        ("shard_count", n(2)),
        ("cascade", AttributeValue::Bool(false)),
        ("pgen", n(SEEDED_AT.0)),
        ("pinc", meta["pinc"].clone()),
        ("rf", n(SEEDED_AT.0)),
        // Seven times 90 s: what tpm takes to fill.
        ("ttl", n(SEEDED_AT.0 / 1000 + 1 + 630)),
        ("b_rpm_tk", n(499_000)),
        ("b_rpm_cp", n(1_000_000)),
        ("b_rpm_ra", n(1_000_000)),
        ("b_rpm_rp", n(60_000)),
        ("b_rpm_tc", n(1000)),
        ("b_tpm_tk", n(37_499_000)),
        ("b_tpm_cp", n(75_000_000)),
        ("b_tpm_ra", n(50_000_000)),
        ("b_tpm_rp", n(60_000)),
        ("b_tpm_tc", n(1000)),
        ("b_wcu_tk", n(1_000_000)),
        ("b_wcu_cp", n(1_000_000)),
        ("b_wcu_ra", n(1_000_000)),
        ("b_wcu_rp", n(1000)),
        ("b_wcu_tc", n(0)),
    ]);
    assert_eq!(bucket, expected);
}

#[tokio::test]
async fn stamps_owner_and_expiry_follow_the_config() {
    let world = seeded().await;
    let bypassed = item(&world, "BUCKET#user-123#gpt-4#0", "#STATE").await;
    assert!(
        bypassed["bypass"]
            .as_n()
            .is_ok_and(|until| until.parse::<u64>().is_ok_and(|until| until > NOW.0))
    );
    assert_eq!(bypassed["parent_id"], s("org-1"));
    assert_eq!(bypassed["cascade"], AttributeValue::Bool(true));
    assert!(
        !bypassed.contains_key("ttl"),
        "an entity's own limits do not expire"
    );
    let stopped = item(&world, "BUCKET#user-789#legacy-model#0", "#STATE").await;
    assert_eq!(stopped["disabled"], AttributeValue::Bool(true));
    assert!(stopped.contains_key("ttl"));
    let carved = item(&world, "BUCKET#user-456#legacy-model#0", "#STATE").await;
    assert!(!carved.contains_key("disabled") && !carved.contains_key("bypass"));
}

#[tokio::test]
async fn schedules_windows_and_soft_limits_reach_the_buckets() {
    let world = World::new().await;
    world
        .apply(
            "
resources:
  gpt-4:
    limits:
      rpm: { capacity: 100, schedule: [ { cron: \"* 9-17 * * *\", scale: 0.5 } ] }
      day: { capacity: 1000, reset_schedule: [ { cron: \"0 0 * * *\" } ] }
      win: { capacity: 10, reset_after_seconds: 3600 }
      soft: { capacity: 5, soft: true }",
        )
        .await;
    world.store.seed(&world.ns, NOW).await.expect("seeded");
    let bucket = item(&world, "BUCKET#user-789#gpt-4#0", "#STATE").await;
    for (attribute, value) in [
        ("sched", s("1h9-17s500")),
        ("rsched", s("1m0h0")),
        ("sched_tz", s("UTC")),
        ("vu", n(0)),
        ("b_wcu_sched", s("-")),
        ("b_wcu_rsched", s("-")),
        ("b_day_sched", s("-")),
        ("b_day_ra", n(0)),
        ("b_win_rsa", n(3600)),
        ("b_win_ws", n(NOW.0)),
        ("b_win_wa", n(NOW.0)),
    ] {
        assert_eq!(bucket.get(attribute), Some(&value), "{attribute}");
    }
    assert!(bucket["b_soft_soft"].as_n().is_ok());
}

#[tokio::test]
async fn without_config_the_sample_brings_its_own_limits_and_a_second_seed_writes_nothing() {
    let world = World::new().await;
    world.store.seed(&world.ns, NOW).await.expect("seeded");
    let before = world.dump().await;
    let bucket = item(&world, "BUCKET#user-789#claude-3#0", "#STATE").await;
    assert_eq!(bucket["b_rpm_cp"], n(1_000_000));
    world.clock.advance(5000);
    let again = world
        .store
        .seed(&world.ns, world.clock.now())
        .await
        .expect("seeded");
    assert_eq!((again.entities, again.buckets, again.existing), (0, 0, 14));
    assert_eq!(world.dump().await, before);
}
