//! What a bucket carries after a params fan-out follows from the last level alone.

use super::alice;
use crate::bucket_items::{fan_out, level, store_level, stored};
use crate::world::{Item, World};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use zae_limits::model::{
    Cron, FanoutKind, LevelConfig, Limit, LimitName, Modifier, Recovery, ScaleMillis,
    ScheduleEntry, Seconds, Tokens, Zone,
};

fn any_limit() -> impl Strategy<Value = Limit> {
    let cron = prop::sample::select(vec!["0 0 * * *", "30 6 1 * *", "0 8-20 * * 1-5"])
        .prop_map(|text| Cron::parse(text).expect("a cron"));
    let recovery = prop_oneof![
        (1u64..100).prop_map(|amount| Recovery::Drip {
            amount: Tokens(amount)
        }),
        prop::collection::vec(cron.clone(), 1..3).prop_map(Recovery::Calendar),
        (1u64..10_000).prop_map(|after| Recovery::Window(Seconds(after))),
    ];
    let scale = prop::sample::select(vec![500, 2000]);
    let entry = (cron, scale).prop_map(|(cron, scale)| ScheduleEntry {
        cron,
        modifier: Modifier::Scale(ScaleMillis::from_millis(scale).expect("a scale")),
    });
    let schedule = prop::collection::vec(entry, 0..2);
    (1u64..1000, 1u64..100, recovery, schedule, any::<bool>()).prop_map(
        |(capacity, period, recovery, schedule, soft)| Limit {
            capacity: Tokens(capacity),
            refill_period: Seconds(period),
            recovery,
            schedule,
            soft,
        },
    )
}

fn any_level() -> impl Strategy<Value = LevelConfig> {
    let name = prop::sample::select(vec!["rpm", "tpm", "a_b", "a_sched", "x.y-z"])
        .prop_map(|name| LimitName::parse(name).expect("a name"));
    prop::collection::btree_map(name, any_limit(), 1..5).prop_map(|limits| LevelConfig {
        limits: limits.into_iter().collect(),
        zone: Some(Zone::parse("Europe/Berlin").expect("a zone")),
        ..LevelConfig::default()
    })
}

/// Alice's bucket after a params fan-out of each level in turn, deadlines left out.
async fn after_levels(world: &World, levels: &[&LevelConfig]) -> Item {
    world.put(alice(world).item()).await;
    let level = level("entity", "alice/gpt-4");
    for config in levels {
        store_level(world, &level, config).await;
        let outcome = fan_out(world, level.clone(), FanoutKind::Params).await;
        assert!(outcome.has_landed(), "{outcome:?}");
    }
    let mut item = stored(world, "alice", "gpt-4", 0).await;
    item.retain(|name, _| !name.ends_with("_soft"));
    // Whether `rpm` was ever away decides whether its balance is still there.
    item.retain(|name, _| name != "b_rpm_tk" && name != "b_rpm_tc");
    item
}

/// The engine takes every update, and what a bucket carries follows from the last level alone.
#[test]
fn whatever_was_there_before_the_last_level_decides() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let world = runtime.block_on(World::new());
    let after = |levels: &[&LevelConfig]| runtime.block_on(after_levels(&world, levels));
    let mut runner = TestRunner::new(ProptestConfig::with_cases(48));
    let law = runner.run(&(any_level(), any_level()), |(before, last)| {
        let direct = after(&[&last]);
        prop_assert_eq!(after(&[&before, &last]), direct.clone());
        prop_assert_eq!(after(&[&last, &last]), direct);
        Ok(())
    });
    law.unwrap_or_else(|failure| panic!("{failure}"));
}
