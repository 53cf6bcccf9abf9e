//! Direct invokes: what `zae-limiter limits` sends, and what it reads.

use super::rig::{Rig, TABLE};
use lambda_runtime::Diagnostic;
use serde_json::{Value, json};

fn manifest() -> Value {
    json!({
        "namespace": "tenant-alpha",
        "system": {"limits": {"rpm": {"capacity": 10000}}},
        "resources": {"gpt-4": {"disabled": true, "limits": null}},
        "entities": {"user-1": {"resources": {"gpt-4": {"disabled": false}}}},
    })
}

/// The payload of that command line.
fn payload(rig: &Rig, action: &str, manifest: Value) -> Value {
    json!({
        "action": action,
        "table_name": TABLE,
        "namespace_id": rig.world.ns.as_str(),
        "manifest": manifest,
    })
}

async fn refused(rig: &Rig, event: Value) -> Diagnostic {
    let before = rig.world.dump().await;
    let error = rig.send(event.clone()).await.expect_err("an error");
    assert_eq!(
        rig.world.dump().await,
        before,
        "an error writes nothing: {event}"
    );
    error.into()
}

#[tokio::test]
async fn plan_reads_apply_writes_and_the_second_plan_is_empty() {
    let rig = Rig::new().await;
    let before = rig.world.dump().await;
    let planned = rig
        .send(payload(&rig, "plan", manifest()))
        .await
        .expect("a plan");
    assert_eq!(rig.world.dump().await, before, "a plan writes nothing");
    // What stops someone comes first.
    let changes = json!([
        {"action": "create", "level": "resource", "target": "gpt-4"},
        {"action": "create", "level": "system", "target": null},
        {"action": "create", "level": "entity", "target": "user-1/gpt-4"},
    ]);
    assert_eq!(planned["status"], "planned");
    assert_eq!(planned["changes"], changes);
    assert_eq!(planned["pending"], 0);
    assert_eq!(planned["full"], false);

    let applied = rig
        .send(payload(&rig, "apply", manifest()))
        .await
        .expect("an apply");
    assert_eq!(applied["status"], "applied");
    assert_eq!(applied["changes"], changes);
    for (key, value) in [
        ("created", 3),
        ("updated", 0),
        ("deleted", 0),
        ("unchanged", 0),
        ("pending", 0),
    ] {
        assert_eq!(applied[key], value, "{key}");
    }
    assert_eq!(applied["errors"], json!([]));
    assert_eq!(applied["resumed"], false);

    let again = rig
        .send(payload(&rig, "plan", manifest()))
        .await
        .expect("a plan");
    assert_eq!(again["changes"], json!([]));
    assert_eq!(again["unchanged"], 3);

    let mut full = payload(&rig, "apply", manifest());
    full["full"] = json!(true);
    let full = rig.send(full).await.expect("a full apply");
    assert_eq!((&full["full"], &full["errors"]), (&json!(true), &json!([])));
    assert_eq!(rig.sink.take().len(), 0, "nobody is sent anything");
}

#[tokio::test]
async fn no_action_is_a_plan_and_an_unknown_namespace_is_registered_by_an_apply() {
    let rig = Rig::new().await;
    let before = rig.world.dump().await;
    let event =
        json!({"namespace": "beta", "manifest": {"resources": {"gpt-4": {"disabled": true}}}});
    let planned = rig.send(event.clone()).await.expect("a plan");
    assert_eq!(planned["status"], "planned");
    assert_eq!(rig.world.dump().await, before);
    let mut apply = event;
    apply["action"] = json!("apply");
    apply["namespace_id"] = json!("");
    let applied = rig.send(apply).await.expect("an apply");
    assert_eq!(applied["created"], 1);
    assert_eq!(rig.levels().await, ["beta RESOURCE#gpt-4 true"]);
}

#[tokio::test]
async fn what_cannot_be_done_is_an_error_with_a_message_and_writes_nothing() {
    let rig = Rig::new().await;
    let with = |key: &str, value: Value| {
        let mut event = payload(&rig, "apply", manifest());
        event[key] = value;
        event
    };
    for (event, part) in [
        (with("action", json!("destroy")), "use plan, apply, resume"),
        (with("action", json!(7)), "unknown"),
        (with("max_delet", json!(7)), "max_delet"),
        (with("full", json!("yes")), "boolean"),
        (with("out_of_band", json!("drop")), "drop"),
        (with("namespace", json!("beta")), "beta"),
        (with("namespace_id", json!("nosuchid")), "not registered"),
        (with("namespace_id", json!("a b")), "a namespace id"),
        (
            with("table_name", json!("none")),
            "table none does not exist",
        ),
        (with("manifest", Value::Null), "namespace"),
        (
            with(
                "manifest",
                json!({"namespace": "tenant-alpha", "resource": {}}),
            ),
            "did you mean",
        ),
        (
            with("fingerprint", json!("stale")),
            "plan again, review it, and send its fingerprint",
        ),
        (json!([]), "not an object"),
        (json!("plan"), "not an object"),
        (json!({}), "namespace"),
    ] {
        let error = refused(&rig, event.clone()).await;
        assert!(
            error.error_message.contains(part),
            "{event}: {}",
            error.error_message
        );
    }
}

#[tokio::test]
async fn guards_are_named_in_snake_case_and_honoured() {
    let rig = Rig::new().await;
    let many: Value = (0..6)
        .map(|index| (format!("r{index}"), json!({"disabled": true})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let declare = |resources: Value| json!({"namespace": "tenant-alpha", "resources": resources});
    rig.send(payload(&rig, "apply", declare(many)))
        .await
        .expect("an apply");

    let mut few = payload(&rig, "apply", declare(json!({"r0": {"disabled": true}})));
    let error = refused(&rig, few.clone()).await;
    assert_eq!(error.error_type, "Refused");
    assert!(
        error.error_message.contains("max_delete: 5"),
        "{}",
        error.error_message
    );
    few["action"] = json!("plan");
    let shown = rig.send(few.clone()).await.expect("a plan is always shown");
    assert_eq!(shown["refusals"].as_array().map(Vec::len), Some(1));
    few["action"] = json!("apply");
    few["max_delete"] = json!(5);
    few["fingerprint"] = shown["fingerprint"].clone();
    assert_eq!(rig.send(few).await.expect("an apply")["deleted"], 5);

    let mut none = payload(&rig, "apply", declare(json!({})));
    let error = refused(&rig, none.clone()).await;
    assert!(
        error.error_message.contains("allow_empty: true"),
        "{}",
        error.error_message
    );
    none["allow_empty"] = json!(true);
    assert_eq!(rig.send(none).await.expect("an apply")["deleted"], 1);

    let properties = json!({"Namespace": "tenant-alpha", "Resources": {"gpt-4": {"Disabled": "true"}}, "Adopt": "true"});
    rig.answered(rig.event("Create", properties)).await;
    let mut theirs = payload(&rig, "apply", declare(json!({"gpt-4": {"disabled": true}})));
    let error = refused(&rig, theirs.clone()).await;
    assert!(
        error.error_message.contains("adopt: true"),
        "{}",
        error.error_message
    );
    theirs["adopt"] = json!(true);
    rig.send(theirs).await.expect("an apply");
}

#[tokio::test]
async fn a_switch_set_elsewhere_is_kept_or_reverted_as_told() {
    let rig = Rig::new().await;
    let quiet = json!({"namespace": "tenant-alpha", "resources": {"gpt-4": {"limits": {"rpm": {"capacity": 5}}}}});
    rig.send(payload(&rig, "apply", quiet.clone()))
        .await
        .expect("an apply");
    let mut item = rig.world.item("RESOURCE#gpt-4", "#CONFIG").await;
    item.insert(
        "disabled".to_owned(),
        aws_sdk_dynamodb::types::AttributeValue::Bool(true),
    );
    rig.world.put(item).await;
    rig.send(payload(&rig, "apply", quiet.clone()))
        .await
        .expect("an apply");
    assert_eq!(rig.levels().await, ["tenant-alpha RESOURCE#gpt-4 true"]);
    let mut revert = payload(&rig, "apply", quiet);
    revert["out_of_band"] = json!("revert");
    assert_eq!(rig.send(revert).await.expect("an apply")["updated"], 1);
    assert_eq!(rig.levels().await, ["tenant-alpha RESOURCE#gpt-4"]);
}

#[tokio::test]
async fn resume_finishes_what_an_apply_left_and_touches_no_level() {
    let rig = Rig::new().await;
    rig.world.bucket("user-1", "gpt-4", 0, &[]).await;
    let mut broken = rig.world.item("BUCKET#user-1#gpt-4#0", "#STATE").await;
    let key = crate::world::s(&format!("{}/BUCKET#not one#gpt-4#0", rig.world.ns));
    broken.insert("PK".to_owned(), key.clone());
    rig.world.put(broken).await;
    let off = json!({"namespace": "tenant-alpha", "resources": {"gpt-4": {"disabled": true}}});
    let applied = rig
        .send(payload(&rig, "apply", off))
        .await
        .expect("an apply");
    assert_eq!(applied["pending"], 1);
    assert_eq!(applied["errors"].as_array().map(Vec::len), Some(1));
    let request = rig.world.client.delete_item().table_name(TABLE);
    let request = request.key("PK", key).key("SK", crate::world::s("#STATE"));
    request.send().await.expect("a delete");
    rig.world.clock.advance(1000);
    let levels = rig.levels().await;
    let resumed = json!({"action": "resume", "namespace_id": rig.world.ns.as_str()});
    let resumed = rig.send(resumed).await.expect("a resume");
    assert_eq!(resumed["resumed"], true, "{resumed}");
    assert_eq!(resumed["pending"], 0, "{resumed}");
    assert_eq!(resumed["errors"], json!([]));
    assert_eq!(rig.levels().await, levels);
    let nothing = json!({"action": "resume", "namespace": "tenant-alpha"});
    let nothing = rig.send(nothing).await.expect("a resume");
    assert_eq!(nothing["resumed"], false);
    refused(&rig, json!({"action": "resume", "namespace": "beta"})).await;
}
