//! `larder check`: every error of a config at once, what each `ttl` means to requests with cookies, every directory of a
//! store that could not be used, and what this machine would make of it.
//!
//! A larder that runs goes on without such a directory, and says so; whoever checks a config wants to know before.

use std::path::PathBuf;
use std::process::ExitCode;

use super::exit;
use super::output::{chain, complain, print_all, say};
use crate::server::Promised;

#[derive(Debug, clap::Args)]
pub(super) struct CheckArguments {
    /// The config file
    #[arg(value_name = "FILE", required_unless_present = "config", conflicts_with = "config")]
    file: Option<PathBuf>,
    /// The config file, as other commands take it
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
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
            match crate::server::check(&checked.config) {
                Ok(Promised { descriptors, warning }) => {
                    warning.into_iter().for_each(|warning| say(format_args!("larder: warning: {warning}")));
                    let mut out: String = checked.notes.iter().map(|note| format!("{note}\n")).collect();
                    out.push_str(&format!("{}: ok\n  {descriptors}\n", file.display()));
                    print_all(out.as_bytes())
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
