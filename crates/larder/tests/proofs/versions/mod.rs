//! Versions that an application keeps in Debian's redis-server: what was stored under one is not used under another, without a question
//! to Redis for each request; and what becomes of requests when a version is missing or cannot be had.
//!
//! The origin stamps each body with the state of its data. An application changes the data, then counts the version up.

mod away;
mod known;
mod sentinel;
mod values;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use larder_testkit::client::{Request, Response};
use larder_testkit::origin::{Answer, Origin, Seen};
use larder_testkit::redis::RedisServer;
use tempfile::TempDir;

use crate::support::{Process, Signal, cache_status, connect, get, until, within};

/// The hash of all these tests.
const HASH: &str = "resource_versions";
/// Versions by target.
const BY_TARGET: &str = "versions = { hash = \"resource_versions\", field = \"{target}\" }";

/// An application, its Redis, and a larder in front of it.
struct Setup {
    redis: RedisServer,
    origin: Origin,
    state: Arc<AtomicU64>,
    folder: TempDir,
    larder: Process,
}

impl Setup {
    /// `store` are lines of the store, `site` lines of the site. The server of versions is named by the rule, unless the store has one:
    /// `REDIS` in either stands for its URL.
    async fn new(store: &str, site: &str) -> Self {
        let (redis, folder) = (RedisServer::start(), tempfile::tempdir().unwrap());
        let state = Arc::new(AtomicU64::new(1));
        let of_now = Arc::clone(&state);
        let choose = move |seen: &Seen| answer(seen, of_now.load(Ordering::SeqCst));
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let origin = Origin::answering(any, Duration::from_secs(10), choose).unwrap();
        let path = config(&folder, &redis, &origin, store, site);
        let larder = Process::run_config(&path).await;
        Self { redis, origin, state, folder, larder }
    }

    async fn stop(&mut self) {
        self.larder.signal(Signal::TERM);
        assert_eq!(self.larder.end().await, 0, "{:?}", self.larder.stderr());
    }

    /// Begins anew, with the same files.
    async fn start(&mut self) {
        self.larder = Process::run_config(&self.folder.path().join("larder.toml")).await;
    }

    fn ask(&self, command: &[&str]) -> Option<String> {
        let words: Vec<&[u8]> = command.iter().map(|word| word.as_bytes()).collect();
        self.redis.raw().ask(&words).map(|reply| String::from_utf8(reply).unwrap())
    }

    /// The application changes its data, and then counts a version up.
    fn change(&self, field: &str) -> u64 {
        let state = self.state.fetch_add(1, Ordering::SeqCst) + 1;
        self.ask(&["HINCRBY", HASH, field, "1"]);
        state
    }

    async fn get(&self, target: &str) -> Response {
        within(target, get(self.larder.addr, target)).await
    }

    /// The state of the data in an answer.
    async fn state(&self, target: &str) -> u64 {
        stamp(&self.get(target).await)
    }

    async fn is_hit(&self, target: &str) -> bool {
        is_hit(&self.get(target).await)
    }

    /// Waits until an answer has this state: the change is on its way.
    async fn becomes(&self, target: &str, state: u64) {
        until("the new version is known", async || self.state(target).await == state).await;
    }

    async fn admin(&self, request: &Request) -> Response {
        within("the admin", async { connect(self.larder.admin).await.exchange(request).await.unwrap() }).await
    }

    /// How often the server has carried out a command.
    fn calls(&self, command: &str) -> u64 {
        let stats = self.ask(&["INFO", "commandstats"]).unwrap();
        let prefix = format!("cmdstat_{command}:calls=");
        let line = stats.lines().find_map(|line| line.strip_prefix(&prefix));
        line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
    }
}

/// What the application answers: its state, for good where the target has no word to the contrary.
fn answer(seen: &Seen, state: u64) -> Answer {
    let tag = format!("ETag: \"{state}\"");
    if seen.fields.first("if-none-match").is_some_and(|named| tag.ends_with(named)) {
        return Answer::new(304, &["Cache-Control: max-age=3600", &tag], "");
    }
    match seen.target.as_str() {
        "/page" => {
            let fields = [
                "Cache-Control: max-age=3600",
                "Content-Type: text/html",
                "Surrogate-Control: content=\"SSI/1.0\"",
            ];
            Answer::new(200, &fields, "<!--#include virtual=\"/part\" -->")
        }
        "/plain" => {
            Answer::new(200, &["Cache-Control: max-age=3600", "Content-Type: text/plain"], &state.to_string())
        }
        "/gated" => Answer {
            hold: Some("answer".to_owned()),
            ..Answer::new(200, &["Cache-Control: max-age=3600"], &state.to_string())
        },
        "/missing" => Answer::new(404, &["Cache-Control: max-age=3600"], "0"),
        _ => Answer::new(200, &["Cache-Control: max-age=3600", &tag], &state.to_string()),
    }
}

fn config(folder: &TempDir, redis: &RedisServer, origin: &Origin, store: &str, site: &str) -> PathBuf {
    let url = format!("unix://{}", redis.socket().display());
    let named = site.replace("field =", &format!("redis = {url:?}, field ="));
    let site = if store.contains("REDIS") { site } else { &named };
    let text = format!(
        "listen = [\"127.0.0.1:0\"]\nadmin = \"127.0.0.1:0\"\nworkers = 2\n[origins.app]\nservers = [{:?}]\n\
         [stores.default]\nmemory = \"8MiB\"\n{store}\n[[site]]\norigin = \"app\"\n{site}\n",
        origin.url()
    );
    let text = text.replace("REDIS", &url).replace("FOLDER", &folder.path().display().to_string());
    let path = folder.path().join("larder.toml");
    std::fs::write(&path, text).unwrap();
    path
}

#[track_caller]
fn stamp(response: &Response) -> u64 {
    assert_eq!(response.status, 200, "{response}");
    String::from_utf8(response.body.clone()).unwrap().parse().unwrap()
}

fn is_hit(response: &Response) -> bool {
    cache_status(response).contains("; hit")
}

#[track_caller]
fn assert_detail(response: &Response, detail: &str) {
    assert!(cache_status(response).contains(&format!("detail={detail}")), "{response}");
}
