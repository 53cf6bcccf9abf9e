//! Which namespace a command without a manifest is about.

use super::connect::Target;
use super::error::CliError;
use crate::model::{NamespaceId, NamespaceName};

/// The namespace that was named, or the only one there is.
///
/// # Errors
/// [`CliError`] when it is not registered, or when none was named and there is not exactly one.
pub(super) async fn registered(
    target: &Target,
    named: Option<NamespaceName>,
) -> Result<(NamespaceName, NamespaceId), CliError> {
    let names = async || -> Result<Vec<NamespaceName>, CliError> {
        Ok(target.store.namespace_names().await?.into_iter().collect())
    };
    let name = match named {
        Some(name) => name,
        None => match &names().await?[..] {
            [only] => only.clone(),
            [] => {
                return Err(CliError::NoNamespaces {
                    table: target.table().to_owned(),
                    host: target.host().to_owned(),
                });
            }
            several => {
                return Err(CliError::usage(format!(
                    "which namespace? pass --namespace with one of {}",
                    quoted(several)
                )));
            }
        },
    };
    match target.store.namespace_id(&name).await? {
        Some(ns) => Ok((name, ns)),
        None => {
            let registered = names().await?;
            let remedy = if registered.is_empty() {
                "apply a manifest first".to_owned()
            } else {
                format!(
                    "use one of {}, or apply its manifest first",
                    quoted(&registered)
                )
            };
            Err(CliError::NoNamespace {
                name: name.to_string(),
                table: target.table().to_owned(),
                host: target.host().to_owned(),
                remedy,
            })
        }
    }
}

fn quoted(names: &[NamespaceName]) -> String {
    let names: Vec<String> = names
        .iter()
        .map(|name| format!("{:?}", name.as_str()))
        .collect();
    names.join(", ")
}
