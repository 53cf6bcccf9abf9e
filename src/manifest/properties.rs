//! The properties of `Custom::ZaeLimiterLimits`.
//!
//! CloudFormation delivers every scalar as a string, nested ones too, whatever the template says.
//! This file reads the properties of the resource itself; the structured manifest inside them is
//! read by the same code as a file. It opens no bundled manifest and decides nothing about a stack.

use super::keys::{Dialect, Found, Given, Keys, Spelled};
use super::levels::{Declared, ENTITIES, NAMESPACE, NOT_AT_ROOT, RESOURCES, SYSTEM};
use super::problem::{Problem, Problems, quoted};
use super::reader::Reader;
use super::tree::{Node, Place, Value};
use crate::model::{Level, LevelConfig, NamespaceId, NamespaceName, sha256_hex};
use serde::Serialize;
use std::collections::BTreeMap;

/// What happens to a switch that someone set where the manifest is silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OutOfBand {
    /// It stays, and is reported.
    #[default]
    Keep,
    /// It is removed.
    Revert,
}

/// How a fan-out that could not finish is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFanoutError {
    /// As a failure of the resource.
    #[default]
    Fail,
    /// As a success that says how much is pending.
    Report,
}

/// Where the manifest of a resource comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// The properties themselves. Empty when they declare nothing.
    Structured(BTreeMap<Level, LevelConfig>),
    /// A YAML manifest bundled with the function, relative to its root.
    ManifestPath(String),
    /// The YAML text itself.
    ManifestYaml(String),
}

impl Default for Source {
    fn default() -> Source {
        Source::Structured(BTreeMap::new())
    }
}

/// The properties of a resource, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Properties {
    /// The table; `None` for the function's own.
    pub table_name: Option<String>,
    /// The namespace by name; `None` when it is not given.
    pub namespace: Option<NamespaceName>,
    /// The namespace by id; it goes before the name.
    pub namespace_id: Option<NamespaceId>,
    /// The manifest.
    pub source: Source,
    /// The SHA-256 the manifest's bytes must have, in lower-case hex.
    pub manifest_sha256: Option<String>,
    /// Whether every declared level is fanned out, changed or not.
    pub full_apply: bool,
    /// What happens to switches set elsewhere.
    pub out_of_band: OutOfBand,
    /// How an unfinished fan-out is answered.
    pub on_fanout_error: OnFanoutError,
    /// The most levels that may be deleted; `None` leaves the guard's own rule.
    pub max_delete: Option<u64>,
    /// Whether an empty manifest may empty a namespace.
    pub allow_empty: bool,
    /// Whether a namespace of another owner is taken over.
    pub adopt: bool,
}

impl Properties {
    /// The namespace of a resource that names none.
    pub const DEFAULT_NAMESPACE: &'static str = "default";

    /// Holds the bytes of the manifest against `ManifestSha256`.
    ///
    /// # Errors
    /// When they differ. Without the property anything passes.
    pub fn check_content(&self, content: &[u8]) -> Result<(), Problem> {
        let found = sha256_hex(content);
        match &self.manifest_sha256 {
            Some(expected) if *expected != found => Err(Problem::at(
                Place::default(),
                format!("the manifest's SHA-256 is {found}, expected {expected}"),
            )
            .path(MANIFEST_SHA256)
            .hint("deploy the function and the template from the same build")),
            _ => Ok(()),
        }
    }
}

const MANIFEST_PATH: &str = "ManifestPath";
const MANIFEST_YAML: &str = "ManifestYaml";
const MANIFEST_SHA256: &str = "ManifestSha256";

const OUT_OF_BAND: [(&str, OutOfBand); 2] =
    [("keep", OutOfBand::Keep), ("revert", OutOfBand::Revert)];
const ON_FANOUT_ERROR: [(&str, OnFanoutError); 2] = [
    ("fail", OnFanoutError::Fail),
    ("report", OnFanoutError::Report),
];

/// A key that only properties have.
const fn only(name: &'static str) -> Spelled {
    Spelled(name, name)
}

const ROOT: Keys<18> = Keys {
    known: [
        only("TableName"),
        NAMESPACE,
        only("NamespaceId"),
        SYSTEM,
        RESOURCES,
        ENTITIES,
        only(MANIFEST_PATH),
        only(MANIFEST_YAML),
        only(MANIFEST_SHA256),
        only("FullApply"),
        only("OutOfBand"),
        only("OnFanoutError"),
        only("MaxDelete"),
        only("AllowEmpty"),
        only("Adopt"),
        // Of no interest here: it changes with what is deployed, so that CloudFormation sends an Update.
        only("FunctionVersion"),
        // CloudFormation's own, of no interest here.
        only("ServiceToken"),
        only("ServiceTimeout"),
    ],
    elsewhere: NOT_AT_ROOT,
};

/// Reads `ResourceProperties`.
///
/// # Errors
/// Every problem, each with its path.
pub fn parse_properties(json: &serde_json::Value) -> Result<Properties, Problems> {
    let tree = Node::from(json);
    let mut reader = Reader::new(Dialect::Properties, "");
    let properties = reader.properties(&tree);
    match (Problems::of_file(None, reader.problems), properties) {
        (Some(problems), _) => Err(problems),
        (None, Some(properties)) => Ok(properties),
        // Properties are missing only after a problem, so this is never reached.
        (None, None) => Err(Problem::at(Place::default(), "expected a mapping").into()),
    }
}

impl<'t> Reader<'t> {
    fn properties(&mut self, root: &'t Node<'t>) -> Option<Properties> {
        let [
            table_name,
            namespace,
            namespace_id,
            system,
            resources,
            entities,
            path,
            yaml,
            sha256,
            full_apply,
            out_of_band,
            on_fanout_error,
            max_delete,
            allow_empty,
            adopt,
            _,
            _,
            _,
        ] = self.fields(root, &ROOT)?;
        let mut declared = Declared::default();
        self.levels(&system, &resources, &entities, &mut declared);
        let structured = [&system, &resources, &entities];
        let source = self.source(&structured, &path, &yaml, declared);
        let digest = self.digest(&sha256, source.as_ref());
        let flag = |reader: &mut Self, given| reader.read(given, Reader::flag).ok();
        // A value that is wrong gets its default here and its problem there: nothing is returned
        // while there is one.
        Some(Properties {
            table_name: self.read(&table_name, Reader::table_name).ok(),
            namespace: self
                .read(&namespace, |reader, node| {
                    reader.parsed(node, NamespaceName::parse)
                })
                .ok(),
            namespace_id: self.read(&namespace_id, Reader::namespace_id).ok(),
            source: source.unwrap_or_default(),
            manifest_sha256: digest,
            full_apply: flag(self, &full_apply).unwrap_or_default(),
            out_of_band: self.one_of(&out_of_band, &OUT_OF_BAND),
            on_fanout_error: self.one_of(&on_fanout_error, &ON_FANOUT_ERROR),
            max_delete: self
                .read(&max_delete, |reader, node| {
                    reader.whole(node, 0, u64::from(u32::MAX))
                })
                .ok(),
            allow_empty: flag(self, &allow_empty).unwrap_or_default(),
            adopt: flag(self, &adopt).unwrap_or_default(),
        })
    }

    fn one_of<T: Copy + Default>(&mut self, given: &Given<'t>, words: &[(&'static str, T)]) -> T {
        let found = self.read(given, |reader, node| reader.word(node, words));
        found.ok().unwrap_or_default()
    }

    fn digest(&mut self, given: &Given<'t>, source: Option<&Source>) -> Option<String> {
        let digest = self.read(given, Reader::sha256).ok()?;
        if let Some(Source::Structured(_)) = source {
            self.report_key(
                given,
                "checks nothing without `ManifestPath` or `ManifestYaml`",
                "leave it out",
            );
        }
        Some(digest)
    }

    /// An id, or nothing: an empty text is what a template sends for a parameter left empty.
    fn namespace_id(&mut self, node: &'t Node<'t>) -> Found<NamespaceId> {
        match &node.value {
            Value::Text(text) if text.is_empty() => Found::Absent,
            _ => self.parsed(node, NamespaceId::parse),
        }
    }

    /// Exactly one of the structured form, a path and a text. None of them is the structured form
    /// of nothing.
    fn source(
        &mut self,
        structured: &[&Given<'t>; 3],
        path: &Given<'t>,
        yaml: &Given<'t>,
        declared: Declared,
    ) -> Option<Source> {
        let found_path = self.read(path, Reader::manifest_path);
        let found_yaml = self.read(yaml, Reader::text);
        let structured = structured.iter().find(|given| given.place().is_some());
        let given: Vec<&Given<'t>> = [structured.copied(), Some(path), Some(yaml)]
            .into_iter()
            .flatten()
            .filter(|given| given.place().is_some())
            .collect();
        if let [first, .., last] = given[..] {
            self.report_key(
                last,
                format!("excludes `{}`: a resource has one manifest", first.name),
                "keep the structured form, `ManifestPath` or `ManifestYaml`",
            );
            return None;
        }
        match (found_path, found_yaml) {
            (Found::Is(path), _) => Some(Source::ManifestPath(path.to_owned())),
            (_, Found::Is(yaml)) => Some(Source::ManifestYaml(yaml.to_owned())),
            (Found::Absent, Found::Absent) => Some(Source::Structured(declared.into_levels())),
            _ => None,
        }
    }

    fn table_name(&mut self, node: &'t Node<'t>) -> Found<String> {
        let Found::Is(text) = self.text(node) else {
            return Found::Wrong;
        };
        // A name or an ARN; the service has the last word.
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-:/".contains(c);
        if text.is_empty() || text.len() > 1024 || !text.chars().all(allowed) {
            self.report_with(
                node.place,
                format!("{} is not the name of a table", quoted(text)),
                "write the table's name or ARN, or leave it out for the function's own table",
            );
            return Found::Wrong;
        }
        Found::Is(text.to_owned())
    }

    /// A path that cannot leave the function's own folder.
    fn manifest_path(&mut self, node: &'t Node<'t>) -> Found<&'t str> {
        let Found::Is(text) = self.text(node) else {
            return Found::Wrong;
        };
        let wrong = if text.is_empty() {
            "the path is empty"
        } else if text.starts_with('/') {
            "the path is absolute"
        } else if text.split('/').any(|part| part == "..") {
            "the path leaves the function's folder"
        } else if text.contains('\\') {
            "the path holds a backslash"
        } else if text.contains(char::is_control) {
            "the path holds a control character"
        } else {
            return Found::Is(text);
        };
        self.report_with(
            node.place,
            format!("{wrong}: {}", quoted(text)),
            "write it relative to the function's root, such as manifests/NAME.limits.yaml",
        );
        Found::Wrong
    }

    /// 64 hex digits, with or without `sha256:`, in lower case when returned.
    fn sha256(&mut self, node: &'t Node<'t>) -> Found<String> {
        let Found::Is(text) = self.text(node) else {
            return Found::Wrong;
        };
        let digits = text.strip_prefix("sha256:").unwrap_or(text);
        if digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Found::Is(digits.to_ascii_lowercase());
        }
        self.report_with(
            node.place,
            format!("{} is not a SHA-256", quoted(text)),
            "write its 64 hex digits",
        );
        Found::Wrong
    }
}
