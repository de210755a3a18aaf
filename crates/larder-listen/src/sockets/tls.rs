//! Connections over TLS: version and protocol, refusals and their counts, and how a connection ends for its client.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use larder_http::message::TlsVersion;
use larder_testkit::certificates::Certificates;
use larder_tls::server::{
    ClientPolicy, ClientPolicyFiles, Identity, IdentityFiles, ServerTls, ServerTlsSettings, SiteCertificates,
    SiteTls,
};
use larder_tls::{ClientCertificate, TlsSettings, client_config, offering, provider};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::support::*;
use crate::{HandshakeFailure, Limits, Settings, Transport};

/// A listener for `localhost`, and what its clients need.
struct World {
    certificates: Certificates,
    listening: Listening,
}

fn server(certificates: &Certificates, policy: ClientPolicy) -> Arc<ServerTls> {
    let files =
        IdentityFiles { chain: certificates.file("server.pem"), key: certificates.file("server.key") };
    let identity = Identity::read(&files, &provider(), 1_800_000_000).unwrap();
    let sites = vec![SiteTls {
        hosts: vec!["localhost".to_owned()],
        certificates: Some(SiteCertificates::Fixed(vec![identity])),
        policy,
    }];
    let settings =
        ServerTlsSettings { sites, min_version: TlsVersion::Tls12, tickets: None, challenges: None };
    Arc::new(ServerTls::new(settings, &provider()).unwrap())
}

impl World {
    fn new() -> Self {
        Self::with(Limits::default(), |_| ClientPolicy::none())
    }

    fn with(limits: Limits, policy: impl FnOnce(&Certificates) -> ClientPolicy) -> Self {
        let certificates = Certificates::new();
        let tls = Some(server(&certificates, policy(&certificates)));
        let settings = Settings { limits, tls, ..Settings::default() };
        Self { certificates, listening: Listening::on(Transport::Tls, settings) }
    }

    fn connector(&self, protocols: &[&[u8]], has_certificate: bool) -> TlsConnector {
        let client = has_certificate.then(|| ClientCertificate {
            cert: self.certificates.file("client.pem"),
            key: self.certificates.file("client.key"),
        });
        let ca_file = Some(self.certificates.file("ca.pem"));
        let config = client_config(&TlsSettings { ca_file, client, ..TlsSettings::default() }).unwrap();
        offering(&config, protocols).into()
    }

    async fn try_connect(
        &self,
        connector: &TlsConnector,
        name: &str,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let socket = TcpStream::connect(self.listening.address).await.unwrap();
        soon(connector.connect(ServerName::try_from(name.to_owned()).unwrap(), socket)).await
    }

    async fn connect(&self, protocols: &[&[u8]]) -> TlsStream<TcpStream> {
        self.try_connect(&self.connector(protocols, false), "localhost").await.unwrap()
    }

    fn failed(&self, failure: HandshakeFailure) -> u64 {
        self.listening.metrics.handshakes_failed(failure)
    }
}

const GET: &[u8] = b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n";

async fn rest(stream: &mut TlsStream<TcpStream>) -> (Vec<u8>, std::io::Result<()>) {
    let mut all = Vec::new();
    let end = soon(stream.read_to_end(&mut all)).await.map(|_| ());
    (all, end)
}

#[tokio::test]
async fn a_request_comes_over_https_and_the_end_is_told() {
    let world = World::new();
    let mut stream = world.connect(&[]).await;
    let close = b"GET /close HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(&[GET, GET, close].concat()).await.unwrap();
    let (all, end) = rest(&mut stream).await;
    let all = String::from_utf8(all).unwrap();
    assert_eq!(all.matches("HTTP/1.1 200 ").count(), 3, "{all}");
    // Without close_notify, it would be an error.
    assert!(end.is_ok(), "{end:?}");
    assert_eq!(world.listening.lines()[0], "GET localhost /a HTTP/1.1");
}

#[tokio::test]
async fn what_the_client_offers_chooses_the_protocol() {
    let world = World::new();
    for (offered, agreed) in
        [(&[&b"h2"[..], b"http/1.1"][..], Some(&b"h2"[..])), (&[b"http/1.1"], Some(b"http/1.1")), (&[], None)]
    {
        let mut stream = world.connect(offered).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), agreed);
        if agreed == Some(b"h2") {
            let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            let request = http::Request::get("https://localhost/two").body(()).unwrap();
            let response = soon(client.send_request(request, true).unwrap().0).await.unwrap();
            assert_eq!(response.status(), 200);
        } else {
            // There the preface of HTTP/2 is no request.
            stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
            let (all, _) = rest(&mut stream).await;
            assert!(all.starts_with(b"HTTP/1.1 505 "), "{}", all.escape_ascii());
        }
    }
    assert_eq!(world.listening.lines(), ["GET localhost /two HTTP/2.0"]);
}

#[tokio::test]
async fn bodies_of_every_size_arrive_whole_however_slowly_they_are_read() {
    let world = World::new();
    let mut stream = world.connect(&[]).await;
    for _ in 0..3 {
        stream.write_all(b"GET /pieces HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(soon(stream.read_u8()).await.unwrap());
        }
        let (mut body, mut step) = (Vec::new(), 1);
        while body.len() < 2_000_995 {
            let mut part = vec![0; step.min(2_000_995 - body.len())];
            soon(stream.read_exact(&mut part)).await.unwrap();
            body.extend_from_slice(&part);
            step = (step * 3).min(100_000);
            tokio::task::yield_now().await;
        }
        let expected = (0..200_u32).flat_map(|n| vec![n as u8; 10_007]).skip(5).take(2_000_995);
        assert!(body.iter().copied().eq(expected), "it is another");
    }
    let delivered = world.listening.service.delivered.lock().clone();
    assert!(
        delivered.iter().all(|delivery| delivery.complete && delivery.body_bytes == 2_000_995),
        "{delivered:?}"
    );
}

#[tokio::test]
async fn what_is_sent_counts_as_far_as_it_has_left() {
    let limits = Limits { write_idle: Duration::from_millis(300), ..Limits::default() };
    let world = World::with(limits, |_| ClientPolicy::none());
    let mut stream = world.connect(&[]).await;
    // It takes nothing.
    for _ in 0..8 {
        stream.write_all(b"GET /pieces HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    }
    eventually(|| world.listening.metrics.write_stalled.value() == 1).await;
    let (all, end) = rest(&mut stream).await;
    assert!(end.is_err(), "what is cut does not look whole");
    let delivered = world.listening.service.delivered.lock().clone();
    let told: u64 = delivered.iter().map(|delivery| delivery.body_bytes).sum();
    assert!(!delivered.last().unwrap().complete);
    assert!(told <= 8 * 2_000_995 && all.len() as u64 <= told + 100_000, "{told} {}", all.len());
}

#[tokio::test]
async fn a_body_that_breaks_does_not_look_whole() {
    let world = World::new();
    for version in ["1.0", "1.1"] {
        let mut stream = world.connect(&[]).await;
        let request = format!("GET /broken HTTP/{version}\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let (all, end) = rest(&mut stream).await;
        let is_whole = String::from_utf8_lossy(&all).contains("\r\n0\r\n");
        assert!(
            !is_whole && (version == "1.1" || end.is_err()),
            "{version}: {end:?}, {}",
            all.escape_ascii()
        );
    }
}

#[tokio::test]
async fn clear_text_is_told_so() {
    let world = World::new();
    for bytes in [GET, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\0\0\0\0"] {
        let answer = world.listening.send(bytes).await;
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.ends_with(": clear-text\n"), "{answer}");
    }
    assert_eq!(world.failed(HandshakeFailure::ClearText), 3);
    assert_eq!(world.listening.service.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_handshake_that_fails_gets_its_alert_and_is_counted() {
    let world = World::new();
    let alert = |error: std::io::Error| error.to_string();
    let plain = world.connector(&[], false);
    let error = alert(world.try_connect(&plain, "other.example").await.unwrap_err());
    assert!(error.contains("UnrecognisedName"), "{error}");
    let error =
        alert(world.try_connect(&world.connector(&[b"spdy/3"], false), "localhost").await.unwrap_err());
    assert!(error.contains("NoApplicationProtocol"), "{error}");
    // A client that trusts somebody else.
    let stranger = World::new();
    assert!(world.try_connect(&stranger.connector(&[], false), "localhost").await.is_err());
    drop(TcpStream::connect(world.listening.address).await.unwrap());
    let mut half = Client::connect(world.listening.address).await;
    half.write([0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0]).await;
    assert!(half.rest().await.starts_with('\u{15}'), "an alert");
    use HandshakeFailure::{Alert, Gone, Malformed, NoProtocol, UnknownName};
    eventually(|| {
        [UnknownName, NoProtocol, Alert, Gone, Malformed].map(|failure| world.failed(failure)) == [1; 5]
    })
    .await;
    assert!(world.connect(&[]).await.get_ref().1.alpn_protocol().is_none());
}

#[tokio::test]
async fn a_handshake_has_its_time_however_it_drips() {
    let limits = Limits { handshake_time: Duration::from_millis(200), ..Limits::default() };
    let world = World::with(limits, |_| ClientPolicy::none());
    let mut silent = Client::connect(world.listening.address).await;
    silent.write([0x16]).await;
    assert_eq!(silent.rest().await, "");
    eventually(|| world.failed(HandshakeFailure::Timeout) == 1).await;
}

#[tokio::test]
async fn as_many_handshakes_as_may_be_are_under_way() {
    let limits = Limits { handshakes_max: 2, ..Limits::default() };
    let world = World::with(limits, |_| ClientPolicy::none());
    let mut half = Vec::new();
    for _ in 0..2 {
        let mut client = Client::connect(world.listening.address).await;
        client.write([0x16]).await;
        half.push(client);
    }
    eventually(|| world.listening.metrics.open.value() == 2).await;
    let connector = world.connector(&[], false);
    let socket = TcpStream::connect(world.listening.address).await.unwrap();
    let mut third = std::pin::pin!(connector.connect(ServerName::try_from("localhost").unwrap(), socket));
    assert!(tokio::time::timeout(Duration::from_millis(100), third.as_mut()).await.is_err());
    assert_eq!(world.listening.metrics.accepted.value(), 2);
    half.pop();
    assert!(soon(third).await.is_ok());
    assert!(world.listening.metrics.handshakes_paused.value() > 0);
}

#[tokio::test]
async fn a_client_shows_its_certificate_where_it_has_to() {
    let required = |certificates: &Certificates| {
        let files = ClientPolicyFiles {
            authorities: certificates.file("ca.pem"),
            revoked: Vec::new(),
            is_required: true,
        };
        ClientPolicy::read(&files, &provider()).unwrap()
    };
    let world = World::with(Limits::default(), required);
    let mut stream = world.try_connect(&world.connector(&[], true), "localhost").await.unwrap();
    stream.write_all(GET).await.unwrap();
    let mut answer = [0; 12];
    soon(stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    // In TLS 1.3 the client learns of it by its first read.
    let mut without = world.try_connect(&world.connector(&[], false), "localhost").await.unwrap();
    let (_, end) = rest(&mut without).await;
    assert!(end.unwrap_err().to_string().contains("CertificateRequired"));
    eventually(|| world.failed(HandshakeFailure::NoClientCertificate) == 1).await;
}
