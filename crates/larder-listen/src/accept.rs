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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::connection::serve_member;
use crate::drain::{DrainSignal, Membership};
use crate::error::ListenError;
use crate::metrics::Metrics;
use crate::service::Service;
use crate::settings::Settings;
use crate::socket::{self, Listener, Socket};

/// Connections that may wait to be accepted, as far as the system allows as many.
const BACKLOG: i32 = 4096;
/// How long a drain waits for the first bytes of connections that the kernel keeps back for them: time for a request that is on
/// its way. Of a client that connects ahead and says nothing for longer, the first bytes meet a closed door.
const ON_THEIR_WAY: Duration = Duration::from_millis(100);
/// How long to rest when accepting failed for want of descriptors or memory.
const REST: Duration = Duration::from_millis(100);

/// An address with one listening socket for each worker.
#[derive(Debug)]
pub struct Bound {
    /// Where; the real port, where 0 was asked for.
    pub address: SocketAddr,
    /// One socket for each worker, not yet registered with any runtime.
    pub sockets: Vec<std::net::TcpListener>,
}

/// Opens `workers` sockets that listen on `address`. Blocks for no longer than the system calls take.
///
/// # Errors
/// The address is in use, or cannot be bound.
pub fn bind(address: SocketAddr, workers: usize) -> Result<Bound, ListenError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::InUse(address),
        _ => ListenError::Bind { address, source },
    };
    let probe = open(address, false).map_err(failed)?;
    let real = probe.local_addr().map_err(failed)?.as_socket().unwrap_or(address);
    drop(probe);
    let sockets = (0..workers).map(|_| open(real, true).map(Into::into)).collect::<io::Result<_>>();
    Ok(Bound { address: real, sockets: sockets.map_err(failed)? })
}

fn open(address: SocketAddr, shared: bool) -> io::Result<socket2::Socket> {
    let socket =
        socket2::Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    // Without it, a restart would have to wait for the last process's connections to be forgotten.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    if address.is_ipv6() {
        // So that 0.0.0.0 and [::] can stand beside each other.
        socket.set_only_v6(true)?;
    }
    // Accepted sockets inherit it: no system call per connection.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket::defer(&socket);
    Ok(socket)
}

/// How many connections may be open at once: the descriptors that this process may have, less `reserve` for origins,
/// stores, logs and files. At least one.
pub fn connection_slots(reserve: usize) -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    limit.saturating_sub(reserve).clamp(1, Semaphore::MAX_PERMITS)
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
    slots: Arc<Semaphore>,
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
        let (settings, service) = (settings.load_full(), service.clone());
        let (metrics, membership) = (metrics.clone(), drain.join());
        // Boxed: the runtime moves what it is given several times, also when it has ended.
        tokio::spawn(Box::pin(async move {
            serve_member(stream, Peer { remote, local }, settings, service, metrics, membership).await;
            drop(slot);
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
                if !is_of_one_connection(&error) {
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
async fn free_slot(slots: &Arc<Semaphore>, metrics: &Metrics) -> Option<OwnedSemaphorePermit> {
    if let Ok(slot) = slots.clone().try_acquire_owned() {
        return Some(slot);
    }
    metrics.accept_paused.add(1);
    slots.clone().acquire_owned().await.ok()
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

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
