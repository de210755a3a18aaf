//! The handshake of one connection (RFC 8446 2), from its first byte to a stream for HTTP.
//!
//! In: an accepted transport. Out: [`Shaken`]. The name in the ClientHello chooses certificate and policy; ALPN chooses the protocol (RFC 7301), and a client that offers none gets
//! HTTP/1.1. All of it has one time limit, however slowly bytes come. Public-key work waits for its turn (`handshakes.rs`).
//! An authority that looks for its proof (RFC 8737 3) gets the handshake and nothing else.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use larder_http::message::{ClientPolicyId, TlsPeer, TlsVersion};
use larder_tls::server::{ServerTls, TlsChoice};
use rustls::server::{Acceptor, ServerConnection};
use rustls::{AlertDescription, HandshakeKind, ProtocolVersion, ServerConfig};
use tokio::time::Instant;

use super::handshakes::OpenHandshake;
use super::reason::HandshakeFailure;
use super::stream::{RecordsIn, TlsStream};
use crate::accepted::Accepted;
use crate::byte_stream::ByteStream;
use crate::listener::{Protocol, Protocols};
use crate::metrics::Metrics;
use crate::settings::Limits;
use crate::timer::Timer;

/// The first byte of every handshake (RFC 8446 5.1).
const HANDSHAKE: u8 = 0x16;
/// What rustls keeps of sealed bytes at most: four records.
const SEALED_BYTES_MAX: usize = 64 * 1024;

/// What became of a handshake.
pub(crate) enum Shaken<T> {
    /// HTTP may begin.
    Http(Accepted<TlsStream<T>>),
    /// The client does not speak TLS, and may read an answer in clear text.
    ClearText(Accepted<T>),
    /// There is nothing more to do with it.
    Over,
}

/// Why it ends early.
enum Early {
    Failed(HandshakeFailure),
    /// An authority has seen its proof.
    Proven,
}

/// Shakes hands. Counts what comes of it.
///
/// # Cancel safety
/// To drop it closes the connection.
pub(crate) async fn shake<T: ByteStream>(
    accepted: Accepted<T>,
    tls: &ServerTls,
    open: OpenHandshake,
    limits: &Limits,
    metrics: &Metrics,
) -> Shaken<T> {
    let Accepted { stream, mut peer, transport, .. } = accepted;
    let mut shaking = Shaking { io: Some(stream), stream: None };
    let began = Instant::now();
    let deadline = began + limits.handshake_time;
    let mut timer = Timer::default();
    let ended = {
        let mut work = pin!(shaking.run(tls, &open));
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(ended) => Poll::Ready(ended),
            Poll::Pending => timer.poll(cx, deadline).map(|()| Err(Early::Failed(HandshakeFailure::Timeout))),
        })
        .await
    };
    drop(open);
    let Shaking { io, stream } = shaking;
    match (ended, stream) {
        (Ok(policy), Some(stream)) => {
            let session = stream.session();
            let agreed = agreed(session, policy);
            let group = session.negotiated_key_exchange_group().map(|group| group.name());
            metrics.tls_handshakes.count(agreed.version, group, agreed.is_resumed);
            let durations =
                if agreed.is_resumed { &metrics.resumed_handshakes } else { &metrics.full_handshakes };
            durations.observe(began.elapsed());
            let protocol = if agreed.alpn == Some("h2") { Protocol::Http2 } else { Protocol::Http1 };
            peer.tls = Some(Arc::new(agreed));
            Shaken::Http(Accepted { stream, peer, transport, protocols: Protocols::only(protocol) })
        }
        (Err(Early::Failed(failure)), _) => {
            metrics.count_handshake_failure(failure);
            match (failure, io) {
                (HandshakeFailure::ClearText, Some(stream)) => {
                    let protocols = Protocols::only(Protocol::Http1);
                    Shaken::ClearText(Accepted { stream, peer, transport, protocols })
                }
                _ => Shaken::Over,
            }
        }
        (Err(Early::Proven), _) => {
            metrics.tls_proofs.add(1);
            Shaken::Over
        }
        (Ok(_), None) => Shaken::Over,
    }
}

/// How far it is.
struct Shaking<T> {
    /// Until the client has said whom it wants to speak with.
    io: Option<T>,
    /// From then on.
    stream: Option<TlsStream<T>>,
}

impl<T: ByteStream> Shaking<T> {
    async fn run(&mut self, tls: &ServerTls, open: &OpenHandshake) -> Result<ClientPolicyId, Early> {
        let accepted = match self.hello().await {
            Ok(accepted) => accepted,
            Err(failure) => return Err(Early::Failed(failure)),
        };
        let (config, policy, is_proof) = match tls.choose(&accepted.client_hello()) {
            TlsChoice::Serve { config, policy } => (config, policy, false),
            TlsChoice::Prove(config) => (config, ClientPolicyId::default(), true),
            TlsChoice::Refuse(alert) => {
                self.alert(alert);
                return Err(Early::Failed(HandshakeFailure::of_refusal(alert)));
            }
        };
        self.begin(accepted, config, open).await.map_err(Early::Failed)?;
        // A short message ends it in TLS 1.3. Before that, and where clients show a certificate, there is public-key work once more.
        let has_more_work = |session: &ServerConnection| {
            policy != ClientPolicyId::default()
                || session.protocol_version() != Some(ProtocolVersion::TLSv1_3)
        };
        while let Some(stream) = self.stream.as_mut().filter(|stream| stream.session().is_handshaking()) {
            let read = poll_fn(|cx| {
                // What cannot be sent is noticed by what is read.
                let _ = stream.poll_send(cx);
                stream.poll_fill(cx)
            });
            match read.await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return Err(Early::Failed(HandshakeFailure::Gone)),
            }
            let turn = if has_more_work(stream.session()) { open.all().turn().await } else { None };
            let opened = stream.open();
            if let Some(turn) = turn {
                turn.give_way().await;
            }
            opened.map_err(|error| Early::Failed(HandshakeFailure::of(&error)))?;
        }
        if let Some(stream) = &mut self.stream {
            if is_proof {
                stream.end();
                return Err(Early::Proven);
            }
            // Tickets, as far as the socket takes them; the rest goes ahead of the first answer.
            let _ = stream.poll_send(&mut Context::from_waker(Waker::noop()));
        }
        Ok(policy)
    }
    /// Reads until the client has said whom it wants to speak with.
    async fn hello(&mut self) -> Result<rustls::server::Accepted, HandshakeFailure> {
        let mut acceptor = Acceptor::default();
        let mut is_first = true;
        loop {
            let Some(io) = &mut self.io else { return Err(HandshakeFailure::Gone) };
            let read = poll_fn(|cx| {
                let mut first = FirstByte { records: RecordsIn { io: &mut *io, cx }, first: None };
                match acceptor.read_tls(&mut first) {
                    Ok(read) => Poll::Ready(Ok((read, first.first))),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
                    Err(error) => Poll::Ready(Err(error)),
                }
            });
            match read.await {
                Ok((_, Some(byte))) if is_first && byte != HANDSHAKE => {
                    return Err(HandshakeFailure::ClearText);
                }
                Ok((1.., _)) => is_first = false,
                Ok((0, _)) | Err(_) => return Err(HandshakeFailure::Gone),
            }
            match acceptor.accept() {
                Ok(Some(accepted)) => return Ok(accepted),
                Ok(None) => {}
                Err((error, mut alert)) => {
                    let mut bytes = Vec::new();
                    let _ = alert.write_all(&mut bytes);
                    self.say(&bytes);
                    return Err(HandshakeFailure::of(&error));
                }
            }
        }
    }

    /// Answers the hello, which is the longest computation.
    async fn begin(
        &mut self,
        accepted: rustls::server::Accepted,
        config: Arc<ServerConfig>,
        open: &OpenHandshake,
    ) -> Result<(), HandshakeFailure> {
        let turn = open.all().turn().await;
        let begun = accepted.into_connection(config);
        if let Some(turn) = turn {
            turn.give_way().await;
        }
        match begun {
            Ok(mut session) => {
                session.set_buffer_limit(Some(SEALED_BYTES_MAX));
                self.stream = self.io.take().map(|io| TlsStream::new(io, Box::new(session)));
                Ok(())
            }
            Err((error, mut alert)) => {
                let mut bytes = Vec::new();
                let _ = alert.write_all(&mut bytes);
                self.say(&bytes);
                Err(HandshakeFailure::of(&error))
            }
        }
    }

    /// Ends it by an alert, in clear text as everything is so far (RFC 8446 6).
    fn alert(&mut self, alert: AlertDescription) {
        self.say(&[0x15, 3, 3, 0, 2, 2, u8::from(alert)]);
    }

    /// Writes without waiting: nothing was written before.
    fn say(&mut self, bytes: &[u8]) {
        if let Some(io) = &mut self.io {
            let _ = Pin::new(io).poll_write(&mut Context::from_waker(Waker::noop()), bytes);
        }
    }
}

/// Notes the first byte that is read.
struct FirstByte<'a, 'b, T> {
    records: RecordsIn<'a, 'b, T>,
    first: Option<u8>,
}

impl<T: ByteStream> io::Read for FirstByte<'_, '_, T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.records.read(bytes)?;
        if read > 0 {
            self.first = self.first.or(bytes.first().copied());
        }
        Ok(read)
    }
}

/// What both ends have agreed on.
fn agreed(session: &ServerConnection, client_policy: ClientPolicyId) -> TlsPeer {
    TlsPeer {
        version: match session.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => TlsVersion::Tls13,
            _ => TlsVersion::Tls12,
        },
        alpn: match session.alpn_protocol() {
            Some(b"h2") => Some("h2"),
            Some(_) => Some("http/1.1"),
            None => None,
        },
        is_resumed: session.handshake_kind() == Some(HandshakeKind::Resumed),
        client_policy,
        client_certificate: session
            .peer_certificates()
            .and_then(|chain| chain.first())
            .map(|own| Bytes::copy_from_slice(own)),
    }
}
