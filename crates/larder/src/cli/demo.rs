//! `larder demo`.

use std::process::ExitCode;

use super::exit;
use super::output::say;
use crate::demo::DemoOptions;

#[derive(Debug, clap::Args)]
pub(super) struct DemoArguments {
    /// Keep app and larder running after the load, for a browser, until Ctrl-C
    #[arg(long)]
    stay: bool,
    /// How long the load lasts, once without and once with larder
    #[arg(long, value_name = "SECONDS", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=20))]
    seconds: u64,
    /// Clients that ask at the same time
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=256))]
    clients: u16,
}

pub(super) fn demo(arguments: &DemoArguments) -> ExitCode {
    let DemoArguments { stay, seconds, clients } = *arguments;
    match crate::demo::run(&DemoOptions { stay, seconds, clients: clients.into() }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(format_args!("larder: error: {error:#}"));
            ExitCode::from(exit::FAILURE)
        }
    }
}
