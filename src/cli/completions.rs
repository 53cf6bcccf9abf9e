//! `completions`: a script that completes this command line in a shell.

use super::Context;
use super::args::{self, Cli, Format};
use super::error::CliError;
use super::exit::Exit;
use clap::CommandFactory;
use serde_json::json;

pub(super) fn run(context: &Context, args: &args::Completions) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    let script = String::from_utf8_lossy(&script);
    let script = script.trim_end();
    match context.out.format {
        Format::Json => {
            let body = json!({ "shell": args.shell.to_string(), "script": script });
            context.out.document("completions", body)?;
        }
        Format::Text | Format::Markdown => context.out.answer(script)?,
    }
    Ok(Exit::Done)
}
