//! What ends a command early, and the exit code that it ends with.

use super::exit::Exit;
use super::interrupt::Signal;
use crate::manifest::Problem;
use crate::plan::{Guard, Refusal};
use crate::store::StoreError;
use serde_json::{Value, json};
use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a command did not do what was asked.
#[derive(Debug, Error)]
pub(super) enum CliError {
    /// The command line is wrong.
    #[error("{message}")]
    Usage {
        /// What is wrong and what to do.
        message: String,
    },
    /// There is no runtime to work in.
    #[error("could not start")]
    Runtime {
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The process cannot be started anew without some variables.
    #[error("the environment sets an AWS_ENDPOINT_URL to nothing, unset it")]
    Anew {
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Ctrl-C could not be listened for.
    #[error("could not listen for signals")]
    Signals {
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file or a stream could not be read or written.
    #[error("could not {act} {path}", path = shown(.path))]
    File {
        /// An infinitive, such as "read".
        act: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A folder holds no manifest.
    #[error("{path} holds no manifest: name a folder with *.limits.yaml files, or a file", path = shown(.path))]
    NoManifest {
        /// The folder.
        path: PathBuf,
    },
    /// What a folder holds under the names of manifests, and what it is instead.
    #[error("{}", not_files(.0))]
    NotFiles(Vec<(PathBuf, &'static str)>),
    /// Manifests with problems.
    #[error("{}", lines(.0))]
    Manifest(Vec<Problem>),
    /// The saved plan does not read.
    #[error("{path} is not a saved plan ({reason}): make one with `plan --out`", path = shown(.path))]
    BadPlanFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The table knows no such namespace.
    #[error("namespace {name:?} is not registered in table {table} ({host}): {remedy}")]
    NoNamespace {
        /// The namespace that was asked for.
        name: String,
        /// The table.
        table: String,
        /// What holds it.
        host: String,
        /// What to do.
        remedy: String,
    },
    /// The table knows no namespace at all.
    #[error("table {table} ({host}) has no namespace yet: apply a manifest first")]
    NoNamespaces {
        /// The table.
        table: String,
        /// What holds it.
        host: String,
    },
    /// The file is not an embedded store.
    #[cfg(feature = "local")]
    #[error("{path} is not an embedded store: name the file of one with --local=PATH", path = shown(.path))]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// A port could not be listened on.
    #[cfg(feature = "local")]
    #[error(
        "could not listen on port {port} of this machine, choose another with --port, or 0 for any"
    )]
    Listen {
        /// The port.
        port: u16,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// There is no embedded store yet.
    #[cfg(feature = "local")]
    #[error("there is no embedded store at {path}: `zae-limits --local apply -f PATH` makes one", path = shown(.path))]
    NoLocalStore {
        /// Where one was looked for.
        path: PathBuf,
    },
    /// Guards refused, with the namespace that each concerns.
    #[error("{}", refused(.0))]
    Refused(Vec<(String, Refusal)>),
    /// The user said no.
    #[error("nothing was written")]
    Declined,
    /// A signal ended the command before it had written anything.
    #[error("interrupted")]
    Interrupted {
        /// The signal.
        signal: Signal,
    },
}

impl CliError {
    /// A command line that is wrong.
    pub(super) fn usage(message: impl Into<String>) -> CliError {
        let message = message.into();
        CliError::Usage { message }
    }

    /// The exit code.
    pub(super) fn exit(&self) -> Exit {
        match self {
            CliError::Usage { .. } => Exit::Usage,
            CliError::Manifest(_) => Exit::BadManifest,
            CliError::Refused(refusals) => {
                let stale = |(_, refusal): &(String, Refusal)| refusal.guard() == Guard::Stale;
                if refusals.iter().any(stale) {
                    Exit::Stale
                } else {
                    Exit::Refused
                }
            }
            CliError::Store(StoreError::ConditionFailed { .. }) => Exit::Stale,
            CliError::Declined => Exit::Declined,
            CliError::Interrupted { signal } => signal.exit(),
            CliError::Runtime { .. }
            | CliError::Anew { .. }
            | CliError::Signals { .. }
            | CliError::File { .. }
            | CliError::NoManifest { .. }
            | CliError::NotFiles(_)
            | CliError::BadPlanFile { .. }
            | CliError::Store(_)
            | CliError::NoNamespace { .. }
            | CliError::NoNamespaces { .. } => Exit::Error,
            #[cfg(feature = "local")]
            CliError::Listen { .. }
            | CliError::NotAStore { .. }
            | CliError::NoLocalStore { .. } => Exit::Error,
        }
    }

    /// A name for programs.
    fn kind(&self) -> &'static str {
        match self.exit() {
            Exit::Usage => "usage",
            Exit::BadManifest => "manifest",
            Exit::Refused => "refused",
            Exit::Stale => "stale",
            Exit::Declined => "declined",
            Exit::Interrupted | Exit::Terminated => "interrupted",
            Exit::Done | Exit::Error | Exit::Changes | Exit::Partial => "error",
        }
    }

    /// The message with its causes, each said once, and the flags that may help.
    pub(super) fn message(&self) -> String {
        let mut message = self.to_string();
        let mut cause = self.source();
        while let Some(source) = cause {
            let text = source.to_string();
            if !message.ends_with(&text) {
                message = format!("{message}: {text}");
            }
            cause = source.source();
        }
        match self.flags() {
            Some(flags) => format!("{message} ({flags})"),
            None => message,
        }
    }

    /// The flags that answer an error of the store, which does not know who asks.
    fn flags(&self) -> Option<&'static str> {
        match self {
            CliError::Store(StoreError::RegionMissing) => Some("--region, --profile"),
            CliError::Store(StoreError::CredentialsMissing) => Some("--profile"),
            _ => None,
        }
    }

    /// The error as the `error` of a JSON answer.
    pub(super) fn json(&self) -> Value {
        let mut error = json!({
            "kind": self.kind(),
            "exit_code": self.exit() as u8,
            "message": self.message(),
        });
        match self {
            CliError::Manifest(problems) => error["problems"] = json!(problems),
            CliError::Refused(refusals) => {
                error["refusals"] = refusals.iter().map(refusal_json).collect();
            }
            _ => {}
        }
        error
    }
}

fn refusal_json((namespace, refusal): &(String, Refusal)) -> Value {
    json!({
        "namespace": namespace,
        "message": refusal.to_string(),
        "allowed_by": allowed_by(refusal),
    })
}

/// The exact flag that lets a refused plan pass; `None` where no flag does.
pub(super) fn allowed_by(refusal: &Refusal) -> Option<String> {
    match refusal.guard() {
        Guard::AllowEmpty => Some("--allow-empty".to_owned()),
        Guard::MaxDelete => Some(format!("--max-delete {}", refusal.deletes().unwrap_or(0))),
        Guard::Adopt => Some("--adopt".to_owned()),
        Guard::Stale | Guard::Versions => None,
    }
}

/// A refusal with what to do about it, as one line.
pub(super) fn refusal_line(refusal: &Refusal) -> String {
    match (allowed_by(refusal), refusal.guard()) {
        (Some(flag), _) => format!("{refusal}; allow it with {flag}"),
        (None, Guard::Stale) => format!("{refusal}; plan again, and review what changed"),
        (None, _) => refusal.to_string(),
    }
}

fn refused(refusals: &[(String, Refusal)]) -> String {
    let line = |(namespace, refusal): &(String, Refusal)| {
        let namespace = crate::manifest::printable(namespace);
        format!("{namespace}: refused: {}", refusal_line(refusal))
    };
    refusals.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A path in one line: a message of several lines is several errors.
fn shown(path: &Path) -> String {
    crate::manifest::printable(&path.display().to_string())
}

fn not_files(entries: &[(PathBuf, &'static str)]) -> String {
    let line = |(path, what): &(PathBuf, &str)| format!("{} {what}", shown(path));
    entries.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
