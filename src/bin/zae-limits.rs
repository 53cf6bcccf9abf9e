//! The command line. Everything it does is in [`zae_limits::cli`].

fn main() -> std::process::ExitCode {
    zae_limits::cli::main()
}
