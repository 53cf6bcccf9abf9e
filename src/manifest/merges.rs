//! Mappings that merge twice. YAML readers differ in which of the two wins, and the parser takes the first
//! without a word: a switch must not depend on who reads it.

use super::problem::{Problem, Step, path_text};
use super::tree::{Node, Place, Value};
use std::collections::BTreeSet;

const MERGE: &str = "<<";

/// Whether a text may merge anything twice.
pub(super) fn may_be_doubled(text: &str) -> bool {
    text.matches(MERGE).nth(1).is_some()
}

/// What is wrong in a tree of which merge keys are keys like any other, read from `source`.
pub(super) fn doubled<'t>(tree: &'t Node<'t>, source: &'t str) -> Vec<Problem> {
    let mut search = Search {
        source,
        found: BTreeSet::new(),
        problems: Vec::new(),
    };
    search.node(tree, &mut Vec::new());
    search.problems
}

struct Search<'t> {
    source: &'t str,
    /// Where something was found: what aliases repeat is wrong once.
    found: BTreeSet<Place>,
    problems: Vec<Problem>,
}

impl<'t> Search<'t> {
    fn node(&mut self, node: &'t Node<'t>, path: &mut Vec<Step<'t>>) {
        match &node.value {
            Value::Map(entries) => {
                let merges = entries.iter().map(|(key, _)| key);
                let mut merges = merges.filter(|key| self.is_merge(key));
                let first = merges.next().map(|key| key.place);
                let again: Vec<Place> = merges.map(|key| key.place).collect();
                for (first, again) in first.into_iter().cycle().zip(again) {
                    self.report(first, again, path);
                }
                for (key, value) in entries {
                    let step = match &key.value {
                        Value::Text(text) => Step::Key(text),
                        _ => Step::Key(self.raw(key)),
                    };
                    path.push(step);
                    self.node(value, path);
                    path.pop();
                }
            }
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    path.push(Step::Index(index));
                    self.node(item, path);
                    path.pop();
                }
            }
            _ => {}
        }
    }

    /// Whether a key merges. One in quotes is a name like any other.
    fn is_merge(&self, key: &Node<'_>) -> bool {
        self.raw(key) == MERGE
    }

    fn raw(&self, key: &Node<'_>) -> &'t str {
        let (start, length) = (key.span.0 as usize, key.span.1 as usize);
        let raw = self.source.get(start..start.saturating_add(length));
        raw.unwrap_or_default()
    }

    fn report(&mut self, first: Place, again: Place, path: &[Step<'_>]) {
        if !self.found.insert(again) {
            return;
        }
        let line = first.line;
        let message = format!("`{MERGE}` given twice, the first time in line {line}");
        let hint = "merge several with one key, the one that wins first: `<<: [*a, *b]`";
        let problem = Problem::at(again, message).path(path_text(path));
        self.problems.push(problem.hint(hint));
    }
}
