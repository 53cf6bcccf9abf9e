//! Scenarios: a table with buckets, a sequence of manifests, and what the buckets must then show.
//! Every step is applied twice, and the second plan must be empty ([`World::apply`]).

use crate::transport::{Layer, ReadOnly, Request, over};
use crate::world::{Item, World, manifest, n, s};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use zae_limits::manifest::OutOfBand;
use zae_limits::model::ManifestOwner;
use zae_limits::plan::PlanOptions;
use zae_limits::report::Status;
use zae_limits::store::Embedded;

/// Three entities with buckets of two resources; `heavy` has three shards of `gpt-4`.
async fn inhabited() -> World {
    let world = World::new().await;
    for entity in ["alice", "bob"] {
        world.bucket(entity, "gpt-4", 0, &[]).await;
        world.bucket(entity, "claude-3", 0, &[]).await;
    }
    for shard in 0..3 {
        world.bucket("heavy", "gpt-4", shard, &[]).await;
    }
    world
}

/// Asserts what every bucket of `gpt-4` shows: alice, bob, and the three shards of heavy.
async fn assert_gpt4(world: &World, alice: &str, bob: &str, heavy: &str) {
    let shown = (
        world.stamp("alice", "gpt-4").await,
        world.stamp("bob", "gpt-4").await,
        world.shard_stamp("heavy", "gpt-4", 0).await,
        world.shard_stamp("heavy", "gpt-4", 1).await,
        world.shard_stamp("heavy", "gpt-4", 2).await,
    );
    assert_eq!(shown, (alice, bob, heavy, heavy, heavy));
}

async fn assert_claude3(world: &World, alice: &str, bob: &str) {
    let shown = (
        world.stamp("alice", "claude-3").await,
        world.stamp("bob", "claude-3").await,
    );
    assert_eq!(shown, (alice, bob));
}

#[tokio::test]
async fn a_disabled_resource_stops_every_bucket_and_a_removed_line_lets_them_go() {
    let world = inhabited().await;
    let report = world
        .apply("resources: { gpt-4: { disabled: true } }")
        .await;
    assert_eq!((report.created, report.stamped), (1, 5));
    assert_gpt4(&world, "disabled", "disabled", "disabled").await;
    assert_claude3(&world, "enforce", "enforce").await;

    let report = world
        .apply("resources: { gpt-4: { limits: { rpm: { capacity: 10 } } } }")
        .await;
    assert_eq!((report.updated, report.stamped), (1, 5));
    assert_gpt4(&world, "enforce", "enforce", "enforce").await;
}

#[tokio::test]
async fn a_carve_out_survives_inside_a_disabled_resource() {
    let world = inhabited().await;
    let carved = "
resources: { gpt-4: { disabled: true } }
entities: { alice: { resources: { gpt-4: { disabled: false } } } }";
    let report = world.apply(carved).await;
    assert_gpt4(&world, "enforce", "disabled", "disabled").await;
    // Alice's bucket is written once, by her own fan-out.
    assert_eq!(report.stamped, 5);

    world
        .apply("resources: { gpt-4: { disabled: true } }")
        .await;
    assert_gpt4(&world, "disabled", "disabled", "disabled").await;
}

#[tokio::test]
async fn a_carve_out_that_comes_first_survives_a_later_disable() {
    let world = inhabited().await;
    world
        .apply("entities: { alice: { resources: { gpt-4: { disabled: false } } } }")
        .await;
    assert_gpt4(&world, "enforce", "enforce", "enforce").await;
    world
        .apply(
            "
resources: { gpt-4: { disabled: true } }
entities: { alice: { resources: { gpt-4: { disabled: false } } } }",
        )
        .await;
    assert_gpt4(&world, "enforce", "disabled", "disabled").await;
}

#[tokio::test]
async fn an_entity_is_disabled_inside_an_enabled_resource() {
    let world = inhabited().await;
    world
        .apply(
            "
resources: { gpt-4: { disabled: false } }
entities: { bob: { resources: { gpt-4: { disabled: true } } } }",
        )
        .await;
    assert_gpt4(&world, "enforce", "disabled", "enforce").await;
    world
        .apply("resources: { gpt-4: { disabled: false } }")
        .await;
    assert_gpt4(&world, "enforce", "enforce", "enforce").await;
}

#[tokio::test]
async fn bypass_goes_over_disabled_and_disabled_over_bypass() {
    let world = inhabited().await;
    world
        .apply(
            "
resources: { gpt-4: { disabled: true } }
entities: { alice: { resources: { gpt-4: { disabled: bypass } } } }",
        )
        .await;
    assert_gpt4(&world, "bypass", "disabled", "disabled").await;
    world
        .apply(
            "
resources: { gpt-4: { disabled: bypass } }
entities: { alice: { resources: { gpt-4: { disabled: true } } } }",
        )
        .await;
    assert_gpt4(&world, "disabled", "bypass", "bypass").await;
}

#[tokio::test]
async fn a_switch_goes_through_every_value() {
    let world = inhabited().await;
    for (disabled, shown) in [
        ("disabled: false", "enforce"),
        ("disabled: bypass", "bypass"),
        ("disabled: true", "disabled"),
        ("disabled: bypass", "bypass"),
        ("disabled: false", "enforce"),
        ("limits: {}", "enforce"),
    ] {
        world
            .apply(&format!("resources: {{ gpt-4: {{ {disabled} }} }}"))
            .await;
        assert_gpt4(&world, shown, shown, shown).await;
    }
}

#[tokio::test]
async fn an_entity_default_reaches_every_resource_that_has_no_level_of_its_own() {
    let world = inhabited().await;
    world
        .apply(
            "
resources: { claude-3: { disabled: bypass } }
entities:
  alice:
    resources:
      _default_: { disabled: true }
      gpt-4: { disabled: false }
  bob: { resources: { _default_: { disabled: true } } }",
        )
        .await;
    assert_gpt4(&world, "enforce", "disabled", "enforce").await;
    assert_claude3(&world, "disabled", "disabled").await;

    // Without their defaults, each bucket falls back to its own resource.
    world
        .apply(
            "
resources: { claude-3: { disabled: bypass } }
entities: { alice: { resources: { gpt-4: { disabled: false } } } }",
        )
        .await;
    assert_gpt4(&world, "enforce", "enforce", "enforce").await;
    assert_claude3(&world, "bypass", "bypass").await;
}

#[tokio::test]
async fn a_removed_level_is_deleted_and_its_buckets_fall_back() {
    let world = inhabited().await;
    world
        .apply(
            "
resources: { gpt-4: { disabled: true }, claude-3: { disabled: true } }
entities: { alice: { resources: { gpt-4: { disabled: false } } } }",
        )
        .await;
    let report = world
        .apply("resources: { claude-3: { disabled: true } }")
        .await;
    assert_eq!((report.deleted, report.unchanged), (2, 1));
    assert_gpt4(&world, "enforce", "enforce", "enforce").await;
    assert_claude3(&world, "disabled", "disabled").await;
    let left: Vec<String> = world
        .dump()
        .await
        .into_keys()
        .map(|(pk, sk)| format!("{pk} {sk}"))
        .collect();
    assert!(
        !left
            .iter()
            .any(|key| key.contains("RESOURCE#gpt-4 ") || key.contains("ENTITY#alice")),
        "{left:#?}"
    );
}

#[tokio::test]
async fn everything_unmanaged_stays_as_it_is_byte_for_byte() {
    let world = inhabited().await;
    let by_hand = |pk: String, sk: &str, more: &[(&str, AttributeValue)]| {
        let mut item: Item = [("PK", s(&pk)), ("SK", s(sk)), ("config_version", n(1))]
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        item.extend(
            more.iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone())),
        );
        item
    };
    let ns = world.ns.clone();
    let disabled = ("disabled", AttributeValue::Bool(true));
    world
        .put(by_hand(
            format!("{ns}/RESOURCE#other"),
            "#CONFIG",
            std::slice::from_ref(&disabled),
        ))
        .await;
    world
        .put(by_hand(
            format!("{ns}/ENTITY#carol"),
            "#CONFIG#gpt-4",
            &[disabled],
        ))
        .await;
    world
        .put(by_hand(
            format!("{ns}/ENTITY#carol"),
            "#META",
            &[("odd", AttributeValue::Null(true))],
        ))
        .await;
    world
        .put(by_hand(
            "elsewhere/RESOURCE#gpt-4".to_owned(),
            "#CONFIG",
            &[],
        ))
        .await;
    world
        .bucket(
            "carol",
            "other",
            0,
            &[("disabled", AttributeValue::Bool(true))],
        )
        .await;
    world
        .bucket(
            "carol",
            "gpt-4",
            0,
            &[("disabled", AttributeValue::Bool(true))],
        )
        .await;
    let before = world.dump().await;

    world
        .apply("resources: { gpt-4: { disabled: false } }")
        .await;
    world
        .apply("resources: { claude-3: { disabled: true } }")
        .await;

    let after = world.dump().await;
    let of_the_apply = [
        "SYSTEM#",
        "RESOURCE#gpt-4",
        "RESOURCE#claude-3",
        "AUDIT#",
        "BUCKET#alice",
        "BUCKET#bob",
        "BUCKET#heavy",
    ];
    let ours = |pk: &str| {
        pk.strip_prefix(&format!("{ns}/"))
            .is_some_and(|rest| of_the_apply.iter().any(|p| rest.starts_with(p)))
    };
    let others = |dump: crate::world::Dump| {
        dump.into_iter()
            .filter(|((pk, _), _)| !ours(pk))
            .collect::<Vec<_>>()
    };
    assert_eq!(others(after), others(before));
    assert_eq!(
        world.stamp("carol", "gpt-4").await,
        "disabled",
        "her own switch, set by hand, decides"
    );
}

#[tokio::test]
async fn a_switch_set_by_hand_is_kept_until_it_is_reverted_or_declared() {
    let world = inhabited().await;
    let silent = "resources: { gpt-4: { limits: { rpm: { capacity: 10 } } } }";
    world.apply(silent).await;
    set_by_hand(
        &world,
        "RESOURCE#gpt-4",
        "#CONFIG",
        AttributeValue::Bool(true),
    )
    .await;

    let report = world.apply(silent).await;
    assert_eq!(report.plan.kept.len(), 1);
    assert_eq!(report.plan.kept[0].disabled, "true");

    // Another limit is written without touching the switch.
    let report = world
        .apply("resources: { gpt-4: { limits: { rpm: { capacity: 20 } } } }")
        .await;
    assert_eq!((report.updated, report.plan.kept.len()), (1, 1));
    let item = world.item("RESOURCE#gpt-4", "#CONFIG").await;
    assert_eq!(item["disabled"], AttributeValue::Bool(true));
    assert_eq!(item["l_rpm_cp"], n(20));

    let revert = PlanOptions {
        out_of_band: OutOfBand::Revert,
        ..PlanOptions::default()
    };
    let report = world
        .apply_with(
            "resources: { gpt-4: { limits: { rpm: { capacity: 20 } } } }",
            revert,
        )
        .await;
    assert_eq!(
        (report.updated, report.plan.kept.len(), report.stamped),
        (1, 0, 5)
    );
    assert!(
        !world
            .item("RESOURCE#gpt-4", "#CONFIG")
            .await
            .contains_key("disabled")
    );
}

#[tokio::test]
async fn a_declared_switch_is_brought_back_when_someone_changed_it() {
    let world = inhabited().await;
    let declared = "resources: { gpt-4: { disabled: true } }";
    world.apply(declared).await;
    set_by_hand(
        &world,
        "RESOURCE#gpt-4",
        "#CONFIG",
        AttributeValue::Bool(false),
    )
    .await;
    let report = world.apply(declared).await;
    assert_eq!((report.updated, report.stamped), (1, 5));
    assert_gpt4(&world, "disabled", "disabled", "disabled").await;
}

#[tokio::test]
async fn a_record_of_the_python_provisioner_makes_stored_switches_the_manifests() {
    let world = inhabited().await;
    world
        .apply("resources: { gpt-4: { disabled: true } }")
        .await;
    world.put(python_record(&world)).await;
    let report = world
        .apply("resources: { gpt-4: { limits: { rpm: { capacity: 10 } } } }")
        .await;
    assert_eq!(
        (report.updated, report.stamped, report.plan.kept.len()),
        (1, 5, 0)
    );
    assert_gpt4(&world, "enforce", "enforce", "enforce").await;
}

#[tokio::test]
async fn a_record_without_a_memory_gets_none_from_an_apply_that_dies_early() {
    let embedded = Embedded::memory().expect("an embedded database");
    let world = World::over(embedded.client()).await;
    world.bucket("alice", "gpt-4", 0, &[]).await;
    world
        .apply("resources: { gpt-4: { disabled: true } }")
        .await;
    world.put(python_record(&world)).await;
    let target = "resources: { gpt-4: {}, claude-3: { disabled: true } }";
    // Every write but the record's own is denied, so the apply ends after it said what it intends.
    let transport = over(embedded.http_client(), OnlyPuts);
    let dying = World::before_first_use(Embedded::client_over(transport));
    let died = dying
        .try_apply(&manifest(target), PlanOptions::default())
        .await;
    died.expect_err("a denied write ahead");
    let record = world.item("SYSTEM#", "#PROVISIONER").await;
    assert!(record.contains_key("rev") && !record.contains_key("switches"));

    let report = world.apply(target).await;
    assert_eq!(
        report.plan.kept,
        Vec::new(),
        "the switch was the manifest's"
    );
    assert_eq!(world.stamp("alice", "gpt-4").await, "enforce");
}

/// Denies every write but a `PutItem`.
#[derive(Debug)]
struct OnlyPuts;

impl Layer for OnlyPuts {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        if Request::read(&request).operation == "PutItem" {
            return next.call(request);
        }
        ReadOnly.pass(request, next)
    }
}

/// The record of a namespace that manages `gpt-4`, as the Python provisioner writes it: without a
/// memory of switches.
fn python_record(world: &World) -> Item {
    let ns = &world.ns;
    [
        ("PK", s(&format!("{ns}/SYSTEM#"))),
        ("SK", s("#PROVISIONER")),
        ("GSI4PK", s(ns.as_str())),
        ("GSI4SK", s(&format!("{ns}/SYSTEM#"))),
        ("managed_system", AttributeValue::Bool(false)),
        ("managed_resources", AttributeValue::L(vec![s("gpt-4")])),
        ("managed_entities", AttributeValue::M(Item::new())),
        ("last_applied", s("2026-11-01T00:00:00Z")),
        ("applied_hash", s("sha256:0")),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

#[tokio::test]
async fn a_full_apply_repairs_stamps_that_no_change_would() {
    let world = inhabited().await;
    let manifest = "resources: { gpt-4: { disabled: true }, claude-3: { disabled: false } }";
    world.apply(manifest).await;
    world.bucket("alice", "gpt-4", 0, &[]).await;
    world
        .bucket(
            "bob",
            "claude-3",
            0,
            &[("bypass", n(1)), ("disabled", AttributeValue::Bool(true))],
        )
        .await;
    let report = world.apply(manifest).await;
    assert_eq!(
        report.status,
        Status::Unchanged,
        "an unchanged level is not asserted again"
    );

    let full = PlanOptions {
        full: true,
        ..PlanOptions::default()
    };
    let report = world.apply_with(manifest, full).await;
    assert_eq!(report.status, Status::Applied);
    assert_gpt4(&world, "disabled", "disabled", "disabled").await;
    assert_claude3(&world, "enforce", "enforce").await;
}

#[tokio::test]
async fn an_empty_manifest_gives_everything_up() {
    let world = inhabited().await;
    world
        .apply(
            "
system: { on_unavailable: block, limits: { rpm: { capacity: 5 } } }
resources: { gpt-4: { disabled: true } }
entities: { alice: { resources: { gpt-4: { disabled: bypass } } } }",
        )
        .await;
    let report = world.apply("").await;
    assert_eq!(report.deleted, 3);
    assert_gpt4(&world, "enforce", "enforce", "enforce").await;
    let registry = world.item("SYSTEM#", "#ENTITY_CONFIG_RESOURCES").await;
    assert!(!registry.contains_key("gpt-4"), "{registry:?}");
    assert!(
        !world
            .item("SYSTEM#", "#RESOURCES")
            .await
            .contains_key("resources")
    );
}

#[tokio::test]
async fn a_record_is_deleted_by_its_owner_alone_overflow_and_all() {
    let world = World::new().await;
    world
        .apply("resources: { gpt-4: { disabled: true } }")
        .await;
    let mut left = world.item("SYSTEM#", "#PROVISIONER").await;
    left.insert("SK".to_owned(), s("#PROVISIONER#MANAGED#000"));
    world.put(left).await;
    let stack = ManifestOwner::Stack {
        stack_id: "arn:stack".to_owned(),
        logical_id: "Limits".to_owned(),
    };
    let deleted = world.store.delete_record(&world.ns, Some(&stack)).await;
    deleted.expect("nothing to do");
    assert!(
        world
            .store
            .record(&world.ns)
            .await
            .expect("a read")
            .is_some()
    );

    for _ in 0..2 {
        let deleted = world
            .store
            .delete_record(&world.ns, Some(&ManifestOwner::Cli));
        deleted.await.expect("a delete");
        let dump = world.dump().await;
        let left = dump.keys().filter(|(_, sk)| sk.starts_with("#PROVISIONER"));
        assert_eq!(left.collect::<Vec<_>>(), Vec::<&(String, String)>::new());
    }
}

/// Sets a level's switch the way an operator's own tool would.
async fn set_by_hand(world: &World, pk: &str, sk: &str, disabled: AttributeValue) {
    let mut item = world.item(pk, sk).await;
    item.insert("disabled".to_owned(), disabled);
    world.put(item).await;
}
