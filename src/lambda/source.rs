//! The manifest of a request: from its properties, its text, or a file bundled with the function.
//!
//! A bundled file is read from below the function's root and from nowhere else, whatever its path
//! or a symbolic link says.

use super::failure::Failure;
use crate::manifest::{Manifest, Problems, Properties, Source, parse_yaml};
use crate::model::{NamespaceId, NamespaceName};
use crate::store::Store;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest manifest file, in bytes.
const LONGEST: u64 = 32 << 20;

/// The manifest that properties name, and the id of its namespace where it is registered.
pub(super) async fn manifest(
    store: &Store,
    properties: &Properties,
    root: Option<&Path>,
) -> Result<(Manifest, Option<NamespaceId>), Failure> {
    let given = properties.namespace.as_ref();
    let written = match &properties.source {
        Source::Structured(_) => None,
        Source::ManifestYaml(yaml) => Some(checked(properties, "ManifestYaml", yaml.as_bytes())?),
        Source::ManifestPath(path) => Some(checked(properties, path, &bundled(root, path)?)?),
    };
    if let (Some(given), Some(manifest)) = (given, &written) {
        agree("Namespace", given, manifest.namespace())?;
    }
    let named = given.or(written.as_ref().map(Manifest::namespace));
    let (name, id) = namespace(store, named, properties.namespace_id.clone()).await?;
    let manifest = match (&properties.source, written) {
        (_, Some(manifest)) => manifest,
        (Source::Structured(levels), None) => Manifest::new(name, levels.clone())?,
        // A path and a text were read above.
        (Source::ManifestPath(_) | Source::ManifestYaml(_), None) => {
            Manifest::new(name, [].into())?
        }
    };
    Ok((manifest, id))
}

/// A namespace by name and id: what is not given is looked up, what is given twice must agree.
pub(super) async fn namespace(
    store: &Store,
    name: Option<&NamespaceName>,
    id: Option<NamespaceId>,
) -> Result<(NamespaceName, Option<NamespaceId>), Failure> {
    match (name, id) {
        (name, Some(id)) => {
            let Some(registered) = store.living_namespace_name(&id).await? else {
                return Err(Failure::Namespace(format!(
                    "the namespace id {id} is not registered in table {}: register the namespace, or name it instead",
                    store.table()
                )));
            };
            if let Some(name) = name {
                agree(&format!("namespace id {id}"), &registered, name)?;
            }
            Ok((registered, Some(id)))
        }
        (Some(name), None) => Ok((name.clone(), store.namespace_id(name).await?)),
        (None, None) => {
            let name = NamespaceName::parse(Properties::DEFAULT_NAMESPACE)
                .map_err(|error| Failure::Namespace(error.to_string()))?;
            let id = store.namespace_id(&name).await?;
            Ok((name, id))
        }
    }
}

pub(super) fn agree(
    what: &str,
    given: &NamespaceName,
    manifest: &NamespaceName,
) -> Result<(), Failure> {
    if given == manifest {
        return Ok(());
    }
    Err(Failure::Namespace(format!(
        "{what} is {:?} and the manifest's namespace is {:?}: name one namespace",
        given.as_str(),
        manifest.as_str()
    )))
}

fn checked(properties: &Properties, name: &str, content: &[u8]) -> Result<Manifest, Problems> {
    properties.check_content(content)?;
    parse_yaml(name, content)
}

fn bundled(root: Option<&Path>, path: &str) -> Result<Vec<u8>, Failure> {
    let failed = |reason: String| Failure::Bundle {
        path: path.to_owned(),
        reason,
    };
    let root = root.ok_or_else(|| {
        failed("the function has no root to read from: set LAMBDA_TASK_ROOT".to_owned())
    })?;
    let file = inside(root, path).map_err(|reason| failed(reason.to_owned()))?;
    read(&file).map_err(failed)
}

/// The real path of a file below `root`.
fn inside(root: &Path, path: &str) -> Result<PathBuf, &'static str> {
    let missing =
        "no such file is bundled with the function: add it to the package, or correct the path";
    let root = root.canonicalize().map_err(|_| missing)?;
    let file = root.join(path).canonicalize().map_err(|_| missing)?;
    if !file.starts_with(&root) {
        return Err(
            "it leads out of the function's root: bundle the file itself, not a link to it",
        );
    }
    if !file.is_file() {
        return Err("it is not a file: name one manifest");
    }
    Ok(file)
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| format!("it cannot be read ({error}): check its mode");
    let mut bytes = Vec::new();
    std::fs::File::open(file)
        .map_err(unreadable)?
        .take(LONGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > LONGEST {
        return Err("it is larger than 32 MiB: split it by namespace".to_owned());
    }
    Ok(bytes)
}
