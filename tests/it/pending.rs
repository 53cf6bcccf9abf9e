//! Pending fan-outs in every shape they are stored in: read, taken over, finished, cleaned up.

use crate::stage::{Stage, assert_same, bucket, comparable};
use crate::transport::{Counted, Fault, Landing, over};
use crate::world::{Item, NOW, World, manifest, n, s};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::BTreeMap;
use zae_limits::model::{EpochMs, FanoutKind, LONGEST_LEASE_MS, Level, Owed, Pending};
use zae_limits::plan::PlanOptions;
use zae_limits::reconcile::{self, ApplyOptions};
use zae_limits::report::{ResumeReport, Status};
use zae_limits::store::{Claim, Embedded};
use zae_limits::table::pending::{encode_new, owner_entry};

const DISABLED: &str = "resources: { gpt-4: { disabled: true } }";

/// One attribute more or less.
type Change = (&'static str, Option<AttributeValue>);

fn owed() -> Owed {
    Owed {
        level: Level::from_parts("resource", "gpt-4").expect("a level"),
        kind: FanoutKind::Access,
    }
}

/// An item of the older shape: one owner, spread over the item.
fn single(world: &World, lease: Option<u64>, full: bool) -> Item {
    let mut item = encode_new(&world.ns, &owed(), "-", EpochMs(0), false, NOW);
    item.remove("owners");
    item.insert("token".to_owned(), s("old"));
    item.insert("full".to_owned(), AttributeValue::Bool(full));
    item.extend(lease.map(|lease| ("lease_until_ms".to_owned(), n(lease))));
    item
}

fn with(mut item: Item, changes: impl IntoIterator<Item = Change>) -> Item {
    for (name, value) in changes {
        match value {
            Some(value) => item.insert(name.to_owned(), value),
            None => item.remove(name),
        };
    }
    item
}

/// The resource is disabled, its buckets are not stamped, and this is pending.
async fn owing(item: impl FnOnce(&World) -> Item) -> World {
    let world = World::new().await;
    world.bucket("alice", "gpt-4", 0, &[]).await;
    world
        .apply_once(&manifest(DISABLED), PlanOptions::default())
        .await;
    world.bucket("alice", "gpt-4", 0, &[]).await;
    world.put(item(&world)).await;
    world
}

async fn pending(world: &World) -> Vec<Pending> {
    world.store.pending(&world.ns).await.expect("pending")
}

async fn resume(world: &World, join: bool) -> ResumeReport {
    let options = ApplyOptions {
        join,
        ..World::options()
    };
    reconcile::resume(&world.store, &world.clock, &world.ns, &options, &())
        .await
        .expect("a resume")
}

/// Every form in which an apply that is gone may have left its share, and the Python provisioner
/// reads it so too.
fn gone(world: &World) -> Vec<Item> {
    let map = |entries: &[(&str, AttributeValue)]| {
        let entries = entries.iter();
        let entries = entries.map(|(token, entry)| ((*token).to_owned(), entry.clone()));
        Some(AttributeValue::M(entries.collect()))
    };
    let ended = owner_entry(EpochMs(NOW.0 - 1), false);
    let old = single(world, Some(NOW.0 - 1), true);
    vec![
        old.clone(),
        single(world, None, false),
        with(old.clone(), [("owners", map(&[]))]),
        with(old.clone(), [("owners", map(&[("new", ended.clone())]))]),
        with(old.clone(), [("token", None), ("full", None)]),
        with(old, [("token", None), ("owners", map(&[("new", ended)]))]),
    ]
}

#[tokio::test]
async fn every_shape_that_is_left_behind_is_taken_over_finished_and_cleaned_up() {
    for index in 0..6 {
        let world = owing(|world| gone(world).remove(index)).await;
        assert_eq!(world.stamp("alice", "gpt-4").await, "enforce");
        let report = world
            .apply_once(&manifest(DISABLED), PlanOptions::default())
            .await;
        assert_eq!((report.resumed, report.pending), (1, 0), "shape {index}");
        assert_eq!(report.errors, Vec::<String>::new(), "shape {index}");
        assert_eq!(world.stamp("alice", "gpt-4").await, "disabled");
        assert_eq!(pending(&world).await, [], "shape {index}");

        let world = owing(|world| gone(world).remove(index)).await;
        let report = resume(&world, false).await;
        assert_eq!((report.resumed, report.is_complete()), (1, true));
        assert_eq!(world.stamp("alice", "gpt-4").await, "disabled");
        assert_eq!(pending(&world).await, [], "shape {index}");
    }
}

#[tokio::test]
async fn taking_over_puts_one_share_in_place_of_every_one_that_is_gone() {
    let ended = owner_entry(EpochMs(NOW.0 - 1), false);
    let live = owner_entry(EpochMs(NOW.0), false);
    let owners = [("gone".to_owned(), ended), ("live".to_owned(), live)];
    let owners = AttributeValue::M(owners.into());
    let world = owing(|world| {
        let old = single(world, Some(NOW.0 - 1), true);
        with(old, [("owners", Some(owners))])
    })
    .await;
    let [found] = &pending(&world).await[..] else {
        panic!("one is pending");
    };
    let claim = Claim {
        token: "mine".to_owned(),
        lease: EpochMs(NOW.0 + 1000),
        full: false,
        now: NOW,
    };
    let taken = world.store.claim(&world.ns, found, &claim).await;
    assert!(taken.expect("a claim"));
    let item = world
        .item("SYSTEM#", "#PROVISIONER#PENDING#disabled#resource#gpt-4")
        .await;
    let owners = item["owners"].as_m().expect("a map");
    let mut tokens: Vec<_> = owners.keys().map(String::as_str).collect();
    tokens.sort_unstable();
    assert_eq!(tokens, ["live", "mine"]);
    for gone in ["token", "lease_until_ms", "full"] {
        assert!(!item.contains_key(gone), "{gone} is left");
    }
    // Nobody takes over what has been taken over.
    let other = Claim {
        token: "other".to_owned(),
        ..claim
    };
    let taken = world.store.claim(&world.ns, found, &other).await;
    assert!(!taken.expect("a claim"));
}

#[tokio::test]
async fn any_number_of_shares_is_taken_over_at_once() {
    for many in [19, 20, 21, 60, 300] {
        let ended = owner_entry(EpochMs(NOW.0 - 1), false);
        let owners = (0..many).map(|index| (format!("gone-{index:032}"), ended.clone()));
        let owners = AttributeValue::M(owners.collect());
        let world = owing(|world| {
            let old = single(world, Some(NOW.0 - 1), true);
            with(old, [("owners", Some(owners))])
        })
        .await;
        let report = resume(&world, false).await;
        assert_eq!((report.resumed, report.is_complete()), (1, true), "{many}");
        assert_eq!(world.stamp("alice", "gpt-4").await, "disabled");
        assert_eq!(pending(&world).await, [], "{many} shares");
    }
}

#[tokio::test]
async fn a_lease_that_no_apply_can_hold_has_run_out() {
    for far in [
        NOW.0 + LONGEST_LEASE_MS + 1,
        32_503_680_000_000,
        u64::MAX >> 1,
    ] {
        let world = owing(|world| {
            let owner = owner_entry(EpochMs(far), false);
            with(
                single(world, Some(far), false),
                [(
                    "owners",
                    Some(AttributeValue::M([("far".to_owned(), owner)].into())),
                )],
            )
        })
        .await;
        let report = resume(&world, false).await;
        assert_eq!((report.resumed, report.is_complete()), (1, true), "{far}");
        assert_eq!(pending(&world).await, [], "{far}");
    }
    let world = owing(|world| single(world, Some(NOW.0 + LONGEST_LEASE_MS), false)).await;
    assert_eq!(resume(&world, false).await.resumed, 0, "a day is believed");
}

#[tokio::test]
async fn an_older_share_that_is_alive_is_left_alone_until_its_lease_has_run_out() {
    let world = owing(|world| single(world, Some(NOW.0), false)).await;
    // It owes the same fan-out, so the item gets a map beside the older owner.
    let bypass = manifest("resources: { gpt-4: { disabled: bypass } }");
    let report = world.apply_once(&bypass, PlanOptions::default()).await;
    assert_eq!((report.resumed, report.pending), (0, 1));
    assert_eq!(report.status, Status::Partial);
    assert_eq!(world.stamp("alice", "gpt-4").await, "bypass");
    let [left] = &pending(&world).await[..] else {
        panic!("one is pending");
    };
    let tokens: Vec<_> = left.owners.keys().map(String::as_str).collect();
    assert_eq!((tokens, left.has_map), (vec!["old"], true));

    let report = resume(&world, false).await;
    assert_eq!((report.resumed, report.pending.len()), (0, 1));
    assert_eq!(report.pending[0].held_until, Some(NOW));
    assert!(!report.is_complete());
    // Whoever may not wait runs it beside its owner.
    let report = resume(&world, true).await;
    assert_eq!((report.joined, report.is_complete()), (1, true));
    assert_eq!(pending(&world).await.len(), 1);
    world.clock.advance(1);
    let report = resume(&world, false).await;
    assert_eq!((report.resumed, report.is_complete()), (1, true));
    assert_eq!(pending(&world).await, []);
}

#[tokio::test]
async fn an_item_that_nobody_owns_is_finished() {
    let nobody = Some(AttributeValue::M(Item::new()));
    for owners in [None, nobody] {
        let world = owing(|world| {
            let item = single(world, None, false);
            with(item, [("token", None), ("full", None), ("owners", owners)])
        })
        .await;
        assert_eq!(pending(&world).await[0].owners, BTreeMap::new());
        assert!(resume(&world, false).await.is_complete());
        assert_eq!(world.stamp("alice", "gpt-4").await, "disabled");
        assert_eq!(pending(&world).await, []);
    }
}

const CASCADING: &str = "resources: { gpt-4: { cascade: true, limits: { rpm: { capacity: 5 } } } }";

/// The record of a Python provisioner before 0.17 lists the cascade fan-outs that it left. Writing
/// the record anew drops the list, so each is a pending item before that.
#[tokio::test]
async fn what_an_older_record_lists_is_finished_wherever_the_apply_dies() {
    let stage = Stage::made(async |world| {
        let options = PlanOptions::default();
        world.apply_once(&manifest(CASCADING), options).await;
        // Before its fan-out.
        world.bucket("carol", "gpt-4", 0, &[]).await;
        let mut record = world.item("SYSTEM#", "#PROVISIONER").await;
        for ours in ["switches", "owner", "rev", "overflow", "previous_hash"] {
            record.remove(ours);
        }
        let entry = [("level", s("resource")), ("target", s("gpt-4"))];
        let entry = entry.map(|(name, value)| (name.to_owned(), value));
        let listed = AttributeValue::L(vec![AttributeValue::M(entry.into())]);
        record.insert("cascade_pending".to_owned(), listed);
        world.put(record).await;
    })
    .await;
    let target = manifest(CASCADING);
    let cascades = async |world: &World| {
        let dump = world.dump().await;
        bucket(&dump, world, "carol", "gpt-4")["cascade"].clone()
    };
    let world = World::before_first_use(stage.set().await.client());
    assert_eq!(cascades(&world).await, AttributeValue::Bool(false));
    let plan = world.plan(&target).await;
    assert_eq!((plan.changes.len(), plan.pending.len()), (0, 1));
    let report = world.apply_once(&target, PlanOptions::default()).await;
    assert_eq!((report.errors.len(), report.pending), (0, 0), "{report:#?}");
    assert_eq!(cascades(&world).await, AttributeValue::Bool(true));
    assert!(world.plan(&target).await.is_empty());
    let expected = comparable(world.dump().await);
    for landing in [Landing::Before, Landing::After] {
        for at in 1.. {
            let embedded = stage.set().await;
            let fault = Fault::crash(at, Counted::Requests, landing);
            let dying = Embedded::client_over(over(embedded.http_client(), fault.clone()));
            let dying = World::before_first_use(dying);
            let _ = dying.try_apply(&target, PlanOptions::default()).await;
            if !fault.struck() {
                break;
            }
            let world = World::before_first_use(embedded.client());
            world.clock.advance(20 * 60_000);
            let report = world.apply_once(&target, PlanOptions::default()).await;
            assert_eq!((report.errors.len(), report.pending), (0, 0));
            let stored = comparable(world.dump().await);
            assert_same(&stored, &expected, &format!("{landing:?} {at}"));
        }
    }
}
