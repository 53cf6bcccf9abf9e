//! Those who race: applies, clients that write a level, and clients that create a bucket.

use super::draw::{Applying, Edit, Pair, Scenario, limited};
use super::oracle::{carried, deciding};
use super::run::{TABLE, manifest, read};
use aws_sdk_dynamodb::Client;
use std::collections::BTreeSet;
use std::time::Duration;
use zae_limits::clock::Clock;
use zae_limits::fanout::{Fanouts, Outcome, Settings};
use zae_limits::model::{Level, LevelConfig, NamespaceId, Owed};
use zae_limits::plan::{PlanOptions, Policy, fanouts_of};
use zae_limits::reconcile::{self, ApplyOptions};
use zae_limits::report::{ApplyReport, Status};
use zae_limits::store::{Author, LevelOutcome, LevelWrite, Store, StoreError};

/// How an apply ended.
#[derive(Debug)]
pub enum Ended {
    Reported(Box<ApplyReport>),
    /// A guard refused its plan.
    Refused,
    /// Another owner came between its plan and its first write.
    Conflict,
    /// It gave up before it wrote any config.
    Failed,
    Died,
}

impl Ended {
    /// Whether whoever applied is content: exit code 0.
    pub fn is_success(&self) -> bool {
        matches!(self, Ended::Reported(report) if report.status != Status::Partial)
    }
}

/// What a client did.
#[derive(Debug)]
pub enum Did {
    /// It wrote a level; whether it turned the switch.
    Wrote {
        level: Level,
        config: LevelConfig,
        flipped: bool,
    },
    /// It created a bucket; whether from config that had moved by then.
    Created(Pair, bool),
    Nothing,
}

pub async fn apply(store: &Store, clock: &Clock, scenario: &Scenario, index: usize) -> Ended {
    let applying = &scenario.applies[index];
    apply_as(store, clock, &scenario.ns, applying, false, scenario.settle).await
}

pub async fn apply_as(
    store: &Store,
    clock: &Clock,
    ns: &NamespaceId,
    applying: &Applying,
    adopt: bool,
    settle: Duration,
) -> Ended {
    let planning = PlanOptions {
        full: applying.full,
        ..PlanOptions::default()
    };
    let manifest = manifest(&applying.levels);
    let planned = reconcile::prepare(store, &manifest, Some(ns.clone()), planning).await;
    let policy = Policy {
        adopt,
        max_delete: Some(usize::MAX),
        ..Policy::strict(applying.owner.clone().expect("whoever applies"))
    };
    let plan = match planned {
        Ok(plan) => plan,
        Err(error) => return failed(&error),
    };
    let Ok(guarded) = plan.guard(&policy) else {
        return Ended::Refused;
    };
    let options = ApplyOptions {
        full: applying.full,
        fanout: Settings {
            settle,
            ..Settings::default()
        },
        ..ApplyOptions::default()
    };
    match reconcile::apply(store, clock, &guarded, &options, &()).await {
        Ok(report) => Ended::Reported(Box::new(report)),
        Err(error) => failed(&error),
    }
}

fn failed(error: &StoreError) -> Ended {
    match error {
        StoreError::OwnerChanged { .. } => Ended::Conflict,
        StoreError::ConditionFailed { .. } => Ended::Failed,
        _ => panic!("no race explains {error:?}"),
    }
}

/// A client's write of a level that is there, and the fan-outs that it owes.
pub async fn write_level(
    store: &Store,
    clock: &Clock,
    scenario: &Scenario,
    level: Level,
    edit: Edit,
) -> Did {
    let ns = &scenario.ns;
    // A write that landed beside another's is written again; what it changed stays owed.
    let mut owed = BTreeSet::new();
    for _ in 0..3 {
        let stored = store
            .levels(ns, std::iter::once(&level))
            .await
            .expect("a level");
        let Some(before) = stored.get(&level) else {
            return Did::Nothing;
        };
        let mut after = before.config.clone();
        match &edit {
            Edit::Flip(switch) => after.disabled = *switch,
            Edit::Limit(capacity) => after
                .limits
                .extend(limited(&[("cpm", *capacity, false)]).limits),
        }
        let write = LevelWrite {
            level: &level,
            before: Some(before),
            after: Some(&after),
            whatever: false,
        };
        let author = Author {
            principal: None,
            at: clock.now(),
        };
        let outcomes = store.write_levels(ns, &[write], author).await;
        owed.extend(fanouts_of(&level, Some(before), Some(&after)));
        if !matches!(outcomes[..], [LevelOutcome::Written]) {
            continue;
        }
        // Somebody may have added to it unseen: then that is there as well.
        let stored = store
            .levels(ns, std::iter::once(&level))
            .await
            .expect("a level");
        let shown = stored
            .get(&level)
            .map_or_else(|| after.clone(), |stored| stored.config.clone());
        owed.extend(fanouts_of(&level, Some(before), Some(&shown)));
        let owed: Vec<Owed> = owed
            .into_iter()
            .map(|kind| Owed {
                level: level.clone(),
                kind,
            })
            .collect();
        let settings = Settings {
            settle: scenario.settle,
            ..Settings::default()
        };
        let written_at = clock.now();
        for _ in 0..20 {
            let fanouts = Fanouts::new(store, ns, clock, &settings, &());
            let outcomes = fanouts.run(&owed, written_at).await;
            if outcomes.iter().all(Outcome::has_landed) {
                return Did::Wrote {
                    level,
                    flipped: matches!(edit, Edit::Flip(_)) && shown.disabled == after.disabled,
                    config: shown,
                };
            }
        }
        panic!("a client's fan-out never lands");
    }
    Did::Nothing
}

/// A client's first acquire: reads what decides, then creates the bucket unless it is there.
pub async fn create_bucket(gated: &Client, direct: &Client, ns: &NamespaceId, pair: Pair) -> Did {
    let (entity, resource) = pair;
    let keys = deciding(ns, entity, resource);
    let decided = carried(&read(gated, &keys).await, ns, entity, resource);
    let put = gated.put_item().table_name(TABLE);
    let put = put.set_item(Some(decided.bucket(ns, entity, resource, 0)));
    let put = put.condition_expression("attribute_not_exists(PK)");
    put.send().await.expect("a bucket");
    let now = carried(&read(direct, &keys).await, ns, entity, resource);
    Did::Created(pair, now != decided)
}
