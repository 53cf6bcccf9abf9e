//! `completions`: a script that completes this command line in a shell.

use super::Context;
use super::args::{self, Cli};
use super::error::CliError;
use super::exit::Exit;
use clap::CommandFactory;

pub(super) fn run(context: &Context, args: &args::Completions) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    context
        .out
        .answer(String::from_utf8_lossy(&script).trim_end())?;
    Ok(Exit::Done)
}
