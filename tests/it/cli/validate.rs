//! `validate`, and how manifests are found.

use super::Shell;
use std::io::Write;
use std::process::Stdio;

const WRONG: &str = "\
namespace: tenant-beta
resources:
  gpt-4:
    disabled: off
    limits:
      rpm: { capacity: 0, burts: 3 }
";

#[test]
fn every_problem_of_every_file_in_every_format() {
    let shell = Shell::new();
    shell.ok("validate");
    shell.write("manifests/wrong.limits.yaml", WRONG);
    shell.write("manifests/worse.limits.yml", "namespace: [\n");
    let said = shell.run("validate");
    assert_eq!(said.code, 65);
    insta::assert_snapshot!(said.stdout);
    insta::assert_snapshot!(shell.run("validate --format github").stdout);
    insta::assert_snapshot!(shell.run("validate -o markdown").stdout);
    let document = shell.json("validate", 65);
    assert_eq!(document["valid"], false);
    assert_eq!(document["problems"], document["error"]["problems"]);
    assert_eq!(shell.run("validate --format json").json(), document);
}

/// What a file is called reaches neither the terminal nor the fields beside it, and GitHub still
/// finds the file.
#[test]
fn an_annotation_holds_no_name_that_acts() {
    let shell = Shell::new();
    let name = "a,b:c%d\u{1b}[31m\u{202e}e\n::error::forged\r\u{9b}é\u{301}.yaml";
    shell.write(name, "namespace: a\nsystm: {}\n");
    let said = shell.run_all(&["validate", "--format", "github", name]);
    assert_eq!(said.code, 65);
    insta::assert_snapshot!(said.stdout, @r#"::error file=a%2Cb%3Ac%25d\u{1b}[31m\u{202e}e%0A%3A%3Aerror%3A%3Aforged%0D\u{9b}é́.yaml,line=2,col=1::systm: unknown key "systm" (did you mean `system`?)"#);
}

#[test]
fn what_is_valid_says_so() {
    let shell = Shell::new();
    let said = shell.ok("validate manifests/tenant-alpha.limits.yaml");
    insta::assert_snapshot!(said.stdout, @"tenant-alpha: valid, 7 levels");
    let document = shell.json("validate", 0);
    assert_eq!(document["manifests"][0]["namespace"], "tenant-alpha");
    assert_eq!(shell.ok("validate --format github").stdout, "");
}

#[test]
fn a_folder_without_manifests_and_a_file_that_is_not_there_say_so() {
    let shell = Shell::new();
    shell.write("empty/readme.yaml", "a: b");
    for (line, expected) in [
        ("validate empty", "empty holds no manifest"),
        ("--local plan -f empty", "empty holds no manifest"),
        (
            "validate nowhere.yaml",
            "could not read nowhere.yaml: No such file",
        ),
    ] {
        let said = shell.run(line);
        assert_eq!(said.code, 1, "{line}");
        assert!(said.stderr.contains(expected), "{line}: {said:?}");
        assert_eq!(said.stderr.lines().count(), 1, "{line}: {said:?}");
    }
    let said = shell.run_all(&["validate", "no\nwhere"]);
    assert_eq!(
        said.stderr.lines().count(),
        1,
        "a path is one line: {said:?}"
    );
}

/// Whoever puts a link, a pipe or a folder there believes that it is applied.
#[test]
fn what_is_called_like_a_manifest_and_is_no_file_is_refused_by_name() {
    let shell = Shell::new();
    let folder = shell.path("manifests");
    std::os::unix::fs::symlink("nowhere.yaml", folder.join("lost.limits.yaml")).expect("a link");
    std::os::unix::fs::symlink("../good", folder.join("linked.limits.yaml")).expect("a link");
    shell.write("good", "namespace: linked\n");
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.join("pipe.limits.yml"), mode).expect("a FIFO");
    shell.write(
        "manifests/tenants.limits.yaml/a.limits.yaml",
        "namespace: a\n",
    );
    std::os::unix::fs::symlink("nowhere", folder.join("notes.md")).expect("a link");
    for line in [
        "validate",
        "--local plan -f manifests",
        "--local apply -f manifests --yes",
    ] {
        let said = shell.run(line);
        assert_eq!((said.code, said.stdout.as_str()), (1, ""), "{line}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(said.stderr, @r"
        error: manifests/lost.limits.yaml is a link to a file that is not there: mend the link, or remove it
        error: manifests/pipe.limits.yml is a pipe, a socket or a device: name it as a PATH of its own, or remove it
        error: manifests/tenants.limits.yaml is a folder, and folders in folders are not searched: name it as a PATH of its own, or rename it
        ");
        }
        let document = shell.json(line, 1);
        assert_eq!(document["error"]["kind"], "error", "{line}");
    }
    for name in ["lost.limits.yaml", "pipe.limits.yml"] {
        std::fs::remove_file(folder.join(name)).expect("removed");
    }
    std::fs::rename(folder.join("tenants.limits.yaml"), shell.path("tenants")).expect("renamed");
    // A link to a file is that file.
    let said = shell.ok("validate manifests tenants");
    insta::assert_snapshot!(said.stdout, @r"
        linked: valid, 0 levels
        tenant-alpha: valid, 7 levels
        a: valid, 0 levels
        ");
}

#[test]
fn a_manifest_may_come_from_a_pipe() {
    let shell = Shell::new();
    let mut command = shell.command(["validate", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("its stdin");
    stdin.write_all(WRONG.as_bytes()).expect("written");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(65));
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(
        stdout.starts_with("<stdin>:4:15: resources.gpt-4.disabled:"),
        "{stdout}"
    );
}

#[test]
fn a_file_above_the_limit_is_refused_before_it_is_read() {
    let shell = Shell::new();
    let file = std::fs::File::create(shell.path("big.limits.yaml")).expect("a file");
    // Sparse: far larger than what may be read, and no time is spent on writing it.
    file.set_len(64 * 1024 * 1024 * 1024).expect("a size");
    let said = shell.run("validate big.limits.yaml");
    assert_eq!(said.code, 65);
    insta::assert_snapshot!(said.stdout, @"big.limits.yaml: the file is larger than 32 MiB (split it, one namespace each)");
}

/// As many lines as problems, and as many problems in one line: a walk of the file for each of them
/// would take minutes.
#[test]
fn twenty_thousand_problems_are_each_shown_in_their_place() {
    let shell = Shell::new();
    let each = |entry: fn(usize) -> String, between: &str| {
        (0..10_000).map(entry).collect::<Vec<_>>().join(between)
    };
    let tall = each(|index| format!("  r{index}:\n    wrong: ü"), "\n");
    let wide = each(|index| format!("r{index}: {{ wrong: ü }}"), ", ");
    shell.write(
        "tall.yaml",
        &format!("namespace: tall\nresources:\n{tall}\n"),
    );
    shell.write(
        "wide.yaml",
        &format!("namespace: wide\nresources: {{ {wide} }}\n"),
    );
    let said = shell.run("validate tall.yaml wide.yaml");
    assert_eq!(said.code, 65);
    assert_eq!(said.stderr, "20,000 problems\n");
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(lines.len(), 60_000);
    for finding in lines.chunks(3) {
        let mark = finding[2].chars().count() - 1;
        let (before, at) = finding[1].split_at(finding[1].char_indices().nth(mark).expect("it").0);
        assert!(at.starts_with("wrong: ü"), "{finding:?}");
        // The resource that is named is the one that is shown.
        let (_, name) = finding[0].split_once(" resources.").expect("a path");
        let (name, _) = name.split_once('.').expect("a name");
        let tall = finding[0].starts_with("tall.yaml:");
        assert!(
            tall || before.ends_with(&format!(" {name}: {{ ")),
            "{finding:?}"
        );
    }
}
