//! The envelope of a CloudFormation event: what an answer needs, lifted before anything can fail.
//!
//! Nothing here refuses an event. A field that is absent, of another type, or longer than any that
//! CloudFormation sends is simply not there; what that means is decided where it is needed.

use super::event::Event;
use serde_json::{Map, Value};
use std::fmt;

/// The field of the template's properties.
pub(super) const PROPERTIES: &str = "ResourceProperties";
/// The longest `StackId` that is taken over, in bytes of JSON.
const STACK_ID: usize = 1024;
/// The longest `RequestId` and the longest `LogicalResourceId`, in bytes of JSON.
const SHORT_ID: usize = 256;
/// The longest `PhysicalResourceId`, in bytes of JSON: CloudFormation's 1,024 bytes, all escaped.
const PHYSICAL_ID: usize = 2048;

/// What CloudFormation asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestType {
    /// A resource appears.
    Create,
    /// A resource changes, or a change of it is rolled back.
    Update,
    /// A resource goes.
    Delete,
    /// Something else, or nothing that can be read.
    Unknown(String),
}

impl RequestType {
    fn of(value: Option<&Value>) -> RequestType {
        match value {
            Some(Value::String(text)) => match text.as_str() {
                "Create" => RequestType::Create,
                "Update" => RequestType::Update,
                "Delete" => RequestType::Delete,
                other => RequestType::Unknown(other.chars().take(64).collect()),
            },
            Some(_) => RequestType::Unknown("not a text".to_owned()),
            None => RequestType::Unknown("missing".to_owned()),
        }
    }
}

impl fmt::Display for RequestType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RequestType::Create => "Create",
            RequestType::Update => "Update",
            RequestType::Delete => "Delete",
            RequestType::Unknown(_) => "unknown",
        })
    }
}

/// Where the answer goes. A secret: whoever holds it can answer for us, so it prints as nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct ResponseUrl(String);

impl ResponseUrl {
    /// The URL itself, for the request and for nothing else.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ResponseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseUrl(..)")
    }
}

/// One CloudFormation event, taken apart.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// What is asked for.
    pub request_type: RequestType,
    /// Where the answer goes; `None` when there is nowhere to send it.
    pub response_url: Option<ResponseUrl>,
    /// The stack's ARN.
    pub stack_id: Option<String>,
    /// Identifies the request within its stack.
    pub request_id: Option<String>,
    /// The resource's name in the template.
    pub logical_id: Option<String>,
    /// The id that an earlier answer gave the resource. Never empty.
    pub physical_id: Option<String>,
    /// The properties of the template, as they came; `None` when there are none.
    pub properties: Option<Value>,
    /// Why the properties that came are not there.
    pub unreadable: Option<String>,
}

impl Envelope {
    /// Takes a CloudFormation event apart; gives any other event back.
    ///
    /// # Errors
    /// The event, when neither its request type nor its response URL says that it is one.
    pub fn lift(event: impl Into<Event>) -> Result<Envelope, Event> {
        let Event {
            value,
            mut unreadable,
        } = event.into();
        let mut event = match value {
            Value::Object(event)
                if event.contains_key("RequestType") || event.contains_key("ResponseURL") =>
            {
                event
            }
            value => return Err(Event { value, unreadable }),
        };
        Ok(Envelope {
            request_type: RequestType::of(event.get("RequestType")),
            response_url: text(&event, "ResponseURL", usize::MAX).map(ResponseUrl),
            stack_id: text(&event, "StackId", STACK_ID),
            request_id: text(&event, "RequestId", SHORT_ID),
            logical_id: text(&event, "LogicalResourceId", SHORT_ID),
            physical_id: text(&event, "PhysicalResourceId", PHYSICAL_ID),
            properties: event
                .remove(PROPERTIES)
                .filter(|properties| !properties.is_null()),
            unreadable: unreadable.remove(PROPERTIES),
        })
    }
}

/// A text that is not empty and, escaped, no longer than `longest` bytes.
fn text(event: &Map<String, Value>, key: &str, longest: usize) -> Option<String> {
    match event.get(key) {
        Some(Value::String(text)) if !text.is_empty() && escaped_len(text) <= longest => {
            Some(text.clone())
        }
        _ => None,
    }
}

/// The length of a text within a JSON string, quotes aside.
pub(super) fn escaped_len(text: &str) -> usize {
    text.bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
            0..0x20 => 6,
            _ => 1,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_missing_wrong_or_absurd_is_not_there() {
        let event = json!({
            "RequestType": 7, "ResponseURL": ["x"], "StackId": "x".repeat(1025), "RequestId": "",
            "LogicalResourceId": null, "PhysicalResourceId": "\u{1}".repeat(342),
        });
        let envelope = Envelope::lift(event).expect("a CloudFormation event");
        assert_eq!(
            envelope.request_type,
            RequestType::Unknown("not a text".to_owned())
        );
        assert_eq!(envelope.response_url, None);
        for id in [
            envelope.stack_id,
            envelope.request_id,
            envelope.logical_id,
            envelope.physical_id,
        ] {
            assert_eq!(id, None);
        }
        assert_eq!(envelope.properties, None);
    }

    #[test]
    fn any_other_event_is_given_back() {
        for event in [json!({"action": "plan"}), json!([]), json!(null)] {
            assert_eq!(Envelope::lift(event.clone()).unwrap_err(), event.into());
        }
    }

    #[test]
    fn a_response_url_prints_as_nothing() {
        let event = json!({"ResponseURL": "https://example.com/x?Signature=secret"});
        let envelope = Envelope::lift(event).expect("a CloudFormation event");
        assert!(!format!("{envelope:?}").contains("example.com"));
    }

    #[test]
    fn the_escaped_length_is_that_of_the_serialiser() {
        for c in (0..0x11_0000).filter_map(char::from_u32).step_by(7) {
            let text = c.to_string();
            let json = serde_json::to_string(&text).expect("a text");
            assert_eq!(escaped_len(&text) + 2, json.len(), "{c:?}");
        }
    }
}
