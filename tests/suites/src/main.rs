//! What larder does and declares, beside what is committed of it.
//!
//! In: the checkout it was built in, and larder as the build left it. Out: a verdict on standard output and an exit
//! code; 0 means that everything is as committed. A suite that compares can write what it found in place of what is committed.
#![allow(clippy::disallowed_macros, reason = "a tool may panic where nobody reads what it prints")]

mod conformance;
mod dialects;
mod differences;
mod fuzz;
mod h2spec;
mod instructions;
mod pages;
mod peers;
mod reference;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use conformance::Purpose;
use fuzz::Drawing;

/// What larder does and declares, beside what is committed of it; each suite is behind a make target.
#[derive(Parser)]
#[command(name = "suites")]
struct Arguments {
    #[command(subcommand)]
    suite: Suite,
}

#[derive(Subcommand)]
enum Suite {
    /// HTTP/2 conformance against the committed list of failures
    H2spec {
        /// Rewrite the list from this run
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
    /// Requests for purges, to Varnish and nginx and to larder, against the committed list of differences
    Dialects {
        /// Rewrite the list from this run
        #[arg(long)]
        write: bool,
    },
    /// Every fuzz target for a while
    Fuzz {
        /// Seconds for each target
        #[arg(long, default_value_t = 5)]
        seconds: u32,
        /// Draw anew, and begin with what earlier such runs have kept below fuzz/kept
        #[arg(long)]
        kept: bool,
        /// One target alone
        #[arg(long)]
        only: Option<String>,
        /// Only build them, for a run that follows
        #[arg(long, conflicts_with_all = ["seconds", "kept", "only"])]
        build: bool,
    },
    /// Instructions per request, counted by callgrind, against the committed figures
    Instructions {
        /// Rewrite the figures from this run
        #[arg(long)]
        write: bool,
    },
    /// Templates of pages, to the servers that speak their language and to larder, against the committed list of differences
    Pages {
        /// Rewrite the list from this run
        #[arg(long)]
        write: bool,
    },
    /// Generated pages under docs/reference: compares them, or rewrites them
    Reference {
        /// Rewrite what differs
        #[arg(long)]
        write: bool,
    },
}

fn main() -> ExitCode {
    if let Some(code) = harness::orphans::watch_over_children() {
        return code;
    }
    let root = checkout();
    let done = match Arguments::parse().suite {
        Suite::H2spec { write } => h2spec::run(&root, write),
        Suite::Conformance { only: Some(id), .. } => conformance::run(&root, Purpose::Show(id)),
        Suite::Conformance { write: true, .. } => conformance::run(&root, Purpose::Write),
        Suite::Conformance { .. } => conformance::run(&root, Purpose::Compare),
        Suite::Dialects { write } => dialects::run(&root, write),
        Suite::Fuzz { build: true, .. } => fuzz::build_all(&root),
        Suite::Fuzz { seconds, kept, only, .. } => {
            let drawing = if kept { Drawing::Kept } else { Drawing::Fixed };
            fuzz::run(&root, only.as_deref(), seconds, drawing)
        }
        Suite::Instructions { write } => instructions::run(&root, write),
        Suite::Pages { write } => pages::run(&root, write),
        Suite::Reference { write } => reference::run(&root, write),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("suites: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The checkout that this program was built in.
fn checkout() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}
