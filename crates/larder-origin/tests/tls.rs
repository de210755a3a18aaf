//! TLS to an origin: who is trusted, who we are, what is spoken inside, what an end without `close_notify` means.

#![allow(clippy::unwrap_used, missing_docs)]

mod peer;
mod scripted;
mod trust;

use std::path::Path;
use std::sync::Arc;

use larder_http::body::BodyError;
use larder_origin::{
    ClientCertificate, Origin, OriginSettings, Protocol, ServerAddress, SetupError, Shared, TlsSettings,
};
use parking_lot::Mutex;
use peer::{Manner, Peer};
use scripted::{Larder, Scripted, Step, answer, get, read, send};
use tokio_rustls::TlsAcceptor;
use trust::Trust;

/// What servers of TLS were asked for: a name, and what was chosen.
type Asked = Arc<Mutex<Vec<(Option<String>, Option<String>)>>>;

async fn serve(acceptor: TlsAcceptor, scripts: Vec<Vec<Step>>) -> (Scripted, Asked) {
    let asked = Asked::default();
    let log = asked.clone();
    let wrap = move |socket| {
        let (acceptor, log) = (acceptor.clone(), log.clone());
        async move {
            let stream = acceptor.accept(socket).await?;
            let session = stream.get_ref().1;
            let protocol = session.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned());
            log.lock().push((session.server_name().map(str::to_owned), protocol));
            Ok(stream)
        }
    };
    (Scripted::start_wrapped(scripts, wrap).await, asked)
}

fn trusting(trust: &Trust) -> TlsSettings {
    TlsSettings { ca_file: Some(trust.file("ca.pem")), ..TlsSettings::default() }
}

fn larder(address: &ServerAddress, protocol: Protocol, tls: TlsSettings) -> Larder {
    Larder::new(address, |settings| {
        settings.protocol = protocol;
        settings.tls = tls;
    })
}

#[tokio::test]
async fn tls_is_verified_against_the_given_authority() {
    let trust = Trust::new();
    let steps = vec![Step::Head, answer("one"), Step::Head, answer("two")];
    let (scripted, asked) = serve(trust.acceptor(&["h2", "http/1.1"]), vec![steps]).await;
    let larder = larder(&scripted.address, Protocol::Http1, trusting(&trust));
    for (text, reused) in [("one", false), ("two", true)] {
        let response = larder.origin.send(get("/")).await.unwrap();
        assert_eq!(response.reused, reused, "{text}");
        assert_eq!(read(response.body).await.0, text.as_bytes());
    }
    assert_eq!(*asked.lock(), [(Some("localhost".to_owned()), Some("http/1.1".to_owned()))]);
    larder.ends_without_leaks().await;

    // What did not sign it: another authority of the same name, and the certificate itself.
    let namesake = Trust::new();
    for other in [namesake.file("ca.pem"), trust.file("server.pem")] {
        let (scripted, _) = serve(trust.acceptor(&[]), vec![]).await;
        let larder = Larder::new(&scripted.address, |settings| settings.tls.ca_file = Some(other.clone()));
        let error = larder.origin.send(get("/")).await.unwrap_err();
        assert_eq!((error.token(), error.is_dead()), ("tls", true), "{other:?}");
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn a_tls_body_without_length_needs_an_orderly_close() {
    let trust = Trust::new();
    let head = "HTTP/1.1 200 OK\r\n\r\nabc";
    // `Reset` drops the socket without close_notify; `Close` sends it.
    for (end, expected) in [(Step::Close, Ok(())), (Step::Reset, Err(BodyError::Cut))] {
        let (scripted, _) = serve(trust.acceptor(&[]), vec![vec![Step::Head, send(head), end]]).await;
        let larder = larder(&scripted.address, Protocol::Http1, trusting(&trust));
        let response = larder.origin.send(get("/")).await.unwrap();
        assert_eq!(read(response.body).await, (b"abc".to_vec(), expected));
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn the_server_chooses_among_what_is_allowed() {
    let trust = Trust::new();
    // A server goes by its own order; against its wish it speaks HTTP/2 where nothing else is offered.
    for (protocol, preferred) in
        [(Protocol::Auto, &["h2", "http/1.1"][..]), (Protocol::Http2, &["http/1.1", "h2"][..])]
    {
        let manner = Manner { tls: Some(trust.acceptor(preferred)), ..Manner::default() };
        let peer = Peer::start(manner, |stream| async move {
            stream.stage.note(stream.request.uri().to_string());
            stream.answer("by http/2");
        })
        .await;
        let larder = larder(&peer.address, protocol, trusting(&trust));
        for _ in 0..2 {
            let response = larder.origin.send(get("/a")).await.unwrap();
            assert_eq!(read(response.body).await.0, b"by http/2", "{protocol:?}");
        }
        assert_eq!(peer.stage.connections(), 1);
        assert_eq!(peer.stage.notes(), ["https://app.example/a", "https://app.example/a"]);
        larder.ends_without_leaks().await;
    }
    for (offered, chosen) in [(&["http/1.1"][..], Some("http/1.1")), (&[], None)] {
        let steps = vec![Step::Head, answer("one"), Step::Head, answer("two")];
        let (scripted, asked) = serve(trust.acceptor(offered), vec![steps]).await;
        let larder = larder(&scripted.address, Protocol::Auto, trusting(&trust));
        for text in ["one", "two"] {
            let response = larder.origin.send(get("/")).await.unwrap();
            assert_eq!(read(response.body).await.0, text.as_bytes());
        }
        assert_eq!(asked.lock().first().unwrap().1.as_deref(), chosen);
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn a_server_without_http2_is_an_error_where_nothing_else_is_allowed() {
    let trust = Trust::new();
    for offered in [&["http/1.1"][..], &[]] {
        let (scripted, _) = serve(trust.acceptor(offered), vec![vec![Step::Head, answer("no")]]).await;
        let larder = larder(&scripted.address, Protocol::Http2, trusting(&trust));
        let error = larder.origin.send(get("/")).await.unwrap_err();
        assert_eq!((error.token(), error.is_dead()), ("tls", true), "{offered:?}");
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn websocket_gets_a_connection_that_speaks_http1() {
    let trust = Trust::new();
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                  Sec-WebSocket-Accept: x\r\n\r\n";
    let steps = vec![Step::Head, send(switch)];
    let (scripted, asked) = serve(trust.acceptor(&["h2", "http/1.1"]), vec![steps]).await;
    let larder = larder(&scripted.address, Protocol::Auto, trusting(&trust));
    let mut request = get("/chat");
    request.websocket = true;
    let response = larder.origin.send(request).await.unwrap();
    assert!(response.tunnel.is_some());
    assert_eq!(asked.lock().first().unwrap().1.as_deref(), Some("http/1.1"));
    drop(response);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_server_may_ask_who_we_are() {
    let trust = Trust::new();
    let stranger = Trust::new();
    for (client, is_served) in [(Some(trust.client()), true), (Some(stranger.client()), false), (None, false)]
    {
        let (scripted, _) = serve(trust.asking_acceptor(&[]), vec![vec![Step::Head, answer("you")]]).await;
        let tls = TlsSettings { client: client.clone(), ..trusting(&trust) };
        let larder = larder(&scripted.address, Protocol::Http1, tls);
        match larder.origin.send(get("/")).await {
            Ok(response) => {
                assert!(is_served, "{client:?}");
                assert_eq!(read(response.body).await.0, b"you");
            }
            // A server of TLS 1.3 refuses after we believe the handshake to be over.
            Err(error) => assert!(!is_served && error.is_dead(), "{client:?}: {error:?}"),
        }
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn a_server_can_be_called_otherwise_than_its_address() {
    let trust = Trust::of("internal.test");
    for name in [Some("internal.test"), Some("other.test"), None] {
        let (scripted, asked) = serve(trust.acceptor(&[]), vec![vec![Step::Head, answer("you")]]).await;
        let tls = TlsSettings { server_name: name.map(str::to_owned), ..trusting(&trust) };
        let larder = larder(&scripted.address, Protocol::Http1, tls);
        let outcome = larder.origin.send(get("/")).await;
        if name == Some("internal.test") {
            assert_eq!(read(outcome.unwrap().body).await.0, b"you");
            assert_eq!(asked.lock().first().unwrap().0.as_deref(), name);
        } else {
            assert_eq!(outcome.unwrap_err().token(), "tls", "{name:?}");
        }
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn files_that_cannot_be_used_are_found_at_start() {
    let trust = Trust::new();
    let stranger = Trust::new();
    let check = |change: &dyn Fn(&mut TlsSettings)| {
        let address = ServerAddress::Https { host: "localhost".into(), port: 1 };
        let mut settings = OriginSettings::new("app", vec![address]);
        settings.tls = trusting(&trust);
        change(&mut settings.tls);
        Origin::new(Arc::new(settings), Shared::new()).map(|_| ())
    };
    for path in [Path::new("/nonexistent/ca.pem"), &trust.file("server.key")] {
        let outcome = check(&|tls| tls.ca_file = Some(path.into()));
        assert!(matches!(outcome, Err(SetupError::CaFile { .. })), "{path:?}");
    }
    let name = check(&|tls| tls.server_name = Some("not a name".to_owned()));
    assert!(matches!(name, Err(SetupError::ServerName(_))));

    let nowhere = Path::new("/nonexistent").to_path_buf();
    let (cert, key) = (trust.file("client.pem"), trust.file("client.key"));
    for (cert, key, blamed, part) in [
        (&nowhere, &key, "/nonexistent", ""),
        (&cert, &nowhere, "/nonexistent", ""),
        (&key, &key, "client.key", "no certificates"),
        (&cert, &cert, "client.pem", "no private key"),
        (&cert, &stranger.file("client.key"), "client.key", "not the key of"),
    ] {
        let outcome = check(&|tls| {
            tls.client = Some(ClientCertificate { cert: cert.clone(), key: key.clone() });
        });
        match outcome {
            Err(SetupError::ClientCertificate { path, reason }) => {
                assert!(path.ends_with(blamed) && reason.contains(part), "{path}: {reason}");
            }
            other => panic!("{cert:?} {key:?}: {other:?}"),
        }
    }
    assert!(check(&|tls| tls.client = Some(trust.client())).is_ok());
}
