//! What the client refuses to read, and HTTP/2 against a server made of the `h2` crate.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::origin::{Answer, Origin, PathScript};

const LIMIT: Duration = Duration::from_secs(5);

async fn check(raw: &str, accepted: bool) {
    let origin = Origin::simple(vec![PathScript::new("*", [Answer::literal(raw)])]).unwrap();
    let mut client = Connection::open(origin.addr(), LIMIT).await.unwrap();
    let answer = client.exchange(&Request::new("GET", "/", "example.test")).await;
    let whole = answer.is_ok_and(|answer| answer.end == End::Complete);
    assert_eq!(whole, accepted, "{raw:?}");
}

#[tokio::test]
async fn only_well_formed_answers_are_accepted() {
    check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", true).await;
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nT: x\r\n\r\n", true).await;
    check("HTTP/1.1 204 No Content\r\n\r\n", true).await;
    check("HTTP/1.1 200 \r\n\r\nuntil the end", true).await;
    check("HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", true).await;
    check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", false).await;
    check("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nab", false).await;
    check("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", false).await;
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n0\r\n\r\n", false).await;
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n", false).await;
    check("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false).await;
    check("HTTP/1.1 20 OK\r\n\r\n", false).await;
    check("HTTP/1.1 200 OK\r\nA : b\r\n\r\n", false).await;
    check("HTTP/2 200\r\n\r\n", false).await;
}

#[tokio::test]
async fn what_comes_can_be_read_as_it_is() {
    let answers = [
        Answer::literal("HTTP/1.1 200 OK\r\nA : b\r\n\r\none").wait_for("rest").send("two"),
        Answer::literal("three").wait_for("end").reset(),
    ];
    let origin = Origin::simple(vec![PathScript::new("*", answers)]).unwrap();
    let get = Request::new("GET", "/", "example.test").to_http1();
    let mut client = Connection::open(origin.addr(), LIMIT).await.unwrap();
    client.write(&get).await.unwrap();
    assert_eq!(client.read_until(b"\r\n\r\n").await.unwrap(), "HTTP/1.1 200 OK\r\nA : b\r\n\r\n");
    origin.gates().release("rest");
    let (rest, end) = client.read_to_end().await;
    assert!(rest == "onetwo" && end.is_ok(), "{rest:?} {end:?}");
    let mut client = Connection::open(origin.addr(), LIMIT).await.unwrap();
    client.write(&get).await.unwrap();
    assert_eq!(client.read_until(b"three").await.unwrap(), "three");
    origin.gates().release("end");
    let end = client.read_to_end().await.1;
    assert!(
        matches!(&end, Err(Error::Io(error)) if error.kind() == std::io::ErrorKind::ConnectionReset),
        "{end:?}"
    );
}

#[test]
fn content_goes_in_the_chunks_that_are_asked_for() {
    for (content, sent) in [
        (Content::Chunked("abc".into()), "3\r\nabc\r\n0\r\n\r\n"),
        (Content::Chunked("".into()), "0\r\n\r\n"),
        (Content::Chunks("abc".into(), 2), "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"),
        (Content::Chunks("".into(), 2), "0\r\n\r\n"),
    ] {
        let request = Request { content, ..Request::new("POST", "/", "example.test") }.to_http1();
        assert!(
            request.ends_with(format!("\r\nTransfer-Encoding: chunked\r\n\r\n{sent}").as_bytes()),
            "{sent:?}"
        );
    }
}

#[tokio::test]
async fn http2_gives_the_same_response() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut server = h2::server::handshake(stream).await.unwrap();
        while let Some(Ok((request, mut respond))) = server.accept().await {
            let hints = http::Response::builder().status(103).header("link", "</s>").body(()).unwrap();
            respond.send_informational(hints).unwrap();
            let said = format!("{} {}", request.method(), request.uri());
            let head = http::Response::builder().header("x", "y").body(()).unwrap();
            respond.send_response(head, false).unwrap().send_data(said.into(), true).unwrap();
        }
    });
    let request = Request::new("GET", "/a?b", "example.test");
    let answer = exchange_http2(addr, &request, &Progress::default(), LIMIT).await.unwrap();
    assert_eq!(answer.body, b"GET http://example.test/a?b");
    assert_eq!(answer.fields.first("x"), Some("y"));
    assert_eq!(answer.interim.len(), 1);
    assert_eq!((answer.version.as_str(), answer.end), ("HTTP/2", End::Complete));
}
