//! Ctrl-C, termination, and answers to a question: what needs a process that waits.

use super::{Running, Shell};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Stdio};

/// An apply that has written its levels and now waits long for its last pass.
fn waiting(shell: &Shell) -> (Running, BufReader<std::process::ChildStderr>) {
    shell.edit("  gpt-4:\n", "  gpt-4:\n    disabled: true\n");
    let line = "--local -v apply -f manifests --yes --settle 300";
    let mut command = shell.command(line.split(' '));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let stderr = BufReader::new(child.stderr.take().expect("its stderr"));
    (Running(child), stderr)
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("signalled");
}

/// Waits until the level that the test changes is in the table.
fn wait_for_the_write(shell: &Shell) {
    for _ in 0..200 {
        let explained = shell.json("--local explain user-789 gpt-4", 0);
        if explained["explanation"]["shards"][0]["shows"] == "disabled" {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("the bucket was never stamped");
}

#[test]
fn an_interrupted_apply_says_how_to_go_on_and_the_next_one_finishes() {
    for (sent, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let shell = Shell::seeded();
        let (mut apply, mut stderr) = waiting(&shell);
        wait_for_the_write(&shell);
        signal(&apply.0, sent);
        assert_eq!(apply.0.wait().expect("it ends").code(), Some(code));
        let mut said = String::new();
        stderr.read_to_string(&mut said).expect("UTF-8");
        assert!(
            said.contains("Run the same apply again to finish it."),
            "{said}"
        );

        let plan = shell.json("--local plan -f manifests", 0);
        assert_eq!(plan["plans"][0]["pending"][0]["target"], "gpt-4");
        let report = shell.json("--local apply -f manifests --yes --settle 0", 0);
        assert_eq!(report["reports"][0]["resumed"], 1, "{report}");
        assert_eq!(report["reports"][0]["pending"], 0);
        shell.ok("--local plan -f manifests --detailed-exitcode");
    }
}

/// The two ends of a terminal.
fn terminal() -> (File, File) {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&controller).expect("granted");
    unlockpt(&controller).expect("unlocked");
    let name = ptsname(&controller, Vec::new()).expect("its name");
    let path = OsStr::from_bytes(name.as_bytes());
    let user = File::options()
        .read(true)
        .write(true)
        .open(path)
        .expect("its other end");
    (File::from(controller), user)
}

/// Runs an apply on a terminal and answers its question.
fn answered(shell: &Shell, line: &str, answer: &str) -> (i32, String, String) {
    let (controller, user) = terminal();
    let mut command = shell.command(line.split(' '));
    command
        .env("TERM", "xterm")
        .stdin(user.try_clone().expect("a copy"))
        .stderr(user)
        .stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    drop(command);
    let mut shown = Vec::new();
    let mut reader = BufReader::new(controller.try_clone().expect("a copy"));
    while !shown.ends_with(b"[y/N]") {
        let read = reader.read_until(b']', &mut shown).expect("the question");
        assert!(read > 0, "asked");
    }
    (&controller)
        .write_all(answer.as_bytes())
        .expect("answered");
    let mut stdout = String::new();
    child
        .stdout
        .take()
        .expect("its stdout")
        .read_to_string(&mut stdout)
        .expect("UTF-8");
    // The terminal is read to its end, so that what is drawn on it blocks nobody.
    let rest = std::thread::spawn(move || {
        let mut rest = Vec::new();
        let _ = reader.read_to_end(&mut rest);
        rest
    });
    let code = child.wait().expect("it ends").code().expect("a code");
    drop(controller);
    shown.extend(rest.join().expect("read"));
    (code, stdout, String::from_utf8_lossy(&shown).into_owned())
}

#[test]
fn a_question_is_asked_on_a_terminal_and_only_yes_means_yes() {
    let shell = Shell::new();
    for answer in ["n\n", "\n", "\u{4}"] {
        let (code, _, shown) = answered(&shell, "--local apply -f manifests", answer);
        assert_eq!(code, 7, "{shown}");
        assert!(shown.contains("nothing was written"), "{shown}");
    }
    // The answer goes elsewhere, so the plan is also shown where the question is.
    let (code, stdout, shown) = answered(
        &shell,
        "--local -o json apply -f manifests --settle 0",
        "y\n",
    );
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("resource legacy-model"), "{shown}");
    let document: serde_json::Value = serde_json::from_str(&stdout).expect("one document");
    assert_eq!(document["status"], "applied");
    assert_eq!(
        shell
            .run("--local plan -f manifests --detailed-exitcode")
            .code,
        0
    );
}

#[test]
fn ctrl_c_at_the_question_writes_nothing() {
    let shell = Shell::new();
    shell.ok("--local local seed");
    let (controller, user) = terminal();
    let mut command = shell.command("--local apply -f manifests".split(' '));
    command
        .stdin(user.try_clone().expect("a copy"))
        .stderr(user)
        .stdout(Stdio::null());
    let mut child = Running(command.spawn().expect("it starts"));
    drop(command);
    let mut reader = BufReader::new(controller);
    let mut shown = Vec::new();
    while !shown.ends_with(b"[y/N]") {
        assert!(reader.read_until(b']', &mut shown).expect("the question") > 0);
    }
    signal(&child.0, Signal::INT);
    assert_eq!(child.0.wait().expect("it ends").code(), Some(130));
    assert_eq!(
        shell
            .run("--local plan -f manifests --detailed-exitcode")
            .code,
        2
    );
}
