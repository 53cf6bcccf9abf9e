//! The command line: arguments in, an answer on stdout, everything else on stderr, an exit code.
//!
//! This is an edge: it reads the environment, files and the terminal, and renders what the library
//! returns. It decides nothing about limits, and never touches the table but through the library.

mod apply;
mod args;
mod completions;
mod connect;
mod environment;
mod error;
mod event;
mod exit;
mod explain;
mod files;
mod interrupt;
#[cfg(feature = "local")]
mod local;
mod namespace;
mod output;
mod plan;
mod progress;
mod prompt;
mod render;
mod resume;
mod saved;
mod validate;
mod work;

use crate::clock::Clock;
use args::{Cli, Command};
use clap::Parser;
use clap::error::ErrorKind;
use error::CliError;
use exit::Exit;
use interrupt::{Interrupts, Signal};
use output::Output;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;
use tokio::runtime::Handle;

/// How long an interrupted process tries to say so.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What every command is handed.
struct Context {
    global: args::Global,
    out: Output,
    clock: Clock,
    interrupts: Interrupts,
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let anew = environment::without_empty_endpoints();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return wrong_usage(&arguments, &error).into(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let out = Output::new(&cli.global, &cli.command);
    if let Err(source) = anew {
        return out
            .failed(cli.command.name(), &CliError::Anew { source })
            .into();
    }
    let exit = match runtime {
        Ok(runtime) => {
            let exit = runtime.block_on(run(cli, out));
            // A command that was interrupted may still wait for a pipe or a terminal: nobody
            // waits for it.
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
    let work = {
        let (out, interrupts) = (out.clone(), interrupts.clone());
        // On a thread of its own: a file may be a pipe to which nobody writes, and stdout one
        // from which nobody reads. Whatever it waits for, signals are heard here.
        tokio::task::spawn_blocking(move || Handle::current().block_on(work(cli, out, interrupts)))
    };
    tokio::select! {
        done = work => done.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Exit::Error,
        }),
        signal = interrupts.fatal() => interrupted(name, out, signal).await,
    }
}

/// The command itself. From a signal that is the end, nothing more of it is begun.
async fn work(cli: Cli, out: Output, interrupts: Interrupts) -> Exit {
    let name = cli.command.name();
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
        // Whoever hears it as well says so and ends the process.
        _ = interrupts.fatal() => std::future::pending().await,
    }
}

/// Says that a signal was the end, where there is someone to tell.
async fn interrupted(name: &'static str, out: Output, signal: Signal) -> Exit {
    let error = CliError::Interrupted { signal };
    let exit = error.exit();
    // The command may be stuck in a write to a stream that nobody reads, and hold that stream.
    let say = tokio::task::spawn_blocking(move || out.failed(name, &error));
    let _ = tokio::time::timeout(LAST_WORDS, say).await;
    exit
}

async fn dispatch(context: &Context, command: Command) -> Result<Exit, CliError> {
    match command {
        Command::Validate(args) => validate::run(context, &args),
        Command::Plan(args) => plan::run(context, &args).await,
        Command::Apply(args) => apply::run(context, &args).await,
        Command::Resume(args) => resume::run(context, &args).await,
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

/// Answers with a text of the parser's.
fn said(out: &Output, command: &str, text: &clap::Error) -> Exit {
    let text = text.render();
    let text = match out.colours_stdout() && out.format != args::Format::Json {
        true => text.ansi().to_string(),
        false => text.to_string(),
    };
    let text = text.trim_end();
    let answered = match out.format {
        args::Format::Json => out.document(command, serde_json::json!({ "text": text })),
        _ => out.answer(text),
    };
    match answered {
        Ok(()) => Exit::Done,
        Err(error) => out.failed(command, &error),
    }
}

/// Help and version are answers; anything else that the parser says is wrong usage.
fn wrong_usage(arguments: &[OsString], error: &clap::Error) -> Exit {
    let out = Output::before_parsing(arguments);
    match error.kind() {
        ErrorKind::DisplayHelp => said(&out, "help", error),
        ErrorKind::DisplayVersion => said(&out, "version", error),
        kind => {
            // What was typed is in the text, so it is printed as text and nothing else.
            let text = error.render().to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            let lines: Vec<String> = text.lines().map(crate::manifest::printable).collect();
            let mut message = lines.join("\n").trim_end().to_owned();
            if kind == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
                message = format!("a command is missing\n\n{message}");
            }
            out.failed("usage", &CliError::Usage { message })
        }
    }
}
