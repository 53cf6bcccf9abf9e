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
fn whatever_is_wrong_with_the_words_json_that_was_asked_for_is_json() {
    let shell = Shell::new();
    for line in [
        "-o json",
        "-o json local",
        "-qo json plan",
        "-qvojson plan",
        "plan -o=json",
        "--output json plan --frobnicate",
        "--output=json apply -f x --settle soon",
        "validate -o json --format sarif",
        "-o json --local explain us#er gpt-4",
        "-o json -o json plan -f manifests",
        "-o json --color sometimes validate",
    ] {
        let said = shell.run(line);
        assert_eq!((said.code, said.stderr.as_str()), (64, ""), "{line}");
        let document = said.json();
        assert_eq!(document["error"]["kind"], "usage", "{line}");
    }
    for line in [
        "plan",
        "-o text plan",
        "-o",
        "-o jsn plan",
        "plan -- -o json",
    ] {
        let said = shell.run(line);
        assert_eq!((said.code, said.stdout.as_str()), (64, ""), "{line}");
        assert!(said.stderr.starts_with("error: "), "{line}: {said:?}");
    }
    // The format of the findings is that of the answer.
    let said = shell.run("validate --format json nowhere.yaml");
    assert_eq!((said.code, said.stderr.as_str()), (1, ""));
    assert_eq!(said.json()["error"]["kind"], "error");
}

#[test]
fn help_and_scripts_in_json_are_documents_too() {
    let shell = Shell::new();
    for (line, command, field, expected) in [
        ("--help -o json", "help", "text", "Usage:"),
        ("plan -h -o json", "help", "text", "Usage:"),
        ("-o json help apply", "help", "text", "Usage:"),
        (
            "-o json --version",
            "version",
            "text",
            env!("CARGO_PKG_VERSION"),
        ),
        (
            "-o json completions bash",
            "completions",
            "script",
            "zae-limits",
        ),
    ] {
        let said = shell.ok(line);
        assert_eq!(said.stderr, "", "{line}");
        let document = said.json();
        assert_eq!(document["command"], command, "{line}");
        let text = document[field].as_str().expect("a text");
        assert!(text.contains(expected), "{line}: {text}");
        assert!(!text.contains('\u{1b}'), "{line}");
    }
    assert_eq!(shell.json("completions fish", 0)["shell"], "fish");
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
