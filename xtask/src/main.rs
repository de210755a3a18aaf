//! The workspace's checks, behind the targets of the Makefile.
//!
//! In: the checkout it stands in. Out: a verdict on standard output and an exit code; 0 means that the rule holds.
//! Everything longer than a few lines of shell is a module here, so that it is typed, tested and says why it failed.
//! Deliberately absent: larder itself, and a runtime. This program is built first and tells why the rest cannot be. No crate
//! of the workspace may import it.
#![allow(clippy::disallowed_macros, reason = "a tool may panic where nobody reads what it prints")]

mod alerts;
mod calls;
mod circles;
mod layers;
mod libraries;
mod modules;
mod names;
mod promises;
mod quick;
mod readme;
mod sentences;
mod sources;
mod tools;
mod ui;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The workspace's checks; each is behind a make target.
#[derive(Parser)]
#[command(name = "xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Which crate may import which, and that the step modules of the proxy do not import each other
    Layers,
    /// Calls of the file system, which some crates make in a few files only
    Calls,
    /// Circles between the files of a crate, but for those that are listed
    Circles,
    /// Names of types that stand for two things in one crate, imported ones included
    Names,
    /// File heads, unsafe code with its reason, forbidden words and names
    Words,
    /// Sentences of the pages and of file heads: how long they may be
    Sentences,
    /// The page of library choices beside the manifest and the lock file
    Libraries,
    /// The page of promises: a test for each promise and each kind of store
    Promises,
    /// The example's alerts: metrics that are there, and a place in the runbook for each
    Alerts,
    /// Commands in README.md and docs/guide
    Readme {
        /// `check`: the blocks are well-formed; `run`: run them
        #[arg(value_parser = ["check", "run"])]
        what: String,
    },
    /// The modules of others below crates/larder-admin/ui/vendor
    Ui {
        /// `check`: they are what their packages have; `vendor`: take them anew
        #[arg(value_parser = ["check", "vendor"])]
        what: String,
    },
    /// Makes sure that a target's tools are there: installs them, or names what is missing
    Need {
        /// check, quick, audit, readme, units or torture
        target: String,
    },
    /// `cargo deny check advisories`, or the reason why the database could not be fetched
    Audit,
    /// Format, structure, words, and lints and tests of the crates that have changed since the last commit
    Quick,
}

fn main() -> ExitCode {
    if let Some(code) = harness::orphans::watch_over_children() {
        return code;
    }
    let arguments = Arguments::parse();
    let root = checkout();
    let done = match arguments.task {
        Task::Layers => layers::run(&root).and_then(|()| modules::run(&root)),
        Task::Calls => calls::run(&root),
        Task::Circles => circles::run(&root),
        Task::Names => names::run(&root),
        Task::Words => words::run(&root),
        Task::Sentences => sentences::run(&root),
        Task::Libraries => libraries::run(&root),
        Task::Promises => promises::run(&root),
        Task::Alerts => alerts::run(&root),
        Task::Readme { what } if what == "run" => readme::run(&root),
        Task::Readme { .. } => readme::check(&root),
        Task::Ui { what } if what == "vendor" => ui::vendor(&root),
        Task::Ui { .. } => ui::check(&root),
        Task::Need { target } => tools::need(&root, &target),
        Task::Audit => tools::audit(&root),
        Task::Quick => tools::need(&root, "quick").and_then(|()| quick::run(&root)),
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
