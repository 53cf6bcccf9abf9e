//! Manifests: from what an operator wrote to levels that cannot be invalid.
//!
//! Two steps. A tree with places is made from YAML ([`parse_yaml`]), from JSON ([`parse_json`]) or
//! from CloudFormation properties ([`parse_properties`]); then one reader walks it and either finds
//! every problem, each with its place, or makes a [`Manifest`]. The spellings differ only in how
//! keys and scalars are written.
//!
//! Nothing here reads a file, knows a table, or compares a manifest with what is stored.

mod canonical;
mod keys;
mod levels;
mod limits;
mod merges;
mod problem;
mod properties;
mod reader;
mod scalar;
mod schedules;
mod template;
mod tree;
mod warning;
mod yaml;

use crate::model::{Level, LevelConfig, NamespaceName, sha256_hex};
use canonical::Canonical;
use keys::Dialect;
use levels::Declared;
use reader::Reader;
use std::collections::BTreeMap;
use tree::{Node, Place};

pub use problem::{Problem, Problems, printable};
pub use properties::{OnFanoutError, OutOfBand, Properties, Source, parse_properties};
pub use template::to_properties;
pub use warning::Warning;
pub use yaml::MAX_BYTES;

/// What one namespace is to hold. Made by parsing or by [`Manifest::new`], and valid either way.
#[derive(Debug, Clone)]
pub struct Manifest {
    namespace: NamespaceName,
    levels: BTreeMap<Level, LevelConfig>,
    warnings: Vec<Warning>,
}

/// Equal when they mean the same, wherever they were written.
impl PartialEq for Manifest {
    fn eq(&self, other: &Manifest) -> bool {
        self.namespace == other.namespace && self.levels == other.levels
    }
}

impl Manifest {
    /// Makes a manifest of levels that were not written as one: an export, or CloudFormation's
    /// structured form.
    ///
    /// # Errors
    /// Every level that breaks a rule of the model, with its path.
    pub fn new(
        namespace: NamespaceName,
        levels: BTreeMap<Level, LevelConfig>,
    ) -> Result<Manifest, Problems> {
        let problems = levels
            .iter()
            .flat_map(|(level, config)| broken_rules(level, config))
            .collect();
        if let Some(problems) = Problems::of_file(None, problems) {
            return Err(problems);
        }
        let declared = levels.iter();
        let declared = declared.map(|(level, config)| (level, config, Place::default()));
        let warnings = warning::warnings(declared, None);
        Ok(Manifest {
            namespace,
            levels,
            warnings,
        })
    }

    /// The namespace.
    pub fn namespace(&self) -> &NamespaceName {
        &self.namespace
    }

    /// What every declared level says, in the order in which levels are written.
    pub fn levels(&self) -> &BTreeMap<Level, LevelConfig> {
        &self.levels
    }

    /// What is legal and still worth a second look.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The manifest as JSON in snake case, keys sorted, defaults written out: equal for two
    /// manifests exactly when they mean the same. [`parse_json`] reads it back.
    pub fn canonical_json(&self) -> serde_json::Value {
        // Keys are texts and numbers finite, so that this does not fail.
        serde_json::to_value(self.canonical()).unwrap_or_default()
    }

    /// `sha256:` and the hex digest of [`Manifest::canonical_json`], written without blanks.
    pub fn sha256(&self) -> String {
        let text = serde_json::to_string(&self.canonical()).unwrap_or_default();
        format!("sha256:{}", sha256_hex(text))
    }

    fn canonical(&self) -> Canonical<'_> {
        Canonical::new(&self.namespace, &self.levels)
    }
}

/// Reads one YAML file.
///
/// `file` is the name that problems show. Nothing is read but `bytes`.
///
/// # Errors
/// Every problem of the file, in the order of their places. A text that is not YAML is one problem.
pub fn parse_yaml(file: &str, bytes: &[u8]) -> Result<Manifest, Problems> {
    read_yaml(file, bytes).outcome
}

/// Reads several YAML files, one namespace each.
///
/// # Errors
/// Every problem of every file. Two files that declare one namespace are a problem of the second.
pub fn parse_set(files: &[(String, Vec<u8>)]) -> Result<Vec<Manifest>, Problems> {
    let mut manifests = Vec::with_capacity(files.len());
    let mut declared: BTreeMap<NamespaceName, String> = BTreeMap::new();
    let mut found: Option<Problems> = None;
    let mut add = |problems: Problems| match &mut found {
        Some(found) => found.append(problems),
        None => found = Some(problems),
    };
    for (file, bytes) in files {
        let read = read_yaml(file, bytes);
        let mut taken = None;
        if let Some((namespace, place)) = read.namespace {
            let here = format!("{file}:{}", place.line);
            match declared.get(&namespace) {
                Some(first) => {
                    let first = problem::printable(first);
                    let message = format!("the namespace is already declared by {first}");
                    taken = Some(
                        Problem::at(place, message)
                            .path("namespace")
                            .hint("one file declares all of a namespace"),
                    );
                }
                None => {
                    declared.insert(namespace, here);
                }
            }
        }
        let mut problems = Vec::from_iter(taken);
        match read.outcome {
            Ok(manifest) => manifests.push(manifest),
            Err(others) => problems.extend(others),
        }
        if let Some(problems) = Problems::of_file(Some(file), problems) {
            add(problems);
        }
    }
    match found {
        Some(problems) => Err(problems),
        None => Ok(manifests),
    }
}

/// Reads a manifest that is JSON already, as a direct invoke sends it.
///
/// The shape is that of the YAML file. An explicit `null` means "not given": the Python command
/// line sends what its YAML parser made of a key without a value.
///
/// # Errors
/// Every problem, with paths and without lines.
pub fn parse_json(json: &serde_json::Value) -> Result<Manifest, Problems> {
    let tree = Node::from(json);
    let mut reader = Reader::new(Dialect::Json, "");
    let declared = reader.manifest(&tree);
    finish(None, declared, reader.problems).outcome
}

/// What became of one input, and the namespace it names even when it is refused.
struct Read {
    namespace: Option<(NamespaceName, Place)>,
    outcome: Result<Manifest, Problems>,
}

fn read_yaml(file: &str, bytes: &[u8]) -> Read {
    let text = match yaml::decode(bytes) {
        Ok(text) => text,
        Err(problem) => return finish(Some(file), Declared::default(), vec![problem]),
    };
    let (tree, problems) = yaml::parse(text);
    let mut reader = Reader::new(Dialect::Yaml, text);
    reader.problems.extend(problems);
    let declared = match &tree {
        Some(tree) => reader.manifest(tree),
        None => Declared::default(),
    };
    let problems = std::mem::take(&mut reader.problems);
    finish(Some(file), declared, problems)
}

fn finish(file: Option<&str>, mut declared: Declared, problems: Vec<Problem>) -> Read {
    let namespace = declared.namespace.clone();
    let named = declared.namespace.take();
    let outcome = match (Problems::of_file(file, problems), named) {
        (Some(problems), _) => Err(problems),
        (None, Some((namespace, _))) => {
            declared.levels.sort_by(|a, b| a.level.cmp(&b.level));
            let levels = declared.levels.iter();
            let levels = levels.map(|found| (&found.level, &found.config, found.place));
            Ok(Manifest {
                warnings: warning::warnings(levels, file),
                namespace,
                levels: declared.into_levels(),
            })
        }
        // The reader reports a namespace that is missing, so this is never reached.
        (None, None) => Err(Problem::at(Place::default(), "`namespace` is required").into()),
    };
    Read { namespace, outcome }
}

/// The rules of a level that its types do not keep.
fn broken_rules(level: &Level, config: &LevelConfig) -> Vec<Problem> {
    let nowhere = Place::default();
    let mut problems = Vec::new();
    let mut refuse = |key: &str, message: String| {
        problems.push(Problem::at(nowhere, message).path(warning::path_of(level, key)));
    };
    match level {
        Level::System => {
            if config.disabled.is_some() {
                refuse("disabled", "the system level has no switch".to_owned());
            }
            if config.cascade.is_some() {
                refuse("cascade", "the system level has no cascade".to_owned());
            }
        }
        Level::Resource(_) | Level::Entity(..) => {
            if config.on_unavailable.is_some() {
                refuse("on_unavailable", "only the system level has it".to_owned());
            }
        }
    }
    for (name, limit) in &config.limits {
        if let Err(error) = limit.check() {
            refuse("limits", format!("{name}: {error}"));
        }
    }
    problems
}
