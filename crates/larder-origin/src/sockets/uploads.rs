//! Request bodies: framed anew, never finished when the client's is broken, stopped by an early answer.

use std::sync::Arc;
use std::time::Duration;

use crate::sockets::contents::{piecemeal, read};
use crate::sockets::larder::{Larder, get, metric, request};
use crate::sockets::origins::{Apart, ended, fine, in_turn, received, until};
use crate::sockets::patience::within;
use bytes::Bytes;
use http::Method;
use larder_http::body::{Body, BodyError};
use larder_testkit::origin::Answer;

const HEAD: &str = "POST / HTTP/1.1\r\nhost: app.example\r\n";

#[tokio::test]
async fn bodies_are_framed_by_what_is_known_of_their_length() {
    let piece = |text: &'static str| Bytes::from_static(text.as_bytes());
    let stream = |length, pieces: &'static [&'static str]| {
        let (sender, body) = piecemeal(length);
        for text in pieces {
            sender.try_send(Ok(piece(text))).unwrap();
        }
        body
    };
    let owner = Arc::new(vec![piece("abc"), piece("def")]);
    let cases: Vec<(&str, Body, String)> = vec![
        ("full", Body::Full(piece("abc")), format!("{HEAD}content-length: 3\r\n\r\nabc")),
        ("pieces", Body::Pieces { owner, range: 1..5 }, format!("{HEAD}content-length: 4\r\n\r\nbcde")),
        ("known", stream(Some(5), &["ab", "", "cde"]), format!("{HEAD}content-length: 5\r\n\r\nabcde")),
        ("known, none", stream(Some(0), &[]), format!("{HEAD}content-length: 0\r\n\r\n")),
        (
            "unknown",
            stream(None, &["ab", "", "cde"]),
            format!("{HEAD}transfer-encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n"),
        ),
        ("unknown, none", stream(None, &[]), format!("{HEAD}transfer-encoding: chunked\r\n\r\n0\r\n\r\n")),
    ];
    for (name, body, expected) in cases {
        let origin = in_turn([fine("ok"), fine("two")]);
        let larder = Larder::before(&origin, |_| ());
        let response = larder.origin.send(request(Method::POST, "/", body)).await.unwrap();
        assert_eq!(read(response.body).await.0, b"ok", "{name}");
        assert_eq!(received(origin.log(), 1), expected, "{name}");
        let again = larder.origin.send(get("/")).await.unwrap();
        assert!(again.reused, "{name}");
        drop(again);
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn a_get_with_a_body_of_unknown_length_keeps_it() {
    let origin = in_turn([fine("ok")]);
    let larder = Larder::before(&origin, |_| ());
    let (sender, body) = piecemeal(None);
    sender.try_send(Ok(Bytes::from_static(b"abc"))).unwrap();
    drop(sender);
    larder.origin.send(request(Method::GET, "/", body)).await.unwrap();
    assert!(received(origin.log(), 1).ends_with("\r\n\r\n3\r\nabc\r\n0\r\n\r\n"));
}

#[tokio::test]
async fn a_broken_upload_is_the_clients_fault_and_never_ends_cleanly() {
    let cases = [
        (None, Err(BodyError::Cut), "client-body-cut", 400),
        (Some(9), Err(BodyError::Cut), "client-body-cut", 400),
        (None, Err(BodyError::Framing), "client-body-framing", 400),
        (None, Err(BodyError::Stalled), "client-body-stalled", 408),
        (None, Err(BodyError::TooLarge), "client-body-too-large", 413),
        // Ends before its length, or goes on beyond it.
        (Some(9), Ok(""), "client-body-framing", 400),
        (Some(4), Ok("too much"), "client-body-framing", 400),
    ];
    for (length, then, token, status) in cases {
        let origin = in_turn([fine("never")]);
        let larder = Larder::before(&origin, |_| ());
        let (sender, body) = piecemeal(length);
        let client = async {
            sender.send(Ok(Bytes::from_static(b"abc"))).await.unwrap();
            until(&origin, |log| received(log, 1).contains("abc")).await;
            match then {
                Err(error) => sender.send(Err(error)).await.unwrap(),
                Ok(text) => sender.send(Ok(Bytes::from_static(text.as_bytes()))).await.unwrap(),
            }
            drop(sender);
        };
        let (outcome, ()) = tokio::join!(larder.origin.send(request(Method::POST, "/", body)), client);
        let error = outcome.unwrap_err();
        assert_eq!((error.token(), error.status().as_u16()), (token, status), "{length:?} {then:?}");
        assert!(!error.is_dead());
        let received = ended(&origin, 1).await;
        assert!(received.ends_with("abc") || received.ends_with("abc\r\n"), "{received:?}");
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn an_early_answer_stops_the_upload_and_ends_the_connection() {
    let enough = Answer { stop_reading_at: Some(3), stay: true, ..fine("enough") };
    let origin = in_turn([enough, fine("two")]);
    let larder = Larder::before(&origin, |_| ());
    let (sender, body) = piecemeal(None);
    sender.send(Ok(Bytes::from_static(b"abc"))).await.unwrap();
    let response = larder.origin.send(request(Method::POST, "/", body)).await.unwrap();
    // The client's body is let go of, while the answer can still be read whole.
    within(sender.closed()).await;
    assert_eq!(read(response.body).await, (b"enough".to_vec(), Ok(())));
    assert!(!ended(&origin, 1).await.contains("0\r\n\r\n"));
    assert!(!larder.origin.send(get("/")).await.unwrap().reused);
    assert_eq!(metric(&larder.state, "larder_origin_uploads_stopped_total"), 1);
    larder.ends_without_leaks().await;
}

/// The origin refuses, closes, and resets what is still coming. The next write fails before this thread has turned its
/// event loop, so the failure is known before the answer is: the answer counts, not the broken pipe.
#[test]
fn a_refused_upload_gets_its_answer_through_the_reset() {
    let refusal = "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno";
    let refusal = Answer::literal("").wait_for("refuse").send(refusal).reset();
    let apart = Apart::in_turn([Answer { stop_reading_at: Some(3), ..refusal }]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let larder = Larder::before(&apart.origin, |_| ());
        let (sender, body) = piecemeal(None);
        let client = async {
            sender.send(Ok(Bytes::from_static(b"abc"))).await.unwrap();
            until(&apart.origin, |log| received(log, 1).contains("abc")).await;
            apart.origin.gates().release("refuse");
            apart.block_until(|log| log.is_over(1));
            sender.send(Ok(Bytes::from(vec![b'x'; 64 * 1024]))).await.unwrap();
        };
        let (outcome, ()) = tokio::join!(larder.origin.send(request(Method::POST, "/", body)), client);
        let response = outcome.unwrap();
        assert_eq!(response.status, 413);
        assert_eq!(read(response.body).await, (b"no".to_vec(), Ok(())));
        drop(sender);
        larder.ends_without_leaks().await;
    });
}

#[tokio::test]
async fn an_upload_that_makes_progress_is_not_late() {
    let origin = in_turn([fine("ok")]);
    let larder = Larder::before(&origin, |settings| {
        settings.timeouts.first_byte = Duration::from_millis(300);
    });
    let (sender, body) = piecemeal(None);
    let client = async move {
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(60)).await;
            sender.send(Ok(Bytes::from_static(b"x"))).await.unwrap();
        }
    };
    let (outcome, ()) = tokio::join!(larder.origin.send(request(Method::POST, "/", body)), client);
    assert_eq!(outcome.unwrap().status, 200);
}

#[tokio::test]
async fn a_client_that_stalls_its_upload_is_not_the_origins_fault() {
    let origin = in_turn([fine("never")]);
    let larder = Larder::before(&origin, |settings| {
        settings.timeouts.first_byte = Duration::from_millis(50);
    });
    let (sender, body) = piecemeal(None);
    sender.send(Ok(Bytes::from_static(b"abc"))).await.unwrap();
    let error = larder.origin.send(request(Method::POST, "/", body)).await.unwrap_err();
    assert_eq!((error.token(), error.status().as_u16()), ("client-body-stalled", 408));
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn an_origin_that_does_not_take_the_upload_is_late() {
    let unread = Answer { stop_reading_at: Some(0), hold: Some("go".to_owned()), ..fine("never") };
    let origin = in_turn([unread]);
    let larder = Larder::before(&origin, |settings| {
        settings.timeouts.first_byte = Duration::from_millis(100);
    });
    let body = Body::Full(Bytes::from(vec![b'x'; 64 * 1024 * 1024]));
    let error = larder.origin.send(request(Method::POST, "/", body)).await.unwrap_err();
    assert_eq!(error.token(), "first-byte-timeout");
    origin.gates().release("go");
    larder.ends_without_leaks().await;
}
