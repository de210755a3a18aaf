//! When a connection is used again, when a request is sent again, and that nothing of one exchange reaches another.

use std::time::Duration;

use crate::scripted::{
    Larder, PATIENCE, Quiet, Scripted, Step, answer, get, metric, piecemeal, read, request, send,
};
use bytes::Bytes;
use http::Method;
use larder_http::body::Body;
use larder_origin::OriginSettings;

async fn text(larder: &Larder, target: &'static str) -> String {
    let response = larder.origin.send(get(target)).await.unwrap();
    String::from_utf8(read(response.body).await.0).unwrap()
}

#[tokio::test]
async fn one_connection_serves_one_exchange_after_another() {
    let steps = (0..5).flat_map(|i| [Step::Head, answer(&format!("{i}"))]).collect();
    let scripted = Scripted::start(vec![steps]).await;
    let larder = Larder::new(&scripted.address, |_| ());
    for i in 0..5 {
        assert_eq!(text(&larder, "/").await, format!("{i}"));
    }
    assert_eq!(scripted.connections(), 1);
    assert_eq!(metric(&larder.state, "larder_origin_connections_reused_total"), 4);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn bytes_that_nobody_asked_for_never_become_an_answer() {
    let evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    let scripted = Scripted::start(vec![
        vec![Step::Head, answer("one"), Step::Wait, send(evil), Step::Tell],
        vec![Step::Head, answer("two")],
    ])
    .await;
    let larder = Larder::new(&scripted.address, |_| ());
    assert_eq!(text(&larder, "/one").await, "one");
    scripted.go();
    scripted.reached().await;
    assert_eq!(text(&larder, "/two").await, "two");
    assert_eq!(scripted.connections(), 2);
    larder.ends_without_leaks().await;
}

/// The same where the runtime had no chance to notice: the bytes arrive while this thread does not turn its event
/// loop, so only the kernel knows of them.
#[test]
fn bytes_are_noticed_that_the_runtime_has_not_seen() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = larder_origin::ServerAddress::Http {
        host: "127.0.0.1".into(),
        port: listener.local_addr().unwrap().port(),
    };
    let (to_origin, orders) = std::sync::mpsc::channel::<()>();
    let (done, from_origin) = std::sync::mpsc::channel::<()>();
    let origin = std::thread::spawn(move || {
        let head = |socket: &mut std::net::TcpStream| {
            let mut seen = Vec::new();
            let mut byte = [0];
            while !seen.ends_with(b"\r\n\r\n") && socket.read(&mut byte).unwrap() > 0 {
                seen.extend_from_slice(&byte);
            }
        };
        let (mut first, _) = listener.accept().unwrap();
        head(&mut first);
        first.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none").unwrap();
        orders.recv().unwrap();
        first.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil").unwrap();
        done.send(()).unwrap();
        let (mut second, _) = listener.accept().unwrap();
        head(&mut second);
        second.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo").unwrap();
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let larder = Larder::new(&address, |_| ());
        assert_eq!(text(&larder, "/one").await, "one");
        to_origin.send(()).unwrap();
        from_origin.recv().unwrap();
        assert_eq!(text(&larder, "/two").await, "two");
    });
    origin.join().unwrap();
}

#[tokio::test]
async fn a_kept_connection_that_closed_costs_no_error() {
    let scripted = Scripted::start(vec![
        vec![Step::Head, answer("one"), Step::Wait, Step::Close, Step::Tell],
        vec![Step::Head, answer("two")],
    ])
    .await;
    let larder = Larder::new(&scripted.address, |_| ());
    assert_eq!(text(&larder, "/one").await, "one");
    scripted.go();
    scripted.reached().await;
    // An upload that nothing was written of goes to a new connection as well.
    let (sender, body) = piecemeal(None);
    sender.send(Ok(Bytes::from_static(b"abc"))).await.unwrap();
    drop(sender);
    let response = larder.origin.send(request(Method::POST, "/two", body)).await.unwrap();
    assert_eq!(read(response.body).await.0, b"two");
    assert!(scripted.until(1, |c| c.text().ends_with("0\r\n\r\n")).await.text().contains("3\r\nabc\r\n"));
    larder.ends_without_leaks().await;
}

/// A kept connection takes a request and closes without one byte of answer.
#[tokio::test]
async fn only_plain_reads_are_sent_a_second_time() {
    let cases = [
        (Method::GET, "", true),
        (Method::HEAD, "", true),
        (Method::GET, "body", false),
        (Method::POST, "", false),
        (Method::PUT, "body", false),
        (Method::DELETE, "", false),
        (Method::OPTIONS, "", false),
    ];
    for (method, body, is_repeated) in cases {
        for end in [Step::Close, Step::Reset] {
            let scripted = Scripted::start(vec![
                vec![Step::Head, answer("one"), Step::Head, end],
                vec![Step::Head, answer("two")],
            ])
            .await;
            let larder = Larder::new(&scripted.address, |_| ());
            assert_eq!(text(&larder, "/one").await, "one");
            let body: Body = Bytes::copy_from_slice(body.as_bytes()).into();
            let outcome = larder.origin.send(request(method.clone(), "/two", body)).await;
            match outcome {
                Ok(response) => assert!(is_repeated && !response.reused, "{method}"),
                Err(error) => {
                    assert!(!is_repeated, "{method}: {error:?}");
                    assert_eq!((error.token(), error.is_dead()), ("closed", true));
                }
            }
            assert_eq!(scripted.connections(), if is_repeated { 2 } else { 1 }, "{method}");
            assert_eq!(metric(&larder.state, "larder_origin_retries_total"), u64::from(is_repeated));
            larder.ends_without_leaks().await;
        }
    }
}

#[tokio::test]
async fn no_second_attempt_after_one_byte_of_answer_or_on_a_new_connection() {
    let scripted = Scripted::start(vec![
        vec![Step::Head, answer("one"), Step::Head, send("H"), Step::Close],
        vec![Step::Head, Step::Close],
        vec![Step::Head, answer("never")],
    ])
    .await;
    let larder = Larder::new(&scripted.address, |_| ());
    assert_eq!(text(&larder, "/one").await, "one");
    for expected_connections in [1, 2] {
        let error = larder.origin.send(get("/two")).await.unwrap_err();
        assert_eq!(error.token(), "closed");
        assert_eq!(scripted.connections(), expected_connections);
    }
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn the_second_attempt_is_the_last() {
    let scripted = Scripted::start(vec![
        vec![Step::Head, answer("one"), Step::Head, Step::Close],
        vec![Step::Head, Step::Close],
        vec![Step::Head, answer("never")],
    ])
    .await;
    let larder = Larder::new(&scripted.address, |_| ());
    assert_eq!(text(&larder, "/one").await, "one");
    assert_eq!(larder.origin.send(get("/two")).await.unwrap_err().token(), "closed");
    assert_eq!(scripted.connections(), 2);
}

#[tokio::test]
async fn a_body_dropped_before_its_end_closes_its_connection_at_once() {
    for raw in [
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 200 OK\r\n\r\nabc",
        // All of it is there, unread: still not a clean end.
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
    ] {
        let scripted = Scripted::start(vec![vec![Step::Head, send(raw)]]).await;
        let larder = Larder::new(&scripted.address, |_| ());
        let response = larder.origin.send(get("/")).await.unwrap();
        drop(response);
        scripted.ended(0).await;
        larder.state.is_quiet().await;
    }
}

#[tokio::test]
async fn a_cancelled_exchange_closes_its_connection() {
    // Once while the answer is awaited on a new connection, once on a kept one, once within a head.
    for steps in [
        vec![Step::Head, Step::Tell],
        vec![Step::Head, send("HTTP/1.1 200 OK\r\nX-A:"), Step::Tell],
        vec![Step::Head, send("HTTP/1.1 103 Early Hints\r\n\r\n"), Step::Tell],
    ] {
        for is_kept in [false, true] {
            let mut script = Vec::new();
            if is_kept {
                script.extend([Step::Head, answer("one")]);
            }
            script.extend(steps.clone());
            let scripted = Scripted::start(vec![script, vec![Step::Head, answer("two")]]).await;
            let larder = Larder::new(&scripted.address, |_| ());
            if is_kept {
                assert_eq!(text(&larder, "/one").await, "one");
            }
            tokio::select! {
                outcome = larder.origin.send(get("/")) => panic!("{outcome:?}"),
                () = scripted.reached() => {}
            }
            scripted.ended(0).await;
            assert_eq!(text(&larder, "/two").await, "two");
            assert_eq!(scripted.connections(), 2);
            larder.ends_without_leaks().await;
        }
    }
}

#[tokio::test]
async fn idle_connections_are_closed_when_their_time_is_over() {
    let scripted = Scripted::start(vec![vec![Step::Head, answer("one")]]).await;
    let larder = Larder::new(&scripted.address, |settings| settings.idle = Duration::from_millis(20));
    assert_eq!(text(&larder, "/").await, "one");
    // Nobody asks for anything: the pool closes it by itself.
    scripted.ended(0).await;
    larder.state.is_quiet().await;
}

#[tokio::test]
async fn no_more_idle_connections_are_kept_than_allowed() {
    let script = || vec![Step::Head, Step::Tell, Step::Wait, answer("x")];
    let scripted = Scripted::start(vec![script(), script(), script()]).await;
    let larder = Larder::new(&scripted.address, |settings| settings.max_idle = 2);
    let all = async {
        tokio::join!(text(&larder, "/1"), text(&larder, "/2"), text(&larder, "/3"));
    };
    let release = async {
        for _ in 0..3 {
            scripted.reached().await;
        }
        (0..3).for_each(|_| scripted.go());
    };
    tokio::join!(all, release);
    let two_left = async {
        while larder.state.counters().connections_open() != 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, two_left).await.unwrap();
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn connections_are_capped_for_the_whole_process() {
    let scripted = Scripted::start(vec![vec![Step::Head, Step::Tell]]).await;
    let larder = Larder::new(&scripted.address, |settings| settings.max_connections = 1);
    let waiting = tokio::spawn({
        let origin = larder.origin.clone();
        async move { origin.send(get("/")).await }
    });
    scripted.reached().await;
    let error = larder.origin.send(get("/")).await.unwrap_err();
    assert_eq!((error.token(), error.is_dead()), ("connection-limit", false));
    waiting.abort();
    let _ = waiting.await;
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn at_the_cap_an_unused_connection_is_given_up_for_one_that_is_needed() {
    let one = Scripted::start(vec![vec![Step::Head, answer("fine")]]).await;
    let two = Scripted::start(vec![vec![Step::Head, answer("fine")]]).await;
    let mut settings = OriginSettings::new("app", vec![one.address.clone(), two.address.clone()]);
    settings.idle = Duration::from_secs(60);
    settings.max_connections = 1;
    let larder = Larder::with(settings);
    assert_eq!(text(&larder, "/").await, "fine");
    // By turns, this is the other server's.
    assert_eq!(text(&larder, "/").await, "fine");
    assert_eq!((one.connections(), two.connections()), (1, 1));
    assert_eq!(metric(&larder.state, "larder_origin_connections_given_up_total"), 1);
    assert_eq!(larder.state.counters().connections_open(), 1);
    larder.ends_without_leaks().await;
}
