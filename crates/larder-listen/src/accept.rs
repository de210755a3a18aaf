//! The first stage of a connection: a transport is accepted.
//!
//! In: one worker's socket of a listener. Out: [`Accepted`] transports, each served in a task of its own. A transport is
//! accepted only while a slot is free: beyond that, connections wait in the kernel's backlog, where they cost no descriptor of
//! larder.
//! For TLS a place among the handshakes of the worker is taken as well, until the handshake is over. Without one nothing more is accepted.
//! Deliberately absent: PROXY protocol, and every step that waits for the client. What a transport needs before HTTP begins, the handshake of TLS, runs in
//! the task of the connection.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use arc_swap::ArcSwap;
use larder_http::message::Peer;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::accepted::Accepted;
use crate::connection::{serve_member, serve_tls_member};
use crate::drain::{DrainSignal, Membership};
use crate::listener::{BoundSocket, Listener, Transport};
use crate::metrics::Metrics;
use crate::service::Service;
use crate::settings::Settings;
use crate::slots::Slots;
use crate::socket::{ListeningSocket, Socket};
use crate::tls::{Handshakes, OpenHandshake};

/// How long a drain waits for the first bytes of connections that the kernel keeps back for them: time for a request that is on
/// its way. Of a client that connects ahead and says nothing for longer, the first bytes meet a closed socket.
const ON_THEIR_WAY: Duration = Duration::from_millis(100);
/// How long to rest when accepting failed for want of descriptors or memory.
const REST: Duration = Duration::from_millis(100);

/// Accepts connections and serves each in a task of its own, until the drain starts; then accepts what has already
/// arrived or is about to, closes the socket and returns. Connections go on. Has to run within a tokio runtime with I/O and time.
///
/// Each connection takes the `settings` of the moment it was accepted. `slots` bounds the connections that are open at once over all loops that share it, and
/// `handshakes` are those of the worker.
///
/// # Errors
/// The socket could not be registered with the runtime.
///
/// # Cancel safety
/// Dropping it closes the socket; connections go on.
pub async fn accept_loop<S: Service>(
    socket: BoundSocket,
    settings: Arc<ArcSwap<Settings>>,
    service: S,
    slots: Arc<Slots>,
    metrics: Arc<Metrics>,
    drain: DrainSignal,
    handshakes: Arc<Handshakes>,
) -> io::Result<()> {
    let is_tls = socket.listener.transport == Transport::Tls;
    let mut acceptor = Acceptor::new(socket, &slots, &metrics, drain.watch())?;
    while let Some(slot) = free_slot(&slots, &metrics).await
        && let Some(accepted) = acceptor.next().await
    {
        // A place is not held for who has not come: other listeners of the worker may need it.
        let handshake = match is_tls {
            true => Some(free_handshake(&handshakes, &settings, &metrics).await),
            false => None,
        };
        metrics.accepted.add(1);
        let (settings, service) = (settings.load_full(), service.clone());
        let (metrics, membership, slots) = (metrics.clone(), drain.join(), Arc::clone(&slots));
        let ended = move || {
            drop(slot);
            slots.refill_spare();
        };
        // Boxed: the runtime moves what it is given several times, also when it has ended. Apart, so that what is in clear text is as small as before.
        match handshake {
            None => tokio::spawn(Box::pin(async move {
                serve_member(accepted, settings, service, metrics, membership).await;
                ended();
            })),
            Some(handshake) => tokio::spawn(Box::pin(async move {
                serve_tls_member(accepted, handshake, settings, service, metrics, membership).await;
                ended();
            })),
        };
    }
    Ok(())
}

/// Waits until a handshake more may begin.
async fn free_handshake(
    handshakes: &Arc<Handshakes>,
    settings: &ArcSwap<Settings>,
    metrics: &Metrics,
) -> OpenHandshake {
    let max = settings.load().limits.handshakes_max;
    if handshakes.open() >= max {
        metrics.handshakes_paused.add(1);
    }
    handshakes.begin(max).await
}

/// Waits for a free slot; `None` where there will never be one again.
async fn free_slot(slots: &Slots, metrics: &Metrics) -> Option<OwnedSemaphorePermit> {
    if let Some(slot) = slots.take() {
        return Some(slot);
    }
    metrics.accept_paused.add(1);
    slots.wait().await
}

/// One worker's end of a listener.
struct Acceptor<'a> {
    /// With the address that was really bound.
    listener: Listener,
    socket: ListeningSocket,
    phase: Phase,
    slots: &'a Slots,
    metrics: &'a Metrics,
    watch: Membership,
}

/// How far the end of an [`Acceptor`] has come: `Open -> Ending -> Emptying`.
#[derive(Clone, Copy)]
enum Phase {
    Open,
    /// The drain has started. Until then what is on its way is accepted.
    Ending(Instant),
    /// Only what has arrived is accepted.
    Emptying,
}

impl<'a> Acceptor<'a> {
    fn new(
        socket: BoundSocket,
        slots: &'a Slots,
        metrics: &'a Metrics,
        watch: Membership,
    ) -> io::Result<Self> {
        let BoundSocket { listener, socket } = socket;
        let listener = Listener { address: socket.local_addr()?, ..listener };
        let socket = ListeningSocket::register(socket)?;
        Ok(Self { listener, socket, phase: Phase::Open, slots, metrics, watch })
    }

    /// The next transport; `None` once the drain has started and nothing more has arrived.
    async fn next(&mut self) -> Option<Accepted<Socket>> {
        loop {
            match self.phase {
                Phase::Open => match self.next_or_drain().await {
                    Some(Ok((stream, remote))) => return Some(self.accepted(stream, remote)),
                    Some(Err(error)) => {
                        self.metrics.accept_errors.add(1);
                        let is_another_tried = is_want_of_descriptors(&error) && self.slots.release_spare();
                        if !is_of_one_connection(&error) && !is_another_tried {
                            tokio::time::sleep(REST).await;
                        }
                    }
                    None => {
                        self.socket.stop_deferring();
                        self.phase = Phase::Ending(Instant::now() + ON_THEIR_WAY);
                    }
                },
                Phase::Ending(until) => {
                    match tokio::time::timeout_at(until, poll_fn(|cx| self.socket.poll_accept(cx))).await {
                        Ok(Ok((stream, remote))) => return Some(self.accepted(stream, remote)),
                        Ok(Err(error)) if is_of_one_connection(&error) => self.metrics.accept_errors.add(1),
                        Ok(Err(_)) | Err(_) => self.phase = Phase::Emptying,
                    }
                }
                // The kernel itself is asked: the runtime may not have heard of it yet.
                Phase::Emptying => match self.socket.accept_now() {
                    Ok((stream, remote)) => return Some(self.accepted(stream, remote)),
                    Err(error) if is_of_one_connection(&error) => self.metrics.accept_errors.add(1),
                    Err(_) => return None,
                },
            }
        }
    }

    /// The next connection, or `None` once the drain has started.
    async fn next_or_drain(&mut self) -> Option<io::Result<(Socket, SocketAddr)>> {
        let Self { socket, watch, .. } = self;
        poll_fn(|cx| match watch.poll_draining(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => socket.poll_accept(cx).map(Some),
        })
        .await
    }

    fn accepted(&self, stream: Socket, remote: SocketAddr) -> Accepted<Socket> {
        let Listener { address, transport, protocols, .. } = self.listener;
        // Only a wildcard address leaves open which of our addresses was dialled.
        let local =
            if address.ip().is_unspecified() { stream.local_addr().unwrap_or(address) } else { address };
        let peer = Peer::clear(canonical(remote), canonical(local));
        Accepted { stream, peer, transport, protocols }
    }
}

/// An IPv4 address as one, where an IPv6 socket took the connection.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn is_want_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
