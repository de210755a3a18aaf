//! What the admin address tells of larder itself: its config without secrets, and what happened to it.

use std::time::Duration;

use larder_testkit::client::Request;
use larder_testkit::origin::Origin;
use serde_json::Value;

use crate::support::{Process, Signal, asking, cacheable, config, connect, until, with_admin, written};

const TOKEN: &str = "s3cret-s3cret-s3cret";

fn origin() -> Origin {
    Origin::simple(vec![cacheable("/page*", 1000)]).unwrap()
}

async fn ask(larder: &Process, method: &str, path: &str, token: &str) -> (u16, Value) {
    let request = Request::new(method, path, &larder.admin.to_string());
    let request = request.field("Authorization", &format!("Bearer {token}"));
    let response = connect(larder.admin).await.exchange(&request).await.unwrap();
    (response.status, serde_json::from_slice(&response.body).unwrap())
}

async fn json(larder: &Process, path: &str) -> Value {
    let (status, json) = ask(larder, "GET", path, TOKEN).await;
    assert_eq!(status, 200, "{json}");
    json
}

/// The newest event of a kind, once there is one whose text has this part.
async fn event(larder: &Process, kind: &str, part: &str) -> Value {
    let find = async || {
        let told = json(larder, "/api/v1/events").await;
        let mut events = told["events"].as_array().unwrap().iter();
        let is_it = |event: &&Value| event["kind"] == kind && event["text"].as_str().unwrap().contains(part);
        events.find(is_it).cloned()
    };
    until(&format!("{kind} with {part}"), async || find().await.is_some()).await;
    find().await.unwrap()
}

#[tokio::test]
async fn the_config_is_shown_without_secrets_and_with_what_differs() {
    let origin = origin();
    let text = with_admin(
        &config(&origin.url(), "", "[[site.rule]]\npath = \"/a\""),
        &format!("token = \"{TOKEN}\""),
    );
    let (_directory, path) = written(&text);
    let larder = Process::run_config(&path).await;
    let shown = json(&larder, "/api/v1/config").await;
    assert_eq!(shown["text"], text.replace(TOKEN, "***"));
    assert_eq!((&shown["file"], &shown["differs"]), (&path.to_str().unwrap().into(), &Value::Null));
    let line = text.lines().position(|line| line == "[[site.rule]]").unwrap() + 1;
    assert_eq!((&shown["rules"][0]["rule"], &shown["rules"][0]["line"]), (&"/a".into(), &line.into()));
    let other = text.replace("\"/a\"", "\"/b\"");
    std::fs::write(&path, &other).unwrap();
    assert_eq!(json(&larder, "/api/v1/config").await["differs"]["why"], "changed");
    larder.signal(Signal::HUP);
    larder.says("larder: reloaded").await;
    let now = json(&larder, "/api/v1/config").await;
    assert_eq!((&now["text"], &now["differs"]), (&other.replace(TOKEN, "***").into(), &Value::Null));
    assert!(now["loaded"].as_f64() >= shown["loaded"].as_f64(), "{now}");
}

#[tokio::test]
async fn a_reload_is_told_with_what_changed_or_why_not() {
    let origin = origin();
    let text = with_admin(&config(&origin.url(), "", ""), &format!("token = \"{TOKEN}\""));
    let (_directory, path) = written(&text);
    let larder = Process::run_config(&path).await;
    std::fs::write(&path, format!("{text}[[site.rule]]\nname = \"news\"\n")).unwrap();
    larder.signal(Signal::HUP);
    event(&larder, "reload", "a new config is in force: rule news of * added").await;
    std::fs::write(&path, format!("{text}tttl = \"1s\"\n")).unwrap();
    larder.signal(Signal::HUP);
    let told = event(&larder, "reload", "the new one has an error").await;
    let line = text.lines().count() + 1;
    assert!(told["text"].as_str().unwrap().ends_with(&format!(":{line}:1: site[0].tttl")), "{told}");
    let secret = "request = { set = { Authorization = \"Bearer 5f2c81d09b7ae346 \" } }\n";
    std::fs::write(&path, format!("{text}{secret}")).unwrap();
    larder.signal(Signal::HUP);
    event(&larder, "reload", "site[0].request.set.Authorization").await;
    assert!(!json(&larder, "/api/v1/events").await.to_string().contains("5f2c81d09b7ae346"));
}

#[tokio::test]
async fn purges_and_wrong_tokens_are_told_without_what_is_not_shown() {
    let origin = origin();
    let text = with_admin(
        &config(&origin.url(), "", "purge = { from = \"127.0.0.1\" }"),
        &format!("token = \"{TOKEN}\""),
    );
    let (_directory, path) = written(&text);
    let larder = Process::run_config(&path).await;
    let mut client = connect(larder.addr).await;
    let purge = Request::new("PURGE", "/page?token=hunter2", &larder.addr.to_string());
    assert_eq!(client.exchange(&purge).await.unwrap().status, 200);
    let told = event(&larder, "purge", "by 127.0.0.0/24 (").await;
    assert!(told["text"].as_str().unwrap().contains("/page?token=***"), "{told}");
    for _ in 0..10 {
        assert_eq!(ask(&larder, "GET", "/stats", "wrong").await.0, 401);
    }
    assert_eq!(event(&larder, "tokens", "429").await["subject"], "127.0.0.0/24");
}

#[tokio::test]
async fn a_server_that_is_left_out_and_comes_back_is_told_and_so_is_its_failure() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let text = config(&format!("http://{address}"), "", "");
    let text =
        text.replace("idle = \"100ms\"", "idle = \"100ms\"\nejection = { failures = 1, time = \"3s\" }");
    let (_directory, path) = written(&text);
    let larder = Process::run_config(&path).await;
    let mut client = connect(larder.addr).await;
    assert_eq!(client.exchange(&asking("/page")).await.unwrap().status, 502);
    event(&larder, "message", "origin app: connection refused").await;
    let told = event(&larder, "ejected", "it failed too often").await;
    assert_eq!(told["subject"], "app", "{told}");
    let listener = std::net::TcpListener::bind(address).unwrap();
    std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        while let Ok((mut socket, _)) = listener.accept() {
            let _ = socket.read(&mut [0; 4096]);
            let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    let answered =
        async || connect(larder.addr).await.exchange(&asking("/other")).await.unwrap().status == 200;
    tokio::time::timeout(Duration::from_secs(30), until("it answers", answered)).await.unwrap();
    event(&larder, "recovered", "takes requests again").await;
}

#[tokio::test]
async fn a_larder_says_which_it_is_and_what_its_words_mean() {
    let origin = origin();
    let keys = format!("token = \"{TOKEN}\", view_token = \"l00k-l00k-l00k-l00k\"");
    let text = with_admin(&config(&origin.url(), "workers = 2", ""), &keys);
    let (_directory, path) = written(&format!("{text}[live]\nhistory = \"2h\"\n"));
    let larder = Process::run_config(&path).await;
    let about = json(&larder, "/api/v1/about").await;
    assert_eq!((&about["version"], &about["workers"]), (&env!("CARGO_PKG_VERSION").into(), &2.into()));
    assert_eq!((&about["health"], &about["history"]), (&"ok".into(), &7200.into()), "{about}");
    assert_eq!(about["config"]["file"], path.to_str().unwrap());
    assert!(about["started"].as_f64().unwrap() <= about["now"].as_f64().unwrap(), "{about}");
    assert_eq!((&about["may_change"], about["instance"].is_string()), (&true.into(), true), "{about}");
    let (status, looking) = ask(&larder, "GET", "/api/v1/about", "l00k-l00k-l00k-l00k").await;
    assert_eq!((status, &looking["may_change"]), (200, &false.into()));
    let words = about["words"]["not_stored"].as_array().unwrap();
    let private = words.iter().find(|word| word["word"] == "private").unwrap();
    assert_eq!(private["section"], "RFC 9111 5.2.2.7", "{private}");
    assert!(private["helps"].as_str().unwrap().contains("s-maxage"), "{private}");
}
