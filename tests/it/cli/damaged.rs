//! Items that do not read, as each command and each format tells of them.

use super::{Shell, without_id};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use zae_limits::store::Embedded;

const ALONE: &str = "namespace: tenant-alpha
entities: { alice: { resources: { gpt-4: { limits: { rpm: { capacity: 3 } } } } } }
";
const STOPPED: &str = "namespace: tenant-alpha
resources: { gpt-4: { disabled: true } }
entities: { alice: { resources: { gpt-4: { limits: { rpm: { capacity: 3 } } } } } }
";

/// A shell in which a manifest is applied, and the id of its namespace.
fn applied() -> (Shell, String) {
    let shell = Shell::new();
    shell.write("alone.limits.yaml", ALONE);
    shell.write("stopped.limits.yaml", STOPPED);
    shell.ok("--local apply -f alone.limits.yaml --yes --settle 0");
    let explained = shell.json("--local explain alice gpt-4", 0);
    let ns = explained["namespace_id"].as_str().expect("an id");
    (shell, ns.to_owned())
}

fn client(shell: &Shell) -> Client {
    let path = shell.path(".zae-limits/local.db");
    Embedded::file(&path).expect("the store").client()
}

/// Sets an attribute of an item, which is made where it is missing.
async fn set(shell: &Shell, pk: &str, sk: &str, attribute: &str, value: AttributeValue) {
    let update = client(shell)
        .update_item()
        .table_name("rate-limits")
        .key("PK", AttributeValue::S(pk.to_owned()))
        .key("SK", AttributeValue::S(sk.to_owned()))
        .update_expression("SET #a = :v")
        .expression_attribute_names("#a", attribute)
        .expression_attribute_values(":v", value);
    update.send().await.expect("updated");
}

fn garbage() -> AttributeValue {
    AttributeValue::S("garbage".to_owned())
}

/// Both kinds: alice's level is declared, the resource's is nobody's.
async fn garbled() -> (Shell, String) {
    let (shell, ns) = applied();
    let (entity, resource) = (format!("{ns}/ENTITY#alice"), format!("{ns}/RESOURCE#gpt-4"));
    set(&shell, &entity, "#CONFIG#gpt-4", "l_rpm_cp", garbage()).await;
    set(&shell, &resource, "#CONFIG", "l_rpm_cp", garbage()).await;
    (shell, ns)
}

#[tokio::test]
async fn a_plan_names_what_does_not_read_in_every_format() {
    let (shell, ns) = garbled().await;
    let shown = |arguments: &str| without_id(&shell.ok(arguments).stdout, &ns);
    insta::assert_snapshot!(shown("--local plan -f alone.limits.yaml"), @r##"
        tenant-alpha  (table rate-limits, .zae-limits/local.db)  1 to change, 0 unchanged

          ! entity alice/gpt-4   what is stored cannot be read   item "NS/ENTITY#alice" / "#CONFIG#gpt-4": attribute "l_rpm_cp" is not a number; apply writes it anew, as declared
          ! resource gpt-4       what is stored cannot be read   item "NS/RESOURCE#gpt-4" / "#CONFIG": attribute "l_rpm_cp" is not a number; apply leaves it alone, and buckets cannot take limits from it: declare the level, or correct or delete the item
          ~ entity alice/gpt-4   written anew: rpm 3/60s

        Fan-outs: 1 params. Takes effect when apply returns.
        "##);
    insta::assert_snapshot!(shown("--local plan -f alone.limits.yaml -o markdown"), @r##"
        ### `tenant-alpha`: 1 to change, 0 to create, 0 to delete, 0 unchanged

        Table `rate-limits`, `.zae-limits/local.db`.

        |  | level | change | reaches |
        | --- | --- | --- | --- |
        | `!` | `entity alice/gpt-4` | `what is stored cannot be read` | item "NS/ENTITY\#alice" / "\#CONFIG\#gpt-4": attribute "l\_rpm\_cp" is not a number; apply writes it anew, as declared |
        | `!` | `resource gpt-4` | `what is stored cannot be read` | item "NS/RESOURCE\#gpt-4" / "\#CONFIG": attribute "l\_rpm\_cp" is not a number; apply leaves it alone, and buckets cannot take limits from it: declare the level, or correct or delete the item |
        | `~` | `entity alice/gpt-4` | `written anew: rpm 3/60s` |  |

        Fan-outs: 1 params. Takes effect when apply returns.
        "##);
    let document = shell.json("--local plan -f alone.limits.yaml", 0);
    let plan = &document["plans"][0];
    insta::assert_snapshot!(without_id(&format!("{:#}", plan["unreadable"]), &ns), @r##"
        [
          {
            "level": "entity",
            "target": "alice/gpt-4",
            "item": "\"NS/ENTITY#alice\" / \"#CONFIG#gpt-4\"",
            "problem": "attribute \"l_rpm_cp\" is not a number",
            "fate": "rewritten",
            "remedy": "apply writes it anew, as declared"
          },
          {
            "level": "resource",
            "target": "gpt-4",
            "item": "\"NS/RESOURCE#gpt-4\" / \"#CONFIG\"",
            "problem": "attribute \"l_rpm_cp\" is not a number",
            "fate": "left",
            "remedy": "apply leaves it alone, and buckets cannot take limits from it: declare the level, or correct or delete the item"
          }
        ]
        "##);
    assert_eq!(plan["changes"][0]["before"], serde_json::Value::Null);
}

#[tokio::test]
async fn an_apply_over_items_that_do_not_read_does_what_it_can() {
    let (shell, ns) = garbled().await;
    let said = shell.ok("--local apply -f stopped.limits.yaml --yes --settle 0");
    insta::assert_snapshot!(without_id(&said.redacted(), &ns), @r##"
        tenant-alpha  (table rate-limits, .zae-limits/local.db)  2 to change, 0 unchanged

          ! resource gpt-4       disabled: (inherit) -> true      stops every bucket no entity level decides about
          ! resource gpt-4       what is stored cannot be read    item "NS/RESOURCE#gpt-4" / "#CONFIG": attribute "l_rpm_cp" is not a number; apply writes it anew, as declared
          ! entity alice/gpt-4   what is stored cannot be read    item "NS/ENTITY#alice" / "#CONFIG#gpt-4": attribute "l_rpm_cp" is not a number; apply writes it anew, as declared
          ~ resource gpt-4       written anew: declares nothing
          ~ entity alice/gpt-4   written anew: rpm 3/60s

        Fan-outs: 1 access, 1 soft, 1 params. Takes effect when apply returns.

        tenant-alpha: applied  0 created, 2 updated, 0 deleted, 0 unchanged, in N s

            resource gpt-4: stopped 0 buckets
            resource gpt-4: soft brought to 0 buckets
            entity alice/gpt-4: params brought to 0 buckets
        "##);
    let again = shell.json("--local plan -f stopped.limits.yaml", 0);
    assert_eq!(again["plans"][0]["unreadable"], serde_json::json!([]));
    assert_eq!(again["plans"][0]["changes"], serde_json::json!([]));
}

#[tokio::test]
async fn an_explanation_does_not_guess_at_limits_behind_a_level_that_does_not_read() {
    let (shell, ns) = applied();
    let resource = format!("{ns}/RESOURCE#gpt-4");
    set(&shell, &resource, "#CONFIG", "l_rpm_cp", garbage()).await;
    let stopped = AttributeValue::Bool(true);
    set(&shell, &resource, "#CONFIG", "disabled", stopped).await;
    let system = format!("{ns}/SYSTEM#");
    for field in ["cp", "ra", "rp"] {
        let value = AttributeValue::N("9".to_owned());
        set(&shell, &system, "#CONFIG", &format!("l_rpm_{field}"), value).await;
    }
    let shown = |arguments: &str| without_id(&shell.ok(arguments).stdout, &ns);
    insta::assert_snapshot!(shown("--local explain bob gpt-4"), @r##"
        bob on gpt-4  (namespace tenant-alpha, table rate-limits, .zae-limits/local.db)

        Access: refused, every request; resource gpt-4 decides
            entity bob/gpt-4       not stored
            entity bob/_default_   not stored
          = resource gpt-4         disabled: true   decides

        Limits: unknown, item "NS/RESOURCE#gpt-4" / "#CONFIG": attribute "l_rpm_cp" is not a number: correct or delete the item, or apply a manifest that declares the level
            entity bob/gpt-4       not stored
            entity bob/_default_   not stored
          ! resource gpt-4         cannot be read   may decide
          ? system                 rpm 9/9s         may be overruled

        Cascade: no, the entity has no record, and so no parent

        Buckets: none yet; a client makes one at the first use, from the config above
        "##);
    insta::assert_snapshot!(shown("--local explain bob gpt-4 -o markdown"), @r##"
        ### `bob` on `gpt-4` in `tenant-alpha`

        **Access:** refused, every request; resource gpt-4 decides

        | access | says |  |
        | --- | --- | --- |
        | `entity bob/gpt-4` | `not stored` |  |
        | `entity bob/_default_` | `not stored` |  |
        | `resource gpt-4` | `disabled: true` | **decides** |

        | limits | says |  |
        | --- | --- | --- |
        | `entity bob/gpt-4` | `not stored` |  |
        | `entity bob/_default_` | `not stored` |  |
        | `resource gpt-4` | `cannot be read` | **may decide** |
        | `system` | `rpm 9/9s` | may be overruled |

        **Limits:** unknown, item "NS/RESOURCE\#gpt-4" / "\#CONFIG": attribute "l\_rpm\_cp" is not a number: correct or delete the item, or apply a manifest that declares the level

        **Cascade:** no, the entity has no record, and so no parent
        "##);
    let limits = &shell.json("--local explain bob gpt-4", 0)["explanation"]["limits"];
    assert_eq!(limits["winner"], serde_json::Value::Null);
    assert_eq!(limits["now"], serde_json::json!([]));
    let known = &shell.json("--local explain alice gpt-4", 0)["explanation"]["limits"];
    assert_eq!(known["winner"], "entity", "what comes first reads");
    assert_eq!(known["steps"][2]["part"], "unreadable");
    assert_eq!(known["steps"][3]["part"], "overruled");
}

#[tokio::test]
async fn the_cause_is_said_once() {
    let (shell, _) = applied();
    let number = AttributeValue::N("1".to_owned());
    set(&shell, "_/SYSTEM#", "#VERSION", "schema_version", number).await;
    let said = shell.run("--local plan -f alone.limits.yaml");
    assert_eq!(said.code, 1);
    insta::assert_snapshot!(said.stderr, @r##"error: item "_/SYSTEM#" / "#VERSION": attribute "schema_version" is not a string: correct or delete the item, then run this again"##);
}

#[tokio::test]
async fn a_deleted_namespace_is_refused_with_what_to_do_and_not_offered() {
    let (shell, ns) = applied();
    let deleted = AttributeValue::S("deleted".to_owned());
    set(
        &shell,
        "_/SYSTEM#",
        "#NAMESPACE#tenant-alpha",
        "status",
        deleted,
    )
    .await;
    for command in [
        "plan -f alone.limits.yaml",
        "apply -f alone.limits.yaml --yes",
        "-N tenant-alpha explain alice gpt-4",
    ] {
        let said = shell.run(&format!("--local {command}"));
        assert_eq!((said.code, said.stdout.as_str()), (1, ""), "{command}");
        assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
        let remedy = format!("`zae-limiter namespace recover {ns}`");
        assert!(said.stderr.contains(&remedy), "{command}: {said:?}");
    }
    let said = shell.run("--local explain alice gpt-4");
    assert!(said.stderr.contains("has no namespace yet"), "{said:?}");
}

#[tokio::test]
async fn what_is_no_bucket_is_named_in_every_format_and_the_apply_is_done() {
    for format in ["text", "markdown", "json"] {
        let (shell, ns) = applied();
        let pk = format!("{ns}/NOTE#alice");
        for (name, value) in [
            ("GSI2PK", format!("{ns}/RESOURCE#gpt-4")),
            ("GSI2SK", "BUCKET#alice#0".to_owned()),
        ] {
            // An item is in the index once it has both keys.
            set(&shell, &pk, "#STATE", name, AttributeValue::S(value)).await;
        }
        let arguments = "--local apply -f stopped.limits.yaml --yes --settle 0 -o";
        let said = shell.ok(&format!("{arguments} {format}"));
        if format == "json" {
            let fanouts = said.json()["reports"][0]["fanouts"].clone();
            assert_eq!(fanouts[0]["foreign"], 1, "{fanouts}");
            continue;
        }
        let lines = said.stdout.lines().filter(|line| line.contains("bucket"));
        let lines: Vec<&str> = lines.collect();
        let named = format!(
            "NOTE{}#alice: it does not continue with BUCKET",
            if format == "text" { "" } else { "\\" }
        );
        assert!(lines.iter().any(|line| line.contains(&named)), "{lines:?}");
    }
}
