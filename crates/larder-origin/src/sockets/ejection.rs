//! Servers that fail get no more requests for a while, and find their way back.

use std::time::Duration;

use crate::ServerState::{Draining, Ejected, SlowStart, Up};
use crate::sockets::contents::{piecemeal, read};
use crate::sockets::larder::{Larder, Quiet as _, get, metric, request};
use crate::sockets::origins::{closes, in_turn, silent, until};
use crate::sockets::patience::within;
use crate::sockets::replica::{Mood, Replica, replicas};
use crate::{Ejection, OriginSettings, Retry};
use bytes::Bytes;
use http::Method;
use larder_http::body::BodyError;
use larder_testkit::origin::Answer;
use tokio::task::JoinHandle;

const LONG: Duration = Duration::from_secs(600);

fn settings(replicas: &[Replica], failures: u32, time: Duration) -> OriginSettings {
    OriginSettings {
        ejection: Ejection { failures, time, time_max: LONG },
        ..OriginSettings::new("app", replicas.iter().map(Replica::address).collect())
    }
}

#[tokio::test]
async fn a_server_that_fails_several_times_in_a_row_is_left_alone() {
    let all = replicas::<2>();
    let larder = Larder::with(settings(&all, 3, LONG));
    all[0].becomes(Mood::Closes);
    for _ in 0..3 {
        assert_eq!(larder.states(), [Up, Up]);
        assert_eq!(larder.text(get("/")).await.unwrap_err().token(), "closed");
        assert_eq!(larder.text(get("/")).await.unwrap(), "b");
    }
    assert_eq!(larder.states(), [Ejected, Up]);
    for _ in 0..10 {
        assert_eq!(larder.text(get("/")).await.unwrap(), "b");
    }
    assert!(!larder.origin.is_down());
    assert_eq!(metric(&larder.state, "larder_origin_ejections_total"), 1);
    assert_eq!(larder.state.servers()[0].failures, 3);
    larder.ends_without_leaks().await;
}

/// One failure of each kind, and what is none.
#[tokio::test]
async fn only_what_speaks_against_the_server_counts() {
    let kept = |text: &str| Answer::literal(text).keep_open();
    let status = |retry: bool, code: u16| {
        let retry = retry.then(|| Retry { statuses: vec![503], ..Retry::default() });
        (Answer::new(code, &[], ""), retry)
    };
    let cases = [
        ((closes(), None), true),
        ((Answer::literal("").reset(), None), true),
        ((silent(), None), true),
        ((kept("nonsense\r\n\r\n"), None), true),
        ((kept("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"), None), true),
        ((kept("HTTP/1.1 101 X\r\nConnection: upgrade\r\n\r\n"), None), true),
        (status(true, 503), true),
        (status(true, 500), false),
        (status(false, 503), false),
        // The head was good: what comes after it is another matter.
        ((Answer::literal("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), None), false),
    ];
    for ((answer, retry), is_failure) in cases {
        let script = format!("{answer:?}");
        let origin = in_turn([answer]);
        let larder = Larder::before(&origin, |settings| {
            settings.ejection = Ejection { failures: 1, time: LONG, time_max: LONG };
            settings.timeouts.first_byte = Duration::from_millis(60);
            settings.retry = retry;
        });
        if let Ok(response) = larder.origin.send(get("/")).await {
            let _ = read(response.body).await;
        }
        let expected = if is_failure { Ejected } else { Up };
        assert_eq!(larder.states(), [expected], "{script}");
        assert_eq!(larder.origin.is_down(), is_failure, "{script}");
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_or_breaks_its_upload_says_nothing_about_the_server() {
    let origin = in_turn([silent()]);
    let larder = Larder::before(&origin, |settings| {
        settings.ejection = Ejection { failures: 1, time: LONG, time_max: LONG };
    });
    tokio::select! {
        outcome = larder.origin.send(get("/")) => panic!("{outcome:?}"),
        () = until(&origin, |log| log.count() == 1) => {}
    }
    let (sender, body) = piecemeal(Some(9));
    sender.send(Ok(Bytes::from_static(b"abc"))).await.unwrap();
    sender.send(Err(BodyError::Cut)).await.unwrap();
    let error = larder.origin.send(request(Method::POST, "/", body)).await.unwrap_err();
    assert_eq!(error.token(), "client-body-cut");
    let report = &larder.state.servers()[0];
    assert_eq!((report.state, report.failures, report.in_flight), (Up, 0, 0));
    larder.ends_without_leaks().await;
}

/// Sends requests until one of them has come to `replica`, which does not answer.
#[allow(clippy::async_yields_async)] // the request goes on: that is what is wanted
async fn probe(larder: &Larder, replica: &Replica) -> JoinHandle<()> {
    within(async {
        loop {
            let origin = larder.origin.clone();
            let mut sending = tokio::spawn(async move { drop(origin.send(get("/")).await) });
            tokio::select! {
                () = replica.asked_again("/", 1) => return sending,
                _ = &mut sending => {}
            }
        }
    })
    .await
}

/// Sends requests until `name` has answered one.
async fn reaches(larder: &Larder, name: &str) {
    within(async {
        while larder.text(get("/")).await.ok().as_deref() != Some(name) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn one_request_finds_out_whether_a_server_is_back_and_the_others_do_not_wait_for_it() {
    let all = replicas::<2>();
    let larder = Larder::with(settings(&all, 1, Duration::from_millis(20)));
    all[0].becomes(Mood::Closes);
    larder.text(get("/")).await.unwrap_err();
    assert_eq!(larder.states(), [Ejected, Up]);
    all[0].becomes(Mood::Silent);
    for _ in 0..2 {
        let sending = probe(&larder, &all[0]).await;
        let asked = all[0].asked("/");
        for _ in 0..10 {
            assert_eq!(larder.text(get("/")).await.unwrap(), "b");
        }
        assert_eq!((all[0].asked("/"), larder.states()), (asked, vec![Ejected, Up]));
        // Who leaves has found nothing out, and makes room for the next.
        sending.abort();
        let _ = sending.await;
    }
    all[0].becomes(Mood::Answers(200));
    reaches(&larder, "a").await;
    assert_eq!(larder.states(), [Up, Up]);
    assert_eq!(metric(&larder.state, "larder_origin_recoveries_total"), 1);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_server_that_fails_its_probe_is_left_alone_for_longer() {
    let all = replicas::<2>();
    let larder = Larder::with(settings(&all, 1, Duration::from_millis(20)));
    all[0].becomes(Mood::Closes);
    let begun = std::time::Instant::now();
    within(async {
        while metric(&larder.state, "larder_origin_ejections_total") < 4 {
            let _ = larder.text(get("/")).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    // 20 and 40 and 80 ms lie between four ejections.
    assert!(begun.elapsed() >= Duration::from_millis(140), "{:?}", begun.elapsed());
    assert_eq!(all[0].asked("/"), 4);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_server_that_is_back_starts_slowly() {
    let all = replicas::<2>();
    let mut settings = settings(&all, 1, Duration::from_millis(20));
    settings.slow_start = LONG;
    let larder = Larder::with(settings);
    assert_eq!(larder.states(), [Up, Up]);
    all[0].becomes(Mood::Closes);
    larder.text(get("/")).await.unwrap_err();
    all[0].becomes(Mood::Answers(200));
    reaches(&larder, "a").await;
    assert_eq!(larder.states(), [SlowStart, Up]);
    let asked = all[0].asked("/");
    for _ in 0..110 {
        larder.text(get("/")).await.unwrap();
    }
    let share = all[0].asked("/") - asked;
    assert!((9..=11).contains(&share), "{share}");
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn an_origin_whose_servers_are_all_ejected_is_down_and_is_asked_all_the_same() {
    let all = replicas::<2>();
    let larder = Larder::with(settings(&all, 1, LONG));
    all.iter().for_each(|replica| replica.becomes(Mood::Closes));
    for is_down in [false, true, true] {
        larder.text(get("/")).await.unwrap_err();
        assert_eq!(larder.origin.is_down(), is_down);
    }
    // One of them was ejected first, and so it is the first to be asked; its success is believed at once.
    let first = all.iter().position(|replica| replica.asked("/") == 2).unwrap();
    all[first].becomes(Mood::Answers(200));
    larder.text(get("/")).await.unwrap();
    assert!(!larder.origin.is_down());
    assert_eq!(larder.states()[first], Up);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_reload_keeps_what_is_known_and_servers_that_left_drain() {
    let all = replicas::<3>();
    let larder = Larder::with(settings(&all[..2], 1, LONG));
    all[0].becomes(Mood::Closes);
    larder.text(get("/")).await.unwrap_err();
    all[1].becomes(Mood::Halfway);
    let held = larder.origin.send(get("/half")).await.unwrap();
    assert_eq!(larder.states(), [Ejected, Up]);

    // Without b, with c; a worker that still has the old settings changes nothing.
    let left = [&all[0], &all[2]].map(Replica::address);
    let mut changed = OriginSettings { slow_start: LONG, ..OriginSettings::new("app", left.to_vec()) };
    changed.servers[0].weight = 7;
    let reloaded = larder.after(changed);
    assert_eq!(reloaded.states(), [Ejected, SlowStart, Draining]);
    assert_eq!(reloaded.state.servers()[0].weight, 7);
    for _ in 0..5 {
        assert_eq!(reloaded.text(get("/")).await.unwrap(), "c");
    }
    drop(larder);
    all[1].becomes(Mood::Answers(200));
    assert_eq!(read(held.body).await, (b"bb".to_vec(), Ok(())));
    assert_eq!(reloaded.states(), [Ejected, SlowStart]);
    all[1].is_left_alone().await;
    reloaded.ends_without_leaks().await;
}

#[tokio::test]
async fn settings_that_were_refused_leave_the_present_ones_in_force() {
    let all = replicas::<2>();
    let larder = Larder::with(settings(&all[..1], 1, LONG));
    drop(larder.after(settings(&all, 1, LONG)));
    assert_eq!(larder.states(), [Up]);
    larder.state.is_quiet().await;
}
