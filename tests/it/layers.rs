//! The dependency rules of the module tree, read off the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What each module may use of this crate, itself aside. A module that is missing here may not exist.
const ALLOWED: [(&str, &[&str]); 16] = [
    ("model", &[]),
    ("clock", &["model"]),
    ("spread", &[]),
    ("manifest", &["model"]),
    ("plan", &["manifest", "model"]),
    ("table", &["model"]),
    ("store", &["model", "spread", "table"]),
    ("fanout", &["clock", "model", "spread", "store", "table"]),
    // Of the fan-out, its settings: an apply has one deadline and one way to be stopped.
    ("apply", &["clock", "fanout", "model", "plan", "store"]),
    ("affected", &["model", "plan", "store", "table"]),
    (
        "report",
        &["affected", "fanout", "manifest", "model", "plan"],
    ),
    (
        "reconcile",
        &[
            "apply", "clock", "fanout", "manifest", "model", "plan", "report", "store",
        ],
    ),
    ("explain", &["clock", "model", "report", "store"]),
    (
        "cli",
        &[
            "affected",
            "clock",
            "explain",
            "fanout",
            "manifest",
            "model",
            "plan",
            "reconcile",
            "report",
            "store",
        ],
    ),
    (
        "lambda",
        &[
            "clock",
            "fanout",
            "manifest",
            "model",
            "plan",
            "reconcile",
            "report",
            "store",
        ],
    ),
    ("lib", &[]),
];

/// Text that only some modules may hold, with the reason.
const CONFINED: [(&str, &[&str], &str); 8] = [
    (
        "aws_sdk_dynamodb",
        &["store", "table"],
        "AWS types stop at the table and the store",
    ),
    ("aws_config", &["store"], "clients are made in the store"),
    ("aws_sdk_sts", &["store"], "clients are made in the store"),
    (
        "std::env",
        &["cli", "lambda"],
        "the library does not read the environment",
    ),
    ("println!", &["cli"], "the library does not print"),
    ("print!", &["cli"], "the library does not print"),
    ("SystemTime::now", &["clock"], "one place reads the clock"),
    ("\"#CONFIG", &["table"], "one module knows the keys"),
];

struct Source {
    module: String,
    path: PathBuf,
    /// The code without comments, doc comments and unit tests.
    code: String,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let relative = path.strip_prefix(&root).expect("below src");
                let first = relative.components().next().expect("a name").as_os_str();
                let module = first.to_string_lossy().trim_end_matches(".rs").to_owned();
                let text = fs::read_to_string(&path).expect("a source file");
                let code = text
                    .split("#[cfg(test)]\nmod tests")
                    .next()
                    .unwrap_or_default();
                let code = code
                    .lines()
                    .filter(|line| !line.trim_start().starts_with("//"));
                sources.push(Source {
                    module,
                    path,
                    code: code.collect::<Vec<_>>().join("\n"),
                });
            }
        }
    }
    assert!(sources.len() > 30, "the sources were found");
    sources
}

#[test]
fn modules_use_only_what_they_may() {
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.into_iter().collect();
    let mut wrong = BTreeSet::new();
    for source in sources().iter().filter(|source| source.module != "bin") {
        let Some(may) = allowed.get(source.module.as_str()) else {
            wrong.insert(format!("{} is a module without a rule", source.module));
            continue;
        };
        for used in source.code.split("crate::").skip(1) {
            // `use crate::{a, b}` names several; this crate writes one `use` a module.
            let used: String = used
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect();
            if used.is_empty() {
                wrong.insert(format!(
                    "{}: name one module a `use`",
                    source.path.display()
                ));
            } else if used != source.module && !may.contains(&used.as_str()) {
                wrong.insert(format!(
                    "{} uses {used} ({})",
                    source.module,
                    source.path.display()
                ));
            }
        }
    }
    assert_eq!(wrong, BTreeSet::new());
}

#[test]
fn what_is_confined_stays_where_it_belongs() {
    let mut wrong = BTreeSet::new();
    for source in sources().iter().filter(|source| source.module != "bin") {
        for (text, modules, reason) in CONFINED {
            if source.code.contains(text) && !modules.contains(&source.module.as_str()) {
                wrong.insert(format!("{text} in {}: {reason}", source.path.display()));
            }
        }
    }
    assert_eq!(wrong, BTreeSet::new());
}

#[test]
fn every_source_file_says_what_it_is_for() {
    for source in sources() {
        let text = fs::read_to_string(&source.path).expect("a source file");
        assert!(
            text.starts_with("//! "),
            "{} does not open by saying so",
            source.path.display()
        );
    }
}
