//! larder beside its peers, and in front of real applications.
//!
//! In: the checkout it was built in, and the name of a measurement or an application. Out: tables and plots below
//! bench/results, a closing line for each application, or pictures below docs/images; an exit code, 0 where nothing failed.
//! Deliberately absent: what CI runs. A measurement wants a machine for itself, an application wants its packages.
#![allow(clippy::disallowed_macros, reason = "a tool may panic where nobody reads what it prints")]

mod browser;
#[cfg(test)]
#[path = "../floor/src/connection.rs"]
mod floor;
mod measure;
mod packages;
mod realapp;
mod screenshots;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// larder measured, tried out and drawn; each command is behind a make target.
#[derive(Parser)]
#[command(name = "bench")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// A measurement beside the peers
    Measure {
        /// Which one, or `all`
        #[arg(value_parser = measure::names())]
        name: String,
    },
    /// Watches the core it runs on for a measurement, until standard input closes
    #[command(hide = true)]
    Pauses,
    /// larder in front of real applications, taken from Debian, PyPI or npm
    Realapp {
        /// Which one, or `all`
        #[arg(value_parser = realapp::names(), default_value = "all")]
        name: String,
    },
    /// The pictures of the documentation, drawn anew
    Screenshots {
        /// How long the demo gathers figures before
        #[arg(long, default_value_t = 660)]
        seconds: u64,
    },
}

fn main() -> ExitCode {
    if let Some(code) = harness::orphans::watch_over_children() {
        return code;
    }
    let root = checkout();
    let done = match Arguments::parse().task {
        Task::Measure { name } => measure::run(&root, &name),
        Task::Pauses => measure::pauses::watch(),
        Task::Realapp { name } => realapp::run(&root, &name),
        Task::Screenshots { seconds } => screenshots::run(&root, seconds),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The checkout that this program was built in.
fn checkout() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
