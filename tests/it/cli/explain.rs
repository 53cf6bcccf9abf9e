//! `explain`: stamps that are wrong or run out, and questions that have no answer.

use super::Shell;
use aws_sdk_dynamodb::types::AttributeValue;
use zae_limits::store::Embedded;

/// Sets attributes on a bucket behind everyone's back.
async fn tamper(shell: &Shell, bucket: &str, attribute: &str, value: Option<AttributeValue>) {
    let client = Embedded::file(&shell.path(".zae-limits/local.db"))
        .expect("the store")
        .client();
    let ns = shell.json("--local explain user-123 gpt-4", 0);
    let ns = ns["namespace_id"].as_str().expect("an id");
    let update = client
        .update_item()
        .table_name("rate-limits")
        .key("PK", AttributeValue::S(format!("{ns}/BUCKET#{bucket}")))
        .key("SK", AttributeValue::S("#STATE".to_owned()))
        .expression_attribute_names("#a", attribute)
        .condition_expression("attribute_exists(PK)");
    let update = match value {
        Some(value) => update
            .update_expression("SET #a = :v")
            .expression_attribute_values(":v", value),
        None => update.update_expression("REMOVE #a"),
    };
    update.send().await.expect("updated");
}

#[tokio::test]
async fn a_wrong_stamp_and_one_that_ran_out_are_told_apart() {
    let shell = Shell::seeded();
    tamper(
        &shell,
        "user-123#gpt-4#0",
        "bypass",
        Some(AttributeValue::N("1000".to_owned())),
    )
    .await;
    tamper(&shell, "user-123#gpt-4#1", "bypass", None).await;
    insta::assert_snapshot!(shell.ok("--local explain user-123 gpt-4").redacted());
    let document = shell.json("--local explain user-123 gpt-4", 0);
    let verdicts: Vec<_> = document["explanation"]["shards"]
        .as_array()
        .expect("shards")
        .iter()
        .map(|shard| shard["verdict"].as_str().expect("a verdict"))
        .collect();
    assert_eq!(verdicts, ["expired", "mismatch"]);
    assert_eq!(document["explanation"]["access"]["winner"], "entity");
    assert_eq!(
        document["explanation"]["access"]["steps"][2]["part"],
        "silent"
    );
}

#[test]
fn one_who_never_came_and_one_who_is_stopped() {
    let shell = Shell::seeded();
    insta::assert_snapshot!(shell.ok("--local explain stranger legacy-model").stdout);
    insta::assert_snapshot!(
        shell
            .ok("--local explain user-456 legacy-model -o markdown")
            .stdout
    );
}

#[test]
fn what_is_not_there_is_one_clear_line() {
    let shell = Shell::new();
    let said = shell.run("--local explain user-123 gpt-4");
    assert_eq!(said.code, 1);
    insta::assert_snapshot!(said.stderr, @r#"error: there is no embedded store at .zae-limits/local.db: `zae-limits --local apply -f PATH` makes one"#);
    shell.ok("--local local seed");
    let said = shell.run("--local -N nobody explain user-123 gpt-4");
    assert_eq!(said.code, 1);
    insta::assert_snapshot!(said.stderr, @r#"error: namespace "nobody" is not registered in table rate-limits (.zae-limits/local.db): use one of "tenant-alpha", or apply its manifest first"#);
    let said = shell.run("--local -n other explain user-123 gpt-4");
    assert_eq!(said.code, 1);
    insta::assert_snapshot!(said.stderr, @r#"error: could not look at the table: table other does not exist (.zae-limits/local.db): check the table's name, the region and the account"#);
}
