//! A manifest as the properties of `Custom::ZaeLimiterLimits`, for a template.
//!
//! Every scalar is a string: that is how CloudFormation delivers it anyway, and a string is the one
//! thing that it does not rewrite on the way (a large number may arrive as `1.0E15`). The keys of the
//! resource itself, such as `ServiceToken`, are the template's to add.

use super::Manifest;
use super::problem::{Problem, Problems, Step, path_text, quoted};
use super::tree::Place;
use crate::model::{Level, LevelConfig, NamespaceName};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The keys below which stand names, which are spelled as they are.
const NAMED: [&str; 3] = ["resources", "entities", "limits"];

/// `Namespace`, `System`, `Resources` and `Entities` that say what a manifest says.
/// [`parse_properties`](super::parse_properties) reads them back.
///
/// # Errors
/// Every name that CloudFormation would take for one of its own functions instead of passing it on.
pub fn to_properties(manifest: &Manifest) -> Result<Value, Problems> {
    // An entity stands in the path of each of its levels, and is refused once.
    let keys: BTreeSet<Vec<&str>> = manifest.levels().iter().flat_map(keys).collect();
    let problems = keys
        .iter()
        .filter_map(|path| refuse_key(path))
        .chain(refuse_namespace(manifest.namespace()))
        .collect();
    match Problems::of_file(None, problems) {
        Some(problems) => Err(problems),
        None => Ok(spelled(&manifest.canonical_json())),
    }
}

/// The path of every name that a level needs as a key.
fn keys<'m>((level, config): (&'m Level, &'m LevelConfig)) -> Vec<Vec<&'m str>> {
    let path = match level {
        Level::System => vec!["system"],
        Level::Resource(resource) => vec!["resources", resource.as_str()],
        Level::Entity(entity, scope) => {
            vec!["entities", entity.as_str(), "resources", scope.as_str()]
        }
    };
    let limits = config.limits.keys().map(|name| {
        let below = ["limits", name.as_str()];
        path.iter().copied().chain(below).collect()
    });
    let prefixes = (2..=path.len())
        .step_by(2)
        .map(|length| path[..length].to_vec());
    prefixes.chain(limits).collect()
}

fn refuse_key(path: &[&str]) -> Option<Problem> {
    let name = path.last()?;
    let is_intrinsic = *name == "Ref" || name.starts_with("Fn::");
    is_intrinsic.then(|| {
        let message = format!(
            "{} is a function of CloudFormation, so no property can have that name",
            quoted(name)
        );
        let steps: Vec<_> = path.iter().copied().map(Step::Key).collect();
        Problem::at(Place::default(), message)
            .path(path_text(&steps))
            .hint("put the manifest into a file and name it with `ManifestPath`")
    })
}

/// A namespace may hold any character, and with it what CloudFormation replaces by a secret.
fn refuse_namespace(namespace: &NamespaceName) -> Option<Problem> {
    namespace.as_str().contains("{{resolve:").then(|| {
        let message = format!(
            "CloudFormation would replace the name {} by what it refers to",
            quoted(namespace.as_str())
        );
        Problem::at(Place::default(), message)
            .path("namespace")
            .hint("give `NamespaceId`, or put the manifest into a file and name it with `ManifestPath`")
    })
}

/// A mapping with its keys in PascalCase and its scalars as strings.
fn spelled(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(key, value)| (pascal(key), field(key, value)))
                .collect(),
        ),
        Value::Array(entries) => entries.iter().map(spelled).collect(),
        Value::String(_) => value.clone(),
        scalar => Value::String(scalar.to_string()),
    }
}

fn field(key: &str, value: &Value) -> Value {
    match value {
        Value::Object(named) if NAMED.contains(&key) => {
            let named = named.iter();
            let named: Map<_, _> = named
                .map(|(name, value)| (name.clone(), spelled(value)))
                .collect();
            Value::Object(named)
        }
        other => spelled(other),
    }
}

/// `refill_amount` as `RefillAmount`.
fn pascal(key: &str) -> String {
    let words = key.split('_').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    words.collect()
}
