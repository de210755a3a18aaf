//! A JSON API on Fastify: tokens, API keys, CORS, changes, failures.
//!
//! In: the stage. Out: tables of what was a hit. See tests/realapp/api/README.md. The run fails where
//!
//! - a response for one token, key or `Origin` reaches another, or a client is sent a coding that it does not take;
//! - a change does not show at once;
//! - what is stored does not stand in for an API that fails or is gone.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::codings::Taker;
use super::fetch::{Answer, Client};
use super::node;
use super::random::Random;
use super::stage::{Larder, Stage};
use super::tally::Tally;
use harness::children::{Server, free_port};

pub(super) const PACKAGES: &[&str] = &[];

const READY_MAX: Duration = Duration::from_secs(20);
const STALE_MAX: Duration = Duration::from_secs(20);
const REQUESTS: usize = 1000;
const FOR_ALL: [&str; 4] = ["/articles", "/articles/1", "/articles/2", "/articles/3"];
const BY_TOKEN: [&str; 2] = ["/me", "/orders"];
const BY_KEY: [&str; 3] = ["/quota", "/plan", "/report"];
/// Who asks, and how this is shown.
const CALLERS: [(&str, Option<&str>); 5] = [
    ("anna", Some("Authorization: Bearer token-of-anna")),
    ("ben", Some("Authorization: Bearer token-of-ben")),
    ("carla", Some("X-Api-Key: key-of-carla")),
    ("david", Some("X-Api-Key: key-of-david")),
    ("nobody", None),
];
/// Pages elsewhere that ask, and whether the API allows it.
const ORIGINS: [(Option<&str>, bool); 4] = [
    (Some("https://shop.example"), true),
    (Some("https://admin.example"), true),
    (Some("https://elsewhere.example"), false),
    (None, false),
];

/// Runs it all.
pub(super) fn run(stage: &Stage<'_>) -> Result<String> {
    let folder = node::application(stage, "api")?;
    let mut random = Random::of_this_run();
    println!("LARDER_SEED={}", random.seed());
    let api = Api::start(&folder)?;
    let example = stage.example("api.toml", "http://127.0.0.1:3000", api.address)?;
    let disk = stage.work.join("disk");
    let with_disk = format!(
        "{example}\n[stores.default]\nmemory = \"16MiB\"\ndisks = [{{ path = \"{}\", size = \"64MiB\" }}]\n",
        disk.display()
    );
    let with_ttl = example.replace("origin = \"api\"", "origin = \"api\"\nttl = \"1m\"");
    // The same host each time: it is part of the key, and what is on the disk is to be found again.
    let through = |larder: &Larder| Client { host: api.address, ..larder.client() };
    for (setting, config) in
        [("the example", &example), ("ttl", &with_ttl), ("disk", &with_disk), ("the disk again", &with_disk)]
    {
        let mut larder = stage.larder(config)?;
        let mut crowd = Crowd { through: through(&larder), versions: [0; 3], tally: Tally::default() };
        println!("\n{setting}:");
        let first = crowd.through.get("/articles/1")?;
        ensure!(setting != "the disk again" || first.is_hit(), "not found again: {}", first.cache_status);
        crowd.visit(&mut random)?;
        crowd.through.get("/articles/1")?;
        larder.still_runs()?;
    }

    let mut larder = stage.larder(&example)?;
    let through = through(&larder);
    fields(&api.client(), &through)?;
    preflight(&through)?;
    changes(&through)?;
    failures(&through)?;
    drop(api);
    without_origin(&through)?;
    larder.still_runs()?;
    let names = ["fastify", "@fastify/cors", "@fastify/etag", "@fastify/compress"];
    let versions: Result<Vec<_>> =
        names.iter().map(|name| Ok(format!("{name} {}", node::version(&folder, name)?))).collect();
    Ok(versions?.join(", "))
}

struct Api {
    address: SocketAddr,
    _server: Server,
}

impl Api {
    fn start(folder: &Path) -> Result<Self> {
        let address = free_port()?;
        let mut command = Command::new("node");
        command
            .arg("app.js")
            .current_dir(folder)
            .env("PORT", address.port().to_string())
            .env("NODE_ENV", "production")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let mut server = Server::start("fastify", &mut command)?;
        server.wait_for(address, READY_MAX)?;
        Ok(Self { address, _server: server })
    }

    fn client(&self) -> Client {
        Client { address: self.address, host: self.address, compressed: false }
    }
}

/// Callers of every kind, one request after the other.
struct Crowd {
    through: Client,
    /// What was written last to each article.
    versions: [usize; 3],
    tally: Tally,
}

impl Crowd {
    fn visit(&mut self, random: &mut Random) -> Result<()> {
        for article in 0..self.versions.len() {
            self.write(article, 1)?;
        }
        for number in 0..REQUESTS {
            if random.below(25) == 0 {
                self.write(random.below(self.versions.len()), number + 2)?;
            }
            let (caller, credentials) = CALLERS.get(random.below(CALLERS.len())).context("a caller")?;
            let targets: &[&str] = match *caller {
                "nobody" => &FOR_ALL,
                _ if random.below(2) == 0 => &FOR_ALL,
                "anna" | "ben" => &BY_TOKEN,
                _ => &BY_KEY,
            };
            let target = targets.get(random.below(targets.len())).context("a target")?;
            let (origin, is_allowed) = ORIGINS.get(random.below(ORIGINS.len())).context("an origin")?;
            let origin_line = origin.map(|origin| format!("Origin: {origin}"));
            let mut arguments = Vec::new();
            for line in [*credentials, origin_line.as_deref()].into_iter().flatten() {
                arguments.extend(["-H", line]);
            }
            let answer = Taker::any(random).get(&self.through, target, &arguments)?;
            ensure!(answer.status == 200, "{target} for {caller}: {}", answer.status);
            let allowed = answer.field("access-control-allow-origin");
            ensure!(
                allowed == origin.filter(|_| *is_allowed),
                "{target} for {origin:?}: allowed {allowed:?}: {}",
                answer.cache_status
            );
            self.judge(target, caller, &answer)?;
            let whose =
                if FOR_ALL.contains(target) && credentials.is_some() { ", by a known caller" } else { "" };
            let kind = if *target == "/articles" || BY_TOKEN.contains(target) || BY_KEY.contains(target) {
                target
            } else {
                "/articles/:id"
            };
            self.tally.count(&format!("{kind}{whose}"), &answer);
        }
        self.tally.print();
        for target in BY_TOKEN {
            ensure!(self.tally.of(target).hits == 0, "{target}: a response to a token was a hit");
        }
        Ok(())
    }

    /// The body is its caller's own, and no older than the last change.
    fn judge(&self, target: &str, caller: &str, answer: &Answer) -> Result<()> {
        let said: serde_json::Value = serde_json::from_slice(&answer.body).context("no JSON")?;
        if !FOR_ALL.contains(&target) {
            let user = said.get("user").and_then(serde_json::Value::as_str);
            ensure!(user == Some(caller), "{target}: {caller} was shown {user:?}: {}", answer.cache_status);
            return Ok(());
        }
        let all: Vec<serde_json::Value> = said.as_array().cloned().unwrap_or_else(|| vec![said.clone()]);
        for article in all {
            let (id, version) = (article.get("id"), article.get("version"));
            let id: usize =
                id.and_then(serde_json::Value::as_str).context("no id")?.parse().context("no number")?;
            let wanted = self.versions.get(id.wrapping_sub(1)).copied().unwrap_or_default();
            let version = version.and_then(serde_json::Value::as_u64).context("no version")?;
            ensure!(
                version == wanted as u64,
                "{target}: version {version} of {id}, not {wanted}: {}",
                answer.cache_status
            );
        }
        Ok(())
    }

    fn write(&mut self, article: usize, version: usize) -> Result<()> {
        let target = format!("/articles/{}", article + 1);
        let answer = send(&self.through, "PUT", &target, &format!("{{\"version\":{version}}}"))?;
        ensure!(answer.status == 200, "PUT {target}: {}", answer.status);
        if let Some(known) = self.versions.get_mut(article) {
            *known = version;
        }
        Ok(())
    }
}

/// With a token.
fn send(client: &Client, method: &str, target: &str, content: &str) -> Result<Answer> {
    let token = ["-H", "Authorization: Bearer token-of-anna"];
    let mut arguments = vec!["-X", method];
    arguments.extend(token);
    if !content.is_empty() {
        arguments.extend(["-H", "Content-Type: application/json", "--data-binary", content]);
    }
    client.curl(target, &arguments)
}

/// What Fastify says of each kind of response, and what larder makes of it.
fn fields(direct: &Client, through: &Client) -> Result<()> {
    println!(
        "\n| asked | Cache-Control | Vary | ETag | Cache-Status, the second time |\n|---|---|---|---|---|"
    );
    let rows = FOR_ALL.iter().take(1).chain(&BY_TOKEN).chain(&BY_KEY).chain(&["/articles/99"]);
    for target in rows {
        let line = match target {
            _ if BY_TOKEN.contains(target) => "Authorization: Bearer token-of-anna",
            _ if BY_KEY.contains(target) => "X-Api-Key: key-of-carla",
            _ => "Accept: */*",
        };
        let own = direct.ask_with(target, line)?;
        through.ask_with(target, line)?;
        let again = through.ask_with(target, line)?;
        let said = |name| own.field(name).unwrap_or("–").to_owned();
        println!(
            "| {target} | {} | {} | {} | {} |",
            said("cache-control"),
            said("vary"),
            if own.field("etag").is_some_and(|tag| tag.starts_with("W/")) { "weak" } else { "strong" },
            again.cache_status
        );
    }
    Ok(())
}

/// A browser's question before a PUT goes to the API each time.
fn preflight(through: &Client) -> Result<()> {
    let ask = |origin: &str| {
        let origin = format!("Origin: {origin}");
        through.curl(
            "/articles/1",
            &["-X", "OPTIONS", "-H", &origin, "-H", "Access-Control-Request-Method: PUT"],
        )
    };
    through.get("/articles/1")?;
    for origin in ["https://shop.example", "https://admin.example"] {
        let answer = ask(origin)?;
        println!("\nOPTIONS from {origin}: {} {}", answer.status, answer.cache_status);
        ensure!(answer.field("access-control-allow-origin") == Some(origin), "{origin}: {}", answer.status);
    }
    ensure!(through.get("/articles/1")?.is_hit(), "OPTIONS changed what is stored");
    Ok(())
}

/// POST, PUT and DELETE show in the resource and in the list at once.
fn changes(through: &Client) -> Result<()> {
    let told = |what: &str, answer: &Answer| println!("{what}: {} {}", answer.status, answer.cache_status);
    let list = |text: &str| -> Result<Answer> {
        let answer = through.get("/articles")?;
        told(text, &answer);
        Ok(answer)
    };
    through.get("/articles")?;
    ensure!(list("the list")?.is_hit(), "the list is not stored");
    let made = send(through, "POST", "/articles", "{}")?;
    ensure!(made.status == 201, "POST: {}", made.status);
    let path = made.location.clone();
    ensure!(
        list("after POST")?.text().contains(path.trim_start_matches("/articles/")),
        "{path} is not in the list"
    );
    told(&path, &through.get(&path)?);
    ensure!(send(through, "PUT", &path, "{\"version\":7}")?.status == 200, "PUT");
    let again = through.get(&path)?;
    told("after PUT", &again);
    ensure!(again.text().contains("\"version\":7"), "the change does not show");
    ensure!(send(through, "DELETE", &path, "")?.status == 204, "DELETE");
    let gone = through.get(&path)?;
    told("after DELETE", &gone);
    ensure!(gone.status == 404, "it is still there");
    ensure!(!list("the list")?.text().contains("\"version\":7"), "it is still in the list");
    // A refused change changes nothing.
    through.get("/articles/1")?;
    let refused = through.curl("/articles/1", &["-X", "PUT", "-d", "{}"])?;
    let after = through.get("/articles/1")?;
    told("PUT without a token", &refused);
    told("after it", &after);
    ensure!(refused.status >= 400 && after.is_hit(), "a refused change invalidated");
    Ok(())
}

/// An API whose database is away answers 503; what is stored stands in.
fn failures(through: &Client) -> Result<()> {
    ensure!(through.get("/news")?.status == 200, "/news");
    send(through, "POST", "/failing/on", "")?;
    let deadline = Instant::now() + STALE_MAX;
    loop {
        let answer = through.get("/news")?;
        ensure!(answer.status == 200, "/news: {} {}", answer.status, answer.cache_status);
        if answer.cache_status.contains("stale-if-error") {
            println!("\nthe API answers 503: /news: {} {}", answer.status, answer.cache_status);
            break;
        }
        if Instant::now() > deadline {
            bail!("/news is never stale");
        }
        harness::children::pause();
    }
    send(through, "POST", "/failing/off", "").map(drop)
}

/// The API is gone.
fn without_origin(through: &Client) -> Result<()> {
    for target in ["/articles/1", "/news"] {
        let answer = through.get(target)?;
        println!("the API stopped: {target}: {} {}", answer.status, answer.cache_status);
        ensure!(answer.status == 200, "{target}: {}", answer.status);
    }
    let write = send(through, "PUT", "/articles/1", "{\"version\":1}")?;
    println!("the API stopped: PUT: {} {}", write.status, write.cache_status);
    ensure!(write.status == 502, "PUT: {}", write.status);
    let after = through.get("/articles/1")?;
    println!("the API stopped: /articles/1 after the PUT: {} {}", after.status, after.cache_status);
    ensure!(after.status == 200, "a change that was never sent: {}", after.status);
    Ok(())
}
