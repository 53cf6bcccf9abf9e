//! Someone comes between two requests of an apply: what races found, each as one short story.

use crate::transport::{Layer, Request, over};
use crate::world::{Item, World, manifest};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use futures::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use zae_limits::model::{Level, ManifestOwner, Switch};
use zae_limits::plan::{GuardedPlan, PlanOptions, Policy};
use zae_limits::reconcile;
use zae_limits::report::ApplyReport;
use zae_limits::store::Embedded;

type Act = Arc<dyn Fn(World) -> BoxFuture<'static, ()> + Send + Sync>;

/// Something that happens right before the first request that matches: how many before it do not
/// count, what must be in its body, and what happens.
#[derive(Clone)]
struct Before {
    skip: usize,
    operation: &'static str,
    within: &'static str,
    seen: Arc<AtomicUsize>,
    embedded: Embedded,
    act: Act,
}

impl fmt::Debug for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "before {}", self.operation)
    }
}

impl Layer for Before {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        let read = Request::read(&request);
        let matches =
            read.operation == self.operation && read.body.to_string().contains(self.within);
        if !matches || self.seen.fetch_add(1, Ordering::SeqCst) != self.skip {
            return next.call(request);
        }
        let (this, next) = (self.clone(), next.clone());
        HttpConnectorFuture::new(async move {
            (this.act)(World::before_first_use(this.embedded.client())).await;
            next.call(request).await
        })
    }
}

/// A table that may be disturbed.
struct Stage {
    embedded: Embedded,
    world: World,
}

impl Stage {
    /// A bucket of alice and one of bob, under what was applied.
    async fn set(applied: &str) -> Stage {
        let embedded = Embedded::memory().expect("an embedded database");
        let world = World::over(embedded.client()).await;
        for entity in ["alice", "bob"] {
            world.bucket(entity, "gpt-4", 0, &[]).await;
        }
        world.apply(applied).await;
        Stage { embedded, world }
    }

    /// The same table, where something happens before a request.
    fn disturbed(
        &self,
        operation: &'static str,
        within: &'static str,
        skip: usize,
        act: Act,
    ) -> World {
        let layer = Before {
            skip,
            operation,
            within,
            seen: Arc::default(),
            embedded: self.embedded.clone(),
            act,
        };
        let transport = over(self.embedded.http_client(), layer);
        World::before_first_use(Embedded::client_over(transport))
    }

    /// What the record says of `gpt-4`: whether it is managed, and its declared switch.
    async fn remembered(&self) -> (bool, Option<Switch>) {
        let level = Level::from_parts("resource", "gpt-4").expect("a level");
        let record = self.world.store.record(&self.world.ns).await;
        let record = record.expect("readable").expect("a record");
        let switches = record.switches.expect("a memory");
        (
            record.managed.contains(&level),
            switches.get(&level).copied(),
        )
    }

    async fn bucket(&self, entity: &str) -> Item {
        let pk = format!("BUCKET#{entity}#gpt-4#0");
        self.world.item(&pk, "#STATE").await
    }
}

/// Somebody applies a manifest.
fn applying(yaml: &'static str) -> Act {
    Arc::new(move |world| Box::pin(async move { drop(world.apply(yaml).await) }))
}

/// Somebody applies a manifest, and another apply is in the way of its being all there is.
fn applying_beside(yaml: &'static str) -> Act {
    Arc::new(move |world| {
        Box::pin(async move {
            let report = world
                .apply_once(&manifest(yaml), PlanOptions::default())
                .await;
            assert_eq!(report.errors, Vec::<String>::new());
        })
    })
}

async fn guarded(world: &World, yaml: &str) -> GuardedPlan {
    let plan = world.plan(&manifest(yaml)).await;
    plan.guard(&Policy::strict(ManifestOwner::Cli))
        .expect("no guard refuses")
}

async fn carry_out(world: &World, guarded: &GuardedPlan) -> ApplyReport {
    let mut options = World::options();
    options.fanout.settle = Duration::from_millis(1);
    let report = reconcile::apply(&world.store, &world.clock, guarded, &options, &()).await;
    let report = report.expect("an apply");
    assert_eq!(report.errors, Vec::<String>::new());
    report
}

const RECORD: &str = "#PROVISIONER\"";
const LIMITED: &str = "resources: { gpt-4: { limits: { rpm: { capacity: 10 } } } }";
const RAISED: &str = "resources: { gpt-4: { limits: { rpm: { capacity: 20 } } } }";
const DISABLED: &str =
    "resources: { gpt-4: { disabled: true, limits: { rpm: { capacity: 10 } } } }";
const OTHER: &str = "resources: { claude-3: {} }";

#[tokio::test]
async fn a_level_that_another_apply_wrote_again_stays_in_the_record() {
    let stage =
        Stage::set("resources: { claude-3: {}, gpt-4: { limits: { rpm: { capacity: 10 } } } }")
            .await;
    // It has deleted `gpt-4`, and is about to say so in the record.
    let world = stage.disturbed("GetItem", RECORD, 1, applying_beside(RAISED));
    let report = world
        .apply_once(&manifest(OTHER), PlanOptions::default())
        .await;
    assert_eq!(report.deleted, 1);
    assert_eq!(stage.remembered().await, (true, None));
    let report = stage.world.apply(OTHER).await;
    assert_eq!(report.deleted, 1, "what the record lists is deleted");
}

#[tokio::test]
async fn a_switch_that_another_apply_set_again_stays_the_manifests() {
    let stage = Stage::set(DISABLED).await;
    let world = stage.disturbed("GetItem", RECORD, 1, applying_beside(DISABLED));
    world
        .apply_once(&manifest(LIMITED), PlanOptions::default())
        .await;
    assert_eq!(stage.remembered().await, (true, Some(Switch::Disabled)));
    let report = stage.world.apply(LIMITED).await;
    assert_eq!(report.plan.kept, [], "nobody set it by hand");
    assert_eq!(stage.world.stamp("alice", "gpt-4").await, "enforce");
}

#[tokio::test]
async fn a_switch_that_another_apply_set_again_after_config_was_read_stays_the_manifests() {
    let stage = Stage::set(DISABLED).await;
    // It has seen that the switch is gone, and is about to forget it.
    let world = stage.disturbed("PutItem", RECORD, 0, applying_beside(DISABLED));
    world
        .apply_once(&manifest(LIMITED), PlanOptions::default())
        .await;
    assert_eq!(stage.remembered().await, (true, Some(Switch::Disabled)));
}

#[tokio::test]
async fn a_switch_of_another_apply_is_not_taken_for_set_by_hand() {
    let stage = Stage::set(LIMITED).await;
    let planned = guarded(&stage.world, RAISED).await;
    stage.world.apply(DISABLED).await;
    carry_out(&stage.world, &planned).await;
    let item = stage.world.item("RESOURCE#gpt-4", "#CONFIG").await;
    assert_eq!(item.get("disabled"), None);
    assert_eq!(stage.world.stamp("alice", "gpt-4").await, "enforce");
    assert_eq!(stage.remembered().await, (true, None));
}

#[tokio::test]
async fn a_switch_that_another_apply_sets_while_a_plan_is_made_is_not_kept() {
    let stage = Stage::set(LIMITED).await;
    // The record has been read, the levels have not.
    let world = stage.disturbed("BatchGetItem", "RESOURCE#gpt-4", 0, applying(DISABLED));
    let plan = world.plan(&manifest(RAISED)).await;
    assert_eq!(plan.kept, []);
}

#[tokio::test]
async fn a_switch_turned_and_turned_back_by_hand_while_a_level_is_written_is_not_kept() {
    let stage = Stage::set(LIMITED).await;
    let turn = |disabled: Option<&'static str>| -> Act {
        Arc::new(move |world| {
            Box::pin(async move {
                let mut item = world.item("RESOURCE#gpt-4", "#CONFIG").await;
                match disabled {
                    Some(mode) => {
                        item.insert("disabled".to_owned(), AttributeValue::S(mode.to_owned()))
                    }
                    None => item.remove("disabled"),
                };
                world.put(item).await;
            })
        })
    };
    let once = Before {
        skip: 0,
        operation: "TransactWriteItems",
        within: "#CONFIG",
        seen: Arc::default(),
        embedded: stage.embedded.clone(),
        act: turn(Some("bypass")),
    };
    let back = Before {
        skip: 1,
        seen: Arc::default(),
        act: turn(None),
        ..once.clone()
    };
    let transport = over(over(stage.embedded.http_client(), once), back);
    let world = World::before_first_use(Embedded::client_over(transport));
    let planned = guarded(&world, RAISED).await;
    carry_out(&world, &planned).await;
    let item = stage.world.item("RESOURCE#gpt-4", "#CONFIG").await;
    assert_eq!(item.get("disabled"), None);
    assert_eq!(stage.world.stamp("alice", "gpt-4").await, "enforce");
}

const OWN: &str =
    "entities: { alice: { resources: { gpt-4: { limits: { rpm: { capacity: 5 } } } } } }";

#[tokio::test]
async fn a_limit_that_was_added_meanwhile_is_not_wiped_out_unseen() {
    let stage = Stage::set(OWN).await;
    let yaml = "
entities: { alice: { resources: { gpt-4: { disabled: true, limits: { rpm: { capacity: 5 } } } } } }";
    let planned = guarded(&stage.world, yaml).await;
    let more = "
entities: { alice: { resources: { gpt-4: { limits: { rpm: { capacity: 5 }, tpm: { capacity: 7 } } } } } }";
    stage.world.apply(more).await;
    assert!(stage.bucket("alice").await.contains_key("b_tpm_cp"));
    carry_out(&stage.world, &planned).await;
    let config = stage.world.item("ENTITY#alice", "#CONFIG#gpt-4").await;
    assert!(
        !config.contains_key("l_tpm_cp"),
        "it is as the later apply says"
    );
    let bucket = stage.bucket("alice").await;
    assert!(!bucket.contains_key("b_tpm_cp"), "and so is the bucket");
    assert_eq!(stage.world.stamp("alice", "gpt-4").await, "disabled");
}

#[tokio::test]
async fn limits_added_to_a_level_that_is_being_deleted_go_from_its_buckets() {
    let switched = "
system: { limits: { rpm: { capacity: 100 } } }
entities: { alice: { resources: { gpt-4: { disabled: true } } } }";
    let stage = Stage::set(switched).await;
    let planned = guarded(
        &stage.world,
        "system: { limits: { rpm: { capacity: 100 } } }",
    )
    .await;
    let limited = "
system: { limits: { rpm: { capacity: 100 } } }
entities: { alice: { resources: { gpt-4: { disabled: true, limits: { tpm: { capacity: 7 } } } } } }";
    stage.world.apply(limited).await;
    carry_out(&stage.world, &planned).await;
    let bucket = stage.bucket("alice").await;
    assert!(!bucket.contains_key("b_tpm_cp"));
    assert_eq!(stage.world.stamp("alice", "gpt-4").await, "enforce");
}

#[tokio::test]
async fn a_stamp_that_lands_late_does_not_undo_an_entitys_carve_out() {
    let stage = Stage::set(LIMITED).await;
    let carved = "
resources: { gpt-4: { disabled: true, limits: { rpm: { capacity: 10 } } } }
entities: { alice: { resources: { gpt-4: { disabled: false } } } }";
    let world = stage.disturbed("BatchExecuteStatement", "", 0, applying_beside(carved));
    let planned = guarded(&world, DISABLED).await;
    carry_out(&world, &planned).await;
    assert_eq!(stage.world.stamp("alice", "gpt-4").await, "enforce");
    assert_eq!(stage.world.stamp("bob", "gpt-4").await, "disabled");
}

#[tokio::test]
async fn a_soft_stamp_that_lands_late_does_not_soften_an_entitys_own_limit() {
    let stage = Stage::set(LIMITED).await;
    let soft = "resources: { gpt-4: { limits: { rpm: { capacity: 10, soft: true } } } }";
    let own = "
resources: { gpt-4: { limits: { rpm: { capacity: 10, soft: true } } } }
entities: { alice: { resources: { gpt-4: { limits: { rpm: { capacity: 5 } } } } } }";
    let world = stage.disturbed("UpdateItem", "BUCKET#alice", 0, applying_beside(own));
    let planned = guarded(&world, soft).await;
    carry_out(&world, &planned).await;
    let bucket = stage.bucket("alice").await;
    assert!(!bucket.contains_key("b_rpm_soft"), "{bucket:?}");
    assert!(stage.bucket("bob").await.contains_key("b_rpm_soft"));
}

#[tokio::test]
async fn limits_that_land_late_do_not_undo_a_more_specific_levels() {
    let stage = Stage::set(LIMITED).await;
    let wide = "
resources: { gpt-4: { limits: { rpm: { capacity: 10 } } } }
entities: { alice: { resources: { _default_: { limits: { tpm: { capacity: 9 } } } } } }";
    let narrow = "
resources: { gpt-4: { limits: { rpm: { capacity: 10 } } } }
entities:
  alice: { resources: { _default_: { limits: { tpm: { capacity: 9 } } }, gpt-4: { limits: { rpm: { capacity: 5 } } } } }";
    let world = stage.disturbed("UpdateItem", "BUCKET#alice", 0, applying_beside(narrow));
    let planned = guarded(&world, wide).await;
    carry_out(&world, &planned).await;
    let bucket = stage.bucket("alice").await;
    assert!(!bucket.contains_key("b_tpm_cp"), "{bucket:?}");
    assert_eq!(bucket["b_rpm_cp"], AttributeValue::N("5000".to_owned()));
}
