//! Walks a tree and collects every problem: keys, duplicates, types, paths.
//!
//! One reader serves the three spellings of a manifest. It knows what a mapping with fixed keys and
//! a mapping of names are; what the keys mean is the business of the files that call it. It never
//! stops at a problem: whatever can still be read is read.

use super::keys::{Dialect, Entry, Found, Given, Keys, Spelled, nearest};
use super::problem::{Problem, Step, path_text, quoted};
use super::tree::{Node, Place, Value};
use crate::model::NameError;
use std::collections::HashMap;

/// Reads one tree.
pub(super) struct Reader<'t> {
    pub(super) dialect: Dialect,
    /// The YAML text that spans point into; empty for JSON.
    source: &'t str,
    path: Vec<Step<'t>>,
    pub(super) problems: Vec<Problem>,
}

impl<'t> Reader<'t> {
    pub(super) fn new(dialect: Dialect, source: &'t str) -> Reader<'t> {
        Reader {
            dialect,
            source,
            path: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Reports a problem of the current path.
    pub(super) fn report(&mut self, at: Place, message: impl Into<String>) {
        let problem = Problem::at(at, message).path(self.path_text());
        self.problems.push(problem);
    }

    /// Reports a problem and what to do about it.
    pub(super) fn report_with(
        &mut self,
        at: Place,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let problem = Problem::at(at, message).path(self.path_text()).hint(hint);
        self.problems.push(problem);
    }

    /// Reports a problem, and what to do about it when that is known.
    pub(super) fn report_maybe(&mut self, at: Place, message: String, hint: Option<String>) {
        match hint {
            Some(hint) => self.report_with(at, message, hint),
            None => self.report(at, message),
        }
    }

    pub(super) fn path_text(&self) -> String {
        path_text(&self.path)
    }

    /// Reads something one step further down.
    pub(super) fn within<T>(&mut self, step: Step<'t>, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let value = read(self);
        self.path.pop();
        value
    }

    /// A key, or a text about keys, as this dialect spells it.
    pub(super) fn spelled(&self, text: Spelled) -> &'static str {
        text.by(self.dialect)
    }

    /// A mapping with fixed keys. Unknown and duplicate keys are reported; no value is an empty
    /// mapping. `None` when it is something else.
    pub(super) fn fields<const N: usize>(
        &mut self,
        node: &'t Node<'t>,
        keys: &Keys<N>,
    ) -> Option<[Given<'t>; N]> {
        let entries = self.mapping(node)?;
        let dialect = self.dialect;
        let mut fields: [Given<'t>; N] = std::array::from_fn(|index| Given {
            name: keys.known[index].by(dialect),
            first: None,
            again: Vec::new(),
        });
        for (key, value) in entries {
            let Some(text) = self.key_text(key) else {
                continue;
            };
            let Some(field) = fields.iter_mut().find(|field| field.name == text) else {
                self.unknown(key.place, text, keys);
                continue;
            };
            match field.first {
                None => field.first = Some((key.place, value)),
                Some((first, _)) => {
                    field.again.push((key.place, value));
                    self.duplicate(text, key.place, first);
                }
            }
        }
        Some(fields)
    }

    /// A mapping from names. Duplicate names are reported and still returned, so that what they hold
    /// is checked too.
    pub(super) fn entries(&mut self, node: &'t Node<'t>) -> Vec<Entry<'t>> {
        let Some(map) = self.mapping(node) else {
            return Vec::new();
        };
        // Most mappings of a large manifest have one entry, which has nobody to be a duplicate of.
        let expected = if map.len() > 1 { map.len() } else { 0 };
        let mut seen: HashMap<&str, Place> = HashMap::with_capacity(expected);
        let mut entries = Vec::with_capacity(map.len());
        for (key, value) in map {
            let Some(name) = self.key_text(key) else {
                continue;
            };
            if let Some(first) = seen.get(name) {
                self.duplicate(name, key.place, *first);
            } else if map.len() > 1 {
                seen.insert(name, key.place);
            }
            entries.push(Entry {
                name,
                place: key.place,
                value,
            });
        }
        entries
    }

    /// A list; no value is an empty one. `None` when it is something else.
    pub(super) fn list(&mut self, node: &'t Node<'t>) -> Option<&'t [Node<'t>]> {
        match &node.value {
            Value::List(items) => Some(items),
            Value::Null if self.dialect != Dialect::Properties => Some(&[]),
            _ => {
                self.wrong_type(node, "a list");
                None
            }
        }
    }

    fn mapping(&mut self, node: &'t Node<'t>) -> Option<&'t [(Node<'t>, Node<'t>)]> {
        match &node.value {
            Value::Map(entries) => Some(entries),
            Value::Null if self.dialect != Dialect::Properties => Some(&[]),
            _ => {
                self.wrong_type(node, "a mapping");
                None
            }
        }
    }

    /// Reads what a key holds. A key given twice has its every value read, for its problems; the
    /// first one counts.
    pub(super) fn read<T>(
        &mut self,
        given: &Given<'t>,
        mut read: impl FnMut(&mut Self, &'t Node<'t>) -> Found<T>,
    ) -> Found<T> {
        let Some((_, node)) = given.first else {
            return Found::Absent;
        };
        if self.dialect == Dialect::Json && matches!(node.value, Value::Null) {
            return Found::Absent;
        }
        self.within(Step::Key(given.name), |reader| {
            let found = read(reader, node);
            for (_, node) in &given.again {
                read(reader, node);
            }
            found
        })
    }

    /// Reports a problem of a key that is there, at the key itself.
    pub(super) fn report_key(
        &mut self,
        given: &Given<'t>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let at = given.place().unwrap_or_default();
        self.within(Step::Key(given.name), |reader| {
            reader.report_with(at, message, hint);
        });
    }

    /// What a key holds that may not be absent from the mapping `node`.
    pub(super) fn required<T>(
        &mut self,
        node: &Node<'_>,
        given: &Given<'t>,
        found: Found<T>,
        what: &str,
    ) -> Option<T> {
        if found.is_absent() {
            let at = given.place().unwrap_or(node.place);
            self.within(Step::Key(given.name), |reader| {
                reader.report_with(at, "required and missing", format!("add it: {what}"));
            });
        }
        found.ok()
    }

    /// A name, checked by the model's own rule.
    pub(super) fn name<T>(
        &mut self,
        at: Place,
        text: &str,
        parse: fn(&str) -> Result<T, NameError>,
    ) -> Option<T> {
        parse(text)
            .map_err(|error| self.report(at, error.to_string()))
            .ok()
    }

    /// The text of a key. Digits are taken as text, since nothing else can be meant; whatever else
    /// YAML reads as a value must be quoted.
    fn key_text(&mut self, key: &'t Node<'t>) -> Option<&'t str> {
        match &key.value {
            Value::Text(text) => return Some(text),
            Value::Whole(number) if self.raw(key) == number.to_string() => {
                return Some(self.raw(key));
            }
            _ => {}
        }
        let found = self.describe(key);
        match key.value {
            Value::List(_) | Value::Map(_) => {
                self.report(key.place, format!("a key must be a text, found {found}"));
            }
            _ => self.report_with(
                key.place,
                format!("a key must be a text, found {found}"),
                "write it in quotes",
            ),
        }
        None
    }

    fn duplicate(&mut self, name: &'t str, at: Place, first: Place) {
        let message = match first.known() {
            Some(first) => format!("given twice, the first time in line {}", first.line),
            None => "given twice".to_owned(),
        };
        self.within(Step::Key(name), |reader| {
            reader.report_with(at, message, "keep one");
        });
    }

    fn unknown<const N: usize>(&mut self, at: Place, text: &'t str, keys: &Keys<N>) {
        let dialect = self.dialect;
        let elsewhere = |text: &str| {
            let mut all = keys.elsewhere.iter();
            all.find(|(key, _)| key.by(dialect) == text)
                .map(|(_, hint)| hint.by(dialect))
        };
        let known = keys.known.iter();
        let meant = known.chain(keys.elsewhere.iter().map(|(key, _)| key));
        let meant: Vec<&str> = meant.map(|key| key.by(dialect)).collect();
        let unknown = format!("unknown key {}", quoted(text));
        let (message, hint) = match (elsewhere(text), nearest(text, &meant)) {
            (Some(hint), _) => (format!("`{text}` cannot be set here"), hint.to_owned()),
            (None, Some(near)) => match elsewhere(near) {
                Some(hint) => (unknown, format!("did you mean `{near}`? {hint}")),
                None => (unknown, format!("did you mean `{near}`?")),
            },
            (None, None) => (unknown, format!("known here: {}", meant[..N].join(", "))),
        };
        self.within(Step::Key(text), |reader| {
            reader.report_with(at, message, hint);
        });
    }

    pub(super) fn wrong_type(&mut self, node: &Node<'_>, expected: &str) {
        let found = self.describe(node);
        self.report(node.place, format!("expected {expected}, found {found}"));
    }

    /// A value in the words of a message.
    pub(super) fn describe(&self, node: &Node<'_>) -> String {
        match &node.value {
            Value::Null => "no value".to_owned(),
            Value::Bool(flag) => flag.to_string(),
            Value::Text(text) => format!("the text {}", quoted(text)),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a mapping".to_owned(),
            Value::Whole(_) | Value::Negative(_) | Value::Float(_) => self.number_text(node),
        }
    }

    /// A number as it is written, or, in JSON, as it prints.
    fn number_text(&self, node: &Node<'_>) -> String {
        let raw = self.raw(node);
        if !raw.is_empty() && raw.len() <= 40 && raw.chars().all(|c| c.is_ascii_graphic()) {
            return raw.to_owned();
        }
        match node.value {
            Value::Whole(number) => number.to_string(),
            Value::Negative(number) => number.to_string(),
            Value::Float(number) => format!("{number:?}"),
            _ => String::new(),
        }
    }

    /// The text of a node in the YAML source; empty for JSON.
    pub(super) fn raw(&self, node: &Node<'_>) -> &'t str {
        let (start, length) = (node.span.0 as usize, node.span.1 as usize);
        self.source
            .get(start..start.saturating_add(length))
            .unwrap_or_default()
    }
}
