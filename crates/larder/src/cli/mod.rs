//! The command line: one file per command, exit codes in one place (`exit`).
//!
//! Each flag is declared once, with its help, in the command's own struct.

mod admin;
mod certs;
mod check;
mod demo;
mod ended;
pub(crate) mod exit;
mod explain;
mod export;
mod fleet;
mod fsck;
mod get;
mod log;
mod ls;
mod misspelt;
mod output;
mod purge;
mod purges;
mod rm;
mod run;
mod signals;
mod stats;
mod table;
mod top;
mod warm;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    /// Purge what a running larder has stored: by URL, tag, prefix, pattern, host, or all of it
    Purge(purge::PurgeArguments),
    /// The certificates that clients of a running larder are shown, and how long they are good for
    Certs(certs::CertsArguments),
    /// The larders that purge together with a running one
    Fleet(fleet::FleetArguments),
    /// The last purges of a running larder: when, who, what, and how many responses went
    Purges(purges::PurgesArguments),
    /// Take what is stored under URLs out of a running larder, from all its stores
    Rm(rm::RmArguments),
    /// Ask for URLs through larder before visitors do, so that they are stored: a list, a file, a sitemap
    Warm(warm::WarmArguments),
    /// Write what a running larder has stored as a tree of files that any web server can serve
    Export(export::ExportArguments),
    /// What happens now in a running larder: a line per request, as it comes
    Log(log::LogArguments),
    /// What a running larder does and why, live on the whole screen: results, rules, stores, origins, requests
    Top(top::TopArguments),
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
        Command::Purge(arguments) => purge::purge(&arguments),
        Command::Certs(arguments) => certs::certs(&arguments),
        Command::Fleet(arguments) => fleet::fleet(&arguments),
        Command::Purges(arguments) => purges::purges(&arguments),
        Command::Rm(arguments) => rm::rm(&arguments),
        Command::Warm(arguments) => warm::command(&arguments),
        Command::Export(arguments) => export::export(&arguments),
        Command::Log(arguments) => log::log(&arguments),
        Command::Top(arguments) => top::top(&arguments),
        Command::Stats(arguments) => stats::stats(&arguments),
        Command::Fsck(arguments) => fsck::fsck(&arguments),
        Command::Demo(arguments) => demo::demo(&arguments),
    }
}
