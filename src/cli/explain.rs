//! `explain`: who decides for an entity and a resource, and what its buckets carry.

use super::Context;
use super::args::{self, Format};
use super::connect::{self, Purpose, Target};
use super::error::CliError;
use super::exit::Exit;
use super::render::explain as render;
use crate::explain::explain;
use crate::model::{EntityId, NamespaceId, NamespaceName, ResourceName};
use serde_json::json;

pub(super) async fn run(context: &Context, args: &args::Explain) -> Result<Exit, CliError> {
    let entity = EntityId::parse(&args.entity)
        .map_err(|error| CliError::usage(format!("entity {:?}: {error}", args.entity)))?;
    let resource = ResourceName::parse(&args.resource)
        .map_err(|error| CliError::usage(format!("resource {:?}: {error}", args.resource)))?;
    let named = connect::namespace(&context.global)?;
    let target = connect::open(context, Purpose::Read).await?;
    let (name, ns) = namespace(&target, named).await?;
    let explanation = explain(&target.store, &context.clock, &ns, &entity, &resource).await?;
    match context.out.format {
        Format::Json => {
            let body = json!({
                "namespace": name,
                "namespace_id": ns,
                "table": target.table(),
                "host": target.host(),
                "explanation": explanation,
            });
            context.out.document("explain", body)?;
        }
        Format::Markdown => context
            .out
            .answer(&render::markdown(&explanation, name.as_str()))?,
        Format::Text => {
            let heading = render::Heading {
                namespace: name.as_str(),
                table: target.table(),
                host: target.host(),
            };
            let colours = context.out.colours_stdout();
            context.out.answer(&render::text(
                &explanation,
                &heading,
                context.clock.now(),
                colours,
            ))?;
        }
    }
    Ok(Exit::Done)
}

/// The namespace that was named, or the only one there is.
async fn namespace(
    target: &Target,
    named: Option<NamespaceName>,
) -> Result<(NamespaceName, NamespaceId), CliError> {
    let registered = async || -> Result<Vec<NamespaceName>, CliError> {
        Ok(target.store.namespace_names().await?.into_iter().collect())
    };
    let name = match named {
        Some(name) => name,
        None => match &registered().await?[..] {
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
            let registered = registered().await?;
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
