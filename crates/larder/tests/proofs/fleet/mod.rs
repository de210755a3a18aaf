//! Larders that purge together, over Debian's redis-server: what a receipt promises, seen from outside.
//!
//! The origin stamps each body with a version. Once a purge is complete, no larder of the fleet gives a version from before it. A
//! purge that is not complete names the larders that could.

mod away;
mod together;

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use larder_testkit::client::{Request, Response};
use larder_testkit::origin::{Answer, Origin};
use larder_testkit::redis::RedisServer;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Process, cache_status, connect, get, until, within, written};

/// The shortest that a config may say.
const LEASE: &str = "3s";
/// What shows that a client may purge.
const TOKEN: &str = "5f2c81d09b7ae3465f2c81d0";

/// An application that gives its version, and a Redis.
struct Stand {
    redis: RedisServer,
    origin: Origin,
    version: Arc<AtomicU64>,
}

/// A member.
struct Larder {
    process: Process,
    _folder: TempDir,
}

impl Stand {
    fn new() -> Self {
        let version = Arc::new(AtomicU64::new(1));
        let of_now = Arc::clone(&version);
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let choose = move |_: &_| {
            let version = of_now.load(Ordering::SeqCst);
            let tag = format!("ETag: \"{version}\"");
            Answer::new(
                200,
                &["Cache-Control: max-age=3600", &tag, "Surrogate-Key: page"],
                &version.to_string(),
            )
        };
        let origin = Origin::answering(any, Duration::from_secs(10), choose).unwrap();
        Self { redis: RedisServer::start(), origin, version }
    }

    /// A member whose purges wait so long; `store` are lines of its store.
    async fn larder(&self, name: &str, wait: &str, store: &str) -> Larder {
        self.with_site(name, wait, store, "").await
    }

    /// The same with lines of its site.
    async fn with_site(&self, name: &str, wait: &str, store: &str, site: &str) -> Larder {
        let url = format!("unix://{}", self.redis.socket().display());
        let text = format!(
            "listen = [\"127.0.0.1:0\"]\nadmin = \"127.0.0.1:0\"\nworkers = 2\n[origins.app]\nservers = [{:?}]\n\
             [fleet]\nname = {name:?}\nredis = {url:?}\nlease = \"{LEASE}\"\nwait = \"{wait}\"\n\
             [stores.default]\nmemory = \"8MiB\"\n{store}\n[[site]]\norigin = \"app\"\n{site}\n",
            self.origin.url()
        );
        let (folder, config) = written(&text);
        Larder { process: Process::run_config(&config).await, _folder: folder }
    }

    /// The application changes.
    fn change(&self) -> u64 {
        self.version.fetch_add(1, Ordering::SeqCst) + 1
    }
}

impl Larder {
    async fn get(&self, target: &str) -> Response {
        within(target, get(self.process.addr, target)).await
    }

    /// The status of the answer to a POST.
    async fn post(&self, target: &str) -> u16 {
        let request = Request::new("POST", target, "localhost").body("x".to_owned());
        let answer = async { connect(self.process.addr).await.exchange(&request).await.unwrap() };
        within("a POST", answer).await.status
    }

    /// What it gives who may purge, and reloads the page.
    async fn reload(&self, target: &str) -> Response {
        let request = Request::new("GET", target, "localhost").field("Cache-Control", "no-cache");
        let request = request.field("Authorization", &format!("Bearer {TOKEN}"));
        let answer = async { connect(self.process.addr).await.exchange(&request).await.unwrap() };
        within("a reload", answer).await
    }

    /// The version that it gives.
    async fn version(&self, target: &str) -> u64 {
        String::from_utf8(self.get(target).await.body.to_vec()).unwrap().parse().unwrap()
    }

    async fn is_hit(&self, target: &str) -> bool {
        cache_status(&self.get(target).await).contains("; hit")
    }

    async fn admin(&self, request: &Request) -> (u16, Value) {
        let answer = async { connect(self.process.admin).await.exchange(request).await.unwrap() };
        let answer = within("the admin", answer).await;
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    async fn purge(&self, what: &str) -> (u16, Value) {
        let request =
            Request::new("POST", "/api/v1/purges", "localhost").field("Content-Type", "application/json");
        self.admin(&request.body(what.to_owned())).await
    }

    /// A purge as it is now.
    async fn receipt(&self, purge: &Value) -> Value {
        let target = format!("/api/v1/purges/{}", purge["id"].as_str().unwrap());
        self.admin(&Request::new("GET", &target, "localhost")).await.1
    }

    async fn fleet(&self) -> Value {
        self.admin(&Request::new("GET", "/api/v1/fleet", "localhost")).await.1
    }

    /// How long its lease lasts.
    async fn left(&self) -> f64 {
        self.fleet().await["left_s"].as_f64().unwrap()
    }

    /// What one of larder's commands says, and how it ends.
    async fn command(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.args(arguments).args(["--admin", &self.process.admin.to_string()]);
        command.env_remove("LARDER_ADMIN").env_remove("LARDER_ADMIN_TOKEN");
        let running = tokio::task::spawn_blocking(move || command.output().unwrap());
        let output = within("a command", running).await.unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Waits until all see each other, and know that there is no other one.
async fn together(larders: &[&Larder]) {
    for larder in larders {
        until("all are members", async || {
            let told = larder.fleet().await;
            let others = told["others"].as_array().unwrap().len();
            told["left_s"].as_f64().unwrap() > 0.0 && others == larders.len() - 1
        })
        .await;
    }
    let (status, receipt) = larders[0].purge(r#"{"tags": ["nothing"]}"#).await;
    assert!(matches!(status, 200 | 503), "{receipt}");
    until("all members are known", async || larders[0].receipt(&receipt).await["fleet"]["complete"] == true)
        .await;
}

/// The members of a purge in this state.
fn in_state<'a>(receipt: &'a Value, state: &str) -> Vec<&'a str> {
    let members = receipt["fleet"]["members"].as_array().unwrap().iter();
    members.filter(|member| member["state"] == state).map(|member| member["name"].as_str().unwrap()).collect()
}
