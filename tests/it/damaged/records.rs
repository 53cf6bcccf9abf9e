//! Records of the whole namespace or table that do not read: what cannot be done without is fatal and
//! named, what can is not in the way.

use super::{LEVELS, STOPPED, damage, inhabited, stamps, unreadable};
use crate::world::{World, manifest, n, s};
use aws_sdk_dynamodb::types::AttributeValue;
use zae_limits::model::{ProvisionerRecord, Switch};
use zae_limits::plan::PlanOptions;
use zae_limits::report::Status;
use zae_limits::table::record;

const RECORD: (&str, &str) = ("SYSTEM#", "#PROVISIONER");

/// That an apply fails with an error and writes nothing.
async fn fails(world: &World) -> String {
    let before = world.dump().await;
    let error = world
        .try_apply(&manifest(STOPPED), PlanOptions::default())
        .await;
    assert_eq!(world.dump().await, before, "nothing is written");
    error.expect_err("it fails").to_string()
}

#[tokio::test]
async fn a_provisioner_record_that_does_not_read_is_fatal_and_named() {
    let world = inhabited().await;
    let cases = [
        ("managed_resources", s("gpt-4"), "is not a list of strings"),
        ("managed_entities", s("alice"), "is not a map"),
        ("rev", s("1"), "is not a number"),
        ("overflow", n(99_999_999), "is 99999999, above 999"),
    ];
    let sound = world.item(RECORD.0, RECORD.1).await;
    for (attribute, value, problem) in cases {
        damage(&world, RECORD, &[(attribute, Some(value))]).await;
        let said = fails(&world).await;
        let named = format!(
            "item \"a7x3kq/SYSTEM#\" / \"#PROVISIONER\": attribute {attribute:?} {problem}: without \
             the provisioner record nobody knows what is managed, so nothing is written; correct \
             the item, or delete it and apply again (levels that are no longer declared then stay)"
        );
        assert_eq!(said, named);
        world.put(sound.clone()).await;
    }
}

#[tokio::test]
async fn a_part_of_the_record_that_is_missing_is_not_taken_for_one_that_lists_nothing() {
    let world = World::new().await;
    let levels = (0..20_000).map(|index| {
        let entity = format!("entity-{index:05}");
        let entity = entity.parse().expect("an id");
        let scope = zae_limits::model::Scope::Default;
        zae_limits::model::Level::Entity(entity, scope)
    });
    let stored = ProvisionerRecord {
        managed: levels.collect(),
        rev: 1,
        ..ProvisionerRecord::default()
    };
    let items = record::encode(&world.ns, &stored, "w").expect("it fits");
    assert!(items.overflow.len() > 1, "it takes several items");
    for item in items.overflow.iter().chain([&items.main]) {
        world.put(item.clone()).await;
    }
    let read = world.store.record(&world.ns).await.expect("it reads");
    assert_eq!(read.expect("a record").managed.len(), 20_000);
    world.delete(&items.overflow[1]).await;
    let error = world
        .store
        .record(&world.ns)
        .await
        .expect_err("a part is missing");
    let counted = items.overflow.len();
    let problem = format!("counts {counted} items, of which {} are there", counted - 1);
    assert!(error.to_string().contains(&problem), "{error}");
}

/// Puts a value into the table's version record.
async fn version(world: &World, attribute: &str, value: AttributeValue) {
    let mut dump = world.dump().await;
    let key = ("_/SYSTEM#".to_owned(), "#VERSION".to_owned());
    let mut item = dump.remove(&key).expect("a version record");
    item.insert(attribute.to_owned(), value);
    world.put(item).await;
}

#[tokio::test]
async fn of_the_version_record_what_may_forbid_everything_must_read() {
    for attribute in ["schema_version", "client_min_version"] {
        let world = inhabited().await;
        version(&world, attribute, n(1)).await;
        assert_eq!(
            fails(&world).await,
            format!(
                "item \"_/SYSTEM#\" / \"#VERSION\": attribute {attribute:?} is not a string: correct \
                 or delete the item, then run this again"
            )
        );
    }
    let world = inhabited().await;
    version(&world, "lambda_version", n(1)).await;
    world.apply(STOPPED).await;
    assert_eq!(stamps(&world).await, ["disabled"; 3]);
    let bypassed = manifest("resources: { gpt-4: { disabled: bypass } }");
    let plan = world.plan(&bypassed).await;
    let gate = plan.gate.expect("it proves nothing").to_string();
    assert!(gate.contains("names no version"), "{gate}");
}

/// A pending fan-out of an apply that is gone, as one that died left it.
async fn left_pending(world: &World) -> (String, String) {
    let mut item = world.item("RESOURCE#gpt-4", "#CONFIG").await;
    item.insert("disabled".to_owned(), AttributeValue::Bool(true));
    world.put(item).await;
    let sk = "#PROVISIONER#PENDING#disabled#resource#gpt-4";
    let pk = format!("{}/SYSTEM#", world.ns);
    let item = [("PK", s(&pk)), ("SK", s(sk)), ("owners", s("garbage"))];
    let named = item.map(|(name, value)| (name.to_owned(), value));
    world.put(named.into()).await;
    (pk, sk.to_owned())
}

#[tokio::test]
async fn a_pending_fan_out_of_which_only_the_key_reads_is_finished() {
    let stopped = manifest(STOPPED);
    // The config is as declared: all that is left to do is what the damaged item stands for.
    for yaml in [&stopped, &manifest(&STOPPED.replace("30", "31"))] {
        let world = inhabited().await;
        let key = left_pending(&world).await;
        let report = world.apply_once(yaml, PlanOptions::default()).await;
        assert_eq!((report.errors.len(), report.pending), (0, 0));
        assert_eq!(report.resumed, 1);
        assert_eq!(stamps(&world).await, ["disabled"; 3]);
        assert!(!world.dump().await.contains_key(&key), "it is done");
    }
}

#[tokio::test]
async fn a_kill_switch_whose_own_pending_item_is_damaged_works() {
    let world = inhabited().await;
    let key = left_pending(&world).await;
    let mut item = world.item("RESOURCE#gpt-4", "#CONFIG").await;
    item.remove("disabled");
    world.put(item).await;
    let report = world.apply(STOPPED).await;
    assert_eq!(report.stamped, 3);
    assert_eq!(stamps(&world).await, ["disabled"; 3]);
    assert!(!world.dump().await.contains_key(&key), "it is done");
}

#[tokio::test]
async fn a_pending_item_that_names_no_fan_out_is_named_and_in_nobodys_way() {
    let world = inhabited().await;
    let sk = "#PROVISIONER#PENDING#colour#resource#gpt-4";
    let item = [
        ("PK", s("a7x3kq/SYSTEM#")),
        ("SK", s(sk)),
        ("kind", s("colour")),
        ("level", s("resource")),
        ("target", s("gpt-4")),
    ];
    let named = item.map(|(name, value)| (name.to_owned(), value));
    world.put(named.clone().into()).await;
    let plan = world.plan(&manifest(STOPPED)).await;
    assert_eq!(
        unreadable(&plan),
        [format!(
            "Left None item \"a7x3kq/SYSTEM#\" / {sk:?}: attribute \"kind\" is \"colour\", an unknown fan-out"
        )]
    );
    let report = world.apply(STOPPED).await;
    assert_eq!(report.status, Status::Applied);
    assert_eq!(world.item("SYSTEM#", sk).await, named.into());
}

#[tokio::test]
async fn a_record_that_reads_again_remembers_what_it_managed() {
    let world = inhabited().await;
    let sound = world.item(RECORD.0, RECORD.1).await;
    damage(&world, RECORD, &[("managed_system", Some(s("yes")))]).await;
    fails(&world).await;
    world.put(sound).await;
    let report = world
        .apply("resources: { gpt-4: { disabled: true } }")
        .await;
    assert_eq!(report.deleted, 3, "what is no longer declared is deleted");
    let record = world.store.record(&world.ns).await.expect("it reads");
    let switches = record.expect("a record").switches.expect("a memory");
    let stopped = switches.values().collect::<Vec<_>>();
    assert_eq!(stopped, [&Switch::Disabled]);
    world.apply(LEVELS).await;
}

/// Sets the status of the world's namespace, where its registry entries are by name or by id.
async fn status(world: &World, sk: &str, value: AttributeValue) {
    let mut dump = world.dump().await;
    let mut item = dump
        .remove(&("_/SYSTEM#".to_owned(), sk.to_owned()))
        .expect("a registry entry");
    item.insert("status".to_owned(), value);
    world.put(item).await;
}

#[tokio::test]
async fn a_deleted_namespace_whose_name_is_taken_is_refused_by_the_plan() {
    let by_name = "#NAMESPACE#tenant-alpha";
    for (value, remedy) in [
        (
            "deleted",
            "is deleted and its name is still taken (item \"_/SYSTEM#\" / \
             \"#NAMESPACE#tenant-alpha\" has status \"deleted\"): delete that item, then run this \
             again to register the namespace anew, or bring the old one back with `zae-limiter \
             namespace recover a7x3kq`",
        ),
        (
            "purging",
            "is being purged and its name is still taken (item \"_/SYSTEM#\" / \
             \"#NAMESPACE#tenant-alpha\" has status \"purging\"): finish it with `zae-limiter \
             namespace purge a7x3kq`, delete that item, then run this again to register the \
             namespace anew",
        ),
    ] {
        let world = inhabited().await;
        status(&world, by_name, s(value)).await;
        let said = fails(&world).await;
        assert_eq!(said, format!("namespace \"tenant-alpha\" {remedy}"));
        let names = world.store.namespace_names().await.expect("names");
        assert_eq!(names.len(), 0, "it is not offered as one to use");

        // What it says to do does it.
        let mut dump = world.dump().await;
        let key = ("_/SYSTEM#".to_owned(), by_name.to_owned());
        world.delete(&dump.remove(&key).expect("it is there")).await;
        let report = world
            .apply_once(&manifest(STOPPED), PlanOptions::default())
            .await;
        assert_eq!(report.status, Status::Applied);
        let id = report.plan.namespace_id.expect("an id");
        assert_ne!(id, world.ns.to_string(), "a new namespace");
    }
    // Any other status is one of a namespace that is there, as clients read it.
    let world = inhabited().await;
    status(&world, by_name, s("archived")).await;
    world.apply(STOPPED).await;
    status(&world, by_name, n(1)).await;
    assert!(fails(&world).await.contains("\"status\" is not a string"));
}

#[tokio::test]
async fn an_entry_of_a_namespace_that_does_not_read_hides_no_other() {
    let world = inhabited().await;
    let item = [
        ("PK", s("_/SYSTEM#")),
        ("SK", s("#NAMESPACE#beta")),
        ("namespace_name", n(1)),
    ];
    let named = item.map(|(name, value)| (name.to_owned(), value));
    world.put(named.into()).await;
    let names = world.store.namespace_names().await.expect("names");
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["beta", "tenant-alpha"]);
}
