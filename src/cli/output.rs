//! The two streams: stdout is the answer, stderr is everything else.
//!
//! A closed pipe is quiet: whoever reads has had enough, and what was begun is finished.

use super::args::{Color, Command, Findings, Format, Global};
use super::error::CliError;
use super::exit::Exit;
use crate::report::SCHEMA_VERSION;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where and how a command speaks.
#[derive(Debug, Clone)]
pub(super) struct Output {
    /// What the answer is written as.
    pub(super) format: Format,
    color: Color,
    quiet: bool,
    /// Whether the one JSON document is begun: two threads may want to write one when a command
    /// is interrupted. Shared by clones.
    documented: Arc<AtomicBool>,
}

impl Output {
    pub(super) fn new(global: &Global, command: &Command) -> Output {
        let format = match command {
            // What goes wrong before there are findings is then a document too.
            Command::Validate(args) if args.format == Some(Findings::Json) => Format::Json,
            _ => global.output,
        };
        Output {
            format,
            color: global.color,
            quiet: global.quiet,
            documented: Arc::default(),
        }
    }

    /// For a command line that did not parse: what it asked for is guessed from its words.
    pub(super) fn before_parsing(arguments: &[OsString]) -> Output {
        let words = arguments
            .iter()
            .map(|word| word.to_str().unwrap_or_default());
        let words: Vec<&str> = words.take_while(|word| *word != "--").collect();
        let value = |index: usize| {
            let following = || words.get(index + 1).copied();
            let here = words[index];
            if let Some(value) = here.strip_prefix("--output") {
                return value.strip_prefix('=').or_else(following);
            }
            // Switches of one letter may stand before it: `-qo json`.
            let (switches, value) = here.strip_prefix('-')?.split_once('o')?;
            let is_cluster = switches.chars().all(|c| "qvhVy".contains(c));
            let value = value.strip_prefix('=').unwrap_or(value);
            is_cluster
                .then_some(value)
                .filter(|value| !value.is_empty())
                .or_else(following)
        };
        let asks_for_json = (0..words.len()).any(|index| value(index) == Some("json"));
        Output {
            format: if asks_for_json {
                Format::Json
            } else {
                Format::Text
            },
            color: Color::Auto,
            quiet: false,
            documented: Arc::default(),
        }
    }

    /// Whether stdout takes colours.
    pub(super) fn colours_stdout(&self) -> bool {
        self.colours(io::stdout().is_terminal())
    }

    /// Whether stderr takes colours.
    pub(super) fn colours_stderr(&self) -> bool {
        self.colours(io::stderr().is_terminal())
    }

    fn colours(&self, terminal: bool) -> bool {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        match self.color {
            _ if set("NO_COLOR") => false,
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !dumb,
        }
    }

    /// Whether bars may be drawn.
    pub(super) fn draws(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Writes to stdout, with a line end.
    ///
    /// # Errors
    /// [`CliError::File`] when it cannot be written. A closed pipe is no error.
    pub(super) fn answer(&self, text: &str) -> Result<(), CliError> {
        let mut stdout = io::stdout().lock();
        let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CliError::File {
                act: "write",
                path: PathBuf::from("the standard output"),
                source: error,
            }),
            _ => Ok(()),
        }
    }

    /// Writes the one JSON document: the fields of `body` between version and line end. A second
    /// one is not written.
    ///
    /// # Errors
    /// As [`Output::answer`].
    pub(super) fn document(&self, command: &str, body: Value) -> Result<(), CliError> {
        if self.documented.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let mut document = Map::new();
        document.insert("schema_version".into(), json!(SCHEMA_VERSION));
        document.insert("command".into(), json!(command));
        if let Value::Object(body) = body {
            document.extend(body);
        }
        self.answer(&format!("{:#}", Value::Object(document)))
    }

    /// Writes a line to stderr that nobody may miss. When even that fails there is nobody to tell.
    pub(super) fn say(&self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// Writes a line to stderr unless `--quiet` was given.
    pub(super) fn note(&self, text: &str) {
        if !self.quiet {
            self.say(text);
        }
    }

    /// Says why a command failed, and how it exits.
    pub(super) fn failed(&self, command: &str, error: &CliError) -> Exit {
        self.failed_with(command, error, Value::Null)
    }

    /// The same, with what the command had to say until then in the JSON document.
    pub(super) fn failed_with(&self, command: &str, error: &CliError, body: Value) -> Exit {
        let exit = error.exit();
        match self.format {
            // What goes wrong after the document is said where it does not spoil it.
            Format::Json if self.documented.load(Ordering::SeqCst) => self.say_error(error),
            Format::Json => {
                let mut document = match body {
                    Value::Object(body) => body,
                    _ => Map::new(),
                };
                document.insert("error".into(), error.json());
                if let Err(error) = self.document(command, Value::Object(document)) {
                    self.say_error(&error);
                }
            }
            Format::Text | Format::Markdown => self.say_error(error),
        }
        exit
    }

    fn say_error(&self, error: &CliError) {
        let start = if self.colours_stderr() {
            super::render::paint::ERROR.on("error:")
        } else {
            "error:".to_owned()
        };
        let message = error.message();
        for (index, line) in message.lines().enumerate() {
            let line = super::render::text::safe(line);
            match error {
                // Usage goes on for several lines, of which only the first is the error.
                CliError::Usage { .. } if index > 0 => self.say(&line),
                _ => self.say(&format!("{start} {line}")),
            }
        }
    }
}
