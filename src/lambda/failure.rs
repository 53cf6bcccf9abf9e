//! Why a request failed, and the few lines about it that a person gets to read.
//!
//! The logs of a function may be gone by the time a stack has rolled back, so a reason must do by
//! itself: what is wrong, where, what to do. It holds no secret: errors never quote a response URL.

use super::summary::Summary;
use crate::manifest::Problems;
use crate::plan::{Guard, Refusal};
use crate::store::StoreError;
use std::fmt::{self, Write as _};
use thiserror::Error;

/// About how long a reason may be, in bytes; what is beyond is counted.
const LONGEST: usize = 2_000;

/// Why a request failed.
#[derive(Debug, Error)]
pub enum Failure {
    /// A field that an answer, or the work, cannot do without.
    #[error("the event has no usable {0}: CloudFormation sends one with every request")]
    Missing(&'static str),
    /// Properties that came and have no meaning as JSON.
    #[error(
        "ResourceProperties cannot be read ({0}): nest them less deeply, or give the manifest as ManifestPath"
    )]
    Unreadable(String),
    /// A request that is none of the three.
    #[error("the event's RequestType is {0:?}: it must be Create, Update or Delete")]
    UnknownRequest(String),
    /// An action that is none of those known.
    #[error("the action {0:?} is unknown: use {known}", known = super::invoke::ACTIONS.join(", "))]
    UnknownAction(String),
    /// An event that is neither CloudFormation's nor a direct invoke.
    #[error("the event cannot be read ({0}): send a CloudFormation event or a direct invoke")]
    Event(String),
    /// No table was named.
    #[error("no table is named: set {property}, or TABLE_NAME in the function's environment", property = .0.table())]
    NoTable(Spelling),
    /// The properties or the manifest are wrong.
    #[error("{}", Listed { what: "problem", lines: _0.as_slice() })]
    Problems(#[from] Problems),
    /// The bundled manifest cannot be read.
    #[error("ManifestPath: {path}: {reason}")]
    Bundle {
        /// The path, as the property says it.
        path: String,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// Namespace and namespace id, or namespace and manifest, disagree.
    #[error("{0}")]
    Namespace(String),
    /// The table cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A guard refused, and nothing was written.
    #[error("{}", refused(.0, *.1))]
    Refused(Vec<Refusal>, Spelling),
    /// Something was written, and not everything.
    #[error("{}", unfinished(.0))]
    Unfinished(Box<Summary>),
    /// The work panicked.
    #[error(
        "the function failed by a mistake of its own ({0}): what was not finished is recorded, apply again; please report it"
    )]
    Panicked(String),
    /// The work did not stop in time.
    #[error(
        "the time ran out before the work was done: apply again to go on where it stopped, or raise the function's Timeout"
    )]
    OutOfTime,
}

/// How the caller spells what it sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// A template's properties.
    Properties,
    /// A direct invoke's fields.
    Fields,
}

impl Spelling {
    fn table(self) -> &'static str {
        match self {
            Spelling::Properties => "TableName",
            Spelling::Fields => "table_name",
        }
    }

    fn remedy(self, refusal: &Refusal) -> Option<String> {
        let properties = self == Spelling::Properties;
        let name = |property: &'static str, field: &'static str| {
            if properties { property } else { field }
        };
        match refusal.guard() {
            Guard::AllowEmpty => Some(format!("{}: true", name("AllowEmpty", "allow_empty"))),
            Guard::MaxDelete => {
                let deletes = refusal.deletes()?;
                Some(format!("{}: {deletes}", name("MaxDelete", "max_delete")))
            }
            Guard::Adopt => Some(format!("{}: true", name("Adopt", "adopt"))),
            Guard::Stale | Guard::Versions => None,
        }
    }
}

fn refused(refusals: &[Refusal], spelling: Spelling) -> String {
    let lines: Vec<String> = refusals
        .iter()
        .map(
            |refusal| match (spelling.remedy(refusal), refusal.guard()) {
                (Some(remedy), _) => format!("{refusal} (to allow it, set {remedy})"),
                (None, Guard::Stale) => {
                    format!("{refusal}: plan again, review it, and send its fingerprint")
                }
                (None, _) => refusal.to_string(),
            },
        )
        .collect();
    format!("nothing was written: {}", lines.join("; "))
}

fn unfinished(summary: &Summary) -> String {
    let mut said = Vec::new();
    if summary.failed > 0 {
        said.push(format!(
            "{} were not written",
            count(summary.failed, "level")
        ));
    }
    if summary.pending > 0 {
        said.push(format!("{} still owed", count(summary.pending, "fan-out")));
    }
    let head = if said.is_empty() {
        "not everything is done".to_owned()
    } else {
        said.join(", ")
    };
    let hint = "apply again to go on where it stopped";
    match summary.errors.as_slice() {
        [] => format!("{head}: {hint}"),
        errors => format!(
            "{head}; {hint}. {}",
            Listed {
                what: "error",
                lines: errors
            }
        ),
    }
}

fn count(number: usize, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {what}{s}")
}

/// As many lines as fit, and how many there are.
struct Listed<'a, T> {
    what: &'static str,
    lines: &'a [T],
}

impl<T: fmt::Display> fmt::Display for Listed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.lines {
            return only.fmt(f);
        }
        write!(f, "{}:", count(self.lines.len(), self.what))?;
        let mut written = 0;
        for (index, line) in self.lines.iter().enumerate() {
            let mut text = String::new();
            write!(text, "{line}")?;
            written += text.len() + 1;
            if index > 0 && written > LONGEST {
                return write!(f, "\n... and {} more", self.lines.len() - index);
            }
            write!(f, "\n{text}")?;
        }
        Ok(())
    }
}
