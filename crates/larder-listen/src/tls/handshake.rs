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
/// The type of the first message (RFC 8446 4).
const CLIENT_HELLO: u8 = 1;
const TLS_1_2: [u8; 2] = [3, 3];
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
        let mut opening = Opening::default();
        loop {
            let Some(io) = &mut self.io else { return Err(HandshakeFailure::Gone) };
            let read = poll_fn(|cx| {
                let mut noting = Noting { records: RecordsIn { io: &mut *io, cx }, opening: &mut opening };
                match acceptor.read_tls(&mut noting) {
                    Ok(read) => Poll::Ready(Ok(read)),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
                    Err(error) => Poll::Ready(Err(error)),
                }
            });
            match read.await {
                Ok(1..) if !opening.is_handshake() => return Err(HandshakeFailure::ClearText),
                Ok(1..) => {}
                Ok(0) | Err(_) => return Err(HandshakeFailure::Gone),
            }
            match acceptor.accept() {
                Ok(Some(accepted)) => return Ok(accepted),
                Ok(None) => {}
                // What rustls finds first is that such a client names no signatures.
                Err((error, _)) if opening.is_older_than_served() => {
                    self.alert(AlertDescription::ProtocolVersion);
                    return Err(HandshakeFailure::of(&error));
                }
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

/// The first bytes of a connection: type, version and length of a record (RFC 8446 5.1), type and length of a message (4), and the
/// version of a ClientHello (4.1.2), which is the newest that the client knows where that is no newer than 1.2.
#[derive(Default)]
struct Opening {
    bytes: [u8; 11],
    length: usize,
}

impl Opening {
    fn push(&mut self, read: &[u8]) {
        let room = self.bytes.iter_mut().skip(self.length);
        self.length += room.zip(read).map(|(place, byte)| *place = *byte).count();
    }

    fn is_handshake(&self) -> bool {
        self.bytes.first() == Some(&HANDSHAKE)
    }

    /// Whether it is a ClientHello of TLS 1.1 or before. One whose first record has less than its version is not looked at.
    fn is_older_than_served(&self) -> bool {
        let [_, _, _, high, low, message, _, _, _, major, minor] = self.bytes;
        let has_version = self.length == self.bytes.len() && u16::from_be_bytes([high, low]) >= 6;
        has_version && message == CLIENT_HELLO && [major, minor] < TLS_1_2
    }
}

/// Notes how what is read begins.
struct Noting<'a, 'b, T> {
    records: RecordsIn<'a, 'b, T>,
    opening: &'a mut Opening,
}

impl<T: ByteStream> io::Read for Noting<'_, '_, T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.records.read(bytes)?;
        self.opening.push(bytes.get(..read).unwrap_or_default());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_is_old_where_its_version_says_so_however_it_is_read() {
        let hello = |version: [u8; 2]| {
            [&[HANDSHAKE, 3, 1, 0, 200, CLIENT_HELLO, 0, 0, 196][..], &version, &[9; 40]].concat()
        };
        for (bytes, is_old) in [
            (hello([3, 0]), true),
            (hello([3, 2]), true),
            (hello([3, 3]), false),
            ([&hello([3, 2])[..10], &[3]].concat(), false),
            // The version is that of the next record's header.
            (vec![HANDSHAKE, 3, 1, 0, 4, CLIENT_HELLO, 0, 0, 196, 3, 1, 0, 2, 3, 3], false),
            (vec![HANDSHAKE, 3, 1, 0, 200, 2, 0, 0, 196, 3, 1], false),
            (hello([3, 2])[..10].to_vec(), false),
        ] {
            for step in 1..=bytes.len() {
                let mut opening = Opening::default();
                bytes.chunks(step).for_each(|read| opening.push(read));
                assert!(opening.is_handshake());
                assert_eq!(opening.is_older_than_served(), is_old, "{bytes:?} by {step}");
            }
        }
    }
}
