//! `event`: payloads that the function takes, each as it was meant.

use super::Shell;
use serde_json::{Value, json};
use std::time::Duration;
use zae_limits::clock::Clock;
use zae_limits::fanout::Settings;
use zae_limits::lambda::{Function, Invocation, Options, Tables, physical_id};
use zae_limits::manifest::parse_yaml;
use zae_limits::model::NamespaceName;
use zae_limits::store::{Embedded, Place, Store};

/// The function over a shell's embedded store.
fn function(shell: &Shell) -> Function {
    let client = Embedded::file(&shell.path(".zae-limits/local.db"))
        .expect("the store")
        .client();
    let tables = Tables::given(move |table| {
        let place = Place {
            table: table.to_owned(),
            host: "file".to_owned(),
        };
        Store::new(client.clone(), place)
    });
    let options = Options {
        fanout: Settings {
            settle: Duration::ZERO,
            ..Settings::default()
        },
        ..Options::default()
    };
    Function::new(options, tables, Clock::system(), |_| {}).expect("a function")
}

async fn send(shell: &Shell, event: &Value) -> Value {
    let function = function(shell);
    let told = function.handle(event.clone(), Invocation::default()).await;
    told.expect("an answer")
}

fn event(shell: &Shell, line: &str) -> Value {
    let said = shell.ok(line);
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

#[tokio::test]
async fn a_life_of_a_resource_without_a_stack() {
    let shell = Shell::new();
    // Makes the store, and no level.
    shell.ok("--local local seed -N another");
    let plan = event(&shell, "--local event plan -f manifests");
    assert_eq!(send(&shell, &plan).await["created"], 7);

    let missing = shell.run("--local event update -f manifests");
    assert_eq!(missing.code, 1, "{missing:?}");
    assert!(
        missing.stderr.contains("send a Create first"),
        "{missing:?}"
    );

    let created = send(&shell, &event(&shell, "--local event create -f manifests")).await;
    assert_eq!(created["Status"], "SUCCESS", "{created}");
    assert_eq!(created["Data"]["Created"], "7");

    shell.edit("  claude-3:\n", "  claude-3:\n    disabled: true\n");
    let update = event(&shell, "--local event update -f manifests");
    assert_eq!(update["PhysicalResourceId"], created["PhysicalResourceId"]);
    let updated = send(&shell, &update).await;
    assert_eq!(updated["Status"], "SUCCESS", "{updated}");
    assert_eq!(updated["Data"]["Updated"], "1");
    assert_eq!(updated["PhysicalResourceId"], created["PhysicalResourceId"]);
    // A stack's namespace is not the command line's: a direct invoke has to say so.
    let apply = event(&shell, "--local event apply -f manifests --adopt");
    assert_eq!(send(&shell, &apply).await["unchanged"], 7);

    let create = event(&shell, "--local event create -f manifests --adopt");
    assert_eq!(send(&shell, &create).await["Status"], "SUCCESS");
    let deleted = send(&shell, &event(&shell, "--local event delete -f manifests")).await;
    assert_eq!(deleted["Data"]["Deleted"], "7", "{deleted}");
}

#[test]
fn an_invoke_holds_the_manifest_and_what_was_asked_for() {
    let shell = Shell::new();
    shell.write(
        "one.limits.yaml",
        "namespace: beta\nresources: { gpt-4: { disabled: true } }\n",
    );
    let options = "--full --out-of-band revert --allow-empty --max-delete 5 --adopt";
    let apply = event(
        &shell,
        &format!("-n limits event apply -f one.limits.yaml {options}"),
    );
    let manifest = parse_yaml(
        "m",
        b"namespace: beta\nresources: { gpt-4: { disabled: true } }\n",
    );
    assert_eq!(
        apply,
        json!({
            "action": "apply",
            "table_name": "limits",
            "namespace": "beta",
            "manifest": manifest.expect("a manifest").canonical_json(),
            "full": true,
            "out_of_band": "revert",
            "allow_empty": true,
            "max_delete": 5,
            "adopt": true,
        })
    );
    let plan = event(&shell, "event plan -f one.limits.yaml");
    assert_eq!(
        plan.get("table_name"),
        None,
        "the function has a table of its own"
    );
    assert_eq!(plan.get("full"), None);
}

#[test]
fn a_request_is_what_cloudformation_sends() {
    let shell = Shell::new();
    shell.write(
        "one.limits.yaml",
        "namespace: beta\nresources: { gpt-4: { disabled: true } }\n",
    );
    let line = "event update -f one.limits.yaml --physical-id limits/Ab/0123456789ab \
                --response-url http://127.0.0.1:9/a?b=c --full --max-delete 5";
    let update = event(&shell, line);
    insta::assert_snapshot!(format!("{update:#}"), @r#"
        {
          "RequestType": "Update",
          "ResponseURL": "http://127.0.0.1:9/a?b=c",
          "StackId": "arn:aws:cloudformation:local:000000000000:stack/local/00000000-0000-0000-0000-000000000000",
          "RequestId": "00000000-0000-0000-0000-000000000000",
          "LogicalResourceId": "Limits",
          "ResourceType": "Custom::ZaeLimiterLimits",
          "ServiceToken": "arn:aws:lambda:local:000000000000:function:limits-provisioner",
          "PhysicalResourceId": "limits/Ab/0123456789ab",
          "OldResourceProperties": {
            "ServiceToken": "arn:aws:lambda:local:000000000000:function:limits-provisioner"
          },
          "ResourceProperties": {
            "ServiceToken": "arn:aws:lambda:local:000000000000:function:limits-provisioner",
            "Namespace": "beta",
            "Resources": {
              "gpt-4": {
                "Disabled": "true",
                "Limits": {}
              }
            },
            "FullApply": "true",
            "MaxDelete": "5"
          }
        }
        "#);
    let document = shell.json(line, 0);
    assert_eq!(document["command"], "event update");
    assert_eq!(document["event"], update);
}

#[tokio::test]
async fn the_id_is_found_where_the_function_would_look() {
    let shell = Shell::seeded();
    let store = Embedded::file(&shell.path(".zae-limits/local.db")).expect("the store");
    let place = Place {
        table: "rate-limits".to_owned(),
        host: "file".to_owned(),
    };
    let store = Store::new(store.client(), place);
    let name = NamespaceName::parse("tenant-alpha").expect("a name");
    let ns = store.namespace_id(&name).await.expect("the registry");
    let delete = event(&shell, "--local event delete -f manifests");
    let text = |key: &str| delete[key].as_str().expect("a text").to_owned();
    let expected = physical_id(
        "rate-limits",
        &ns.expect("registered"),
        &text("StackId"),
        &text("LogicalResourceId"),
    );
    assert_eq!(text("PhysicalResourceId"), expected);
}

#[test]
fn what_makes_no_event_is_said() {
    let shell = Shell::new();
    shell.write("manifests/beta.limits.yaml", "namespace: beta\n");
    let two = shell.run("event plan -f manifests");
    assert_eq!(two.code, 64, "{two:?}");
    assert!(two.stderr.contains("--namespace"), "{two:?}");
    let one = event(&shell, "event plan -f manifests -N beta");
    assert_eq!(one["namespace"], "beta");
    let which = shell.run("event delete -f manifests -N beta");
    assert_eq!(which.code, 64, "{which:?}");
    assert!(which.stderr.contains("--physical-id"), "{which:?}");
    // CloudFormation would take the name for a function of its own.
    shell.write(
        "ref.limits.yaml",
        "namespace: beta\nresources: { Ref: { disabled: true } }\n",
    );
    assert_eq!(shell.run("event create -f ref.limits.yaml").code, 65);
    event(&shell, "event apply -f ref.limits.yaml");
    shell.write("bad.limits.yaml", "namespace: beta\nresource: {}\n");
    assert_eq!(shell.run("event apply -f bad.limits.yaml").code, 65);
}
