//! The README's session, end to end, and what a reader may try next.

use super::{Shell, exists, redact, said};
use std::process::{Command, Stdio};

/// The README's session: each command with what it prints.
fn session() -> Vec<(&'static str, &'static str)> {
    let readme = include_str!("../../../README.md");
    let (_, block) = readme.split_once("```console\n$ ").expect("a session");
    let (block, _) = block.split_once("\n```").expect("its end");
    let step = |step: &'static str| step.split_once('\n').unwrap_or((step, ""));
    block.split("\n$ ").map(step).collect()
}

#[test]
fn the_readme_shows_what_its_commands_print() {
    let shell = Shell::new();
    let session = session();
    assert!(session.len() > 3, "{session:#?}");
    for (line, printed) in session {
        let line = line.replace("cargo run -- ", "\"$ZAE_LIMITS\" ");
        let mut command = Command::new("sh");
        command
            .args(["-ec", &line])
            .current_dir(shell.folder.path())
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", shell.folder.path())
            .env("ZAE_LIMITS", env!("CARGO_BIN_EXE_zae-limits"))
            .stdin(Stdio::null());
        let said = said(command);
        assert_eq!(said.code, 0, "{line}: {said:?}");
        assert_eq!(
            redact(said.stdout.trim_end()),
            redact(printed.trim_end()),
            "{line}"
        );
    }
}

#[test]
fn apply_seed_disable_and_explain() {
    let shell = Shell::new();
    insta::assert_snapshot!(shell.ok("--local apply -f manifests/ --yes").redacted());
    insta::assert_snapshot!(shell.ok("--local local seed").stdout, @"tenant-alpha: 4 entities and 10 buckets made");

    let again = shell.ok("--local plan -f manifests/ --detailed-exitcode");
    insta::assert_snapshot!(again.stdout, @"tenant-alpha  (table rate-limits, .zae-limits/local.db)  no changes, 7 unchanged");

    shell.edit("  gpt-4:\n", "  gpt-4:\n    disabled: true\n");
    insta::assert_snapshot!(
        shell
            .ok("--local plan -f manifests/ --count-buckets")
            .stdout
    );
    insta::assert_snapshot!(shell.ok("--local apply -f manifests/ --yes").redacted());
    insta::assert_snapshot!(shell.ok("--local explain user-123 gpt-4").redacted());
    insta::assert_snapshot!(shell.ok("--local explain user-789 gpt-4").redacted());
}

#[test]
fn seeded_buckets_already_carry_what_their_resolution_demands() {
    let shell = Shell::seeded();
    for (entity, resource, mode) in [
        ("user-123", "gpt-4", "bypass"),
        ("user-456", "legacy-model", "enforce"),
        ("user-789", "legacy-model", "disabled"),
        ("org-1", "gpt-4", "enforce"),
    ] {
        let explained = shell.json(&format!("--local explain {entity} {resource}"), 0);
        let explanation = &explained["explanation"];
        assert_eq!(explanation["access"]["mode"], mode);
        let shards = explanation["shards"].as_array().expect("shards");
        assert!(!shards.is_empty(), "{entity} has buckets of {resource}");
        for shard in shards {
            assert_eq!(shard["verdict"], "match", "{entity} {resource}: {shard}");
        }
    }
}

#[test]
fn a_full_apply_over_the_seed_stamps_every_bucket_and_changes_no_level() {
    let shell = Shell::seeded();
    let document = shell.json("--local apply -f manifests --yes --full --settle 0", 0);
    let report = &document["reports"][0];
    assert_eq!(report["status"], "applied");
    assert_eq!(report["updated"], 0);
    assert!(report["stamped"].as_u64().expect("a count") > 0);
}

#[test]
fn seeding_twice_changes_nothing() {
    let shell = Shell::seeded();
    insta::assert_snapshot!(
        shell.ok("--local local seed").stdout,
        @"tenant-alpha: 0 entities and 0 buckets made, 14 there already"
    );
}

#[test]
fn a_plan_without_a_store_leaves_none() {
    let shell = Shell::new();
    let planned = shell.run("--local plan -f manifests --detailed-exitcode");
    assert_eq!(planned.code, 2);
    insta::assert_snapshot!(planned.stdout);
    assert!(!exists(&shell.path(".zae-limits")));
    assert_eq!(shell.run("--local apply -f manifests").code, 64);
    assert!(
        !exists(&shell.path(".zae-limits")),
        "what cannot be confirmed makes nothing"
    );
}

#[test]
fn a_local_store_is_where_it_is_said_to_be() {
    let shell = Shell::new();
    shell.ok("--local=some/where.db -n other apply -f manifests --yes --settle 0");
    assert!(exists(&shell.path("some/where.db")));
    let plan = shell.ok("plan --local=some/where.db -n other -f manifests");
    insta::assert_snapshot!(plan.stdout, @"tenant-alpha  (table other, some/where.db)  no changes, 7 unchanged");
    // Another table of that file is an empty one.
    let plan = shell.ok("plan --local=some/where.db -f manifests");
    assert!(plan.stdout.contains("7 to create"), "{plan:?}");
}
