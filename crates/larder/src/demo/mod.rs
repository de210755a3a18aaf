//! `larder demo`: a slow app, larder in front of it, load on both, and a table of the difference.
//!
//! In: how long, by how many clients, and whether to stay for a browser. Out: text on standard output; an error where
//! anything was not as it should be, a wrong byte in one page included. The larder here is the one that
//! [`Server`] is everywhere, started from a config text; the app is served on a thread of its own, and the load runs on
//! the caller's. Nothing but loopback is used, on ports that are free.
//!
//! The load asks for one page, over and over: the hard case for the app, the case that micro-caching is for, and the
//! one whose every figure a reader can check by hand.

mod app;
mod load;
mod page;
mod prose;
mod screen;
mod table;

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use larder_http::time::Clock;
use larder_observe::Diagnostics;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use self::app::{App, RENDER_TIME};
use self::load::{Figures, Load, Outcome};
use self::screen::Screen;
use crate::server::Server;

/// How a demo runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemoOptions {
    /// Keep app and larder running after the load, until SIGINT or SIGTERM.
    pub stay: bool,
    /// How long each of the two loads lasts, in seconds.
    pub seconds: u64,
    /// Clients that ask at the same time.
    pub clients: usize,
}

/// What the load asks for.
const PATH: &str = "/";
/// How often progress is shown.
const TICK: Duration = Duration::from_millis(200);
/// How long what is left of a load may take to end.
const END_TIME: Duration = Duration::from_secs(2);

/// Runs the demo to its end. Builds its own runtimes: not to be called from within one.
///
/// # Errors
/// App or larder did not start, an answer was not what it should be, or standard output is gone.
pub fn run(options: &DemoOptions) -> anyhow::Result<()> {
    show(options, &mut Screen::stdout())
}

fn show<W: Write>(options: &DemoOptions, screen: &mut Screen<W>) -> anyhow::Result<()> {
    let app = App::start().context("the demo app")?;
    let mut server = front(app.address()).context("the larder in front of it")?;
    let larder = server.addresses().first().copied().context("larder listens nowhere")?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("the load's runtime")?;
    runtime.block_on(async {
        screen.say(&introduction(options, &app, larder))?;
        let (alone, fronted) = measure(options, &app, larder, screen).await?;
        let (table, verdict) = (table::table(&alone, &fronted), table::verdict(&alone, &fronted));
        screen.say(&format!("\n{table}\n{verdict}\n"))?;
        if options.stay {
            let mut end = EndWish::listen()?;
            screen.say(&invitation(&app, larder, server.admin_address()))?;
            end.wished().await;
        }
        server.drain(END_TIME).await;
        Ok(())
    })
}

/// Starts a larder that keeps every page of `app` for a second, and its assets for an hour.
fn front(app: SocketAddr) -> anyhow::Result<Server> {
    let config = format!(
        r#"
        listen = ["127.0.0.1:0"]
        admin = "127.0.0.1:0"

        [origins.demo]
        servers = ["http://{app}"]

        [[site]]
        origin = "demo"

        [[site.rule]]
        path = "/assets/*"
        ttl = "1h"

        [[site.rule]]
        ttl = "1s"
        "#
    );
    let checked = larder_config::parse(&config, "demo", Path::new(""))?;
    let clock = Clock::default();
    let diagnostics = Diagnostics::stderr(clock.clone())?;
    Ok(Server::start(checked, clock, diagnostics)?)
}

fn introduction(options: &DemoOptions, app: &App, larder: SocketAddr) -> String {
    let DemoOptions { seconds, clients, .. } = options;
    let kilobytes = app.page(PATH).map_or(0, |page| (page.page_bytes() + 500) / 1000);
    format!(
        "A slow app, and larder in front of it\n\n  \
         app     http://{}  {} ms a page, one at a time, {kilobytes} kB\n  \
         larder  http://{larder}  keeps a page for 1 s\n  \
         load    {clients} clients ask for {PATH} again and again, {seconds} s each way\n\n",
        app.address(),
        RENDER_TIME.as_millis(),
    )
}

fn invitation(app: &App, larder: SocketAddr, admin: Option<SocketAddr>) -> String {
    let admin = admin.map(|admin| format!("  admin   http://{admin}/stats\n")).unwrap_or_default();
    format!(
        "\nBoth go on. Open them side by side, reload, and look at the stamp on the page:\n\n  \
         app     http://{}/\n  larder  http://{larder}/\n{admin}\nCtrl-C ends.\n",
        app.address()
    )
}

/// The load at the app alone, then through larder.
async fn measure<W: Write>(
    options: &DemoOptions,
    app: &App,
    larder: SocketAddr,
    screen: &mut Screen<W>,
) -> anyhow::Result<(Outcome, Outcome)> {
    let (page, renders) = (app.page(PATH).context("the app has no front page")?, || app.renders());
    let time = Duration::from_secs(options.seconds);
    let clients = options.clients;
    let load = Load { address: app.address(), path: PATH, page, clients, time, renders: &renders };
    let alone = phase("app alone", load, screen).await?;
    // Clients that gave up may have left a page half made: it belongs to neither load.
    timeout(END_TIME, app.idle()).await.context("the app does not come to rest")?;
    let fronted = phase("through larder", Load { address: larder, ..load }, screen).await?;
    Ok((alone, fronted))
}

/// One load, with its progress on the screen.
async fn phase<W: Write>(name: &str, load: Load<'_>, screen: &mut Screen<W>) -> anyhow::Result<Outcome> {
    let (figures, began) = (Figures::new(load.time), Instant::now());
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut driving = std::pin::pin!(load::drive(load, &figures));
    let outcome = loop {
        tokio::select! {
            outcome = &mut driving => break outcome,
            _ = ticks.tick() => screen.progress(name, began.elapsed(), load.time, figures.answers())?,
        }
    };
    // The line of progress is left as it is, and what went wrong stands below it.
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            screen.end_line()?;
            return Err(anyhow::Error::new(error).context(format!("{name}: the load failed")));
        }
    };
    screen.done(name, load.time, outcome.answers, outcome.rate())?;
    ensure!(outcome.answers > 0, "{name}: no page came within {} s", load.time.as_secs());
    Ok(outcome)
}

/// SIGINT and SIGTERM, taken over from their default action.
struct EndWish {
    interrupt: Signal,
    terminate: Signal,
}

impl EndWish {
    fn listen() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Resolves at the first of them.
    async fn wished(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demo_ends_by_itself_and_says_what_larder_made_of_it() {
        let mut out = Vec::new();
        let options = DemoOptions { stay: false, seconds: 2, clients: 2 };
        show(&options, &mut Screen::new(&mut out, false)).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("\nlarder: ") && text.ends_with(" % fewer renders\n"), "{text}");
    }
}
