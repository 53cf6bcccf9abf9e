//! The command line: arguments in, an answer on stdout, everything else on stderr, an exit code.
//!
//! This is an edge: it reads the environment, files and the terminal, and renders what the library
//! returns. It decides nothing about limits, and never touches the table but through the library.

mod apply;
mod args;
mod completions;
mod connect;
mod error;
mod event;
mod exit;
mod explain;
mod files;
mod interrupt;
#[cfg(feature = "local")]
mod local;
mod output;
mod plan;
mod progress;
mod prompt;
mod render;
mod saved;
mod validate;

use crate::clock::Clock;
use args::{Cli, Command};
use clap::Parser;
use clap::error::ErrorKind;
use error::CliError;
use exit::Exit;
use interrupt::Interrupts;
use output::Output;
use std::ffi::OsString;
use std::process::ExitCode;

/// What every command is handed.
struct Context {
    global: args::Global,
    out: Output,
    clock: Clock,
    interrupts: Interrupts,
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return wrong_usage(&arguments, &error).into(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let out = Output::new(&cli.global);
    let exit = match runtime {
        Ok(runtime) => {
            let exit = runtime.block_on(run(cli, out));
            // A read of the terminal cannot be cancelled, and nothing else is still at work.
            runtime.shutdown_background();
            exit
        }
        Err(source) => out.failed(cli.command.name(), &CliError::Runtime { source }),
    };
    exit.into()
}

async fn run(cli: Cli, out: Output) -> Exit {
    if cli.global.verbose {
        log_to_stderr();
    }
    let name = cli.command.name();
    let interrupts = match Interrupts::listen() {
        Ok(interrupts) => interrupts,
        Err(source) => return out.failed(name, &CliError::Signals { source }),
    };
    let context = Context {
        global: cli.global,
        out,
        clock: Clock::system(),
        interrupts: interrupts.clone(),
    };
    let done = async {
        let outcome = dispatch(&context, cli.command).await;
        outcome.unwrap_or_else(|error| context.out.failed(name, &error))
    };
    tokio::select! {
        exit = done => exit,
        signal = interrupts.fatal() => context.out.failed(name, &CliError::Interrupted { signal }),
    }
}

async fn dispatch(context: &Context, command: Command) -> Result<Exit, CliError> {
    match command {
        Command::Validate(args) => validate::run(context, &args),
        Command::Plan(args) => plan::run(context, &args).await,
        Command::Apply(args) => apply::run(context, &args).await,
        Command::Explain(args) => explain::run(context, &args).await,
        Command::Event { command } => event::run(context, &command).await,
        #[cfg(feature = "local")]
        Command::Local { command } => local::run(context, &command).await,
        Command::Completions(args) => completions::run(context, &args),
    }
}

/// What the library logs, for those who asked: the chains of causes behind one-line errors.
fn log_to_stderr() {
    use tracing_subscriber::EnvFilter;
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new("zae_limits=debug"))
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .without_time()
        .init();
}

/// Help and version are answers; anything else that the parser says is wrong usage.
fn wrong_usage(arguments: &[OsString], error: &clap::Error) -> Exit {
    let out = Output::before_parsing(arguments);
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let text = error.render();
            let text = if out.colours_stdout() {
                text.ansi().to_string()
            } else {
                text.to_string()
            };
            match out.answer(text.trim_end()) {
                Ok(()) => Exit::Done,
                Err(error) => out.failed("help", &error),
            }
        }
        _ => {
            // What was typed is in the text, so it is printed as text and nothing else.
            let text = error.render().to_string();
            let text = text.trim_end().strip_prefix("error: ").unwrap_or(&text);
            let lines: Vec<String> = text.lines().map(crate::manifest::printable).collect();
            let message = lines.join("\n").trim_end().to_owned();
            out.failed("usage", &CliError::Usage { message })
        }
    }
}
