//! Registries that are something else: what is listed already is switched all the same, and what would
//! have to be listed fails with the item and the cause.

use super::{LEVELS, STOPPED, damage, inhabited, stamps};
use crate::world::{World, manifest, n, s};
use aws_sdk_dynamodb::types::AttributeValue;
use zae_limits::plan::PlanOptions;
use zae_limits::report::{ApplyReport, Status};

const RESOURCES: (&str, &str) = ("SYSTEM#", "#RESOURCES");
const COUNTS: (&str, &str) = ("SYSTEM#", "#ENTITY_CONFIG_RESOURCES");

async fn once(world: &World, yaml: &str) -> ApplyReport {
    world
        .apply_once(&manifest(yaml), PlanOptions::default())
        .await
}

#[tokio::test]
async fn a_kill_switch_on_a_listed_resource_needs_no_registry() {
    for garbage in [s("gpt-4"), n(1), AttributeValue::L(vec![s("gpt-4")])] {
        let world = inhabited().await;
        let wrong = [("resources", Some(garbage.clone()))];
        damage(&world, RESOURCES, &wrong).await;
        world.apply(STOPPED).await;
        assert_eq!(stamps(&world).await, ["disabled"; 3]);
        let item = world.item(RESOURCES.0, RESOURCES.1).await;
        assert_eq!(item["resources"], garbage, "it is not written over");
    }
}

#[tokio::test]
async fn what_would_have_to_be_listed_fails_with_the_item_and_the_cause() {
    let world = inhabited().await;
    damage(&world, RESOURCES, &[("resources", Some(s("gpt-4")))]).await;
    let yaml = STOPPED.replace("\nresources: {", "\nresources: { claude-3: {},");
    let report = once(&world, &yaml).await;
    assert_eq!((report.created, report.updated), (0, 1));
    assert_eq!(report.status, Status::Partial);
    assert_eq!(report.errors.len(), 1, "{:?}", report.errors);
    let said = "resource claude-3: could not write the levels: item \"a7x3kq/SYSTEM#\" / \
                \"#RESOURCES\" has an attribute \"resources\" that is no set of strings, and \
                DynamoDB cannot change it (";
    assert!(report.errors[0].starts_with(said), "{:?}", report.errors);
    assert!(
        report.errors[0].ends_with("): correct that item"),
        "{:?}",
        report.errors
    );
    assert_eq!(stamps(&world).await, ["disabled"; 3], "the rest is done");

    // Corrected, the next apply does what is left.
    let listed = AttributeValue::Ss(vec!["gpt-4".to_owned()]);
    damage(&world, RESOURCES, &[("resources", Some(listed))]).await;
    assert_eq!(world.apply(&yaml).await.created, 1);
}

#[tokio::test]
async fn a_level_that_goes_stays_while_it_cannot_be_taken_off_the_registry() {
    let world = inhabited().await;
    damage(&world, RESOURCES, &[("resources", Some(n(1)))]).await;
    let report = once(&world, "system: { limits: { rpm: { capacity: 10 } } }").await;
    assert_eq!((report.deleted, report.errors.len()), (2, 1));
    let record = world.store.record(&world.ns).await.expect("it reads");
    let managed = record.expect("a record").managed;
    let kept = managed.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(kept, ["system", "resource gpt-4"], "and stays managed");
}

#[tokio::test]
async fn a_count_that_is_no_number_fails_only_the_levels_it_counts() {
    let world = inhabited().await;
    damage(&world, COUNTS, &[("gpt-4", Some(s("one")))]).await;
    let yaml = format!(
        "{}  dave: {{ resources: {{ gpt-4: {{ limits: {{ rpm: {{ capacity: 5 }} }} }}, _default_: {{ disabled: true }} }} }}\n",
        LEVELS.replace("capacity: 30", "capacity: 31")
    );
    let report = once(&world, &yaml).await;
    assert_eq!((report.created, report.updated), (1, 1));
    assert_eq!(report.errors.len(), 1, "{:?}", report.errors);
    let said = "entity dave/gpt-4: could not write the levels: item \"a7x3kq/SYSTEM#\" / \
                \"#ENTITY_CONFIG_RESOURCES\" has a count that is no number";
    assert!(report.errors[0].starts_with(said), "{:?}", report.errors);
    let counts = world.item(COUNTS.0, COUNTS.1).await;
    assert_eq!(counts["_default_"], n(2));
    damage(&world, COUNTS, &[("gpt-4", Some(n(1)))]).await;
    world.apply(&yaml).await;
    assert_eq!(world.item(COUNTS.0, COUNTS.1).await["gpt-4"], n(2));
}
