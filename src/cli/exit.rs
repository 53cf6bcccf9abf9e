//! The exit codes: a contract with scripts, so they are named here and nowhere else.

use std::process::ExitCode;

/// How a run ended. When several apply, errors win over changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// Done.
    Done = 0,
    /// Something failed.
    Error = 1,
    /// There are changes, and they were asked for with `--detailed-exitcode`.
    Changes = 2,
    /// A guard refused.
    Refused = 3,
    /// The plan is stale, or another apply was in the way.
    Stale = 4,
    /// Partly applied, or fan-outs are pending.
    Partial = 5,
    /// The user said no.
    Declined = 7,
    /// The command line is wrong (`EX_USAGE`).
    Usage = 64,
    /// A manifest is wrong (`EX_DATAERR`).
    BadManifest = 65,
    /// Ended by SIGINT.
    Interrupted = 130,
    /// Ended by SIGTERM.
    Terminated = 143,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
