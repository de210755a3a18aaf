//! The house's own tools, behind the targets of the Makefile.
//!
//! In: the checkout it stands in. Out: a verdict on standard output and an exit code; 0 means that the rule holds.
//! Everything longer than a few lines of shell is a module here, so that it is typed, tested and says why it failed.
//! Deliberately absent: anything that larder itself needs. No crate of the house may import this one.
#![allow(clippy::disallowed_macros, reason = "a tool may panic where nobody reads what it prints")]

mod bench;
mod children;
mod conformance;
mod h2spec;
mod instructions;
mod layers;
mod libraries;
mod origin;
mod orphans;
mod promises;
mod readme;
mod realapp;
mod reference;
mod rooms;
mod smoke;
mod tools;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use conformance::Purpose;

/// The house's own tools; each is behind a make target.
#[derive(Parser)]
#[command(name = "xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Which crate may import which, and that the rooms of the proxy do not import each other
    Layers,
    /// File heads, unsafe code with its reason, forbidden words and names
    Words,
    /// The page of library choices beside the manifest and the lock file
    Libraries,
    /// The page of promises: a test for each promise and each kind of store
    Promises,
    /// Commands in README.md and docs/guide
    Readme {
        /// `check`: the blocks are well-formed; `run`: run them
        #[arg(value_parser = ["check", "run"])]
        what: String,
    },
    /// Generated pages under docs/reference: compares them, or rewrites them
    Reference {
        /// Rewrite what differs
        #[arg(long)]
        write: bool,
    },
    /// Makes sure that a target's tools are there: installs them, or names what is missing
    Need {
        /// check, test, audit, conformance, fuzz, instructions, or the name of a measurement
        target: String,
    },
    /// `cargo deny check advisories`, or the reason why the database could not be fetched
    Audit,
    /// Every fuzz target for a short time
    Fuzz {
        /// Seconds for each target; half of them where fuzz/Cargo.toml says so
        #[arg(long, default_value_t = 30)]
        seconds: u32,
    },
    /// HTTP/2 conformance against the committed list of failures
    H2spec {
        /// Rewrite the list from this run
        #[arg(long)]
        write: bool,
    },
    /// Instructions per request, counted by callgrind, against the committed figures
    Instructions {
        /// Rewrite the figures from this run
        #[arg(long)]
        write: bool,
    },
    /// The public HTTP cache suite against the committed outcomes
    Conformance {
        /// Rewrite the outcomes and the page from this run
        #[arg(long, conflicts_with = "only")]
        write: bool,
        /// One test, by its id, with every message of both sides
        #[arg(long)]
        only: Option<String>,
    },
    /// A measurement beside the peers
    Bench {
        /// Which one, or `all`
        #[arg(value_parser = bench::names())]
        name: String,
    },
    /// Watches the core it runs on for a measurement, until standard input closes
    #[command(hide = true)]
    Pauses,
    /// Ends what another run of this program has left, until and after standard input closes
    #[command(hide = true)]
    Orphans,
    /// larder in front of real applications, taken from Debian, PyPI or npm
    Realapp {
        /// Which one, or `all`
        #[arg(value_parser = realapp::names(), default_value = "all")]
        name: String,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let root = checkout();
    let done = match arguments.task {
        Task::Layers => layers::run(&root).and_then(|()| rooms::run(&root)),
        Task::Words => words::run(&root),
        Task::Libraries => libraries::run(&root),
        Task::Promises => promises::run(&root),
        Task::Readme { what } if what == "run" => readme::run(&root),
        Task::Readme { .. } => readme::check(&root),
        Task::Reference { write } => reference::run(&root, write),
        Task::Need { target } => tools::need(&root, &target),
        Task::Audit => tools::audit(&root),
        Task::Fuzz { seconds } => smoke::run(&root, seconds),
        Task::H2spec { write } => h2spec::run(&root, write),
        Task::Instructions { write } => instructions::run(&root, write),
        Task::Conformance { only: Some(id), .. } => conformance::run(&root, Purpose::Show(id)),
        Task::Conformance { write: true, .. } => conformance::run(&root, Purpose::Write),
        Task::Conformance { .. } => conformance::run(&root, Purpose::Compare),
        Task::Bench { name } => bench::run(&root, &name),
        Task::Pauses => bench::pauses::watch(),
        Task::Orphans => orphans::watch(),
        Task::Realapp { name } => realapp::run(&root, &name),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The checkout that this program was built in.
fn checkout() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
