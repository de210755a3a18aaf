//! The cap on requests in flight, who waits for it, and the limit on the whole exchange.

use std::sync::Arc;
use std::time::Duration;

use crate::sockets::contents::read;
use crate::sockets::larder::{Larder, get, metric, request};
use crate::sockets::origins::{fine, in_turn};
use crate::sockets::patience::{PATIENCE, within};
use crate::sockets::replica::{Mood, Replica, replicas};
use crate::{InFlightLimit, OriginRequest, OriginSettings, Progress, ServerState};
use http::Method;
use larder_http::body::{Body, BodyError};
use larder_testkit::origin::Answer;
use tokio::task::JoinHandle;

const SHORT: Duration = Duration::from_millis(60);

/// One request in flight, and so many that wait.
fn settings(replicas: &[Replica], queue: usize, queue_timeout: Duration) -> OriginSettings {
    OriginSettings {
        in_flight: InFlightLimit { max: Some(1), queue, queue_timeout },
        ..OriginSettings::new("app", replicas.iter().map(Replica::address).collect())
    }
}

fn waiting(larder: &Larder) -> u64 {
    metric(&larder.state, "larder_origin_queue_length")
}

/// Sends a request and waits until it waits.
async fn queued(larder: &Larder) -> JoinHandle<Result<String, &'static str>> {
    let before = waiting(larder);
    let another = larder.after(larder.origin.settings().clone());
    let task = tokio::spawn(async move { another.text(get("/")).await.map_err(|error| error.token()) });
    within(async {
        while waiting(larder) == before {
            tokio::task::yield_now().await;
        }
    })
    .await;
    task
}

#[tokio::test]
async fn who_is_too_many_waits_for_the_end_of_a_content_on_whichever_worker() {
    let all = replicas::<1>();
    all[0].becomes(Mood::Halfway);
    let larder = Larder::with(settings(&all, 10, PATIENCE));
    let held = larder.origin.send(get("/half")).await.unwrap();
    let (one, two) = (queued(&larder).await, queued(&larder).await);
    assert_eq!((all[0].asked("/"), waiting(&larder)), (0, 2));
    all[0].becomes(Mood::Answers(200));
    read(held.body).await.1.unwrap();
    for waiter in [one, two] {
        assert_eq!(within(waiter).await.unwrap(), Ok("a".to_owned()));
    }
    // A content that is given up ends as well.
    all[0].becomes(Mood::Endless);
    let held = larder.origin.send(get("/")).await.unwrap();
    let waiter = queued(&larder).await;
    all[0].becomes(Mood::Answers(200));
    drop(held);
    assert_eq!(within(waiter).await.unwrap(), Ok("a".to_owned()));
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_full_queue_refuses_and_one_that_moves_too_slowly_gives_up() {
    let all = replicas::<1>();
    all[0].becomes(Mood::Halfway);
    let larder = Larder::with(settings(&all, 1, SHORT));
    let held = larder.origin.send(get("/half")).await.unwrap();
    let waiter = queued(&larder).await;
    let error = larder.origin.send(get("/")).await.unwrap_err();
    assert_eq!((error.token(), error.status().as_u16(), error.retry_after()), ("queue-full", 503, Some(1)));
    assert_eq!(within(waiter).await.unwrap(), Err("queue-timeout"));
    assert_eq!((all[0].asked("/"), waiting(&larder)), (0, 0));
    assert_eq!(larder.states(), [ServerState::Up]);
    drop(held);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn who_stops_waiting_leaves_its_place_to_the_next() {
    let all = replicas::<1>();
    all[0].becomes(Mood::Halfway);
    let larder = Larder::with(settings(&all, 1, PATIENCE));
    let held = larder.origin.send(get("/half")).await.unwrap();
    for _ in 0..3 {
        let waiter = queued(&larder).await;
        waiter.abort();
        let _ = waiter.await;
        assert_eq!(waiting(&larder), 0);
    }
    let waiter = queued(&larder).await;
    all[0].becomes(Mood::Answers(200));
    drop(held);
    assert_eq!(within(waiter).await.unwrap(), Ok("a".to_owned()));
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn requests_that_fail_or_are_cancelled_give_their_seat_back() {
    let all = replicas::<1>();
    let larder = Larder::with(settings(&all, 0, SHORT));
    for _ in 0..3 {
        all[0].becomes(Mood::Closes);
        assert_eq!(larder.text(get("/")).await.unwrap_err().token(), "closed");
        all[0].becomes(Mood::Silent);
        tokio::select! {
            outcome = larder.origin.send(get("/")) => panic!("{outcome:?}"),
            () = all[0].asked_again("/", 1) => {}
        }
    }
    all[0].becomes(Mood::Answers(200));
    assert_eq!(larder.text(get("/")).await.unwrap(), "a");
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_tunnel_leaves_the_count() {
    let granted =
        "HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n";
    let origin = in_turn([Answer::literal(granted).keep_open(), fine("x")]);
    let larder = Larder::before(&origin, |settings| {
        settings.in_flight = InFlightLimit { max: Some(1), queue: 0, queue_timeout: SHORT };
    });
    let mut asked = get("/socket");
    asked.websocket = true;
    let tunnel = larder.origin.send(asked).await.unwrap().tunnel.unwrap();
    assert_eq!(larder.text(get("/")).await.unwrap(), "x");
    // It is load for its server all the same.
    assert_eq!(larder.state.servers()[0].in_flight, 1);
    drop(tunnel);
    assert_eq!(larder.state.servers()[0].in_flight, 0);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_lower_cap_holds_after_a_reload() {
    let all = replicas::<1>();
    all[0].becomes(Mood::Halfway);
    let larder = Larder::with(OriginSettings {
        in_flight: InFlightLimit { max: Some(2), queue: 0, queue_timeout: SHORT },
        ..settings(&all, 0, SHORT)
    });
    let held =
        [larder.origin.send(get("/half")).await.unwrap(), larder.origin.send(get("/half")).await.unwrap()];
    let reloaded = larder.after(settings(&all, 0, SHORT));
    let [one, two] = held;
    for response in [one, two] {
        assert_eq!(reloaded.text(get("/")).await.unwrap_err().token(), "queue-full");
        drop(response);
    }
    all[0].becomes(Mood::Answers(200));
    reloaded.text(get("/")).await.unwrap();
    drop(larder);
    reloaded.ends_without_leaks().await;
}

#[tokio::test]
async fn the_limit_on_the_whole_exchange_holds_in_the_queue_before_the_head_and_in_the_content() {
    let all = replicas::<1>();
    let mut settings = settings(&all, 10, PATIENCE);
    settings.timeouts.total = Some(SHORT);
    settings.ejection.failures = 1;
    let larder = Larder::with(settings);

    all[0].becomes(Mood::Halfway);
    let half = larder.origin.send(get("/half")).await.unwrap();
    assert_eq!(read(half.body).await.1, Err(BodyError::Stalled));

    all[0].becomes(Mood::Endless);
    let endless = larder.origin.send(get("/")).await.unwrap();
    let waiter = queued(&larder).await;
    assert_eq!(within(waiter).await.unwrap(), Err("total-timeout"));
    assert_eq!(larder.states(), [ServerState::Up], "time in the queue is nobody's fault");
    assert_eq!(read(endless.body).await.1, Err(BodyError::Stalled));

    all[0].becomes(Mood::Silent);
    let error = larder.origin.send(get("/")).await.unwrap_err();
    assert_eq!((error.token(), error.status().as_u16(), error.is_dead()), ("total-timeout", 504, true));
    assert_eq!(larder.states(), [ServerState::Ejected]);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn without_a_cap_nobody_waits() {
    let all = replicas::<1>();
    all[0].becomes(Mood::Halfway);
    let settings = OriginSettings::new("app", vec![all[0].address()]);
    let larder = Arc::new(Larder::with(settings));
    let mut held = Vec::new();
    for _ in 0..20 {
        held.push(larder.origin.send(get("/half")).await.unwrap());
    }
    assert_eq!(larder.state.servers()[0].in_flight, 20);
}

#[tokio::test]
async fn a_request_says_how_far_it_has_come() {
    let all = replicas::<1>();
    all[0].becomes(Mood::Halfway);
    let larder = Larder::with(settings(&all, 1, PATIENCE));
    let told = |method: Method| {
        let progress = Progress::new();
        let request = request(method, "/", Body::Empty);
        (progress.clone(), OriginRequest { progress: Some(progress), ..request })
    };
    assert!(!larder.origin.is_queueing());
    let held = larder.origin.send(get("/half")).await.unwrap();
    let (progress, asking) = told(Method::POST);
    {
        let mut sending = Box::pin(larder.origin.send(asking));
        tokio::select! {
            biased;
            outcome = &mut sending => panic!("{outcome:?}"),
            () = progress.seated() => panic!("it is in the queue"),
            () = std::future::ready(()) => {}
        }
        assert!(larder.origin.is_queueing() && !progress.is_written());
        drop(held);
        tokio::select! {
            outcome = &mut sending => panic!("{outcome:?}"),
            () = progress.seated() => {}
        }
        drop(sending.await.unwrap());
    }
    assert!(progress.is_written() && !larder.origin.is_queueing());
    // A server that acted and closed, and then one that is not there at all.
    all[0].becomes(Mood::Closes);
    let (progress, asking) = told(Method::POST);
    assert_eq!(larder.origin.send(asking).await.unwrap_err().token(), "closed");
    assert!(progress.is_written());
    drop(all);
    let (progress, asking) = told(Method::POST);
    let error = larder.origin.send(asking).await.unwrap_err();
    assert!(error.token().starts_with("connect-"), "{error:?}");
    assert!(!progress.is_written());
    within(progress.seated()).await;
    larder.ends_without_leaks().await;
}
