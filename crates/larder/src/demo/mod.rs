//! `larder demo`: a slow app, larder in front of it, load on both, and a table of the difference. `larder demo fragments` is a demo of its
//! own ([`fragments`]).
//!
//! In: how long, by how many clients, and whether to stay for a browser. Out: text on standard output; an error where
//! anything was not as it should be, a wrong byte in one page included. The larder here is the one that
//! [`Server`](crate::server::Server) is everywhere, started from a config text; the app is served on a thread of its own, and the load runs on
//! the caller's. Nothing but loopback is used, on ports that are free.
//!
//! The load asks for one page, over and over: the hard case for the app, the case that micro-caching is for, and the
//! one whose every figure a reader can check by hand.

mod app;
pub mod busy;
mod connection;
mod ending;
mod expected;
pub mod fragments;
mod front;
mod hosted;
mod load;
mod page;
mod phase;
mod prose;
mod screen;
mod table;

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::timeout;

use self::app::{App, RENDER_TIME};
use self::ending::EndWish;
use self::front::{END_TIME, front};
use self::load::{Load, Outcome};
use self::phase::phase;
use self::screen::Screen;

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

/// How a demo ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemoEnd {
    /// Both loads are over, and their table was printed.
    Whole,
    /// SIGINT or SIGTERM came before.
    Interrupted,
}

/// What the load asks for.
const PATH: &str = "/";
/// larder keeps every page for a second, and the assets for an hour.
const RULES: &str = r#"
        [[site.rule]]
        path = "/assets/*"
        ttl = "1h"

        [[site.rule]]
        ttl = "1s"
"#;

/// Runs the demo to its end. Builds its own runtimes: not to be called from within one.
///
/// # Errors
/// App or larder did not start, an answer was not what it should be, or standard output is gone.
pub fn run(options: &DemoOptions) -> anyhow::Result<DemoEnd> {
    show(options, &mut Screen::stdout())
}

fn show<W: Write>(options: &DemoOptions, screen: &mut Screen<W>) -> anyhow::Result<DemoEnd> {
    let app = App::start().context("the demo app")?;
    let mut server = front(app.address(), RULES).context("the larder in front of it")?;
    let larder = server.addresses().first().copied().context("larder listens nowhere")?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("the load's runtime")?;
    runtime.block_on(async {
        let mut end = EndWish::listen()?;
        screen.say(&introduction(options, &app, larder))?;
        let ended = if let Some(outcomes) = end.or_ended(measure(options, &app, larder, screen)).await {
            let (alone, fronted) = outcomes?;
            let (table, verdict) = (table::table(&alone, &fronted), table::verdict(&alone, &fronted));
            screen.say(&format!("\n{table}\n{verdict}\n"))?;
            if options.stay {
                screen.say(&invitation(&app, larder, server.admin_address()))?;
                end.wished().await;
            }
            DemoEnd::Whole
        } else {
            screen.ended()?;
            DemoEnd::Interrupted
        };
        server.drain(END_TIME).await;
        Ok(ended)
    })
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
    let (page, renders) = (app.page(PATH).context("the app has no front page")?, || vec![app.renders()]);
    let time = Duration::from_secs(options.seconds);
    let clients = options.clients;
    let load = |address| Load { address, path: PATH, page, clients, time, renders: &renders };
    let alone = phase("app alone", load(app.address()), screen).await?;
    // Clients that gave up may have left a page half made: it belongs to neither load.
    timeout(END_TIME, app.idle()).await.context("the app does not come to rest")?;
    let fronted = phase("through larder", load(larder), screen).await?;
    Ok((alone, fronted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demo_ends_by_itself_and_says_what_larder_made_of_it() {
        let mut out = Vec::new();
        let options = DemoOptions { stay: false, seconds: 2, clients: 2 };
        assert_eq!(show(&options, &mut Screen::new(&mut out, false)).unwrap(), DemoEnd::Whole);
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("\nlarder: ") && text.ends_with(" % fewer renders\n"), "{text}");
    }
}
