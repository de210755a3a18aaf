//! Answers of authorities that are no answers, from a server with a certificate of its own.

use std::net::{IpAddr, Ipv4Addr};

use larder_testkit::certificates::Certificates;
use larder_tls::TlsSettings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

/// A server that answers each connection's first request with these bytes, again and again where they are `endless`, and then closes.
async fn server(answer: Vec<u8>, endless: bool) -> (String, CaClient, Certificates) {
    let certificates = Certificates::new();
    let config = certificates.server_config();
    let listener = TcpListener::bind((IpAddr::V4(Ipv4Addr::LOCALHOST), 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let acceptor = TlsAcceptor::from(config);
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(socket).await else { continue };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => break,
                }
            }
            while stream.write_all(&answer).await.is_ok() && endless {}
            let _ = stream.shutdown().await;
        }
    });
    let settings = TlsSettings { ca_file: Some(certificates.file("ca.pem")), ..TlsSettings::default() };
    let connector = Arc::new(Connector::new(settings).unwrap());
    (format!("https://localhost:{port}/dir?a=b"), CaClient::new(connector, Clock::default()), certificates)
}

async fn get(url: &str, client: &CaClient) -> Result<BytesResponse, String> {
    let request = Request::builder().uri(url).body(Body::default()).unwrap();
    client
        .request(request)
        .await
        .map_err(|error| crate::Failure::of("get", &error, client.last()).to_string())
}

#[tokio::test]
async fn an_answer_comes_whole() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nRetry-After: 99999999999999999999999\r\n\r\nok";
    let (url, client, _certificates) = server(head.to_vec(), false).await;
    for _ in 0..2 {
        let mut answer = get(&url, &client).await.unwrap();
        assert_eq!(answer.body.into_bytes().await.unwrap(), "ok");
        assert_eq!(answer.parts.headers[RETRY_AFTER], RETRY_AFTER_MAX.to_string());
        assert_eq!(client.last().retry_after, Some(Duration::from_secs(RETRY_AFTER_MAX)));
    }
}

#[track_caller]
fn fails_as(result: Result<BytesResponse, String>, kind: &str) {
    let failure = result.err().expect("no answer");
    assert!(failure.starts_with(kind), "{failure}");
}

#[tokio::test]
async fn garbage_is_an_error_of_its_kind() {
    let (url, client, _certificates) = server(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), false).await;
    fails_as(get(&url, &client).await, "answer: ");
    let (url, client, _certificates) = server(Vec::new(), false).await;
    fails_as(get(&url, &client).await, "unreachable: ");
    let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nshort".to_vec();
    let (url, client, _certificates) = server(cut, false).await;
    fails_as(get(&url, &client).await, "unreachable: ");
    let announced = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n".to_vec();
    let (url, client, _certificates) = server(announced, true).await;
    fails_as(get(&url, &client).await, "answer: ");
    // A body without end, and a head without end.
    let open = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let (url, client, _certificates) = server(open, true).await;
    fails_as(get(&url, &client).await, "answer: ");
    let (url, client, _certificates) = server(b"HTTP/1.1 200 OK\r\nA: b\r\n".to_vec(), false).await;
    fails_as(get(&url, &client).await, "unreachable: ");
}

#[tokio::test]
async fn a_server_that_is_not_trusted_gets_no_request() {
    let (url, _, _certificates) = server(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), false).await;
    let others = Certificates::new();
    let settings = TlsSettings { ca_file: Some(others.file("ca.pem")), ..TlsSettings::default() };
    let client = CaClient::new(Arc::new(Connector::new(settings).unwrap()), Clock::default());
    fails_as(get(&url, &client).await, "unreachable: get: no secure connection");
}

#[tokio::test]
async fn urls_of_the_authority_are_https() {
    let (_, client, _certificates) = server(Vec::new(), false).await;
    for url in ["http://localhost:1/", "/path", "localhost:1"] {
        fails_as(get(url, &client).await, "answer: ");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_come_is_not_waited_for() {
    // With paused time the limit passes as soon as all tasks wait.
    let (url, client, _certificates) =
        server(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n".to_vec(), false).await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    fails_as(get(&silent, &client).await, "unreachable: ");
    drop(url);
}

#[test]
fn retry_after_is_a_bounded_number_of_seconds() {
    let now = WallTime::from_secs(784_111_777);
    for (text, expected) in [
        ("120", Some(120)),
        (" 7 ", Some(7)),
        ("18446744073709551615", Some(RETRY_AFTER_MAX)),
        ("99999999999999999999999999", Some(RETRY_AFTER_MAX)),
        ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
        ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
        ("Fri, 31 Dec 9999 23:59:59 GMT", Some(RETRY_AFTER_MAX)),
        ("", None),
        ("-1", None),
        ("soon", None),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_str(text).unwrap());
        assert_eq!(retry_after(&headers, now), expected, "{text}");
    }
    assert_eq!(retry_after(&HeaderMap::new(), now), None);
}
