//! Config that moves under a fan-out: three rounds, then the fan-out stays owed, says so, and is
//! free for whoever comes next.

mod cases;

use crate::bucket_items::{fan_out, level};
use crate::stage::{Stage, assert_same, comparable};
use crate::transport::{Layer, Request, over};
use crate::world::{Dump, Item, World, manifest};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use cases::{Case, levels_that_move, writes_that_are_overtaken};
use serde_json::Value;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use zae_limits::fanout::{Ended, Outcome, Progress};
use zae_limits::model::{Level, ManifestOwner, Owed};
use zae_limits::plan::{PlanOptions, Policy};
use zae_limits::reconcile;
use zae_limits::report::{ApplyReport, Status};
use zae_limits::store::Embedded;
use zae_limits::table::keys;

/// Before which reads of a level somebody writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// Those of the level alone, before and after the two passes of a round.
    Alone,
    /// Those of every level that decides about some buckets: before they are written, and after.
    Deciding,
}

/// Somebody who writes a level before each of some reads of it.
#[derive(Clone)]
struct Mover {
    reads: Read,
    /// Queries of an index that pass before anything moves.
    after: usize,
    /// How often it moves before it comes to rest.
    times: usize,
    level: Level,
    /// The n-th change of the level's item, from 0: no two that follow each other are alike.
    change: fn(&mut Item, usize),
    embedded: Embedded,
    queries: Arc<AtomicUsize>,
    moved: Arc<AtomicUsize>,
}

impl fmt::Debug for Mover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} moves", self.level)
    }
}

impl Mover {
    /// Whether it moves before this request.
    fn comes_before(&self, request: &Request) -> bool {
        if request.body.get("IndexName").is_some() {
            self.queries.fetch_add(1, Ordering::SeqCst);
        }
        if request.operation != "BatchGetItem" || self.queries.load(Ordering::SeqCst) < self.after {
            return false;
        }
        let tables = request.body["RequestItems"].as_object();
        let keys = tables
            .into_iter()
            .flat_map(|tables| tables.values())
            .flat_map(|table| table["Keys"].as_array().into_iter().flatten());
        let keys: Vec<&Value> = keys.collect();
        let reads = match keys.len() {
            1 => Read::Alone,
            _ => Read::Deciding,
        };
        let world = World::before_first_use(self.embedded.client());
        let own = keys::config(&world.ns, &self.level);
        let is_own = |key: &&Value| key["PK"]["S"] == own.pk && key["SK"]["S"] == own.sk;
        reads == self.reads && keys.iter().any(is_own)
    }

    async fn turn(&self, nth: usize) {
        let world = World::before_first_use(self.embedded.client());
        let mut item = config(&world, &self.level).await;
        (self.change)(&mut item, nth);
        world.put(item).await;
    }
}

impl Layer for Mover {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        if !self.comes_before(&Request::read(&request)) {
            return next.call(request);
        }
        let nth = self.moved.fetch_add(1, Ordering::SeqCst);
        let (this, next) = (self.clone(), next.clone());
        HttpConnectorFuture::new(async move {
            if nth < this.times {
                this.turn(nth).await;
            }
            next.call(request).await
        })
    }
}

/// The item of a level.
async fn config(world: &World, level: &Level) -> Item {
    let key = keys::config(&world.ns, level);
    let mut dump = world.dump().await;
    dump.remove(&(key.pk, key.sk)).expect("the level is stored")
}

/// How the fan-outs ended.
#[derive(Default)]
struct Ends(Mutex<Vec<bool>>);

impl Progress for Ends {
    fn ended(&self, outcome: &Outcome) {
        let mut ends = self.0.lock().expect("nobody panicked");
        ends.push(matches!(outcome.ended, Ended::Moving));
    }
}

/// What an apply left while a level moved.
struct Disturbed {
    world: World,
    report: ApplyReport,
    /// Whether each fan-out ended because something kept moving.
    moving: Vec<bool>,
    moved: usize,
    queries: usize,
}

impl Case {
    fn owed(&self) -> Owed {
        let (kind, target) = self.level;
        Owed {
            level: level(kind, target),
            kind: self.kind,
        }
    }

    fn what(&self) -> String {
        format!(
            "{}, {} moves",
            self.owed(),
            level(self.moves.0, self.moves.1)
        )
    }

    async fn stage(&self) -> Stage {
        Stage::after(self.before).await
    }

    /// Applies while the level moves so many times.
    async fn disturbed(&self, stage: &Stage, times: usize) -> Disturbed {
        let embedded = stage.set().await;
        let world = World::before_first_use(embedded.client());
        let plan = world.plan(&manifest(self.after)).await;
        assert_eq!(plan.owed.iter().collect::<Vec<_>>(), [&self.owed()]);
        let guarded = plan.guard(&Policy::strict(ManifestOwner::Cli));
        let guarded = guarded.expect("no guard");
        let mover = Mover {
            reads: self.reads,
            after: self.after_queries,
            times,
            level: level(self.moves.0, self.moves.1),
            change: self.change,
            embedded: embedded.clone(),
            queries: Arc::default(),
            moved: Arc::default(),
        };
        let client = Embedded::client_over(over(embedded.http_client(), mover.clone()));
        let disturbed = World::before_first_use(client);
        let mut options = World::options();
        options.fanout.settle = self.settle;
        let ends = Ends::default();
        let (store, clock) = (&disturbed.store, &disturbed.clock);
        let report = reconcile::apply(store, clock, &guarded, &options, &ends).await;
        Disturbed {
            world,
            report: report.expect("an apply"),
            moving: ends.0.into_inner().expect("nobody panicked"),
            moved: mover.moved.load(Ordering::SeqCst),
            queries: mover.queries.load(Ordering::SeqCst),
        }
    }

    /// Applies while the level moves for as long as anybody looks: it must be given up and stay owed.
    async fn given_up(&self, stage: &Stage) -> Disturbed {
        let what = self.what();
        let disturbed = self.disturbed(stage, usize::MAX).await;
        let Disturbed { world, report, .. } = &disturbed;
        assert_eq!(disturbed.moving, [true], "{what}: {report:#?}");
        let reached = (disturbed.moved, disturbed.queries);
        assert_eq!(reached, self.gives_up, "{what}");

        let ran = &report.fanouts[0];
        let ended = (ran.ended.as_str(), ran.landed, ran.failed);
        assert_eq!(ended, ("the level kept changing", false, 0), "{what}");
        assert_eq!((report.status, report.pending), (Status::Partial, 1));
        let line = format!(
            "{}: the level kept changing; it stays pending, the next run retries it",
            self.owed()
        );
        assert_eq!(report.errors, [line], "{what}");

        let pending = world.store.pending(&world.ns).await.expect("pending");
        let owed: Vec<_> = pending.iter().map(|left| left.owed.clone()).collect();
        assert_eq!(owed, [self.owed()], "{what}");
        world.clock.advance(1);
        let is_free = pending[0].is_claimable(world.clock.now());
        assert!(is_free, "{what}: its lease has ended: {pending:#?}");
        disturbed
    }

    /// What the buckets are where the level was as it is now when its fan-out ran undisturbed.
    async fn buckets_at_rest(&self, stage: &Stage, disturbed: &Disturbed) -> Dump {
        let world = World::before_first_use(stage.set().await.client());
        let target = manifest(self.after);
        let report = world.apply_once(&target, PlanOptions::default());
        assert_eq!(report.await.errors, Vec::<String>::new());
        let moved = level(self.moves.0, self.moves.1);
        world.put(config(&disturbed.world, &moved).await).await;
        let owed = self.owed();
        let outcome = fan_out(&world, owed.level, owed.kind).await;
        assert!(outcome.has_landed(), "{outcome:?}");
        buckets(&world).await
    }
}

async fn buckets(world: &World) -> Dump {
    let (mut dump, _) = comparable(world.dump().await);
    dump.retain(|(_, sk), _| sk == "#STATE");
    dump
}

fn all_cases() -> impl Iterator<Item = Case> {
    levels_that_move()
        .into_iter()
        .chain(writes_that_are_overtaken())
}

#[tokio::test]
async fn what_keeps_moving_stays_owed_and_a_later_apply_finishes_it() {
    for case in all_cases() {
        let what = case.what();
        let stage = case.stage().await;
        let undisturbed = World::before_first_use(stage.set().await.client());
        let target = manifest(case.after);
        let report = undisturbed.apply_once(&target, PlanOptions::default());
        assert_eq!(report.await.errors, Vec::<String>::new());
        let (expected, _) = comparable(undisturbed.dump().await);

        let left = case.given_up(&stage).await;
        let world = &left.world;
        let report = world.apply_once(&target, PlanOptions::default()).await;
        assert_eq!(report.errors, Vec::<String>::new(), "{what}");
        assert_eq!((report.resumed, report.pending), (1, 0), "{what}");
        // How often the level was written, and by whom, is another matter.
        let (stored, _) = comparable(world.dump().await);
        let (stored, expected) = ((stored, [].into()), (expected, [].into()));
        assert_same(&stored, &expected, &what);
        let plan = world.plan(&target).await;
        assert!(plan.is_empty(), "{what}: {plan:#?}");
    }
}

#[tokio::test]
async fn what_keeps_moving_is_finished_by_a_resume_from_what_the_table_holds() {
    for case in all_cases() {
        let what = case.what();
        let stage = case.stage().await;
        let left = case.given_up(&stage).await;
        let expected = case.buckets_at_rest(&stage, &left).await;
        let world = &left.world;
        let options = World::options();
        let report = reconcile::resume(&world.store, &world.clock, &world.ns, &options, &());
        let report = report.await.expect("a resume");
        assert!(report.is_complete(), "{what}: {report:#?}");
        assert_eq!(report.resumed, 1, "{what}");
        let left = world.store.pending(&world.ns).await.expect("pending");
        assert_eq!(left, [], "{what}");
        let (stored, expected) = ((buckets(world).await, [].into()), (expected, [].into()));
        assert_same(&stored, &expected, &what);
    }
}

#[tokio::test]
async fn a_level_that_comes_to_rest_by_the_third_round_is_fanned_out() {
    for case in levels_that_move() {
        let what = case.what();
        let stage = case.stage().await;
        // Under the first round, under the first two; and one move between two reads.
        for (times, queries) in [(2, 4), (4, 6), (1, 2), (3, 4)] {
            let what = format!("{what} {times} times");
            let done = case.disturbed(&stage, times).await;
            assert_eq!(
                (done.moving.as_slice(), done.queries),
                (&[false][..], queries),
                "{what}"
            );
            assert_eq!(done.report.status, Status::Applied, "{what}");
            let expected = case.buckets_at_rest(&stage, &done).await;
            let (stored, expected) = (
                (buckets(&done.world).await, [].into()),
                (expected, [].into()),
            );
            assert_same(&stored, &expected, &what);
        }
    }
}

#[tokio::test]
async fn a_bucket_whose_config_comes_to_rest_by_the_third_look_is_written_and_done() {
    for case in writes_that_are_overtaken() {
        let stage = case.stage().await;
        for times in 1..=3 {
            let what = format!("{} {times} times", case.what());
            let done = case.disturbed(&stage, times).await;
            assert_eq!(done.moving, [false], "{what}");
            assert_eq!(done.report.status, Status::Applied, "{what}");
            let expected = case.buckets_at_rest(&stage, &done).await;
            let (stored, expected) = (
                (buckets(&done.world).await, [].into()),
                (expected, [].into()),
            );
            assert_same(&stored, &expected, &what);
        }
    }
}
