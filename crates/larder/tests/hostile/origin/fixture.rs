//! A larder before an origin with raw answers, its clients, and its gauges.
//!
//! In: answers for [`EVIL`], one per request, and lines of config. Out: what each kind of client got, and whether everything
//! is back to nothing once they are gone. Answers to [`EVIL`] wait at a gate until all clients of a case are there. Any
//! other path gets [`CLEAN`]: if bytes of one answer leak into the next, that is where it shows.
//! Time limits towards the origin are a few hundred milliseconds here, so that a silent one ends soon.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use larder::server::Server;
use larder_http::time::Clock;
use larder_observe::Diagnostics;
use larder_testkit::client::{Connection, Progress, Request, Response, exchange_http2};
use larder_testkit::origin::{Answer, Origin, PathScript};

use crate::hostile::stage::{Outcome, same};

/// Where the case's answers are.
const EVIL: &str = "/evil";
/// The content of everything else.
const CLEAN: &str = "clean";
/// The content of [`EVIL`] once all of the case's answers were given.
pub const SECOND: &str = "second";
/// The gate before each of them.
const GATE: &str = "evil";

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
    origin: Origin,
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
    pub async fn new(answers: Vec<Answer>, top: &str, site: &str) -> Result<Self, String> {
        let limits = "first_byte_timeout = \"500ms\"\nbetween_bytes_timeout = \"500ms\"";
        Self::start(answers, top, limits, site).await
    }

    /// The same, with the limits that larder has by default towards an origin.
    pub async fn patient(answers: Vec<Answer>, top: &str) -> Result<Self, String> {
        Self::start(answers, top, "", "").await
    }

    async fn start(answers: Vec<Answer>, top: &str, limits: &str, site: &str) -> Result<Self, String> {
        let good = |content| Answer::new(200, &["Cache-Control: no-store"], content);
        let held = answers.into_iter().map(|answer| Answer { hold: Some(GATE.to_owned()), ..answer });
        let evil: Vec<_> = held.chain([good(SECOND)]).collect();
        let scripts = vec![PathScript::new(EVIL, evil), PathScript::new("*", [good(CLEAN)])];
        let origin = Origin::simple(scripts).map_err(|error| error.to_string())?;
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

    /// Lets the case's answers go.
    pub fn release(&self) {
        self.origin.gates().release(GATE);
    }

    /// How often the origin was asked for the case's answers.
    pub fn asked(&self) -> usize {
        usize::try_from(self.origin.log().count_of(EVIL)).unwrap_or(usize::MAX)
    }

    /// How many requests the origin is still answering.
    pub fn answering(&self) -> u64 {
        self.origin.log().in_flight()
    }

    /// How many connections the origin has.
    pub fn open(&self) -> u64 {
        self.origin.log().connections_open()
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
        self.until("the origin has no connection", |fixture| fixture.open() == 0).await
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
