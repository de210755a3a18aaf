//! Which server a request meets: weights, load, hashes, cookies, backups.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::sockets::contents::read;
use crate::sockets::larder::{Larder, get};
use crate::sockets::patience::within;
use crate::sockets::replica::{Mood, Replica, replicas};
use crate::{Affinity, Balance, Ejection, OriginRequest, OriginSettings, ServerSettings, ServerTag};

const LONG: Duration = Duration::from_secs(600);

/// All replicas, with these weights.
fn weighted(replicas: &[Replica], weights: &[u16]) -> Vec<ServerSettings> {
    let server = |(replica, weight): (&Replica, &u16)| ServerSettings {
        weight: *weight,
        ..ServerSettings::from(replica.address())
    };
    replicas.iter().zip(weights).map(server).collect()
}

/// One failure ejects for good.
fn settings(replicas: &[Replica], balance: Balance) -> OriginSettings {
    OriginSettings {
        balance,
        ejection: Ejection { failures: 1, time: LONG, time_max: LONG },
        ..OriginSettings::new("app", replicas.iter().map(Replica::address).collect())
    }
}

fn with_hash(hash: u64) -> OriginRequest {
    OriginRequest { affinity: Affinity { hash: Some(hash), server: None }, ..get("/") }
}

fn with_tag(server: ServerTag) -> OriginRequest {
    OriginRequest { affinity: Affinity { hash: None, server: Some(server) }, ..get("/") }
}

#[tokio::test]
async fn weights_hold_over_many_requests_and_are_spread() {
    let all = replicas::<3>();
    let mut settings = settings(&all, Balance::RoundRobin);
    settings.servers = weighted(&all, &[5, 1, 2]);
    let larder = Larder::with(settings);
    let mut order = String::new();
    for _ in 0..80 {
        order += &larder.text(get("/")).await.unwrap();
    }
    assert_eq!(order[..8].to_owned(), "acaabaca");
    let counts: Vec<_> = all.iter().map(|replica| replica.asked("/")).collect();
    assert_eq!(counts, [50, 10, 20]);
    let reported: Vec<_> = larder.state.servers().iter().map(|s| (s.weight, s.requests)).collect();
    assert_eq!(reported, [(5, 50), (1, 10), (2, 20)]);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn least_requests_go_to_the_idle_server_whichever_worker_made_the_other_busy() {
    let all = replicas::<2>();
    let settings = Arc::new(settings(&all, Balance::LeastRequests));
    let one = Larder::with((*settings).clone());
    let settings = one.origin.settings().clone();
    let other = one.after(settings);
    all.iter().for_each(|replica| replica.becomes(Mood::Halfway));
    let held = one.origin.send(get("/half")).await.unwrap();
    let busy = all.iter().position(|replica| replica.asked("/half") == 1).unwrap();
    let idle = 1 - busy;
    for _ in 0..20 {
        one.text(get("/")).await.unwrap();
        other.text(get("/")).await.unwrap();
    }
    assert_eq!((all[busy].asked("/"), all[idle].asked("/")), (0, 40));
    let in_flight = |index: usize| one.state.servers()[index].in_flight;
    assert_eq!((in_flight(busy), in_flight(idle)), (1, 0));
    // In flight until the end of the content.
    all[busy].becomes(Mood::Answers(200));
    read(held.body).await.1.unwrap();
    assert_eq!(in_flight(busy), 0);
    drop(other);
    one.ends_without_leaks().await;
}

async fn homes(larder: &Larder) -> BTreeMap<u64, String> {
    let mut homes = BTreeMap::new();
    for hash in 0..60_u64 {
        homes.insert(hash, larder.text(with_hash(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15))).await.unwrap());
    }
    homes
}

#[tokio::test]
async fn a_hash_meets_its_server_again_and_only_requests_of_one_that_is_out_move() {
    let all = replicas::<3>();
    let larder = Larder::with(settings(&all, Balance::Hash));
    let before = homes(&larder).await;
    for replica in ["a", "b", "c"] {
        let count = before.values().filter(|home| *home == replica).count();
        assert!((8..36).contains(&count), "{before:?}");
    }
    // Another process, and another order in the config.
    let mut reversed = settings(&all, Balance::Hash);
    reversed.servers.reverse();
    assert_eq!(homes(&Larder::with(reversed)).await, before);

    let [a, b, c] = all;
    let address = a.at;
    drop(a);
    while tokio::net::TcpStream::connect(address).await.is_ok() {}
    let after = homes(&larder).await;
    for (hash, home) in &before {
        match home.as_str() {
            "a" => assert_ne!(after[hash], "a"),
            home => assert_eq!(after[hash], home),
        }
    }
    let moved: Vec<_> =
        before.iter().filter(|(_, home)| *home == "a").map(|(hash, _)| &after[hash]).collect();
    assert!(moved.iter().any(|home| *home == "b") && moved.iter().any(|home| *home == "c"), "{moved:?}");
    drop((b, c));
}

#[tokio::test]
async fn backups_are_asked_only_while_no_other_server_can_be() {
    let all = replicas::<3>();
    let mut settings = settings(&all, Balance::RoundRobin);
    settings.servers[2].backup = true;
    settings.ejection.time = Duration::from_millis(40);
    let larder = Larder::with(settings);
    for _ in 0..10 {
        assert_ne!(larder.text(get("/")).await.unwrap(), "c");
    }
    all[0].becomes(Mood::Closes);
    all[1].becomes(Mood::Closes);
    for _ in 0..2 {
        larder.text(get("/")).await.unwrap_err();
    }
    assert_eq!(larder.text(get("/")).await.unwrap(), "c");
    all[0].becomes(Mood::Answers(200));
    let found = async {
        while larder.text(get("/")).await.ok().as_deref() != Some("a") {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    within(found).await;
    let reported: Vec<_> = larder.state.servers().iter().map(|server| server.backup).collect();
    assert_eq!(reported, [false, false, true]);
    larder.ends_without_leaks().await;
}

#[tokio::test]
async fn a_tag_leads_back_to_its_server_as_long_as_it_can_be_asked() {
    let all = replicas::<3>();
    for balance in [Balance::RoundRobin, Balance::LeastRequests, Balance::Hash] {
        let larder = Larder::with(settings(&all, balance));
        let first = larder.origin.send(get("/")).await.unwrap();
        let tag: ServerTag = first.tag.to_string().parse().unwrap();
        let name = String::from_utf8(read(first.body).await.0).unwrap();
        for _ in 0..10 {
            larder.text(get("/")).await.unwrap();
            assert_eq!(larder.text(with_tag(tag)).await.unwrap(), name);
        }
        // A new process knows it too.
        let again = Larder::with(settings(&all, balance));
        assert_eq!(again.text(with_tag(tag)).await.unwrap(), name);

        let server = all.iter().find(|replica| *replica.address().to_string() == *first.server).unwrap();
        server.becomes(Mood::Closes);
        again.text(with_tag(tag)).await.unwrap_err();
        assert_ne!(again.text(with_tag(tag)).await.unwrap(), name);
        server.becomes(Mood::Answers(200));
        // Nobody's tag: any server.
        larder.text(with_tag("0123456789abcdef".parse().unwrap())).await.unwrap();
    }
}

#[tokio::test]
async fn a_client_that_met_a_backup_leaves_it_when_the_others_are_back() {
    let all = replicas::<2>();
    let mut settings = settings(&all, Balance::RoundRobin);
    settings.servers[1].backup = true;
    settings.ejection = Ejection { failures: 1, time: Duration::from_millis(20), time_max: LONG };
    let larder = Larder::with(settings);
    all[0].becomes(Mood::Closes);
    larder.text(get("/")).await.unwrap_err();
    let response = larder.origin.send(get("/")).await.unwrap();
    let backup = response.tag;
    assert_eq!(read(response.body).await.0, b"b");
    all[0].becomes(Mood::Answers(200));
    within(async { while larder.text(with_tag(backup)).await.unwrap() != "a" {} }).await;
    for _ in 0..5 {
        assert_eq!(larder.text(with_tag(backup)).await.unwrap(), "a");
    }
    larder.ends_without_leaks().await;
}
