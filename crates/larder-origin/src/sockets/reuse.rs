//! When a connection is used again, when a request is sent again, and that nothing of one exchange reaches another.

use std::time::Duration;

use crate::OriginSettings;
use crate::sockets::contents::{piecemeal, read};
use crate::sockets::larder::{Larder, Quiet, get, metric, request};
use crate::sockets::origins::{Apart, address, closes, ended, fine, in_turn, received, silent, until};
use crate::sockets::patience::within;
use bytes::Bytes;
use http::Method;
use larder_http::body::Body;
use larder_testkit::origin::Answer;

const EVIL: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";

/// A good answer, and later one that nobody asked for.
fn and_evil() -> Answer {
    let good = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none";
    Answer::literal(good).wait_for("evil").send(EVIL).keep_open()
}

async fn text(larder: &Larder, target: &'static str) -> String {
    let response = larder.origin.send(get(target)).await.unwrap();
    String::from_utf8(read(response.body).await.0).unwrap()
}

#[tokio::test]
async fn one_connection_serves_one_exchange_after_another() {
    let origin = in_turn((0..5).map(|i| fine(&format!("{i}"))).collect::<Vec<_>>());
    let larder = Larder::before(&origin, |_| ());
    for i in 0..5 {
        assert_eq!(text(&larder, "/").await, format!("{i}"));
    }
    assert_eq!(origin.log().connections(), 1);
    assert_eq!(metric(&larder.state, "larder_origin_connections_reused_total"), 4);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn bytes_that_nobody_asked_for_never_become_an_answer() {
    let origin = in_turn([and_evil(), fine("two")]);
    let larder = Larder::before(&origin, |_| ());
    assert_eq!(text(&larder, "/one").await, "one");
    origin.gates().release("evil");
    until(&origin, |log| log.in_flight() == 0).await;
    assert_eq!(text(&larder, "/two").await, "two");
    assert_eq!(origin.log().connections(), 2);
    larder.ends_without_leaks().await;
}

/// The same where the runtime had no chance to notice: the bytes arrive while this thread does not turn its event
/// loop, so only the kernel knows of them.
#[test]
fn bytes_are_noticed_that_the_runtime_has_not_seen() {
    let apart = Apart::in_turn([and_evil(), fine("two")]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let larder = Larder::before(&apart.origin, |_| ());
        assert_eq!(text(&larder, "/one").await, "one");
        apart.origin.gates().release("evil");
        apart.block_until(|log| log.in_flight() == 0);
        assert_eq!(text(&larder, "/two").await, "two");
    });
    assert_eq!(apart.origin.log().connections(), 2);
}

#[tokio::test]
async fn a_kept_connection_that_closed_costs_no_error() {
    let closing = Answer::literal("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none").wait_for("close");
    let origin = in_turn([closing, fine("two")]);
    let larder = Larder::before(&origin, |_| ());
    assert_eq!(text(&larder, "/one").await, "one");
    origin.gates().release("close");
    ended(&origin, 1).await;
    // An upload that nothing was written of goes to a new connection as well.
    let (sender, body) = piecemeal(None);
    sender.send(Ok(Bytes::from_static(b"abc"))).await.unwrap();
    drop(sender);
    let response = larder.origin.send(request(Method::POST, "/two", body)).await.unwrap();
    assert_eq!(read(response.body).await.0, b"two");
    assert_eq!(origin.log().connections(), 2);
    assert!(received(origin.log(), 2).ends_with("\r\n\r\n3\r\nabc\r\n0\r\n\r\n"));
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
        for end in [closes(), Answer::literal("").reset()] {
            let origin = in_turn([fine("one"), end, fine("two")]);
            let larder = Larder::before(&origin, |_| ());
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
            assert_eq!(origin.log().connections(), if is_repeated { 2 } else { 1 }, "{method}");
            assert_eq!(origin.log().count(), if is_repeated { 3 } else { 2 }, "{method}");
            assert_eq!(metric(&larder.state, "larder_origin_retries_total"), u64::from(is_repeated));
            larder.ends_without_leaks().await;
        }
    }
}

#[tokio::test]
async fn no_second_attempt_after_one_byte_of_answer_or_on_a_new_connection() {
    let origin = in_turn([fine("one"), Answer::literal("H"), closes(), fine("never")]);
    let larder = Larder::before(&origin, |_| ());
    assert_eq!(text(&larder, "/one").await, "one");
    for expected_connections in [1, 2] {
        let error = larder.origin.send(get("/two")).await.unwrap_err();
        assert_eq!(error.token(), "closed");
        assert_eq!(origin.log().connections(), expected_connections);
    }
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn the_second_attempt_is_the_last() {
    let origin = in_turn([fine("one"), closes(), closes(), fine("never")]);
    let larder = Larder::before(&origin, |_| ());
    assert_eq!(text(&larder, "/one").await, "one");
    assert_eq!(larder.origin.send(get("/two")).await.unwrap_err().token(), "closed");
    assert_eq!((origin.log().connections(), origin.log().count()), (2, 3));
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
        let origin = in_turn([Answer::literal(raw).keep_open()]);
        let larder = Larder::before(&origin, |_| ());
        let response = larder.origin.send(get("/")).await.unwrap();
        drop(response);
        ended(&origin, 1).await;
        larder.state.is_quiet().await;
    }
}

#[tokio::test]
async fn a_cancelled_exchange_closes_its_connection() {
    // Once while the answer is awaited on a new connection, once on a kept one, once within a head.
    for sent in ["", "HTTP/1.1 200 OK\r\nX-A:", "HTTP/1.1 103 Early Hints\r\n\r\n"] {
        for is_kept in [false, true] {
            let mut answers = vec![Answer::literal(sent).keep_open(), fine("two")];
            if is_kept {
                answers.insert(0, fine("one"));
            }
            let all = answers.len() as u64;
            let origin = in_turn(answers);
            let larder = Larder::before(&origin, |_| ());
            if is_kept {
                assert_eq!(text(&larder, "/one").await, "one");
            }
            tokio::select! {
                outcome = larder.origin.send(get("/")) => panic!("{outcome:?}"),
                () = until(&origin, |log| log.count() == all - 1 && log.in_flight() == 0) => {}
            }
            ended(&origin, 1).await;
            assert_eq!(text(&larder, "/two").await, "two");
            assert_eq!((origin.log().connections(), origin.log().count()), (2, all));
            larder.ends_without_leaks().await;
        }
    }
}

#[tokio::test]
async fn idle_connections_are_closed_when_their_time_is_over() {
    let origin = in_turn([fine("one")]);
    let larder = Larder::before(&origin, |settings| settings.idle = Duration::from_millis(20));
    assert_eq!(text(&larder, "/").await, "one");
    // Nobody asks for anything: the pool closes it by itself.
    ended(&origin, 1).await;
    larder.state.is_quiet().await;
}

#[tokio::test]
async fn no_more_idle_connections_are_kept_than_allowed() {
    let origin = in_turn([Answer { hold: Some("go".to_owned()), ..fine("x") }]);
    let larder = Larder::before(&origin, |settings| settings.max_idle = 2);
    let all = async {
        tokio::join!(text(&larder, "/1"), text(&larder, "/2"), text(&larder, "/3"));
    };
    let release = async {
        until(&origin, |log| log.in_flight() == 3).await;
        origin.gates().release("go");
    };
    tokio::join!(all, release);
    let two_left = async {
        while larder.state.counters().connections_open() != 2 {
            tokio::task::yield_now().await;
        }
    };
    within(two_left).await;
    assert_eq!(origin.log().connections(), 3);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn connections_are_capped_for_the_whole_process() {
    let origin = in_turn([silent()]);
    let larder = Larder::before(&origin, |settings| settings.max_connections = 1);
    let waiting = tokio::spawn({
        let origin = larder.origin.clone();
        async move { origin.send(get("/")).await }
    });
    until(&origin, |log| log.count() == 1).await;
    let error = larder.origin.send(get("/")).await.unwrap_err();
    assert_eq!((error.token(), error.is_dead()), ("connection-limit", false));
    waiting.abort();
    let _ = waiting.await;
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn at_the_cap_an_unused_connection_is_given_up_for_one_that_is_needed() {
    let (one, two) = (in_turn([fine("fine")]), in_turn([fine("fine")]));
    let mut settings = OriginSettings::new("app", vec![address(&one), address(&two)]);
    settings.idle = Duration::from_secs(60);
    settings.max_connections = 1;
    let larder = Larder::with(settings);
    assert_eq!(text(&larder, "/").await, "fine");
    // By turns, this is the other server's.
    assert_eq!(text(&larder, "/").await, "fine");
    assert_eq!((one.log().connections(), two.log().connections()), (1, 1));
    assert_eq!(metric(&larder.state, "larder_origin_connections_given_up_total"), 1);
    assert_eq!(larder.state.counters().connections_open(), 1);
    larder.ends_without_leaks().await;
}
