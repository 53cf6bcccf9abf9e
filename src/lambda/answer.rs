//! The answer to CloudFormation as a value, and as at most 4,096 bytes.
//!
//! An answer that is one byte too long fails the operation whatever its status says, so the size is
//! measured after escaping, and what goes is `Data` first, then the end of `Reason`: never an id,
//! never the status. Nothing here sends anything.

use super::envelope::{Envelope, escaped_len};
use super::id;
use super::summary::Summary;
use serde::Serialize;
use serde_json::{Map, Value};

/// The longest body that CloudFormation reads, in bytes.
pub const MOST_BYTES: usize = 4096;
/// The longest `PhysicalResourceId` that CloudFormation takes, in bytes.
const LONGEST_ID: usize = 1024;
/// What a reason that was cut ends with.
const CUT: &str = " ... (cut)";

/// Whether the resource is as it was asked to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// It is.
    Success,
    /// It is not.
    Failed,
}

/// What CloudFormation is told. What is `None` is left out: `null` is not understood.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Answer {
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    physical_resource_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logical_resource_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Map<String, Value>>,
}

impl Answer {
    /// The resource is as it was asked to be.
    pub fn success(envelope: &Envelope, physical_id: String, summary: &Summary) -> Answer {
        Answer::new(envelope, Status::Success, None, physical_id, summary)
    }

    /// It is not, and why. A resource that had an id keeps it; one that got none gets a marker that
    /// names nothing, so that the Delete to come touches nothing.
    pub fn failure(
        envelope: &Envelope,
        reason: &str,
        created_id: Option<String>,
        summary: &Summary,
    ) -> Answer {
        let id = envelope
            .physical_id
            .clone()
            .or(created_id)
            .unwrap_or_else(|| marker(envelope));
        let reason = match reason.trim() {
            "" => "it failed for a reason without words".to_owned(),
            reason => reason.to_owned(),
        };
        Answer::new(envelope, Status::Failed, Some(reason), id, summary)
    }

    fn new(
        envelope: &Envelope,
        status: Status,
        reason: Option<String>,
        physical_id: String,
        summary: &Summary,
    ) -> Answer {
        // An id of the event's own goes back as it came; one of ours must be one CloudFormation takes.
        let echoed = envelope.physical_id.as_ref() == Some(&physical_id);
        let physical_resource_id =
            if echoed || (!physical_id.is_empty() && physical_id.len() <= LONGEST_ID) {
                physical_id
            } else {
                marker(envelope)
            };
        let mut answer = Answer {
            status,
            reason,
            physical_resource_id,
            stack_id: envelope.stack_id.clone(),
            request_id: envelope.request_id.clone(),
            logical_resource_id: envelope.logical_id.clone(),
            data: Some(summary.data()),
        };
        answer.trim();
        answer
    }

    /// The status.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Why it failed.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// The id that the resource has from now on.
    pub fn physical_id(&self) -> &str {
        &self.physical_resource_id
    }

    /// The answer as JSON.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// The bytes to send.
    pub fn body(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    fn trim(&mut self) {
        if self.body().len() <= MOST_BYTES {
            return;
        }
        self.data = None;
        let Some(reason) = self.reason.take() else {
            return;
        };
        // With the key, its quotes and a comma: what the reason itself may take.
        let room = MOST_BYTES.saturating_sub(self.body().len() + r#""Reason":"","#.len());
        self.reason = Some(fit(reason, room));
    }
}

fn marker(envelope: &Envelope) -> String {
    let stack = envelope.stack_id.as_deref().unwrap_or_default();
    let logical = envelope.logical_id.as_deref().unwrap_or_default();
    id::never_created(stack, logical)
}

/// Cuts a text so that, escaped, it takes at most `room` bytes.
fn fit(mut text: String, room: usize) -> String {
    if escaped_len(&text) <= room {
        return text;
    }
    let room = room.saturating_sub(CUT.len());
    let mut taken = 0;
    let end = text
        .char_indices()
        .find(|(at, c)| {
            taken += escaped_len(&text[*at..*at + c.len_utf8()]);
            taken > room
        })
        .map_or(text.len(), |(at, _)| at);
    text.truncate(end);
    text.push_str(CUT);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn envelope(stack_id: &str) -> Envelope {
        Envelope::lift(json!({
            "RequestType": "Create", "StackId": stack_id, "RequestId": "r", "LogicalResourceId": "Limits",
        }))
        .expect("a CloudFormation event")
    }

    #[test]
    fn a_body_of_exactly_the_limit_is_left_alone_and_one_byte_more_is_not() {
        let short = Answer::failure(&envelope("s"), "x", None, &Summary::default());
        let room = MOST_BYTES - short.body().len() + 1;
        let fits = Answer::failure(&envelope("s"), &"x".repeat(room), None, &Summary::default());
        assert_eq!(fits.body().len(), MOST_BYTES);
        assert!(fits.data.is_some());
        let over = "x".repeat(room + 1);
        let over = Answer::failure(&envelope("s"), &over, None, &Summary::default());
        assert_eq!(over.data, None);
        assert_eq!(over.reason().map(str::len), Some(room + 1));
    }

    proptest! {
        #[test]
        fn no_reason_makes_a_body_too_long_or_changes_the_status(
            reason in proptest::collection::vec(any::<char>(), 0..3000),
            stack in proptest::collection::vec(any::<char>(), 0..300),
        ) {
            let (reason, stack) = (String::from_iter(reason), String::from_iter(stack));
            let answer = Answer::failure(&envelope(&stack), &reason, None, &Summary::default());
            let body = answer.body();
            prop_assert!(body.len() <= MOST_BYTES, "{} bytes", body.len());
            let json: Value = serde_json::from_slice(&body).expect("JSON");
            prop_assert_eq!(&json["Status"], "FAILED");
            let said = json["Reason"].as_str().expect("a reason");
            prop_assert!(!said.is_empty());
            let kept = said.strip_suffix(CUT).unwrap_or(said);
            prop_assert!(reason.trim().starts_with(kept) || reason.trim().is_empty());
            if said != kept {
                prop_assert!(body.len() > MOST_BYTES - 10, "cut more than needed: {}", body.len());
            }
        }
    }
}
