//! `larder demo` and `larder demo fragments`.

use std::process::ExitCode;

use super::exit;
use super::output::say;
use crate::demo::{self, DemoEnd, DemoOptions};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct DemoArguments {
    #[command(subcommand)]
    which: Option<WhichDemo>,
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

#[derive(Debug, clap::Subcommand)]
enum WhichDemo {
    /// A page of four fragments with lives of their own, put together by its app and by larder
    Fragments(FragmentsDemo),
}

#[derive(Debug, clap::Args)]
struct FragmentsDemo {
    /// Keep app and larder running after the load, for a browser, until Ctrl-C
    #[arg(long)]
    stay: bool,
    /// How long the load lasts, once without and once with larder
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=20))]
    seconds: u64,
    /// Visitors that ask at the same time
    // With more of them, a fragment that lives 1 s would wait longer than that for its turn in the app.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=6))]
    clients: u16,
}

pub(super) fn demo(arguments: &DemoArguments) -> ExitCode {
    let ended = match &arguments.which {
        None => demo::run(&options(arguments.stay, arguments.seconds, arguments.clients)),
        Some(WhichDemo::Fragments(FragmentsDemo { stay, seconds, clients })) => {
            demo::fragments::run(&options(*stay, *seconds, *clients))
        }
    };
    match ended {
        Ok(DemoEnd::Whole) => ExitCode::from(exit::SUCCESS),
        Ok(DemoEnd::Interrupted) => ExitCode::from(exit::INTERRUPTED),
        Err(error) => {
            say(format_args!("larder: error: {error:#}"));
            ExitCode::from(exit::FAILURE)
        }
    }
}

fn options(stay: bool, seconds: u64, clients: u16) -> DemoOptions {
    DemoOptions { stay, seconds, clients: clients.into() }
}
