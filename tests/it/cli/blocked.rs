//! Signals that reach a command which waits for a file, a pipe or a reader: it ends, and at once.

use super::{EXAMPLE, Running, Shell};
use rustix::fs::{CWD, Mode, OFlags, mkfifoat, open};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

const SIGNALS: [(Signal, i32); 2] = [(Signal::INT, 130), (Signal::TERM, 143)];

fn fifo(path: &Path) {
    mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).expect("a FIFO");
}

/// Opens an end of a FIFO once a command has opened the other, and leaves it waiting there. No
/// command that another test starts meanwhile inherits it.
fn other_end(path: &Path, how: OFlags) -> OwnedFd {
    let how = how | OFlags::NONBLOCK | OFlags::CLOEXEC;
    for _ in 0..2000 {
        match open(path, how, Mode::empty()) {
            Ok(end) => return end,
            Err(Errno::NXIO) => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => panic!("{error}"),
        }
    }
    panic!("nobody opened {}", path.display());
}

/// Sends a signal and waits for the end, not for ever. What was said on stderr.
fn ended(child: &mut Child, signal: Signal, code: i32, line: &str) -> String {
    kill_process(Pid::from_child(child), signal).expect("signalled");
    for _ in 0..2000 {
        if let Some(status) = child.try_wait().expect("a child") {
            assert_eq!(status.code(), Some(code), "{line}");
            let mut said = String::new();
            let stderr = child.stderr.as_mut().expect("its stderr");
            stderr.read_to_string(&mut said).expect("UTF-8");
            return said;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{line} heard no signal");
}

fn start(shell: &Shell, line: &str, stdin: Stdio) -> Running {
    let mut command = shell.command(line.split(' '));
    command
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Running(command.spawn().expect("it starts"))
}

#[test]
fn a_command_that_waits_for_a_file_ends_at_a_signal() {
    let shell = Shell::new();
    fifo(&shell.path("slow"));
    for line in [
        "validate slow",
        "validate manifests slow",
        "--local plan -f slow",
        "--local apply -f slow --yes",
        "--local apply --plan slow --yes",
    ] {
        for (signal, code) in SIGNALS {
            let mut child = start(&shell, line, Stdio::null());
            let writer = other_end(&shell.path("slow"), OFlags::WRONLY);
            let said = ended(&mut child.0, signal, code, line);
            assert_eq!(said, "error: interrupted\n", "{line}");
            drop(writer);
        }
    }
    // The document says so too.
    let mut child = start(&shell, "-o json --local plan -f slow", Stdio::null());
    let _writer = other_end(&shell.path("slow"), OFlags::WRONLY);
    let said = ended(&mut child.0, Signal::INT, 130, "plan");
    assert_eq!(said, "");
    let stdout = child.0.stdout.take().expect("its stdout");
    let document: serde_json::Value = serde_json::from_reader(stdout).expect("one document");
    assert_eq!(document["command"], "plan");
    assert_eq!(document["error"]["kind"], "interrupted");
    assert!(!shell.path(".zae-limits").exists(), "nothing was made");
}

#[test]
fn a_command_that_waits_for_stdin_ends_at_a_signal() {
    let shell = Shell::new();
    for line in [
        "validate -",
        "--local plan -f -",
        "--local apply -f - --yes",
    ] {
        for (signal, code) in SIGNALS {
            let mut child = start(&shell, line, Stdio::piped());
            let mut stdin = child.0.stdin.take().expect("its stdin");
            // More than a pipe holds: when it is all written, the command reads and wants more.
            let comment = format!("# {}\n", "x".repeat(97)).repeat(4000);
            stdin
                .write_all(format!("{comment}{EXAMPLE}").as_bytes())
                .expect("written");
            let said = ended(&mut child.0, signal, code, line);
            assert_eq!(said, "error: interrupted\n", "{line}");
        }
    }
}

#[test]
fn a_command_that_waits_to_write_ends_at_a_signal() {
    let shell = Shell::new();
    fifo(&shell.path("plan"));
    shell.write(
        "warned.yaml",
        "namespace: a\nresources: { gpt-4: { disabled: bypass } }\n",
    );
    for (signal, code) in SIGNALS {
        // Opening it for writing waits for a reader. The warning comes right before.
        let line = "--local plan -f warned.yaml --out plan";
        let mut child = start(&shell, line, Stdio::null());
        let stderr = child.0.stderr.as_mut().expect("its stderr");
        let mut byte = [0];
        while byte != *b"\n" {
            stderr.read_exact(&mut byte).expect("a warning");
        }
        let said = ended(&mut child.0, signal, code, line);
        assert_eq!(said, "error: interrupted\n", "{line}");
    }

    // An answer that is larger than the pipe, and a reader that reads no further.
    let wrong = "  wrong:\n".repeat(10_000);
    shell.write(
        "long.yaml",
        &format!("namespace: a\nresources:\n  wrong: {{ x: 1 }}\n{wrong}"),
    );
    for line in ["validate long.yaml", "-o json validate long.yaml"] {
        for (signal, code) in SIGNALS {
            let mut child = start(&shell, line, Stdio::null());
            let stdout = child.0.stdout.as_mut().expect("its stdout");
            stdout.read_exact(&mut [0]).expect("a beginning");
            let said = ended(&mut child.0, signal, code, line);
            assert_eq!(said, "error: interrupted\n", "{line}");
        }
    }
}
