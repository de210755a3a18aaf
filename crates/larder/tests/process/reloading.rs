//! SIGHUP: a good file takes over as a whole, a bad one changes nothing; the cache and connections are kept.

use std::net::SocketAddr;

use larder_testkit::client::Progress;
use larder_testkit::origin::{Answer, Origin};

use crate::support::{
    BOUND, Process, Signal, answer_of, asking, assert_whole, cache_status, cacheable, config, connect, get,
    script, until, within, written,
};

const MARKED: &str = "response = { set = { X-Config = \"two\" } }";

async fn reloads(larder: &Process, result: &str) -> u64 {
    let series = format!("larder_config_reloads_total{{result=\"{result}\"}}");
    larder.metrics().await.value(&series).unwrap_or(0.0) as u64
}

#[tokio::test]
async fn a_good_file_takes_over_and_cache_and_connections_are_kept() {
    let origin = Origin::simple(vec![cacheable("/a", 1000)]).unwrap();
    let (_directory, path) = written(&config(&origin.url(), "", ""));
    let larder = Process::run_config(&path).await;
    let mut client = connect(larder.addr).await;
    let before = client.exchange(&asking("/a")).await.unwrap();
    assert_whole(&before, "/a", 1000);
    assert!(!before.fields.has("x-config"));
    until("it is stored", async || cache_status(&get(larder.addr, "/a").await).contains("; hit")).await;
    std::fs::write(&path, config(&origin.url(), "", MARKED)).unwrap();
    larder.signal(Signal::HUP);
    larder.says("larder: reloaded").await;
    let after = client.exchange(&asking("/a")).await.unwrap();
    assert_whole(&after, "/a", 1000);
    assert!(cache_status(&after).contains("; hit"), "the cache is kept: {after}");
    assert_eq!(after.fields.first("x-config"), Some("two"), "the new rule is in force: {after}");
    assert_eq!(origin.log().count(), 1, "{}", origin.log());
    assert_eq!((reloads(&larder, "ok").await, reloads(&larder, "error").await), (1, 0));
}

#[tokio::test]
async fn a_bad_file_changes_nothing_and_every_error_is_said() {
    let origin = Origin::simple(vec![cacheable("/a", 1000)]).unwrap();
    let (_directory, path) = written(&config(&origin.url(), "", MARKED));
    let larder = Process::run_config(&path).await;
    let mut client = connect(larder.addr).await;
    assert_whole(&client.exchange(&asking("/a")).await.unwrap(), "/a", 1000);
    std::fs::write(&path, config(&origin.url(), "workres = 2", "ttl = \"ten\"\norgin = \"x\"")).unwrap();
    larder.signal(Signal::HUP);
    larder.says("the old one stays in force").await;
    let said = larder.stderr().join("\n");
    for part in ["unknown key \"workres\"", "found \"ten\"", "unknown key \"orgin\""] {
        assert!(said.contains(part), "no {part} in {said}");
    }
    let after = client.exchange(&asking("/a")).await.unwrap();
    assert!(cache_status(&after).contains("; hit"), "{after}");
    assert_eq!(after.fields.first("x-config"), Some("two"), "{after}");
    assert_eq!((reloads(&larder, "ok").await, reloads(&larder, "error").await), (0, 1));
    // Put right, it is taken.
    std::fs::write(&path, config(&origin.url(), "", "")).unwrap();
    larder.signal(Signal::HUP);
    larder.says("larder: reloaded").await;
    assert!(!client.exchange(&asking("/a")).await.unwrap().fields.has("x-config"));
}

/// Where larder listens now, as `/stats` says.
async fn listeners(larder: &Process) -> Vec<SocketAddr> {
    let stats = get(larder.admin, "/stats").await;
    let stats: serde_json::Value = serde_json::from_slice(&stats.body).unwrap();
    let all = stats["listeners"].as_array().unwrap().iter();
    all.filter(|listener| listener["kind"] == "http")
        .map(|listener| listener["address"].as_str().unwrap().parse().unwrap())
        .collect()
}

fn listening(origin: &Origin, addresses: &str) -> String {
    config(&origin.url(), "", "").replace("listen = [\"127.0.0.1:0\"]", &format!("listen = [{addresses}]"))
}

#[tokio::test]
async fn a_new_listener_opens_and_one_that_is_gone_drains() {
    let slow = Answer { hold: Some("go".to_owned()), ..answer_of(&["Cache-Control: max-age=60"], 100_000) };
    let origin = Origin::simple(vec![script("/slow", slow), cacheable("/a", 10)]).unwrap();
    let (_directory, path) = written(&listening(&origin, "\"127.0.0.1:0\""));
    let mut larder = Process::run_config(&path).await;
    let old = larder.addr;
    let mut idle = connect(old).await;
    assert_eq!(idle.exchange(&asking("/a")).await.unwrap().status, 200);
    let mut busy = connect(old).await;
    busy.write(&asking("/slow").to_http1()).await.unwrap();
    within("the origin's request", origin.log().until(|log| log.in_flight() == 1)).await;
    std::fs::write(&path, listening(&origin, "\"127.0.0.2:0\"")).unwrap();
    larder.signal(Signal::HUP);
    larder.says("larder: reloaded").await;
    let now = listeners(&larder).await;
    assert_eq!(now.len(), 1, "{now:?}");
    assert!(now[0].to_string().starts_with("127.0.0.2:"), "{now:?}");
    assert!(cache_status(&get(now[0], "/a").await).contains("; hit"));
    until("the old one is closed", async || tokio::net::TcpStream::connect(old).await.is_err()).await;
    assert!(idle.ends_within(BOUND).await.unwrap(), "an idle connection of the old listener is closed");
    drop(idle);
    // Its exchange goes on, and the end of larder waits for it as for any other.
    larder.signal(Signal::TERM);
    larder.says("connection finishes within").await;
    until("the new one is closed", async || tokio::net::TcpStream::connect(now[0]).await.is_err()).await;
    origin.gates().release("go");
    let response = busy.read_response("GET", &Progress::default()).await.unwrap();
    assert_whole(&response, "/slow", 100_000);
    assert!(response.fields.lists("connection", "close"), "{response}");
    drop(busy);
    assert_eq!(larder.end().await, 0, "{:?}", larder.stderr());
}

#[tokio::test]
async fn a_listener_that_cannot_open_keeps_the_old_config() {
    let origin = Origin::simple(vec![cacheable("/a", 10)]).unwrap();
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap();
    let (_directory, path) = written(&config(&origin.url(), "", MARKED));
    let larder = Process::run_config(&path).await;
    std::fs::write(&path, listening(&origin, &format!("\"127.0.0.1:0\", \"127.0.0.2:0\", \"{taken}\"")))
        .unwrap();
    larder.signal(Signal::HUP);
    larder.says(&format!("{taken} is in use")).await;
    larder.says("the old config stays in force").await;
    assert_eq!(listeners(&larder).await, [larder.addr]);
    assert_eq!(get(larder.addr, "/a").await.fields.first("x-config"), Some("two"));
    assert_eq!((reloads(&larder, "ok").await, reloads(&larder, "error").await), (0, 1));
}

#[tokio::test]
async fn what_needs_a_restart_is_said() {
    let origin = Origin::simple(vec![cacheable("/a", 10)]).unwrap();
    let (_directory, path) = written(&config(&origin.url(), "workers = 2", ""));
    let larder = Process::run_config(&path).await;
    std::fs::write(&path, config(&origin.url(), "workers = 3", MARKED)).unwrap();
    larder.signal(Signal::HUP);
    larder.says("needs a restart: workers: 2 run, 3 after a restart").await;
    larder.says("larder: reloaded").await;
    assert_eq!(get(larder.addr, "/a").await.fields.first("x-config"), Some("two"));
}

#[tokio::test]
async fn what_needs_a_restart_is_said_at_each_reload_until_it_is_taken_back() {
    let origin = Origin::simple(vec![cacheable("/a", 10)]).unwrap();
    let before = config(&origin.url(), "", "");
    let other = before.replace("admin = \"127.0.0.1:0\"", "admin = false");
    let (_directory, path) = written(&before);
    let larder = Process::run_config(&path).await;
    for (text, is_said) in [(&other, true), (&other, true), (&before, false)] {
        let so_far = larder.stderr().len();
        std::fs::write(&path, text).unwrap();
        larder.signal(Signal::HUP);
        let said = || larder.stderr().into_iter().skip(so_far).collect::<Vec<_>>().join("\n");
        until("it is reloaded", async || said().contains("larder: reloaded")).await;
        assert_eq!(said().contains("needs a restart: admin"), is_said, "{}", said());
    }
    assert_eq!(get(larder.admin, "/healthz").await.body, b"ok");
}

#[tokio::test]
async fn without_a_file_there_is_nothing_to_reload() {
    let origin = Origin::simple(vec![cacheable("/a", 10)]).unwrap();
    let larder = Process::run(&["--origin", &origin.url()]).await;
    larder.signal(Signal::HUP);
    larder.says("there is no config file to reload").await;
    assert_eq!(get(larder.addr, "/a").await.status, 200);
}

/// With a second store of plain files or with a disk, which keeps what lies below `/kept`.
fn storing(origin: &Origin, store: &str) -> String {
    let rule = "\n[[site.rule]]\npath = \"/kept/*\"\nstore = \"kept\"\n";
    let rule = if store.is_empty() { "" } else { rule };
    config(&origin.url(), "", &format!("{rule}{store}"))
}

#[tokio::test]
async fn a_store_that_a_reload_brings_back_is_taken_up_again_while_a_request_is_under_way() {
    for place in ["files = \"pages\"", "disks = [{ path = \"disk\", size = \"64MiB\" }]"] {
        let slow = Answer { hold: Some("go".to_owned()), ..answer_of(&["Cache-Control: max-age=60"], 1000) };
        let origin = Origin::simple(vec![script("/kept/slow", slow), cacheable("/kept/a", 700_000)]).unwrap();
        let with = storing(&origin, &format!("[stores.kept]\nmemory = \"8MiB\"\n{place}\n"));
        let (directory, path) = written(&with);
        let mut larder = Process::run_config(&path).await;
        until("it is stored", async || cache_status(&get(larder.addr, "/kept/a").await).contains("; hit"))
            .await;
        let stored = origin.log().count();
        let mut busy = connect(larder.addr).await;
        busy.write(&asking("/kept/slow").to_http1()).await.unwrap();
        within("the origin's request", origin.log().until(|log| log.in_flight() == 1)).await;
        let reload = async |text: &str, times: usize| {
            std::fs::write(&path, text).unwrap();
            larder.signal(Signal::HUP);
            until("it is reloaded", async || {
                larder.stderr().iter().filter(|line| line.contains("larder: reloaded")).count() == times
            })
            .await;
        };
        reload(&storing(&origin, ""), 1).await;
        assert!(cache_status(&get(larder.addr, "/kept/a").await).contains("fwd="), "{place}: it is removed");
        reload(&with, 2).await;
        let hit = get(larder.addr, "/kept/a").await;
        assert!(cache_status(&hit).contains("; hit"), "{place}: {hit}: {:?}", larder.stderr());
        assert_eq!(get(larder.admin, "/healthz").await.body, b"ok", "{place}");
        // By another name it is the same store.
        reload(&with.replace("kept]", "renamed]").replace("\"kept\"", "\"renamed\""), 3).await;
        let hit = get(larder.addr, "/kept/a").await;
        assert!(cache_status(&hit).contains("; hit"), "{place}: {hit}: {:?}", larder.stderr());
        origin.gates().release("go");
        let response = busy.read_response("GET", &Progress::default()).await.unwrap();
        assert_whole(&response, "/kept/slow", 1000);
        assert_eq!(origin.log().count(), stored + 2, "{place}: {}", origin.log());
        // Once it is removed and nobody uses it, it is closed, and a later reload opens it anew.
        reload(&storing(&origin, ""), 4).await;
        reload(&with, 5).await;
        until("it is used", async || cache_status(&get(larder.addr, "/kept/a").await).contains("; hit"))
            .await;
        let said = larder.stderr().join("\n");
        assert!(!said.contains("in use") && !said.contains("warning"), "{place}: {said}");
        larder.signal(Signal::TERM);
        assert_eq!(larder.end().await, 0);
        drop(directory);
    }
}

#[tokio::test]
async fn any_address_of_ipv6_takes_ipv4_until_that_has_an_address_of_its_own() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        eprintln!("skipped: this machine has no IPv6");
        return;
    }
    let origin = Origin::simple(vec![script("/a", answer_of(&["Cache-Control: no-store"], 10))]).unwrap();
    let (_directory, path) = written(&listening(&origin, "\"[::]:0\""));
    let larder = Process::run_config(&path).await;
    assert!(larder.stdout().join("\n").contains("(IPv4 and IPv6)"), "{:?}", larder.stdout());
    let port = larder.addr.port();
    let both =
        [SocketAddr::from(([127, 0, 0, 1], port)), SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, port))];
    let answered = async |shown: &str| {
        for address in both {
            assert_eq!(get(address, "/a").await.status, 200, "{address}: {shown}");
        }
    };
    answered("one listener").await;
    let forwarded = origin.log().all();
    let clients: Vec<_> =
        forwarded.iter().filter_map(|request| request.fields.first("x-forwarded-for")).collect();
    assert_eq!(clients, ["127.0.0.1", "::1"], "an IPv4 client is one");
    for (addresses, count) in [
        (format!("\"0.0.0.0:{port}\", \"[::]:{port}\""), 2),
        (format!("\"[::]:{port}\""), 1),
        (format!("\"[::1]:{port}\", \"127.0.0.1:{port}\""), 2),
    ] {
        std::fs::write(&path, listening(&origin, &addresses)).unwrap();
        let before = reloads(&larder, "ok").await;
        larder.signal(Signal::HUP);
        until("it is reloaded", async || reloads(&larder, "ok").await > before).await;
        answered(&addresses).await;
        assert_eq!(listeners(&larder).await.len(), count, "{addresses}");
    }
    assert!(!larder.stderr().join("\n").contains("in use"), "{:?}", larder.stderr());
}
