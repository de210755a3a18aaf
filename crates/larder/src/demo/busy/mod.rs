//! `larder demo --busy`: a shop with the usual mistakes, larder in front of it, load on both, and the address of the dashboard.
//!
//! In: a rate, where the admin should be, and how long. Out: text on standard output; an error where shop or larder did not start. Shop,
//! larder and load are one process, on loopback alone, until the time is over or SIGINT or SIGTERM comes.
//! Deliberately absent: a result of its own. All figures are those that larder shows.

mod chance;
mod crowd;
mod shelves;
mod shop;
mod tide;
mod visits;

use std::convert::Infallible;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use larder_listen::ListenError;
use tokio::time::timeout;

use self::crowd::Crowd;
use self::shop::{Filler, ServerHealth, ShopServer};
use super::ending::EndWish;
use super::front::{END_TIME, started};
use super::load::LoadError;
use super::screen::Screen;
use super::table::grouped;
use crate::server::{Server, ServerError};

/// How a busy demo runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyOptions {
    /// Requests per second at a usual moment.
    pub rate: u32,
    /// Where the admin listens; without it on port 8081, else on a free one.
    pub admin: Option<SocketAddr>,
    /// For how long, in seconds; without it until SIGINT or SIGTERM.
    pub seconds: Option<u64>,
}

/// Between two looks after the stores.
const TEND_EVERY: Duration = Duration::from_secs(1);

/// larder's config, but for addresses.
const CONFIG: &str = include_str!("shop.toml");
/// Where the admin is looked for when nothing is said.
const ADMIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8081);

/// Runs the demo to its end. Builds its own runtimes: not to be called from within one.
///
/// # Errors
/// Shop or larder did not start, no connection to larder came about, or standard output is gone.
pub fn run(options: &BusyOptions) -> anyhow::Result<()> {
    show(options, &mut Screen::stdout())
}

fn show<W: Write>(options: &BusyOptions, screen: &mut Screen<W>) -> anyhow::Result<()> {
    let filler = Arc::new(Filler::new());
    let well = ShopServer::start(ServerHealth::Well, &filler).context("the demo shop")?;
    let weak = ShopServer::start(ServerHealth::Weak, &filler).context("the demo shop")?;
    let mut server = front((&well, &weak), options.admin, ADMIN).context("the larder in front of it")?;
    let larder = server.addresses().first().copied().context("larder listens nowhere")?;
    let admin = server.admin_address().context("larder has no admin address")?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("the load's runtime")?;
    runtime.block_on(async {
        let mut end = EndWish::listen()?;
        screen.say(&introduction(options, larder, admin))?;
        let crowd = Crowd::new(larder, options.rate);
        let load = async {
            tokio::select! {
                failed = visit(&crowd, options.seconds) => failed,
                never = tend(&server) => match never {},
            }
        };
        let failed = end.or_ended(load).await.flatten();
        server.drain(END_TIME).await;
        if let Some(error) = failed {
            return Err(anyhow::Error::new(error).context("the load failed"));
        }
        screen.say(&format!("\nEnded after {} answers.\n", grouped(crowd.answers())))?;
        Ok(())
    })
}

/// Looks after the stores each second, as `larder run` does.
async fn tend(server: &Server) -> Infallible {
    let mut seconds = tokio::time::interval(TEND_EVERY);
    loop {
        seconds.tick().await;
        server.tend_stores();
    }
}

/// The load, for its time. Gives back what ended it before.
async fn visit(crowd: &Crowd, seconds: Option<u64>) -> Option<LoadError> {
    match seconds {
        Some(seconds) => timeout(Duration::from_secs(seconds), crowd.visit()).await.ok(),
        None => Some(crowd.visit().await),
    }
}

/// Starts larder with its admin at `asked`. Where nothing was asked, that is `usual`, or a free port if that one is taken.
fn front(
    shop: (&ShopServer, &ShopServer),
    asked: Option<SocketAddr>,
    usual: SocketAddr,
) -> anyhow::Result<Server> {
    let at = |admin: SocketAddr| started(&config(shop, admin));
    match asked {
        Some(admin) => at(admin),
        None => at(usual).or_else(|error| match error.downcast_ref() {
            Some(ServerError::Listen(ListenError::InUse(_))) => at((usual.ip(), 0).into()),
            _ => Err(error),
        }),
    }
}

fn config((well, weak): (&ShopServer, &ShopServer), admin: SocketAddr) -> String {
    CONFIG
        .replace("ADMIN", &admin.to_string())
        .replace("WELL", &well.address().to_string())
        .replace("WEAK", &weak.address().to_string())
}

fn introduction(options: &BusyOptions, larder: SocketAddr, admin: SocketAddr) -> String {
    let end = match options.seconds {
        Some(seconds) => format!("It ends after {seconds} s, or by Ctrl-C."),
        None => "Ctrl-C ends.".to_owned(),
    };
    format!(
        "A shop with the usual mistakes, larder in front of it, and load\n\n  \
         shop       http://{larder}/\n  \
         dashboard  http://{admin}/\n  \
         load       about {} requests/s in slow waves; a sale of 20 s each 3 minutes\n\n\
         On the first page, look at the sentence on top: what costs the most, and where.\n\
         Its link leads to \"Why\", where each mistake of the shop has a line of its own.\n\n  \
         larder top --admin {admin}\n  \
         larder log --admin {admin}\n\n{end}\n",
        grouped(options.rate.into()),
    )
}

#[cfg(test)]
mod tests;
