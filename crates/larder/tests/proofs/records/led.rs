//! One larder fetches for all: the origin gets one request, whichever larder the clients ask. No request waits for a response that is not shared.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use larder_testkit::client::Response;
use tokio::task::JoinSet;

use super::{Larder, Scene, is_hit, leased, state, together};
use crate::support::{Signal, asking, cache_status, connect, get, until};

async fn three(scene: &Scene) -> [Larder; 3] {
    let (first, second) = scene.two().await;
    [first, second, scene.larder("web-3").await]
}

fn crowd(addr: SocketAddr, target: &str, count: usize) -> JoinSet<Response> {
    let mut crowd = JoinSet::new();
    for _ in 0..count {
        let target = target.to_owned();
        crowd.spawn(async move { get(addr, &target).await });
    }
    crowd
}

#[tokio::test]
async fn a_crowd_at_three_larders_asks_the_origin_once() {
    let scene = Scene::new();
    let larders = three(&scene).await;
    let target = "/held-20000";
    let mut crowds: Vec<_> = larders.iter().map(|larder| crowd(larder.process.addr, target, 100)).collect();
    until("all wait", async || {
        larders[0].waiting().await + larders[1].waiting().await + larders[2].waiting().await == 300
    })
    .await;
    scene.origin.gates().release(target);
    let mut waited = 0;
    for crowd in &mut crowds {
        while let Some(response) = crowd.join_next().await {
            let response = response.unwrap();
            waited += usize::from(cache_status(&response).ends_with("detail=elsewhere"));
            assert_eq!((state(&response), response.body.len()), (1, 20_000), "{}", cache_status(&response));
        }
    }
    assert_eq!(scene.asked(target), 1);
    assert_eq!(waited, 200, "those of the two larders that have not fetched say so");
    let mut ended = [0, 0];
    for larder in &larders {
        ended[0] += larder.leads("led").await;
        ended[1] += larder.leads("waited").await;
    }
    assert_eq!(ended, [1, 2]);
    until("the right to fetch is given back", async || scene.claims().is_empty()).await;
}

/// An origin that answers at once: whoever looked just before the record came must not fetch it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_urls_are_each_fetched_once_however_quick_the_origin_is() {
    let scene = Scene::new();
    let larders = three(&scene).await;
    for number in 0..100 {
        let target = format!("/quick-{}", 3000 + number);
        let asked = larders.iter().map(|larder| get(larder.process.addr, &target));
        for response in futures_util::future::join_all(asked).await {
            assert_eq!(response.body.len(), 3000 + number, "{response}");
        }
    }
    let (mut fetched, mut twice) = (0, Vec::new());
    for number in 0..100 {
        let target = format!("/quick-{}", 3000 + number);
        fetched += scene.asked(&target);
        if scene.asked(&target) > 1 {
            twice.push(target);
        }
    }
    assert_eq!((fetched, &twice[..]), (100, &[][..]));
}

#[tokio::test]
async fn variants_of_a_page_are_each_fetched_once() {
    let scene = Scene::new();
    let larders = three(&scene).await;
    for _ in 0..2 {
        for language in ["de", "fr", "nl"] {
            let request = || {
                larder_testkit::client::Request::new("GET", "/vary", "localhost")
                    .field("Accept-Language", language)
            };
            let requests = [request(), request(), request()];
            let asked = larders.iter().zip(&requests).map(|(larder, request)| larder.ask(request));
            for response in futures_util::future::join_all(asked).await {
                assert!(String::from_utf8_lossy(&response.body).contains(language), "{response}");
            }
        }
    }
    assert_eq!(scene.asked("/vary"), 3);
}

#[tokio::test]
async fn what_is_stale_at_all_of_them_is_validated_once() {
    let scene = Scene::new();
    let larders = three(&scene).await;
    for larder in &larders {
        larder.get("/slow/soon").await;
    }
    assert_eq!(scene.asked("/slow/soon"), 1);
    let last = Instant::now();
    until("it is stale", async || {
        // No request comes meanwhile: a response in use is refreshed. A larder counts its lifetime of two seconds by a clock of its own,
        // and may still hold it for fresh when Redis lets go of the record.
        scene.redis.names("larder:1:default:r:*").is_empty() && last.elapsed() > Duration::from_millis(2500)
    })
    .await;
    let now = scene.change();
    let asked = larders.iter().map(|larder| larder.get("/slow/soon"));
    for response in futures_util::future::join_all(asked).await {
        assert_eq!(state(&response), now, "{response}");
    }
    assert_eq!(scene.asked("/slow/soon"), 2);
}

/// The record that a larder has written itself is not what a refresh of it waits for.
#[tokio::test]
async fn a_refresh_ahead_of_time_brings_a_new_response() {
    let scene = Scene::new();
    let larder = scene.with_site("web-1", "refresh_ahead = true").await;
    let began = Instant::now();
    let mut missed = 0;
    while began.elapsed() < Duration::from_secs(5) {
        missed += u64::from(!is_hit(&larder.get("/slow/soon").await));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(scene.asked("/slow/soon") >= 2 && missed == 1, "{missed} of {}", scene.asked("/slow/soon"));
}

#[tokio::test]
async fn what_is_for_one_client_is_not_waited_for() {
    let scene = Scene::new();
    let larders = three(&scene).await;
    // The first learns what it is, and tells the others.
    larders[0].get("/slow/private").await;
    until("it is told", async || !scene.claims().is_empty()).await;
    let begun = Instant::now();
    let asked = larders[1..].iter().flat_map(|larder| [larder, larder, larder]);
    let asked = asked.map(|larder| larder.get("/slow/private"));
    for response in futures_util::future::join_all(asked).await {
        assert_eq!(response.status, 200);
    }
    // One that was waited for by the next would take as long as all of them.
    assert!(begun.elapsed() < Duration::from_millis(6 * 300), "{:?}", begun.elapsed());
    assert_eq!(scene.asked("/slow/private"), 7);
    assert_eq!(larders[1].leads("led").await + larders[2].leads("led").await, 0);
}

#[tokio::test]
async fn a_larder_that_dies_while_it_fetches_costs_one_more_fetch() {
    let scene = Scene::new();
    let [first, second, third] = three(&scene).await;
    let target = "/held-5000";
    let mut lost = connect(first.process.addr).await;
    lost.write(&asking(target).to_http1()).await.unwrap();
    until("it is asked for", async || scene.asked(target) == 1).await;
    let mut others = [crowd(second.process.addr, target, 20), crowd(third.process.addr, target, 20)];
    until("the others wait", async || second.waiting().await + third.waiting().await == 40).await;
    first.process.signal(Signal::KILL);
    until("another one fetches it", async || scene.asked(target) == 2).await;
    scene.origin.gates().release(target);
    for crowd in &mut others {
        while let Some(response) = crowd.join_next().await {
            assert_eq!(response.unwrap().body.len(), 5000);
        }
    }
    assert_eq!(scene.asked(target), 2);
}

#[tokio::test]
async fn a_long_body_and_one_without_an_end_are_not_waited_for() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    for target in ["/half-3000000", "/stream-30000", "/half-20000"] {
        let mut one = crowd(first.process.addr, target, 1);
        until("the first is at it", async || scene.asked(target) == 1).await;
        let mut other = crowd(second.process.addr, target, 1);
        until("the second does not wait for it", async || scene.asked(target) == 2).await;
        scene.origin.gates().release(target);
        let (one, other) =
            (one.join_next().await.unwrap().unwrap(), other.join_next().await.unwrap().unwrap());
        assert!(one.body == other.body && state(&one) == 1);
    }
}

#[tokio::test]
async fn a_server_that_hangs_or_dies_ends_the_waiting() {
    let mut scene = Scene::with_default_timeout();
    let (first, second) = scene.two().await;
    for (target, dies) in [("/held-4000", false), ("/held-4001", true)] {
        let mut one = crowd(first.process.addr, target, 1);
        until("the first is at it", async || scene.asked(target) == 1).await;
        let mut other = crowd(second.process.addr, target, 3);
        until("the second waits", async || second.waiting().await == 3).await;
        match dies {
            false => scene.redis.stop(),
            true => scene.redis.kill(),
        }
        until("it asks the origin itself", async || scene.asked(target) == 2).await;
        scene.origin.gates().release(target);
        assert_eq!(state(&one.join_next().await.unwrap().unwrap()), 1);
        while let Some(response) = other.join_next().await {
            assert_eq!(state(&response.unwrap()), 1);
        }
        if !dies {
            scene.redis.resume();
            leased(&[&first, &second]).await;
        }
    }
}

/// The old record is there, and fresh by its time.
#[tokio::test]
async fn a_crowd_after_a_purge_asks_the_origin_once() {
    let scene = Scene::new();
    let larders = three(&scene).await;
    together(&[&larders[0], &larders[1], &larders[2]]).await;
    for (number, what) in
        [r#"{"tags": ["page"]}"#, r#"{"urls": ["http://localhost/slow/page-2000"]}"#, r#"{"all": true}"#]
            .into_iter()
            .enumerate()
    {
        let target = "/slow/page-2000";
        for larder in &larders {
            larder.get(target).await;
        }
        let (now, asked) = (scene.change(), scene.asked(target));
        let (status, receipt) = larders[number].purge(what).await;
        assert_eq!(status, 200, "{receipt}");
        let mut crowds: Vec<_> =
            larders.iter().map(|larder| crowd(larder.process.addr, target, 20)).collect();
        let mut told = BTreeSet::new();
        for crowd in &mut crowds {
            while let Some(response) = crowd.join_next().await {
                let response = response.unwrap();
                assert_eq!(state(&response), now, "{what}");
                told.insert(cache_status(&response).to_owned());
            }
        }
        let mut ended = Vec::new();
        for larder in &larders {
            for how in ["led", "found", "waited", "apart"] {
                ended.push(format!("{how} {}", larder.leads(how).await));
            }
        }
        assert_eq!(scene.asked(target), asked + 1, "{what}: {told:?}, {ended:?}");
    }
}

#[tokio::test]
async fn a_lifetime_of_a_second_is_shared() {
    let scene = Scene::new();
    let larders = three(&scene).await;
    for _ in 0..3 {
        let asked = scene.asked("/slow/second");
        let crowds = larders.iter().map(|larder| larder.get("/slow/second"));
        futures_util::future::join_all(crowds).await;
        assert_eq!(scene.asked("/slow/second"), asked + 1);
        until("it is over", async || scene.redis.names("larder:1:default:r:*").is_empty()).await;
    }
}

#[tokio::test]
async fn an_origin_that_fails_is_not_asked_by_one_larder_after_the_other() {
    let scene = Scene::new();
    let larders = three(&scene).await;
    let begun = Instant::now();
    let asked = larders.iter().flat_map(|larder| [larder, larder]).map(|larder| larder.get("/fails"));
    for response in futures_util::future::join_all(asked).await {
        assert_eq!(response.status, 500);
    }
    // One fetch that all wait for, and then each for itself at once.
    assert!(begun.elapsed() < Duration::from_millis(1200), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn what_another_has_begun_before_a_purge_is_not_used_after_it() {
    let scene = Scene::new();
    let larders = three(&scene).await;
    together(&[&larders[0], &larders[1], &larders[2]]).await;
    let target = "/held-6000";
    let mut one = crowd(larders[0].process.addr, target, 1);
    until("the first is at it", async || scene.asked(target) == 1).await;
    let now = scene.change();
    let (status, receipt) = larders[2].purge(r#"{"tags": ["page"]}"#).await;
    assert_eq!(status, 200, "{receipt}");
    let mut other = crowd(larders[1].process.addr, target, 2);
    until("the second waits", async || larders[1].waiting().await == 2).await;
    scene.origin.gates().release(target);
    one.join_next().await.unwrap().unwrap();
    while let Some(response) = other.join_next().await {
        assert_eq!(state(&response.unwrap()), now);
    }
    assert!(is_hit(&larders[1].get(target).await));
}
