//! `larder check`: every error of a config at once.

use std::path::PathBuf;
use std::process::ExitCode;

use super::exit;

#[derive(Debug, clap::Args)]
pub(super) struct CheckArguments {
    /// The config file
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
}

pub(super) fn check(arguments: &CheckArguments) -> ExitCode {
    match larder_config::load(&arguments.config) {
        Ok(checked) => {
            checked.warnings.iter().for_each(|warning| eprintln!("{warning}"));
            println!("{}: ok", arguments.config.display());
            ExitCode::SUCCESS
        }
        Err(errors) => {
            eprintln!("{errors}");
            ExitCode::from(exit::CONFIG)
        }
    }
}
