//! `event`: the payloads that the function gets, for trying it out without a stack.
//!
//! What CloudFormation would send is made from the manifest as its properties. Nothing is sent from here,
//! and the table is only asked for the id of a resource that has one.

use super::args::{Event, Existing, Format, Guards, OutOfBand, Payload, Planning, Request};
use super::connect::{self, Purpose};
use super::error::CliError;
use super::exit::Exit;
use super::{Context, files};
use crate::manifest::{Manifest, to_properties};
use crate::model::physical_id::physical_id;
use serde_json::{Map, Value, json};

/// The resource of these events: a stack of no account, so that no real one is mistaken for it.
const STACK_ID: &str =
    "arn:aws:cloudformation:local:000000000000:stack/local/00000000-0000-0000-0000-000000000000";
const LOGICAL_ID: &str = "Limits";
const SERVICE_TOKEN: &str = "arn:aws:lambda:local:000000000000:function:limits-provisioner";
const REQUEST_ID: &str = "00000000-0000-0000-0000-000000000000";

pub(super) async fn run(context: &Context, command: &Event) -> Result<Exit, CliError> {
    let (name, event) = match command {
        Event::Plan(payload) => ("event plan", invoke(context, "plan", payload)?),
        Event::Apply(payload) => ("event apply", invoke(context, "apply", payload)?),
        Event::Create(asked) => ("event create", request(context, "Create", asked, None)?),
        Event::Update(asked) => ("event update", existing(context, "Update", asked).await?),
        Event::Delete(asked) => ("event delete", existing(context, "Delete", asked).await?),
    };
    match context.out.format {
        Format::Json => context.out.document(name, json!({ "event": event }))?,
        Format::Text | Format::Markdown => context.out.answer(&format!("{event:#}"))?,
    }
    Ok(Exit::Done)
}

/// The one manifest that a payload holds.
fn manifest(context: &Context, payload: &Payload) -> Result<Manifest, CliError> {
    let only = connect::namespace(&context.global)?;
    let mut manifests = files::manifests(&payload.file, only.as_ref())?;
    match (manifests.pop(), manifests.is_empty()) {
        (Some(manifest), true) => Ok(manifest),
        _ => Err(CliError::usage(
            "an event holds one manifest and the path holds several: name one with --namespace",
        )),
    }
}

/// The table that the event names; without one the function takes its own.
fn table(context: &Context) -> Option<&str> {
    #[cfg(feature = "local")]
    if context.global.local.is_some() {
        return Some(connect::local_table(&context.global));
    }
    let named = context.global.stack.as_deref();
    named.filter(|name| !name.is_empty())
}

/// A direct invoke.
fn invoke(context: &Context, action: &str, payload: &Payload) -> Result<Value, CliError> {
    let manifest = manifest(context, payload)?;
    let mut event = Map::new();
    event.insert("action".into(), json!(action));
    if let Some(table) = table(context) {
        event.insert("table_name".into(), json!(table));
    }
    event.insert("namespace".into(), json!(manifest.namespace()));
    event.insert("manifest".into(), manifest.canonical_json());
    let options = options(&payload.planning, &payload.guards);
    event.extend(options.map(|(field, _, value)| (field.to_owned(), value)));
    Ok(Value::Object(event))
}

/// The options that were given: as a field, as a property, and their value.
fn options<'o>(
    planning: &'o Planning,
    guards: &'o Guards,
) -> impl Iterator<Item = (&'static str, &'static str, Value)> + 'o {
    let flag = |given: bool| given.then_some(Value::Bool(true));
    let revert = match planning.out_of_band {
        OutOfBand::Keep => None,
        OutOfBand::Revert => Some(json!("revert")),
    };
    let options = [
        ("full", "FullApply", flag(planning.full)),
        ("out_of_band", "OutOfBand", revert),
        ("allow_empty", "AllowEmpty", flag(guards.allow_empty)),
        (
            "max_delete",
            "MaxDelete",
            guards.max_delete.map(|most| json!(most)),
        ),
        ("adopt", "Adopt", flag(guards.adopt)),
    ];
    options
        .into_iter()
        .filter_map(|(field, property, value)| Some((field, property, value?)))
}

/// A request of CloudFormation.
fn request(
    context: &Context,
    request_type: &str,
    asked: &Request,
    physical_id: Option<String>,
) -> Result<Value, CliError> {
    let properties = properties(context, &asked.payload)?;
    let mut event = Map::new();
    let mut put = |key: &str, value: Value| event.insert(key.to_owned(), value);
    put("RequestType", json!(request_type));
    if let Some(url) = &asked.response_url {
        put("ResponseURL", json!(url));
    }
    put("StackId", json!(STACK_ID));
    put("RequestId", json!(REQUEST_ID));
    put("LogicalResourceId", json!(LOGICAL_ID));
    put("ResourceType", json!("Custom::ZaeLimiterLimits"));
    put("ServiceToken", json!(SERVICE_TOKEN));
    if let Some(id) = physical_id {
        put("PhysicalResourceId", json!(id));
    }
    if request_type == "Update" {
        // What was there before is nobody's to know here, and the function does not look.
        put(
            "OldResourceProperties",
            json!({ "ServiceToken": SERVICE_TOKEN }),
        );
    }
    put("ResourceProperties", Value::Object(properties));
    Ok(Value::Object(event))
}

/// The properties as they arrive: every scalar a string.
fn properties(context: &Context, payload: &Payload) -> Result<Map<String, Value>, CliError> {
    let manifest = manifest(context, payload)?;
    let mut properties = Map::new();
    properties.insert("ServiceToken".into(), json!(SERVICE_TOKEN));
    if let Some(table) = table(context) {
        properties.insert("TableName".into(), json!(table));
    }
    let declared = to_properties(&manifest)
        .map_err(|problems| CliError::Manifest(problems.as_slice().to_vec()))?;
    if let Value::Object(declared) = declared {
        properties.extend(declared);
    }
    let options = options(&payload.planning, &payload.guards);
    properties.extend(options.map(|(_, property, value)| {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        (property.to_owned(), Value::String(text))
    }));
    Ok(properties)
}

async fn existing(
    context: &Context,
    request_type: &str,
    asked: &Existing,
) -> Result<Value, CliError> {
    let id = match &asked.physical_id {
        Some(id) => id.clone(),
        None => found(context, &asked.request.payload).await?,
    };
    request(context, request_type, &asked.request, Some(id))
}

/// The id that the function gave the resource of these events.
async fn found(context: &Context, payload: &Payload) -> Result<String, CliError> {
    let name = manifest(context, payload)?.namespace().clone();
    if table(context).is_none() {
        return Err(CliError::usage(
            "which resource? pass the --physical-id that the answer to its Create gave, \
             or the table with --stack NAME or --local",
        ));
    }
    let target = connect::open(context, Purpose::Read).await?;
    match target.store.namespace_id(&name).await? {
        Some(ns) => Ok(physical_id(target.table(), &ns, STACK_ID, LOGICAL_ID)),
        None => Err(CliError::NoNamespace {
            name: name.to_string(),
            table: target.table().to_owned(),
            host: target.host().to_owned(),
            remedy: "there is nothing to update or delete, send a Create first".to_owned(),
        }),
    }
}
