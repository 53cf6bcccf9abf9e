//! Asking before something is written.

use super::Context;
use super::error::CliError;
use std::io::{self, BufRead, IsTerminal, Write};

/// Whether there is someone to ask.
pub(super) fn can_ask(context: &Context) -> bool {
    !context.global.no_input && io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question that only `y` or `yes` affirms.
///
/// # Errors
/// [`CliError::Declined`] on any other answer, the end of the input included.
pub(super) async fn confirm(question: &str) -> Result<(), CliError> {
    let mut stderr = io::stderr();
    // Without a question on the screen there is no answer to it.
    let asked = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
    asked.map_err(|_| CliError::Declined)?;
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    match answer.await {
        Ok(Ok(line)) if matches!(line.trim(), "y" | "Y" | "yes" | "Yes" | "YES") => Ok(()),
        _ => Err(CliError::Declined),
    }
}

/// Refuses to go on unasked.
pub(super) fn needs_yes(command: &str) -> CliError {
    CliError::usage(format!(
        "{command} asks before it writes, and there is no terminal to ask on: pass --yes"
    ))
}
