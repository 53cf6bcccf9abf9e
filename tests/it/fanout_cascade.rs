//! The cascade fan-out: the effective policy and the owner, attribute by attribute.

use crate::bucket_items::{Bucket, Meanwhile, changes, fan_out, level, store_level, stored};
use crate::world::{Item, World, n, s};
use aws_sdk_dynamodb::types::AttributeValue;
use zae_limits::fanout::Outcome;
use zae_limits::model::{FanoutKind, LevelConfig};

/// An entity's META as clients store it.
fn meta(world: &World, entity: &str, own: bool, parent: Option<&str>) -> Item {
    let parent = parent.map_or(AttributeValue::Null(true), s);
    [
        ("PK", s(&format!("{}/ENTITY#{entity}", world.ns))),
        ("SK", s("#META")),
        ("entity_id", s(entity)),
        ("cascade", AttributeValue::Bool(own)),
        ("parent_id", parent),
        ("created_at", s("2026-01-01T00:00:00Z")),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

fn with(mut item: Item, attribute: &str, value: AttributeValue) -> Item {
    item.insert(attribute.to_owned(), value);
    item
}

fn policy(cascade: bool) -> LevelConfig {
    LevelConfig {
        cascade: Some(cascade),
        ..LevelConfig::default()
    }
}

fn bucket(world: &World, entity: &str) -> Bucket {
    Bucket::new(&world.ns, entity, "gpt-4", 0).limit("rpm", 10, 10, 60)
}

/// Fans a level's policy out and says what that changed on one entity's bucket.
async fn after(world: &World, kind: &str, target: &str, entity: &str) -> (Outcome, Vec<String>) {
    let before = stored(world, entity, "gpt-4", 0).await;
    let outcome = fan_out(world, level(kind, target), FanoutKind::Cascade).await;
    assert!(outcome.has_landed(), "{outcome:?}");
    let after = stored(world, entity, "gpt-4", 0).await;
    (outcome, changes(&before, &after))
}

#[tokio::test]
async fn a_policy_stamps_the_owner_and_a_cleared_one_leaves_it_to_meta() {
    let world = World::new().await;
    world.put(bucket(&world, "alice").item()).await;
    let meta = with(meta(&world, "alice", false, Some("org")), "pgen", n(3));
    world.put(with(meta, "pinc", s("inc-1"))).await;
    store_level(&world, &level("resource", "gpt-4"), &policy(true)).await;
    let (_, changed) = after(&world, "resource", "gpt-4", "alice").await;
    let expected = [
        "cascade = true",
        "parent_id = \"org\"",
        "pgen = 3",
        "pinc = \"inc-1\"",
    ];
    assert_eq!(changed, expected);
    // Her own level outranks the resource's, and without either META decides.
    store_level(&world, &level("entity", "alice/_default_"), &policy(false)).await;
    let (_, changed) = after(&world, "resource", "gpt-4", "alice").await;
    assert_eq!(changed, ["cascade = false"]);
    store_level(&world, &level("entity", "alice/gpt-4"), &policy(true)).await;
    let (_, changed) = after(&world, "entity", "alice/gpt-4", "alice").await;
    assert_eq!(changed, ["cascade = true"]);
    for target in ["alice/gpt-4", "alice/_default_"] {
        store_level(&world, &level("entity", target), &LevelConfig::default()).await;
    }
    store_level(&world, &level("resource", "gpt-4"), &LevelConfig::default()).await;
    let (_, changed) = after(&world, "entity", "alice/_default_", "alice").await;
    assert_eq!(changed, ["cascade = false"]);
}

#[tokio::test]
async fn without_a_parent_nothing_cascades_and_an_old_parent_goes() {
    let world = World::new().await;
    world
        .put(bucket(&world, "alice").with("parent_id", s("gone")).item())
        .await;
    world.put(meta(&world, "alice", true, None)).await;
    store_level(&world, &level("resource", "gpt-4"), &policy(true)).await;
    let (_, changed) = after(&world, "resource", "gpt-4", "alice").await;
    // An entity of before generations: 0, in the incarnation that its creation names.
    let expected = ["- parent_id", "pgen = 0", "pinc = \"2026-01-01T00:00:00Z\""];
    assert_eq!(changed, expected);
}

#[tokio::test]
async fn an_entity_without_meta_is_skipped_and_one_that_does_not_read_is_named() {
    let world = World::new().await;
    for entity in ["alice", "bob", "carol"] {
        world.put(bucket(&world, entity).item()).await;
    }
    let corrupt = with(meta(&world, "bob", true, Some("org")), "pgen", s("many"));
    world.put(corrupt).await;
    world.put(meta(&world, "carol", true, Some("org"))).await;
    store_level(&world, &level("resource", "gpt-4"), &policy(true)).await;
    let before = world.dump().await;
    let outcome = fan_out(&world, level("resource", "gpt-4"), FanoutKind::Cascade).await;
    assert!(!outcome.has_landed());
    let tally = &outcome.tally;
    assert_eq!((tally.found, tally.stamped, tally.failed), (3, 1, 1));
    let ns = &world.ns;
    let named = format!(
        "{ns}/BUCKET#bob#gpt-4#0: item \"{ns}/ENTITY#bob\" / \"#META\": \
         attribute \"pgen\" is not a number"
    );
    assert_eq!(tally.samples, [named]);
    let changed: Vec<_> = world
        .dump()
        .await
        .into_iter()
        .filter(|(key, item)| before[key] != *item)
        .map(|(key, _)| key.0)
        .collect();
    assert_eq!(changed, [format!("{ns}/BUCKET#carol#gpt-4#0")]);
}

#[tokio::test]
async fn a_newer_generation_of_the_same_incarnation_stays_and_another_incarnation_does_not() {
    let world = World::new().await;
    let stamped = |pinc: &str| {
        let bucket = bucket(&world, "alice")
            .with("pgen", n(9))
            .with("pinc", s(pinc));
        bucket.with("parent_id", s("newer")).item()
    };
    let meta = with(meta(&world, "alice", true, Some("org")), "pgen", n(3));
    world.put(with(meta, "pinc", s("inc-1"))).await;
    store_level(&world, &level("resource", "gpt-4"), &policy(true)).await;

    world.put(stamped("inc-1")).await;
    let (outcome, changed) = after(&world, "resource", "gpt-4", "alice").await;
    assert_eq!(changed, Vec::<String>::new());
    assert_eq!((outcome.tally.stamped, outcome.tally.vanished), (0, 0));

    world.put(stamped("inc-0")).await;
    let (_, changed) = after(&world, "resource", "gpt-4", "alice").await;
    let expected = [
        "cascade = true",
        "parent_id = \"org\"",
        "pgen = 3",
        "pinc = \"inc-1\"",
    ];
    assert_eq!(changed, expected);
}

#[tokio::test]
async fn an_entity_that_moves_meanwhile_keeps_its_new_parent_and_takes_the_policy() {
    let (world, beside, meanwhile) = Meanwhile::world().await;
    world.put(bucket(&world, "alice").item()).await;
    let moved = |parent: &str, generation: u32| {
        let meta = with(
            meta(&world, "alice", false, Some(parent)),
            "pgen",
            n(generation),
        );
        with(meta, "pinc", s("inc-1"))
    };
    world.put(moved("org", 1)).await;
    store_level(&world, &level("resource", "gpt-4"), &policy(true)).await;
    let (meta, stamped) = (
        moved("other", 2),
        bucket(&world, "alice")
            .with("parent_id", s("other"))
            .with("pgen", n(2))
            .with("pinc", s("inc-1"))
            .item(),
    );
    // The move knew the policy of before: it stamps `cascade` false.
    meanwhile.happens(async move {
        beside.put(meta).await;
        beside.put(stamped).await;
    });
    let (_, changed) = after(&world, "resource", "gpt-4", "alice").await;
    let expected = [
        "cascade = true",
        "parent_id = \"other\"",
        "pgen = 2",
        "pinc = \"inc-1\"",
    ];
    assert_eq!(changed, expected);
}

#[tokio::test]
async fn a_bucket_that_vanishes_is_not_created_again() {
    let (world, beside, meanwhile) = Meanwhile::world().await;
    let item = bucket(&world, "alice").item();
    world.put(item.clone()).await;
    world.put(meta(&world, "alice", true, Some("org"))).await;
    store_level(&world, &level("resource", "gpt-4"), &policy(true)).await;
    meanwhile.happens(async move { beside.delete(&item).await });
    let outcome = fan_out(&world, level("resource", "gpt-4"), FanoutKind::Cascade).await;
    assert!(outcome.has_landed(), "{outcome:?}");
    assert_eq!((outcome.tally.stamped, outcome.tally.vanished), (0, 1));
    let buckets = world
        .dump()
        .await
        .into_keys()
        .filter(|(_, sk)| sk == "#STATE");
    assert_eq!(buckets.count(), 0);
}
