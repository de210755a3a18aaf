//! Exchanges over HTTP/1 that go well, or end in a way that nobody can mistake for well.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::sockets::support::{BREAKS_LATE_BYTES, Listening, eventually, soon, without_date};
use crate::{Limits, Settings};
use larder_http::message::Delivery;

#[tokio::test]
async fn requests_are_served_in_order_on_one_connection_however_they_arrive() {
    let listener = Listening::open();
    let requests = "\r\nGET /a HTTP/1.1\r\nHost: A.test:80\r\n\r\n\
                    POST /later HTTP/1.1\r\nHost: b\r\nContent-Length: 5\r\n\r\nhello\
                    POST /c?d HTTP/1.1\r\nHost: c:81\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: x\r\n\r\n\
                    GET http://d?q HTTP/1.1\r\nHost: e\r\nConnection: close\r\n\r\n";
    let whole = listener.send(requests).await;
    assert_eq!(whole.matches("HTTP/1.1 200 OK\r\n").count(), 4, "{whole}");
    let expected =
        ["GET a.test /a HTTP/1.1", "POST b /later HTTP/1.1", "POST c:81 /c?d HTTP/1.1", "GET d /?q HTTP/1.1"];
    assert_eq!(listener.lines(), expected);
    assert!(whole.contains("POST c:81 /c?d HTTP/1.1\nabc"));
    assert_eq!(listener.service.seen.lock()[2].trailers["t"], "x");
    let mut client = listener.connect().await;
    for byte in requests.bytes() {
        client.write([byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(without_date(&client.rest().await), without_date(&whole));
}

#[tokio::test]
async fn a_head_is_framed_as_the_client_can_read_it() {
    for (request, expected) in [
        ("GET /empty HTTP/1.1", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
        ("GET /204 HTTP/1.1", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET /304 HTTP/1.1", "HTTP/1.1 304 Not Modified\r\n\r\n"),
        ("GET /known HTTP/1.1", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n0123456789"),
        (
            "GET /unknown HTTP/1.1",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n",
        ),
        ("HEAD /known HTTP/1.1", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n"),
        ("HEAD /unknown HTTP/1.1", "HTTP/1.1 200 OK\r\n\r\n"),
        (
            "GET /stored HTTP/1.1",
            "HTTP/1.1 200 OK\r\nx-stored: 1\r\nx-service: yes\r\ncontent-length: 6\r\n\r\nstored",
        ),
    ] {
        let listener = Listening::open();
        let next = "GET /close HTTP/1.1\r\nHost: a\r\n\r\n";
        let response = without_date(&listener.send(format!("{request}\r\nHost: a\r\n\r\n{next}")).await);
        let bye = "HTTP/1.1 200 OK\r\nx-service: yes\r\ncontent-length: 3\r\nconnection: close\r\n\r\nbye";
        assert_eq!(response, format!("{expected}{bye}"), "{request}");
    }
    let stored = Listening::open().send("GET /stored HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert_eq!(stored.matches("date: ").count(), 1);
    let plain = Listening::open().send("GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert_eq!(plain.matches("\r\ndate: ").count(), 1);
}

#[tokio::test]
async fn old_clients_get_what_they_understand() {
    let listener = Listening::open();
    let response = without_date(&listener.send("GET /unknown HTTP/1.0\r\n\r\n").await);
    assert_eq!(response, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n0123456789");
    assert_eq!(listener.lines(), [format!("GET {} /unknown HTTP/1.0", listener.address)]);
    let kept = "GET /known HTTP/1.0\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\nGET /interims HTTP/1.0\r\nHost: a\r\n\r\n";
    let response = without_date(&listener.send(kept).await);
    let first = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\nconnection: keep-alive\r\n\r\n0123456789";
    let second = "HTTP/1.1 200 OK\r\nx-service: yes\r\ncontent-length: 5\r\nconnection: close\r\n\r\nfinal";
    assert_eq!(response, format!("{first}{second}"));
    let expects = "POST /x HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi";
    assert!(listener.send(expects).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn interim_responses_come_first_in_order_and_at_most_sixteen() {
    let response =
        Listening::open().send("GET /interims HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    let heads: Vec<_> = response.split("\r\n\r\n").collect();
    assert_eq!(heads.len(), 18);
    for (n, head) in heads.iter().take(16).enumerate() {
        assert_eq!(*head, format!("HTTP/1.1 103 Early Hints\r\nlink: </{n}>"));
    }
    assert!(heads[16].starts_with("HTTP/1.1 200 OK\r\n"));
}

#[tokio::test]
async fn a_client_that_expects_100_gets_it_when_its_content_is_wanted() {
    let listener = Listening::open();
    let mut client = listener.connect().await;
    client.write("POST /up HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\n").await;
    assert_eq!(client.until("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.write("hello").await;
    assert!(client.until("hello").await.starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(listener.service.seen.lock()[0].fields.is_empty());
    // Not wanted: no 100, and the connection is not used again.
    client
        .write("POST /ignore HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        .await;
    let response = client.rest().await;
    assert!(
        response.starts_with("HTTP/1.1 200 OK\r\n") && response.contains("\r\nconnection: close\r\n"),
        "{response}"
    );
}

#[tokio::test]
async fn content_that_nobody_read_is_never_taken_for_a_request() {
    let listener = Listening::open();
    let hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";
    let length = hidden.len();
    let request = format!("GET /ignore HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{hidden}");
    let response = listener.send(format!("{request}GET /close HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    assert_eq!(response.matches("HTTP/1.1 200 OK").count(), 2, "{response}");
    assert!(!listener.lines().iter().any(|line| line.contains("hidden")));
    // With the content still on its way the connection closes, whatever comes.
    let mut client = listener.connect().await;
    client.write(format!("GET /ignore HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n")).await;
    let head = client.until("ignored").await;
    assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
    client.write(hidden.repeat(2)).await;
    assert_eq!(client.rest().await, "");
    assert!(!listener.lines().iter().any(|line| line.contains("hidden")));
}

#[tokio::test]
async fn a_large_upload_that_is_ignored_still_gets_its_answer() {
    let listener = Listening::open();
    let content = vec![b'x'; 60_000];
    let mut request = b"POST /ignore HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n".to_vec();
    request.extend_from_slice(&content);
    let response = listener.send(request).await;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("ignored"), "{response}");
}

#[tokio::test]
async fn what_breaks_on_its_way_never_looks_whole_and_all_before_arrives() {
    for (path, version, expected) in [
        ("/short", "1.1", "content-length: 11\r\n\r\n0123456789"),
        ("/long", "1.1", "content-length: 9\r\n\r\n01234"),
        ("/broken", "1.1", "transfer-encoding: chunked\r\n\r\n5\r\n01234\r\n"),
        ("/short", "1.0", "content-length: 11\r\nconnection: close\r\n\r\n0123456789"),
        // Only the end of the connection says where this one ends.
        ("/broken", "1.0", "connection: close\r\n\r\n01234[reset]"),
    ] {
        let listener = Listening::open();
        let response = listener.send(format!("GET {path} HTTP/{version}\r\nHost: a\r\n\r\n")).await;
        assert_eq!(without_date(&response), format!("HTTP/1.1 200 OK\r\n{expected}"), "{path}, {version}");
        eventually(|| listener.service.delivered.lock().len() == 1).await;
        assert!(!listener.service.delivered.lock()[0].complete);
        assert_eq!(listener.metrics.responses_cut.value(), 1);
        eventually(|| listener.metrics.open.value() == 0).await;
    }
}

#[tokio::test]
async fn what_came_before_a_cut_reaches_a_client_that_reads_it_later() {
    let listener = Listening::open();
    let mut client = listener.connect().await;
    client.write("GET /breaks-late HTTP/1.1\r\nHost: a\r\n\r\n").await;
    // By then the kernel has all of it, and most of it still on this side.
    eventually(|| listener.metrics.responses_cut.value() == 1).await;
    let response = client.rest().await;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{:?}", response.get(..200));
    assert_eq!(response.matches('#').count(), BREAKS_LATE_BYTES);
    assert!(response.ends_with("#\r\n"), "no last chunk, and no reset");
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_call() {
    let listener = Listening::open();
    for request in [
        "GET /never HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /never HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
    ] {
        let mut client = listener.connect().await;
        client.write(request).await;
        eventually(|| listener.service.running.load(Ordering::SeqCst) == 1).await;
        drop(client);
        eventually(|| listener.service.running.load(Ordering::SeqCst) == 0).await;
    }
    let mut client = listener.connect().await;
    client.write("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client.until("01234").await;
    drop(client);
    eventually(|| listener.service.delivered.lock().len() == 1).await;
    assert!(matches!(listener.service.delivered.lock()[0], Delivery { body_bytes: 5, complete: false, .. }));
    eventually(|| listener.metrics.open.value() == 0).await;
}

#[tokio::test]
async fn a_large_answer_in_memory_arrives_whole_and_is_counted() {
    let listener = Listening::open();
    let mut client = listener.connect().await;
    client.write("GET /pieces HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    let (all, end) = client.connection.read_to_end().await;
    end.unwrap();
    let start = all.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let whole: Vec<u8> = (0..200_u32).flat_map(|n| vec![n as u8; 10_007]).collect();
    assert!(all[start..] == whole[5..2_001_000]);
    eventually(|| listener.service.delivered.lock().len() == 1).await;
    assert!(matches!(
        listener.service.delivered.lock()[0],
        Delivery { body_bytes: 2_000_995, complete: true, .. }
    ));
}

#[tokio::test]
async fn a_client_that_does_not_read_is_dropped() {
    let limits = Limits { write_idle: Duration::from_millis(100), ..Limits::default() };
    let listener = Listening::with(Settings { limits, ..Settings::default() });
    let mut client = listener.connect().await;
    for _ in 0..20 {
        client.write("GET /pieces HTTP/1.1\r\nHost: a\r\n\r\n").await;
    }
    eventually(|| listener.service.delivered.lock().iter().any(|delivery| !delivery.complete)).await;
    eventually(|| listener.metrics.open.value() == 0).await;
    assert_eq!(listener.metrics.write_stalled.value(), 1);
}

const OPENING: &str = "GET /switch HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n";

#[tokio::test]
async fn a_websocket_is_tunnelled_after_the_101_and_not_before() {
    let listener = Listening::open();
    let mut client = listener.connect().await;
    client.write(format!("{OPENING}early ")).await;
    let head = without_date(&client.until("\r\n\r\n").await);
    assert_eq!(
        head,
        "HTTP/1.1 101 Switching Protocols\r\nsec-websocket-accept: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
    );
    client.write("late").await;
    assert_eq!(client.until("late").await, "early late");
    client.connection.close_write().await.unwrap();
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn nothing_else_becomes_a_tunnel() {
    let listener = Listening::open();
    for opening in [
        OPENING.replace("Connection: Upgrade\r\n", ""),
        OPENING.replace("websocket\r\n", "h2c\r\nHTTP2-Settings: x\r\n"),
        OPENING.replace("HTTP/1.1", "HTTP/1.0"),
        OPENING.replace("GET", "POST"),
        OPENING.replace("Sec-WebSocket-Key: x\r\n", ""),
        OPENING.replace("Host: a", "Host: a\r\nContent-Length: 0"),
    ] {
        let mut client = listener.connect().await;
        client.write(&opening).await;
        let head = client.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{opening}: {head}");
        let seen = listener.service.seen.lock().pop().unwrap();
        for name in ["upgrade", "connection", "http2-settings"] {
            assert!(!seen.fields.contains_key(name), "{opening}");
        }
    }
    let response = listener.send("GET /101 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
}

#[tokio::test]
async fn only_end_to_end_fields_reach_the_service() {
    let listener = Listening::open();
    let request = "POST /x HTTP/1.1\r\nHost: a\r\nConnection: close, X-Mine, Host, Content-Length\r\nX-Mine: 1\r\n\
                   Keep-Alive: 5\r\nTE: trailers\r\nTrailer: x\r\nProxy-Connection: x\r\nProxy-Authorization: x\r\n\
                   Content-Length: 2\r\nX-Other:  a b \t\r\nX-Other: \u{e9}\r\n\r\nhi";
    assert!(listener.send(request).await.ends_with("POST a /x HTTP/1.1\nhi"));
    let seen = listener.service.seen.lock().pop().unwrap();
    let fields: Vec<_> = seen.fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    assert_eq!(fields, [("x-other", b"a b".as_slice()), ("x-other", "\u{e9}".as_bytes())]);
}

#[tokio::test]
async fn a_drain_lets_exchanges_finish_and_closes_what_is_idle() {
    let listener = Listening::open();
    let mut idle = listener.connect().await;
    idle.write("GET /empty HTTP/1.1\r\nHost: a\r\n\r\n").await;
    idle.until("\r\n\r\n").await;
    let mut busy = listener.connect().await;
    busy.write("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe").await;
    eventually(|| listener.service.running.load(Ordering::SeqCst) == 1).await;
    listener.drain.start();
    assert_eq!(idle.rest().await, "");
    busy.write("llo").await;
    let response = busy.rest().await;
    assert!(response.contains("\r\nconnection: close\r\n") && response.ends_with("hello"), "{response}");
    soon(listener.drain.drained()).await;
    eventually(|| listener.metrics.open.value() == 0).await;
    assert!(tokio::net::TcpStream::connect(listener.address).await.is_err());
}
