//! From the global options to a store, and to the answer of "whose table is this".

use super::Context;
use super::args::Global;
#[cfg(feature = "local")]
use super::args::LOCAL_TABLE;
use super::error::CliError;
use crate::manifest::printable;
use crate::model::NamespaceName;
use crate::store::{Connection, Store};
use std::path::Path;

/// What a command will do to the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Read. A store that is not there is an empty one; no file is left behind.
    ReadOrEmpty,
    /// Read. A store that is not there is an error.
    Read,
    /// Write. The embedded store is made on first use.
    Write,
    /// Write. A store that is not there is an error.
    WriteExisting,
}

/// A store that answers, and who asks it.
pub(super) struct Target {
    /// The table.
    pub(super) store: Store,
    /// The caller's ARN, for the audit; `None` for the embedded store and where nobody could say.
    pub(super) principal: Option<String>,
}

impl Target {
    /// The table.
    pub(super) fn table(&self) -> &str {
        self.store.table()
    }

    /// The region, endpoint or file.
    pub(super) fn host(&self) -> &str {
        &self.store.place().host
    }
}

/// The namespace that `--namespace` names.
///
/// # Errors
/// [`CliError::Usage`] when it cannot be one.
pub(super) fn namespace(global: &Global) -> Result<Option<NamespaceName>, CliError> {
    let parse = |text: &String| {
        NamespaceName::parse(text)
            .map_err(|error| CliError::usage(format!("--namespace {text:?}: {error}")))
    };
    global.namespace.as_ref().map(parse).transpose()
}

/// Opens the store that the options name.
///
/// # Errors
/// [`CliError`] when it cannot be reached, within ten seconds, or the options contradict each other.
pub(super) async fn open(context: &Context, purpose: Purpose) -> Result<Target, CliError> {
    let global = &context.global;
    match &global.local {
        Some(path) => {
            refuse_remote_options(global)?;
            open_local(context, path, purpose).await
        }
        None => remote(context, purpose).await,
    }
}

/// Refuses options that only make sense for a table elsewhere.
///
/// # Errors
/// [`CliError::Usage`] names the option.
pub(super) fn refuse_remote_options(global: &Global) -> Result<(), CliError> {
    let given = [
        ("--region", global.region.is_some()),
        ("--profile", global.profile.is_some()),
        ("--endpoint-url", global.endpoint_url.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(CliError::usage(format!(
            "{option} is for a table elsewhere and the embedded store is here: leave one of them out"
        ))),
        None => Ok(()),
    }
}

async fn remote(context: &Context, purpose: Purpose) -> Result<Target, CliError> {
    let global = &context.global;
    let Some(table) = global.stack.as_ref().filter(|name| !name.is_empty()) else {
        return Err(CliError::usage(
            "which table? pass --stack NAME, set ZAEL_STACK, or use the embedded store with --local",
        ));
    };
    // Empty is not given: the SDK panics over an endpoint that is no URL at all.
    let endpoint = global.endpoint_url.clone().filter(|url| !url.is_empty());
    let connection = Connection {
        region: global.region.clone(),
        profile: global.profile.clone(),
        endpoint_url: endpoint.or_else(endpoint_of_environment),
        ..Connection::default()
    };
    let connected = connection.open().await?;
    let store = Store::new(connected.client.clone(), connected.place(table));
    store.first_contact().await?;
    if matches!(purpose, Purpose::Read | Purpose::ReadOrEmpty) {
        return Ok(Target {
            store,
            principal: None,
        });
    }
    let caller = connected.caller().await;
    let place = format!(
        "region {}, table {}",
        printable(&connected.region),
        printable(table)
    );
    match caller {
        Ok(caller) => {
            let (account, arn) = (printable(&caller.account), printable(&caller.arn));
            context
                .out
                .say(&format!("Account {account}, {place}, as {arn}."));
            Ok(Target {
                store,
                principal: Some(caller.arn),
            })
        }
        // Whatever it answers instead is no AWS account's business.
        Err(_) if connected.has_custom_endpoint() => {
            let host = printable(&connected.host);
            context.out.say(&format!(
                "Endpoint {host}, {place}. It does not say whose account this is."
            ));
            Ok(Target {
                store,
                principal: None,
            })
        }
        Err(error) => Err(error.into()),
    }
}

/// The endpoint that the environment names for DynamoDB alone. The SDK obeys it too, and does not
/// tell; without knowing it a table elsewhere would be shown as one of the region.
fn endpoint_of_environment() -> Option<String> {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let ignored = set("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
    match ignored.is_some_and(|ignored| ignored.eq_ignore_ascii_case("true")) {
        true => None,
        false => set("AWS_ENDPOINT_URL_DYNAMODB"),
    }
}

/// The embedded store in a file.
#[cfg(feature = "local")]
pub(super) async fn open_local(
    context: &Context,
    path: &Path,
    purpose: Purpose,
) -> Result<Target, CliError> {
    use crate::store::{Embedded, StoreError};
    let target = |embedded: &Embedded| {
        let place = crate::store::Place {
            table: local_table(&context.global).to_owned(),
            host: path.display().to_string(),
        };
        Target {
            store: Store::new(embedded.client(), place),
            principal: None,
        }
    };
    let empty = async || {
        let target = target(&Embedded::memory()?);
        target.store.create(context.clock.now()).await?;
        Ok(target)
    };
    if purpose == Purpose::Write {
        let target = target(&open_file(path)?);
        target.store.create(context.clock.now()).await?;
        return Ok(target);
    }
    if !path.exists() {
        return match purpose {
            Purpose::ReadOrEmpty => empty().await,
            _ => Err(CliError::NoLocalStore {
                path: path.to_owned(),
            }),
        };
    }
    let target = target(&Embedded::file(path)?);
    match target.store.first_contact().await {
        Err(StoreError::TableMissing { .. }) if purpose == Purpose::ReadOrEmpty => empty().await,
        answer => {
            answer?;
            Ok(target)
        }
    }
}

/// The embedded database in a file, its folder made where it is missing.
#[cfg(feature = "local")]
pub(super) fn open_file(path: &Path) -> Result<crate::store::Embedded, CliError> {
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|source| CliError::File {
            act: "create the folder",
            path: folder.to_owned(),
            source,
        })?;
    }
    Ok(crate::store::Embedded::file(path)?)
}

#[cfg(not(feature = "local"))]
async fn open_local(_: &Context, _: &Path, _: Purpose) -> Result<Target, CliError> {
    Err(CliError::usage(
        "this build has no embedded store: build it with the feature `local`",
    ))
}

/// The table of the embedded store.
#[cfg(feature = "local")]
pub(super) fn local_table(global: &Global) -> &str {
    let named = global.stack.as_deref().filter(|name| !name.is_empty());
    named.unwrap_or(LOCAL_TABLE)
}
