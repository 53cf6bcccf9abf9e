//! What is wrong with an input, where, and what to do about it.
//!
//! Text from a file reaches a terminal only through here: whatever could move a cursor, hide a
//! character or forge a line is escaped. Nothing here decides what is wrong.

use super::tree::Place;
use serde::Serialize;
use std::collections::HashSet;
use std::fmt::{self, Write as _};
use thiserror::Error;

/// The most characters of a quoted text that are shown.
const SHOWN: usize = 60;
/// The most characters of a message: some hold a text of the input.
const LONGEST_MESSAGE: usize = 600;
/// The longest key that a path shows as it is: the longest legal name.
const LONGEST_KEY: usize = 256;

/// One problem of one input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file as it was named by the caller; `None` for JSON and CloudFormation properties.
    pub file: Option<String>,
    /// The line, from 1; `None` where the input has no lines.
    pub line: Option<u32>,
    /// The column in characters, from 1.
    pub column: Option<u32>,
    /// The keys that lead there, such as `entities.user-1.resources.gpt-4.disabled`; empty for the
    /// whole input.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem without a path.
    pub(super) fn at(place: Place, message: impl Into<String>) -> Problem {
        let known = place.known();
        let mut message = message.into();
        if let Some((end, _)) = message.char_indices().nth(LONGEST_MESSAGE) {
            message.truncate(end);
            message.push_str("...");
        }
        Problem {
            file: None,
            line: known.map(|place| place.line),
            column: known.map(|place| place.column),
            path: String::new(),
            message,
            hint: None,
        }
    }

    pub(super) fn path(mut self, path: impl Into<String>) -> Problem {
        self.path = path.into();
        self
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }

    /// Orders problems by place; problems without one keep their order.
    fn place(&self) -> (Option<u32>, Option<u32>) {
        (self.line, self.column)
    }
}

impl fmt::Display for Problem {
    /// `file:line:column: path: message (hint)`, without the parts that are missing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_start(f, self.file.as_deref(), self.line, self.column, &self.path)?;
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// Writes `file:line:column: path: `, without the parts that are missing.
pub(super) fn write_start(
    f: &mut fmt::Formatter<'_>,
    file: Option<&str>,
    line: Option<u32>,
    column: Option<u32>,
    path: &str,
) -> fmt::Result {
    if let Some(file) = file {
        write!(f, "{}:", printable(file))?;
        if let (Some(line), Some(column)) = (line, column) {
            write!(f, "{line}:{column}:")?;
        }
        f.write_str(" ")?;
    }
    if !path.is_empty() {
        write!(f, "{path}: ")?;
    }
    Ok(())
}

/// Every problem of an input, at least one, in the order of their places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Error)]
#[serde(transparent)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Sorts the problems of one file by place and names the file. A value that many aliases repeat
    /// is wrong once, not once an alias. `None` when there is nothing to report.
    pub(super) fn of_file(file: Option<&str>, mut problems: Vec<Problem>) -> Option<Problems> {
        if problems.is_empty() {
            return None;
        }
        problems.sort_by_key(Problem::place);
        let mut seen = HashSet::new();
        problems.retain(|problem| {
            problem.line.is_none() || seen.insert((problem.place(), problem.message.clone()))
        });
        for problem in &mut problems {
            problem.file = file.map(str::to_owned);
        }
        Some(Problems(problems))
    }

    /// Adds the problems of another file after these.
    pub(super) fn append(&mut self, other: Problems) {
        self.0.extend(other.0);
    }

    /// The problems.
    pub fn as_slice(&self) -> &[Problem] {
        &self.0
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Problems {
        Problems(vec![problem])
    }
}

impl IntoIterator for Problems {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl fmt::Display for Problems {
    /// One line a problem.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

/// A step of a path.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'t> {
    Key(&'t str),
    Index(usize),
}

/// Writes a path so that it can be read back: a name that holds a dot, or anything that a path or a
/// terminal could take for something else, is quoted.
pub(super) fn path_text(steps: &[Step<'_>]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Index(index) => {
                let _ = write!(path, "[{index}]");
            }
            Step::Key(key) => {
                if !path.is_empty() {
                    path.push('.');
                }
                let plain = |c: char| c.is_ascii_alphanumeric() || "_-:/@".contains(c);
                if !key.is_empty() && key.len() <= LONGEST_KEY && key.chars().all(plain) {
                    path.push_str(key);
                } else {
                    path.push_str(&quoted(key));
                }
            }
        }
    }
    path
}

/// A text in quotes, escaped, and cut when it is long.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// A text without quotes in which nothing can act on a terminal or look like another line.
pub fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            // `escape_debug` knows what is printable; quotes and backslashes are, here.
            let keep = matches!(c, '\'' | '"' | '\\');
            let escaped = (!keep).then(|| c.escape_debug());
            keep.then_some(c)
                .into_iter()
                .chain(escaped.into_iter().flatten())
        })
        .collect()
}
