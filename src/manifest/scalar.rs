//! Scalars, by the type that is wanted and never by what they look like.
//!
//! YAML and JSON scalars are typed already and are taken at their word. CloudFormation turns every
//! scalar into a string; there a string becomes what its property wants, or a problem.

use super::keys::{Dialect, Found};
use super::problem::quoted;
use super::reader::Reader;
use super::tree::{Node, Value};
use crate::model::Switch;
use std::fmt::Display;

impl<'t> Reader<'t> {
    /// `true`, `false` or `bypass`.
    pub(super) fn switch(&mut self, node: &'t Node<'t>) -> Found<Switch> {
        let any_case = self.dialect == Dialect::Properties;
        let text = match &node.value {
            Value::Bool(true) => return Found::Is(Switch::Disabled),
            Value::Bool(false) => return Found::Is(Switch::Enabled),
            Value::Text(text) => text.as_ref(),
            Value::Null => {
                self.report_with(
                    node.place,
                    "no value, which could mean two things",
                    "write true, false or bypass, or delete the key to inherit",
                );
                return Found::Wrong;
            }
            _ => {
                self.report_with(
                    node.place,
                    format!(
                        "expected true, false or bypass, found {}",
                        self.describe(node)
                    ),
                    "true refuses every request, false never does, bypass admits every request",
                );
                return Found::Wrong;
            }
        };
        if text == "bypass" || (any_case && text.eq_ignore_ascii_case("bypass")) {
            return Found::Is(Switch::Bypass);
        }
        if any_case {
            if text.eq_ignore_ascii_case("true") {
                return Found::Is(Switch::Disabled);
            }
            if text.eq_ignore_ascii_case("false") {
                return Found::Is(Switch::Enabled);
            }
        }
        self.report_with(
            node.place,
            format!(
                "expected true, false or bypass, found the text {}",
                quoted(text)
            ),
            meant_switch(text),
        );
        Found::Wrong
    }

    /// `true` or `false`.
    pub(super) fn flag(&mut self, node: &'t Node<'t>) -> Found<bool> {
        let text = match &node.value {
            Value::Bool(flag) => return Found::Is(*flag),
            Value::Text(text) => text.as_ref(),
            _ => {
                self.wrong_type(node, "true or false");
                return Found::Wrong;
            }
        };
        if self.dialect == Dialect::Properties {
            if text.eq_ignore_ascii_case("true") {
                return Found::Is(true);
            }
            if text.eq_ignore_ascii_case("false") {
                return Found::Is(false);
            }
        }
        let message = format!("expected true or false, found the text {}", quoted(text));
        self.report_maybe(node.place, message, meant_flag(text));
        Found::Wrong
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(
        &mut self,
        node: &'t Node<'t>,
        words: &[(&'static str, T)],
    ) -> Found<T> {
        let listed = || {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            words.join(" or ")
        };
        let Value::Text(text) = &node.value else {
            self.wrong_type(node, &listed());
            return Found::Wrong;
        };
        if let Some((_, value)) = words.iter().find(|(word, _)| word == text) {
            return Found::Is(*value);
        }
        let message = format!("expected {}, found the text {}", listed(), quoted(text));
        match words
            .iter()
            .find(|(word, _)| word.eq_ignore_ascii_case(text))
        {
            Some((word, _)) => self.report_with(node.place, message, format!("write {word}")),
            None => self.report(node.place, message),
        }
        Found::Wrong
    }

    /// A text.
    pub(super) fn text(&mut self, node: &'t Node<'t>) -> Found<&'t str> {
        match &node.value {
            Value::Text(text) => Found::Is(text),
            Value::Whole(_) | Value::Negative(_) | Value::Float(_) | Value::Bool(_)
                if self.dialect == Dialect::Yaml =>
            {
                let found = self.describe(node);
                self.report_with(
                    node.place,
                    format!("expected a text, found {found}"),
                    "write it in quotes",
                );
                Found::Wrong
            }
            _ => {
                self.wrong_type(node, "a text");
                Found::Wrong
            }
        }
    }

    /// A text that the model has a rule for.
    pub(super) fn parsed<T, E: Display>(
        &mut self,
        node: &'t Node<'t>,
        parse: fn(&str) -> Result<T, E>,
    ) -> Found<T> {
        let Found::Is(text) = self.text(node) else {
            return Found::Wrong;
        };
        match parse(text) {
            Ok(value) => Found::Is(value),
            Err(error) => {
                self.report(node.place, error.to_string());
                Found::Wrong
            }
        }
    }

    /// A whole number from `least` to `most`. An empty string among CloudFormation properties is
    /// how a template says "not given".
    pub(super) fn whole(&mut self, node: &'t Node<'t>, least: u64, most: u64) -> Found<u64> {
        let number = match &node.value {
            Value::Text(text) if self.dialect == Dialect::Properties => {
                if text.is_empty() {
                    return Found::Absent;
                }
                decimal(text)
            }
            Value::Whole(number) if self.is_decimal(node) => Some(i128::from(*number)),
            Value::Negative(number) => Some(i128::from(*number)),
            // Beyond 64 bits a number arrives as a float.
            Value::Float(number) if number.is_finite() && number.fract() == 0.0 => {
                let digits = self.raw(node);
                let written_whole = digits.is_empty() || digits.bytes().all(|b| b.is_ascii_digit());
                (written_whole && *number >= most as f64).then_some(i128::MAX)
            }
            _ => None,
        };
        let fits = number.and_then(|number| u64::try_from(number).ok());
        if let Some(number) = fits.filter(|number| (least..=most).contains(number)) {
            return Found::Is(number);
        }
        let found = self.describe(node);
        let (message, hint) = match number {
            Some(number) if number < i128::from(least) => {
                (format!("must be at least {least}, found {found}"), None)
            }
            Some(_) => (format!("must be at most {most}, found {found}"), None),
            None => (
                format!("expected a whole number, found {found}"),
                meant_number(node),
            ),
        };
        self.report_maybe(node.place, message, hint);
        Found::Wrong
    }

    /// A finite number, with or without a fraction.
    pub(super) fn number(&mut self, node: &'t Node<'t>) -> Found<f64> {
        let number = match &node.value {
            Value::Text(text) if self.dialect == Dialect::Properties => {
                if text.is_empty() {
                    return Found::Absent;
                }
                let digits =
                    |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E');
                text.chars()
                    .all(digits)
                    .then(|| text.parse().ok())
                    .flatten()
            }
            Value::Whole(number) => Some(*number as f64),
            Value::Negative(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        };
        match number {
            Some(number) if number.is_finite() => Found::Is(number),
            _ => {
                let found = self.describe(node);
                self.report(
                    node.place,
                    format!("expected a finite number, found {found}"),
                );
                Found::Wrong
            }
        }
    }

    /// Whether a YAML number is written in plain decimal: other bases are read differently by
    /// different parsers.
    fn is_decimal(&self, node: &Node<'_>) -> bool {
        let raw = self.raw(node).as_bytes();
        !matches!(raw, [b'0', b'x' | b'o' | b'b' | b'X' | b'O' | b'B', ..])
            && !matches!(raw, [b'+', ..])
    }
}

/// A whole number in plain decimal: no plus sign, blank, separator or leading zero, any length.
fn decimal(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let leading_zero = digits.len() > 1 && digits.starts_with('0');
    if digits.is_empty() || leading_zero || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let negative = digits.len() < text.len();
    let too_long = if negative { i128::MIN } else { i128::MAX };
    Some(text.parse().unwrap_or(too_long))
}

fn meant_switch(text: &str) -> String {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" => "write true, without quotes".to_owned(),
        "false" => "write false, without quotes".to_owned(),
        "bypass" => "write bypass, in lower case".to_owned(),
        "yes" | "y" | "on" | "1" | "disabled" => {
            "write true if every request is to be refused".to_owned()
        }
        "no" | "n" | "off" | "0" | "enabled" => {
            "write false if requests are to be admitted, true if they are to be refused".to_owned()
        }
        "" => "write true, false or bypass, or delete the key to inherit".to_owned(),
        other => {
            match strsim::damerau_levenshtein(&other.chars().take(20).collect::<String>(), "bypass")
            {
                0..=2 => "did you mean bypass?".to_owned(),
                _ => "true refuses every request, false never does, bypass admits every request"
                    .to_owned(),
            }
        }
    }
}

fn meant_flag(text: &str) -> Option<String> {
    let hint = match text.trim().to_ascii_lowercase().as_str() {
        "true" | "false" if text.chars().all(|c| c.is_ascii_lowercase()) => {
            return Some(format!("write {text}, without quotes"));
        }
        "true" | "yes" | "y" | "on" => "write true",
        "false" | "no" | "n" | "off" => "write false",
        _ => return None,
    };
    Some(hint.to_owned())
}

fn meant_number(node: &Node<'_>) -> Option<String> {
    match &node.value {
        // Some parsers read a leading zero as base 8.
        Value::Text(text) if text.len() > 1 && text.starts_with('0') => None,
        Value::Text(text) => {
            let digits: String = text
                .trim()
                .chars()
                .filter(|c| !matches!(c, '_' | ','))
                .collect();
            let number = decimal(&digits)?;
            let quotes = if digits == **text {
                ", without quotes"
            } else {
                ""
            };
            Some(format!("write {number}{quotes}"))
        }
        Value::Whole(number) => Some(format!("write {number}")),
        Value::Float(number) if number.fract() == 0.0 && (0.0..1e15).contains(number) => {
            Some(format!("write {number}"))
        }
        _ => None,
    }
}
