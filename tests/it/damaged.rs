//! Stored items that do not read: each is named, the ones that a manifest declares are repaired, and
//! none keeps another level from being switched.

mod foreign;
mod records;
mod registries;

use crate::world::{Item, World, manifest, n, s};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::HashMap;
use zae_limits::model::{Level, ManifestOwner};
use zae_limits::plan::{Fate, Plan, PlanOptions, Policy};
use zae_limits::reconcile;
use zae_limits::report::{ApplyReport, Status};

/// A level of every kind, each with a limit.
const LEVELS: &str = "
system: { limits: { rpm: { capacity: 10 } } }
resources: { gpt-4: { limits: { rpm: { capacity: 20 } } } }
entities:
  alice: { resources: { gpt-4: { limits: { rpm: { capacity: 30 } } } } }
  bob: { resources: { _default_: { limits: { rpm: { capacity: 40 } } } } }
";

/// The same, and `gpt-4` stopped.
const STOPPED: &str = "
system: { limits: { rpm: { capacity: 10 } } }
resources: { gpt-4: { disabled: true, limits: { rpm: { capacity: 20 } } } }
entities:
  alice: { resources: { gpt-4: { limits: { rpm: { capacity: 30 } } } } }
  bob: { resources: { _default_: { limits: { rpm: { capacity: 40 } } } } }
";

const KEYS: [(&str, &str); 4] = [
    ("SYSTEM#", "#CONFIG"),
    ("RESOURCE#gpt-4", "#CONFIG"),
    ("ENTITY#alice", "#CONFIG#gpt-4"),
    ("ENTITY#bob", "#CONFIG#_default_"),
];

/// Three buckets of `gpt-4` under [`LEVELS`].
async fn inhabited() -> World {
    let world = World::new().await;
    for entity in ["alice", "bob", "carol"] {
        world.bucket(entity, "gpt-4", 0, &[]).await;
    }
    world.apply(LEVELS).await;
    world
}

/// Attributes and what they are replaced by; `None` removes one.
type Wrong<'a> = &'a [(&'a str, Option<AttributeValue>)];

/// Replaces attributes of a stored item.
async fn damage(world: &World, (pk, sk): (&str, &str), attributes: Wrong<'_>) {
    let mut item = world.item(pk, sk).await;
    for (name, value) in attributes {
        match value {
            Some(value) => item.insert((*name).to_owned(), value.clone()),
            None => item.remove(*name),
        };
    }
    world.put(item).await;
}

async fn garble(world: &World, key: (&str, &str)) {
    damage(world, key, &[("l_rpm_cp", Some(s("garbage")))]).await;
}

async fn stamps(world: &World) -> [&'static str; 3] {
    [
        world.stamp("alice", "gpt-4").await,
        world.stamp("bob", "gpt-4").await,
        world.stamp("carol", "gpt-4").await,
    ]
}

/// What a plan says of items that do not read, one line each.
fn unreadable(plan: &Plan) -> Vec<String> {
    let line = |item: &zae_limits::plan::Unreadable| {
        let level = item.level.as_ref().map(ToString::to_string);
        format!("{:?} {level:?} {}", item.fate, item.damage)
    };
    plan.unreadable.iter().map(line).collect()
}

#[tokio::test]
async fn whatever_level_is_damaged_a_kill_switch_works_and_the_level_is_repaired() {
    for key in KEYS {
        let world = inhabited().await;
        let sound = world.item(key.0, key.1).await;
        garble(&world, key).await;
        let plan = world.plan(&manifest(STOPPED)).await;
        let said = unreadable(&plan);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("Rewritten"), "{said:?}");
        let (pk, sk) = (format!("a7x3kq/{}", key.0), key.1);
        let named = format!("item {pk:?} / {sk:?}: attribute \"l_rpm_cp\" is not a number");
        assert!(said[0].ends_with(&named), "{said:?}");

        let report = world.apply(STOPPED).await;
        assert_eq!(report.status, Status::Applied, "{key:?}");
        assert_eq!(stamps(&world).await, ["disabled"; 3], "{key:?}");
        let repaired = world.item(key.0, key.1).await;
        assert_eq!(repaired["l_rpm_cp"], sound["l_rpm_cp"], "{key:?}");
        let counts = world.item("SYSTEM#", "#ENTITY_CONFIG_RESOURCES").await;
        let counts = (&counts["gpt-4"], &counts["_default_"]);
        assert_eq!(counts, (&n(1), &n(1)), "a repair is no new level");
    }
}

#[tokio::test]
async fn whatever_is_wrong_with_an_item_it_is_named_and_repaired() {
    let list = AttributeValue::L(vec![n(1)]);
    let map = AttributeValue::M(HashMap::from([("x".to_owned(), n(1))]));
    let cases: [(&str, Wrong<'_>); 14] = [
        ("a text", &[("l_rpm_cp", Some(s("garbage")))]),
        ("below zero", &[("l_rpm_cp", Some(n("-1")))]),
        ("a fraction", &[("l_rpm_ra", Some(n("1.5")))]),
        ("beyond all bounds", &[("l_rpm_rp", Some(n("1e30")))]),
        ("a list", &[("l_rpm_cp", Some(list))]),
        ("a map", &[("l_rpm_ra", Some(map))]),
        ("null", &[("l_rpm_ra", Some(AttributeValue::Null(true)))]),
        ("half a limit", &[("l_rpm_ra", None)]),
        ("no refill", &[("l_rpm_ra", Some(n(0)))]),
        ("two prefixes", &[("w_rpm_cp", Some(n(5)))]),
        ("a name that is none", &[("l_9!_cp", Some(n(5)))]),
        ("a schedule", &[("l_rpm_sched", Some(s("2h9")))]),
        ("soft", &[("l_rpm_soft", Some(s("yes")))]),
        ("a zone", &[("sched_tz", Some(s("Mars/Olympus")))]),
    ];
    let world = inhabited().await;
    for (what, attributes) in cases {
        for key in [KEYS[1], KEYS[2]] {
            damage(&world, key, attributes).await;
            let plan = world.plan(&manifest(LEVELS)).await;
            let said = unreadable(&plan);
            assert_eq!(said.len(), 1, "{what}: {said:?}");
            assert!(said[0].contains(&format!("a7x3kq/{}", key.0)), "{said:?}");
            let report = world.apply(LEVELS).await;
            assert_eq!((report.updated, report.errors.len()), (1, 0), "{what}");
        }
    }
}

#[tokio::test]
async fn the_audit_says_that_what_was_there_did_not_read() {
    let world = inhabited().await;
    damage(&world, KEYS[2], &[("disabled", Some(s("bypass")))]).await;
    garble(&world, KEYS[2]).await;
    world.clock.advance(1000);
    world
        .apply_once(&manifest(LEVELS), PlanOptions::default())
        .await;
    let dump = world.dump().await;
    let mut events = dump
        .iter()
        .filter(|((pk, _), _)| pk.ends_with("AUDIT#alice"));
    let (_, last) = events.next_back().expect("an event");
    let details = last["details"].as_m().expect("a map");
    let old = details["old"].as_m().expect("what was there");
    assert_eq!(old["disabled"], s("bypass"));
    assert_eq!(
        old["unreadable"],
        s(
            "item \"a7x3kq/ENTITY#alice\" / \"#CONFIG#gpt-4\": attribute \"l_rpm_cp\" is not a number"
        )
    );
    assert_eq!(details["new"].as_m().expect("the level")["l_rpm_cp"], n(30));
}

#[tokio::test]
async fn a_managed_level_that_is_not_declared_any_more_is_deleted_though_it_does_not_read() {
    let world = inhabited().await;
    garble(&world, KEYS[2]).await;
    let without = LEVELS.replace(
        "  alice: { resources: { gpt-4: { limits: { rpm: { capacity: 30 } } } } }\n",
        "",
    );
    let plan = world.plan(&manifest(&without)).await;
    assert_eq!(plan.unreadable[0].fate, Fate::Deleted);
    let report = world.apply(&without).await;
    assert_eq!((report.deleted, report.stamped), (1, 1));
    let dump = world.dump().await;
    let gone = ("a7x3kq/ENTITY#alice".to_owned(), "#CONFIG#gpt-4".to_owned());
    assert!(!dump.contains_key(&gone));
    let registry = world.item("SYSTEM#", "#ENTITY_CONFIG_RESOURCES").await;
    assert_eq!(registry.get("gpt-4"), None, "its count went with it");
    let bucket = world.item("BUCKET#alice#gpt-4#0", "#STATE").await;
    assert_eq!(bucket["b_rpm_cp"], n(20_000), "it follows the resource");
}

#[tokio::test]
async fn a_level_that_is_neither_declared_nor_managed_is_named_and_left_alone() {
    let world = World::new().await;
    let alone =
        "entities: { alice: { resources: { gpt-4: { limits: { rpm: { capacity: 3 } } } } } }";
    world.apply(alone).await;
    let mut foreign: Vec<Item> = Vec::new();
    for (pk, resource) in [("RESOURCE#gpt-4", true), ("SYSTEM#", false)] {
        let mut item = Item::from([
            ("PK".to_owned(), s(&format!("a7x3kq/{pk}"))),
            ("SK".to_owned(), s("#CONFIG")),
            ("l_rpm_cp".to_owned(), s("garbage")),
        ]);
        item.extend(resource.then(|| ("resource".to_owned(), s("gpt-4"))));
        world.put(item.clone()).await;
        foreign.push(item);
    }
    let plan = world.plan(&manifest(alone)).await;
    assert!(plan.is_empty(), "nothing is to be done about them");
    let fates: Vec<(Option<&Level>, Fate)> = plan
        .unreadable
        .iter()
        .map(|item| (item.level.as_ref(), item.fate))
        .collect();
    let gpt4 = Level::Resource("gpt-4".parse().expect("a name"));
    assert_eq!(
        fates,
        [
            (Some(&Level::System), Fate::Left),
            (Some(&gpt4), Fate::Left)
        ]
    );
    let report = world.apply(alone).await;
    assert_eq!(report.status, Status::Unchanged);
    let dump = world.dump().await;
    for item in foreign {
        assert!(dump.values().any(|stored| *stored == item), "{item:?}");
    }
}

#[tokio::test]
async fn a_bucket_whose_limits_nobody_can_tell_is_failed_and_named_and_the_others_are_written() {
    let world = World::new().await;
    for resource in ["gpt-4", "claude-3"] {
        world.bucket("bob", resource, 0, &[]).await;
    }
    let item = Item::from([
        ("PK".to_owned(), s("a7x3kq/ENTITY#bob")),
        ("SK".to_owned(), s("#CONFIG#gpt-4")),
        ("l_rpm_cp".to_owned(), s("garbage")),
    ]);
    world.put(item.clone()).await;
    let before = world.item("BUCKET#bob#gpt-4#0", "#STATE").await;
    let yaml = "entities: { bob: { resources: { _default_: { disabled: true, limits: { rpm: { capacity: 40 } } } } } }";
    let report = world
        .apply_once(&manifest(yaml), PlanOptions::default())
        .await;

    assert_eq!((report.status, report.pending), (Status::Partial, 1));
    let fanout = |report: &ApplyReport, kind: &str| {
        let mut fanouts = report.fanouts.iter();
        let found = fanouts.find(|fanout| fanout.owed.kind.to_string() == kind);
        found.cloned().expect("it ran")
    };
    let params = fanout(&report, "params");
    assert_eq!((params.found, params.stamped, params.failed), (2, 1, 1));
    let said = "a7x3kq/BUCKET#bob#gpt-4#0: item \"a7x3kq/ENTITY#bob\" / \"#CONFIG#gpt-4\": \
                attribute \"l_rpm_cp\" is not a number";
    assert_eq!(params.samples, [said]);
    assert!(
        report.errors.iter().any(|error| error.contains(said)),
        "an answer without samples names it too: {:?}",
        report.errors
    );
    let bucket = |resource: &str| format!("BUCKET#bob#{resource}#0");
    let other = world.item(&bucket("claude-3"), "#STATE").await;
    assert_eq!(other["b_rpm_cp"], n(40_000));
    let mut now = world.item(&bucket("gpt-4"), "#STATE").await;
    // Its switch is no guess: the damaged level sets none, and the next one does.
    assert_eq!(now.remove("disabled"), Some(AttributeValue::Bool(true)));
    assert_eq!(now, before, "its limits are not touched");

    world.delete(&item).await;
    world.clock.advance(1000);
    let report = world.apply(yaml).await;
    assert_eq!((report.resumed, report.pending), (1, 0));
    let mended = world.item(&bucket("gpt-4"), "#STATE").await;
    assert_eq!(mended["b_rpm_cp"], n(40_000));
}

#[tokio::test]
async fn a_soft_fan_out_names_the_level_that_does_not_read_and_stamps_the_rest() {
    let world = inhabited().await;
    garble(&world, KEYS[2]).await;
    // Managed no more, so that nothing repairs it.
    let mut record = world.item("SYSTEM#", "#PROVISIONER").await;
    record.insert(
        "managed_entities".to_owned(),
        AttributeValue::M(HashMap::new()),
    );
    world.put(record).await;
    let soft = "
system: { limits: { rpm: { capacity: 10 } } }
resources: { gpt-4: { limits: { rpm: { capacity: 20, soft: true } } } }";
    let report = world
        .apply_once(&manifest(soft), PlanOptions::default())
        .await;
    assert_eq!((report.status, report.pending), (Status::Partial, 1));
    let fanout = &report.fanouts[0];
    assert_eq!((fanout.found, fanout.stamped, fanout.failed), (3, 1, 1));
    assert!(
        fanout.samples[0].contains("a7x3kq/ENTITY#alice"),
        "{:?}",
        fanout.samples
    );
}

#[tokio::test]
async fn a_switch_set_by_hand_on_a_level_that_does_not_read_is_kept() {
    let world = inhabited().await;
    garble(&world, KEYS[2]).await;
    let switch = [("disabled", Some(AttributeValue::Bool(true)))];
    damage(&world, KEYS[2], &switch).await;
    let report = world.apply(LEVELS).await;
    assert_eq!((report.updated, report.plan.kept.len()), (1, 1));
    let item = world.item(KEYS[2].0, KEYS[2].1).await;
    assert_eq!(
        (&item["disabled"], &item["l_rpm_cp"]),
        (&AttributeValue::Bool(true), &n(30))
    );
}

#[tokio::test]
async fn what_is_written_between_plan_and_apply_is_not_written_over_unseen() {
    let thrown = [("disabled", Some(AttributeValue::Bool(true)))];
    let mended = [("l_rpm_cp", Some(n(7)))];
    let garbled = [("l_rpm_cp", Some(s("garbage")))];
    let raised = LEVELS.replace("capacity: 30", "capacity: 31");
    // A switch thrown on an item that did not read; one that was mended; one that was damaged.
    for (first, then, yaml) in [
        (&garbled[..], &thrown[..], LEVELS),
        (&garbled[..], &mended[..], LEVELS),
        (&[][..], &garbled[..], raised.as_str()),
    ] {
        let world = inhabited().await;
        damage(&world, KEYS[2], first).await;
        let plan = world.plan(&manifest(yaml)).await;
        let guarded = plan
            .guard(&Policy::strict(ManifestOwner::Cli))
            .expect("no guard refuses");
        damage(&world, KEYS[2], then).await;
        let options = World::options();
        let report = reconcile::apply(&world.store, &world.clock, &guarded, &options, &()).await;
        let report = report.expect("an apply");
        assert_eq!((report.updated, report.errors.len()), (1, 0), "{then:?}");
        let item = world.item(KEYS[2].0, KEYS[2].1).await;
        let is_thrown = item.get("disabled") == Some(&AttributeValue::Bool(true));
        assert_eq!(is_thrown, then == &thrown[..], "{then:?}");
        assert!(world.plan(&manifest(yaml)).await.is_empty(), "{then:?}");
        let bucket = world.item("BUCKET#alice#gpt-4#0", "#STATE").await;
        assert_eq!(
            bucket["b_rpm_cp"],
            n(if yaml == LEVELS { 30_000 } else { 31_000 })
        );
    }
}

#[tokio::test]
async fn a_plan_that_was_reviewed_is_not_that_of_an_item_that_was_damaged_since() {
    let world = inhabited().await;
    let before = world.plan(&manifest(STOPPED)).await.fingerprint();
    assert_eq!(world.plan(&manifest(STOPPED)).await.fingerprint(), before);
    garble(&world, KEYS[1]).await;
    let garbled = world.plan(&manifest(STOPPED)).await.fingerprint();
    damage(&world, KEYS[1], &[("l_rpm_cp", Some(n("-1")))]).await;
    let otherwise = world.plan(&manifest(STOPPED)).await.fingerprint();
    assert!(before != garbled && garbled != otherwise);
}
