//! What a client lists of the levels we manage, what it reads in the audit, and what its purge leaves of them.

use super::Served;
use crate::python::PEER;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const MANIFEST: &str = "
system: { limits: { rpm: { capacity: 1000 } } }
resources:
  gpt-4: { disabled: true, limits: { rpm: { capacity: 100 } } }
  claude-3: { limits: { rpm: { capacity: 200 } } }
entities:
  alice: { resources: { gpt-4: { disabled: false, limits: { rpm: { capacity: 10 } } }, _default_: { limits: { rpm: { capacity: 5 } } } } }
  bob: { resources: { gpt-4: { disabled: bypass } } }
";

fn names(listed: &Value) -> BTreeSet<&str> {
    let names = listed.as_array().expect("a list").iter();
    names.map(|name| name.as_str().expect("a name")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_lists_what_is_managed_and_no_longer_what_was() {
    let served = Served::start().await;
    let Some(peer) = served.peer(&PEER) else {
        return;
    };
    let client = peer.connect();
    let custom = |resource: &str| {
        let listed = client.call(
            "list_entities_with_custom_limits",
            &json!({"resource": resource}),
        );
        assert_eq!(listed[1], Value::Null, "no further page");
        listed[0].clone()
    };
    let resources = || client.call("list_resources_with_defaults", &json!({}));
    let with_entities = || client.call("list_resources_with_entity_configs", &json!({}));

    // A level of the client's own is listed beside ours, before and after.
    let own = json!({
        "do": "set_limits", "client": client.name, "entity": "carol", "resource": "gpt-4", "name": "rpm", "capacity": 3,
    });
    peer.ask(&own).expect("limits");
    served.world.apply(MANIFEST).await;
    assert_eq!(names(&resources()), ["claude-3", "gpt-4"].into());
    assert_eq!(names(&custom("gpt-4")), ["alice", "bob", "carol"].into());
    assert_eq!(names(&custom("_default_")), ["alice"].into());
    assert_eq!(names(&with_entities()), ["_default_", "gpt-4"].into());

    served
        .world
        .apply("resources: { claude-3: { limits: { rpm: { capacity: 300 } } } }")
        .await;
    assert_eq!(names(&resources()), ["claude-3"].into());
    assert_eq!(names(&custom("gpt-4")), ["carol"].into());
    assert_eq!(names(&custom("_default_")), BTreeSet::new());
    assert_eq!(names(&with_entities()), ["gpt-4"].into());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_reads_the_audit_of_what_was_applied() {
    let served = Served::start().await;
    let Some(peer) = served.peer(&PEER) else {
        return;
    };
    let client = peer.connect();
    served.world.apply(MANIFEST).await;
    served
        .world
        .apply("system: { limits: { rpm: { capacity: 1000 } } }")
        .await;
    let audited = |of: &str| {
        let events = client.call("get_audit_events", &json!({"entity_id": of}));
        let events = events.as_array().expect("a list").clone();
        for event in &events {
            assert_eq!(event["entity_id"], of);
            assert_eq!(
                event["principal"],
                "arn:aws:iam::123456789012:user/operator"
            );
        }
        let said = |event: &Value| {
            let said = |name: &str| event[name].as_str().unwrap_or("-").to_owned();
            (said("action"), said("resource"))
        };
        events.iter().map(said).collect::<BTreeSet<_>>()
    };
    let event = |action: &str, resource: &str| (action.to_owned(), resource.to_owned());
    let both = |resource: &str| {
        BTreeSet::from([
            event("limits_set", resource),
            event("limits_deleted", resource),
        ])
    };
    assert_eq!(audited("alice"), &both("gpt-4") | &both("_default_"));
    assert_eq!(audited("bob"), both("gpt-4"));
    assert_eq!(audited("$RESOURCE:gpt-4"), both("gpt-4"));
    assert_eq!(audited("$RESOURCE:claude-3"), both("claude-3"));
    assert_eq!(audited("$SYSTEM").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_of_the_client_leaves_nothing_of_what_we_wrote() {
    let served = Served::start().await;
    let world = &served.world;
    let Some(peer) = served.peer(&PEER) else {
        return;
    };
    let client = peer.connect();
    world.apply(MANIFEST).await;
    for (entity, resource) in [("alice", "gpt-4"), ("bob", "gpt-4"), ("dave", "claude-3")] {
        client.acquire(entity, resource, 1);
    }
    // What a fan-out that could not finish leaves is of the namespace, too.
    let pending = world.item("SYSTEM#", "#PROVISIONER").await;
    let pending = [("SK", "#PROVISIONER#PENDING#disabled#resource#gpt-4")]
        .into_iter()
        .fold(pending, |mut item, (name, value)| {
            item.insert(name.to_owned(), crate::world::s(value));
            item
        });
    world.put(pending).await;
    client.call("delete_namespace", &json!({"namespace": "tenant-alpha"}));
    client.call(
        "purge_namespace",
        &json!({"namespace_id": world.ns.as_str()}),
    );
    let dump = world.dump().await;
    let left: Vec<_> = dump.keys().collect();
    assert_eq!(left, [&("_/SYSTEM#".to_owned(), "#VERSION".to_owned())]);
}
