//! The command line: one file per command, exit codes in one place.
//!
//! Each flag is declared once, with its help, in the command's own struct.

mod admin;
mod check;
mod demo;
mod explain;
mod export;
mod fsck;
mod get;
mod ls;
mod misspelt;
mod rm;
mod run;
mod signals;
mod stats;
mod table;

use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Exit codes, as scripts see them.
pub(crate) mod exit {
    /// All went well.
    pub(crate) const SUCCESS: u8 = 0;
    /// Something went wrong while running.
    pub(crate) const FAILURE: u8 = 1;
    /// The command line itself is wrong (clap's own code as well).
    pub(crate) const USAGE: u8 = 2;
    /// The config has errors.
    pub(crate) const CONFIG: u8 = 3;
}

/// A web accelerator: a caching reverse proxy in one binary.
#[derive(Debug, Parser)]
#[command(name = "larder", version, about)]
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
    /// List what a running larder has stored
    Ls(ls::LsArguments),
    /// Show what a running larder has stored under a URL: its body, or what is known of it
    Get(get::GetArguments),
    /// Take what is stored under URLs out of a running larder, from all its stores
    Rm(rm::RmArguments),
    /// Write what a running larder has stored as a tree of files that any web server can serve
    Export(export::ExportArguments),
    /// The figures of a running larder: requests, stores, origins
    Stats(stats::StatsArguments),
    /// Read the directory of a disk that no larder has open: what is in it, and what is damaged
    Fsck(fsck::FsckArguments),
    /// A slow demo app, larder in front of it, load on both, and a table of what it made of it
    Demo(demo::DemoArguments),
}

/// Reads the arguments and does what they say.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => misspelt::explained(error).exit(),
    };
    match arguments.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Ls(arguments) => ls::ls(&arguments),
        Command::Get(arguments) => get::get(&arguments),
        Command::Rm(arguments) => rm::rm(&arguments),
        Command::Export(arguments) => export::export(&arguments),
        Command::Stats(arguments) => stats::stats(&arguments),
        Command::Fsck(arguments) => fsck::fsck(&arguments),
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

/// Writes to standard output. A reader that has seen enough, such as `head`, is no failure: false says to stop.
fn write_out(bytes: &[u8]) -> std::io::Result<bool> {
    let mut stdout = std::io::stdout().lock();
    // What is left in its buffer would be written at the end of the process, and lost without a word.
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}

/// Writes all there is to standard output, and ends well if that does.
fn print_all(bytes: &[u8]) -> ExitCode {
    match write_out(bytes) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::from(exit::FAILURE)
        }
    }
}

/// Why a command that asks a larder and prints ended early.
enum Ended {
    Asking(admin::AdminError),
    Writing(std::io::Error),
    /// A file that was named for it.
    File(std::path::PathBuf, std::io::Error),
    /// The body is nothing for a terminal.
    NotText,
}

impl From<admin::AdminError> for Ended {
    fn from(error: admin::AdminError) -> Self {
        Self::Asking(error)
    }
}

impl Ended {
    fn told(&self) -> ExitCode {
        match self {
            Self::Asking(error) => failed(error),
            Self::Writing(error) => {
                complain(error);
                ExitCode::from(exit::FAILURE)
            }
            Self::File(path, error) => {
                say(format_args!("larder: error: {}: {error}", printable(&path.display().to_string())));
                ExitCode::from(exit::FAILURE)
            }
            Self::NotText => {
                say("larder: error: the body is not text, and is not written to a terminal");
                say("  hint: -o FILE writes it to a file, -o - to the terminal all the same");
                ExitCode::from(exit::FAILURE)
            }
        }
    }
}

/// The end of a command that asked a larder in vain.
fn failed(error: &admin::AdminError) -> ExitCode {
    if let admin::AdminError::Config(errors) = error {
        say(errors);
        return ExitCode::from(exit::CONFIG);
    }
    complain(error);
    if let admin::AdminError::NotRunning(..) = error {
        say("  hint: --admin, LARDER_ADMIN or the config file (-c) names another address");
    }
    ExitCode::from(if error.is_of_the_question() { exit::USAGE } else { exit::FAILURE })
}

/// A line on stderr. Where it cannot be written there is nobody to be told of that.
fn say(message: impl Display) {
    let _ = writeln!(std::io::stderr(), "{message}");
}

/// One line on stderr, with everything that hangs behind the error.
fn complain(error: &dyn std::error::Error) {
    say(format_args!("larder: error: {}", chain(error)));
}

/// An error with everything that hangs behind it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    printable(&line)
}
