//! A scripted HTTP/1 origin on a free loopback port, with every byte under control.
//!
//! In: [`PathScript`]s, or a function that chooses an [`Answer`] for each request. Out: answers, well-formed or not, and an exact record of what was asked ([`Log`]).
//! It is written without an HTTP library, so that it can lie about lengths, stop in the middle, or say nothing.
//! What must happen in a certain order is held at a named gate until the test releases it. One task accepts and
//! one task per connection answers; all end with [`Origin::stop`] or when the origin is dropped. Stopped, it keeps
//! its port without listening, so connections are refused and nobody else can take it.
//!
//! Deliberately absent: HTTP/2 and TLS.

mod gates;
mod literal;
mod log;
mod place;
mod script;
mod serve;
mod source;
mod state;

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use larder_http::time::Clock;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use gates::Gates;
pub use log::{Log, Seen};
pub use script::{Answer, BodyFraming, Filler, Hold, Interim, PathScript, Pause};

use crate::Error;
use source::Source;
use state::Shared;

const CONNECTIONS_MAX: i32 = 1024;
const FREE_PORT: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));
/// The longest single wait of an origin that is told no other.
const LIMIT: Duration = Duration::from_secs(10);

/// A running origin.
#[derive(Debug)]
pub struct Origin {
    addr: SocketAddr,
    shared: Arc<Shared>,
    /// Bound and never listening: keeps the port while the origin is stopped.
    _reserved: Socket,
    accept: Option<JoinHandle<()>>,
    alive: Option<watch::Sender<()>>,
}

impl Origin {
    /// Starts on a free port of 127.0.0.1. Dates in answers follow `clock`; each wait inside is bounded by `limit`.
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Io`] where no port can be had.
    pub fn start(
        scripts: Vec<PathScript>,
        gates: Gates,
        clock: Clock,
        limit: Duration,
    ) -> Result<Self, Error> {
        Self::with(FREE_PORT, Source::scripts(scripts), gates, clock, limit)
    }

    /// An origin with a clock and gates of its own and a limit of 10 s.
    ///
    /// # Errors
    /// As [`Origin::start`].
    pub fn simple(scripts: Vec<PathScript>) -> Result<Self, Error> {
        Self::start(scripts, Gates::default(), Clock::default(), LIMIT)
    }

    /// The same at `addr`, which may have port 0 for a free one, where `choose` makes the answer for the head of each
    /// request. It is called once for each, before the request counts. Each wait inside is bounded by `limit`.
    ///
    /// # Errors
    /// As [`Origin::start`].
    pub fn answering(
        addr: SocketAddr,
        limit: Duration,
        choose: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        Self::with(addr, Source::chosen(choose), Gates::default(), Clock::default(), limit)
    }

    fn with(
        addr: SocketAddr,
        source: Source,
        gates: Gates,
        clock: Clock,
        limit: Duration,
    ) -> Result<Self, Error> {
        let reserved = bound(addr)?;
        let addr = reserved
            .local_addr()?
            .as_socket()
            .ok_or_else(|| Error::Scenario("the origin's socket has no address".to_owned()))?;
        let start = SystemTime::now();
        let shared = Shared { source, log: Log::default(), gates, clock, start, limit };
        let mut origin =
            Self { addr, shared: Arc::new(shared), _reserved: reserved, accept: None, alive: None };
        origin.resume()?;
        Ok(origin)
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// What was asked so far.
    pub fn log(&self) -> &Log {
        &self.shared.log
    }

    /// The gates of its answers.
    pub fn gates(&self) -> &Gates {
        &self.shared.gates
    }

    /// Refuses connections and cuts those that are open; both have happened when this returns.
    ///
    /// # Cancel safety
    /// Cancelled, it stops all the same, a moment later.
    pub async fn stop(&mut self) {
        self.alive = None;
        if let Some(accept) = self.accept.take() {
            accept.abort();
            // Aborted or ended: either way the listener is gone.
            let _ = accept.await;
        }
        self.log().until(|log| log.connections_open() == 0).await;
    }

    /// Listens (again) on the same port, with the log and the place in the script as they were.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn resume(&mut self) -> Result<(), Error> {
        if self.accept.is_some() {
            return Ok(());
        }
        let socket = bound(self.addr)?;
        socket.listen(CONNECTIONS_MAX)?;
        let listener = TcpListener::from_std(socket.into())?;
        let (alive, ended) = watch::channel(());
        self.alive = Some(alive);
        let shared = Arc::clone(&self.shared);
        self.accept = Some(tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (shared, mut ended) = (Arc::clone(&shared), ended.clone());
                let connection = shared.log.connection_opened();
                tokio::spawn(async move {
                    let _open = shared.log.open_guard(connection);
                    tokio::select! {
                        () = serve::connection(stream, connection, &shared) => {}
                        // Nothing is ever sent: this ends when the origin lets go of its end.
                        _ = ended.changed() => {}
                    }
                });
            }
        }));
        Ok(())
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        if let Some(accept) = &self.accept {
            accept.abort();
        }
    }
}

/// A socket that shares its port with others of this process, so that the port can be kept without listening.
fn bound(addr: SocketAddr) -> Result<Socket, Error> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests;
