//! `explain`: who decides for an entity and a resource, and what its buckets carry.

use super::Context;
use super::args::{self, Format};
use super::connect::{self, Purpose};
use super::error::CliError;
use super::exit::Exit;
use super::namespace;
use super::render::explain as render;
use crate::explain::explain;
use crate::model::{EntityId, ResourceName};
use serde_json::json;

pub(super) async fn run(context: &Context, args: &args::Explain) -> Result<Exit, CliError> {
    let entity = EntityId::parse(&args.entity)
        .map_err(|error| CliError::usage(format!("entity {:?}: {error}", args.entity)))?;
    let resource = ResourceName::parse(&args.resource)
        .map_err(|error| CliError::usage(format!("resource {:?}: {error}", args.resource)))?;
    let named = connect::namespace(&context.global)?;
    let target = connect::open(context, Purpose::Read).await?;
    let (name, ns) = namespace::registered(&target, named).await?;
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
        Format::Markdown => {
            let now = context.clock.now();
            let text = render::markdown(&explanation, name.as_str(), now);
            context.out.answer(&text)?;
        }
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
