//! The PROXY header as a server receives it: first of all, and once per client.

use std::sync::Arc;

use crate::sockets::contents::read;
use crate::sockets::front::{self, Headers, take_header};
use crate::sockets::larder::{Larder, get};
use crate::sockets::origins::{ended, fine, in_turn};
use crate::sockets::trust::Trust;
use crate::{Origin, OriginRequest, OriginSettings, OriginState, Protocol, ServerAddress, SetupError};
use larder_http::message::Peer;

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// 192.0.2.1:258 to 198.51.100.7:443.
const FROM_CLIENT: &[u8] = b"\x21\x11\0\x0c\xc0\0\x02\x01\xc6\x33\x64\x07\x01\x02\x01\xbb";
const FROM_US: &[u8] = b"\x20\0\0\0";

fn from_client(target: &'static str) -> OriginRequest {
    let mut request = get(target);
    let (remote, local) = ("192.0.2.1:258".parse().unwrap(), "198.51.100.7:443".parse().unwrap());
    request.peer = Some(Peer::clear(remote, local));
    request
}

#[tokio::test]
async fn each_connection_names_one_client_and_serves_one_request() {
    let (origin, headers) = (in_turn([fine("fine")]), Headers::default());
    let log = headers.clone();
    let address = front::before(&origin, front::http, move |socket| take_header(socket, log.clone())).await;
    let larder = Larder::new(&address, |settings| settings.proxy_protocol = true);
    for request in [from_client("/"), from_client("/"), get("/")] {
        let response = larder.origin.send(request).await.unwrap();
        assert!(!response.reused);
        assert_eq!(read(response.body).await.0, b"fine");
    }
    for connection in 1..=3 {
        let received = ended(&origin, connection).await;
        assert_eq!(received, "GET / HTTP/1.1\r\nhost: app.example\r\n\r\n");
    }
    let expected = [FROM_CLIENT, FROM_CLIENT, FROM_US].map(|rest| [SIGNATURE, rest].concat());
    assert_eq!(*headers.lock(), expected);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn the_header_comes_before_the_handshake() {
    let trust = Trust::new();
    let (origin, headers) = (in_turn([fine("fine")]), Headers::default());
    let (acceptor, log) = (trust.acceptor(&[]), headers.clone());
    let open = move |socket| {
        let (acceptor, log) = (acceptor.clone(), log.clone());
        async move { acceptor.accept(take_header(socket, log).await?).await }
    };
    let address = front::before(&origin, front::https, open).await;
    let larder = Larder::new(&address, |settings| {
        settings.proxy_protocol = true;
        settings.tls.ca_file = Some(trust.file("ca.pem"));
    });
    let response = larder.origin.send(from_client("/")).await.unwrap();
    assert_eq!(read(response.body).await.0, b"fine");
    assert_eq!(*headers.lock(), [[SIGNATURE, FROM_CLIENT].concat()]);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn one_client_per_connection_and_many_streams_do_not_go_together() {
    for protocol in [Protocol::Http2, Protocol::Auto] {
        let address = ServerAddress::Http { host: "127.0.0.1".into(), port: 1 };
        let mut settings = OriginSettings::new("app", vec![address]);
        settings.proxy_protocol = true;
        settings.protocol = protocol;
        let outcome = Origin::new(Arc::new(settings), OriginState::new());
        assert!(matches!(outcome, Err(SetupError::Conflict(_))), "{protocol:?}");
    }
}
