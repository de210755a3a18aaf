//! When a request that some of was sent goes to another server, and when it must not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::sockets::contents::{piecemeal, read};
use crate::sockets::front;
use crate::sockets::larder::{Larder, get, metric, request};
use crate::sockets::replica::{Mood, Replica, replicas};
use crate::{Ejection, OriginRequest, OriginSettings, Retry};
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use larder_http::body::Body;

/// Nobody is ejected, so that the first server is asked again and again.
fn settings(replicas: &[Replica], retry: Option<Retry>) -> OriginSettings {
    let mut settings = OriginSettings {
        retry,
        ejection: Ejection { failures: 0, ..Ejection::default() },
        ..OriginSettings::new("app", replicas.iter().map(Replica::address).collect())
    };
    settings.timeouts.first_byte = Duration::from_millis(60);
    settings
}

fn elsewhere(larder: &Larder) -> u64 {
    metric(&larder.state, "larder_origin_retries_elsewhere_total")
}

#[tokio::test]
async fn only_idempotent_requests_whose_content_is_in_memory_are_sent_again() {
    let streamed = || {
        let (sender, body) = piecemeal(Some(3));
        sender.try_send(Ok(Bytes::from_static(b"abc"))).unwrap();
        body
    };
    let query = Method::from_bytes(b"QUERY").unwrap();
    let cases: Vec<(Method, Body, bool)> = vec![
        (Method::GET, Body::Empty, true),
        (Method::HEAD, Body::Empty, true),
        (Method::OPTIONS, Body::Empty, true),
        (Method::DELETE, Body::Empty, true),
        (Method::PUT, Bytes::from_static(b"abc").into(), true),
        (query, Bytes::from_static(b"abc").into(), true),
        (Method::PUT, streamed(), false),
        (Method::GET, streamed(), false),
        (Method::POST, Body::Empty, false),
        (Method::PATCH, Bytes::from_static(b"abc").into(), false),
    ];
    for (method, body, is_sent_again) in cases {
        let all = replicas::<2>();
        all[0].becomes(Mood::Closes);
        let larder = Larder::with(settings(&all, Some(Retry::default())));
        let outcome = larder.origin.send(request(method.clone(), "/", body)).await;
        assert_eq!(outcome.is_ok(), is_sent_again, "{method}: {outcome:?}");
        assert_eq!((all[0].asked("/"), all[1].asked("/")), (1, usize::from(is_sent_again)), "{method}");
        assert_eq!(elsewhere(&larder), u64::from(is_sent_again), "{method}");
        drop(outcome);
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn only_configured_failures_are_followed_by_another_server() {
    let on = |on_error: bool, on_timeout: bool, statuses: &[u16]| {
        Some(Retry { on_error, on_timeout, statuses: statuses.to_vec(), ..Retry::default() })
    };
    let cases = [
        (Mood::Closes, None, false),
        (Mood::Closes, on(true, false, &[]), true),
        (Mood::Closes, on(false, true, &[503]), false),
        (Mood::Silent, on(false, true, &[]), true),
        (Mood::Silent, on(true, false, &[]), false),
        (Mood::Answers(503), on(false, false, &[502, 503]), true),
        (Mood::Answers(500), on(true, true, &[502, 503]), false),
        (Mood::Answers(503), None, false),
    ];
    for (mood, retry, goes_elsewhere) in cases {
        let all = replicas::<2>();
        all[0].becomes(mood);
        let larder = Larder::with(settings(&all, retry));
        let outcome = larder.origin.send(get("/")).await;
        let (status, server) = outcome.as_ref().map_or((None, None), |response| {
            (Some(response.status.as_u16()), Some(response.server.to_string()))
        });
        assert_eq!(
            (status, server) == (Some(200), Some(all[1].address().to_string())),
            goes_elsewhere,
            "{mood:?}"
        );
        drop(outcome);
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn each_server_is_asked_once_and_no_more_of_them_than_configured() {
    for (servers, asked) in [(1, 2), (2, 3), (10, 3)] {
        let all = replicas::<3>();
        all.iter().for_each(|replica| replica.becomes(Mood::Answers(502)));
        let retry = Retry { servers, statuses: vec![502], ..Retry::default() };
        let larder = Larder::with(settings(&all, Some(retry)));
        // The last answer is the answer, whatever it is.
        assert_eq!(larder.origin.send(get("/")).await.unwrap().status, 502);
        let counts: Vec<_> = all.iter().map(|replica| replica.asked("/")).collect();
        assert!(
            counts.iter().sum::<usize>() == asked && counts.iter().all(|count| *count <= 1),
            "{counts:?}"
        );
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn retries_are_a_part_of_requests() {
    let all = replicas::<2>();
    all.iter().for_each(|replica| replica.becomes(Mood::Answers(503)));
    let retry = Retry { statuses: vec![503], budget_percent: 10, ..Retry::default() };
    let larder = Larder::with(settings(&all, Some(retry)));
    for _ in 0..100 {
        larder.text(get("/")).await.unwrap();
    }
    // Ten were saved; the first requests could not earn more than that.
    let again = elsewhere(&larder);
    assert_eq!(again, 19);
    assert_eq!(all[0].asked("/") + all[1].asked("/"), 119);
    let counted: u64 = larder.state.servers().iter().map(|server| server.requests).sum();
    assert_eq!(counted, 119, "what was not sent counts nowhere");
    assert_eq!(metric(&larder.state, "larder_origin_retries_refused_total"), 100 - again);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_request_goes_to_no_server_that_is_ejected_and_never_back() {
    let all = replicas::<2>();
    all.iter().for_each(|replica| replica.becomes(Mood::Closes));
    let mut settings = settings(&all, Some(Retry { servers: 5, ..Retry::default() }));
    settings.ejection =
        Ejection { failures: 1, time: Duration::from_secs(600), time_max: Duration::from_secs(600) };
    let larder = Larder::with(settings);
    // Both are asked, and ejected; then one alone, because everybody is.
    for expected in [2, 3] {
        larder.text(get("/")).await.unwrap_err();
        assert_eq!(all[0].asked("/") + all[1].asked("/"), expected);
    }
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn an_answer_is_better_than_none_from_the_next_server() {
    for mood in [None, Some(Mood::Closes), Some(Mood::Silent)] {
        let mut all: Vec<Replica> = replicas::<2>().into();
        let retry = Retry { statuses: vec![503], ..Retry::default() };
        let larder = Larder::with(settings(&all, Some(retry)));
        all[0].becomes(Mood::Answers(503));
        match mood {
            Some(mood) => all[1].becomes(mood),
            None => drop(all.pop()),
        }
        let response = larder.origin.send(get("/")).await.unwrap();
        assert_eq!(response.status, 503, "{mood:?}");
        assert_eq!(read(response.body).await, (b"a".to_vec(), Ok(())), "{mood:?}");
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn a_failure_tells_which_server_was_asked_last_and_how_often() {
    let all = replicas::<2>();
    all.iter().for_each(|replica| replica.becomes(Mood::Closes));
    for (retry, attempts, last) in [(None, 1, 0), (Some(Retry::default()), 2, 1)] {
        let larder = Larder::with(settings(&all, retry));
        let failure = larder.origin.send(get("/")).await.unwrap_err();
        let expected = (attempts, Some(all[last].address().to_string()));
        assert_eq!((failure.attempts, failure.server.as_deref().map(str::to_owned)), expected, "{failure:?}");
        larder.ends_without_leaks().await;
    }
    let (_bound, port) = front::dead_port();
    let nobody = front::http(port);
    let larder = Larder::with(OriginSettings::new("app", vec![nobody.clone()]));
    let failure = larder.origin.send(get("/")).await.unwrap_err();
    assert_eq!((failure.token(), failure.attempts), ("connect-refused", 0));
    assert_eq!(failure.server.as_deref(), Some(&*nobody.to_string()));
}

#[tokio::test]
async fn content_is_counted_for_who_asked_also_where_it_is_given_up() {
    let all = replicas::<1>();
    let larder = Larder::with(settings(&all, None));
    let received = Arc::new(AtomicU64::new(0));
    let asked = |path| OriginRequest { received: Some(Arc::clone(&received)), ..get(path) };
    let response = larder.origin.send(asked("/")).await.unwrap();
    assert_eq!(read(response.body).await.0, b"a");
    assert_eq!(received.load(Ordering::Relaxed), 1);
    all[0].becomes(Mood::Endless);
    let response = larder.origin.send(asked("/")).await.unwrap();
    let Body::Stream { mut stream, .. } = response.body else { panic!("its content never ends") };
    let first = stream.frame().await.unwrap().unwrap().into_data().unwrap();
    drop(stream);
    assert_eq!(received.load(Ordering::Relaxed), 1 + first.len() as u64);
    larder.ends_without_leaks().await;
}
