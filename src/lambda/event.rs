//! The event from the text that came: whatever one field holds, the others can still be read.
//!
//! Some JSON has no value here: nested deeper than the parser goes, half a surrogate pair, a number out of
//! range. The runtime must not be the one to find out, since what it cannot decode nobody answers.

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// An event, as far as it can be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Event {
    /// The event without the fields that cannot be read; `null` when nothing can.
    pub value: Value,
    /// Why a field cannot be read, by its name; under an empty name, why nothing can.
    pub unreadable: BTreeMap<String, String>,
}

impl Event {
    /// Reads an event as a whole, or else field by field.
    pub fn read(raw: &RawValue) -> Event {
        let error = match serde_json::from_str::<Value>(raw.get()) {
            Ok(value) => return value.into(),
            Err(error) => error,
        };
        let Ok(fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(raw.get()) else {
            return Event {
                value: Value::Null,
                unreadable: [(String::new(), error.to_string())].into(),
            };
        };
        let (mut readable, mut unreadable) = (Map::new(), BTreeMap::new());
        for (name, field) in fields {
            match serde_json::from_str(field.get()) {
                Ok(value) => drop(readable.insert(name, value)),
                Err(error) => drop(unreadable.insert(name, error.to_string())),
            }
        }
        Event {
            value: Value::Object(readable),
            unreadable,
        }
    }
}

impl From<Value> for Event {
    fn from(value: Value) -> Event {
        Event {
            value,
            unreadable: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Event {
        let raw: Box<RawValue> = serde_json::from_str(text).expect("JSON");
        Event::read(&raw)
    }

    #[test]
    fn a_field_that_cannot_be_read_leaves_the_others() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for bad in [deep.as_str(), r#""\ud800""#, "1e999"] {
            let event = read(&format!(r#"{{"a": 1, "b": {bad}, "c": [null]}}"#));
            assert_eq!(event.value, json!({"a": 1, "c": [null]}));
            assert_eq!(event.unreadable.keys().collect::<Vec<_>>(), ["b"]);
        }
    }

    #[test]
    fn what_is_no_object_is_read_as_a_whole_or_not() {
        assert_eq!(read("[1]"), json!([1]).into());
        let event = read("1e999");
        assert!(event.value.is_null() && event.unreadable.contains_key(""));
    }
}
