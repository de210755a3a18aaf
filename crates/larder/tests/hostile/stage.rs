//! Where a case plays: a scripted origin, a larder in front of it, and what both say in the end.
//!
//! In: scripts and lines of config. Out: an address to write to, and once the case has ended the exact record of the
//! origin. The record is final: larder is drained and gone by then, and a last request of our own has shown that
//! the origin has accepted and read whatever came before it.

use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use larder::server::Server;
use larder_http::time::Clock;
use larder_observe::Diagnostics;
use larder_testkit::client::{Connection, Progress, Request, Response};
use larder_testkit::origin::{Answer, Origin, PathScript, Seen};
use larder_testkit::wire::to_bytes;

use crate::hostile::transport::{Protocol, Transport};

/// How a case ended; the text says what was wrong.
pub(crate) type Outcome = Result<(), String>;
/// A case while it runs.
pub(crate) type Walk = Pin<Box<dyn Future<Output = Outcome>>>;

/// The longest wait for anything single.
const LIMIT: Duration = Duration::from_secs(8);
/// A connection that is to be closed is closed at once; this is for slow machines.
const CLOSING: Duration = Duration::from_secs(5);
const SENTINEL: &str = "/end-of-the-case";
/// What larder says of itself to origins in Surrogate-Capability.
pub(crate) const CAPABILITY: &str = r#"larder="Surrogate/1.0 ESI/1.0 SSI/1.0""#;

/// A larder and its origin.
pub(crate) struct Stage {
    pub(crate) origin: Origin,
    pub(crate) addr: SocketAddr,
    server: Server,
}

/// The harmless request that is pipelined behind each case.
pub(crate) const PROBE: &str = "GET /probe HTTP/1.1\r\nHost: probe.test\r\n\r\n";

/// One path with answers.
pub(crate) fn script(path: &str, answer: Vec<Answer>) -> PathScript {
    PathScript::new(path, answer)
}

/// What every origin answers: `probe` to the probe, `ok`, not to be stored, to everything else.
fn standard() -> Vec<PathScript> {
    vec![
        script("/probe", vec![Answer::new(200, &["Cache-Control: no-store"], "probe")]),
        script("*", vec![Answer::new(200, &["Cache-Control: no-store"], "ok")]),
    ]
}

impl Stage {
    /// Starts both. `top` are lines at the top of the config or tables, `site` lines of its one site.
    pub(crate) async fn new(mut scripts: Vec<PathScript>, top: &str, site: &str) -> Result<Self, String> {
        scripts.insert(0, script(SENTINEL, vec![Answer::new(200, &[], "")]));
        scripts.extend(standard());
        let origin = Origin::simple(scripts).map_err(|error| error.to_string())?;
        let url = origin.url();
        let (listen, tls) = Transport::current().config();
        let config = format!(
            "listen = [{listen}]\nadmin = false\nworkers = 1\n{top}\n\
             [origins.app]\nservers = [\"{url}\"]\n[[site]]\norigin = \"app\"\n{tls}\n{site}\n"
        );
        let checked = larder_config::parse(&config, "case", Path::new("."));
        let checked = checked.map_err(|errors| errors.to_string())?;
        let server = Server::start(checked, Clock::default(), Diagnostics::silent());
        let server = server.map_err(|error| error.to_string())?;
        let addr = *server.addresses().first().ok_or("no listener")?;
        Ok(Self { origin, addr, server })
    }

    /// A client's connection.
    pub(crate) async fn connect(&self) -> Result<Client, String> {
        Ok(Client(Transport::current().connect(self.addr, Protocol::Http1, LIMIT).await?))
    }

    /// One request on a connection of its own.
    pub(crate) async fn ask(&self, bytes: &str) -> Result<Response, String> {
        let mut client = self.connect().await?;
        client.write(bytes).await?;
        client.read(method_of(bytes)).await
    }

    /// Waits until the origin has received so many requests.
    pub(crate) async fn received(&self, count: u64) -> Outcome {
        let come = self.origin.log().until(|log| log.count() >= count);
        let come = tokio::time::timeout(LIMIT, come).await;
        come.map_err(|_| format!("the origin did not get {count} requests"))
    }

    /// One series of larder's metrics.
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let text = self.server.insight().metrics_text();
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok());
        value.unwrap_or(f64::NAN)
    }

    /// Ends both and returns what the origin received. Clients have to be gone.
    pub(crate) async fn end(mut self) -> Result<Vec<Seen>, String> {
        let left = self.server.drain(Duration::from_secs(5)).await;
        if left > 0 {
            return Err(format!("{left} connections are still open"));
        }
        let open = self.metric("larder_connections_open");
        if open != 0.0 {
            return Err(format!("larder_connections_open is {open}"));
        }
        drop(self.server);
        let sentinel = Connection::open(self.origin.addr(), LIMIT).await;
        let mut sentinel = sentinel.map_err(|error| error.to_string())?;
        let asked = sentinel.exchange(&Request::new("GET", SENTINEL, "end.test")).await;
        asked.map_err(|error| format!("sentinel: {error}"))?;
        drop(sentinel);
        let closed = self.origin.log().until(|log| log.connections_open() == 0);
        tokio::time::timeout(LIMIT, closed).await.map_err(|_| "the origin's connections stay open")?;
        let mut seen = self.origin.log().all();
        seen.retain(|seen| seen.target != SENTINEL);
        Ok(seen)
    }
}

/// A client's connection; errors are text, since nobody does anything with them but print them.
pub(crate) struct Client(Connection);

impl Client {
    /// Sends a request in clear text as it is over its transport, characters up to U+00FF as the bytes of that number.
    pub(crate) async fn write(&mut self, text: &str) -> Outcome {
        // A server may refuse and close before it has taken everything; what it said still counts.
        let _ = self.0.write(&to_bytes(&Transport::current().told(text))).await;
        Ok(())
    }

    /// The same in single bytes.
    pub(crate) async fn write_bytewise(&mut self, text: &str) -> Outcome {
        for byte in to_bytes(&Transport::current().told(text)) {
            if self.0.write(&[byte]).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Reads a final response, which has to be well-formed.
    pub(crate) async fn read(&mut self, method: &str) -> Result<Response, String> {
        let read = self.0.read_response(method, &Progress::default()).await;
        read.map_err(|error| format!("the client got no response: {error}"))
    }

    /// The connection is closed, and nothing came before that.
    pub(crate) async fn closed(&mut self) -> Outcome {
        match self.0.ends_within(CLOSING).await {
            Ok(true) => Ok(()),
            Ok(false) => Err("the connection stays open".to_owned()),
            Err(error) => Err(format!("instead of a close: {error}")),
        }
    }

    /// Not one byte comes and the connection stays, for a moment.
    pub(crate) async fn silent(&mut self) -> Outcome {
        match self.0.ends_within(Duration::from_millis(150)).await {
            Ok(false) => Ok(()),
            Ok(true) => Err("the connection was closed".to_owned()),
            Err(error) => Err(format!("instead of silence: {error}")),
        }
    }

    /// Whether nothing comes and the connection stays, for `wait`.
    pub(crate) async fn silent_for(&mut self, wait: Duration) -> bool {
        matches!(self.0.ends_within(wait).await, Ok(false))
    }

    /// Closes with a reset.
    pub(crate) fn abort(self) {
        self.0.abort();
    }

    /// Ends the sending direction.
    pub(crate) async fn half_close(&mut self) -> Outcome {
        self.0.close_write().await.map_err(|error| error.to_string())
    }

    /// So many bytes, as text.
    pub(crate) async fn exact(&mut self, count: u64) -> Result<String, String> {
        let bytes = self.0.read_exact(count).await.map_err(|error| error.to_string())?;
        Ok(larder_testkit::wire::latin1(&bytes))
    }

    /// Sends the probe and gets its answer: the connection is in step.
    pub(crate) async fn probe(&mut self) -> Outcome {
        self.write(PROBE).await?;
        self.probed().await
    }

    /// The answer to a probe that was sent before.
    pub(crate) async fn probed(&mut self) -> Outcome {
        let response = self.read("GET").await.map_err(|why| format!("probe: {why}"))?;
        same("the probe's answer", response.body.escape_ascii().to_string().as_str(), "probe")
    }
}

/// The method of a request, as far as the client has to know it to read the answer.
pub(crate) fn method_of(bytes: &str) -> &str {
    bytes.trim_start().split(' ').next().unwrap_or_default()
}

/// Compares.
pub(crate) fn same<T: PartialEq + std::fmt::Debug + ?Sized>(what: &str, found: &T, expected: &T) -> Outcome {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: expected {expected:?}, found {found:?}"))
}
