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

/// Instants that a run of the binary takes from the clock.
fn without_instants(text: &str) -> String {
    const SHAPE: &str = "dddd-dd-ddTdd:dd+dd:dd";
    let is_instant = |piece: &str| {
        let fits = |(c, shape): (char, char)| match shape {
            'd' => c.is_ascii_digit(),
            '+' => "+-".contains(c),
            shape => c == shape,
        };
        piece.chars().zip(SHAPE.chars()).all(fits)
    };
    let mut rest = text.to_owned();
    let places = rest.char_indices().map(|(place, _)| place);
    let places = places.filter(|place| {
        rest.get(*place..place + SHAPE.len())
            .is_some_and(is_instant)
    });
    for place in places.collect::<Vec<_>>().into_iter().rev() {
        rest.replace_range(place..place + SHAPE.len(), "INSTANT");
    }
    rest
}

#[test]
fn windows_and_resets_are_shown_with_what_holds_now() {
    let shell = Shell::new();
    shell.write(
        "manifests/tenant-alpha.limits.yaml",
        "
namespace: tenant-alpha
resources:
  gpt-4:
    limits:
      rpm:
        capacity: 100
        refill_amount: 25
        schedule:
          - { cron: '0 0 29 2 *', tz: Europe/Berlin, capacity: 900, refill_period_seconds: 30 }
      tpm:
        capacity: 1
        schedule:
          - { cron: '* * * * *', tz: Europe/Berlin, scale: 0.5 }
      daily: { capacity: 10000, reset_schedule: [{ cron: '0 0 * * *', tz: Europe/Berlin }] }
      never: { capacity: 3, reset_schedule: [{ cron: '30 2 25-31 3 */7', tz: Europe/Berlin }] }
      session: { capacity: 20, reset_after_seconds: 18000, soft: true }
",
    );
    shell.ok("--local apply -f manifests --yes --settle 0");
    let text = shell.ok("--local explain alice gpt-4").stdout;
    insta::assert_snapshot!(without_instants(&text));
    let markdown = shell.ok("--local explain alice gpt-4 -o markdown").stdout;
    insta::assert_snapshot!(without_instants(&markdown));
    let document = shell.json("--local explain alice gpt-4", 0);
    let limits = &document["explanation"]["limits"];
    assert_eq!(limits["zone"], "Europe/Berlin");
    let at = limits["at"].as_u64().expect("milliseconds");
    let daily = limits["now"][0]["next_reset"].as_u64().expect("a reset");
    assert!((1..=25 * 3_600_000).contains(&(daily - at)), "{limits}");
    assert_eq!(limits["now"][4]["in_force"]["capacity"], 0.5);
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
