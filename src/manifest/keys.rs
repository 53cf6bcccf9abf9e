//! The keys of a mapping: which ones it has, how each spelling writes them, and what became of one.
//!
//! Which kinds of mapping there are is said where they are read.

use super::tree::{Node, Place};

/// How the input spells keys and scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// A YAML file: snake case, typed scalars, `disabled:` without a value refused.
    Yaml,
    /// A JSON manifest: snake case, typed scalars, an explicit `null` is as good as no key.
    Json,
    /// CloudFormation properties: pascal case, every scalar may arrive as a string.
    Properties,
}

/// A key, or a text about keys, as manifests spell it and as CloudFormation properties do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spelled(pub(super) &'static str, pub(super) &'static str);

impl Spelled {
    pub(super) fn by(self, dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::Yaml | Dialect::Json => self.0,
            Dialect::Properties => self.1,
        }
    }
}

/// The keys of one kind of mapping.
pub(super) struct Keys<const N: usize> {
    /// The keys it has.
    pub(super) known: [Spelled; N],
    /// Keys that belong somewhere else, and where.
    pub(super) elsewhere: &'static [(Spelled, Spelled)],
}

/// What a mapping says for one key: nothing, one value, or, wrongly, several.
pub(super) struct Given<'t> {
    pub(super) name: &'static str,
    pub(super) first: Option<(Place, &'t Node<'t>)>,
    /// The values of a key given again, each with its key's place.
    pub(super) again: Vec<(Place, &'t Node<'t>)>,
}

impl<'t> Given<'t> {
    /// Where the key stands; `None` when it is absent.
    pub(super) fn place(&self) -> Option<Place> {
        self.first.map(|(place, _)| place)
    }
}

/// What became of a value that was asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Found<T> {
    /// Not given.
    Absent,
    /// Given, and reported as a problem.
    Wrong,
    /// Given, and fine.
    Is(T),
}

impl<T> Found<T> {
    pub(super) fn ok(self) -> Option<T> {
        match self {
            Found::Is(value) => Some(value),
            Found::Absent | Found::Wrong => None,
        }
    }

    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> Found<U> {
        match self {
            Found::Absent => Found::Absent,
            Found::Wrong => Found::Wrong,
            Found::Is(value) => Found::Is(change(value)),
        }
    }

    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Found::Absent)
    }

    /// The value, or `default` when nothing was given; `None` after a problem.
    pub(super) fn or(self, default: T) -> Option<T> {
        match self {
            Found::Is(value) => Some(value),
            Found::Absent => Some(default),
            Found::Wrong => None,
        }
    }
}

/// One entry of a mapping from names.
pub(super) struct Entry<'t> {
    pub(super) name: &'t str,
    pub(super) place: Place,
    pub(super) value: &'t Node<'t>,
}

/// The known key that a text was most likely meant to be.
pub(super) fn nearest<'k>(text: &str, known: &[&'k str]) -> Option<&'k str> {
    // A key is never this long, and the distance is quadratic in it.
    if text.len() > 64 {
        return None;
    }
    // Case and separators are how the two spellings of a key differ.
    let plain = |text: &str| -> String {
        text.chars()
            .filter(|c| !matches!(c, '_' | '-' | ' '))
            .flat_map(char::to_lowercase)
            .collect()
    };
    let wanted = plain(text);
    known
        .iter()
        .map(|key| match plain(key) {
            // A key that stops early, such as `refill` or `tok`, is near whatever it starts.
            known if wanted.len() >= 4 && known.starts_with(&wanted) => (1, *key),
            known => (strsim::damerau_levenshtein(&wanted, &known), *key),
        })
        .filter(|(distance, key)| *distance <= 1.max(key.len() / 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, key)| key)
}
