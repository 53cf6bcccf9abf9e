//! What a report says that stamps mean: who is stopped now, and who is let through.

use super::Shell;

/// The lines about fan-outs of an apply.
fn effects(shell: &Shell, flags: &str) -> String {
    let line = format!("--local apply -f manifests --yes --settle 0 {flags}");
    let said = shell.ok(&line).stdout;
    let (_, report) = said.split_once(": applied").expect("a report");
    let lines = report.lines().filter(|line| line.starts_with("    "));
    lines.map(str::trim).collect::<Vec<_>>().join("\n")
}

const DEFAULT: &str = "  user-456:\n    resources:\n      _default_:\n        disabled: true\n";

#[test]
fn a_switch_of_all_resources_says_whom_it_stopped_and_whom_it_did_not() {
    let shell = Shell::seeded();
    shell.edit("  user-456:\n    resources:\n", DEFAULT);
    insta::assert_snapshot!(effects(&shell, ""), @"entity user-456/_default_: stopped 1 bucket, enabled 1 bucket");
    shell.edit("        disabled: true\n", "        disabled: bypass\n");
    insta::assert_snapshot!(effects(&shell, ""), @"entity user-456/_default_: bypassed the limits of 1 bucket, enabled 1 bucket");
    shell.edit("      _default_:\n        disabled: bypass\n", "");
    let document = shell.json("--local apply -f manifests --yes --settle 0", 0);
    let fanout = &document["reports"][0]["fanouts"][0];
    assert_eq!(fanout["target"], "user-456/_default_");
    assert_eq!(fanout["modes"], serde_json::json!({ "enforce": 2 }));
}

#[test]
fn a_full_apply_says_what_its_stamps_mean_and_its_plan_that_it_runs() {
    let shell = Shell::seeded();
    let plan = shell.ok("--local plan -f manifests --full");
    insta::assert_snapshot!(plan.stdout, @r"
        tenant-alpha  (table rate-limits, .zae-limits/local.db)  no level changes; 19 fan-outs will run, 7 unchanged

        Fan-outs: 6 access, 6 cascade, 4 soft, 3 params. Takes effect when apply returns.
        ");
    insta::assert_snapshot!(effects(&shell, "--full"), @r"
        system: soft brought to 0 buckets; 10 others follow a more specific level
        resource claude-3: enabled 2 buckets
        resource claude-3: cascade brought to 2 buckets
        resource claude-3: soft brought to 0 buckets; 2 others follow a more specific level
        resource gpt-4: enabled 4 buckets; 2 others follow a more specific level
        resource gpt-4: cascade brought to 6 buckets
        resource gpt-4: soft brought to 0 buckets; 6 others follow a more specific level
        resource legacy-model: stopped 1 bucket; 1 other follows a more specific level
        resource legacy-model: cascade brought to 2 buckets
        resource legacy-model: soft brought to 0 buckets; 2 others follow a more specific level
        entity user-123/_default_: bypassed the limits of 2 buckets, enabled 1 bucket
        entity user-123/_default_: cascade brought to 3 buckets
        entity user-123/_default_: params brought to 3 buckets
        entity user-123/gpt-4: bypassed the limits of 2 buckets
        entity user-123/gpt-4: cascade brought to 2 buckets
        entity user-123/gpt-4: params brought to 2 buckets
        entity user-456/legacy-model: enabled 1 bucket
        entity user-456/legacy-model: cascade brought to 1 bucket
        entity user-456/legacy-model: params brought to 1 bucket
        ");
}

#[test]
fn one_bucket_follows_and_two_follow() {
    let shell = Shell::seeded();
    shell.edit("        disabled: false\n", "");
    insta::assert_snapshot!(effects(&shell, ""), @"entity user-456/legacy-model: 1 bucket follows the next level again");
    shell.edit("        disabled: bypass\n", "");
    insta::assert_snapshot!(effects(&shell, ""), @"entity user-123/gpt-4: 2 buckets follow the next level again");
}
