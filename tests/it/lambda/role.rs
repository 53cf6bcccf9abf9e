//! The function under the role that template.yaml gives it: it may do all that the code sends, and
//! nothing else.
//!
//! The stories of events.rs, and the direct invokes here, run over a transport that remembers what they
//! need to be allowed.

use super::rig::Rig;
use super::{events, story};
use crate::templates;
use crate::transport::{Layer, Request, over};
use crate::world::{NOW, World};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use zae_limits::lambda::Tables;
use zae_limits::model::{EpochMs, FanoutKind, Level, Owed};
use zae_limits::store::{Embedded, Place, Store};
use zae_limits::table::pending;

/// An action, and what it is allowed on: `table`, or an index such as `index/GSI2`.
type Permission = (String, String);

fn permission(action: &str, on: &str) -> Permission {
    (format!("dynamodb:{action}"), on.to_owned())
}

/// What a request needs, as the service authorization reference for DynamoDB has it: a transaction
/// and a batch of statements need what is in them.
fn needed(request: &Request) -> BTreeSet<Permission> {
    let body = &request.body;
    let listed = |name: &str| body[name].as_array().expect("a list").clone();
    match request.operation.as_str() {
        "Query" => {
            let index = body["IndexName"].as_str();
            let on = index.map_or("table".to_owned(), |index| format!("index/{index}"));
            [permission("Query", &on)].into()
        }
        "TransactWriteItems" => listed("TransactItems")
            .iter()
            .flat_map(|item| item.as_object().expect("an item").keys().cloned())
            .map(|kind| match kind.as_str() {
                "ConditionCheck" => permission("ConditionCheckItem", "table"),
                kind => permission(&format!("{kind}Item"), "table"),
            })
            .collect(),
        "BatchExecuteStatement" => listed("Statements")
            .iter()
            .map(|statement| {
                let text = statement["Statement"].as_str().expect("a statement");
                match text.split_whitespace().next() {
                    Some("UPDATE") => permission("PartiQLUpdate", "table"),
                    _ => panic!("no permission is known for {text}"),
                }
            })
            .collect(),
        "GetItem" | "BatchGetItem" | "PutItem" | "UpdateItem" | "DeleteItem" => {
            [permission(&request.operation, "table")].into()
        }
        other => panic!("no permission is known for {other}"),
    }
}

/// The role's own, read off the template.
fn granted() -> BTreeSet<Permission> {
    let mut granted = BTreeSet::new();
    for statement in statements() {
        assert_eq!(statement["Effect"], "Allow");
        let actions = texts(&statement["Action"]);
        if actions.iter().all(|action| action.starts_with("dynamodb:")) {
            let places = places(&statement["Resource"]);
            for action in &actions {
                granted.extend(places.iter().map(|on| (action.clone(), on.clone())));
            }
        }
    }
    granted
}

fn statements() -> Vec<Value> {
    let template = templates::read("template.yaml");
    let role = &template["Resources"]["Role"]["Properties"];
    assert_eq!(role.get("ManagedPolicyArns"), None);
    let policies = role["Policies"].as_array().expect("policies");
    assert_eq!(policies.len(), 1);
    let statements = &policies[0]["PolicyDocument"]["Statement"];
    statements.as_array().expect("statements").clone()
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(list) => list.iter().flat_map(texts).collect(),
        Value::String(text) => vec![text.clone()],
        other => panic!("neither a text nor a list: {other}"),
    }
}

/// `[condition, what an ARN becomes, what a name becomes]`, both of which must be the same places.
fn places(resource: &Value) -> Vec<String> {
    let [condition, arn, name] = &resource.as_array().expect("an !If")[..] else {
        panic!("not an !If: {resource}");
    };
    assert_eq!(condition, "HasTableArn");
    let of_name =
        "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${TableName}";
    let below = |text: &String, table: &str| {
        let rest = text.strip_prefix(table).expect("the table");
        rest.strip_prefix('/')
            .map_or("table".to_owned(), str::to_owned)
    };
    let is_ref = arn == "TableName";
    let by_arn: Vec<String> = match is_ref {
        true => vec!["table".to_owned()],
        false => texts(arn)
            .iter()
            .map(|text| below(text, "${TableName}"))
            .collect(),
    };
    let by_name: Vec<String> = texts(name)
        .iter()
        .map(|text| below(text, of_name))
        .collect();
    assert_eq!(by_arn, by_name);
    by_name
}

/// Remembers what the role had to allow. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Needed(Arc<Mutex<BTreeSet<Permission>>>);

impl Layer for Needed {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        let needed = needed(&Request::read(&request));
        self.0.lock().expect("what is needed").extend(needed);
        next.call(request)
    }
}

impl Needed {
    /// Whether the role allows all of it.
    pub fn assert_allowed(&self) {
        let needed = self.0.lock().expect("what is needed");
        let lacking: BTreeSet<_> = needed.difference(&granted()).cloned().collect();
        assert_eq!(
            lacking,
            BTreeSet::new(),
            "the role lacks what the code sends"
        );
    }

    /// A rig whose function reaches the table through this, and whose test does not.
    pub async fn rig(&self) -> Rig {
        let embedded = Embedded::memory().expect("an embedded database");
        let client = Embedded::client_over(over(embedded.http_client(), self.clone()));
        let tables = Tables::given(move |table| {
            let place = Place {
                table: table.to_owned(),
                host: "memory".to_owned(),
            };
            Store::new(client.clone(), place)
        });
        let world = World::over(embedded.client()).await;
        Rig::with(world, tables, Rig::options()).await
    }
}

/// What no story has: soft limits and cascades, and an apply that was interrupted.
async fn invoke_everything(rig: &Rig) {
    // Several buckets of one fan-out, whose stamps go out as a batch.
    for shard in 0..4 {
        rig.world.bucket("user-1", "gpt-4", shard, &[]).await;
    }
    let off = json!({"resources": {"gpt-4": {"disabled": true}}});
    let off = json!({"action": "apply", "namespace": "tenant-alpha", "manifest": off});
    assert_eq!(rig.send(off).await.expect("an apply")["stamped"], 4);
    let soft = |soft: bool| {
        json!({
            "action": "apply", "namespace": "tenant-alpha",
            "manifest": {
                "system": {"limits": {"rpm": {"capacity": 10, "soft": soft}}},
                "resources": {"gpt-4": {"cascade": soft, "limits": {"rpm": {"capacity": 9, "soft": soft}}}},
                "entities": {"user-1": {"resources": {"gpt-4": {"cascade": soft, "limits": {"rpm": {"capacity": 8}}}}}},
            },
        })
    };
    for step in [true, false] {
        let applied = rig.send(soft(step)).await.expect("an apply");
        assert_eq!(applied["errors"], json!([]));
        let mut plan = soft(step);
        plan["action"] = json!("plan");
        assert_eq!(rig.send(plan).await.expect("a plan")["changes"], json!([]));
    }
    let owed = Owed {
        level: Level::Resource("gpt-4".parse().expect("a resource")),
        kind: FanoutKind::Access,
    };
    let long_ago = EpochMs(NOW.0 - 1);
    let ns = &rig.world.ns;
    let left = pending::encode_new(ns, &owed, "gone", long_ago, false, long_ago);
    rig.world.put(left).await;
    let resumed = rig.send(json!({"action": "resume"})).await;
    assert_eq!(resumed.expect("a resume")["resumed_fanouts"], 1);
}

#[tokio::test]
async fn the_role_allows_nothing_that_the_code_does_not_send() {
    let needed = Needed::default();
    for (name, story) in story::all() {
        if ["guards", "manifest-path", "switches"].contains(&name.as_str()) {
            events::tell_over(&name, &story, needed.rig().await).await;
        }
    }
    invoke_everything(&needed.rig().await).await;
    needed.assert_allowed();
    let needed = needed.0.lock().expect("what is needed").clone();
    let granted = granted();
    let spare: BTreeSet<_> = granted.difference(&needed).collect();
    assert_eq!(spare, BTreeSet::new(), "the role allows what nothing sends");
}

/// The stories are not all that may happen, but no request can be sent that no source file makes.
#[test]
fn the_sources_make_no_other_request() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
    // Of the command line and of the embedded store alone.
    let aside = [
        "create.rs",
        "embedded.rs",
        "seed.rs",
        "serve.rs",
        "caller.rs",
    ];
    let mut made = BTreeSet::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        if aside.contains(&name.as_str()) {
            continue;
        }
        let source = std::fs::read_to_string(&path).expect("a source");
        let calls = source.match_indices("client").filter_map(|(at, found)| {
            let rest = source[at + found.len()..].trim_start();
            let (call, _) = rest.strip_prefix('.')?.split_once('(')?;
            let is_name = call
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            is_name.then(|| call.to_owned())
        });
        made.extend(calls);
    }
    made.remove("clone");
    let known = [
        "batch_execute_statement",
        "batch_get_item",
        "delete_item",
        "get_item",
        "put_item",
        "query",
        "transact_write_items",
        "update_item",
    ];
    assert_eq!(made, known.map(str::to_owned).into());
}

#[test]
fn beside_the_table_it_may_log_and_keep_what_is_undelivered() {
    let beside: Vec<(Vec<String>, String)> = statements()
        .iter()
        .map(|statement| {
            (
                texts(&statement["Action"]),
                statement["Resource"].to_string(),
            )
        })
        .filter(|(actions, _)| !actions[0].starts_with("dynamodb:"))
        .collect();
    let actions = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(
        beside,
        [
            (
                actions(&["logs:CreateLogStream", "logs:PutLogEvents"]),
                "\"Logs.Arn\"".to_owned()
            ),
            (
                actions(&["sqs:SendMessage"]),
                "\"Undelivered.Arn\"".to_owned()
            ),
        ]
    );
}
