//! The Python provisioner and ours taking turns on one namespace, and finishing what the other could not.

use super::{Peer, Served};
use crate::python::PEER;
use crate::transport::{Layer, ReadOnly, Request, over};
use crate::world::{World, manifest};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use serde_json::{Value, json};
use zae_limits::clock::Clock;
use zae_limits::plan::PlanOptions;
use zae_limits::store::Embedded;

/// One manifest for both: ours as text, theirs as JSON.
fn yaml(levels: &Value) -> String {
    let levels = levels.as_object().expect("a mapping").iter();
    levels
        .map(|(name, value)| format!("{name}: {value}\n"))
        .collect()
}

fn event(served: &Served, action: &str, levels: &Value) -> Value {
    let mut manifest = levels.clone();
    manifest["namespace"] = json!("tenant-alpha");
    json!({
        "action": action, "table_name": served.world.store.table(), "namespace_id": served.world.ns.as_str(),
        "manifest": manifest,
    })
}

/// Runs the Python provisioner, which must report no error.
fn theirs(peer: &Peer, served: &Served, action: &str, levels: &Value) -> Value {
    let event = event(served, action, levels);
    let report = peer.ask(&json!({"do": "provision", "event": event, "dies": false}));
    let report = report.unwrap_or_else(|raised| panic!("{raised:?}"));
    if action == "apply" {
        assert_eq!(
            (&report["errors"], &report["pending"]),
            (&json!([]), &json!(0)),
            "{report}"
        );
    }
    report
}

/// What the Python provisioner would change.
fn targets(plan: &Value) -> Vec<String> {
    let changes = plan["changes"].as_array().expect("a list").iter();
    let said = |change: &Value, name: &str| change[name].as_str().expect("a text").to_owned();
    let target = |change: &Value| format!("{} {}", said(change, "action"), said(change, "target"));
    changes.map(target).collect()
}

/// Runs the Python provisioner, and ends it before its fan-outs.
fn theirs_dies(peer: &Peer, served: &Served, levels: &Value) {
    let event = event(served, "apply", levels);
    let died = peer.ask(&json!({"do": "provision", "event": event, "dies": true}));
    assert_eq!(died, Ok(Value::Null));
}

fn limits(capacity: u64) -> Value {
    json!({"rpm": {"capacity": capacity, "refill_amount": 1, "refill_period": 100_000_000}})
}

fn assert_became(peer: &Peer, expected: &[(&str, &str)]) {
    let cold = peer.connect();
    for (entity, word) in expected {
        let became = cold.acquire(entity, "gpt-4", 1);
        assert_eq!(became.word(), *word, "{entity}: {became:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_goes_on_from_where_the_other_stopped() {
    let served = Served::start().await;
    let Some(peer) = served.peer(&PEER) else {
        return;
    };
    let base = json!({"system": {"limits": limits(1000)}, "resources": {"gpt-4": {"limits": limits(500)}}});
    served.world.apply(&yaml(&base)).await;
    assert_became(
        &peer,
        &[
            ("alice", "admitted"),
            ("bob", "admitted"),
            ("carol", "admitted"),
        ],
    );
    let level = |says: Value| json!({"resources": {"gpt-4": says}});
    let stopped = json!({
        "system": {"limits": limits(1000)},
        "resources": {"gpt-4": {"disabled": true, "limits": limits(500)}},
        "entities": {"alice": level(json!({"disabled": false, "limits": limits(50)})), "bob": level(json!({"disabled": "bypass"}))},
    });
    let stops_bob = json!({
        "system": {"limits": limits(1000)},
        "resources": {"gpt-4": {"limits": limits(400)}, "claude-3": {"limits": limits(9)}},
        "entities": {"bob": level(json!({"disabled": true})), "carol": level(json!({"limits": limits(7)}))},
    });
    let when_stopped = [
        ("alice", "admitted"),
        ("bob", "bypassed"),
        ("carol", "disabled"),
        ("dave", "disabled"),
    ];
    let when_bob_is = [
        ("alice", "admitted"),
        ("bob", "disabled"),
        ("carol", "admitted"),
        ("dave", "admitted"),
    ];
    for round in 0..2 {
        // Ours: whatever theirs left is brought to this. Theirs would take the index keys off the entity levels, as
        // it would off those that its own client writes, and sees nothing else to do.
        served.world.apply(&yaml(&stopped)).await;
        assert_became(&peer, &when_stopped);
        let plan = theirs(&peer, &served, "plan", &stopped);
        assert_eq!(
            targets(&plan),
            ["update alice/gpt-4", "update bob/gpt-4"],
            "round {round}"
        );
        // Theirs: levels that only ours managed go. Ours then restores the keys and counts by which clients list
        // entity levels, which theirs writes without, and finds no difference else.
        let report = theirs(&peer, &served, "apply", &stops_bob);
        assert_eq!(report["deleted"], 1, "{report}");
        assert_became(&peer, &when_bob_is);
        let plan = served.world.plan(&manifest(&yaml(&stops_bob))).await;
        let changed: Vec<_> = plan
            .changes
            .iter()
            .map(|change| change.level.to_string())
            .collect();
        assert_eq!(
            changed,
            ["entity bob/gpt-4", "entity carol/gpt-4"],
            "round {round}: {plan:#?}"
        );
        assert!(plan.owed.is_empty(), "round {round}: {:?}", plan.owed);
        let report = served.world.apply(&yaml(&stops_bob)).await;
        assert_eq!((report.updated, report.stamped), (2, 0), "round {round}");
        let listed = peer.connect().call(
            "list_entities_with_custom_limits",
            &json!({"resource": "gpt-4"}),
        );
        assert_eq!(listed[0], json!(["bob", "carol"]));
        assert_became(&peer, &when_bob_is);
    }
}

/// Denies what reaches buckets.
#[derive(Debug)]
struct BucketsAreReadOnly;

impl Layer for BucketsAreReadOnly {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        let read = Request::read(&request);
        if read.body.to_string().contains("/BUCKET#") {
            return ReadOnly.pass(request, next);
        }
        next.call(request)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_finishes_the_fan_outs_that_the_other_left() {
    let served = Served::start().await;
    let Some(peer) = served.peer(&PEER) else {
        return;
    };
    let manifest_of = |disabled: Value, capacity: u64| {
        json!({
            "resources": {"gpt-4": {"disabled": disabled, "limits": limits(500)}},
            "entities": {"alice": {"resources": {"gpt-4": {"disabled": false, "limits": limits(capacity)}}}},
        })
    };
    let (open, shut) = (manifest_of(json!(false), 50), manifest_of(json!(true), 60));
    let warm = peer.connect();
    let capacity =
        async || super::served::number(&served.shards("alice", "gpt-4").await[0], "b_rpm_cp");
    for round in ["first", "second"] {
        served.world.apply(&yaml(&open)).await;
        for entity in ["alice", "bob"] {
            assert_eq!(
                warm.acquire(entity, "gpt-4", 1).word(),
                "admitted",
                "{round}"
            );
        }
        // Ours writes config and cannot reach a bucket: bob is still let in. Theirs finishes.
        let transport = over(served.embedded.http_client(), BucketsAreReadOnly);
        let mut cut_off = World::before_first_use(Embedded::client_over(transport));
        cut_off.clock = Clock::system();
        let report = cut_off
            .apply_once(&manifest(&yaml(&shut)), PlanOptions::default())
            .await;
        assert_eq!((report.pending, report.stamped), (2, 0), "{report:#?}");
        assert_eq!(warm.acquire("bob", "gpt-4", 1).word(), "admitted");
        let plan = theirs(&peer, &served, "plan", &shut);
        assert_eq!(targets(&plan), ["update alice/gpt-4"], "{plan}");
        assert_eq!(plan["pending"], 2, "{plan}");
        theirs(&peer, &served, "apply", &shut);
        assert_eq!(warm.acquire("bob", "gpt-4", 1).word(), "disabled");
        assert_eq!(warm.acquire("alice", "gpt-4", 1).word(), "admitted");
        assert_eq!(capacity().await, 60_000);
        // Theirs dies before its fan-outs: bob is still kept out. Ours finishes.
        theirs_dies(&peer, &served, &open);
        assert_eq!(warm.acquire("bob", "gpt-4", 1).word(), "disabled");
        let report = served.world.apply(&yaml(&open)).await;
        assert_eq!(report.resumed, 2, "{report:#?}");
        assert_eq!(warm.acquire("bob", "gpt-4", 1).word(), "admitted");
        assert_eq!(capacity().await, 50_000);
        let dump = served.world.dump().await;
        assert!(!dump.keys().any(|(_, sk)| sk.contains("PENDING")));
    }
}
