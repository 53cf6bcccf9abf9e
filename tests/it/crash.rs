//! Killed anywhere, run again, right: the process dies before or after every single request of an
//! apply, and the next apply brings the table to where an uninterrupted one would have.

use crate::stage::{Stage, Stored, assert_same, comparable};
use crate::transport::{Counted, Fault, Landing, over};
use crate::world::{World, manifest};
use zae_limits::manifest::OutOfBand;
use zae_limits::model::{FanoutKind, ManifestOwner};
use zae_limits::plan::{PlanOptions, Policy};
use zae_limits::reconcile::{self, ApplyOptions};
use zae_limits::store::Embedded;

/// Until every lease of a dead apply has run out, in milliseconds.
const LEASES_MS: u64 = 20 * 60_000;

/// What is being applied when the process dies, over what was stored before.
struct Case {
    stage: Stage,
    after: &'static str,
    options: PlanOptions,
}

impl Case {
    async fn new(before: &str, after: &'static str) -> Case {
        Case {
            stage: Stage::after(before).await,
            after,
            options: PlanOptions::default(),
        }
    }

    /// What an uninterrupted apply leaves, and the kinds of fan-outs that it ran.
    async fn expected(&self) -> (Stored, Vec<FanoutKind>) {
        let world = World::before_first_use(self.stage.set().await.client());
        let report = world.apply_once(&manifest(self.after), self.options).await;
        assert_eq!((report.errors.len(), report.pending), (0, 0), "{report:#?}");
        let plan = world.plan(&manifest(self.after)).await;
        assert!(plan.is_empty(), "{plan:#?}");
        let mut kinds: Vec<_> = report.fanouts.iter().map(|ran| ran.owed.kind).collect();
        kinds.sort();
        kinds.dedup();
        (comparable(world.dump().await), kinds)
    }
}

/// Kills the apply at every request, on both sides, and returns how many crash points there were.
/// The fan-outs that it runs must be of these kinds: a case that lost its point tests nothing.
async fn exhaust(case: &Case, kinds: &[FanoutKind]) -> usize {
    let target = manifest(case.after);
    let (expected, ran) = case.expected().await;
    assert_eq!(ran, kinds, "{}", case.after);
    let mut tried = 0;
    for landing in [Landing::Before, Landing::After] {
        for at in 1.. {
            let embedded = case.stage.set().await;
            let fault = Fault::crash(at, Counted::Requests, landing);
            let dying = Embedded::client_over(over(embedded.http_client(), fault.clone()));
            let claimed = World::before_first_use(dying)
                .try_apply(&target, case.options)
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
                let what = format!("a success was claimed at {landing:?} {at}");
                assert_same(&stored, &expected, &what);
            }
            world.clock.advance(LEASES_MS);
            let report = world.apply_once(&target, case.options).await;
            assert_eq!(report.errors, Vec::<String>::new(), "{landing:?} {at}");
            let stored = comparable(world.dump().await);
            assert_same(&stored, &expected, &format!("{landing:?} {at}"));
        }
    }
    tried
}

async fn check(steps: &[(&'static str, &[FanoutKind])]) {
    let mut before = "";
    let mut tried = 0;
    for (after, kinds) in steps {
        let case = Case::new(before, after).await;
        let here = exhaust(&case, kinds).await;
        assert!(here > 20, "only {here} crash points were reached");
        tried += here;
        before = after;
    }
    println!("{tried} crash points");
}

use FanoutKind::{Access, Cascade, Params, Soft};

const CARVED: &str = "
resources: { gpt-4: { disabled: true, limits: { rpm: { capacity: 5 } } } }
entities: { alice: { resources: { gpt-4: { disabled: false } } } }";

#[tokio::test]
async fn switches_that_come_turn_and_go_with_their_levels() {
    let turned = "resources: { gpt-4: { disabled: bypass, limits: { rpm: { capacity: 5 } } } }";
    // With an entity's level goes whatever limits it had by then.
    let gone = [Access, Params];
    check(&[(CARVED, &[Access]), (turned, &gone), ("", &[Access])]).await;
}

#[tokio::test]
async fn an_entity_default_that_comes_and_goes() {
    let default = "
entities: { bob: { resources: { _default_: { disabled: true, limits: { rpm: { capacity: 7 } } } } } }";
    let gone = "resources: { claude-3: { disabled: bypass } }";
    check(&[(default, &[Access, Params]), (gone, &[Access, Params])]).await;
}

const LIMITED: &str = "
entities:
  alice: { resources: { gpt-4: { limits: { rpm: { capacity: 5 }, tpm: { capacity: 9 } } } } }
  bob: { resources: { _default_: { limits: { rpm: { capacity: 7, reset_after_seconds: 60 } } } } }";

#[tokio::test]
async fn limits_of_entities_that_come_change_and_go() {
    let changed = "
resources: { gpt-4: { limits: { rpm: { capacity: 50 } } } }
entities:
  alice: { resources: { gpt-4: { limits: { rpm: { capacity: 6, schedule: [{ cron: '* 9-17 * * *', scale: 0.5 }] } } } } }";
    check(&[(LIMITED, &[Params]), (changed, &[Params])]).await;
}

#[tokio::test]
async fn limits_of_entities_that_are_taken_back() {
    let before = "
resources: { gpt-4: { limits: { rpm: { capacity: 50 } } } }
entities: { alice: { resources: { gpt-4: { limits: { rpm: { capacity: 6 } } } } } }";
    let after = "resources: { gpt-4: { limits: { rpm: { capacity: 50 } } } }";
    let case = Case::new(before, after).await;
    println!("{} crash points", exhaust(&case, &[Params]).await);
}

#[tokio::test]
async fn cascade_policies() {
    let cascading = "
resources: { gpt-4: { cascade: true, limits: { rpm: { capacity: 5 } } } }
entities: { carol: { resources: { _default_: { cascade: false } } } }";
    let turned = "
resources: { gpt-4: { cascade: false, limits: { rpm: { capacity: 5 } } } }
entities: { carol: { resources: { gpt-4: { cascade: true } } } }";
    check(&[(cascading, &[Cascade]), (turned, &[Cascade, Params])]).await;
}

#[tokio::test]
async fn soft_limits() {
    let soft = "
system: { limits: { rpm: { capacity: 100, soft: true } } }
resources: { gpt-4: { limits: { rpm: { capacity: 50, soft: true } } } }";
    let hard = "
system: { limits: { rpm: { capacity: 100 } } }
resources: { gpt-4: { limits: { rpm: { capacity: 50 } } } }";
    check(&[(soft, &[Soft]), (hard, &[Soft])]).await;
}

/// Every kind of fan-out and of change at once.
const EVERYTHING: &str = "
system: { limits: { rpm: { capacity: 100, soft: true } } }
resources:
  gpt-4: { disabled: true, cascade: true, limits: { rpm: { capacity: 50, soft: true } } }
  claude-3: { disabled: bypass }
entities:
  alice: { resources: { gpt-4: { disabled: false, limits: { rpm: { capacity: 5 } } } } }
  bob: { resources: { _default_: { cascade: true, limits: { rpm: { capacity: 7 } } } } }";

#[tokio::test]
async fn everything_at_once() {
    let all = [Access, Cascade, Soft, Params];
    check(&[(EVERYTHING, &all)]).await;
}

#[tokio::test]
async fn everything_replaced() {
    let case = Case::new(EVERYTHING, LIMITED).await;
    let all = [Access, Cascade, Soft, Params];
    println!("{} crash points", exhaust(&case, &all).await);
}

#[tokio::test]
async fn everything_given_up() {
    let case = Case::new(EVERYTHING, "").await;
    let all = [Access, Cascade, Soft, Params];
    println!("{} crash points", exhaust(&case, &all).await);
}

#[tokio::test]
async fn a_full_apply_of_everything() {
    let case = Case {
        options: PlanOptions {
            full: true,
            ..PlanOptions::default()
        },
        ..Case::new(EVERYTHING, EVERYTHING).await
    };
    let all = [Access, Cascade, Soft, Params];
    println!("{} crash points", exhaust(&case, &all).await);
}

#[tokio::test]
async fn a_full_apply_that_changes_something() {
    let case = Case {
        options: PlanOptions {
            full: true,
            ..PlanOptions::default()
        },
        ..Case::new(CARVED, LIMITED).await
    };
    let kinds = [Access, Cascade, Params];
    println!("{} crash points", exhaust(&case, &kinds).await);
}

#[tokio::test]
async fn a_switch_set_by_hand_that_is_reverted() {
    let limited = "resources: { gpt-4: { limits: { rpm: { capacity: 5 } } } }";
    let by_hand = "resources: { gpt-4: { disabled: true, limits: { rpm: { capacity: 5 } } } }";
    let stage = Stage::made(async |world| {
        let options = PlanOptions::default();
        world.apply_once(&manifest(limited), options).await;
        let record = world.item("SYSTEM#", "#PROVISIONER").await;
        world.apply_once(&manifest(by_hand), options).await;
        // The memory of the switch is undone: what remains is one that nobody declared.
        world.put(record).await;
    })
    .await;
    let case = Case {
        stage,
        after: limited,
        options: PlanOptions {
            out_of_band: OutOfBand::Revert,
            ..PlanOptions::default()
        },
    };
    let tried = exhaust(&case, &[Access]).await;
    println!("{tried} crash points");
    assert!(tried > 20, "only {tried} crash points were reached");
}

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
    let mut tried = 0;
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
            tried += 1;
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
    println!("{tried} crash points");
    assert!(tried > 50, "only {tried} crash points were reached");
}

async fn resume(
    world: &World,
) -> Result<zae_limits::report::ResumeReport, zae_limits::store::StoreError> {
    let options = World::options();
    reconcile::resume(&world.store, &world.clock, &world.ns, &options, &()).await
}

/// A database in which the case's apply wrote every level and died before the first fan-out.
async fn dead_before_fanouts(case: &Case) -> Embedded {
    let target = manifest(case.after);
    for at in 1.. {
        let embedded = case.stage.set().await;
        let fault = Fault::crash(at, Counted::Requests, Landing::After);
        let dying = Embedded::client_over(over(embedded.http_client(), fault.clone()));
        let dying = World::before_first_use(dying);
        let _ = dying.try_apply(&target, case.options).await;
        assert!(fault.struck(), "no apply died between levels and fan-outs");
        let world = World::before_first_use(embedded.client());
        let plan = world.plan(&target).await;
        if plan.changes.is_empty() {
            assert!(plan.pending.len() > 5, "{plan:#?}");
            return embedded;
        }
    }
    unreachable!("the loop ends by returning or panicking");
}

#[tokio::test]
async fn a_lost_answer_is_no_loss() {
    let case = Case::new("", EVERYTHING).await;
    let target = manifest(case.after);
    let (expected, _) = case.expected().await;
    let mut tried = 0;
    for landing in [Landing::Before, Landing::After] {
        for at in 1.. {
            let embedded = case.stage.set().await;
            let fault = Fault::blip(at, Counted::Requests, landing);
            let shaky = Embedded::client_over(over(embedded.http_client(), fault.clone()));
            let world = World::before_first_use(shaky);
            tokio::time::pause();
            let report = world.apply_once(&target, case.options).await;
            tokio::time::resume();
            if !fault.struck() {
                break;
            }
            tried += 1;
            assert_eq!(report.errors, Vec::<String>::new(), "{landing:?} {at}");
            let world = World::before_first_use(embedded.client());
            let stored = comparable(world.dump().await);
            assert_same(&stored, &expected, &format!("{landing:?} {at}"));
        }
    }
    println!("{tried} lost answers");
    assert!(tried > 100, "only {tried} answers were lost");
}

/// A dead apply's work is not taken over while it may still be running, and never called done.
#[tokio::test]
async fn a_live_lease_is_respected_and_reported() {
    let case = Case::new("", CARVED).await;
    let target = manifest(case.after);
    let mut left_pending = 0;
    for at in 1.. {
        let embedded = case.stage.set().await;
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
    let case = Case::new("", CARVED).await;
    let target = manifest(case.after);
    let mut joined = 0;
    for at in 1.. {
        let embedded = case.stage.set().await;
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
        world.clock.advance(LEASES_MS);
        world.apply_once(&target, PlanOptions::default()).await;
        assert_eq!(world.store.pending(&world.ns).await.expect("pending"), []);
    }
    assert!(joined > 3, "{joined}");
}
