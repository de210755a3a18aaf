//! Many clients at once: one question per key, one fetch per miss, and nobody gets the value of another URL while the server is killed
//! and started again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use larder_testkit::client::Request;
use tokio::task::JoinSet;

use super::{HOST, Setup, page};
use crate::support::{connect, script, within};

const CLIENTS: usize = 50;

#[tokio::test]
async fn a_crowd_before_an_absent_value_asks_once_and_fetches_once() {
    let held = larder_testkit::origin::Answer {
        hold: Some("open".to_owned()),
        ..page(&["Cache-Control: max-age=60"], "from the origin")
    };
    let setup = Setup::new(vec![script("/a", held)], "near = \"1h\"\ntimeout = \"5s\"", "").await;
    // While the server is stopped, all of them come.
    setup.memcached.stop();
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let addr = setup.larder.addr;
        clients.spawn(async move { crate::support::get(addr, "/a").await });
    }
    let open = async || setup.larder.metrics().await.sum("larder_connections_open") >= CLIENTS as u64;
    crate::support::until("all have come", open).await;
    setup.memcached.resume();
    crate::support::until("the origin is asked", async || setup.origin.log().count() == 1).await;
    setup.origin.gates().release("open");
    while let Some(answer) = within("an answer", clients.join_next()).await {
        assert_eq!(answer.unwrap().body, b"from the origin");
    }
    assert_eq!(setup.origin.log().count(), 1);
    let looked = setup.lookups("absent").await;
    assert!(looked < CLIENTS as u64 / 4, "{looked} questions of {CLIENTS} clients");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_gets_another_urls_value_while_the_server_is_killed_and_started() {
    let origin = |target: &str| page(&["Cache-Control: no-store"], target);
    let scripts = (0..20).map(|number| script(&format!("/{number}"), origin(&format!("/{number}"))));
    let mut setup = Setup::new(scripts.collect(), "near = \"0s\"\ntimeout = \"50ms\"", "").await;
    let fill = |setup: &Setup| {
        let mut raw = setup.memcached.raw();
        (0..20).for_each(|number| raw.set(&format!("/{number}"), 0, 0, format!("/{number}").as_bytes()));
    };
    fill(&setup);
    let (is_over, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut clients = JoinSet::new();
    for client in 0..16_u64 {
        let (addr, is_over, asked) = (setup.larder.addr, Arc::clone(&is_over), Arc::clone(&asked));
        clients.spawn(async move {
            let mut connection = connect(addr).await;
            for turn in client.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let target = format!("/{}", (turn * 7 + client) % 20);
                if turn % 5 == 0 {
                    // It leaves in the middle.
                    let request = Request::new("GET", &target, HOST);
                    let leaving = connection.exchange(&request);
                    let _ = tokio::time::timeout(Duration::from_micros(turn % 700), leaving).await;
                    connection = connect(addr).await;
                    continue;
                }
                let answer = connection.exchange(&Request::new("GET", &target, HOST)).await.unwrap();
                assert_eq!(
                    (answer.status, String::from_utf8_lossy(&answer.body)),
                    (200, target.as_str().into())
                );
                asked.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let begun = Instant::now();
    for round in 0..6 {
        let before = asked.load(Ordering::Relaxed);
        crate::support::until("it goes on", async || asked.load(Ordering::Relaxed) > before + 100).await;
        match round % 3 {
            0 => setup.memcached.stop(),
            1 => setup.memcached.resume(),
            _ => {
                setup.memcached.kill();
                setup.memcached.restart();
                fill(&setup);
            }
        }
    }
    is_over.store(true, Ordering::Relaxed);
    while let Some(client) = within("the end of a client", clients.join_next()).await {
        client.unwrap();
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert!(setup.lookups("found").await > 0);
}
