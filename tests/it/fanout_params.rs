//! The params fan-out: every attribute of a bucket before and after, and nothing else changed.

mod law;

use crate::bucket_items::{Bucket, Meanwhile, changes, fan_out, level, store_level, stored};
use crate::world::{Item, NOW, World, manifest, n, s};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::BTreeMap;
use zae_limits::fanout::Ended;
use zae_limits::model::{FanoutKind, Level, LevelConfig};

const NOW_S: u64 = NOW.0 / 1000;
/// What every params write does to an unscheduled bucket without `ttl`.
const PLAIN: &str = "vu = 0";

/// A world with one bucket of alice: `rpm` at 1000 a minute, half spent, and a `ttl`.
async fn world_of_alice() -> World {
    let world = World::new().await;
    world.put(alice(&world).item()).await;
    world
}

fn alice(world: &World) -> Bucket {
    let bucket = Bucket::new(&world.ns, "alice", "gpt-4", 0);
    bucket.limit("rpm", 1000, 1000, 60).with("ttl", n(1))
}

/// Applies a manifest below alice's level of gpt-4 and says what that changed on her bucket.
async fn after_level(world: &World, config: &str) -> Vec<String> {
    let resources = format!("gpt-4: {{ {config} }}");
    after_apply(
        world,
        &format!("entities: {{ alice: {{ resources: {{ {resources} }} }} }}"),
    )
    .await
}

async fn after_apply(world: &World, yaml: &str) -> Vec<String> {
    let before = stored(world, "alice", "gpt-4", 0).await;
    world.apply(yaml).await;
    changes(&before, &stored(world, "alice", "gpt-4", 0).await)
}

#[tokio::test]
async fn an_entity_level_sets_the_parameters_and_the_bucket_persists() {
    let world = world_of_alice().await;
    let changed = after_level(
        &world,
        "limits: { rpm: { capacity: 500, refill_period: 30 } }",
    )
    .await;
    let expected = [
        "- ttl",
        "b_rpm_cp = 500000",
        "b_rpm_ra = 500000",
        "b_rpm_rp = 30000",
        PLAIN,
    ];
    assert_eq!(changed, expected);
}

#[tokio::test]
async fn a_new_limit_comes_without_a_balance_and_a_dropped_one_goes_whole() {
    let world = World::new().await;
    let bucket = alice(&world)
        .limit("old", 10, 0, 60)
        .with("b_old_rsa", n(3600))
        .with("b_old_ws", n(NOW.0 - 1))
        .with("b_old_wa", n(NOW.0 - 1))
        .with("b_old_wtc", n(3))
        .with("b_old_gc", n(1))
        .with("b_old_tu", n(5))
        .with("b_old_rn", n(2))
        .with("b_old_soft", n(NOW.0))
        .with("b_old_sched", s("-"))
        .with("b_old_rsched", s("-"))
        .with("b_old_note", s("of someone else"));
    world.put(bucket.item()).await;
    let changed = after_level(&world, "limits: { a_b.c-d: { capacity: 7 } }").await;
    let mut expected: Vec<String> = ["cp", "ra", "rp", "tc", "tk"]
        .iter()
        .flat_map(|field| [format!("- b_old_{field}"), format!("- b_rpm_{field}")])
        .chain(
            [
                "gc", "rn", "rsa", "rsched", "sched", "soft", "tu", "wa", "ws", "wtc",
            ]
            .map(|field| format!("- b_old_{field}")),
        )
        .chain(
            [
                "b_a_b.c-d_cp = 7000",
                "b_a_b.c-d_ra = 7000",
                "b_a_b.c-d_rp = 60000",
            ]
            .map(String::from),
        )
        .chain(["- ttl", PLAIN].map(String::from))
        .collect();
    expected.sort();
    assert_eq!(changed, expected);
}

#[tokio::test]
async fn a_soft_limit_is_stamped_until_a_deadline_and_a_hard_one_is_not() {
    let world = world_of_alice().await;
    let soft = "limits: { rpm: { capacity: 1000, soft: true }, tpm: { capacity: 1 } }";
    let changed = after_level(&world, soft).await;
    let expected = [
        "- ttl",
        "b_rpm_soft = a deadline",
        "b_tpm_cp = 1000",
        "b_tpm_ra = 1000",
        "b_tpm_rp = 60000",
        PLAIN,
    ];
    assert_eq!(changed, expected);
    let changed = after_level(
        &world,
        "limits: { rpm: { capacity: 1000 }, tpm: { capacity: 1 } }",
    )
    .await;
    assert_eq!(changed, ["- b_rpm_soft"]);
}

#[tokio::test]
async fn a_window_is_set_and_taken_back_and_its_beginning_is_left_to_clients() {
    let world = World::new().await;
    world.put(alice(&world).with("b_rpm_ws", n(5)).item()).await;
    let window = "limits: { rpm: { capacity: 1000, reset_after_seconds: 18000 } }";
    let changed = after_level(&world, window).await;
    assert_eq!(
        changed,
        ["- ttl", "b_rpm_ra = 0", "b_rpm_rsa = 18000", PLAIN]
    );
    let changed = after_level(&world, "limits: { rpm: { capacity: 1000 } }").await;
    assert_eq!(changed, ["- b_rpm_rsa", "b_rpm_ra = 1000000"]);
}

#[tokio::test]
async fn the_first_schedule_is_the_default_and_a_limit_without_one_says_so() {
    let world = world_of_alice().await;
    let scheduled = "limits: {
        a: { capacity: 1 },
        b: { capacity: 1, schedule: [{ cron: '* 9-17 * * MON-FRI', tz: Europe/Berlin, scale: 0.5 }] },
        c: { capacity: 1, schedule: [{ cron: '* 9-17 * * 1-5', tz: Europe/Berlin, scale: 0.5 }] },
        d: { capacity: 1, schedule: [{ cron: '* 0 * * *', tz: Europe/Berlin, capacity: 2 }] },
        e: { capacity: 1, reset_schedule: [{ cron: '0 0 * * *', tz: Europe/Berlin }] } }";
    let changed = after_level(&world, scheduled).await;
    let mut expected = vec![
        "sched = \"1h9-17w1-5s500\"",
        "rsched = \"1m0h0\"",
        "sched_tz = \"Europe/Berlin\"",
        "b_a_sched = \"-\"",
        "b_a_rsched = \"-\"",
        "b_b_rsched = \"-\"",
        "b_c_rsched = \"-\"",
        "b_d_sched = \"1h0c2\"",
        "b_d_rsched = \"-\"",
        "b_e_sched = \"-\"",
        "b_wcu_sched = \"-\"",
        "b_wcu_rsched = \"-\"",
        "b_e_ra = 0",
        "- ttl",
        PLAIN,
    ];
    expected.extend([
        "- b_rpm_cp",
        "- b_rpm_ra",
        "- b_rpm_rp",
        "- b_rpm_tc",
        "- b_rpm_tk",
    ]);
    let names = ["a", "b", "c", "d", "e"];
    let base = names.iter().flat_map(|limit| {
        [
            format!("b_{limit}_cp = 1000"),
            format!("b_{limit}_rp = 60000"),
        ]
    });
    let drips = names[..4]
        .iter()
        .map(|limit| format!("b_{limit}_ra = 1000"));
    let mut expected: Vec<String> = expected
        .into_iter()
        .map(String::from)
        .chain(base)
        .chain(drips)
        .collect();
    expected.sort();
    assert_eq!(changed, expected);

    // One schedule less: `d`'s is now the default, and nobody resets.
    let fewer = "limits: {
        a: { capacity: 1 },
        d: { capacity: 1, schedule: [{ cron: '* 0 * * *', tz: UTC, capacity: 2 }] } }";
    let changed = after_level(&world, fewer).await;
    let gone = ["b", "c", "e"]
        .iter()
        .flat_map(|limit| ["cp", "ra", "rp"].map(|field| format!("- b_{limit}_{field}")));
    let mut expected: Vec<String> = [
        "sched = \"1h0c2\"",
        "sched_tz = \"UTC\"",
        "- rsched",
        "- b_a_rsched",
        "- b_b_rsched",
        "- b_c_rsched",
        "- b_d_rsched",
        "- b_d_sched",
        "- b_e_sched",
        "- b_wcu_rsched",
    ]
    .into_iter()
    .map(String::from)
    .chain(gone)
    .collect();
    expected.sort();
    assert_eq!(changed, expected);

    // No schedule left: neither is anything that only schedules need.
    let none = "limits: { a: { capacity: 1 }, d: { capacity: 1 } }";
    let changed = after_level(&world, none).await;
    assert_eq!(
        changed,
        ["- b_a_sched", "- b_wcu_sched", "- sched", "- sched_tz"]
    );
}

#[tokio::test]
async fn a_deleted_and_an_emptied_level_fall_back_and_the_bucket_expires_again() {
    const DEFAULTS: &str =
        "resources: { gpt-4: { limits: { rpm: { capacity: 300, refill_amount: 100 } } } }";
    let own = format!(
        "{DEFAULTS}\nentities: {{ alice: {{ resources: {{ gpt-4: {{ limits: {{ rpm: {{ capacity: 5 }}, tpm: {{ capacity: 6 }} }} }} }} }} }}"
    );
    let emptied = format!("{DEFAULTS}\nentities: {{ alice: {{ resources: {{ gpt-4: {{}} }} }} }}");
    for fallback in [DEFAULTS, emptied.as_str()] {
        let world = world_of_alice().await;
        after_apply(&world, &own).await;
        let changed = after_apply(&world, fallback).await;
        // 300 tokens at 100 a minute are full after 180 s; World::apply has moved the clock by one.
        let ttl = format!("ttl = {}", NOW_S + 1 + 7 * 180);
        let expected = [
            "- b_tpm_cp",
            "- b_tpm_ra",
            "- b_tpm_rp",
            "b_rpm_cp = 300000",
            "b_rpm_ra = 100000",
            &ttl,
        ];
        assert_eq!(changed, expected);
    }
}

#[tokio::test]
async fn an_expiry_is_rounded_up_to_a_whole_second() {
    let world = world_of_alice().await;
    world.clock.advance(250);
    let own = "entities: { alice: { resources: { gpt-4: { limits: { rpm: { capacity: 5 } } } } } }";
    after_apply(&world, own).await;
    let shared = "resources: { gpt-4: { limits: { rpm: { capacity: 9 } } } }";
    let changed = after_apply(&world, shared).await;
    // 1.25 s after the beginning: World::apply has moved the clock by one more.
    let ttl = format!("ttl = {}", NOW_S + 2 + 7 * 60);
    assert_eq!(changed, ["b_rpm_cp = 9000", "b_rpm_ra = 9000", &ttl]);
}

#[tokio::test]
async fn the_system_applies_last_and_where_nothing_applies_the_bucket_is_left_alone() {
    let world = world_of_alice().await;
    let system = "system: { limits: { rpm: { capacity: 9 } } }\n";
    let own = "entities: { alice: { resources: { gpt-4: { limits: { rpm: { capacity: 5 } } } } } }";
    after_apply(&world, &format!("{system}{own}")).await;
    let changed = after_apply(&world, system).await;
    let ttl = format!("ttl = {}", NOW_S + 1 + 7 * 60);
    assert_eq!(changed, ["b_rpm_cp = 9000", "b_rpm_ra = 9000", &ttl]);

    let world = world_of_alice().await;
    after_apply(&world, own).await;
    let changed = after_apply(&world, "resources: { gpt-4: { disabled: false } }").await;
    assert_eq!(changed, Vec::<String>::new());
}

#[tokio::test]
async fn the_default_level_resolves_for_each_resource() {
    let world = World::new().await;
    for resource in ["gpt-4", "claude-3", "llama/3"] {
        let bucket = Bucket::new(&world.ns, "alice", resource, 0);
        world
            .put(bucket.limit("rpm", 1000, 1000, 60).with("ttl", n(1)).item())
            .await;
    }
    let other = Bucket::new(&world.ns, "alice2", "gpt-4", 0)
        .limit("rpm", 1, 1, 60)
        .item();
    world.put(other.clone()).await;
    let both = "entities: { alice: { resources: {
        _default_: { limits: { rpm: { capacity: 20 } } },
        gpt-4: { limits: { tpm: { capacity: 30 } } } } } }";
    let report = world.apply(both).await;
    assert_eq!(report.errors, Vec::<String>::new());
    let limits = |item: &Item| -> BTreeMap<String, AttributeValue> {
        let all = item
            .iter()
            .filter(|(name, _)| name.ends_with("_cp") && !name.contains("wcu"));
        all.map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let expected = |name: &str, capacity: u64| BTreeMap::from([(name.to_owned(), n(capacity))]);
    let gpt4 = stored(&world, "alice", "gpt-4", 0).await;
    assert_eq!(limits(&gpt4), expected("b_tpm_cp", 30_000));
    for resource in ["claude-3", "llama/3"] {
        let item = stored(&world, "alice", resource, 0).await;
        assert_eq!(limits(&item), expected("b_rpm_cp", 20_000), "{resource}");
        assert!(!item.contains_key("ttl"), "{resource}");
    }
    assert_eq!(stored(&world, "alice2", "gpt-4", 0).await, other);

    // Without `_default_`, one resource has its own level, one has defaults, one has nothing.
    let fewer = "resources: { claude-3: { limits: { rpm: { capacity: 40 } } } }
entities: { alice: { resources: { gpt-4: { limits: { tpm: { capacity: 30 } } } } } }";
    world.apply(fewer).await;
    assert_eq!(stored(&world, "alice", "gpt-4", 0).await, gpt4);
    let claude = stored(&world, "alice", "claude-3", 0).await;
    assert_eq!(limits(&claude), expected("b_rpm_cp", 40_000));
    assert_eq!(claude["ttl"], n(NOW_S + 1 + 7 * 60));
    let llama = stored(&world, "alice", "llama/3", 0).await;
    assert_eq!(limits(&llama), expected("b_rpm_cp", 20_000));
}

#[tokio::test]
async fn every_shard_is_written_whole_and_what_is_not_ours_stays_byte_for_byte() {
    let world = World::new().await;
    let strange = [
        ("note", s("of someone else")),
        ("b_rpm_hint", n("1.50")),
        (
            "tags",
            AttributeValue::Ss(vec!["a".to_owned(), "b".to_owned()]),
        ),
        ("disabled", AttributeValue::Bool(true)),
        ("parent_id", s("org")),
    ];
    for shard in 0..25 {
        let bucket = Bucket::new(&world.ns, "alice", "gpt-4", shard).limit("rpm", 1000, 1000, 60);
        let add = |bucket: Bucket, (name, value): &(&str, AttributeValue)| {
            bucket.with(name, value.clone())
        };
        let bucket = strange.iter().fold(bucket.with("shard_count", n(25)), add);
        world.put(bucket.item()).await;
    }
    let alice = level("entity", "alice/gpt-4");
    let config =
        manifest("system: { limits: { rpm: { capacity: 7 } } }").levels()[&Level::System].clone();
    store_level(&world, &alice, &config).await;
    let before = world.dump().await;
    let outcome = fan_out(&world, alice, FanoutKind::Params).await;
    assert!(outcome.has_landed());
    assert_eq!((outcome.tally.found, outcome.tally.stamped), (25, 25));
    for (key, after) in world.dump().await {
        let changed = changes(&before[&key], &after);
        let is_bucket = key.1 == "#STATE";
        let expected: &[&str] = if is_bucket {
            &["b_rpm_cp = 7000", "b_rpm_ra = 7000", PLAIN]
        } else {
            &[]
        };
        assert_eq!(changed, expected, "{key:?}");
    }
}

#[tokio::test]
async fn a_corrupt_level_is_named_for_its_buckets_and_the_others_go_on() {
    let world = World::new().await;
    for resource in ["gpt-4", "claude-3"] {
        let bucket = Bucket::new(&world.ns, "alice", resource, 0).limit("rpm", 1000, 1000, 60);
        world.put(bucket.item()).await;
    }
    let corrupt = level("entity", "alice/gpt-4");
    store_level(&world, &corrupt, &LevelConfig::default()).await;
    let mut item = world.item("ENTITY#alice", "#CONFIG#gpt-4").await;
    item.insert("l_rpm_cp".to_owned(), s("many"));
    world.put(item).await;
    let default = level("entity", "alice/_default_");
    let config =
        manifest("system: { limits: { rpm: { capacity: 7 } } }").levels()[&Level::System].clone();
    store_level(&world, &default, &config).await;
    let before = stored(&world, "alice", "gpt-4", 0).await;
    let outcome = fan_out(&world, default, FanoutKind::Params).await;
    assert!(matches!(outcome.ended, Ended::Incomplete), "{outcome:?}");
    assert_eq!((outcome.tally.stamped, outcome.tally.failed), (1, 1));
    let ns = &world.ns;
    let expected = format!(
        "{ns}/BUCKET#alice#gpt-4#0: item \"{ns}/ENTITY#alice\" / \"#CONFIG#gpt-4\": \
         attribute \"l_rpm_cp\" is not a number"
    );
    assert_eq!(outcome.tally.samples, [expected]);
    assert_eq!(stored(&world, "alice", "gpt-4", 0).await, before);
    assert_eq!(
        stored(&world, "alice", "claude-3", 0).await["b_rpm_cp"],
        n(7000)
    );
    // The corrupt level's own fan-out names it too, and takes nothing for granted.
    let outcome = fan_out(&world, corrupt, FanoutKind::Params).await;
    assert_eq!((outcome.tally.stamped, outcome.tally.failed), (0, 1));
}

#[tokio::test]
async fn a_bucket_that_vanishes_is_not_created_again() {
    let (world, beside, meanwhile) = Meanwhile::world().await;
    let item = alice(&world).item();
    world.put(item.clone()).await;
    let level = level("entity", "alice/gpt-4");
    let config =
        manifest("system: { limits: { rpm: { capacity: 7 } } }").levels()[&Level::System].clone();
    store_level(&world, &level, &config).await;
    meanwhile.happens(async move { beside.delete(&item).await });
    let outcome = fan_out(&world, level, FanoutKind::Params).await;
    assert!(outcome.has_landed(), "{outcome:?}");
    assert_eq!((outcome.tally.stamped, outcome.tally.vanished), (0, 1));
    let buckets = world
        .dump()
        .await
        .into_keys()
        .filter(|(_, sk)| sk == "#STATE");
    assert_eq!(buckets.count(), 0);
}

#[tokio::test]
async fn a_level_that_moves_meanwhile_is_fanned_out_again() {
    let (world, beside, meanwhile) = Meanwhile::world().await;
    world.put(alice(&world).item()).await;
    let level = level("entity", "alice/gpt-4");
    let config = |capacity: u64| {
        let yaml = format!("system: {{ limits: {{ rpm: {{ capacity: {capacity} }} }} }}");
        manifest(&yaml).levels()[&Level::System].clone()
    };
    store_level(&world, &level, &config(7)).await;
    let (moved, later) = (level.clone(), config(8));
    meanwhile.happens(async move { store_level(&beside, &moved, &later).await });
    let outcome = fan_out(&world, level, FanoutKind::Params).await;
    assert!(outcome.has_landed(), "{outcome:?}");
    assert_eq!(
        stored(&world, "alice", "gpt-4", 0).await["b_rpm_cp"],
        n(8000)
    );
}
