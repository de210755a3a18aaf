//! `larder run`: start, say where, and listen for signals until the end.

use std::path::PathBuf;
use std::process::ExitCode;

use larder_config::{Checked, Errors, Flags};
use larder_http::time::Clock;
use larder_observe::Diagnostics;

use super::signals::{Signals, Wish};
use super::{complain, exit};
use crate::server::Server;

#[derive(Debug, clap::Args)]
pub(super) struct RunArguments {
    /// The app to accelerate: http://HOST:PORT, https://HOST, or unix:/path.sock
    #[arg(long, value_name = "URL", required_unless_present = "config", conflicts_with = "config")]
    origin: Option<String>,
    /// A config file
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
}

impl RunArguments {
    fn load(&self) -> Result<Checked, Errors> {
        let flags = Flags {
            listen: self.listen.clone(),
            admin: self.admin.clone(),
            memory: self.memory.clone(),
            workers: self.workers.clone(),
        };
        match (&self.config, &self.origin) {
            (Some(path), _) => larder_config::load_with(path, &flags),
            (None, origin) => larder_config::accelerate(origin.as_deref().unwrap_or_default(), &flags),
        }
    }
}

pub(super) fn run(arguments: &RunArguments) -> ExitCode {
    let checked = match arguments.load() {
        Ok(checked) => checked,
        Err(errors) => {
            eprintln!("{errors}");
            return ExitCode::from(exit::CONFIG);
        }
    };
    checked.warnings.iter().for_each(|warning| eprintln!("{warning}"));
    let clock = Clock::default();
    let ran = Diagnostics::stderr(clock.clone()).map_err(Into::into).and_then(|diagnostics| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let result = runtime.block_on(serve(arguments, checked, clock, diagnostics.clone()));
        // A look-up of a name may be stuck in the system's resolver: the end does not wait for it.
        runtime.shutdown_background();
        diagnostics.flush(std::time::Duration::from_secs(1));
        result
    });
    match ran {
        Ok(code) => code,
        Err(error) => {
            complain(&*error);
            ExitCode::from(exit::FAILURE)
        }
    }
}

type AnyError = Box<dyn std::error::Error>;

/// How often stores are looked after, and how soon the operator hears of a disk that fails.
const STORES_EVERY: std::time::Duration = std::time::Duration::from_secs(1);

async fn serve(
    arguments: &RunArguments,
    checked: Checked,
    clock: Clock,
    diagnostics: Diagnostics,
) -> Result<ExitCode, AnyError> {
    // Before the sockets: a signal that comes while starting must not kill what is half there.
    let mut signals = Signals::listen()?;
    let mut server = Server::start(checked, clock, diagnostics)?;
    greet(&server);
    tokio::spawn(warn_of_unresolved(&server));
    let mut tend_stores = tokio::time::interval(STORES_EVERY);
    loop {
        let wish = tokio::select! {
            wish = signals.next() => wish,
            _ = tend_stores.tick() => {
                server.tend_stores();
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
        eprintln!("larder: ending: {running} connections finish within {} s", limit.as_secs());
    }
    tokio::select! {
        left = server.drain(limit) => {
            if left > 0 {
                eprintln!("larder: warning: {left} connections were still open and are cut");
            }
            Ok(ExitCode::SUCCESS)
        }
        () = second_end(&mut signals) => {
            eprintln!("larder: ended at once");
            Ok(ExitCode::from(exit::FAILURE))
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
    if arguments.config.is_none() {
        eprintln!("larder: there is no config file to reload");
        return;
    }
    let checked = match arguments.load() {
        Ok(checked) => checked,
        Err(errors) => {
            server.reload_refused();
            eprintln!("{errors}\nlarder: error: the config has errors; the old one stays in force");
            return;
        }
    };
    checked.warnings.iter().for_each(|warning| eprintln!("{warning}"));
    match server.reload(checked) {
        Ok(postponed) => {
            postponed.notes.iter().for_each(|note| eprintln!("larder: warning: needs a restart: {note}"));
            eprintln!("larder: reloaded");
        }
        Err(error) => {
            complain(&error);
            eprintln!("larder: the old config stays in force");
        }
    }
}

/// Says where it listens, what it fronts, where the admin is.
fn greet(server: &Server) {
    let list = |items: Vec<String>| items.join(", ");
    let addresses = list(server.addresses().iter().map(|address| format!("http://{address}")).collect());
    let config = server.config();
    println!("larder {} listens on {addresses}", env!("CARGO_PKG_VERSION"));
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
        println!("  {hosts} -> {}", fronts.join(", then "));
    }
    match server.admin_address() {
        Some(address) => println!("  admin: http://{address}/"),
        None => println!("  admin: off"),
    }
    println!("  {} workers; Ctrl-C ends", server.workers());
}
