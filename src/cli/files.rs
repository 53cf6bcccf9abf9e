//! Reading manifests: a file, a folder, or standard input. What is in them is not looked at.

use super::error::CliError;
use crate::manifest::{MAX_BYTES, Manifest, Problem, parse_set};
use crate::model::NamespaceName;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What manifests in a folder are called.
const SUFFIXES: [&str; 2] = [".limits.yaml", ".limits.yml"];
/// The path that means standard input.
const STDIN: &str = "-";

/// A file by name, and its bytes.
pub(super) type Source = (String, Vec<u8>);

/// What was found at some paths.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// Files to parse.
    pub(super) files: Vec<Source>,
    /// Files too large to read.
    pub(super) refused: Vec<Problem>,
}

impl Sources {
    /// Reads every file that the paths name, in their order; those of a folder sorted by name.
    ///
    /// # Errors
    /// [`CliError`] when one cannot be read, or a folder holds none.
    pub(super) fn read(paths: &[PathBuf]) -> Result<Sources, CliError> {
        let mut sources = Sources::default();
        for path in paths {
            if path.as_os_str() == STDIN {
                sources.take("<stdin>", path, io::stdin().lock())?;
            } else if path.is_dir() {
                for path in manifests_in(path)? {
                    sources.open(&path)?;
                }
            } else {
                sources.open(path)?;
            }
        }
        Ok(sources)
    }

    fn open(&mut self, path: &Path) -> Result<(), CliError> {
        let file = File::open(path).map_err(|source| failed(path, source))?;
        self.take(&path.display().to_string(), path, file)
    }

    fn take(&mut self, name: &str, path: &Path, from: impl Read) -> Result<(), CliError> {
        let mut bytes = Vec::new();
        // One byte more than is accepted tells that there is more.
        from.take(MAX_BYTES as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|source| failed(path, source))?;
        if bytes.len() > MAX_BYTES {
            self.refused.push(too_large(name));
        } else {
            self.files.push((name.to_owned(), bytes));
        }
        Ok(())
    }

    /// Parses what was read.
    ///
    /// # Errors
    /// Every problem of every file.
    pub(super) fn parse(&self) -> Result<Vec<Manifest>, Vec<Problem>> {
        match parse_set(&self.files) {
            Ok(manifests) if self.refused.is_empty() => Ok(manifests),
            Ok(_) => Err(self.refused.clone()),
            Err(problems) => Err(self.refused.iter().cloned().chain(problems).collect()),
        }
    }
}

/// Reads and parses manifests: all of them valid, or none. `only` picks the one of a namespace.
///
/// # Errors
/// [`CliError`] when a file cannot be read, a manifest is wrong, or none is of that namespace.
pub(super) fn manifests(
    paths: &[PathBuf],
    only: Option<&NamespaceName>,
) -> Result<Vec<Manifest>, CliError> {
    let manifests = Sources::read(paths)?.parse().map_err(CliError::Manifest)?;
    select(manifests, only)
}

/// The manifest of a namespace among several; all of them when no namespace was named.
///
/// # Errors
/// [`CliError::Usage`] when none is of that namespace.
pub(super) fn select(
    manifests: Vec<Manifest>,
    only: Option<&NamespaceName>,
) -> Result<Vec<Manifest>, CliError> {
    let Some(only) = only else {
        return Ok(manifests);
    };
    let (chosen, others): (Vec<Manifest>, Vec<Manifest>) = manifests
        .into_iter()
        .partition(|manifest| manifest.namespace() == only);
    if chosen.is_empty() {
        let declared: Vec<String> = others
            .iter()
            .map(|manifest| format!("{:?}", manifest.namespace().as_str()))
            .collect();
        return Err(CliError::usage(format!(
            "--namespace is {:?}, and the manifest declares {}: leave --namespace out, or correct it",
            only.as_str(),
            declared.join(", ")
        )));
    }
    Ok(chosen)
}

/// The manifests of a folder. What is called like one and is none is refused: whoever put it there
/// believes that it is applied.
fn manifests_in(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let read = |source| failed(folder, source);
    let (mut found, mut others) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder).map_err(read)? {
        let path = entry.map_err(read)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !SUFFIXES.iter().any(|suffix| name.ends_with(suffix)) {
            continue;
        }
        match other_than_a_file(&path)? {
            None => found.push(path),
            Some(what) => others.push((path, what)),
        }
    }
    if !others.is_empty() {
        others.sort();
        return Err(CliError::NotFiles(others));
    }
    if found.is_empty() {
        let path = folder.to_owned();
        return Err(CliError::NoManifest { path });
    }
    found.sort();
    Ok(found)
}

/// What is at a path, and what to do about it; `None` for a file, also where a link leads to it.
fn other_than_a_file(path: &Path) -> Result<Option<&'static str>, CliError> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(None),
        Ok(metadata) if metadata.is_dir() => Ok(Some(
            "is a folder, and folders in folders are not searched: name it as a PATH of its own, \
             or rename it",
        )),
        Ok(_) => Ok(Some(
            "is a pipe, a socket or a device: name it as a PATH of its own, or remove it",
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => Ok(Some(
            "is a link to a file that is not there: mend the link, or remove it",
        )),
        Err(source) => Err(failed(path, source)),
    }
}

fn too_large(name: &str) -> Problem {
    Problem {
        file: Some(name.to_owned()),
        line: None,
        column: None,
        path: String::new(),
        message: format!("the file is larger than {} MiB", MAX_BYTES / (1024 * 1024)),
        hint: Some("split it, one namespace each".to_owned()),
    }
}

fn failed(path: &Path, source: io::Error) -> CliError {
    CliError::File {
        act: "read",
        path: path.to_owned(),
        source,
    }
}
