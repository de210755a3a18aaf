//! larder, the web accelerator: the command line, and the wiring of settings to crates.
//!
//! In: arguments and a config file. Out: a running [`server::Server`], or one clear message and an exit code. The
//! crates below do the work; here is only what joins them. Tests start a server in their own process through this
//! library, with a clock of their own.

pub mod cli;
pub mod demo;
pub mod server;
mod wire;
