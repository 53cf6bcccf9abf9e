//! The command line. Everything it does is in [`zae_limits::cli`].

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> std::process::ExitCode {
    zae_limits::cli::main()
}
