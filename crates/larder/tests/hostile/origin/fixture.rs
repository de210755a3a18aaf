//! A larder before a raw origin, its clients, and its gauges.
//!
//! In: scripts and lines of config. Out: what each kind of client got, and whether everything is back to nothing once
//! they are gone. Time limits towards the origin are a few hundred milliseconds here, so that a silent one ends soon.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use larder::server::Server;
use larder_http::time::Clock;
use larder_observe::Diagnostics;
use larder_testkit::client::{Connection, Progress, Request, Response, exchange_http2};

use crate::hostile::origin::raw::{CLEAN, EVIL, RawOrigin, Step};
use crate::hostile::stage::{Outcome, same};

/// The longest wait for anything single.
const LIMIT: Duration = Duration::from_secs(10);
pub const HOST: &str = "a.test";

/// What has to be nothing where nothing happens.
const GAUGES: [&str; 5] = [
    "larder_flights",
    "larder_flights_waiting",
    "larder_origin_in_flight{origin=\"app\"}",
    "larder_origin_connections{origin=\"app\"}",
    "larder_connections_open",
];

pub struct Fixture {
    pub origin: RawOrigin,
    addr: SocketAddr,
    server: Server,
}

/// A client by the way in which it learns where a response ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Content-Length or chunks.
    Http11,
    /// Content-Length or the end of the connection.
    Http10,
    /// END_STREAM.
    Http2,
}

impl Fixture {
    /// Starts both. `top` are lines at the top of the config or tables, `site` lines of its one site.
    pub async fn new(scripts: Vec<Vec<Step>>, top: &str, site: &str) -> Result<Self, String> {
        let limits = "first_byte_timeout = \"500ms\"\nbetween_bytes_timeout = \"500ms\"";
        Self::start(scripts, top, limits, site).await
    }

    /// The same, with the limits that larder has by default towards an origin.
    pub async fn patient(scripts: Vec<Vec<Step>>, top: &str) -> Result<Self, String> {
        Self::start(scripts, top, "", "").await
    }

    async fn start(scripts: Vec<Vec<Step>>, top: &str, limits: &str, site: &str) -> Result<Self, String> {
        let origin = RawOrigin::start(scripts).await?;
        let config = format!(
            "listen = [\"127.0.0.1:0\"]\nadmin = false\nworkers = 1\n{top}\n\
             [origins.app]\nservers = [\"{}\"]\n{limits}\nidle = \"300ms\"\n\
             [[site]]\norigin = \"app\"\nhead = \"pass\"\n{site}\n",
            origin.url()
        );
        let checked = larder_config::parse(&config, "case", Path::new("."));
        let checked = checked.map_err(|errors| errors.to_string())?;
        let server = Server::start(checked, Clock::default(), Diagnostics::silent());
        let server = server.map_err(|error| error.to_string())?;
        let addr = *server.addresses().first().ok_or("no listener")?;
        Ok(Self { origin, addr, server })
    }

    /// One exchange on a connection of its own. The text of an error says that no head came.
    pub async fn ask(&self, kind: Kind, request: &Request) -> Result<Response, String> {
        let mut request = request.clone();
        let progress = Progress::default();
        let answered = match kind {
            Kind::Http2 => exchange_http2(self.addr, &request, &progress, LIMIT).await,
            Kind::Http11 | Kind::Http10 => {
                if kind == Kind::Http10 {
                    request.version = "1.0".to_owned();
                }
                match self.connect().await?.exchange(&request).await {
                    Ok(response) => Ok(response),
                    Err(error) => Err(error),
                }
            }
        };
        answered.map_err(|error| format!("{kind:?} got no response: {error}"))
    }

    /// A connection for what [`Fixture::ask`] cannot say.
    pub async fn connect(&self) -> Result<Connection, String> {
        let connection = Connection::open(self.addr, LIMIT).await;
        connection.map_err(|error| error.to_string())
    }

    /// One series of larder's metrics.
    pub fn metric(&self, series: &str) -> f64 {
        let text = self.server.insight().metrics_text();
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok());
        value.unwrap_or(f64::NAN)
    }

    /// Waits until `holds`.
    pub async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) -> Outcome {
        let began = Instant::now();
        while !holds(self) {
            if began.elapsed() > LIMIT {
                let gauges = GAUGES.map(|name| format!("{name} {}", self.metric(name)));
                return Err(format!("waited too long until {what}: {}", gauges.join(", ")));
            }
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        Ok(())
    }

    /// Requests for something else are answered as ever, several times, and by nothing but their own bytes.
    pub async fn still_serves(&self) -> Outcome {
        for n in 0..3 {
            let request = Request::new("GET", &format!("/clean/{n}"), HOST);
            let response = self.ask(Kind::Http11, &request).await?;
            same("clean status", &response.status, &200)?;
            same("clean content", response.body.escape_ascii().to_string().as_str(), CLEAN)?;
        }
        Ok(())
    }

    /// Every gauge is back to nothing, and so is what the origin sees.
    pub async fn is_quiet(&self) -> Outcome {
        self.until("every gauge is 0", |fixture| GAUGES.iter().all(|name| fixture.metric(name) == 0.0))
            .await?;
        self.until("the origin has no connection", |fixture| fixture.origin.open() == 0).await
    }

    /// Ends it. Clients have to be gone.
    pub async fn end(mut self) -> Outcome {
        self.is_quiet().await?;
        let left = self.server.drain(Duration::from_secs(5)).await;
        same("connections that did not end", &left, &0)
    }
}

/// A request for what the case is about.
pub fn evil(method: &str) -> Request {
    Request::new(method, EVIL, HOST)
}
