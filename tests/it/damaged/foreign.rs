//! What the indexes hold besides buckets: never a reason to keep a fan-out pending. A bucket that is
//! damaged is one.

use crate::world::{Item, World, manifest, s};
use zae_limits::fanout::Settings;
use zae_limits::model::ManifestOwner;
use zae_limits::plan::{PlanOptions, Policy};
use zae_limits::reconcile::{self, ApplyOptions};
use zae_limits::report::{ApplyReport, Status};

/// Fan-outs over each index: a resource's, an entity's, the namespace's.
const OVER_EACH: [(&str, &str); 3] = [
    (
        "GSI2",
        "resources: { gpt-4: { disabled: true, cascade: true } }",
    ),
    (
        "GSI3",
        "entities: { alice: { resources: { gpt-4: { disabled: true, cascade: true, limits: { rpm: { capacity: 5 } } } } } }",
    ),
    (
        "GSI4",
        "system: { limits: { rpm: { capacity: 5, soft: true } } }",
    ),
];

/// Keys that no client can have given a bucket.
const FOREIGN: [(&str, &str); 6] = [
    ("a7x3kq/NOTE#alice", "it does not continue with BUCKET#"),
    (
        "elsewhere/BUCKET#alice#gpt-4#0",
        "it does not start with a7x3kq/",
    ),
    ("a7x3kq/BUCKET#alice", "it has no shard"),
    ("a7x3kq/BUCKET#alice#0", "it has no resource"),
    ("a7x3kq/BUCKET#alice#gpt-4#", "\"\" is not a shard number"),
    (
        "a7x3kq/BUCKET#alice#gpt-4#-1",
        "\"-1\" is not a shard number",
    ),
];

/// Keys with the form of a bucket's that do not read.
const DAMAGED: [&str; 3] = [
    "a7x3kq/BUCKET#al ice#gpt-4#0",
    "a7x3kq/BUCKET#alice#9!#0",
    "a7x3kq/BUCKET#alice#gpt-4#99999999999",
];

/// An item that all three indexes show as a bucket of `alice` and `gpt-4`.
fn shown_as_bucket(pk: &str) -> Item {
    let item = [
        ("PK", pk),
        ("SK", "#STATE"),
        ("GSI2PK", "a7x3kq/RESOURCE#gpt-4"),
        ("GSI2SK", "BUCKET#alice#7"),
        ("GSI3PK", "a7x3kq/ENTITY#alice"),
        ("GSI3SK", "BUCKET#gpt-4#7"),
        ("GSI4PK", "a7x3kq"),
        ("GSI4SK", "BUCKET#alice#gpt-4#7"),
    ];
    let named = item.map(|(name, value)| (name.to_owned(), s(value)));
    named.into()
}

/// Applies with the reading pass too.
async fn settled(world: &World, yaml: &str) -> ApplyReport {
    let plan = world
        .plan_with(&manifest(yaml), PlanOptions::default())
        .await;
    let guarded = plan
        .guard(&Policy::strict(ManifestOwner::Cli))
        .expect("no guard refuses");
    let options = ApplyOptions {
        fanout: Settings {
            settle: std::time::Duration::from_millis(1),
            ..Settings::default()
        },
        ..World::options()
    };
    let report = reconcile::apply(&world.store, &world.clock, &guarded, &options, &()).await;
    report.expect("an apply")
}

#[tokio::test]
async fn what_cannot_be_a_bucket_is_named_and_counted_and_left_alone() {
    for (index, yaml) in OVER_EACH {
        let world = World::new().await;
        world.bucket("alice", "gpt-4", 0, &[]).await;
        for (pk, _) in FOREIGN {
            world.put(shown_as_bucket(pk)).await;
        }
        let report = settled(&world, yaml).await;
        assert_eq!(
            report.status,
            Status::Applied,
            "{index}: {:?}",
            report.errors
        );
        assert_eq!(report.pending, 0, "{index}");
        for fanout in &report.fanouts {
            assert_eq!((fanout.found, fanout.foreign), (1, 6), "{index} {fanout:?}");
            assert_eq!((fanout.failed, fanout.samples.len()), (0, 0), "{index}");
            let mut said = fanout.foreign_samples.clone();
            said.sort();
            let mut expected = FOREIGN.map(|(pk, problem)| format!("{pk}: {problem}"));
            expected.sort();
            assert_eq!(said, expected, "{index}");
        }
        let dump = world.dump().await;
        for (pk, _) in FOREIGN {
            let key = (pk.to_owned(), "#STATE".to_owned());
            assert_eq!(dump[&key], shown_as_bucket(pk), "{index}: not a byte");
        }
    }
}

#[tokio::test]
async fn a_bucket_whose_key_is_damaged_is_failed_and_keeps_the_fan_out_pending() {
    for (index, yaml) in OVER_EACH {
        for pk in DAMAGED {
            let world = World::new().await;
            world.bucket("alice", "gpt-4", 0, &[]).await;
            world.put(shown_as_bucket(pk)).await;
            let report = settled(&world, yaml).await;
            assert_eq!(report.status, Status::Partial, "{index} {pk}");
            assert_eq!(report.pending, report.fanouts.len(), "{index} {pk}");
            for fanout in &report.fanouts {
                assert_eq!((fanout.found, fanout.failed, fanout.foreign), (2, 1, 0));
                let said = format!("{pk}: its key does not read: ");
                assert!(fanout.samples[0].starts_with(&said), "{fanout:?}");
            }
        }
    }
}

#[tokio::test]
async fn of_many_foreign_items_all_are_counted_and_some_are_named() {
    let world = World::new().await;
    world.bucket("alice", "gpt-4", 0, &[]).await;
    for index in 0..50 {
        world
            .put(shown_as_bucket(&format!("a7x3kq/NOTE#{index}")))
            .await;
    }
    let report = settled(&world, OVER_EACH[0].1).await;
    let access = &report.fanouts[0];
    assert_eq!((access.found, access.stamped, access.foreign), (1, 1, 50));
    assert_eq!(access.foreign_samples.len(), 20);
}
