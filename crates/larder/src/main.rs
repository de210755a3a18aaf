//! The binary. Everything is in the library, so that tests can start it in their own process.

use std::process::ExitCode;

fn main() -> ExitCode {
    larder::cli::main()
}
