//! Attributes of config items before they are any: written to an item that is stored, or compared with
//! one that is, which of a hundred thousand levels happens to nearly all.

use super::attr::{boolean, number, same_value, text};
use crate::model::LimitName;
use aws_sdk_dynamodb::types::AttributeValue;
use std::borrow::Cow;

/// What an attribute is written with, before it is one.
pub(super) enum Written<'v> {
    Text(Cow<'v, str>),
    Number(u64),
    Boolean(bool),
}

impl From<Written<'_>> for AttributeValue {
    fn from(written: Written<'_>) -> AttributeValue {
        match written {
            Written::Text(value) => text(value),
            Written::Number(value) => number(value),
            Written::Boolean(value) => boolean(value),
        }
    }
}

impl Written<'_> {
    /// Whether a stored value is this one, as the table sees it.
    pub(super) fn is(&self, stored: &AttributeValue) -> bool {
        match (self, stored) {
            (Written::Text(value), AttributeValue::S(stored)) => value == stored,
            (Written::Boolean(value), AttributeValue::Bool(stored)) => value == stored,
            (Written::Number(value), AttributeValue::N(digits)) => {
                digits.parse() == Ok(*value) || same_value(&number(value), stored)
            }
            _ => false,
        }
    }
}

pub(super) fn as_text(value: &str) -> Written<'_> {
    Written::Text(Cow::Borrowed(value))
}

/// The attributes of one limit, written into one text: most of those that are looked for are not there.
pub(super) struct FieldNames {
    text: String,
    stem: usize,
}

impl FieldNames {
    pub(super) fn of(prefix: &str, name: &LimitName) -> FieldNames {
        let text = format!("{prefix}{name}_");
        let stem = text.len();
        FieldNames { text, stem }
    }

    pub(super) fn at(&mut self, field: &str) -> &str {
        self.text.truncate(self.stem);
        self.text.push_str(field);
        &self.text
    }
}
