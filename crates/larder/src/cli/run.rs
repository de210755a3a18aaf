//! `larder run`: start, say where, and listen for signals until the end.
//!
//! All that is said goes by [`Diagnostics`], the greeting too: an output that nobody takes stops neither start nor signals.

mod port;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use larder_config::{Checked, Errors, Flags};
use larder_http::message::Scheme;
use larder_http::time::Clock;
use larder_observe::{Diagnostics, Level};

use super::exit;
use super::output::{chain, complain};
use super::signals::{Signals, Wish};
use super::table::counted;
use crate::server::{Server, ServerError};

/// A file, and not the URL of an app.
fn file(text: &str) -> Result<PathBuf, String> {
    match text.contains("://") || text.starts_with("unix:") {
        true => Err(format!("expected a config file; for an app: --origin {text}")),
        false => Ok(text.into()),
    }
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "larder run --origin <URL> [--domain <NAME> --agree-terms] [OPTIONS]\n       larder run <FILE> [OPTIONS]"
)]
pub(super) struct RunArguments {
    /// The app to accelerate: http://HOST:PORT, https://HOST, or unix:/path.sock
    #[arg(long, value_name = "URL", required_unless_present_any = ["config", "file"], conflicts_with_all = ["config", "file"])]
    origin: Option<String>,
    /// A config file, in place of --origin
    #[arg(value_name = "FILE", conflicts_with = "config", value_parser = file)]
    file: Option<PathBuf>,
    /// The config file, as other commands take it
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where to listen [default: 127.0.0.1:8080]; may be given several times
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<String>,
    /// Where the admin listens [default: 127.0.0.1:8081]
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<String>,
    /// How much memory the cache may use [default: 256MiB]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// How many workers [default: the CPUs that this process may use]
    #[arg(long, value_name = "N")]
    workers: Option<String>,
    /// A domain to serve over HTTPS on ports 80 and 443, with a certificate that larder orders; may be given several times
    #[arg(long, value_name = "NAME", requires = "origin", conflicts_with = "listen")]
    domain: Vec<String>,
    /// You have read the terms of Let's Encrypt, and agree
    #[arg(long, requires = "domain")]
    agree_terms: bool,
    /// Pass WebSockets on to the app
    #[arg(long, conflicts_with = "config")]
    websocket: bool,
}

impl RunArguments {
    fn file(&self) -> Option<&PathBuf> {
        self.config.as_ref().or(self.file.as_ref())
    }

    fn load(&self) -> Result<Checked, Errors> {
        let flags = Flags {
            listen: self.listen.clone(),
            admin: self.admin.clone(),
            memory: self.memory.clone(),
            workers: self.workers.clone(),
            domains: self.domain.clone(),
            agrees: self.agree_terms,
            websocket: self.websocket,
        };
        match (self.file(), &self.origin) {
            (Some(path), _) => larder_config::load_with(path, &flags),
            (None, origin) => larder_config::accelerate(origin.as_deref().unwrap_or_default(), &flags),
        }
    }
}

pub(super) fn run(arguments: &RunArguments) -> ExitCode {
    let clock = Clock::default();
    let diagnostics = match Diagnostics::stderr(clock.clone()) {
        Ok(diagnostics) => diagnostics,
        Err(error) => {
            complain(&error);
            return ExitCode::from(exit::FAILURE);
        }
    };
    diagnostics.take_panics();
    let code = start(arguments, clock, &diagnostics);
    diagnostics.flush(LAST_WORDS);
    ExitCode::from(code)
}

/// The exit code.
fn start(arguments: &RunArguments, clock: Clock, diagnostics: &Diagnostics) -> u8 {
    let checked = match arguments.load() {
        Ok(checked) => checked,
        Err(errors) => {
            diagnostics.print(errors);
            return exit::CONFIG;
        }
    };
    checked.warnings.iter().for_each(|warning| diagnostics.print(warning));
    let ran = crate::server::runtime::build().map_err(Into::into);
    let ran = ran.and_then(|runtime| {
        let result = runtime.block_on(serve(arguments, checked, clock, diagnostics.clone()));
        // A look-up of a name may be stuck in the system's resolver: the end does not wait for it.
        runtime.shutdown_background();
        result
    });
    ran.unwrap_or_else(|error| {
        diagnostics.tell(Level::Error, chain(&*error));
        error.downcast_ref().and_then(port::hint).iter().for_each(|hint| diagnostics.print(hint));
        exit::FAILURE
    })
}

type AnyError = Box<dyn std::error::Error>;

/// How often stores are looked after, and how soon the operator hears of a disk that fails.
const STORES_EVERY: Duration = Duration::from_secs(1);

/// How long the greeting, and what is said last, may take to be written.
const LAST_WORDS: Duration = Duration::from_secs(1);

async fn serve(
    arguments: &RunArguments,
    checked: Checked,
    clock: Clock,
    diagnostics: Diagnostics,
) -> Result<u8, AnyError> {
    // Before the sockets: a signal that comes while starting must not kill what is half there.
    let mut signals = Signals::listen()?;
    let mut server = match Server::start(checked, clock.clone(), diagnostics.clone()) {
        Ok(server) => server,
        Err(ServerError::Certificates(errors)) => {
            diagnostics.print(errors);
            return Ok(exit::CONFIG);
        }
        Err(error) => return Err(error.into()),
    };
    greet(&server, clock);
    tokio::spawn(warn_of_unresolved(&server));
    let mut tend_stores = tokio::time::interval(STORES_EVERY);
    loop {
        let wish = tokio::select! {
            wish = signals.next() => wish,
            _ = tend_stores.tick() => {
                server.tend_stores();
                server.tend_certificates();
                continue;
            }
        };
        match wish {
            Wish::End => break,
            Wish::ReopenLogs => server.reopen_logs(),
            Wish::Reload => reload(arguments, &mut server),
        }
    }
    let limit = server.config().drain;
    let running = server.insight().connections();
    if running > 0 {
        let running = counted(running, "connection finishes", "connections finish");
        let ending = format_args!("ending: {running} within {} s", limit.as_secs());
        diagnostics.tell(Level::Info, ending);
    }
    tokio::select! {
        left = server.drain(limit) => {
            if left > 0 {
                let were = ("connection was still open and is cut", "connections were still open and are cut");
                diagnostics.tell(Level::Warning, counted(left as u64, were.0, were.1));
            }
            Ok(exit::SUCCESS)
        }
        () = second_end(&mut signals) => {
            diagnostics.tell(Level::Info, "ended at once");
            Ok(exit::FAILURE)
        }
    }
}

/// Resolves every origin's names once. Signals are heeded meanwhile: a resolver may take its time.
fn warn_of_unresolved(server: &Server) -> impl Future<Output = ()> + use<> {
    let (unresolved, diagnostics) = (server.unresolved_origins(), server.diagnostics().clone());
    async move {
        for (origin, why) in unresolved.await {
            let message = format_args!("origin {origin} does not resolve ({why}); answers 502 until it does");
            diagnostics.warn("unresolved-origin", &origin, message);
        }
    }
}

async fn second_end(signals: &mut Signals) {
    while signals.next().await != Wish::End {}
}

fn reload(arguments: &RunArguments, server: &mut Server) {
    let diagnostics = server.diagnostics().clone();
    if arguments.file().is_none() {
        diagnostics.tell(Level::Info, "there is no config file to reload");
        return;
    }
    let checked = match arguments.load() {
        Ok(checked) => checked,
        Err(errors) => {
            server.reload_refused(&errors);
            diagnostics.print(errors);
            diagnostics.tell(Level::Error, "the config has errors; the old one stays in force");
            return;
        }
    };
    checked.warnings.iter().for_each(|warning| diagnostics.print(warning));
    match server.reload(checked) {
        Ok(postponed) => {
            for note in &postponed.notes {
                diagnostics.tell(Level::Warning, format_args!("needs a restart: {note}"));
            }
            diagnostics.tell(Level::Info, "reloaded");
        }
        Err(error) => {
            diagnostics.tell(Level::Error, chain(&error));
            port::hint(&error).iter().for_each(|hint| diagnostics.print(hint));
            diagnostics.tell(Level::Info, "the old config stays in force");
        }
    }
}

/// Prints the greeting. It is waited for, since lines of the log may follow it, but not for long.
fn greet(server: &Server, clock: Clock) {
    match Diagnostics::to(clock, std::io::stdout()) {
        Ok(stdout) => {
            stdout.print(greeting(server));
            stdout.flush(LAST_WORDS);
        }
        Err(error) => server.diagnostics().tell(Level::Warning, chain(&error)),
    }
}

/// Where it listens, what it fronts, where the admin is.
fn greeting(server: &Server) -> String {
    let list = |items: Vec<String>| items.join(", ");
    let told = |(scheme, address, takes): &(Scheme, SocketAddr, Option<&str>)| match takes {
        Some(takes) => format!("{}://{address} ({takes})", scheme.as_str()),
        None => format!("{}://{address}", scheme.as_str()),
    };
    let addresses = list(server.listeners().iter().map(told).collect());
    let config = server.config();
    let mut lines = vec![format!("larder {} listens on {addresses}", env!("CARGO_PKG_VERSION"))];
    for site in &config.sites {
        let hosts = match &site.hosts[..] {
            [] => "every host".to_owned(),
            hosts => list(hosts.iter().map(ToString::to_string).collect()),
        };
        let origin = site.origin.as_ref().and_then(|name| config.origin(name));
        let mut fronts = Vec::new();
        if let Some(root) = &site.root {
            fronts.push(format!("files in {}", root.0.display()));
        }
        if let Some(origin) = origin {
            fronts.push(list(origin.servers.iter().map(ToString::to_string).collect()));
        }
        lines.push(format!("  {hosts} -> {}", fronts.join(", then ")));
    }
    lines.push(match server.admin_address() {
        Some(address) => format!("  admin: http://{address}/"),
        None => "  admin: off".to_owned(),
    });
    lines.push(format!("  {}", server.descriptors()));
    lines.push(format!("  {}; Ctrl-C ends", counted(server.workers() as u64, "worker", "workers")));
    lines.join("\n")
}
