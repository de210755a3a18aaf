//! Servers by name: first look-ups, names that change their meaning while larder runs, services.

use std::time::Duration;

use crate::sockets::contents::read;
use crate::sockets::larder::{Larder, get, metric};
use crate::sockets::nameserver::{A, AAAA, Data, NameServer, Reply, SERVFAIL, SRV};
use crate::sockets::patience::within;
use crate::sockets::replica::{Mood, Replica, replicas};
use crate::{OriginFailure, OriginSettings, ResolveSettings, ServerAddress, ServerState};
use tokio::task::JoinSet;

const SERVICE: &str = "_web._tcp.app.example";

/// larder in front of `address`, with its names from `names`; `tend` runs until the set is dropped.
fn larder(address: &str, names: &NameServer) -> (Larder, JoinSet<()>) {
    let (larder, mut tending) = untended(address, names, |_| ());
    let origin = larder.origin.clone();
    tending.spawn(async move { origin.tend().await });
    (larder, tending)
}

fn untended(
    address: &str,
    names: &NameServer,
    change: impl FnOnce(&mut OriginSettings),
) -> (Larder, JoinSet<()>) {
    let larder = Larder::new(&ServerAddress::parse(address).unwrap(), |settings| {
        // The shortest there is.
        settings.resolve =
            ResolveSettings { every: Duration::from_secs(1), name_servers: vec![names.address] };
        change(settings);
    });
    (larder, JoinSet::new())
}

/// The name of the server that answers.
async fn text(larder: &Larder) -> Result<String, OriginFailure> {
    let response = larder.origin.send(get("/")).await?;
    Ok(String::from_utf8(read(response.body).await.0).unwrap())
}

/// Sends requests until `name` answers.
async fn reaches(larder: &Larder, name: &str) {
    within(async { while text(larder).await.ok().as_deref() != Some(name) {} }).await;
}

fn url(replica: &Replica) -> String {
    format!("http://app.example:{}", replica.at.port())
}

#[tokio::test]
async fn a_burst_before_the_first_answer_asks_once() {
    let names = NameServer::start().await;
    let [a] = replicas();
    names.hosts("app.example", &[a.ip()]);
    let (larder, _) = untended(&url(&a), &names, |_| ());
    let mut burst = JoinSet::new();
    for _ in 0..10 {
        let origin = larder.origin.clone();
        burst.spawn(async move { origin.send(get("/")).await.unwrap().status });
    }
    assert!(burst.join_all().await.iter().all(|status| *status == 200));
    assert_eq!((names.asked("app.example", A), names.asked("app.example", AAAA)), (1, 1));
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_name_that_has_no_address_at_first_gets_one_later() {
    let names = NameServer::start().await;
    let [a] = replicas();
    let (larder, _) = untended(&url(&a), &names, |_| ());
    let unresolved = larder.origin.probe().await;
    assert_eq!(unresolved.len(), 1);
    assert_eq!(unresolved[0].server.to_string(), url(&a));
    assert_eq!(text(&larder).await.unwrap_err().token(), "dns");
    assert!(larder.origin.is_down());
    names.hosts("app.example", &[a.ip()]);
    reaches(&larder, "a").await;
    assert!(!larder.origin.is_down());
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn all_addresses_of_a_name_take_their_turns() {
    let names = NameServer::start().await;
    let all: [Replica; 3] = replicas();
    names.hosts("app.example", &all.each_ref().map(Replica::ip));
    let (larder, _) = untended(&url(&all[0]), &names, |_| ());
    for _ in 0..9 {
        text(&larder).await.unwrap();
    }
    assert_eq!(all.each_ref().map(|replica| replica.asked("/")), [3, 3, 3]);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_name_that_moves_is_followed_and_the_address_it_left_drains() {
    let names = NameServer::start().await;
    let [a, b] = replicas();
    names.hosts("app.example", &[a.ip()]);
    let (larder, tending) = larder(&url(&a), &names);
    assert_eq!(text(&larder).await.unwrap(), "a");
    a.becomes(Mood::Halfway);
    let in_flight = larder.origin.send(get("/half")).await.unwrap();
    names.hosts("app.example", &[b.ip()]);
    names.asked_again("app.example", A, 1).await;
    reaches(&larder, "b").await;
    let before = a.asked("/");
    for _ in 0..5 {
        assert_eq!(text(&larder).await.unwrap(), "b");
    }
    assert_eq!(a.asked("/"), before, "nothing new for the address that is gone");
    a.becomes(Mood::Answers(200));
    assert_eq!(read(in_flight.body).await, (b"aa".to_vec(), Ok(())), "what was in flight ends well");
    a.is_left_alone().await;
    drop(tending);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn the_last_good_answer_stays_whatever_the_name_server_does() {
    let names = NameServer::start().await;
    let [a] = replicas();
    names.hosts("app.example", &[a.ip()]);
    let (larder, tending) = larder(&url(&a), &names);
    assert_eq!(text(&larder).await.unwrap(), "a");
    names.forget("app.example");
    names.asked_again("app.example", A, 2).await;
    assert_eq!(text(&larder).await.unwrap(), "a", "no such name");
    names.set("app.example", A, Reply::Records(Vec::new()));
    names.asked_again("app.example", A, 2).await;
    assert_eq!(text(&larder).await.unwrap(), "a", "no addresses");
    names.set("app.example", A, Reply::Code(SERVFAIL));
    names.set("app.example", AAAA, Reply::Silence);
    names.asked_again("app.example", A, 1).await;
    assert_eq!(text(&larder).await.unwrap(), "a", "no answer, and nobody waits for one");
    drop(tending);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_better_priority_gets_everything_while_it_can_be_asked() {
    let names = NameServer::start().await;
    let [a, b] = replicas();
    let port = a.at.port();
    names.hosts("a.example", &[a.ip()]);
    names.hosts("b.example", &[b.ip()]);
    names.service(SERVICE, &[(20, 1, port, "b.example"), (10, 1, port, "a.example")]);
    let (larder, _) = untended(&format!("http+srv://{SERVICE}"), &names, |settings| {
        settings.ejection.failures = 1;
    });
    for _ in 0..5 {
        assert_eq!(text(&larder).await.unwrap(), "a");
    }
    drop(a);
    reaches(&larder, "b").await;
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_services_targets_share_by_its_records_weights() {
    let names = NameServer::start().await;
    let all: [Replica; 3] = replicas();
    let port = all[0].at.port();
    for (replica, host) in all.iter().zip(["a.example", "b.example", "c.example"]) {
        names.hosts(host, &[replica.ip()]);
    }
    names.service(
        SERVICE,
        &[(0, 30, port, "a.example"), (0, 10, port, "b.example"), (0, 0, port, "c.example")],
    );
    let (larder, _) = untended(&format!("http+srv://{SERVICE}"), &names, |_| ());
    for _ in 0..40 {
        text(&larder).await.unwrap();
    }
    let [a, b, c] = all.each_ref().map(|replica| replica.asked("/"));
    assert_eq!((a + b + c, a >= 29, b >= 9, c <= 1), (40, true, true, true), "{a} {b} {c}");
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_service_that_changes_is_followed() {
    let names = NameServer::start().await;
    let [a, b] = replicas();
    let port = a.at.port();
    names.hosts("a.example", &[a.ip()]);
    names.set("b.example", A, Reply::Records(vec![Data::Cname("c.example"), Data::A(b.ip())]));
    names.service(SERVICE, &[(0, 0, port, "a.example")]);
    let (larder, tending) = larder(&format!("http+srv://{SERVICE}"), &names);
    assert_eq!(text(&larder).await.unwrap(), "a");
    names.service(SERVICE, &[(0, 0, port, "b.example")]);
    names.asked_again(SERVICE, SRV, 1).await;
    reaches(&larder, "b").await;
    a.is_left_alone().await;
    names.service(SERVICE, &[(0, 0, port, "")]);
    names.asked_again(SERVICE, SRV, 2).await;
    assert_eq!(
        text(&larder).await.unwrap(),
        "b",
        "what is not offered any more is still the last good answer"
    );
    drop(tending);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_first_look_up_ends_with_nobody_who_waits_for_it() {
    let names = NameServer::start().await;
    let [a] = replicas();
    names.set("app.example", A, Reply::Silence);
    names.set("app.example", AAAA, Reply::Records(Vec::new()));
    let (larder, _) = untended(&url(&a), &names, |settings| {
        settings.timeouts.connect = Duration::from_millis(100);
    });
    for _ in 0..3 {
        assert_eq!(text(&larder).await.unwrap_err().token(), "connect-timeout");
    }
    assert_eq!(names.asked("app.example", A), 1, "all of them wait for the same look-up");
    names.hosts("app.example", &[a.ip()]);
    reaches(&larder, "a").await;
    assert_eq!(names.asked("app.example", A), 2, "the server is asked once more where it was silent");
    larder.ends_without_leaks().await;
}

/// Waits until there are so many addresses.
async fn addresses(larder: &Larder, count: usize) {
    within(async {
        while larder.states().len() != count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn an_address_that_is_absent_for_a_short_while_comes_back_as_what_it_was() {
    let names = NameServer::start().await;
    let [a, b] = replicas();
    names.hosts("app.example", &[a.ip(), b.ip()]);
    let (larder, _) = untended(&url(&a), &names, |settings| {
        let forever = Duration::from_secs(600);
        settings.ejection = crate::Ejection { failures: 1, time: forever, time_max: forever };
    });
    a.becomes(Mood::Closes);
    within(async { while text(&larder).await.is_ok() {} }).await;
    let mut tending = JoinSet::new();
    let origin = larder.origin.clone();
    tending.spawn(async move { origin.tend().await });
    for hosts in [vec![b.ip()], vec![a.ip(), b.ip()]] {
        names.hosts("app.example", &hosts);
        addresses(&larder, hosts.len()).await;
    }
    assert_eq!(larder.states(), [ServerState::Ejected, ServerState::Up]);
    drop(tending);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_target_that_leaves_does_not_disturb_the_connections_to_the_others() {
    let names = NameServer::start().await;
    let all: [Replica; 3] = replicas();
    let port = all[0].at.port();
    for (replica, host) in all.iter().zip(["a.example", "b.example", "c.example"]) {
        names.hosts(host, &[replica.ip()]);
    }
    let targets = [(0, 10, port, "a.example"), (0, 10, port, "b.example"), (0, 20, port, "c.example")];
    names.service(SERVICE, &targets);
    let (larder, tending) = larder(&format!("http+srv://{SERVICE}"), &names);
    for _ in 0..4 {
        text(&larder).await.unwrap();
    }
    assert_eq!(metric(&larder.state, "larder_origin_connections_opened_total"), 3);
    names.service(SERVICE, &targets[..2]);
    addresses(&larder, 2).await;
    for _ in 0..4 {
        text(&larder).await.unwrap();
    }
    assert_eq!(metric(&larder.state, "larder_origin_connections_opened_total"), 3);
    drop(tending);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn who_stands_by_in_a_service_is_asked_after_every_server_of_the_best_level() {
    let names = NameServer::start().await;
    let [a, b, c] = replicas();
    let port = a.at.port();
    names.hosts("a.example", &[a.ip()]);
    names.hosts("b.example", &[b.ip()]);
    names.service(SERVICE, &[(0, 1, port, "a.example"), (10, 1, port, "b.example")]);
    let (larder, _) = untended(&format!("http+srv://{SERVICE}"), &names, |settings| {
        settings.servers.push(c.address().into());
    });
    larder.origin.probe().await;
    drop(a);
    for _ in 0..6 {
        assert_eq!(text(&larder).await.unwrap(), "c");
    }
    drop(c);
    reaches(&larder, "b").await;
    larder.ends_without_leaks().await;
}
