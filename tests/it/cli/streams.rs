//! Which stream carries what, and what never reaches a terminal.

use super::{Shell, exists, said};
use std::io::Read;
use std::process::Stdio;

#[test]
fn a_success_in_json_is_one_document_on_stdout() {
    let shell = Shell::new();
    for line in [
        "validate",
        "--local plan -f manifests",
        "--local apply -f manifests --yes --settle 0",
        "--local local seed",
        "--local plan -f manifests --count-buckets --full",
        "--local explain user-123 gpt-4",
        "--local local reset --yes",
        "--local local reset --yes",
    ] {
        let said = shell.ok(&format!("-o json {line}"));
        assert!(said.json().get("error").is_none(), "{line}");
        assert_eq!(said.stderr, "", "{line}");
    }
}

#[test]
fn a_failure_in_json_is_one_document_on_stdout_too() {
    let shell = Shell::new();
    shell.write("bad.yaml", "namespace: a\nsystem: { disabled: true }\n");
    for (line, code, kind) in [
        ("validate bad.yaml", 65, "manifest"),
        ("--local apply -f bad.yaml --yes", 65, "manifest"),
        ("--local apply -f nowhere.yaml --yes", 1, "error"),
        ("--local explain user-1 gpt-4", 1, "error"),
        ("--local apply -f manifests", 64, "usage"),
        ("--local local reset", 64, "usage"),
        ("frobnicate", 64, "usage"),
    ] {
        if line == "--local local reset" {
            shell.ok("--local local seed");
        }
        let document = shell.json(line, code);
        assert_eq!(document["error"]["kind"], kind, "{line}");
        assert_eq!(document["error"]["exit_code"], code, "{line}");
        assert!(document["error"]["message"].is_string(), "{line}");
    }
}

#[test]
fn no_escape_byte_reaches_a_pipe_and_no_color_wins() {
    let shell = Shell::seeded();
    shell.edit("  gpt-4:\n", "  gpt-4:\n    disabled: true\n");
    for line in [
        "--help",
        "nonsense",
        "--local plan -f manifests",
        "--local explain user-123 gpt-4",
        "validate nowhere",
    ] {
        let quiet = shell.run(line);
        assert!(!quiet.stdout.contains('\u{1b}'), "{line}: {quiet:?}");
        assert!(!quiet.stderr.contains('\u{1b}'), "{line}: {quiet:?}");
    }
    let colours = shell.ok("--local --color always plan -f manifests");
    assert!(colours.stdout.contains("\u{1b}["), "{colours:?}");
    let mut command = shell.command(["--local", "--color", "always", "plan", "-f", "manifests"]);
    command.env("NO_COLOR", "1");
    assert!(!said(command).stdout.contains('\u{1b}'), "NO_COLOR wins");
}

#[test]
fn a_closed_pipe_is_quiet_and_what_was_begun_is_finished() {
    let shell = Shell::new();
    let mut command = shell.command("--local apply -f manifests --yes --settle 0".split(' '));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    drop(child.stdout.take());
    let mut stderr = String::new();
    let mut stream = child.stderr.take().expect("its stderr");
    stream.read_to_string(&mut stderr).expect("UTF-8");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{stderr}");
    assert_eq!(stderr, "");
    assert!(exists(&shell.path(".zae-limits/local.db")));
    assert_eq!(
        shell
            .run("--local plan -f manifests --detailed-exitcode")
            .code,
        0
    );
}

#[test]
fn names_forge_neither_an_escape_nor_a_row() {
    let shell = Shell::new();
    shell.write(
        "forged.yaml",
        "namespace: \"a|b`c` [x](http://e) <img> @team \u{202e}drow\"\nsystem: { limits: { rpm: { capacity: 1 } } }\n",
    );
    let markdown = shell.ok("--local plan -f forged.yaml -o markdown");
    insta::assert_snapshot!(markdown.stdout);
    let text = shell.ok("--local plan -f forged.yaml");
    assert!(!text.stdout.contains('\u{202e}'), "{text:?}");
    assert!(text.stdout.contains("\\u{202e}drow"), "{text:?}");

    shell.write("\u{1b}[31mred.yaml", "namespace: a\nsystm: {}\n");
    for arguments in [
        &["validate", "\u{1b}[31mred.yaml"][..],
        &["validate", "--format", "github", "\u{1b}[31mred.yaml"],
        &["validate", "no\u{1b}[2Jwhere"],
        &["\u{1b}[2J"],
        &["--local", "explain", "\u{1b}[2J", "gpt-4"],
        &["--local", "-N", "x\u{1b}[2J", "plan", "-f", "manifests"],
        &[
            "-n",
            "\u{1b}[2J",
            "--region",
            "r",
            "plan",
            "-f",
            "manifests",
        ],
    ] {
        let said = shell.run_all(arguments);
        assert_ne!(said.code, 0, "{arguments:?}");
        assert!(!said.stdout.contains('\u{1b}'), "{arguments:?}: {said:?}");
        assert!(!said.stderr.contains('\u{1b}'), "{arguments:?}: {said:?}");
    }
}

#[test]
fn quiet_says_nothing_beside_the_answer() {
    let shell = Shell::new();
    shell.write(
        "warned.yaml",
        "namespace: a\nresources: { gpt-4: { disabled: bypass } }\n",
    );
    let loud = shell.ok("--local plan -f warned.yaml");
    assert!(loud.stderr.starts_with("warning: warned.yaml:"), "{loud:?}");
    let quiet = shell.ok("--local -q plan -f warned.yaml");
    assert_eq!(quiet.stderr, "");
    assert_eq!(quiet.stdout, loud.stdout);
}
