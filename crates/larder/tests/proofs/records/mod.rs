//! Larders that share what they have stored through Debian's redis-server: what one has fetched, the others need not fetch; what was
//! purged, none of them uses; and whatever becomes of Redis, no request fails or gets a wrong body.
//!
//! The origin stamps each body with the state of its data, and bodies tell which URL they are of.

mod away;
mod between;
mod checked;
mod clients;
mod clocks;
mod compressed;
mod damaged;
mod ended;
mod explained;
mod faults;
mod flapping;
mod in_cluster;
mod killed;
mod led;
mod listed;
mod load;
mod network;
mod over_tls;
mod partition;
mod products;
mod purged;
mod sentinel;
mod used;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use larder_testkit::client::{Request, Response};
use larder_testkit::origin::{Answer, BodyFraming, Hold, Origin, Seen};
use larder_testkit::redis::RedisServer;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Process, Signal, cache_status, connect, get, until, within, written};

/// The shortest that a config may say.
const LEASE: &str = "3s";
/// What shows that a client may purge.
const TOKEN: &str = "5f2c81d09b7ae3465f2c81d0";

/// An application, and a Redis.
struct Scene {
    redis: RedisServer,
    origin: Origin,
    state: Arc<AtomicU64>,
    /// The longest that a look-up takes. A machine that runs many tests may need longer than the default.
    timeout: &'static str,
    /// What the config says of its Redis: the keys of a table.
    said: String,
    lease: &'static str,
    /// How long a purge waits for the others.
    wait: &'static str,
}

/// A member.
struct Larder {
    process: Process,
    name: String,
    folder: TempDir,
}

/// The body of a target in a state: of the length that the path ends with. It begins with the state and the target.
fn body(target: &str, language: &str, state: u64) -> String {
    let (path, _) = target.split_once('?').unwrap_or((target, ""));
    let length: usize = path.rsplit('-').next().and_then(|digits| digits.parse().ok()).unwrap_or(0);
    let mut body = format!("{state} {target} {language} ");
    while body.len() < length {
        let number = u32::try_from(body.len()).unwrap().wrapping_mul(2_654_435_761);
        body.push_str(&format!("{number:08x}"));
    }
    if path.ends_with(&format!("repeat-{length}")) {
        body = format!("{state} {target} ") + &"A line that comes again and again. ".repeat(length / 35 + 1);
    }
    if length > 0 {
        body.truncate(length);
    }
    body
}

/// What the application answers.
fn answer(seen: &Seen, state: u64) -> Answer {
    let target = seen.target.as_str();
    let (path, _) = target.split_once('?').unwrap_or((target, ""));
    let body = body(target, seen.fields.first("accept-language").unwrap_or("none"), state);
    let tag = format!("ETag: \"{state}\"");
    let of_path: &[&str] = match path {
        "/private" | "/slow/private" => &["Cache-Control: private, max-age=3600"],
        "/no-store" => &["Cache-Control: no-store"],
        "/short" => &["Cache-Control: max-age=0, must-revalidate"],
        "/second" | "/slow/second" | "/second/long-700000" => &["Cache-Control: max-age=1"],
        "/soon" | "/slow/soon" => &["Cache-Control: max-age=2"],
        "/ends" if state == 1 => &["Cache-Control: max-age=1, stale-while-revalidate=3600"],
        "/ends" => &["Cache-Control: private, max-age=3600"],
        "/stands-in" => &["Cache-Control: max-age=1, stale-if-error=3600"],
        "/strict" => &["Cache-Control: max-age=3600, must-revalidate"],
        "/no-tag" => &["Cache-Control: max-age=3600", "Surrogate-Key: page"],
        path if path.starts_with("/vary") => &["Cache-Control: max-age=3600", "Vary: Accept-Language"],
        path if path.starts_with("/empty") => {
            return Answer::new(200, &["Cache-Control: max-age=3600", "Surrogate-Key: page"], "");
        }
        _ => &["Cache-Control: max-age=3600", "Surrogate-Key: page"],
    };
    let media: &[&str] = match path {
        path if path.starts_with("/coded") => &["Content-Type: text/plain", "Content-Encoding: x-of-ours"],
        path if path.starts_with("/picture") => &["Content-Type: image/jpeg"],
        _ => &["Content-Type: text/plain"],
    };
    let fields: Vec<&str> = of_path.iter().chain(media).copied().collect();
    let fields: Vec<&str> = match path {
        "/no-tag" => fields,
        _ => fields.into_iter().chain([tag.as_str()]).collect(),
    };
    let answer = Answer::new(200, &fields, &body);
    let half = || vec![Hold { at: body.len() as u64 / 2, gate: path.to_owned() }];
    match path {
        "/stands-in" if state > 1 => Answer { status: Some(500), ..answer },
        "/fails" => Answer { status: Some(500), delay: Some("300ms".to_owned()), ..answer },
        "/vanishes" => Answer { vanish: true, ..answer },
        path if path.starts_with("/held") => Answer { hold: Some(path.to_owned()), ..answer },
        path if path.starts_with("/slow") => Answer { delay: Some("300ms".to_owned()), ..answer },
        path if path.starts_with("/half") => Answer { holds: half(), ..answer },
        path if path.starts_with("/stream") => {
            Answer { holds: half(), framing: Some(BodyFraming::Chunked), ..answer }
        }
        _ => answer,
    }
}

impl Scene {
    fn new() -> Self {
        Self::with_timeout("5s")
    }

    /// With the default limit of look-ups.
    fn with_default_timeout() -> Self {
        Self::with_timeout("200ms")
    }

    fn with_timeout(timeout: &'static str) -> Self {
        Self::of(RedisServer::start(), timeout)
    }

    /// With this server.
    fn of(redis: RedisServer, timeout: &'static str) -> Self {
        Self::with_origin_at([127, 0, 0, 1], redis, timeout)
    }

    fn with_origin_at(origin: [u8; 4], redis: RedisServer, timeout: &'static str) -> Self {
        let state = Arc::new(AtomicU64::new(1));
        let of_now = Arc::clone(&state);
        let any = SocketAddr::from((origin, 0));
        let choose = move |seen: &Seen| answer(seen, of_now.load(Ordering::SeqCst));
        let origin = Origin::answering(any, Duration::from_secs(10), choose).unwrap();
        let said = format!("url = \"unix://{}\"", redis.socket().display());
        Self { redis, origin, state, timeout, said, lease: LEASE, wait: "20s" }
    }

    /// With another server than its own.
    fn saying(said: String) -> Self {
        Self { said, ..Self::new() }
    }

    /// A member.
    async fn larder(&self, name: &str) -> Larder {
        self.with_site(name, "").await
    }

    /// The same with lines of its site.
    async fn with_site(&self, name: &str, site: &str) -> Larder {
        let (folder, config) = written(&self.config(name, site));
        let larder = Larder { process: Process::run_config(&config).await, name: name.to_owned(), folder };
        until("it has a lease", async || larder.has_lease().await).await;
        larder
    }

    fn config(&self, name: &str, site: &str) -> String {
        format!(
            "listen = [\"127.0.0.1:0\"]\nadmin = \"127.0.0.1:0\"\nworkers = 2\n[origins.app]\nservers = [{:?}]\nidle = \"100ms\"\n\
             [fleet]\nname = {name:?}\nlease = {:?}\nwait = {:?}\n\
             [stores.default]\nmemory = \"64MiB\"\nredis = {{ {}, timeout = {:?} }}\n[[site]]\norigin = \"app\"\n{site}\n",
            self.origin.url(),
            self.lease,
            self.wait,
            self.said,
            self.timeout
        )
    }

    /// Two members.
    async fn two(&self) -> (Larder, Larder) {
        (self.larder("web-1").await, self.larder("web-2").await)
    }

    fn ask(&self, command: &[&str]) -> Option<String> {
        let words: Vec<&[u8]> = command.iter().map(|word| word.as_bytes()).collect();
        self.redis.raw().ask(&words).map(|reply| String::from_utf8_lossy(&reply).into_owned())
    }

    /// The names of records and pieces that lie in Redis.
    fn names(&self) -> Vec<String> {
        self.redis.names("larder:1:default:[rb]:*")
    }

    /// Who fetches for all, by name.
    fn claims(&self) -> Vec<String> {
        self.redis.names("larder:1:default:l:*")
    }

    fn change(&self) -> u64 {
        self.state.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn asked(&self, target: &str) -> u64 {
        self.origin.log().count_of(target)
    }

    /// A larder fetches, and its record is there.
    async fn fetched_by(&self, larder: &Larder, target: &str) -> Response {
        let before = larder.written().await;
        let response = larder.get(target).await;
        until("its record is there", async || {
            larder.written().await > before
                && larder.process.metrics().await.sum("larder_remote_queue_bytes") == 0
        })
        .await;
        response
    }
}

impl Larder {
    async fn get(&self, target: &str) -> Response {
        within(target, get(self.process.addr, target)).await
    }

    async fn ask(&self, request: &Request) -> Response {
        within("an answer", async { connect(self.process.addr).await.exchange(request).await.unwrap() }).await
    }

    async fn state(&self, target: &str) -> u64 {
        state(&self.get(target).await)
    }

    async fn admin(&self, request: &Request) -> (u16, Value) {
        // Off loopback the admin address asks for it.
        let request = request.clone().field("Authorization", &format!("Bearer {TOKEN}"));
        let answer = async { connect(self.process.admin).await.exchange(&request).await.unwrap() };
        let answer = within("the admin", answer).await;
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    /// A purge, and whether it is complete.
    async fn purge(&self, what: &str) -> (u16, Value) {
        let request =
            Request::new("POST", "/api/v1/purges", "localhost").field("Content-Type", "application/json");
        self.admin(&request.body(what.to_owned())).await
    }

    /// A purge of its own as it is now.
    async fn receipt(&self, purge: &Value) -> Value {
        let target = format!("/api/v1/purges/{}", purge["id"].as_str().unwrap());
        self.admin(&Request::new("GET", &target, "localhost")).await.1
    }

    async fn fleet(&self) -> Value {
        self.admin(&Request::new("GET", "/api/v1/fleet", "localhost")).await.1
    }

    /// What `larder explain` says of the record for a URL, as JSON.
    async fn record(&self, target: &str) -> Value {
        let target = format!("/explain?url=http://localhost{target}");
        let (status, told) = self.admin(&Request::new("GET", &target, "localhost")).await;
        assert_eq!(status, 200, "{told}");
        told["stored"]["records"][0].clone()
    }

    async fn has_lease(&self) -> bool {
        self.fleet().await["left_s"].as_f64().is_some_and(|left| left > 0.0)
    }

    /// How questions who fetches for all have ended in this way.
    async fn leads(&self, result: &str) -> u64 {
        let metrics = self.process.metrics().await;
        let labels = format!("larder_records_leads_total{{store=\"default\",result=\"{result}\"}}");
        metrics.value(&labels).unwrap_or_default() as u64
    }

    /// Clients that wait for an answer.
    async fn waiting(&self) -> u64 {
        self.process.metrics().await.sum("larder_flights_waiting")
    }

    /// Values that were written to Redis.
    async fn written(&self) -> u64 {
        let metrics = self.process.metrics().await;
        let is_written = |name: &str| {
            name.starts_with("larder_remote_writes_total{") && name.contains("result=\"written\"")
        };
        metrics
            .samples()
            .into_iter()
            .filter(|(name, _)| is_written(name))
            .map(|(_, count)| count as u64)
            .sum()
    }

    /// Records that were not used for a reason.
    async fn refused(&self, reason: &str) -> u64 {
        let metrics = self.process.metrics().await;
        let labels = format!("larder_records_refused_total{{store=\"default\",reason=\"{reason}\"}}");
        metrics.value(&labels).unwrap_or_default() as u64
    }

    async fn stop(mut self) {
        self.process.signal(Signal::TERM);
        assert_eq!(self.process.end().await, 0, "{}: {:?}", self.name, self.process.stderr());
    }
}

/// Waits until what one larder fetches is found by the other.
async fn shares(scene: &Scene, (first, second): (&Larder, &Larder)) {
    until("they share", async || {
        let target = format!("/again-{}", scene.change());
        first.get(&target).await;
        is_hit(&second.get(&target).await)
    })
    .await;
}

/// What `larder check --connect` says of a config, and whether it is well with it.
async fn checked(config: &Path) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.args(["check", "--connect"]).arg(config);
    let running = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = within("a check", running).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout) + &text(output.stderr))
}

/// Waits until all have a lease.
async fn leased(larders: &[&Larder]) {
    for larder in larders {
        until("it has a lease", async || larder.has_lease().await).await;
    }
}

/// Waits until all see each other, and know that there is no other one: then a purge can be complete.
async fn together(larders: &[&Larder]) {
    for larder in larders {
        until("all are members", async || {
            larder.has_lease().await
                && larder.fleet().await["others"].as_array().unwrap().len() == larders.len() - 1
        })
        .await;
    }
    until("all members are known", async || larders[0].purge(r#"{"tags": ["nothing"]}"#).await.0 == 200)
        .await;
}

/// The members that a receipt names, each with its state.
fn members(receipt: &Value) -> Vec<(&str, &str)> {
    let members = receipt["fleet"]["members"].as_array().unwrap().iter();
    let mut members: Vec<_> =
        members.map(|member| (member["name"].as_str().unwrap(), member["state"].as_str().unwrap())).collect();
    members.sort_unstable();
    members
}

/// The state that a body was stamped with.
#[track_caller]
fn state(response: &Response) -> u64 {
    assert_eq!(response.status, 200, "{response}");
    let end = response.body.iter().position(|byte| *byte == b' ').unwrap();
    std::str::from_utf8(&response.body[..end]).unwrap().parse().unwrap()
}

fn is_hit(response: &Response) -> bool {
    cache_status(response).contains("; hit")
}
