//! `larder demo`, `larder demo --busy` and `larder demo fragments`.

use std::net::SocketAddr;
use std::process::ExitCode;

use super::exit;
use super::output::say;
use crate::demo::busy::{self, BusyOptions};
use crate::demo::{self, DemoEnd, DemoOptions};

/// How long each load of the plain demo lasts where nothing is said, and at most, in seconds.
const SECONDS: u64 = 8;
const SECONDS_MAX: u64 = 20;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct DemoArguments {
    #[command(subcommand)]
    which: Option<WhichDemo>,
    /// A shop with the usual mistakes and load on it, for a look at the dashboard, until Ctrl-C
    #[arg(long, conflicts_with_all = ["stay", "clients"])]
    busy: bool,
    /// Keep app and larder running after the load, for a browser, until Ctrl-C
    #[arg(long)]
    stay: bool,
    /// How long the load lasts, once without and once with larder [default: 8, 20 at most]; with --busy when it ends
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: Option<u64>,
    /// Clients that ask at the same time
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=256))]
    clients: u16,
    /// With --busy: requests per second at a usual moment
    #[arg(long, value_name = "N", default_value_t = 200, requires = "busy", value_parser = clap::value_parser!(u32).range(1..=5000))]
    rate: u32,
    /// With --busy: where the admin listens [default: 127.0.0.1:8081, or a free port where that is taken]
    #[arg(long, value_name = "ADDRESS", requires = "busy")]
    admin: Option<SocketAddr>,
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
    let DemoArguments { which, busy, stay, seconds, clients, rate, admin } = arguments;
    let ended = match which {
        None if *busy => {
            busy::run(&BusyOptions { rate: *rate, admin: *admin, seconds: *seconds }).map(|()| DemoEnd::Whole)
        }
        None if seconds.is_some_and(|seconds| seconds > SECONDS_MAX) => {
            say(format_args!(
                "larder: error: each load lasts {SECONDS_MAX} s at most; with --busy as long as you like"
            ));
            return ExitCode::from(exit::USAGE);
        }
        None => demo::run(&options(*stay, seconds.unwrap_or(SECONDS), *clients)),
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
