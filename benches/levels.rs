//! The table as a stand-in for DynamoDB has it after a large manifest was applied: every item of it as JSON,
//! ready before the first request, so that an answer costs next to nothing.

use crate::{Failure, world};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use zae_limits::manifest::Manifest;
use zae_limits::model::{ManifestOwner, NamespaceId, ProvisionerRecord};
use zae_limits::table::{Item, Key, config, keys, record};

/// Stored items by key, each as JSON text.
#[derive(Debug)]
pub struct Levels(HashMap<Key, String>);

impl Levels {
    /// What an apply of a manifest leaves, but for audit and registries, which no plan reads.
    pub fn applied(ns: &NamespaceId, manifest: &Manifest) -> Result<Levels, Failure> {
        let switches = manifest.levels().iter();
        let switches =
            switches.filter_map(|(level, config)| Some((level.clone(), config.disabled?)));
        let record = ProvisionerRecord {
            managed: manifest.levels().keys().cloned().collect(),
            switches: Some(switches.collect()),
            owner: Some(ManifestOwner::Cli),
            applied_hash: Some(manifest.sha256()),
            rev: 1,
            ..ProvisionerRecord::default()
        };
        let record = record::encode(ns, &record, "1")?;
        let name = Item::from([
            ("PK".to_owned(), text(keys::reserved_pk())),
            (
                "SK".to_owned(),
                text(keys::namespace_by_name(manifest.namespace()).sk),
            ),
            ("namespace_id".to_owned(), text(ns)),
            ("namespace_name".to_owned(), text(manifest.namespace())),
            ("status".to_owned(), text("active")),
        ]);
        let configs = manifest.levels().iter();
        let items = configs
            .map(|(level, declared)| config::encode(ns, level, declared))
            .chain([name, record.main])
            .chain(record.overflow);
        let stored = items.map(|item| {
            let part = |name| match item.get(name) {
                Some(AttributeValue::S(text)) => text.clone(),
                _ => String::new(),
            };
            let key = Key {
                pk: part("PK"),
                sk: part("SK"),
            };
            Ok((key, fields(&item)?.to_string()))
        });
        Ok(Levels(stored.collect::<Result<_, Failure>>()?))
    }

    /// The answer to a read.
    pub fn answer(&self, operation: &str, asked: &Value) -> Result<String, Failure> {
        match operation {
            "GetItem" => Ok(match self.0.get(&key(&asked["Key"])) {
                Some(item) => format!(r#"{{"Item":{item}}}"#),
                None => "{}".to_owned(),
            }),
            "BatchGetItem" => {
                let keys = asked["RequestItems"][world::TABLE]["Keys"].as_array();
                let keys = keys.ok_or("no keys")?.iter();
                let found: Vec<&str> = keys
                    .filter_map(|asked| self.0.get(&key(asked)))
                    .map(String::as_str)
                    .collect();
                let table = world::TABLE;
                Ok(format!(
                    r#"{{"Responses":{{"{table}":[{}]}}}}"#,
                    found.join(",")
                ))
            }
            // No fan-out is pending.
            "Query" => Ok(r#"{"Items":[],"Count":0,"ScannedCount":0}"#.to_owned()),
            other => Err(format!("the stand-in has no answer to {other}").into()),
        }
    }
}

fn text(value: impl ToString) -> AttributeValue {
    AttributeValue::S(value.to_string())
}

fn key(asked: &Value) -> Key {
    let part = |name: &str| {
        asked[name]["S"]
            .as_str()
            .map(str::to_owned)
            .unwrap_or_default()
    };
    Key {
        pk: part("PK"),
        sk: part("SK"),
    }
}

fn fields(item: &Item) -> Result<Value, Failure> {
    let fields = item
        .iter()
        .map(|(name, value)| Ok((name.clone(), written(value)?)));
    Ok(Value::Object(
        fields.collect::<Result<Map<_, _>, Failure>>()?,
    ))
}

/// A value as DynamoDB writes it. Of the types, those that levels and the record have.
fn written(value: &AttributeValue) -> Result<Value, Failure> {
    Ok(match value {
        AttributeValue::S(text) => json!({ "S": text }),
        AttributeValue::N(digits) => json!({ "N": digits }),
        AttributeValue::Bool(is) => json!({ "BOOL": is }),
        AttributeValue::M(inner) => json!({ "M": fields(inner)? }),
        AttributeValue::L(inner) => {
            let inner = inner.iter().map(written);
            json!({ "L": inner.collect::<Result<Vec<_>, _>>()? })
        }
        other => return Err(format!("no level has a value like {other:?}").into()),
    })
}
