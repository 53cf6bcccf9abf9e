//! Someone writes between plan and apply: nothing is overwritten unseen, and what the difference
//! makes necessary is done.

use crate::fixture::more_limits_than_an_item_holds;
use crate::world::{World, manifest, n, s};
use aws_sdk_dynamodb::types::AttributeValue;
use zae_limits::model::ManifestOwner;
use zae_limits::plan::{GuardedPlan, PlanOptions, Policy};
use zae_limits::reconcile;
use zae_limits::report::ApplyReport;

async fn inhabited() -> World {
    let world = World::new().await;
    for entity in ["alice", "bob"] {
        world.bucket(entity, "gpt-4", 0, &[]).await;
    }
    world
}

async fn guarded(world: &World, yaml: &str) -> GuardedPlan {
    let plan = world
        .plan_with(&manifest(yaml), PlanOptions::default())
        .await;
    plan.guard(&Policy::strict(ManifestOwner::Cli))
        .expect("no guard refuses")
}

async fn carry_out(world: &World, guarded: &GuardedPlan) -> ApplyReport {
    let options = World::options();
    let report = reconcile::apply(&world.store, &world.clock, guarded, &options, &()).await;
    report.expect("an apply")
}

async fn settled(world: &World, yaml: &str) {
    let plan = world.plan(&manifest(yaml)).await;
    assert!(plan.is_empty(), "{plan:#?}");
    assert_eq!(world.store.pending(&world.ns).await.expect("pending"), []);
}

const LIMITED: &str = "resources: { gpt-4: { limits: { rpm: { capacity: 10 } } } }";
const RAISED: &str = "resources: { gpt-4: { limits: { rpm: { capacity: 20 } } } }";

#[tokio::test]
async fn a_kill_switch_thrown_after_the_plan_is_kept() {
    let world = inhabited().await;
    world.apply(LIMITED).await;
    let planned = guarded(&world, RAISED).await;
    let mut item = world.item("RESOURCE#gpt-4", "#CONFIG").await;
    item.insert("disabled".to_owned(), AttributeValue::Bool(true));
    world.put(item).await;

    let report = carry_out(&world, &planned).await;
    assert_eq!((report.updated, report.errors.len()), (1, 0));
    let item = world.item("RESOURCE#gpt-4", "#CONFIG").await;
    assert_eq!(item["disabled"], AttributeValue::Bool(true));
    assert_eq!(item["l_rpm_cp"], n(20));
    settled(&world, RAISED).await;
}

#[tokio::test]
async fn a_switch_that_someone_else_turned_is_turned_and_its_buckets_are_stamped() {
    let world = inhabited().await;
    let before = "resources: { gpt-4: { disabled: false, limits: { rpm: { capacity: 10 } } } }";
    let after = "resources: { gpt-4: { disabled: false, limits: { rpm: { capacity: 20 } } } }";
    world.apply(before).await;
    let planned = guarded(&world, after).await;
    assert!(planned.plan().owed.is_empty(), "the plan turns no switch");
    let mut item = world.item("RESOURCE#gpt-4", "#CONFIG").await;
    item.insert("disabled".to_owned(), AttributeValue::Bool(true));
    world.put(item).await;
    let disabled = [("disabled", AttributeValue::Bool(true))];
    world.bucket("alice", "gpt-4", 0, &disabled).await;
    world.bucket("bob", "gpt-4", 0, &disabled).await;

    let report = carry_out(&world, &planned).await;
    assert_eq!(
        (report.updated, report.stamped, report.errors.len()),
        (1, 2, 0)
    );
    assert_eq!(world.stamp("alice", "gpt-4").await, "enforce");
    assert_eq!(world.stamp("bob", "gpt-4").await, "enforce");
    settled(&world, after).await;
}

#[tokio::test]
async fn a_level_that_appeared_meanwhile_is_brought_to_the_plan() {
    let world = inhabited().await;
    let yaml =
        "entities: { alice: { resources: { gpt-4: { limits: { rpm: { capacity: 3 } } } } } }";
    let planned = guarded(&world, yaml).await;
    let ns = world.ns.clone();
    let item = [
        ("PK", s(&format!("{ns}/ENTITY#alice"))),
        ("SK", s("#CONFIG#gpt-4")),
        ("disabled", s("bypass")),
        ("l_rpm_cp", n(99)),
        ("l_rpm_ra", n(99)),
        ("l_rpm_rp", n(60)),
    ];
    world
        .put(
            item.into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
        .await;

    let report = carry_out(&world, &planned).await;
    assert_eq!((report.created, report.errors.len()), (1, 0));
    let item = world.item("ENTITY#alice", "#CONFIG#gpt-4").await;
    assert_eq!(
        (&item["l_rpm_cp"], &item["disabled"]),
        (&n(3), &s("bypass")),
        "the switch set by hand stays"
    );
    assert_eq!(
        world.item("SYSTEM#", "#ENTITY_CONFIG_RESOURCES").await["gpt-4"],
        n(1)
    );
    settled(&world, yaml).await;
}

#[tokio::test]
async fn a_level_that_went_meanwhile_is_created_again_or_stays_gone() {
    let world = inhabited().await;
    world
        .apply("resources: { gpt-4: { disabled: true }, claude-3: { disabled: true } }")
        .await;
    let yaml = "resources: { gpt-4: { disabled: bypass } }";
    let planned = guarded(&world, yaml).await;
    for resource in ["gpt-4", "claude-3"] {
        let key = [
            ("PK", format!("{}/RESOURCE#{resource}", world.ns)),
            ("SK", "#CONFIG".to_owned()),
        ];
        let mut request = world.client.delete_item().table_name(world.store.table());
        for (name, value) in key {
            request = request.key(name, AttributeValue::S(value));
        }
        request.send().await.expect("a delete");
    }
    let report = carry_out(&world, &planned).await;
    assert_eq!(
        (report.updated, report.deleted, report.errors.len()),
        (1, 1, 0)
    );
    assert_eq!(world.stamp("alice", "gpt-4").await, "bypass");
    settled(&world, yaml).await;
}

#[tokio::test]
async fn a_switch_that_reads_alike_and_is_spelled_otherwise_is_written_all_the_same() {
    let world = inhabited().await;
    world
        .apply("resources: { gpt-4: { disabled: false } }")
        .await;
    let mut item = world.item("RESOURCE#gpt-4", "#CONFIG").await;
    item.insert("disabled".to_owned(), s("a mode of the future"));
    world.put(item).await;
    let report = world
        .apply("resources: { gpt-4: { disabled: true } }")
        .await;
    assert_eq!((report.updated, report.stamped), (1, 2));
    assert_eq!(
        world.item("RESOURCE#gpt-4", "#CONFIG").await["disabled"],
        AttributeValue::Bool(true)
    );
}

#[tokio::test]
async fn two_applies_of_one_plan_write_once() {
    let world = inhabited().await;
    let yaml = "resources: { gpt-4: { disabled: true } }";
    let (first, second) = (guarded(&world, yaml).await, guarded(&world, yaml).await);
    carry_out(&world, &first).await;
    let audits = |dump: crate::world::Dump| {
        dump.into_keys()
            .filter(|(_, sk)| sk.starts_with("#AUDIT#"))
            .count()
    };
    assert_eq!(audits(world.dump().await), 1);
    let report = carry_out(&world, &second).await;
    assert_eq!(
        (report.created, report.errors.len()),
        (1, 0),
        "it is as planned, whoever wrote it"
    );
    assert_eq!(audits(world.dump().await), 1);
    settled(&world, yaml).await;
}

#[tokio::test]
async fn a_level_that_cannot_be_written_does_not_keep_the_others_from_being_written() {
    let world = inhabited().await;
    // An item above 400 KB: the table refuses it, and with it the whole transaction.
    let limits = more_limits_than_an_item_holds();
    let yaml = format!("resources:\n  gpt-4: {{ disabled: true }}\n  huge: {{ limits: {limits} }}");
    let manifest = manifest(&yaml);
    let report = world.apply_once(&manifest, PlanOptions::default()).await;
    assert_eq!((report.created, report.stamped), (1, 2));
    assert_eq!(report.errors.len(), 1, "{:?}", report.errors);
    let unwritten = report.unwritten.iter().map(|name| name.target.as_deref());
    assert_eq!(unwritten.collect::<Vec<_>>(), [Some("huge")]);
    assert!(
        report.errors[0].starts_with("resource huge: could not write the levels"),
        "{:?}",
        report.errors
    );
    let record = world
        .store
        .record(&world.ns)
        .await
        .expect("readable")
        .expect("a record");
    let managed: Vec<String> = record.managed.iter().map(ToString::to_string).collect();
    assert_eq!(
        managed,
        ["resource gpt-4"],
        "the record lists what is really there"
    );
    assert_eq!(world.store.pending(&world.ns).await.expect("pending"), []);
}

#[tokio::test]
async fn of_two_owners_who_planned_at_once_the_second_writes_nothing() {
    let world = inhabited().await;
    let owner = |logical_id: &str| ManifestOwner::Stack {
        stack_id: "arn:aws:cloudformation:eu-central-1:123456789012:stack/limits/1".to_owned(),
        logical_id: logical_id.to_owned(),
    };
    let planned = async |logical_id, yaml| {
        let plan = world.plan(&manifest(yaml)).await;
        plan.guard(&Policy::strict(owner(logical_id)))
            .expect("nobody owns it yet")
    };
    let first = planned("First", "resources: { gpt-4: { disabled: true } }").await;
    let second = planned("Second", "resources: { claude-3: { disabled: true } }").await;
    carry_out(&world, &first).await;
    let before = world.dump().await;
    let options = World::options();
    let refused = reconcile::apply(&world.store, &world.clock, &second, &options, &()).await;
    assert_eq!(
        refused.expect_err("refused").to_string(),
        "the namespace was taken on by resource \"First\" of stack \
         \"arn:aws:cloudformation:eu-central-1:123456789012:stack/limits/1\" since it was planned: plan again"
    );
    assert_eq!(world.dump().await, before);
}
