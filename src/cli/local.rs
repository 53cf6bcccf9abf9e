//! `local seed`, `local serve`, `local reset`: the embedded store.

use super::args::{self, Format, LOCAL_DEFAULT, Local};
use super::connect::{self, Purpose};
use super::error::CliError;
use super::exit::Exit;
use super::render::rows::counted;
use super::render::text;
use super::{Context, prompt};
use crate::model::NamespaceName;
use crate::store::serve;
use serde_json::json;
use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

/// The namespace that is seeded when none is named: the example manifest's.
const SEEDED: &str = "tenant-alpha";
/// What every file of the embedded store begins with.
const MAGIC: &[u8] = b"SQLite format 3\0";

pub(super) async fn run(context: &Context, command: &Local) -> Result<Exit, CliError> {
    connect::refuse_remote_options(&context.global)?;
    let path = context.global.local.clone();
    let path = path.unwrap_or_else(|| PathBuf::from(LOCAL_DEFAULT));
    match command {
        Local::Seed => seed(context, &path).await,
        Local::Serve(args) => serve_store(context, &path, args).await,
        Local::Reset(args) => reset(context, &path, args).await,
    }
}

/// Speaks for people or for programs, whichever is asked for.
fn answer(
    context: &Context,
    command: &str,
    text: &str,
    body: serde_json::Value,
) -> Result<Exit, CliError> {
    match context.out.format {
        Format::Json => context.out.document(command, body)?,
        Format::Text | Format::Markdown => context.out.answer(text)?,
    }
    Ok(Exit::Done)
}

async fn seed(context: &Context, path: &Path) -> Result<Exit, CliError> {
    let name = match connect::namespace(&context.global)? {
        Some(name) => name,
        None => NamespaceName::parse(SEEDED).map_err(|error| CliError::usage(error.to_string()))?,
    };
    let target = connect::open_local(context, path, Purpose::Write).await?;
    let now = context.clock.now();
    let ns = target.store.register_namespace(&name, now).await?;
    let seeded = target.store.seed(&ns, now).await?;
    let mut said = format!(
        "{}: {} and {} made",
        text::safe(name.as_str()),
        counted(seeded.entities as u64, "entity", "entities"),
        counted(seeded.buckets as u64, "bucket", "buckets"),
    );
    if seeded.existing > 0 {
        said.push_str(&format!(", {} there already", seeded.existing));
    }
    let body = json!({
        "namespace": name,
        "entities": seeded.entities,
        "buckets": seeded.buckets,
        "existing": seeded.existing,
    });
    answer(context, "local seed", &said, body)
}

async fn serve_store(context: &Context, path: &Path, args: &args::Serve) -> Result<Exit, CliError> {
    // Made on first use like everywhere: other clients expect a table.
    connect::open_local(context, path, Purpose::Write).await?;
    let embedded = connect::open_file(path)?;
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(|source| CliError::Listen {
            port: args.port,
            source,
        })?;
    let interrupts = context.interrupts.clone();
    let stop = interrupts.be_graceful();
    let server = serve(&embedded, listener, async move { stop.wait().await })?;
    let url = server.url();
    let table = connect::local_table(&context.global);
    let environment = [
        ("AWS_ENDPOINT_URL_DYNAMODB", url.as_str()),
        ("AWS_REGION", "local"),
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
        ("ZAEL_STACK", table),
    ];
    let exports: Vec<String> = environment
        .iter()
        .map(|(name, value)| format!("export {name}='{}'", value.replace('\'', "'\\''")))
        .collect();
    let said = text::safe(&format!("Serving {} at {url}", path.display()));
    let exports: Vec<String> = exports.iter().map(|line| text::safe(line)).collect();
    let body = json!({
        "url": url,
        "path": path.display().to_string(),
        "environment": environment.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
    });
    answer(
        context,
        "local serve",
        &format!("{said}\n\n{}", exports.join("\n")),
        body,
    )?;
    context.out.note("Ctrl-C stops it.");
    server.stopped().await?;
    Ok(Exit::Done)
}

async fn reset(context: &Context, path: &Path, args: &args::Reset) -> Result<Exit, CliError> {
    let files: Vec<PathBuf> = ["", "-wal", "-shm"]
        .iter()
        .map(|suffix| {
            let mut file = path.as_os_str().to_owned();
            file.push(suffix);
            PathBuf::from(file)
        })
        .filter(|file| file.exists())
        .collect();
    let shown = text::safe(&path.display().to_string());
    if files.is_empty() {
        let said = format!("There is no embedded store at {shown}.");
        return answer(context, "local reset", &said, json!({ "deleted": false }));
    }
    check_is_store(path)?;
    if !args.yes {
        if !prompt::can_ask(context) {
            return Err(prompt::needs_yes("local reset"));
        }
        prompt::confirm(&format!("Delete the embedded store {shown}?")).await?;
    }
    for file in &files {
        std::fs::remove_file(file).map_err(|source| failed("delete", file, source))?;
    }
    let said = format!("Deleted {shown}.");
    answer(context, "local reset", &said, json!({ "deleted": true }))
}

/// Refuses to delete what is something else.
fn check_is_store(path: &Path) -> Result<(), CliError> {
    let mut start = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut start))
        .map_err(|source| failed("read", path, source))?;
    if start == MAGIC {
        return Ok(());
    }
    Err(CliError::NotAStore {
        path: path.to_owned(),
    })
}

fn failed(act: &'static str, path: &Path, source: io::Error) -> CliError {
    CliError::File {
        act,
        path: path.to_owned(),
        source,
    }
}
