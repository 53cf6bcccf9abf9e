//! Killed anywhere, run again, right: the process dies before or after every single request of an
//! apply, and the next apply brings the table to where an uninterrupted one would have.
//!
//! Each test says how many crash points it tried and how many all tests of its process tried up to then,
//! which the last of them to end says of all. Each has a floor close to what it reaches: a part that is
//! lost is noticed.

mod left;
mod reading;

use crate::in_flight::AfterQuery;
use crate::stage::{Stage, Stored, assert_same, comparable};
use crate::transport::{Counted, Fault, Landing, over};
use crate::world::{World, manifest};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use zae_limits::manifest::OutOfBand;
use zae_limits::model::FanoutKind;
use zae_limits::plan::PlanOptions;
use zae_limits::report::ApplyReport;
use zae_limits::store::{Embedded, StoreError};

/// Until every lease of a dead apply has run out, in milliseconds.
const LEASES_MS: u64 = 20 * 60_000;

/// Crash points that were tried in this process.
static TRIED: AtomicUsize = AtomicUsize::new(0);

/// Says how many crash points a test tried, which may not be fewer than its floor.
fn tried(here: usize, floor: usize) {
    let all = TRIED.fetch_add(here, Ordering::SeqCst) + here;
    println!("{here} crash points, {all} in this process so far");
    assert!(
        here >= floor,
        "only {here} crash points were reached, not {floor}"
    );
}

/// What is being applied when the process dies, over what was stored before.
struct Case {
    stage: Stage,
    after: &'static str,
    options: PlanOptions,
    /// How long the reading pass waits; zero: there is none.
    settle: Duration,
    /// After which query of an index a client's bucket appears; `None`: none does.
    late: Option<usize>,
}

impl Case {
    async fn new(before: &str, after: &'static str) -> Case {
        Case {
            stage: Stage::after(before).await,
            after,
            options: PlanOptions::default(),
            settle: Duration::ZERO,
            late: None,
        }
    }

    /// A client of a database, besides which other clients write.
    fn transport(&self, embedded: &Embedded) -> SharedHttpClient {
        match self.late {
            None => embedded.http_client(),
            Some(nth) => over(embedded.http_client(), AfterQuery::new(nth, embedded, &[])),
        }
    }

    async fn apply(&self, world: &World) -> Result<ApplyReport, StoreError> {
        let target = manifest(self.after);
        world
            .try_apply_settling(&target, self.options, self.settle)
            .await
    }

    /// What an uninterrupted apply leaves, and the kinds of fan-outs that it ran.
    async fn expected(&self) -> (Stored, Vec<FanoutKind>) {
        let embedded = self.stage.set().await;
        let client = Embedded::client_over(self.transport(&embedded));
        let world = World::before_first_use(client);
        let report = self.apply(&world).await.expect("an apply");
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
    let (expected, ran) = case.expected().await;
    assert_eq!(ran, kinds, "{}", case.after);
    let mut deaths = 0;
    for landing in [Landing::Before, Landing::After] {
        for at in 1.. {
            let embedded = case.stage.set().await;
            let fault = Fault::crash(at, Counted::Requests, landing);
            let dying = over(case.transport(&embedded), fault.clone());
            let dying = World::before_first_use(Embedded::client_over(dying));
            let claimed = case.apply(&dying).await;
            if !fault.struck() {
                break;
            }
            deaths += 1;
            let world = World::before_first_use(embedded.client());
            if let Ok(report) = claimed
                && report.errors.is_empty()
                && report.pending == 0
            {
                let stored = comparable(world.dump().await);
                let what = format!("a success was claimed at {landing:?} {at}");
                assert_same(&stored, &expected, &what);
            }
            if case.late.is_some() && world.stamp("late", "gpt-4").await == "gone" {
                world.bucket("late", "gpt-4", 0, &[]).await;
            }
            world.clock.advance(LEASES_MS);
            let report = case.apply(&world).await.expect("an apply");
            assert_eq!(report.errors, Vec::<String>::new(), "{landing:?} {at}");
            let stored = comparable(world.dump().await);
            assert_same(&stored, &expected, &format!("{landing:?} {at}"));
        }
    }
    deaths
}

/// Applies one manifest after the other, each over what the one before left.
async fn check(steps: &[(&'static str, &[FanoutKind])], floor: usize) {
    let mut before = "";
    let mut all = 0;
    for (after, kinds) in steps {
        let case = Case::new(before, after).await;
        let here = exhaust(&case, kinds).await;
        assert!(here > 20, "only {here} crash points were reached");
        all += here;
        before = after;
    }
    tried(all, floor);
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
    check(
        &[(CARVED, &[Access]), (turned, &gone), ("", &[Access])],
        169,
    )
    .await;
}

#[tokio::test]
async fn an_entity_default_that_comes_and_goes() {
    let default = "
entities: { bob: { resources: { _default_: { disabled: true, limits: { rpm: { capacity: 7 } } } } } }";
    let gone = "resources: { claude-3: { disabled: bypass } }";
    check(
        &[(default, &[Access, Params]), (gone, &[Access, Params])],
        129,
    )
    .await;
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
    check(&[(LIMITED, &[Params]), (changed, &[Params])], 133).await;
}

#[tokio::test]
async fn limits_of_entities_that_are_taken_back() {
    let before = "
resources: { gpt-4: { limits: { rpm: { capacity: 50 } } } }
entities: { alice: { resources: { gpt-4: { limits: { rpm: { capacity: 6 } } } } } }";
    let after = "resources: { gpt-4: { limits: { rpm: { capacity: 50 } } } }";
    let case = Case::new(before, after).await;
    tried(exhaust(&case, &[Params]).await, 43);
}

#[tokio::test]
async fn cascade_policies() {
    let cascading = "
resources: { gpt-4: { cascade: true, limits: { rpm: { capacity: 5 } } } }
entities: { carol: { resources: { _default_: { cascade: false } } } }";
    let turned = "
resources: { gpt-4: { cascade: false, limits: { rpm: { capacity: 5 } } } }
entities: { carol: { resources: { gpt-4: { cascade: true } } } }";
    check(
        &[(cascading, &[Cascade]), (turned, &[Cascade, Params])],
        190,
    )
    .await;
}

#[tokio::test]
async fn soft_limits() {
    let soft = "
system: { limits: { rpm: { capacity: 100, soft: true } } }
resources: { gpt-4: { limits: { rpm: { capacity: 50, soft: true } } } }";
    let hard = "
system: { limits: { rpm: { capacity: 100 } } }
resources: { gpt-4: { limits: { rpm: { capacity: 50 } } } }";
    check(&[(soft, &[Soft]), (hard, &[Soft])], 134).await;
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
    check(&[(EVERYTHING, &all)], 161).await;
}

#[tokio::test]
async fn everything_replaced() {
    let case = Case::new(EVERYTHING, LIMITED).await;
    let all = [Access, Cascade, Soft, Params];
    tried(exhaust(&case, &all).await, 161);
}

#[tokio::test]
async fn everything_given_up() {
    let case = Case::new(EVERYTHING, "").await;
    let all = [Access, Cascade, Soft, Params];
    tried(exhaust(&case, &all).await, 148);
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
    tried(exhaust(&case, &all).await, 203);
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
    tried(exhaust(&case, &kinds).await, 138);
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
        settle: Duration::ZERO,
        late: None,
    };
    tried(exhaust(&case, &[Access]).await, 36);
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
    assert!(tried >= 161, "only {tried} answers were lost");
}
