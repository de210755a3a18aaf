//! Active health checks: who is asked what, what counts as an answer, what it changes.

use std::sync::Arc;
use std::time::Duration;

use crate::sockets::contents::read;
use crate::sockets::front::{self, Headers, take_header};
use crate::sockets::larder::{Larder, Quiet as _, get, metric};
use crate::sockets::nameserver::NameServer;
use crate::sockets::origins::{address, fine, in_turn, until};
use crate::sockets::patience::within;
use crate::sockets::peer::{Manner, Peer, Stream};
use crate::sockets::replica::{Mood, Replica, replicas};
use crate::{HealthCheck, Origin, OriginSettings, OriginState, Protocol, ResolveSettings, ServerAddress};
use bytes::Bytes;
use larder_http::authority::Authority;
use larder_http::message::Scheme;
use larder_http::target::Target;
use tokio::task::JoinSet;

const PATH: &str = "/health?deep=1";

fn quick() -> HealthCheck {
    let path = Target::parse(Bytes::from_static(PATH.as_bytes())).unwrap();
    HealthCheck {
        every: Duration::from_millis(30),
        timeout: Duration::from_millis(500),
        ..HealthCheck::new(path)
    }
}

/// larder in front of `replicas`, which are checked until the set is dropped.
fn larder(replicas: &[Replica], change: impl FnOnce(&mut HealthCheck)) -> (Larder, JoinSet<()>) {
    let mut health = quick();
    change(&mut health);
    let addresses = replicas.iter().map(Replica::address).collect();
    tended(OriginSettings { health: Some(health), ..OriginSettings::new("app", addresses) })
}

fn tended(settings: OriginSettings) -> (Larder, JoinSet<()>) {
    let state = OriginState::new();
    let origin = Arc::new(Origin::new(Arc::new(settings), state.clone()).unwrap());
    let larder = Larder { origin: origin.clone(), state };
    let mut tending = JoinSet::new();
    tending.spawn(async move { origin.tend().await });
    (larder, tending)
}

/// The states of all servers, by name.
fn states(larder: &Larder) -> String {
    larder.state.servers().iter().map(|server| format!("{:?} ", server.state)).collect()
}

/// Waits until the servers' states are these.
async fn become_(larder: &Larder, expected: &str) {
    within(async {
        while states(larder).trim_end() != expected {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

async fn text(larder: &Larder) -> String {
    let response = larder.origin.send(get("/")).await.unwrap();
    String::from_utf8(read(response.body).await.0).unwrap()
}

/// Counts of `name` by label value.
fn counts(state: &OriginState, wanted: &str) -> Vec<(String, u64)> {
    let mut counts = Vec::new();
    state.for_each(&mut |name, _, labels, value| {
        if name == wanted {
            counts.push((labels[0].1.to_owned(), value));
        }
    });
    counts
}

#[tokio::test]
async fn a_server_turns_unhealthy_and_back_after_as_many_answers_as_configured() {
    let all: [Replica; 2] = replicas();
    let (larder, tending) = larder(&all, |_| ());
    within(all[1].asked_again(PATH, 1)).await;
    become_(&larder, "Up Up").await;
    all[1].becomes(Mood::Answers(500));
    let asked = all[1].asked(PATH);
    become_(&larder, "Up Unhealthy").await;
    assert!(all[1].asked(PATH) >= asked + 2, "not after one bad answer");
    let before = all[1].asked("/");
    for _ in 0..6 {
        assert_eq!(text(&larder).await, "a");
    }
    assert_eq!(all[1].asked("/"), before);
    assert!(!larder.origin.is_down());
    all[1].becomes(Mood::Answers(399));
    become_(&larder, "Up Up").await;
    let changes = counts(&larder.state, "larder_origin_health_changes_total");
    assert_eq!(changes, [("healthy".to_owned(), 1), ("unhealthy".to_owned(), 1)]);
    let answers = [text(&larder).await, text(&larder).await];
    assert!(answers.contains(&"b".to_owned()), "{answers:?}");
    drop(tending);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn the_first_answer_decides_alone() {
    let all: [Replica; 2] = replicas();
    all[0].becomes(Mood::Answers(503));
    let (larder, tending) = larder(&all, |health| {
        (health.every, health.unhealthy) = (Duration::from_secs(5), 3);
    });
    become_(&larder, "Unhealthy Up").await;
    assert_eq!(all[0].asked(PATH), 1);
    // The other one is up from the start, whether it has been checked or not.
    let first = larder.state.servers()[0].check;
    assert_eq!(first.map(|check| check.result), Some("bad"));
    drop(tending);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn every_way_not_to_answer_is_a_bad_answer() {
    for mood in [Mood::Silent, Mood::Closes, Mood::Answers(302), Mood::Answers(404)] {
        let [a] = replicas();
        a.becomes(mood);
        let (larder, tending) = larder(std::slice::from_ref(&a), |health| {
            health.statuses = vec![200..=299, 401..=401];
            health.timeout = Duration::from_millis(100);
        });
        become_(&larder, "Unhealthy").await;
        assert!(larder.origin.is_down());
        let error = larder.origin.send(get("/")).await.unwrap_err();
        assert_eq!(
            (error.token(), error.status().as_u16(), error.is_dead()),
            ("no-server", 502, true),
            "{mood:?}"
        );
        assert_eq!(a.asked("/"), 0);
        a.becomes(Mood::Answers(401));
        become_(&larder, "Up").await;
        assert!(!larder.origin.is_down());
        drop(tending);
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn a_server_that_does_not_listen_is_unhealthy_and_found_when_it_does() {
    let mut origin = in_turn([fine("well")]);
    origin.stop().await;
    let settings = OriginSettings::new("app", vec![address(&origin)]);
    let (larder, tending) = tended(OriginSettings { health: Some(quick()), ..settings });
    become_(&larder, "Unhealthy").await;
    assert_eq!(origin.log().connections(), 0);
    origin.resume().unwrap();
    become_(&larder, "Up").await;
    assert!(origin.log().count_of(PATH) > 0);
    drop(tending);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn content_is_not_waited_for_and_the_connection_is_not_kept() {
    let [a] = replicas();
    a.becomes(Mood::Endless);
    let (larder, tending) = larder(std::slice::from_ref(&a), |_| ());
    within(a.asked_again(PATH, 3)).await;
    become_(&larder, "Up").await;
    assert_eq!(metric(&larder.state, "larder_origin_connections_reused_total"), 0);
    drop(tending);
    within(a.is_left_alone()).await;
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_check_asks_for_the_path_under_the_servers_own_name_or_the_configured_one() {
    let [a] = replicas();
    let own = a.at.to_string();
    for (host, expected) in [(None, own.as_str()), (Some("app.example"), "app.example")] {
        let (larder, tending) = larder(std::slice::from_ref(&a), |health| {
            health.host = host.map(|host| Authority::parse(Bytes::from(host), Scheme::Http).unwrap());
        });
        within(a.asked_again(PATH, 1)).await;
        let head = a.last_head().to_ascii_lowercase();
        assert!(head.starts_with("get /health?deep=1 http/1.1\r\n"), "{head}");
        assert!(head.contains(&format!("\r\nhost: {expected}\r\n")), "{head}");
        assert!(head.contains("\r\nuser-agent: larder-health-check\r\n"), "{head}");
        drop(tending);
        larder.ends_without_leaks().await;
    }
}

#[tokio::test]
async fn a_check_that_larder_has_no_connection_for_says_nothing_about_the_server() {
    let [a] = replicas();
    let settings = OriginSettings {
        max_connections: 1,
        health: Some(HealthCheck { unhealthy: 1, ..quick() }),
        ..OriginSettings::new("app", vec![a.address()])
    };
    let state = OriginState::new();
    let origin = Arc::new(Origin::new(Arc::new(settings), state.clone()).unwrap());
    a.becomes(Mood::Halfway);
    let held = origin.send(get("/half")).await.unwrap();
    let mut tending = JoinSet::new();
    let tended = origin.clone();
    tending.spawn(async move { tended.tend().await });
    let larder = Larder { origin, state };
    within(async {
        while counts(&larder.state, "larder_origin_health_checks_total")[2].1 < 3 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(states(&larder), "Up ");
    a.becomes(Mood::Answers(200));
    assert_eq!(read(held.body).await.0, b"aa");
    drop(tending);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_check_speaks_for_itself_in_a_proxy_header() {
    let (origin, headers) = (in_turn([fine("well")]), Headers::default());
    let log = headers.clone();
    let address = front::before(&origin, front::http, move |socket| take_header(socket, log.clone())).await;
    let (larder, tending) = tended(OriginSettings {
        proxy_protocol: true,
        health: Some(quick()),
        ..OriginSettings::new("app", vec![address])
    });
    until(&origin, |log| log.count() > 0).await;
    assert_eq!(headers.lock()[0], b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0", "version 2, LOCAL, nothing else");
    assert!(origin.log().received(1).starts_with(b"GET "));
    drop(tending);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_check_speaks_http2_where_requests_do_each_on_a_connection_of_its_own() {
    let peer = Peer::start(Manner::default(), async |stream: Stream| {
        stream.stage.note(format!("{} {}", stream.connection, stream.request.uri()));
        stream.answer("");
    })
    .await;
    let (larder, tending) = tended(OriginSettings {
        protocol: Protocol::Http2,
        health: Some(quick()),
        ..OriginSettings::new("app", vec![peer.address.clone()])
    });
    peer.stage.until(|stage| stage.streams() >= 2).await;
    within(async {
        while counts(&larder.state, "larder_origin_health_checks_total")[0].1 < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(tending);
    let uri = format!("{}{PATH}", peer.address.to_string().trim_end_matches('/'));
    let mut asked = peer.stage.notes();
    asked.retain(|note| note.contains(PATH));
    assert_eq!(asked[..2], [format!("0 {uri}"), format!("1 {uri}")]);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn an_address_that_vanishes_is_not_asked_any_more() {
    let names = NameServer::start().await;
    let [a, b] = replicas();
    names.hosts("app.example", &[a.ip(), b.ip()]);
    let address = ServerAddress::Http { host: "app.example".into(), port: a.at.port() };
    let (larder, tending) = tended(OriginSettings {
        health: Some(quick()),
        resolve: ResolveSettings { every: Duration::from_secs(1), name_servers: vec![names.address] },
        ..OriginSettings::new("app", vec![address])
    });
    within(a.asked_again(PATH, 1)).await;
    within(b.asked_again(PATH, 1)).await;
    names.hosts("app.example", &[a.ip()]);
    become_(&larder, "Up").await;
    within(b.is_left_alone()).await;
    let asked = b.asked(PATH);
    within(a.asked_again(PATH, 5)).await;
    assert_eq!(b.asked(PATH), asked);
    drop(tending);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn dropping_the_future_ends_every_check_in_mid_question_too() {
    let all: [Replica; 2] = replicas();
    all[0].becomes(Mood::Silent);
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let (larder, tending) = larder(&all, |_| ());
    within(all[0].asked_again(PATH, 1)).await;
    within(all[1].asked_again(PATH, 1)).await;
    assert!(tasks() > before);
    drop(tending);
    larder.state.is_quiet().await;
    for replica in &all {
        within(replica.is_left_alone()).await;
    }
    within(async {
        while tasks() > before {
            tokio::task::yield_now().await;
        }
    })
    .await;
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn settings_that_are_prepared_and_not_taken_over_change_nothing() {
    let [a] = replicas();
    a.becomes(Mood::Answers(500));
    let (larder, tending) = larder(std::slice::from_ref(&a), |_| ());
    become_(&larder, "Unhealthy").await;
    let unchecked = Arc::new(OriginSettings::new("app", vec![a.address()]));
    let refused = larder.after(unchecked.clone());
    assert_eq!(states(&larder), "Up ", "as the settings being prepared see it");
    drop(refused);
    assert_eq!(states(&larder), "Unhealthy ");
    assert_eq!(larder.origin.send(get("/")).await.unwrap_err().token(), "no-server");
    // Once they are in force nobody checks, so nobody is kept away by what was found before.
    let unchecked = larder.after(unchecked);
    drop(tending);
    assert_eq!(text(&unchecked).await, "a");
    drop(unchecked);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn what_was_found_is_forgotten_once_nobody_checks() {
    let [a] = replicas();
    a.becomes(Mood::Answers(500));
    let (larder, tending) = larder(std::slice::from_ref(&a), |_| ());
    become_(&larder, "Unhealthy").await;
    let checked = larder.origin.settings().clone();
    let unchecked = larder.after(Arc::new(OriginSettings::new("app", vec![a.address()])));
    drop(tending);
    let mut tending = JoinSet::new();
    let origin = unchecked.origin.clone();
    tending.spawn(async move { origin.tend().await });
    tokio::task::yield_now().await;
    let again = unchecked.after(Arc::new((*checked).clone()));
    assert_eq!(states(&again), "Up ");
    drop((unchecked, again, tending));
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn checks_that_go_on_after_a_reload_go_on_from_what_was_found() {
    let [a] = replicas();
    let (larder, tending) = larder(std::slice::from_ref(&a), |health| health.unhealthy = 50);
    within(async {
        while counts(&larder.state, "larder_origin_health_checks_total")[0].1 == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(tending);
    a.becomes(Mood::Answers(500));
    let after = larder.after(Arc::new((**larder.origin.settings()).clone()));
    let mut tending = JoinSet::new();
    let origin = after.origin.clone();
    tending.spawn(async move { origin.tend().await });
    within(async {
        while counts(&larder.state, "larder_origin_health_checks_total")[1].1 < 3 {
            assert_eq!(states(&larder), "Up ", "one bad answer is not enough for a server that was well");
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop((after, tending));
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_server_that_starts_a_moment_later_than_larder_is_used_with_its_first_good_answer() {
    let [a] = replicas();
    a.becomes(Mood::Closes);
    let (larder, tending) = larder(std::slice::from_ref(&a), |health| {
        health.every = Duration::from_secs(10);
        health.healthy = 5;
    });
    become_(&larder, "Unhealthy").await;
    a.becomes(Mood::Answers(200));
    let begun = std::time::Instant::now();
    become_(&larder, "Up").await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    drop(tending);
    larder.ends_without_leaks().await;
}
