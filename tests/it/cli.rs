//! The command line as a shell sees it: the real binary, in a folder of its own, with nothing of
//! this machine's AWS configuration in its environment.

mod blocked;
mod damaged;
mod effects;
mod event;
mod explain;
mod guards;
mod local;
mod locked;
mod reach;
mod resume;
mod signals;
mod story;
mod streams;
mod validate;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// The example manifest, which the README runs: a copy, since whoever tries that edits theirs.
const EXAMPLE: &str = include_str!("../data/manifests/tenant-alpha.limits.yaml");

/// A folder with the example manifest in `manifests/`.
struct Shell {
    folder: TempDir,
}

/// What a command said and how it ended.
#[derive(Debug)]
struct Said {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Shell {
    fn new() -> Shell {
        let folder = tempfile::tempdir().expect("a folder");
        let shell = Shell { folder };
        shell.write("manifests/tenant-alpha.limits.yaml", EXAMPLE);
        shell
    }

    /// A shell in which the example is applied and the sample is there.
    fn seeded() -> Shell {
        let shell = Shell::new();
        shell.ok("--local apply -f manifests --yes --settle 0");
        shell.ok("--local local seed");
        shell
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        let folder = path.parent().expect("a folder");
        fs::create_dir_all(folder).expect("the folder");
        fs::write(path, text).expect("the file");
    }

    /// Replaces a text of the example manifest, once.
    fn edit(&self, from: &str, to: &str) {
        let path = "manifests/tenant-alpha.limits.yaml";
        let text = fs::read_to_string(self.path(path)).expect("the manifest");
        assert!(text.contains(from), "{from:?} is in the manifest");
        self.write(path, &text.replacen(from, to, 1));
    }

    /// The binary with some arguments, ready to be run.
    fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zae-limits"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, line: &str) -> Said {
        self.run_all(&line.split_whitespace().collect::<Vec<_>>())
    }

    fn run_all(&self, arguments: &[&str]) -> Said {
        said(self.command(arguments.iter().copied()))
    }

    /// Runs what must succeed.
    fn ok(&self, line: &str) -> Said {
        let said = self.run(line);
        assert_eq!(said.code, 0, "{line}: {said:?}");
        said
    }

    /// Runs what must end with a code, and answers with the JSON document on its stdout.
    fn json(&self, line: &str, code: i32) -> Value {
        let said = self.run(&format!("{line} -o json"));
        assert_eq!(said.code, code, "{line}: {said:?}");
        said.json()
    }
}

impl Said {
    /// The one document that stdout must be.
    fn json(&self) -> Value {
        let document: Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in {self:?}"));
        assert_eq!(document["schema_version"], 1, "{self:?}");
        document
    }

    /// Stdout with durations and countdowns blanked.
    fn redacted(&self) -> String {
        redact(&self.stdout)
    }
}

fn said(mut command: Command) -> Said {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the binary runs");
    Said {
        code: status.code().expect("an exit code"),
        stdout: String::from_utf8(stdout).expect("UTF-8"),
        stderr: String::from_utf8(stderr).expect("UTF-8"),
    }
}

/// A text with `NS` for the namespace id, which is drawn anew in every store. In Markdown its
/// underscores are escaped.
fn without_id(text: &str, ns: &str) -> String {
    let escaped = ns.replace('_', "\\_");
    // The longer one first: it ends with the other where the id begins with an underscore.
    text.replace(&escaped, "NS").replace(ns, "NS")
}

/// Blanks what differs from run to run.
fn redact(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = blank(line, ", in ", " s");
        let line = blank(&line, "for another ", " s");
        blank(&line, "Fingerprint: ", "")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn blank(line: &str, before: &str, after: &str) -> String {
    match line.split_once(before) {
        Some((start, rest)) => {
            let end = rest.find(after).filter(|_| !after.is_empty());
            let end = end.unwrap_or(rest.len());
            format!("{start}{before}N{}", &rest[end..])
        }
        None => line.to_owned(),
    }
}

/// Waits for a child, and kills it when a test ends before it does.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It is gone already when the test went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a file is there.
fn exists(path: &Path) -> bool {
    path.exists()
}
