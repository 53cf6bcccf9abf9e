//! The templates as data, and the table's held against what the library creates.

use crate::fixture::TABLE;
use crate::transport::{Recorder, over};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use zae_limits::store::{Embedded, create_table};

/// A template. Of a function in its short form (`!Ref TableName`) only the argument is left.
pub fn read(path: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = fs::read_to_string(path).expect("a template");
    serde_saphyr::from_str(&text).expect("YAML")
}

/// A list without its order.
fn sorted(list: &Value) -> Vec<String> {
    let list = list.as_array().expect("a list");
    let mut texts: Vec<String> = list.iter().map(canonical).collect();
    texts.sort();
    texts
}

/// A value with the keys of its mappings sorted.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{name}: {}", canonical(value)))
                .collect();
            fields.sort();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(list) => {
            let list: Vec<String> = list.iter().map(canonical).collect();
            format!("[{}]", list.join(", "))
        }
        scalar => scalar.to_string(),
    }
}

#[tokio::test]
async fn the_tables_template_makes_the_table_that_the_library_creates() {
    let recorder = Recorder::default();
    let embedded = Embedded::memory().expect("an embedded database");
    let client = Embedded::client_over(over(embedded.http_client(), recorder.clone()));
    create_table(&client, TABLE, true).await.expect("a table");
    let sent = |operation: &str| {
        let requests = recorder.requests();
        let request = requests.iter().find(|seen| seen.operation == operation);
        request.expect("it was sent").body.clone()
    };
    let (created, expiry) = (sent("CreateTable"), sent("UpdateTimeToLive"));

    let template = read("templates/table.yaml");
    let table = &template["Resources"]["Table"];
    let properties = &table["Properties"];
    for lists in [
        "AttributeDefinitions",
        "KeySchema",
        "GlobalSecondaryIndexes",
        "LocalSecondaryIndexes",
    ] {
        assert_eq!(
            sorted(&properties[lists]),
            sorted(&created[lists]),
            "{lists}"
        );
    }
    assert_eq!(properties["BillingMode"], created["BillingMode"]);
    let images = &created["StreamSpecification"]["StreamViewType"];
    assert_eq!(
        properties["StreamSpecification"],
        json!({ "StreamViewType": images })
    );
    assert_eq!(
        properties["TimeToLiveSpecification"],
        expiry["TimeToLiveSpecification"]
    );
    // What only a deployed table has.
    assert_eq!(table["DeletionPolicy"], "Retain");
    assert_eq!(table["UpdateReplacePolicy"], "Retain");
    let recovery = &properties["PointInTimeRecoverySpecification"];
    assert_eq!(recovery, &json!({"PointInTimeRecoveryEnabled": true}));
}

#[test]
fn no_create_runs_when_a_resource_of_the_template_is_given_up() {
    let template = read("template.yaml");
    let resources = &template["Resources"];
    let seconds = |resource: &str, property: &str| {
        let found = &resources[resource]["Properties"][property];
        found
            .as_u64()
            .unwrap_or_else(|| panic!("{resource}.{property}: {found}"))
    };
    let longest = seconds("AsynchronousEvents", "MaximumEventAgeInSeconds")
        + seconds("Provisioner", "Timeout");
    assert!(longest < seconds("TenantAlpha", "ServiceTimeout"));
    assert!(longest < 3600, "and none that names no time");
}

#[test]
fn the_alarm_on_what_is_pending_is_on_a_metric_that_the_schedule_makes() {
    let template = read("template.yaml");
    let resources = &template["Resources"];
    let input = resources["Resume"]["Properties"]["Targets"][0]["Input"].as_str();
    let input: Value = serde_json::from_str(input.expect("a text")).expect("JSON");
    assert_eq!(input, json!({"action": "resume"}));
    let alarm = &resources["PendingAlarm"]["Properties"];
    assert_eq!(alarm["Namespace"], "ZaeLimits");
    assert_eq!(alarm["MetricName"], "PendingAge");
    assert_eq!(alarm["Threshold"], 15 * 60);
    assert_eq!(alarm["Dimensions"][0]["Name"], "Table");
    assert_eq!(
        alarm["Dimensions"][1],
        json!({"Name": "Request", "Value": "resume"})
    );
}
