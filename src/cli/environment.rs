//! The environment of this process, made one that the AWS SDK can live with, before anything else
//! is done. Options are not read here.

use std::io;

/// The variables that name an endpoint to the SDK, for all services or for one, begin so.
#[cfg(unix)]
const ENDPOINT: &str = "AWS_ENDPOINT_URL";

/// Starts this process anew without the endpoint URLs that its environment sets to nothing, where
/// there are such: nothing means not given, and the SDK panics over it, in its own clients for
/// credentials too, which nobody outside of it configures. Within a process a variable cannot be
/// taken back safely.
///
/// # Errors
/// When the process cannot be started anew. It goes on then as it is.
#[cfg(unix)]
pub(super) fn without_empty_endpoints() -> io::Result<()> {
    use std::ffi::OsString;
    use std::os::unix::process::CommandExt;
    let is_empty = |(name, value): &(OsString, OsString)| {
        value.is_empty() && name.to_string_lossy().starts_with(ENDPOINT)
    };
    let empty: Vec<_> = std::env::vars_os().filter(is_empty).collect();
    if empty.is_empty() {
        return Ok(());
    }
    let mut command = std::process::Command::new(std::env::current_exe()?);
    let mut arguments = std::env::args_os();
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments);
    for (name, _) in empty {
        command.env_remove(name);
    }
    Err(command.exec())
}

/// Nothing: where this is not Unix, a variable that is set to nothing is not set.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub(super) fn without_empty_endpoints() -> io::Result<()> {
    Ok(())
}
