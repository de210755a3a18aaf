//! Sockets that listen: one per worker and address, shared by SO_REUSEPORT, so that the kernel spreads connections
//! and workers never meet.
//!
//! In: addresses. Out: one task per accepted connection. SO_REUSEPORT would hide that somebody else listens on the
//! same port already, so each address is bound once without it as a probe. A listener accepts only while a slot is
//! free: beyond that, connections wait in the kernel's backlog, where they cost no descriptor of ours.
//! Deliberately absent: TLS, PROXY protocol, and the choice of how many workers there are.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use arc_swap::ArcSwap;
use larder_http::message::Peer;
use socket2::{Domain, Protocol, Type};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::connection::serve_member;
use crate::drain::{DrainSignal, Membership};
use crate::error::ListenError;
use crate::metrics::Metrics;
use crate::service::Service;
use crate::settings::Settings;
use crate::slots::Slots;
use crate::socket::{self, Listener, Socket};

/// Connections that may wait to be accepted, as far as the system allows as many.
const BACKLOG: i32 = 4096;
/// How long a drain waits for the first bytes of connections that the kernel keeps back for them: time for a request that is on
/// its way. Of a client that connects ahead and says nothing for longer, the first bytes meet a closed socket.
const ON_THEIR_WAY: Duration = Duration::from_millis(100);
/// How long to rest when accepting failed for want of descriptors or memory.
const REST: Duration = Duration::from_millis(100);

/// An address to open, and what stands beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Where.
    pub address: SocketAddr,
    /// Whether `[::]` takes IPv4 connections as well. Means nothing for another address. Default false.
    pub takes_ipv4: bool,
    /// Whether this process listens on the port already, so that the probe would find that. Default false.
    pub is_beside_ours: bool,
}

impl From<SocketAddr> for Opening {
    fn from(address: SocketAddr) -> Self {
        Self { address, takes_ipv4: false, is_beside_ours: false }
    }
}

/// An address with one listening socket for each worker.
#[derive(Debug)]
pub struct Bound {
    /// Where; the real port, where 0 was asked for.
    pub address: SocketAddr,
    /// One socket for each worker, not yet registered with any runtime.
    pub sockets: Vec<std::net::TcpListener>,
}

/// Opens `workers` sockets that listen on `address`: see [`Opening::bind`].
///
/// # Errors
/// The address is in use, or cannot be bound.
pub fn bind(address: SocketAddr, workers: usize) -> Result<Bound, ListenError> {
    Opening::from(address).bind(workers)
}

impl Opening {
    /// Opens `workers` sockets that listen there. Blocks for no longer than the system calls take.
    ///
    /// # Errors
    /// The address is in use, or cannot be bound.
    pub fn bind(self, workers: usize) -> Result<Bound, ListenError> {
        let address = self.address;
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => ListenError::InUse(address),
            _ => ListenError::Bind { address, source },
        };
        let real = match self.is_beside_ours {
            true => address,
            false => {
                let probe = open(self, false).map_err(failed)?;
                probe.local_addr().map_err(failed)?.as_socket().unwrap_or(address)
            }
        };
        let opening = Self { address: real, ..self };
        let sockets = (0..workers).map(|_| open(opening, true).map(Into::into)).collect::<io::Result<_>>();
        Ok(Bound { address: real, sockets: sockets.map_err(failed)? })
    }
}

fn open(opening: Opening, shared: bool) -> io::Result<socket2::Socket> {
    let Opening { address, takes_ipv4, .. } = opening;
    let socket =
        socket2::Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    // Without it, a restart would have to wait for the last process's connections to be forgotten.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    if address.is_ipv6() {
        // Said each time: what holds where it is not said is a setting of the system.
        socket.set_only_v6(!takes_ipv4)?;
    }
    // Accepted sockets inherit it: no system call per connection.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket::defer(&socket);
    Ok(socket)
}

/// An IPv4 address as one, where an IPv6 socket took the connection.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Accepts connections and serves each in a task of its own, until the drain starts; then accepts what has already
/// arrived or is about to, closes the socket and returns. Connections go on. Has to run within a tokio runtime with I/O and time.
///
/// Each connection takes the `settings` of the moment it was accepted. `slots` bounds the connections that are open at once over all loops that share it.
///
/// # Errors
/// The socket could not be registered with the runtime.
///
/// # Cancel safety
/// Dropping it closes the socket; connections go on.
pub async fn accept_loop<S: Service>(
    socket: std::net::TcpListener,
    settings: Arc<ArcSwap<Settings>>,
    service: S,
    slots: Arc<Slots>,
    metrics: Arc<Metrics>,
    drain: DrainSignal,
) -> io::Result<()> {
    let local = socket.local_addr()?;
    let listener = Listener::register(socket)?;
    let mut watch = drain.watch();
    let start = |stream: Socket, remote: SocketAddr, slot: OwnedSemaphorePermit| {
        metrics.accepted.add(1);
        // Only a wildcard address leaves open which of our addresses was dialled.
        let local = if local.ip().is_unspecified() { stream.local_addr().unwrap_or(local) } else { local };
        let (remote, local) = (canonical(remote), canonical(local));
        let (settings, service) = (settings.load_full(), service.clone());
        let (metrics, membership, slots) = (metrics.clone(), drain.join(), Arc::clone(&slots));
        // Boxed: the runtime moves what it is given several times, also when it has ended.
        tokio::spawn(Box::pin(async move {
            serve_member(stream, Peer { remote, local }, settings, service, metrics, membership).await;
            drop(slot);
            slots.refill_spare();
        }));
    };
    loop {
        let Some(slot) = free_slot(&slots, &metrics).await else {
            return Ok(());
        };
        match next_or_drain(&listener, &mut watch).await {
            Some(Ok((stream, remote))) => start(stream, remote, slot),
            Some(Err(error)) => {
                metrics.accept_errors.add(1);
                let is_another_tried = is_want_of_descriptors(&error) && slots.release_spare();
                if !is_of_one_connection(&error) && !is_another_tried {
                    tokio::time::sleep(REST).await;
                }
            }
            None => break,
        }
    }
    listener.stop_deferring();
    let until = Instant::now() + ON_THEIR_WAY;
    loop {
        let Some(slot) = free_slot(&slots, &metrics).await else {
            return Ok(());
        };
        match tokio::time::timeout_at(until, poll_fn(|cx| listener.poll_accept(cx))).await {
            Ok(Ok((stream, remote))) => start(stream, remote, slot),
            Ok(Err(error)) if is_of_one_connection(&error) => metrics.accept_errors.add(1),
            Ok(Err(_)) | Err(_) => break,
        }
    }
    // What has arrived is accepted by asking the kernel itself: the runtime may not have heard of it yet.
    let socket = listener.into_inner();
    loop {
        let Some(slot) = free_slot(&slots, &metrics).await else {
            return Ok(());
        };
        match socket::accept(&socket) {
            Ok((stream, remote)) => start(stream, remote, slot),
            Err(error) if is_of_one_connection(&error) => metrics.accept_errors.add(1),
            Err(_) => return Ok(()),
        }
    }
}

/// Waits for a free slot; `None` where there will never be one again.
async fn free_slot(slots: &Slots, metrics: &Metrics) -> Option<OwnedSemaphorePermit> {
    if let Some(slot) = slots.take() {
        return Some(slot);
    }
    metrics.accept_paused.add(1);
    slots.wait().await
}

/// The next connection, or `None` once the drain has started.
async fn next_or_drain(
    listener: &Listener,
    watch: &mut Membership,
) -> Option<io::Result<(Socket, SocketAddr)>> {
    poll_fn(|cx| match watch.poll_draining(cx) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => listener.poll_accept(cx).map(Some),
    })
    .await
}

fn is_want_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
