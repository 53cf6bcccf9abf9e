//! Audit events: who changed a level, when, from what to what.

use super::attr::{Item, number, text};
use super::{config, keys};
use crate::model::{EpochMs, Level, LevelConfig, NamespaceId, StoredLevel};
use aws_sdk_dynamodb::types::AttributeValue;
use ulid::Ulid;

/// How long an audit event is kept, in seconds: 90 days, the reference's default.
const RETENTION_SECONDS: u64 = 90 * 86_400;

/// One change of one level, to be recorded beside it.
#[derive(Debug, Clone)]
pub struct AuditEvent<'a> {
    /// When.
    pub at: EpochMs,
    /// Makes the event's id unique within its millisecond.
    pub random: u128,
    /// Who: the caller's ARN or the stack's id; `None` when nobody could be named.
    pub principal: Option<&'a str>,
    /// The level before; `None` for one that did not exist.
    pub before: Option<&'a StoredLevel>,
    /// The level after; `None` for one that was deleted.
    pub after: Option<&'a LevelConfig>,
}

impl AuditEvent<'_> {
    /// The event as it is stored.
    pub fn encode(&self, ns: &NamespaceId, level: &Level) -> Item {
        let event_id = Ulid::from_parts(self.at.0, self.random).to_string();
        let key = keys::audit(ns, level, &event_id);
        let action = if self.after.is_some() {
            "limits_set"
        } else {
            "limits_deleted"
        };
        let or_null =
            |value: Option<String>| value.map_or(AttributeValue::Null(true), AttributeValue::S);
        let resource = match level {
            Level::System => None,
            Level::Resource(resource) => Some(resource.to_string()),
            Level::Entity(_, scope) => Some(scope.to_string()),
        };
        Item::from([
            ("PK".to_owned(), text(&key.pk)),
            ("SK".to_owned(), text(&key.sk)),
            ("GSI4PK".to_owned(), text(ns.as_str())),
            ("GSI4SK".to_owned(), text(&key.pk)),
            ("entity_id".to_owned(), text(keys::audit_subject(level))),
            ("event_id".to_owned(), text(event_id)),
            ("timestamp".to_owned(), text(rfc3339_seconds(self.at))),
            ("action".to_owned(), text(action)),
            (
                "principal".to_owned(),
                or_null(self.principal.map(str::to_owned)),
            ),
            ("resource".to_owned(), or_null(resource)),
            ("details".to_owned(), AttributeValue::M(self.details())),
            (
                "ttl".to_owned(),
                number(self.at.0 / 1000 + RETENTION_SECONDS),
            ),
        ])
    }

    fn details(&self) -> Item {
        let old = self.before.map(|stored| {
            let mut fields = config::encode_fields(&stored.config);
            // What was lost cannot be told; that something was must be.
            if let Some(damage) = &stored.damage {
                fields.insert("unreadable".to_owned(), text(damage.to_string()));
            }
            ("old", fields)
        });
        let new = self
            .after
            .map(|after| ("new", config::encode_fields(after)));
        let sides = [old, new].into_iter().flatten();
        sides
            .map(|(side, fields)| (side.to_owned(), AttributeValue::M(fields)))
            .collect()
    }
}

/// An instant as the table spells timestamps: UTC, whole seconds, `Z`.
pub fn rfc3339_seconds(at: EpochMs) -> String {
    i64::try_from(at.0 / 1000)
        .ok()
        .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok())
        .unwrap_or(jiff::Timestamp::MAX)
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}
