//! Items that do not read, as the function's answers tell of them.

use super::rig::Rig;
use crate::world::s;
use serde_json::{Value, json};

/// A function whose table holds a level that does not read, of each kind.
async fn garbled() -> Rig {
    let rig = Rig::new().await;
    rig.answered(rig.event("Create", properties(false))).await;
    for (pk, sk) in [
        ("ENTITY#alice", "#CONFIG#gpt-4"),
        ("RESOURCE#gpt-4", "#CONFIG"),
    ] {
        let mut item = match pk {
            "ENTITY#alice" => rig.world.item(pk, sk).await,
            _ => Default::default(),
        };
        item.insert("PK".to_owned(), s(&format!("{}/{pk}", rig.world.ns)));
        item.insert("SK".to_owned(), s(sk));
        item.insert("l_rpm_cp".to_owned(), s("garbage"));
        rig.world.put(item).await;
    }
    rig
}

fn properties(stopped: bool) -> Value {
    let mut properties = json!({
        "Namespace": "tenant-alpha",
        "Resources": { "claude-3": { "Disabled": stopped.to_string() } },
        "Entities": { "alice": { "Resources": { "gpt-4": { "Limits": { "rpm": { "Capacity": "3" } } } } } },
    });
    properties["ServiceToken"] = json!("arn:aws:lambda:eu-central-1:123456789012:function:limits");
    properties
}

#[tokio::test]
async fn a_stacks_update_is_carried_out_and_counts_them_as_warnings() {
    let rig = garbled().await;
    rig.world.bucket("bob", "claude-3", 0, &[]).await;
    let body = rig.answered(rig.event("Update", properties(true))).await;
    assert_eq!(body["Status"], "SUCCESS", "{body}");
    assert_eq!(body["Data"]["Updated"], "2");
    assert_eq!(body["Data"]["Warnings"], "2");
    assert_eq!(rig.world.stamp("bob", "claude-3").await, "disabled");
    let logs = rig.logs.text();
    for (level, becomes) in [
        ("entity alice/gpt-4", "apply writes it anew"),
        ("resource gpt-4", "apply leaves it alone"),
    ] {
        let named = |line: &&str| line.contains(level) && line.contains(becomes);
        assert!(logs.lines().any(|line| named(&line)), "{level}: {logs}");
    }
}

#[tokio::test]
async fn a_direct_invoke_names_them() {
    let rig = garbled().await;
    let manifest = json!({
        "namespace": "tenant-alpha",
        "entities": { "alice": { "resources": { "gpt-4": { "limits": { "rpm": { "capacity": 3 } } } } } },
    });
    let ns = rig.world.ns.to_string();
    for action in ["plan", "apply"] {
        let ask = json!({ "action": action, "manifest": manifest, "adopt": true });
        let answer = rig.send(ask).await.expect("an answer");
        let warnings = answer["warnings"].to_string().replace(&ns, "NS");
        let warnings: Vec<String> = serde_json::from_str(&warnings).expect("texts");
        assert_eq!(
            warnings,
            [
                "entity alice/gpt-4 cannot be read (item \"NS/ENTITY#alice\" / \"#CONFIG#gpt-4\": attribute \
                 \"l_rpm_cp\" is not a number): apply writes it anew, as declared",
                "resource gpt-4 cannot be read (item \"NS/RESOURCE#gpt-4\" / \"#CONFIG\": attribute \
                 \"l_rpm_cp\" is not a number): apply leaves it alone, and buckets cannot take limits from it: \
                 declare the level, or correct or delete the item",
            ],
            "{action}"
        );
    }
}

#[tokio::test]
async fn a_record_that_does_not_read_fails_with_its_key() {
    let rig = garbled().await;
    let mut record = rig.world.item("SYSTEM#", "#PROVISIONER").await;
    record.insert("managed_resources".to_owned(), s("gpt-4"));
    rig.world.put(record).await;
    let body = rig.answered(rig.event("Update", properties(true))).await;
    assert_eq!(body["Status"], "FAILED");
    let reason = body["Reason"].as_str().expect("a reason");
    let once = reason.matches("is not a list of strings").count();
    assert!(once == 1 && reason.contains("#PROVISIONER"), "{reason}");
}

#[tokio::test]
async fn a_deleted_namespace_is_not_written_to_by_its_id() {
    let rig = garbled().await;
    let mut dump = rig.world.dump().await;
    let key = ("_/SYSTEM#".to_owned(), format!("#NSID#{}", rig.world.ns));
    let mut item = dump.remove(&key).expect("a registry entry");
    for (status, remedy) in [
        ("deleted", "`zae-limiter namespace recover a7x3kq`"),
        ("purging", "which nothing takes back"),
    ] {
        item.insert("status".to_owned(), s(status));
        rig.world.put(item.clone()).await;
        let before = rig.world.dump().await;
        let mut properties = properties(true);
        properties["NamespaceId"] = json!(rig.world.ns.to_string());
        let body = rig.answered(rig.event("Update", properties)).await;
        assert_eq!(body["Status"], "FAILED", "{status}");
        let reason = body["Reason"].as_str().expect("a reason");
        assert!(reason.contains(remedy), "{reason}");
        assert_eq!(rig.world.dump().await, before, "{status}");
    }
}

#[tokio::test]
async fn what_is_no_bucket_is_a_warning_and_no_failure() {
    let rig = garbled().await;
    rig.world.bucket("bob", "claude-3", 0, &[]).await;
    let mut item = rig.world.item("BUCKET#bob#claude-3#0", "#STATE").await;
    item.insert("PK".to_owned(), s(&format!("{}/NOTE#bob", rig.world.ns)));
    rig.world.put(item).await;
    let body = rig.answered(rig.event("Update", properties(true))).await;
    assert_eq!(body["Status"], "SUCCESS", "{body}");
    assert_eq!(body["Data"]["Warnings"], "3", "and two levels");
    assert_eq!(body["Data"]["Pending"], "0");
    assert!(rig.logs.text().contains("a7x3kq/NOTE#bob"));
}
