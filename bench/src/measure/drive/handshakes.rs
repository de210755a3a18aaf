//! Handshakes: a connection over TLS for each request, one after the other, by rustls.
//!
//! In: what kind of handshake, and perhaps how many a second. Out: the same figures as of the tools. Each handshake has to be of the kind
//! that it is called; a request and its answer follow on it, since a client has a ticket for the next handshake only once it
//! has read what came behind this one.
//! Deliberately absent: many at once. What is measured is CPU time, which waiting does not take.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustls::client::{ClientSessionMemoryCache, Resumption};
use rustls::crypto::aws_lc_rs::{default_provider, kx_group};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind, NamedGroup, StreamOwned};

use super::{Driven, Request, percentile};
use crate::measure::contender::LOAD_CORE;
use crate::measure::load::thread_cpu_time;
use crate::measure::turns::wait;
use larder_testkit::certificates::Certificates;

/// What a handshake agrees on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Handshake {
    /// Everything anew, with keys over X25519.
    Full,
    /// Everything anew, with keys over X25519 and ML-KEM together, as browsers have them.
    PostQuantum,
    /// With a ticket of the one before, and keys over X25519.
    Resumed,
}

impl Handshake {
    /// As the table has it.
    pub(crate) fn told(self) -> &'static str {
        match self {
            Self::Full => "full handshakes with X25519",
            Self::PostQuantum => "full handshakes with X25519MLKEM768",
            Self::Resumed => "resumed handshakes with X25519",
        }
    }

    fn config(self, certificates: &Certificates) -> Arc<ClientConfig> {
        let group = match self {
            Self::Full | Self::Resumed => kx_group::X25519,
            Self::PostQuantum => kx_group::X25519MLKEM768,
        };
        let mut provider = default_provider();
        provider.kx_groups = vec![group];
        let mut config = certificates.client_config_with(provider, &[b"http/1.1"]);
        if self == Self::Resumed {
            config.resumption = Resumption::store(Arc::new(ClientSessionMemoryCache::new(8)));
        }
        Arc::new(config)
    }

    /// That it was of this kind.
    fn check(self, session: &ClientConnection) -> Result<()> {
        let kind = match self {
            Self::Full | Self::PostQuantum => HandshakeKind::Full,
            Self::Resumed => HandshakeKind::Resumed,
        };
        let group = match self {
            Self::Full | Self::Resumed => NamedGroup::X25519,
            Self::PostQuantum => NamedGroup::X25519MLKEM768,
        };
        let found = (session.handshake_kind(), session.negotiated_key_exchange_group().map(|one| one.name()));
        ensure!(found == (Some(kind), Some(group)), "{} were to be had, not {found:?}", self.told());
        Ok(())
    }
}

/// Longest wait for any byte.
const READ_MAX: Duration = Duration::from_secs(10);

/// What each of these clients asks with.
pub(crate) const LAST_REQUEST: &str = "Connection: close";

/// One client.
struct Client<'a> {
    address: SocketAddr,
    config: Arc<ClientConfig>,
    request: &'a Request,
}

impl Client<'_> {
    /// One connection: how many bytes came, and its session.
    fn exchange(&self) -> Result<(usize, ClientConnection)> {
        let socket = TcpStream::connect(self.address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(READ_MAX))?;
        let session = ClientConnection::new(Arc::clone(&self.config), ServerName::try_from("localhost")?)?;
        let mut stream = StreamOwned::new(session, socket);
        let mut fields: String = self.request.fields.iter().map(|field| format!("{field}\r\n")).collect();
        if !fields.contains(LAST_REQUEST) {
            fields.push_str(&format!("{LAST_REQUEST}\r\n"));
        }
        let (target, address) = (&self.request.target, self.address);
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {address}\r\n{fields}\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).context("no orderly end")?;
        ensure!(answer.starts_with(b"HTTP/1.1 200 "), "{}", answer.escape_ascii());
        Ok((answer.len(), stream.conn))
    }
}

/// One after the other for `length`, or so many a second.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(super) fn drive(
    kind: Handshake,
    per_s: Option<f64>,
    certificates: &Certificates,
    (address, request): (SocketAddr, &Request),
    length: Duration,
) -> Result<Driven> {
    let work = || -> Result<Driven> {
        let mut core = CpuSet::new();
        core.set(LOAD_CORE);
        sched_setaffinity(None, &core).context("pinning to the load's core")?;
        let client = Client { address, config: kind.config(certificates), request };
        if kind == Handshake::Resumed {
            client.exchange().context("the first one")?;
        }
        let (began, cpu) = (Instant::now(), thread_cpu_time());
        let (mut waits, mut bytes) = (Vec::new(), 0);
        while began.elapsed() < length {
            if let Some(per_s) = per_s {
                let due = began + Duration::from_secs_f64(waits.len() as f64 / per_s);
                wait(due.saturating_duration_since(Instant::now()));
            }
            let asked = Instant::now();
            let (received, session) = client.exchange()?;
            waits.push(asked.elapsed().as_secs_f64() * 1e6);
            bytes += received;
            kind.check(&session)?;
        }
        let took = began.elapsed().as_secs_f64();
        let used = thread_cpu_time().saturating_sub(cpu).as_secs_f64();
        waits.sort_by(f64::total_cmp);
        let requests = waits.len() as f64;
        Ok(Driven {
            requests,
            requests_per_s: requests / took,
            p50_us: percentile(&waits, 0.5),
            p99_us: percentile(&waits, 0.99),
            p999_us: Some(percentile(&waits, 0.999)),
            bytes_per_request: bytes as f64 / requests,
            load_percent: 100.0 * used / took,
        })
    };
    std::thread::scope(|scope| scope.spawn(work).join().map_err(|_| anyhow!("the load's thread panicked"))?)
}
