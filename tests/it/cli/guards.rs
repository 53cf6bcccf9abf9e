//! Exit codes of an apply that is not carried out, and what it says about it.

use super::{EXAMPLE, Shell, without_id};
use crate::fixture::more_limits_than_an_item_holds;
use aws_sdk_dynamodb::types::AttributeValue;
use std::path::Path;
use zae_limits::clock::Clock;
use zae_limits::fanout::Settings;
use zae_limits::manifest::parse_yaml;
use zae_limits::model::{EpochMs, FanoutKind, Level, ManifestOwner, Owed, ResourceName};
use zae_limits::plan::{PlanOptions, Policy};
use zae_limits::reconcile::{ApplyOptions, apply, prepare};
use zae_limits::store::{Claim, Embedded, Place, Store};

/// The store of a shell, for what the command line has no way to do.
fn store(path: &Path) -> Store {
    let embedded = Embedded::file(path).expect("the store");
    let place = Place {
        table: "rate-limits".to_owned(),
        host: embedded.host(),
    };
    Store::new(embedded.client(), place)
}

#[test]
fn an_empty_manifest_is_refused_with_the_flag_that_allows_it() {
    let shell = Shell::seeded();
    shell.write("empty.limits.yaml", "namespace: tenant-alpha\n");
    let refused = shell.run("--local apply -f empty.limits.yaml --yes");
    assert_eq!(refused.code, 3);
    insta::assert_snapshot!(refused.stderr, @r#"error: tenant-alpha: refused: the manifest declares nothing, and the namespace manages 7 levels: all would be deleted; allow it with --allow-empty"#);
    // Once, and on the stream of errors; the answer is the plan.
    assert!(refused.stdout.contains("7 to delete"), "{refused:?}");
    for line in [
        "--local apply -f empty.limits.yaml --yes",
        "--local apply -f empty.limits.yaml --yes -o markdown",
    ] {
        let refused = shell.run(line);
        assert!(!refused.stdout.contains("refuses"), "{refused:?}");
        assert_eq!(refused.stderr.matches("refused").count(), 1, "{refused:?}");
    }
    let planned = shell.ok("--local plan -f empty.limits.yaml");
    insta::assert_snapshot!(planned.stdout);
    let document = shell.json("--local apply -f empty.limits.yaml --yes", 3);
    assert_eq!(document["error"]["kind"], "refused");
    assert_eq!(
        document["error"]["refusals"][0]["allowed_by"],
        "--allow-empty"
    );
    assert_eq!(document["plans"][0]["deleted"], 7);
    shell.ok("--local apply -f empty.limits.yaml --yes --allow-empty --settle 0");
}

#[test]
fn one_level_is_one() {
    let shell = Shell::new();
    shell.write(
        "a.yaml",
        "namespace: a\nresources: { gpt-4: { disabled: true } }\n",
    );
    shell.ok("--local apply -f a.yaml --yes --settle 0");
    shell.write("a.yaml", "namespace: a\n");
    let refused = shell.run("--local apply -f a.yaml --yes");
    assert!(refused.stderr.contains("manages 1 level:"), "{refused:?}");
}

#[test]
fn many_deletes_are_refused_with_their_number() {
    let shell = Shell::seeded();
    shell.write(
        "few.limits.yaml",
        "namespace: tenant-alpha\nresources: { gpt-4: { limits: { rpm: { capacity: 1000 } } } }\n",
    );
    let refused = shell.run("--local apply -f few.limits.yaml --yes");
    assert_eq!(refused.code, 3);
    insta::assert_snapshot!(refused.stderr, @r#"error: tenant-alpha: refused: 6 of 7 managed levels would be deleted, and at most 3 may be; allow it with --max-delete 6"#);
    assert_eq!(
        shell
            .run("--local apply -f few.limits.yaml --yes --max-delete 5")
            .code,
        3
    );
    shell.ok("--local apply -f few.limits.yaml --yes --max-delete 6 --settle 0");
}

#[tokio::test]
async fn a_namespace_of_a_stack_is_refused_until_it_is_adopted() {
    let shell = Shell::new();
    shell.ok("--local local seed -N other");
    let store = store(&shell.path(".zae-limits/local.db"));
    let manifest = parse_yaml("example", EXAMPLE.as_bytes()).expect("the example");
    let plan = prepare(&store, &manifest, None, PlanOptions::default())
        .await
        .expect("a plan");
    let owner = ManifestOwner::Stack {
        stack_id: "arn:aws:cloudformation:eu-central-1:123456789012:stack/limits/1".to_owned(),
        logical_id: "TenantAlpha".to_owned(),
    };
    let guarded = plan
        .guard(&Policy::strict(owner))
        .expect("nobody owns it yet");
    let options = ApplyOptions {
        fanout: Settings {
            settle: std::time::Duration::ZERO,
            ..Settings::default()
        },
        ..ApplyOptions::default()
    };
    apply(&store, &Clock::system(), &guarded, &options, &())
        .await
        .expect("applied");

    let refused = shell.run("--local apply -f manifests --yes");
    assert_eq!(refused.code, 3);
    insta::assert_snapshot!(refused.stderr, @r#"error: tenant-alpha: refused: the namespace is managed by resource "TenantAlpha" of stack "arn:aws:cloudformation:eu-central-1:123456789012:stack/limits/1"; allow it with --adopt"#);
    shell.ok("--local apply -f manifests --yes --adopt --settle 0");
    shell.ok("--local apply -f manifests --yes --settle 0");
}

#[test]
fn a_saved_plan_is_applied_as_reviewed_or_not_at_all() {
    let shell = Shell::seeded();
    shell.edit("capacity: 1000 }", "capacity: 1100 }");
    let saved = shell.ok("--local plan -f manifests --out review.plan");
    assert!(
        saved.stderr.contains("apply --plan review.plan"),
        "{saved:?}"
    );
    shell.edit("capacity: 1100 }", "capacity: 1200 }");
    shell.ok("--local apply -f manifests --yes --settle 0");

    let stale = shell.run("--local apply --plan review.plan --yes");
    assert_eq!(stale.code, 4);
    assert!(
        stale.stderr.contains("changed since the plan was saved"),
        "{stale:?}"
    );
    assert!(!stale.stdout.contains("it was"), "said once: {stale:?}");
    assert_eq!(stale.stderr.lines().count(), 1, "{stale:?}");
    assert_eq!(
        shell.json("--local apply --plan review.plan --yes", 4)["error"]["kind"],
        "stale"
    );

    shell.ok("--local plan -f manifests --out review.plan");
    shell.ok("--local apply --plan review.plan --settle 0");
    let elsewhere = shell.run("--local -n other apply --plan review.plan --yes");
    assert_eq!(elsewhere.code, 64, "{elsewhere:?}");
    shell.write("not.plan", "{}");
    assert_eq!(shell.run("--local apply --plan not.plan --yes").code, 1);
}

/// A level above what an item holds is refused by the table; its buckets follow the old one.
#[test]
fn a_switch_that_was_not_written_has_stopped_nothing() {
    let shell = Shell::seeded();
    let limits = more_limits_than_an_item_holds();
    let huge = format!("  claude-3:\n    disabled: true\n    limits: {limits}\n  spare:\n");
    let manifest = EXAMPLE.replacen("  claude-3:\n", &huge, 1);
    shell.write("manifests/tenant-alpha.limits.yaml", &manifest);
    for format in ["text", "markdown"] {
        let partial = shell.run(&format!(
            "--local apply -f manifests --yes --settle 0 -o {format}"
        ));
        assert_eq!(partial.code, 5);
        let (_, report) = partial
            .stdout
            .split_once("partly applied")
            .expect("a report");
        assert!(
            report.contains("2 buckets stamped as before: the level was not written"),
            "{report}"
        );
        assert!(!report.contains("stopped"), "{report}");
    }
}

#[test]
fn a_plan_that_cannot_be_saved_is_one_answer() {
    let shell = Shell::seeded();
    let failed = shell.json("--local plan -f manifests --out .", 1);
    assert_eq!(failed["command"], "plan");
    assert!(failed["error"]["message"].is_string(), "{failed}");
}

#[tokio::test]
async fn what_another_apply_holds_is_done_as_well() {
    let shell = Shell::seeded();
    let store = store(&shell.path(".zae-limits/local.db"));
    let names = store.namespace_names().await.expect("names");
    let name = names.first().expect("a namespace");
    let ns = store
        .namespace_id(name)
        .await
        .expect("a look-up")
        .expect("an id");
    let now = Clock::system().now();
    let claim = Claim {
        token: "another".to_owned(),
        lease: EpochMs(now.0 + 600_000),
        full: false,
        now,
    };
    let owed = Owed {
        level: Level::Resource(ResourceName::parse("claude-3").expect("a name")),
        kind: FanoutKind::Access,
    };
    store
        .write_ahead(&ns, &[owed], &claim)
        .await
        .expect("recorded");
    drop(store);

    let done = shell.run("--local apply -f manifests --yes --settle 0");
    assert_eq!(done.code, 0, "{done:?}");
    insta::assert_snapshot!(done.redacted());
}

#[tokio::test]
async fn a_bucket_that_cannot_be_stamped_is_partly_applied() {
    let shell = Shell::seeded();
    let path = shell.path(".zae-limits/local.db");
    let embedded = Embedded::file(&path).expect("the store");
    let ns = {
        let store = store(&path);
        let names = store.namespace_names().await.expect("names");
        let name = names.first().expect("a namespace").clone();
        store
            .namespace_id(&name)
            .await
            .expect("a look-up")
            .expect("an id")
    };
    let mut put = embedded.client().put_item().table_name("rate-limits");
    for (name, value) in [
        ("PK", format!("{ns}/BUCKET#no body#claude-3#0")),
        ("SK", "#STATE".to_owned()),
        ("GSI2PK", format!("{ns}/RESOURCE#claude-3")),
        ("GSI2SK", "BUCKET#no body#0".to_owned()),
    ] {
        put = put.item(name, AttributeValue::S(value));
    }
    put.send().await.expect("a put");
    drop(embedded);

    let disabled = EXAMPLE.replacen("  claude-3:\n", "  claude-3:\n    disabled: true\n", 1);
    shell.write("manifests/tenant-alpha.limits.yaml", &disabled);
    let partial = shell.run("--local apply -f manifests --yes --settle 0");
    assert_eq!(partial.code, 5, "{partial:?}");
    insta::assert_snapshot!(without_id(&partial.redacted(), ns.as_str()));
    assert_eq!(
        shell.json("--local apply -f manifests --yes --settle 0", 5)["status"],
        "partial"
    );
}

#[test]
fn wrong_usage_is_64_and_never_reaches_a_table() {
    let shell = Shell::new();
    for line in [
        "",
        "local",
        "help nonsense",
        "nonsense",
        "plan",
        "apply",
        "plan -f manifests",
        "--local --region eu-central-1 plan -f manifests",
        "--local plan -f manifests -N tenant-beta",
        "--local plan -f manifests -N _",
        "--local explain user-1",
        "--local explain us#er gpt-4",
        "--local explain user-1 _default_",
        "--local apply -f manifests --plan x --yes",
        "--local apply -f manifests --yes --settle soon",
        "--local apply -f manifests --yes --concurrency 0",
        "--endpoint-url http://127.0.0.1:1 local seed",
    ] {
        let said = shell.run(line);
        assert_eq!(said.code, 64, "{line}: {said:?}");
        assert_eq!(said.stdout, "", "{line}");
        assert!(said.stderr.starts_with("error: "), "{line}: {said:?}");
        assert_eq!(said.stderr.matches("error:").count(), 1, "{line}: {said:?}");
        if !line.is_empty() {
            assert_eq!(shell.json(line, 64)["error"]["exit_code"], 64);
        }
    }
    for line in [
        "--local apply -f manifests",
        "--local --no-input apply -f manifests",
    ] {
        let said = shell.run(line);
        assert_eq!(said.code, 64, "{said:?}");
        assert!(said.stderr.contains("pass --yes"), "{said:?}");
    }
    assert!(!shell.path(".zae-limits").exists());
}

#[test]
fn help_and_version_are_answers() {
    let shell = Shell::new();
    for line in [
        "--help",
        "-h",
        "help",
        "plan --help",
        "local --help",
        "help apply",
    ] {
        let said = shell.ok(line);
        assert_eq!(said.stderr, "", "{line}");
        assert!(said.stdout.contains("Usage:"), "{line}: {said:?}");
    }
    // Each flag under what it is about.
    let help = shell.ok("apply --help").stdout;
    let heading = |flag: &str| {
        let (before, _) = help.split_once(flag).expect("the flag");
        let headings = before.lines().rev();
        let mut headings = headings.filter(|line| line.ends_with(':') && !line.starts_with(' '));
        headings.next().expect("a heading").to_owned()
    };
    for (flag, expected) in [
        ("--yes", "Options:"),
        ("--full", "Options:"),
        ("--out-of-band", "Options:"),
        ("--max-delete", "Guards:"),
        ("--adopt", "Guards:"),
        ("--settle", "Fan-outs:"),
        ("--concurrency", "Fan-outs:"),
        ("--no-input", "Global options:"),
    ] {
        assert_eq!(heading(&format!(" {flag}")), expected, "{flag}");
    }
    let version = shell.ok("--version");
    assert_eq!(
        version.stdout,
        format!("zae-limits {}\n", env!("CARGO_PKG_VERSION"))
    );
    assert!(shell.ok("completions bash").stdout.contains("zae-limits"));
}

#[test]
fn several_manifests_are_all_valid_or_nothing_is_applied() {
    let shell = Shell::new();
    shell.write(
        "manifests/b.limits.yml",
        "namespace: tenant-beta\nsystem: { limits: { rpm: { capacity: 0 } } }\n",
    );
    let said = shell.run("--local apply -f manifests --yes");
    assert_eq!(said.code, 65);
    insta::assert_snapshot!(said.stderr, @r#"error: manifests/b.limits.yml:2:38: system.limits.rpm.capacity: must be at least 1, found 0"#);
    assert!(!shell.path(".zae-limits").exists());

    shell.write(
        "manifests/b.limits.yml",
        "namespace: tenant-beta\nsystem: { limits: { rpm: { capacity: 1 } } }\n",
    );
    let document = shell.json("--local apply -f manifests --yes --settle 0", 0);
    let namespaces: Vec<_> = document["reports"]
        .as_array()
        .expect("reports")
        .iter()
        .map(|report| report["plan"]["namespace"].as_str().expect("a name"))
        .collect();
    assert_eq!(namespaces, ["tenant-beta", "tenant-alpha"]);

    let document = shell.json("--local plan -f manifests -N tenant-beta", 0);
    assert_eq!(document["plans"].as_array().expect("plans").len(), 1);
    let ambiguous = shell.run("--local explain user-1 gpt-4");
    assert_eq!(ambiguous.code, 64);
    insta::assert_snapshot!(ambiguous.stderr, @r#"error: which namespace? pass --namespace with one of "tenant-alpha", "tenant-beta""#);
}
