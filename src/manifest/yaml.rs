//! YAML text to a tree with places, or the one problem that keeps it from being read, and what a tree does
//! not show any more.
//!
//! The parser is told to leave every judgement to the reader: duplicate keys pass through, only
//! `true` and `false` are booleans, and numbers that YAML versions read differently stay text.
//! What it does judge is its own budget: how much an alias may expand.

use super::merges;
use super::problem::{Problem, printable};
use super::tree::{Node, Place, Value};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, Location, MessageFormatter, Options, Spanned, UserMessageFormatter};
use std::borrow::Cow;
use std::fmt;

/// The largest file that is read, in bytes.
pub const MAX_BYTES: usize = 32 * 1024 * 1024;

/// Checks size and encoding.
pub(super) fn decode(bytes: &[u8]) -> Result<&str, Problem> {
    if bytes.len() > MAX_BYTES {
        return Err(Problem::at(
            Place::START,
            format!(
                "the file has {} bytes, and at most {MAX_BYTES} are read",
                bytes.len()
            ),
        )
        .hint("split the namespace, or shorten the file with aliases"));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = &bytes[..error.valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        let start = valid
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let column = 1 + valid[start..]
            .iter()
            .filter(|byte| (**byte & 0xC0) != 0x80)
            .count();
        let place = Place {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
        };
        Problem::at(place, format!("byte {} is not UTF-8", error.valid_up_to()))
            .hint("save the file as UTF-8")
    })
}

/// Parses one document. A second document is a problem, and the first is still returned, so that
/// its own problems are found in the same run.
pub(super) fn parse(text: &str) -> (Option<Node<'_>>, Vec<Problem>) {
    let (tree, problem) = parse_with(text, MergeKeyPolicy::Merge);
    let mut problems = Vec::from_iter(problem);
    if merges::may_be_doubled(text) {
        let (as_written, _) = parse_with(text, MergeKeyPolicy::AsOrdinary);
        problems.extend(
            as_written
                .iter()
                .flat_map(|tree| merges::doubled(tree, text)),
        );
    }
    (tree, problems)
}

fn parse_with(text: &str, merges: MergeKeyPolicy) -> (Option<Node<'_>>, Option<Problem>) {
    let mut tree = None;
    let options = options(merges);
    let outcome =
        serde_saphyr::with_deserializer_from_str_with_options(text, options, |document| {
            tree = Some(Node::deserialize(document)?);
            Ok(())
        });
    (tree, outcome.err().map(|error| problem(&error)))
}

fn options(merges: MergeKeyPolicy) -> Options {
    serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: merges,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        reject_unsupported_tags: true,
        with_snippet: false,
        // A manifest is nine deep, and a tree is read by recursion: the depth bounds the stack. The
        // counts are enough for 300,000 entities with limits of their own. What aliases may replay
        // stays the parser's to limit, except its guess by the ratio of aliases to anchors: one
        // tier used by a thousand entities is what anchors are for.
        budget: serde_saphyr::budget! {
            max_depth: 16,
            max_events: 12_000_000,
            max_nodes: 5_000_000,
            enforce_alias_anchor_ratio: false,
        },
    }
}

fn place(at: Location) -> Place {
    let count = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    Place {
        line: count(at.line()),
        column: count(at.column()),
    }
}

/// Says in a manifest's terms why the parser gave up.
fn problem(error: &Error) -> Problem {
    let at = error.location().map_or(Place::START, place);
    let error = match error.without_snippet() {
        Error::AliasError { error, .. } => error.without_snippet(),
        other => other,
    };
    match error {
        Error::MultipleDocuments { .. } => Problem::at(at, "a second document starts here")
            .hint("a file holds one manifest: split it, or delete the `---`"),
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            Problem::at(at, "an alias stands inside the value it repeats")
                .hint("write the value out")
        }
        Error::UnknownAnchor { .. } => {
            Problem::at(at, "the alias names an anchor that is not defined")
                .hint("define it above with `&name`, or quote a text that starts with `*`")
        }
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::Budget {
            breach:
                BudgetBreach::Aliases { .. }
                | BudgetBreach::Anchors { .. }
                | BudgetBreach::MergeKeys { .. }
                | BudgetBreach::RecordedAnchorEvents { .. }
                | BudgetBreach::RecordedAnchorBytes { .. },
            ..
        } => Problem::at(at, "the aliases expand to more than a manifest may hold")
            .hint("write fewer aliases inside anchors"),
        Error::Budget {
            breach: BudgetBreach::Depth { .. },
            ..
        } => Problem::at(at, "the document is nested too deeply").hint(
            "no manifest is: look for an indentation that grows, or a bracket that is not closed",
        ),
        Error::Budget { .. } => Problem::at(at, "the document holds more values than are read")
            .hint("split the namespace"),
        other => Problem::at(
            at,
            format!(
                "not YAML: {}",
                printable(&UserMessageFormatter.format_message(other))
            ),
        ),
    }
}

impl<'de> Deserialize<'de> for Node<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value<'de>>::deserialize(deserializer)?;
        // The definition, not the alias: that is the text to change.
        let at = spanned.defined;
        let byte = |value: Option<u64>| value.and_then(|value| u32::try_from(value).ok());
        Ok(Node {
            value: spanned.value,
            place: place(at),
            span: byte(at.span().byte_offset())
                .zip(byte(at.span().byte_len()))
                .unwrap_or_default(),
        })
    }
}

impl<'de> Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }
    fn visit_unit<E>(self) -> Result<Value<'de>, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, flag: bool) -> Result<Value<'de>, E> {
        Ok(Value::Bool(flag))
    }
    fn visit_u64<E>(self, number: u64) -> Result<Value<'de>, E> {
        Ok(Value::Whole(number))
    }
    fn visit_i64<E>(self, number: i64) -> Result<Value<'de>, E> {
        Ok(u64::try_from(number).map_or(Value::Negative(number), Value::Whole))
    }
    fn visit_f64<E>(self, number: f64) -> Result<Value<'de>, E> {
        Ok(Value::Float(number))
    }
    fn visit_str<E>(self, text: &str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Owned(text.to_owned())))
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Borrowed(text)))
    }
    fn visit_string<E>(self, text: String) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Owned(text)))
    }
    fn visit_bytes<E: serde::de::Error>(self, _: &[u8]) -> Result<Value<'de>, E> {
        Err(E::custom("binary data has no place in a manifest"))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value<'de>, A::Error> {
        // Most mappings of a large manifest have one entry, and a vector that grows has room for four.
        let mut map = Vec::with_capacity(1);
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Value::Map(map))
    }
}
