//! TLS to an origin: who is trusted, who we are, what is spoken inside, what an end without `close_notify` means.
//!
//! A scripted origin stands behind a front that speaks TLS. Two servers here are made by hand: [`answered_with`] answers a
//! handshake with bytes that are no TLS, and [`serve_both`] speaks HTTP/2 or HTTP/1.1, as larder chooses.

use std::path::Path;
use std::sync::Arc;

use crate::sockets::contents::read;
use crate::sockets::front;
use crate::sockets::larder::{Larder, get, metric, request};
use crate::sockets::origins::{fine, in_turn};
use crate::sockets::peer::{Manner, Peer};
use crate::sockets::trust::Trust;
use crate::{Origin, OriginSettings, OriginState, Protocol, ServerAddress, ServerState, SetupError};
use bytes::Bytes;
use h2::Reason;
use h2::server::SendResponse;
use http::{Method, Response};
use larder_http::body::{Body, BodyError};
use larder_testkit::origin::{Answer, Origin as ScriptedOrigin};
use larder_tls::{ClientCertificate, TlsSettings};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What servers of TLS were asked for: a name, and what was chosen.
type Asked = Arc<Mutex<Vec<(Option<String>, Option<String>)>>>;

/// An origin behind TLS, and where it is.
struct Served {
    origin: ScriptedOrigin,
    address: ServerAddress,
    asked: Asked,
}

async fn serve(acceptor: TlsAcceptor, answers: impl Into<Vec<Answer>>) -> Served {
    let (origin, asked) = (in_turn(answers), Asked::default());
    let log = asked.clone();
    let open = move |socket| {
        let (acceptor, log) = (acceptor.clone(), log.clone());
        async move {
            let stream = acceptor.accept(socket).await?;
            let session = stream.get_ref().1;
            let protocol = session.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned());
            log.lock().push((session.server_name().map(str::to_owned), protocol));
            Ok(stream)
        }
    };
    let address = front::before(&origin, front::https, open).await;
    Served { origin, address, asked }
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
    let server = serve(trust.acceptor(&["h2", "http/1.1"]), [fine("one"), fine("two")]).await;
    let larder = larder(&server.address, Protocol::Http1, trusting(&trust));
    for (text, reused) in [("one", false), ("two", true)] {
        let response = larder.origin.send(get("/")).await.unwrap();
        assert_eq!(response.reused, reused, "{text}");
        assert_eq!(read(response.body).await.0, text.as_bytes());
    }
    assert_eq!(*server.asked.lock(), [(Some("localhost".to_owned()), Some("http/1.1".to_owned()))]);
    larder.ends_without_leaks().await;

    // What did not sign it: another authority of the same name.
    let namesake = Trust::new();
    let server = serve(trust.acceptor(&[]), [fine("never")]).await;
    let larder =
        Larder::new(&server.address, |settings| settings.tls.ca_file = Some(namesake.file("ca.pem")));
    let error = larder.origin.send(get("/")).await.unwrap_err();
    assert_eq!((error.token(), error.is_dead()), ("tls-untrusted", true));
    assert_eq!(server.origin.log().count(), 0);
    larder.ends_without_leaks().await;
}

/// What comes of a request to a server with `shown`'s certificate where the file at `trusted` is what larder trusts.
async fn met(shown: &Trust, trusted: &Path, server_name: Option<&str>) -> &'static str {
    let server = serve(shown.acceptor(&[]), [fine("you")]).await;
    let larder = Larder::new(&server.address, |settings| {
        settings.tls.ca_file = Some(trusted.to_path_buf());
        settings.tls.server_name = server_name.map(str::to_owned);
    });
    let came = match larder.origin.send(get("/")).await {
        Ok(response) => {
            assert_eq!(read(response.body).await.0, b"you");
            "fine"
        }
        Err(error) => {
            assert!(error.is_dead() && crate::OriginError::TOKENS.contains(&error.token()), "{error:?}");
            error.token()
        }
    };
    larder.ends_without_leaks().await;
    came
}

#[tokio::test]
async fn why_a_certificate_is_not_believed_is_told_in_a_word() {
    use rcgen::date_time_ymd;
    let good = Trust::new();
    let old = Trust::with("localhost", |params| {
        (params.not_before, params.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
    });
    let young = Trust::with("localhost", |params| {
        (params.not_before, params.not_after) = (date_time_ymd(2201, 1, 1), date_time_ymd(2202, 1, 1));
    });
    let other = Trust::of("other.test");
    for (shown, expected) in
        [(&good, "fine"), (&old, "tls-expired"), (&young, "tls-not-yet-valid"), (&other, "tls-name")]
    {
        assert_eq!(met(shown, &shown.file("ca.pem"), None).await, expected);
        // A certificate that is pinned is held to the same.
        assert_eq!(met(shown, &shown.file("server.pem"), None).await, expected);
    }
    assert_eq!(met(&other, &other.file("server.pem"), Some("other.test")).await, "fine");
    assert_eq!(met(&good, &other.file("ca.pem"), None).await, "tls-untrusted");
}

#[tokio::test]
async fn a_servers_own_certificate_vouches_for_itself_alone() {
    let (one, other) = (Trust::new(), Trust::new());
    assert_eq!(met(&one, &one.file("server.pem"), None).await, "fine");
    assert_eq!(met(&other, &one.file("server.pem"), None).await, "tls-untrusted");
    // What such a certificate's key signs is not believed.
    let signed_by_it = one.signed_by_the_server();
    assert_eq!(met(&signed_by_it, &one.file("server.pem"), None).await, "tls-untrusted");
    // One that signed itself, as most tools make them, is an authority and a server's at once.
    let itself = Trust::self_signed();
    assert_eq!(met(&itself, &itself.file("server.pem"), None).await, "fine");
    assert_eq!(met(&Trust::self_signed(), &itself.file("server.pem"), None).await, "tls-untrusted");
    // Several in one file.
    let both = std::fs::read_to_string(one.file("server.pem")).unwrap()
        + &std::fs::read_to_string(other.file("ca.pem")).unwrap();
    let file = one.file("both.pem");
    std::fs::write(&file, both).unwrap();
    assert_eq!([met(&one, &file, None).await, met(&other, &file, None).await], ["fine", "fine"]);
}

/// What comes of a handshake with a server that sends `bytes` and closes.
async fn answered_with(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.read(&mut [0; 4096]).await;
            let _ = socket.write_all(bytes).await;
            let _ = socket.shutdown().await;
            let _ = socket.read_to_end(&mut Vec::new()).await;
        }
    });
    let trust = Trust::new();
    let address = ServerAddress::Https { host: "localhost".into(), port };
    let larder = Larder::new(&address, |settings| settings.tls = trusting(&trust));
    let error = larder.origin.send(get("/")).await.unwrap_err();
    larder.ends_without_leaks().await;
    format!("{} {}", error.token(), error.error)
}

#[tokio::test]
async fn why_a_server_ends_a_handshake_is_told_in_a_word() {
    for (bytes, expected) in [
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(),
            "tls-protocol tls handshake failed: the server does not speak TLS",
        ),
        (
            b"\x15\x03\x03\0\x02\x02\x28",
            "tls-cipher tls handshake failed: the server and larder have no cipher",
        ),
        (b"\x15\x03\x03\0\x02\x02\x46", "tls-protocol "),
        (b"\x15\x03\x03\0\x02\x02\x70", "tls-refused "),
        (b"\x15\x03\x03\0\x02\x02\x78", "tls-alpn "),
        (b"", "tls-closed tls handshake failed: the server closed"),
    ] {
        let came = answered_with(bytes).await;
        assert!(came.starts_with(expected), "{bytes:?}: {came}");
    }
}

#[tokio::test]
async fn a_tls_body_without_length_needs_an_orderly_close() {
    let trust = Trust::new();
    let head = "HTTP/1.1 200 OK\r\n\r\nabc";
    // A reset ends without close_notify, a close with it.
    let answer = || Answer::literal(head).wait_for("end");
    for (answer, expected) in [(answer(), Ok(())), (answer().reset(), Err(BodyError::Cut))] {
        let server = serve(trust.acceptor(&[]), [answer]).await;
        let larder = larder(&server.address, Protocol::Http1, trusting(&trust));
        let response = larder.origin.send(get("/")).await.unwrap();
        server.origin.gates().release("end");
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
        let server = serve(trust.acceptor(offered), [fine("one"), fine("two")]).await;
        let larder = larder(&server.address, Protocol::Auto, trusting(&trust));
        for text in ["one", "two"] {
            let response = larder.origin.send(get("/")).await.unwrap();
            assert_eq!(read(response.body).await.0, text.as_bytes());
        }
        assert_eq!(server.asked.lock().first().unwrap().1.as_deref(), chosen);
        assert_eq!(server.origin.log().connections(), 1);
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn a_server_without_http2_is_an_error_where_nothing_else_is_allowed() {
    let trust = Trust::new();
    for offered in [&["http/1.1"][..], &[]] {
        let server = serve(trust.acceptor(offered), [fine("no")]).await;
        let larder = larder(&server.address, Protocol::Http2, trusting(&trust));
        let error = larder.origin.send(get("/")).await.unwrap_err();
        assert_eq!((error.token(), error.is_dead()), ("tls-alpn", true), "{offered:?}");
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn websocket_gets_a_connection_that_speaks_http1() {
    let trust = Trust::new();
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                  Sec-WebSocket-Accept: x\r\n\r\n";
    for protocol in [Protocol::Auto, Protocol::Http2] {
        let switch = Answer::literal(switch).keep_open();
        let server = serve(trust.acceptor(&["h2", "http/1.1"]), [switch]).await;
        let larder = larder(&server.address, protocol, trusting(&trust));
        let mut request = get("/chat");
        request.websocket = true;
        let response = larder.origin.send(request).await.unwrap();
        assert!(response.tunnel.is_some());
        assert_eq!(server.asked.lock().first().unwrap().1.as_deref(), Some("http/1.1"), "{protocol:?}");
        drop(response);
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn a_server_may_ask_who_we_are() {
    let trust = Trust::new();
    let stranger = Trust::new();
    for (client, is_served) in [(Some(trust.client()), true), (Some(stranger.client()), false), (None, false)]
    {
        let server = serve(trust.asking_acceptor(&[]), [fine("you")]).await;
        let tls = TlsSettings { client: client.clone(), ..trusting(&trust) };
        let larder = larder(&server.address, Protocol::Http1, tls);
        match larder.origin.send(get("/")).await {
            Ok(response) => {
                assert!(is_served, "{client:?}");
                assert_eq!(read(response.body).await.0, b"you");
            }
            // A server of TLS 1.3 refuses after we believe the handshake to be over.
            Err(error) => {
                assert!(!is_served && error.is_dead(), "{client:?}: {error:?}");
                // One that bears its authority's name, and was signed by another, fails in the server's arithmetic.
                let expected = if client.is_some() { "tls-refused" } else { "tls-client-certificate" };
                assert_eq!(error.token(), expected, "{error:?}");
            }
        }
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn a_server_can_be_called_otherwise_than_its_address() {
    let trust = Trust::of("internal.test");
    for name in [Some("internal.test"), Some("other.test"), None] {
        let server = serve(trust.acceptor(&[]), [fine("you")]).await;
        let tls = TlsSettings { server_name: name.map(str::to_owned), ..trusting(&trust) };
        let larder = larder(&server.address, Protocol::Http1, tls);
        let outcome = larder.origin.send(get("/")).await;
        if name == Some("internal.test") {
            assert_eq!(read(outcome.unwrap().body).await.0, b"you");
            assert_eq!(server.asked.lock().first().unwrap().0.as_deref(), name);
        } else {
            assert_eq!(outcome.unwrap_err().token(), "tls-name", "{name:?}");
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
        Origin::new(Arc::new(settings), OriginState::new()).map(|_| ())
    };
    for path in [Path::new("/nonexistent/ca.pem"), &trust.file("server.key")] {
        let outcome = check(&|tls| tls.ca_file = Some(path.into()));
        assert!(matches!(outcome, Err(SetupError::Tls(larder_tls::SetupError::CaFile { .. }))), "{path:?}");
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
            Err(SetupError::Tls(larder_tls::SetupError::ClientCertificate { path, reason })) => {
                assert!(path.ends_with(blamed) && reason.contains(part), "{path}: {reason}");
            }
            other => panic!("{cert:?} {key:?}: {other:?}"),
        }
    }
    assert!(check(&|tls| tls.client = Some(trust.client())).is_ok());
}

#[tokio::test]
async fn files_are_read_for_each_new_version_of_the_settings_and_never_for_the_one_in_force() {
    let (trust, other) = (Trust::new(), Trust::new());
    let server = serve(trust.acceptor(&[]), [Answer { close: true, ..fine("x") }]).await;
    let before = larder(&server.address, Protocol::Http1, trusting(&trust));
    let status = async |larder: &Larder| match larder.origin.send(get("/")).await {
        Ok(response) => read(response.body).await.1.map(|()| "good").unwrap(),
        Err(error) => error.token(),
    };
    std::fs::copy(other.file("ca.pem"), trust.file("ca.pem")).unwrap();
    // The same settings once more, as a reload makes them.
    let after = before.after(Arc::new((**before.origin.settings()).clone()));
    assert_eq!((status(&before).await, status(&after).await), ("good", "tls-untrusted"));
    drop(after);
    before.ends_without_leaks().await;
}

/// A server that speaks both versions: does `act` for each stream, and sends `http1` for whatever else it is asked.
/// Remembers the version of each connection.
async fn serve_both(
    acceptor: TlsAcceptor,
    act: fn(SendResponse<Bytes>),
    http1: &'static str,
) -> (ServerAddress, Arc<Mutex<Vec<&'static str>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address =
        ServerAddress::Https { host: "localhost".into(), port: listener.local_addr().unwrap().port() };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (acceptor, log) = (acceptor.clone(), log.clone());
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(socket).await else { return };
                if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                    log.lock().push("h2");
                    let Ok(mut server) = h2::server::handshake(stream).await else { return };
                    while let Some(Ok((_, respond))) = server.accept().await {
                        act(respond);
                    }
                } else {
                    log.lock().push("http/1.1");
                    let mut seen = Vec::new();
                    while !seen.ends_with(b"\r\n\r\n") && stream.read_buf(&mut seen).await.unwrap_or(0) > 0 {}
                    let _ = stream.write_all(http1.as_bytes()).await;
                    let _ = stream.read_to_end(&mut seen).await;
                }
            });
        }
    });
    (address, seen)
}

fn websocket() -> crate::OriginRequest {
    let mut request = get("/chat");
    request.websocket = true;
    request
}

const FINE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine";

#[tokio::test]
async fn what_a_server_wants_over_http1_is_sent_so_where_it_reads_and_both_are_allowed() {
    let trust = Trust::new();
    let refuse = |mut respond: SendResponse<Bytes>| respond.send_reset(Reason::HTTP_1_1_REQUIRED);
    for (protocol, method, expected) in [
        (Protocol::Auto, Method::GET, Ok(["h2", "http/1.1"].as_slice())),
        // It does not promise that it did nothing.
        (Protocol::Auto, Method::POST, Err(["h2"].as_slice())),
        (Protocol::Http2, Method::GET, Err(["h2"].as_slice())),
    ] {
        let (address, seen) = serve_both(trust.acceptor(&["h2", "http/1.1"]), refuse, FINE).await;
        let larder = larder(&address, protocol, trusting(&trust));
        match larder.origin.send(request(method.clone(), "/", Body::Empty)).await {
            Ok(response) => {
                assert_eq!(read(response.body).await.0, b"fine");
                assert_eq!(Ok(seen.lock().as_slice()), expected, "{protocol:?} {method}");
            }
            Err(error) => {
                assert_eq!(error.token(), "closed");
                assert_eq!(Err(seen.lock().as_slice()), expected, "{protocol:?} {method}");
            }
        }
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn a_websocket_says_nothing_about_what_the_server_chooses() {
    let trust = Trust::new();
    let answer = |mut respond: SendResponse<Bytes>| {
        respond.send_response(Response::new(()), true).unwrap();
    };
    let refusal = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let (address, seen) = serve_both(trust.acceptor(&["h2", "http/1.1"]), answer, refusal).await;
    let larder = larder(&address, Protocol::Auto, trusting(&trust));
    assert_eq!(larder.origin.send(websocket()).await.unwrap().status, 403);
    let mut burst = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let origin = larder.origin.clone();
        burst.spawn(async move { origin.send(get("/")).await.unwrap().status });
    }
    assert!(burst.join_all().await.iter().all(|status| *status == 200));
    assert_eq!(*seen.lock(), ["http/1.1", "h2"], "a burst shares one connection");
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_server_without_http1_is_not_to_blame_for_websockets() {
    let trust = Trust::new();
    let manner = Manner { tls: Some(trust.acceptor(&["h2"])), ..Manner::default() };
    let peer = Peer::start(manner, |stream| async move { stream.answer("fine") }).await;
    for protocol in [Protocol::Auto, Protocol::Http2] {
        let larder = larder(&peer.address, protocol, trusting(&trust));
        for _ in 0..6 {
            let error = larder.origin.send(websocket()).await.unwrap_err();
            assert_eq!((error.token(), error.is_dead()), ("no-websocket", false));
        }
        assert!(larder.states().iter().all(|state| *state == ServerState::Up), "{:?}", larder.states());
        assert_eq!(metric(&larder.state, "larder_origin_ejections_total"), 0);
        let response = larder.origin.send(get("/")).await.unwrap();
        assert_eq!(read(response.body).await.0, b"fine");
        larder.ends_without_leaks().await;
    }
}
