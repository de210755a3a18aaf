//! The command line: one file per command, exit codes in one place.
//!
//! Each flag is declared once, with its help, in the command's own struct.

mod check;
mod demo;
mod explain;
mod run;
mod signals;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Exit codes, as scripts see them.
pub(crate) mod exit {
    /// Something went wrong while running.
    pub(crate) const FAILURE: u8 = 1;
    /// The command line itself is wrong (clap's own code as well).
    pub(crate) const USAGE: u8 = 2;
    /// The config has errors.
    pub(crate) const CONFIG: u8 = 3;
}

/// A web accelerator: a caching reverse proxy in one binary.
#[derive(Debug, Parser)]
#[command(name = "larder", version, about, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Accelerate an app: listen, cache, pass on what has to be passed on
    Run(run::RunArguments),
    /// Check a config file and print every error at once
    Check(check::CheckArguments),
    /// Tell why a request is answered as it is: rule, key, freshness, stored or not, and what would remove it
    Explain(explain::ExplainArguments),
    /// A slow demo app, larder in front of it, load on both, and a table of what it made of it
    Demo(demo::DemoArguments),
}

/// Reads the arguments and does what they say.
pub fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Demo(arguments) => demo::demo(&arguments),
    }
}

/// Nothing in it that a terminal could take for a command, wherever the text comes from.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

/// One line on stderr, with everything that hangs behind the error.
fn complain(error: &dyn std::error::Error) {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    eprintln!("larder: error: {}", printable(&line));
}
