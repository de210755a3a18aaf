//! The binary. Everything is in the library, so that tests can start it in their own process.

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

// Stored responses live among the short-lived objects of their fetches, and come and go for weeks: with glibc's allocator a
// full store of small objects took two and a half times its cap (docs/design/memory-store.md).
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    larder::cli::main()
}
