//! Guarantees over random tables: after an apply, every bucket carries what its resolution demands.

use crate::world::World;
use aws_sdk_dynamodb::types::AttributeValue;
use proptest::prelude::*;
use std::collections::BTreeMap;
use zae_limits::manifest::Manifest;
use zae_limits::model::{Level, LevelConfig, Switch};
use zae_limits::plan::PlanOptions;

const ENTITIES: [&str; 3] = ["alice", "bob", "carol"];
const RESOURCES: [&str; 2] = ["gpt-4", "claude-3"];

/// What a manifest declares: for each level that it mentions, its switch.
type Declared = BTreeMap<Level, Option<Switch>>;

fn every_level() -> Vec<Level> {
    let level = |kind, target: &str| Level::from_parts(kind, target).expect("a level");
    let resources = RESOURCES.iter().map(|resource| level("resource", resource));
    let entities = ENTITIES.iter().flat_map(|entity| {
        ["_default_"]
            .iter()
            .chain(&RESOURCES)
            .map(move |scope| level("entity", &format!("{entity}/{scope}")))
    });
    resources.chain(entities).collect()
}

fn any_switch() -> impl Strategy<Value = Option<Switch>> {
    prop::option::weighted(
        0.8,
        prop_oneof![
            Just(Switch::Disabled),
            Just(Switch::Enabled),
            Just(Switch::Bypass)
        ],
    )
}

fn any_declared() -> impl Strategy<Value = Declared> {
    let levels = every_level();
    prop::collection::vec(prop::option::weighted(0.4, any_switch()), levels.len()).prop_map(
        move |switches| {
            levels
                .iter()
                .cloned()
                .zip(switches)
                .filter_map(|(level, switch)| Some((level, switch?)))
                .collect()
        },
    )
}

/// For each entity and resource: how many shards, and what stamp they carry to begin with.
fn any_buckets() -> impl Strategy<Value = Vec<(u32, u8)>> {
    prop::collection::vec((0u32..3, 0u8..4), ENTITIES.len() * RESOURCES.len())
}

fn pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    ENTITIES
        .into_iter()
        .flat_map(|entity| RESOURCES.into_iter().map(move |r| (entity, r)))
}

fn manifest_of(declared: &Declared) -> Manifest {
    let levels = declared
        .iter()
        .map(|(level, switch)| {
            (
                level.clone(),
                LevelConfig {
                    disabled: *switch,
                    ..LevelConfig::default()
                },
            )
        })
        .collect();
    Manifest::new("tenant-alpha".parse().expect("a name"), levels).expect("a manifest")
}

fn demanded(declared: &Declared, entity: &str, resource: &str) -> &'static str {
    let switch = |kind, target: String| {
        declared
            .get(&Level::from_parts(kind, &target).expect("a level"))
            .copied()
            .flatten()
    };
    // Written out and not asked of the library: the most specific level that sets a switch decides.
    let mut decides = switch("entity", format!("{entity}/{resource}"));
    if decides.is_none() {
        decides = switch("entity", format!("{entity}/_default_"));
    }
    if decides.is_none() {
        decides = switch("resource", resource.to_owned());
    }
    match decides {
        Some(Switch::Disabled) => "disabled",
        Some(Switch::Bypass) => "bypass",
        Some(Switch::Enabled) | None => "enforce",
    }
}

async fn check(world: &World, declared: &Declared, buckets: &[(u32, u8)]) {
    for ((entity, resource), (shards, _)) in pairs().zip(buckets) {
        for shard in 0..*shards {
            let shown = world.shard_stamp(entity, resource, shard).await;
            let wanted = demanded(declared, entity, resource);
            assert_eq!(
                shown, wanted,
                "{entity}/{resource} shard {shard} under {declared:?}"
            );
        }
    }
}

async fn populate(world: &World, buckets: &[(u32, u8)], stamped: bool) {
    for ((entity, resource), (shards, stamp)) in pairs().zip(buckets) {
        let disabled = ("disabled", AttributeValue::Bool(true));
        let bypass = ("bypass", AttributeValue::N("17".to_owned()));
        let stamps = match stamp {
            _ if !stamped => vec![],
            0 => vec![],
            1 => vec![disabled],
            2 => vec![bypass],
            _ => vec![disabled, bypass],
        };
        for shard in 0..*shards {
            world.bucket(entity, resource, shard, &stamps).await;
        }
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(test);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_sequence_of_manifests_leaves_every_bucket_as_the_last_one_demands(
        steps in prop::collection::vec(any_declared(), 1..4),
        buckets in any_buckets(),
    ) {
        run(async {
            let world = World::new().await;
            populate(&world, &buckets, false).await;
            for declared in &steps {
                let report = world.apply_once(&manifest_of(declared), PlanOptions::default()).await;
                assert_eq!(report.errors, Vec::<String>::new());
                check(&world, declared, &buckets).await;
                let again = world.plan(&manifest_of(declared)).await;
                assert!(again.is_empty(), "the second plan is empty: {again:#?}");
            }
        });
    }

    #[test]
    fn a_full_apply_mends_whatever_its_levels_reach(
        declared in any_declared(),
        buckets in any_buckets(),
    ) {
        run(async {
            let world = World::new().await;
            populate(&world, &buckets, true).await;
            let full = PlanOptions { full: true, ..PlanOptions::default() };
            // Every resource is declared, so that every bucket is reached.
            let mut declared = declared;
            for resource in RESOURCES {
                let level = Level::from_parts("resource", resource).expect("a level");
                declared.entry(level).or_insert(None);
            }
            let report = world.apply_once(&manifest_of(&declared), full).await;
            assert_eq!(report.errors, Vec::<String>::new());
            check(&world, &declared, &buckets).await;
        });
    }
}
