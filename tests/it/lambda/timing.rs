//! Deadlines, panics, tables that throttle or fail, and two deliveries at once.

use super::rig::{Rig, STACK, well_formed};
use crate::transport::{Counted, Fault, Landing, Latency, Throttle, over};
use crate::world::{NOW, World, s};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use serde_json::{Value, json};
use std::time::Duration;
use zae_limits::clock::Clock;
use zae_limits::lambda::{Invocation, Tables};
use zae_limits::model::EpochMs;
use zae_limits::store::Embedded;

fn disable(extra: Value) -> Value {
    let mut properties = json!({
        "Namespace": "tenant-alpha",
        "Resources": {"gpt-4": {"Disabled": "true"}},
    });
    for (key, value) in extra.as_object().into_iter().flatten() {
        properties[key] = value.clone();
    }
    properties
}

/// A rig whose clock runs, over a table that is reached through `layers`, with some buckets in it.
async fn running(layers: impl FnOnce(SharedHttpClient) -> SharedHttpClient, buckets: u32) -> Rig {
    let embedded = Embedded::memory().expect("an embedded database");
    let mut world = World::over(embedded.client()).await;
    for index in 0..buckets {
        world
            .bucket(&format!("user-{index}"), "gpt-4", 0, &[])
            .await;
    }
    let plain = world.client.clone();
    world.client = Embedded::client_over(layers(embedded.http_client()));
    world.clock = Clock::system();
    let mut options = Rig::options();
    options.fanout.concurrency = 1;
    let mut rig = Rig::with_options(world, options).await;
    // The test looks at the table past the layers.
    rig.world.client = plain;
    rig
}

async fn within(rig: &Rig, event: &Value, ms: u64) -> Value {
    let invocation = Invocation {
        request_id: "i".to_owned(),
        deadline: Some(EpochMs(rig.world.clock.now().0 + ms)),
    };
    rig.function
        .handle(event.clone(), invocation)
        .await
        .expect("answered");
    let puts = rig.sink.take();
    assert_eq!(puts.len(), 1, "{puts:#?}");
    rig.assert_nothing_leaked();
    well_formed(event, &puts[0])
}

#[tokio::test]
async fn a_deadline_in_the_middle_of_a_fan_out_is_answered_and_the_next_delivery_goes_on() {
    let latency = Latency(Duration::from_millis(30));
    let rig = running(|inner| over(inner, latency), 2000).await;
    let event = rig.event("Create", disable(json!({})));
    let began = tokio::time::Instant::now();
    let body = within(&rig, &event, 4000).await;
    assert!(
        began.elapsed() < Duration::from_millis(4000),
        "answered in time"
    );
    assert_eq!(body["Status"], "FAILED", "{body}");
    let reason = body["Reason"].as_str().expect("a reason");
    assert!(
        reason.contains("1 fan-out still owed") && reason.contains("time ran out"),
        "{reason}"
    );
    assert_eq!(rig.levels().await, ["tenant-alpha RESOURCE#gpt-4 true"]);
    let stamped = disabled(&rig).await;
    assert!(0 < stamped && stamped < 2000, "{stamped} are stamped");
    assert_eq!(body["Data"]["Stamped"], stamped.to_string());
    let body = within(&rig, &event, 60_000).await;
    assert_eq!(body["Status"], "SUCCESS", "{body}");
    assert_eq!(body["Data"]["Pending"], "0");
    assert_eq!(disabled(&rig).await, 2000);
}

/// How many buckets are stamped as disabled.
async fn disabled(rig: &Rig) -> usize {
    let dump = rig.world.dump().await;
    let buckets = dump.iter().filter(|((_, sk), _)| sk == "#STATE");
    buckets
        .filter(|(_, item)| item.contains_key("disabled"))
        .count()
}

#[tokio::test]
async fn an_unfinished_fan_out_is_a_failure_unless_it_is_only_to_be_reported() {
    for (mode, status) in [("fail", "FAILED"), ("report", "SUCCESS")] {
        let rig = Rig::new().await;
        rig.world.bucket("user-1", "gpt-4", 0, &[]).await;
        // A bucket that the fan-out cannot take for one: its stamp fails, and it stays pending.
        let mut broken = rig.world.item("BUCKET#user-1#gpt-4#0", "#STATE").await;
        broken.insert(
            "PK".to_owned(),
            s(&format!("{}/BUCKET#not one#gpt-4#0", rig.world.ns)),
        );
        rig.world.put(broken).await;
        let body = rig
            .answered(rig.event("Create", disable(json!({"OnFanoutError": mode}))))
            .await;
        assert_eq!(body["Status"], status, "{body}");
        assert_eq!(body["Data"]["Pending"], "1", "{body}");
        assert_eq!(body["Data"]["Status"], "partial", "{body}");
        assert_eq!(rig.world.stamp("user-1", "gpt-4").await, "disabled");
        // A Delete goes through all the same, and leaves no record in the next one's way.
        let mut delete = rig.event("Delete", json!({}));
        delete["PhysicalResourceId"] = body["PhysicalResourceId"].clone();
        let body = rig.answered(delete).await;
        assert_eq!(body["Status"], "SUCCESS", "{body}");
        assert_eq!(rig.levels().await, Vec::<String>::new());
        let record = rig.world.store.record(&rig.world.ns).await.expect("a read");
        assert_eq!(record, None);
    }
}

#[tokio::test]
async fn work_that_does_not_stop_is_given_up_and_its_id_names_what_it_wrote() {
    let latency = Latency(Duration::from_secs(3600));
    let slow = running(|inner| over(inner, latency), 0).await;
    let event = slow.event("Create", disable(json!({})));
    let body = within(&slow, &event, 1000).await;
    assert_eq!(body["Status"], "FAILED");
    assert!(
        body["Reason"]
            .as_str()
            .expect("a reason")
            .contains("the time ran out"),
        "{body}"
    );
}

#[tokio::test]
async fn a_deadline_in_1970_or_none_is_an_emulators_and_means_the_configured_budget() {
    for deadline in [
        None,
        Some(0),
        Some(600_000),
        Some(NOW.0 - 1),
        Some(u64::MAX),
    ] {
        let rig = Rig::new().await;
        let event = rig.event("Create", disable(json!({})));
        let invocation = Invocation {
            request_id: String::new(),
            deadline: deadline.map(EpochMs),
        };
        rig.function
            .handle(event.clone(), invocation)
            .await
            .expect("answered");
        let puts = rig.sink.take();
        assert_eq!(
            well_formed(&event, &puts[0])["Status"],
            "SUCCESS",
            "{deadline:?}"
        );
    }
}

#[tokio::test]
async fn a_panic_is_answered_and_so_is_the_next_request() {
    let world = World::new().await;
    let tables = Tables::given(|table| panic!("no such thing as {table}"));
    let rig = Rig::with(world, tables, Rig::options()).await;
    for _ in 0..2 {
        let body = rig.answered(rig.event("Create", disable(json!({})))).await;
        assert_eq!(body["Status"], "FAILED");
        let reason = body["Reason"].as_str().expect("a reason");
        assert!(reason.contains("no such thing as rate-limits"), "{reason}");
    }
}

#[tokio::test]
async fn a_throttled_table_delays_and_a_broken_one_fails_before_anything_is_claimed() {
    let throttle = Throttle::first(5, Counted::Requests);
    let rig = running(|inner| over(inner, throttle), 3).await;
    let body = within(&rig, &rig.event("Create", disable(json!({}))), 60_000).await;
    assert_eq!(body["Status"], "SUCCESS", "{body}");
    assert_eq!(rig.world.stamp("user-2", "gpt-4").await, "disabled");

    let crash = Fault::crash(1, Counted::Writes, Landing::Before);
    let rig = running(|inner| over(inner, crash), 3).await;
    let body = within(&rig, &rig.event("Create", disable(json!({}))), 20_000).await;
    assert_eq!(body["Status"], "FAILED", "{body}");
    assert_eq!(rig.levels().await, Vec::<String>::new());
    assert_eq!(rig.world.stamp("user-2", "gpt-4").await, "enforce");
}

#[tokio::test]
async fn a_create_that_dies_at_any_write_fails_with_an_id_whose_delete_leaves_nothing() {
    for at in 1.. {
        let crash = Fault::crash(at, Counted::Writes, Landing::After);
        let seen = crash.clone();
        let mut rig = running(|inner| over(inner, crash), 2).await;
        let body = within(&rig, &rig.event("Create", disable(json!({}))), 20_000).await;
        if !seen.struck() {
            assert_eq!(body["Status"], "SUCCESS", "{body}");
            assert!(at > 3, "the writes were counted");
            return;
        }
        let healthy = Tables::given({
            let store = rig.world.store.clone();
            move |_| store.clone()
        });
        rig = Rig::with(rig.world, healthy, Rig::options()).await;
        let mut delete = rig.event("Delete", json!({}));
        delete["PhysicalResourceId"] = body["PhysicalResourceId"].clone();
        // The dead one's lease may still run: the Delete does not wait for it, and does not fail.
        let answer = rig.answered(delete).await;
        assert_eq!(answer["Status"], "SUCCESS", "write {at}: {answer}");
        assert_eq!(rig.levels().await, Vec::<String>::new(), "write {at}");
        for user in ["user-0", "user-1"] {
            assert_eq!(
                rig.world.stamp(user, "gpt-4").await,
                "enforce",
                "write {at}"
            );
        }
    }
}

#[tokio::test]
async fn an_event_delivered_twice_at_once_is_answered_twice_with_success() {
    let latency = Latency(Duration::from_millis(5));
    let rig = running(|inner| over(inner, latency), 120).await;
    let event = rig.event("Create", disable(json!({})));
    let (one, two) = tokio::join!(rig.send(event.clone()), rig.send(event.clone()));
    let puts = rig.sink.take();
    assert_eq!(puts.len(), 2);
    let ids: Vec<Value> = puts
        .iter()
        .map(|put| well_formed(&event, put))
        .inspect(|body| assert_eq!(body["Status"], "SUCCESS", "{body}"))
        .map(|body| body["PhysicalResourceId"].clone())
        .collect();
    assert_eq!(ids[0], ids[1]);
    assert!(one.is_ok() && two.is_ok());
    assert_eq!(rig.levels().await, ["tenant-alpha RESOURCE#gpt-4 true"]);
    assert_eq!(
        rig.world
            .store
            .pending(&rig.world.ns)
            .await
            .expect("a read"),
        []
    );
}

#[tokio::test]
async fn an_apply_by_the_command_line_is_anothers() {
    let rig = Rig::new().await;
    rig.world
        .apply("resources: {gpt-4: {disabled: true}}")
        .await;
    let body = rig.answered(rig.event("Create", disable(json!({})))).await;
    assert_eq!(body["Status"], "FAILED");
    let reason = body["Reason"].as_str().expect("a reason");
    assert!(
        reason.contains("the command line") && reason.contains("Adopt: true"),
        "{reason}"
    );
    let adopting = rig.event("Create", disable(json!({"Adopt": "true"})));
    assert_eq!(rig.answered(adopting).await["Status"], "SUCCESS");
    let record = rig.world.store.record(&rig.world.ns).await.expect("a read");
    let owner = record.and_then(|record| record.owner).expect("an owner");
    assert!(owner.to_string().contains(STACK), "{owner}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_does_not_lead_a_bundled_manifest_out_of_the_root() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root");
    std::fs::create_dir(&root).expect("a folder");
    let text = "namespace: tenant-alpha\nresources: {gpt-4: {disabled: true}}\n";
    std::fs::write(folder.path().join("outside.yaml"), text).expect("a file");
    std::fs::write(root.join("inside.yaml"), text).expect("a file");
    for (link, to) in [("in.yaml", "inside.yaml"), ("out.yaml", "../outside.yaml")] {
        std::os::unix::fs::symlink(to, root.join(link)).expect("a link");
    }
    let mut options = Rig::options();
    options.root = Some(root);
    let rig = Rig::with_options(World::new().await, options).await;
    let from = |path: &str| rig.event("Create", json!({"ManifestPath": path}));
    let body = rig.answered(from("out.yaml")).await;
    let reason = body["Reason"].as_str().expect("a reason");
    assert!(reason.contains("out of the function's root"), "{reason}");
    assert_eq!(rig.levels().await, Vec::<String>::new());
    assert_eq!(rig.answered(from("in.yaml")).await["Status"], "SUCCESS");
}
