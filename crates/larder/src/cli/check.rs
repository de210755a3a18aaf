//! `larder check`: every error of a config at once, what each `ttl` means to requests with cookies, every directory of a
//! store that could not be used, and what this machine would make of it. With `--connect` the servers of memcached, Redis and Valkey
//! are asked as well.
//!
//! A larder that runs goes on without such a directory, and says so; whoever checks a config wants to know before.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use larder_config::Config;
use larder_http::time::Clock;

use super::exit;
use super::output::{chain, complain, print_all, printable, say};
use crate::server::{Found, Promised, ServerError};

#[derive(Debug, clap::Args)]
pub(super) struct CheckArguments {
    /// The config file
    #[arg(value_name = "FILE", required_unless_present = "config", conflicts_with = "config")]
    file: Option<PathBuf>,
    /// The config file, as other commands take it
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Connect to every server of memcached, Redis and Valkey: what it is, and whether larder may do there what it needs
    #[arg(long)]
    connect: bool,
}

pub(super) fn check(arguments: &CheckArguments) -> ExitCode {
    let file = arguments.config.as_ref().or(arguments.file.as_ref());
    let file = file.expect("clap requires one of the two");
    match larder_config::load(file) {
        Ok(checked) => {
            checked.warnings.iter().for_each(say);
            let unusable = crate::wire::unusable_directories(&checked.config);
            if !unusable.is_empty() {
                for (store, error) in unusable {
                    say(format_args!(
                        "{}: error: stores.{store}: {}\n  hint: larder would run without it, and try again; answers would \
                         come from the origin",
                        file.display(),
                        chain(&error)
                    ));
                }
                return ExitCode::from(exit::CONFIG);
            }
            match crate::server::check(&checked, &Clock::default()) {
                Ok(Promised { descriptors, warnings }) => {
                    warnings.into_iter().for_each(|warning| say(format_args!("larder: warning: {warning}")));
                    let mut out: String = checked.notes.iter().map(|note| format!("{note}\n")).collect();
                    if arguments.connect
                        && let Err(code) = asked(file, &checked.config, &mut out)
                    {
                        return code;
                    }
                    out.push_str(&format!("{}: ok\n  {descriptors}\n", file.display()));
                    print_all(out.as_bytes())
                }
                Err(ServerError::Certificates(errors)) => {
                    say(errors);
                    ExitCode::from(exit::CONFIG)
                }
                Err(error) => {
                    complain(&error);
                    ExitCode::from(exit::FAILURE)
                }
            }
        }
        Err(errors) => {
            say(errors);
            ExitCode::from(exit::CONFIG)
        }
    }
}

/// Asks the servers that the config names. Adds a line for each to `out`.
///
/// # Errors
/// What the command ends with, since one of them cannot be used. All has been printed.
fn asked(file: &Path, config: &Config, out: &mut String) -> Result<(), ExitCode> {
    let servers = match crate::server::servers(config) {
        Ok(servers) => servers,
        Err(error) => {
            complain(&error);
            return Err(ExitCode::from(exit::FAILURE));
        }
    };
    let is_well = servers.iter().all(|found| found.problems.is_empty());
    for Found { server, is, problems, advice } in servers {
        // Some of it is in the words of the server.
        let told = |kind: &str, text: &str| {
            say(format_args!("{}: {kind}: {server}: {}", file.display(), printable(text)));
        };
        problems.iter().for_each(|problem| told("error", problem));
        advice.iter().for_each(|advice| told("warning", advice));
        is.iter().for_each(|is| out.push_str(&format!("{server}: {is}\n")));
    }
    if is_well {
        return Ok(());
    }
    // Whether it could be printed or not.
    print_all(out.as_bytes());
    Err(ExitCode::from(exit::FAILURE))
}
