//! `larder demo fragments`: a page of four fragments, the app that makes it, larder in front, load on both, and a table.
//!
//! In: how long, by how many clients, and whether to stay for a browser. Out: text on standard output; an error where one answer was not
//! the page of its visitor. The app puts the page together itself if no one in front of it can. larder announces that it reads ESI, so
//! to larder the same app sends a template. Its config names the origin, and nothing else.
//!
//! Three fragments are for everybody and live 1 s, 10 s and an hour; the fourth one is for one visitor alone. That one sets the pace through
//! larder: the app makes one for each page. The table shows who has made how many.

mod app;
mod fragment;
mod page;
mod table;

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::timeout;

use self::app::FragmentsApp;
use self::page::ExpectedFragments;
use self::table::Side;
use super::ending::EndWish;
use super::front::{END_TIME, front};
use super::load::Load;
use super::phase::phase;
use super::screen::Screen;
use super::{DemoEnd, DemoOptions};

/// What the load asks for.
const PATH: &str = "/";
/// How long the app takes for a fragment.
const RENDER_TIME: Duration = Duration::from_millis(100);

/// Runs the demo to its end. Builds its own runtimes: not to be called from within one.
///
/// # Errors
/// App or larder did not start, an answer was not what it should be, or standard output is gone.
pub fn run(options: &DemoOptions) -> anyhow::Result<DemoEnd> {
    show(options, RENDER_TIME, &mut Screen::stdout())
}

fn show<W: Write>(
    options: &DemoOptions,
    render_time: Duration,
    screen: &mut Screen<W>,
) -> anyhow::Result<DemoEnd> {
    let app = FragmentsApp::start(render_time).context("the demo app")?;
    let mut server = front(app.address(), "").context("the larder in front of it")?;
    let larder = server.addresses().first().copied().context("larder listens nowhere")?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("the load's runtime")?;
    runtime.block_on(async {
        let mut end = EndWish::listen()?;
        screen.say(&introduction(options, &app, (larder, render_time)))?;
        let ended = if let Some(sides) = end.or_ended(measure(options, &app, larder, screen)).await {
            let (alone, fronted) = sides?;
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

fn introduction(
    options: &DemoOptions,
    app: &FragmentsApp,
    (larder, render_time): (SocketAddr, Duration),
) -> String {
    let DemoOptions { seconds, clients, .. } = options;
    format!(
        "A page of four fragments, and larder in front of its app\n\n  \
         app     http://{}  {} ms a fragment, one at a time\n  \
         larder  http://{larder}  puts the page together, as the app says\n  \
         load    {clients} visitors ask for {PATH} again and again, {seconds} s each way\n\n",
        app.address(),
        render_time.as_millis(),
    )
}

fn invitation(app: &FragmentsApp, larder: SocketAddr, admin: Option<SocketAddr>) -> String {
    let admin = admin.map(|admin| format!("  admin   http://{admin}/stats\n")).unwrap_or_default();
    format!(
        "\nBoth go on. Open them side by side, reload, and look at the age of each box:\n\n  \
         app     http://{}/\n  larder  http://{larder}/\n{admin}\nCtrl-C ends.\n",
        app.address()
    )
}

/// The load at the app alone, then through larder.
async fn measure<W: Write>(
    options: &DemoOptions,
    app: &FragmentsApp,
    larder: SocketAddr,
    screen: &mut Screen<W>,
) -> anyhow::Result<(Side, Side)> {
    let alone = side("app alone", options, (app, app.address()), screen).await?;
    // Clients that gave up may have left a page half made: it belongs to neither load.
    timeout(END_TIME, app.idle()).await.context("the app does not come to rest")?;
    let fronted = side("through larder", options, (app, larder), screen).await?;
    Ok((alone, fronted))
}

async fn side<W: Write>(
    name: &str,
    options: &DemoOptions,
    (app, address): (&FragmentsApp, SocketAddr),
    screen: &mut Screen<W>,
) -> anyhow::Result<Side> {
    let (page, renders) = (Arc::new(ExpectedFragments::new()), || app.renders());
    let time = Duration::from_secs(options.seconds);
    let load = Load { address, path: PATH, page: &page, clients: options.clients, time, renders: &renders };
    let outcome = phase(name, load, screen).await?;
    Ok(Side { outcome, oldest: page.oldest() })
}

#[cfg(test)]
mod tests;
