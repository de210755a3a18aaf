//! A question to name servers: over UDP, over TCP where the answer does not fit, the next server where one is silent.
//!
//! In: name servers in order of preference and a [`Question`]. Out: the first answer. Once one was
//! silent, the server that answered in its place is asked first, so that silence costs its time once and not for each
//! question. Each try has a socket of its own,
//! connected: the system then takes datagrams from that server only, from a port nobody could foresee, and says at
//! once that nobody listens there. A server that refuses is not asked again; one that stays silent is, once, after the
//! others. The worst case is `2 x servers x` [`TRY_LIMIT`]; the caller's own limit is usually shorter.
//! RFC 1035 4.2, RFC 5452, RFC 7766.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, timeout_at};

use super::question::{DnsRecord, Question, Reading};

/// Name servers that are asked.
pub(super) const SERVERS_MAX: usize = 8;

/// What one server gets for one try, TCP included.
const TRY_LIMIT: Duration = Duration::from_secs(1);

/// Foreign datagrams on one socket, after which the server counts as unusable.
const FOREIGN_MAX: usize = 64;

/// The longest answer over TCP: some hundreds of records.
const TCP_BYTES_MAX: usize = 16 * 1024;

/// The first answer of `servers`; without records where there are none. `preferred` is the place of the one to
/// begin with.
///
/// # Errors
/// What the last server asked was wrong with: `TimedOut`, `InvalidData` for a refusal, or the socket's own error.
///
/// # Cancel safety
/// May be dropped at any time.
pub(super) async fn ask(
    servers: &[SocketAddr],
    preferred: &AtomicUsize,
    question: &Question,
) -> io::Result<Vec<DnsRecord>> {
    let mut error = io::Error::new(io::ErrorKind::NotFound, "no name servers");
    let servers = servers.get(..SERVERS_MAX).unwrap_or(servers);
    // The system's servers may have become fewer.
    let first = preferred.load(Ordering::Relaxed) % servers.len().max(1);
    let mut turns: Vec<usize> =
        std::iter::once(first).chain((0..servers.len()).filter(|at| *at != first)).collect();
    let mut was_silent = false;
    for _ in 0..2 {
        let mut silent = Vec::new();
        for at in turns {
            let Some(server) = servers.get(at) else { continue };
            match ask_one(*server, question).await {
                Ok(records) => {
                    if was_silent {
                        preferred.store(at, Ordering::Relaxed);
                    }
                    return Ok(records);
                }
                Err(failed) => {
                    if failed.kind() == io::ErrorKind::TimedOut {
                        was_silent = true;
                        silent.push(at);
                    }
                    error = failed;
                }
            }
        }
        turns = silent;
    }
    Err(error)
}

async fn ask_one(server: SocketAddr, question: &Question) -> io::Result<Vec<DnsRecord>> {
    let deadline = Instant::now() + TRY_LIMIT;
    let silent = |_| io::Error::new(io::ErrorKind::TimedOut, "the name server does not answer");
    let reading = match timeout_at(deadline, over_udp(server, question)).await.map_err(silent)?? {
        Reading::Truncated => timeout_at(deadline, over_tcp(server, question)).await.map_err(silent)??,
        other => other,
    };
    match reading {
        Reading::Records(records) => Ok(records),
        Reading::Refused(why) => Err(io::Error::new(io::ErrorKind::InvalidData, why)),
        Reading::NotOurs | Reading::Truncated => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "the name server answers something else"))
        }
    }
}

async fn over_udp(server: SocketAddr, question: &Question) -> io::Result<Reading> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(server).await?;
    socket.send(&question.to_bytes()).await?;
    // More than we said we take: what is longer is cut by the system and then read as malformed, not as an answer.
    let mut buffer = [0; 4096];
    for _ in 0..FOREIGN_MAX {
        let length = socket.recv(&mut buffer).await?;
        match question.read(buffer.get(..length).unwrap_or_default()) {
            Reading::NotOurs => {}
            reading => return Ok(reading),
        }
    }
    Ok(Reading::NotOurs)
}

async fn over_tcp(server: SocketAddr, question: &Question) -> io::Result<Reading> {
    let mut stream = TcpStream::connect(server).await?;
    let query = question.to_bytes();
    let length = u16::try_from(query.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut framed = length.to_be_bytes().to_vec();
    framed.extend(query);
    stream.write_all(&framed).await?;
    let length = usize::from(stream.read_u16().await?);
    if length > TCP_BYTES_MAX {
        return Ok(Reading::Refused("the name server's answer is too long"));
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).await?;
    Ok(question.read(&answer))
}
