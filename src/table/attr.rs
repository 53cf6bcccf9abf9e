//! Reading and comparing attribute values. An item that does not read as the format says is an
//! error that names the item and the attribute; it is never guessed at.

use crate::model::Damage;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::HashMap;
use thiserror::Error;

/// An item as the SDK gives and takes it.
pub type Item = HashMap<String, AttributeValue>;

/// An item that does not follow the format.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("item {pk:?} / {sk:?}: attribute {attribute:?} {problem}")]
pub struct ItemError {
    /// The item's partition key.
    pub pk: String,
    /// The item's sort key.
    pub sk: String,
    /// The attribute that does not read.
    pub attribute: String,
    /// What is wrong with it.
    pub problem: String,
}

impl From<ItemError> for Damage {
    fn from(error: ItemError) -> Damage {
        Damage {
            item: format!("{:?} / {:?}", error.pk, error.sk),
            problem: format!("attribute {:?} {}", error.attribute, error.problem),
        }
    }
}

/// A text attribute.
pub fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

/// A number attribute.
pub fn number(value: impl ToString) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// A boolean attribute.
pub fn boolean(value: bool) -> AttributeValue {
    AttributeValue::Bool(value)
}

/// Reads one item's attributes by type.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    item: &'a Item,
}

impl<'a> Reader<'a> {
    /// A reader over one item.
    pub fn new(item: &'a Item) -> Self {
        Reader { item }
    }

    /// The attribute as it is stored.
    pub fn value(self, name: &str) -> Option<&'a AttributeValue> {
        self.item.get(name)
    }

    /// The item's partition key, empty when the item has none.
    pub fn pk(self) -> &'a str {
        self.key("PK")
    }

    /// The item's sort key, empty when the item has none.
    pub fn sk(self) -> &'a str {
        self.key("SK")
    }

    fn key(self, name: &str) -> &'a str {
        match self.item.get(name) {
            Some(AttributeValue::S(key)) => key,
            _ => "",
        }
    }

    /// An error about one attribute of this item.
    pub fn error(self, attribute: &str, problem: impl Into<String>) -> ItemError {
        ItemError {
            pk: self.pk().to_owned(),
            sk: self.sk().to_owned(),
            attribute: attribute.to_owned(),
            problem: problem.into(),
        }
    }

    /// A text, or `None` when the attribute is absent.
    ///
    /// # Errors
    /// [`ItemError`] when it is no string.
    pub fn text(self, name: &str) -> Result<Option<&'a str>, ItemError> {
        match self.item.get(name) {
            None => Ok(None),
            Some(AttributeValue::S(value)) => Ok(Some(value)),
            Some(_) => Err(self.error(name, "is not a string")),
        }
    }

    /// A text that must be there.
    ///
    /// # Errors
    /// [`ItemError`] when it is absent or no string.
    pub fn required_text(self, name: &str) -> Result<&'a str, ItemError> {
        self.text(name)?
            .ok_or_else(|| self.error(name, "is missing"))
    }

    /// A whole number from 0, or `None` when the attribute is absent.
    ///
    /// # Errors
    /// [`ItemError`] when it is no whole number from 0.
    pub fn whole(self, name: &str) -> Result<Option<u64>, ItemError> {
        match self.item.get(name) {
            None => Ok(None),
            Some(AttributeValue::N(digits)) => whole_number(digits)
                .map(Some)
                .ok_or_else(|| self.error(name, format!("is {digits}, not a whole number from 0"))),
            Some(_) => Err(self.error(name, "is not a number")),
        }
    }

    /// A whole number that must be there.
    ///
    /// # Errors
    /// [`ItemError`] when it is absent or no whole number from 0.
    pub fn required_whole(self, name: &str) -> Result<u64, ItemError> {
        self.whole(name)?
            .ok_or_else(|| self.error(name, "is missing"))
    }

    /// A boolean, or `None` when the attribute is absent.
    ///
    /// # Errors
    /// [`ItemError`] when it is no boolean.
    pub fn boolean(self, name: &str) -> Result<Option<bool>, ItemError> {
        match self.item.get(name) {
            None => Ok(None),
            Some(AttributeValue::Bool(value)) => Ok(Some(*value)),
            Some(_) => Err(self.error(name, "is not a boolean")),
        }
    }

    /// A map, or `None` when the attribute is absent.
    ///
    /// # Errors
    /// [`ItemError`] when it is no map.
    pub fn map(self, name: &str) -> Result<Option<&'a Item>, ItemError> {
        match self.item.get(name) {
            None => Ok(None),
            Some(AttributeValue::M(map)) => Ok(Some(map)),
            Some(_) => Err(self.error(name, "is not a map")),
        }
    }

    /// A list of texts; empty when the attribute is absent.
    ///
    /// # Errors
    /// [`ItemError`] when it is no list of strings.
    pub fn texts(self, name: &str) -> Result<Vec<&'a str>, ItemError> {
        match self.item.get(name) {
            None => Ok(Vec::new()),
            Some(value) => {
                texts_of(value).ok_or_else(|| self.error(name, "is not a list of strings"))
            }
        }
    }
}

/// The texts of a list or a string set, in stored order. `None` when the value is neither.
pub fn texts_of(value: &AttributeValue) -> Option<Vec<&str>> {
    match value {
        AttributeValue::L(values) => values
            .iter()
            .map(|value| value.as_s().ok().map(String::as_str))
            .collect(),
        AttributeValue::Ss(values) => Some(values.iter().map(String::as_str).collect()),
        _ => None,
    }
}

/// Whether two values are equal as the table sees them: numbers by value, sets in any order.
pub fn same_value(a: &AttributeValue, b: &AttributeValue) -> bool {
    match (a, b) {
        (AttributeValue::N(a), AttributeValue::N(b)) => {
            a == b || canonical_number(a).is_some_and(|a| Some(a) == canonical_number(b))
        }
        (AttributeValue::Ss(a), AttributeValue::Ss(b)) => {
            let (mut a, mut b) = (a.clone(), b.clone());
            a.sort();
            b.sort();
            a == b
        }
        (AttributeValue::L(a), AttributeValue::L(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
        }
        (AttributeValue::M(a), AttributeValue::M(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| same_value(a, b)))
        }
        _ => a == b,
    }
}

/// A whole number from 0, however it is spelled: `1000`, `1000.0`, `1E+3`.
fn whole_number(digits: &str) -> Option<u64> {
    if let Ok(value) = digits.parse() {
        return Some(value);
    }
    let (negative, mantissa, exponent) = canonical_number(digits)?;
    if mantissa.is_empty() {
        return Some(0);
    }
    let zeros = usize::try_from(exponent).ok().filter(|zeros| *zeros < 20)?;
    if negative {
        return None;
    }
    format!("{mantissa}{}", "0".repeat(zeros)).parse().ok()
}

/// Sign, digits without outer zeros, and the power of ten of the last digit. `None` when the text
/// is not a decimal number.
fn canonical_number(digits: &str) -> Option<(bool, String, i64)> {
    let (negative, rest) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, digits.strip_prefix('+').unwrap_or(digits)),
    };
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (rest, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut exponent = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    let significant = all.trim_start_matches('0');
    let trimmed = significant.trim_end_matches('0');
    exponent = exponent.checked_add(i64::try_from(significant.len() - trimmed.len()).ok()?)?;
    if trimmed.is_empty() {
        return Some((false, String::new(), 0));
    }
    Some((negative, trimmed.to_owned(), exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_by_value() {
        let same = |a: &str, b: &str| same_value(&number(a), &number(b));
        assert!(same("1000", "1000.0"));
        assert!(same("1e3", "1000"));
        assert!(same("-0", "0.000"));
        assert!(same("0.5", "5E-1"));
        assert!(!same("1", "-1"));
        assert!(!same("10", "1"));
        assert!(!same("x", "y"));
    }

    #[test]
    fn whole_numbers_read_however_they_are_spelled() {
        assert_eq!(whole_number("1000.0"), Some(1000));
        assert_eq!(whole_number("1E+3"), Some(1000));
        assert_eq!(whole_number("0.0"), Some(0));
        for bad in [
            "-1",
            "1.5",
            "",
            "x",
            "1e40",
            "NaN",
            "1e99999999999999999999",
        ] {
            assert_eq!(whole_number(bad), None, "{bad}");
        }
    }
}
