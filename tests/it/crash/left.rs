//! What a dead apply left, and who goes on with it: a resume that may die as well, an apply that waits
//! for the lease, one that does not.

use super::*;
use zae_limits::model::ManifestOwner;
use zae_limits::plan::Policy;
use zae_limits::reconcile::{self, ApplyOptions};
use zae_limits::report::{ResumeReport, Status};

/// A resume that dies is finished by the next one, or by an apply.
#[tokio::test]
async fn a_resume_of_what_a_dead_apply_left() {
    let target = manifest(EVERYTHING);
    let case = Case::new("", EVERYTHING).await;
    let (expected, _) = case.expected().await;
    // An apply that died before its first fan-out: every one of them is pending.
    let embedded = dead_before_fanouts(&case).await;
    let left = World::before_first_use(embedded.client()).dump().await;
    let stage = Stage::made(async |world| {
        for item in left.into_values() {
            world.put(item).await;
        }
    })
    .await;
    let mut deaths = 0;
    for landing in [Landing::Before, Landing::After] {
        for at in 1.. {
            let embedded = stage.set().await;
            let fault = Fault::crash(at, Counted::Requests, landing);
            let dying = Embedded::client_over(over(embedded.http_client(), fault.clone()));
            let dying = World::before_first_use(dying);
            dying.clock.advance(LEASES_MS);
            let claimed = resume(&dying).await;
            let world = World::before_first_use(embedded.client());
            let left = world.store.pending(&world.ns).await.expect("pending").len();
            if claimed.is_ok_and(|report| report.is_complete()) {
                assert_eq!(left, 0, "a success was claimed at {landing:?} {at}");
            }
            if !fault.struck() {
                break;
            }
            deaths += 1;
            world.clock.advance(2 * LEASES_MS);
            let report = resume(&world).await.expect("a resume");
            assert!(report.is_complete(), "{landing:?} {at}: {report:#?}");
            // What is left to an apply is the record alone.
            let report = world.apply_once(&target, PlanOptions::default()).await;
            assert_eq!(report.fanouts, [], "{landing:?} {at}");
            let stored = comparable(world.dump().await);
            assert_same(&stored, &expected, &format!("{landing:?} {at}"));
        }
    }
    tried(deaths, 148);
}

async fn resume(world: &World) -> Result<ResumeReport, StoreError> {
    let options = World::options();
    reconcile::resume(&world.store, &world.clock, &world.ns, &options, &()).await
}

/// A database in which the case's apply died after a request, and whether it came that far.
async fn died_at(case: &Case, at: usize) -> (Embedded, bool) {
    let embedded = case.stage.set().await;
    let fault = Fault::crash(at, Counted::Requests, Landing::After);
    let dying = Embedded::client_over(over(embedded.http_client(), fault.clone()));
    let dying = World::before_first_use(dying);
    let _ = dying.try_apply(&manifest(case.after), case.options).await;
    (embedded, fault.struck())
}

/// A database in which the case's apply wrote every level and died before the first fan-out.
async fn dead_before_fanouts(case: &Case) -> Embedded {
    let target = manifest(case.after);
    for at in 1.. {
        let (embedded, struck) = died_at(case, at).await;
        assert!(struck, "no apply died between levels and fan-outs");
        let world = World::before_first_use(embedded.client());
        let plan = world.plan(&target).await;
        if plan.changes.is_empty() {
            assert!(plan.pending.len() > 5, "{plan:#?}");
            return embedded;
        }
    }
    unreachable!("the loop ends by returning or panicking");
}

/// A dead apply's work is not taken over while it may still be running, and never called done.
#[tokio::test]
async fn a_live_lease_is_respected_and_reported() {
    let case = Case::new("", CARVED).await;
    let target = manifest(case.after);
    let (mut deaths, mut left_pending) = (0, 0);
    for at in 1.. {
        let (embedded, struck) = died_at(&case, at).await;
        if !struck {
            break;
        }
        deaths += 1;
        let world = World::before_first_use(embedded.client());
        let plan = world.plan(&target).await;
        let report = world.apply_once(&target, PlanOptions::default()).await;
        assert_eq!(
            report.pending,
            world.store.pending(&world.ns).await.expect("pending").len()
        );
        if report.pending > 0 {
            assert!(!plan.is_empty());
            assert_ne!(report.status, Status::Unchanged, "at {at}");
            left_pending += 1;
        }
    }
    assert!(left_pending > 3, "{left_pending}");
    tried(deaths, 26);
}

/// Whoever applies next need not wait for a dead apply's lease: what it owed is done at once.
#[tokio::test]
async fn joining_a_dead_apply_brings_every_switch_into_effect_at_once() {
    let case = Case::new("", CARVED).await;
    let target = manifest(case.after);
    let (mut deaths, mut joined) = (0, 0);
    for at in 1.. {
        let (embedded, struck) = died_at(&case, at).await;
        if !struck {
            break;
        }
        deaths += 1;
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
        world.clock.advance(LEASES_MS);
        world.apply_once(&target, PlanOptions::default()).await;
        assert_eq!(world.store.pending(&world.ns).await.expect("pending"), []);
    }
    assert!(joined > 3, "{joined}");
    tried(deaths, 26);
}
