//! Names, each valid by construction: parsing makes them and nothing else does.
//!
//! The rules are the table's (docs/format.md): a `#` in an id would forge another item's key, so a
//! name is checked before it can reach one. Clones share one text: a level's names stand in the manifest,
//! in the record, in the state and in the plan.

use super::Scope;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// Why a text is not a name of the kind asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NameError {
    /// The text is empty.
    #[error("{kind} is empty")]
    Empty {
        /// What was to be named, such as "an entity id".
        kind: &'static str,
    },
    /// The text has more characters than the kind allows.
    #[error("{kind} has {length} characters, and at most {max} are allowed")]
    TooLong {
        /// What was to be named.
        kind: &'static str,
        /// Characters found.
        length: usize,
        /// Characters allowed.
        max: usize,
    },
    /// A character stands where the kind does not allow it.
    #[error("{kind} may not {place} {found:?}: {rule}")]
    Character {
        /// What was to be named.
        kind: &'static str,
        /// "start with" or "contain".
        place: &'static str,
        /// The character.
        found: char,
        /// The rule, in words.
        rule: &'static str,
    },
    /// The name is kept for the table's own use.
    #[error("{name:?} is reserved, choose another name for {kind}")]
    Reserved {
        /// What was to be named.
        kind: &'static str,
        /// The reserved name.
        name: &'static str,
    },
}

struct Rule {
    kind: &'static str,
    max: usize,
    first: fn(char) -> bool,
    rest: fn(char) -> bool,
    text: &'static str,
    reserved: &'static [&'static str],
}

impl Rule {
    fn check(&self, text: &str) -> Result<(), NameError> {
        let kind = self.kind;
        let Some(first) = text.chars().next() else {
            return Err(NameError::Empty { kind });
        };
        if let Some(name) = self.reserved.iter().find(|name| **name == text) {
            return Err(NameError::Reserved { kind, name });
        }
        let rule = self.text;
        if !(self.first)(first) {
            return Err(NameError::Character {
                kind,
                place: "start with",
                found: first,
                rule,
            });
        }
        let mut length = 0;
        for found in text.chars() {
            if !(self.rest)(found) {
                return Err(NameError::Character {
                    kind,
                    place: "contain",
                    found,
                    rule,
                });
            }
            length += 1;
        }
        if length > self.max {
            return Err(NameError::TooLong {
                kind,
                length,
                max: self.max,
            });
        }
        Ok(())
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $rule:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            const RULE: Rule = $rule;

            /// Checks a text against the rules of this kind of name.
            ///
            /// # Errors
            /// [`NameError`] says which rule the text breaks.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                Self::RULE.check(text)?;
                Ok(Self(text.into()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::parse(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.as_str().to_owned()
            }
        }
    };
}

impl LimitName {
    /// The limit that every bucket has of its own, and no level gives: the writes of its partition.
    pub const RESERVED: &'static str = "wcu";
}

impl NamespaceId {
    /// The namespace that holds the table's own records.
    pub const RESERVED: &'static str = "_";
}

name!(
    /// Who is metered: a user, a key, an organisation. At most 256 of `A-Z a-z 0-9 _ . : @ -`.
    EntityId,
    Rule {
        kind: "an entity id",
        max: 256,
        first: |c| c.is_ascii_alphanumeric(),
        rest: |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '@' | '-'),
        text: "it starts with a letter or a digit and holds letters, digits and _ . : @ -",
        reserved: &[],
    }
);
name!(
    /// What is metered: a model, an endpoint. At most 64 of `A-Z a-z 0-9 _ . : / -`.
    ResourceName,
    Rule {
        kind: "a resource name",
        max: 64,
        first: |c| c.is_ascii_alphabetic(),
        rest: |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '/' | '-'),
        text: "it starts with a letter and holds letters, digits and _ . : / -",
        reserved: &[Scope::DEFAULT],
    }
);
name!(
    /// One token bucket of a level, such as `rpm`. At most 64 of `A-Z a-z 0-9 _ . -`.
    LimitName,
    Rule {
        kind: "a limit name",
        max: 64,
        first: |c| c.is_ascii_alphabetic(),
        rest: |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'),
        text: "it starts with a letter and holds letters, digits and _ . -",
        reserved: &[LimitName::RESERVED],
    }
);
name!(
    /// A namespace as people call it. The registry maps it to a [`NamespaceId`].
    NamespaceName,
    Rule {
        kind: "a namespace",
        max: 255,
        first: |c| !c.is_control(),
        rest: |c| !c.is_control(),
        text: "it holds no control characters",
        reserved: &[NamespaceId::RESERVED],
    }
);
name!(
    /// A namespace as the table's keys hold it: opaque, URL-safe base64 when made here.
    NamespaceId,
    Rule {
        kind: "a namespace id",
        max: 64,
        first: |c| c.is_ascii_alphanumeric() || c == '_',
        rest: |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'),
        text: "it starts with a letter, a digit or _ and holds letters, digits, _ and -",
        reserved: &[NamespaceId::RESERVED],
    }
);
