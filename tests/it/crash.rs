//! Killed anywhere, run again, right: the process dies before or after every single request of an
//! apply, and the next apply brings the table to where an uninterrupted one would have.

use crate::transport::{Counted, Fault, Landing, over};
use crate::world::{Dump, World, manifest};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::BTreeMap;
use zae_limits::model::ManifestOwner;
use zae_limits::plan::{PlanOptions, Policy};
use zae_limits::reconcile::{self, ApplyOptions};
use zae_limits::store::Embedded;

/// What was applied before, and what is being applied when the process dies.
struct Case {
    before: &'static str,
    after: &'static str,
    full: bool,
}

/// A database with buckets, in which `before` has been applied.
async fn prepared(case: &Case) -> Embedded {
    let embedded = Embedded::memory().expect("an embedded database");
    let world = World::over(embedded.client()).await;
    for (entity, resource) in [("alice", "gpt-4"), ("bob", "gpt-4"), ("bob", "claude-3")] {
        world.bucket(entity, resource, 0, &[]).await;
    }
    if !case.before.is_empty() {
        world
            .apply_once(&manifest(case.before), PlanOptions::default())
            .await;
    }
    embedded
}

/// Everything stored, without what differs from run to run: instants, revisions and event ids. Of
/// audit events remains how many there are of each kind for each subject.
fn comparable(dump: Dump) -> (Dump, BTreeMap<String, usize>) {
    let mut audits = BTreeMap::new();
    let mut items = Dump::new();
    for ((pk, sk), mut item) in dump {
        if sk.starts_with("#AUDIT#") {
            *audits
                .entry(format!("{pk} {:?}", item["action"]))
                .or_default() += 1;
            continue;
        }
        item.remove("last_applied");
        item.remove("rev");
        if let Some(AttributeValue::N(deadline)) = item.get_mut("bypass") {
            *deadline = "later".to_owned();
        }
        if let Some(AttributeValue::N(ttl)) = item.get_mut("ttl") {
            *ttl = "later".to_owned();
        }
        items.insert((pk, sk), item);
    }
    (items, audits)
}

/// Kills the apply at every request, on both sides, and returns how many crash points there were.
async fn exhaust(case: &Case) -> usize {
    let options = PlanOptions {
        full: case.full,
        ..PlanOptions::default()
    };
    let target = manifest(case.after);
    let uninterrupted = World::before_first_use(prepared(case).await.client());
    uninterrupted.apply_once(&target, options).await;
    let expected = comparable(uninterrupted.dump().await);
    let mut tried = 0;
    for landing in [Landing::Before, Landing::After] {
        for at in 1.. {
            let embedded = prepared(case).await;
            let fault = Fault::crash(at, Counted::Requests, landing);
            let dying = Embedded::client_over(over(embedded.http_client(), fault.clone()));
            let claimed = World::before_first_use(dying)
                .try_apply(&target, options)
                .await;
            if !fault.struck() {
                break;
            }
            tried += 1;
            let world = World::before_first_use(embedded.client());
            if let Ok(report) = claimed
                && report.errors.is_empty()
                && report.pending == 0
            {
                let stored = comparable(world.dump().await);
                assert_eq!(
                    stored, expected,
                    "a success was claimed at {landing:?} {at}"
                );
            }
            // The dead apply's leases run out.
            world.clock.advance(20 * 60_000);
            let report = world.apply_once(&target, options).await;
            assert_eq!(report.errors, Vec::<String>::new(), "{landing:?} {at}");
            assert_eq!(comparable(world.dump().await), expected, "{landing:?} {at}");
            let plan = world.plan(&target).await;
            assert!(plan.is_empty(), "{landing:?} {at}: {plan:#?}");
        }
    }
    tried
}

async fn check(before: &'static str, after: &'static str) {
    let tried = exhaust(&Case {
        before,
        after,
        full: false,
    })
    .await;
    println!("{tried} crash points");
    assert!(tried > 20, "only {tried} crash points were reached");
}

const CARVED: &str = "
resources: { gpt-4: { disabled: true, limits: { rpm: { capacity: 5 } } } }
entities: { alice: { resources: { gpt-4: { disabled: false } } } }";

#[tokio::test]
async fn a_first_apply() {
    check("", CARVED).await;
}

#[tokio::test]
async fn a_switch_that_turns_and_a_level_that_goes() {
    check(
        CARVED,
        "resources: { gpt-4: { disabled: bypass, limits: { rpm: { capacity: 5 } } } }",
    )
    .await;
}

#[tokio::test]
async fn an_entity_default_that_comes_and_goes() {
    let default = "entities: { bob: { resources: { _default_: { disabled: true } } } }";
    check("", default).await;
    check(default, "resources: { claude-3: { disabled: bypass } }").await;
}

#[tokio::test]
async fn everything_given_up() {
    check(CARVED, "").await;
}

const LIMITED: &str = "
system: { limits: { rpm: { capacity: 100 } } }
resources: { gpt-4: { cascade: true, limits: { rpm: { capacity: 50, soft: true } } } }
entities:
  alice: { resources: { gpt-4: { limits: { rpm: { capacity: 5 }, tpm: { capacity: 9 } } } } }
  bob: { resources: { _default_: { limits: { rpm: { capacity: 7, reset_after_seconds: 60 } } } } }";

#[tokio::test]
async fn limits_policies_and_soft_stamps() {
    check("", LIMITED).await;
    check(LIMITED, CARVED).await;
}

#[tokio::test]
async fn a_full_apply() {
    let tried = exhaust(&Case {
        before: CARVED,
        after: CARVED,
        full: true,
    })
    .await;
    println!("{tried} crash points");
    assert!(tried > 20, "only {tried} crash points were reached");
}

#[tokio::test]
async fn a_lost_answer_is_no_loss() {
    let case = Case {
        before: "",
        after: CARVED,
        full: false,
    };
    let target = manifest(case.after);
    let uninterrupted = World::before_first_use(prepared(&case).await.client());
    uninterrupted
        .apply_once(&target, PlanOptions::default())
        .await;
    let expected = comparable(uninterrupted.dump().await);
    for landing in [Landing::Before, Landing::After] {
        let mut struck = 0;
        for at in 1.. {
            let embedded = prepared(&case).await;
            let fault = Fault::blip(at, Counted::Requests, landing);
            let shaky = Embedded::client_over(over(embedded.http_client(), fault.clone()));
            let world = World::before_first_use(shaky);
            let report = world.apply_once(&target, PlanOptions::default()).await;
            if !fault.struck() {
                break;
            }
            struck += 1;
            assert_eq!(report.errors, Vec::<String>::new(), "{landing:?} {at}");
            let world = World::before_first_use(embedded.client());
            assert_eq!(comparable(world.dump().await), expected, "{landing:?} {at}");
        }
        assert!(struck > 10, "an apply has more than {struck} requests");
    }
}

/// A dead apply's work is not taken over while it may still be running, and never called done.
#[tokio::test]
async fn a_live_lease_is_respected_and_reported() {
    let case = Case {
        before: "",
        after: CARVED,
        full: false,
    };
    let target = manifest(case.after);
    let mut left_pending = 0;
    for at in 1.. {
        let embedded = prepared(&case).await;
        let fault = Fault::crash(at, Counted::Requests, Landing::After);
        let dying = Embedded::client_over(over(embedded.http_client(), fault.clone()));
        let _ = World::before_first_use(dying)
            .try_apply(&target, PlanOptions::default())
            .await;
        if !fault.struck() {
            break;
        }
        let world = World::before_first_use(embedded.client());
        let plan = world.plan(&target).await;
        let report = world.apply_once(&target, PlanOptions::default()).await;
        assert_eq!(
            report.pending,
            world.store.pending(&world.ns).await.expect("pending").len()
        );
        if report.pending > 0 {
            assert!(!plan.is_empty());
            assert_ne!(
                report.status,
                zae_limits::report::Status::Unchanged,
                "at {at}"
            );
            left_pending += 1;
        }
    }
    assert!(left_pending > 3, "{left_pending}");
}

/// Whoever applies next need not wait for a dead apply's lease: what it owed is done at once.
#[tokio::test]
async fn joining_a_dead_apply_brings_every_switch_into_effect_at_once() {
    let case = Case {
        before: "",
        after: CARVED,
        full: false,
    };
    let target = manifest(case.after);
    let mut joined = 0;
    for at in 1.. {
        let embedded = prepared(&case).await;
        let fault = Fault::crash(at, Counted::Requests, Landing::After);
        let dying = Embedded::client_over(over(embedded.http_client(), fault.clone()));
        let _ = World::before_first_use(dying)
            .try_apply(&target, PlanOptions::default())
            .await;
        if !fault.struck() {
            break;
        }
        let world = World::before_first_use(embedded.client());
        let plan = world.plan(&target).await;
        joined += usize::from(!plan.pending.is_empty());
        let guarded = plan
            .guard(&Policy::strict(ManifestOwner::Cli))
            .expect("no guard");
        let options = ApplyOptions {
            join: true,
            ..World::options()
        };
        let report = reconcile::apply(&world.store, &world.clock, &guarded, &options, &()).await;
        let report = report.expect("an apply");
        assert_eq!((report.errors.len(), report.pending), (0, 0), "at {at}");
        assert_eq!(world.stamp("alice", "gpt-4").await, "enforce", "at {at}");
        assert_eq!(world.stamp("bob", "gpt-4").await, "disabled", "at {at}");
        // The dead apply's shares are still there, and go once its lease has run out.
        world.clock.advance(20 * 60_000);
        world.apply_once(&target, PlanOptions::default()).await;
        assert_eq!(world.store.pending(&world.ns).await.expect("pending"), []);
    }
    assert!(joined > 3, "{joined}");
}
