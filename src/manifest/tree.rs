//! The tree both spellings of a manifest become before anything is checked: values, and where
//! each one stands.
//!
//! Nothing here knows which keys a manifest has or what is allowed. A tree keeps duplicate keys and
//! values of the wrong type, so that the reader can report all of them.

use std::borrow::Cow;

/// Where a node starts, counted from 1 in lines and characters. Line 0 is "nowhere": JSON has no
/// places, only paths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) line: u32,
    pub(super) column: u32,
}

impl Place {
    /// The start of a file.
    pub(super) const START: Place = Place { line: 1, column: 1 };

    /// The place, unless it is nowhere.
    pub(super) fn known(self) -> Option<Place> {
        (self.line > 0).then_some(self)
    }
}

/// A value with its place.
#[derive(Debug)]
pub(super) struct Node<'t> {
    pub(super) value: Value<'t>,
    pub(super) place: Place,
    /// Byte offset and length in the YAML text; both 0 when there is none.
    pub(super) span: (u32, u32),
}

/// What a node holds. Numbers keep the three shapes YAML and JSON tell apart.
#[derive(Debug)]
pub(super) enum Value<'t> {
    Null,
    Bool(bool),
    Whole(u64),
    Negative(i64),
    Float(f64),
    Text(Cow<'t, str>),
    List(Vec<Node<'t>>),
    /// In the order of the text, duplicates included.
    Map(Vec<(Node<'t>, Node<'t>)>),
}

impl<'t> Node<'t> {
    /// A node without a place.
    fn nowhere(value: Value<'t>) -> Node<'t> {
        Node {
            value,
            place: Place::default(),
            span: (0, 0),
        }
    }
}

impl<'t> From<&'t serde_json::Value> for Node<'t> {
    fn from(json: &'t serde_json::Value) -> Node<'t> {
        Node::nowhere(match json {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(flag) => Value::Bool(*flag),
            serde_json::Value::Number(number) => number
                .as_u64()
                .map(Value::Whole)
                .or_else(|| number.as_i64().map(Value::Negative))
                .unwrap_or_else(|| Value::Float(number.as_f64().unwrap_or(f64::NAN))),
            serde_json::Value::String(text) => Value::Text(Cow::Borrowed(text)),
            serde_json::Value::Array(items) => Value::List(items.iter().map(Node::from).collect()),
            serde_json::Value::Object(entries) => Value::Map(
                entries
                    .iter()
                    .map(|(key, value)| {
                        (
                            Node::nowhere(Value::Text(Cow::Borrowed(key))),
                            Node::from(value),
                        )
                    })
                    .collect(),
            ),
        })
    }
}
