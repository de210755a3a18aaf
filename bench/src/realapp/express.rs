//! Express with sessions for everybody: what one client was given reaches no other.
//!
//! In: the stage. Out: a table of what was a hit in each setting. A session cookie that is received twice, and a page that
//! was made for another client, fail the run; see tests/realapp/express/README.md.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::fetch::{Answer, Client};
use super::node;
use super::random::Random;
use super::stage::Stage;
use harness::children::{Server, free_port};

pub(super) const PACKAGES: &[&str] = &[];

const READY_MAX: Duration = Duration::from_secs(20);
const REQUESTS: usize = 1000;
const SHARED: [&str; 6] =
    ["/style-1.css", "/style-2.css", "/style-3.css", "/style-4.css", "/style-5.css", "/news"];
const OWN: [&str; 2] = ["/me", "/account"];
/// The second says nothing of what it is for.
const COOKIES: [&str; 2] = ["connect.sid", "shop"];

/// Runs it all.
pub(super) fn run(stage: &Stage<'_>) -> Result<String> {
    let folder = node::application(stage, "express")?;
    let mut random = Random::of_this_run();
    println!("LARDER_SEED={}", random.seed());
    println!("| cookie | setting | requests | shared pages | hits of them | sessions begun |");
    println!("|---|---|---|---|---|---|");
    for cookie in COOKIES {
        let shop = Shop::start(&folder, cookie)?;
        let origin = shop.address;
        let site = format!("[origins.shop]\nservers = \"http://{origin}\"\n\n[[site]]\norigin = \"shop\"\n");
        let disk = format!(
            "{site}\n[stores.default]\nmemory = \"16MiB\"\ndisks = [{{ path = \"{}\", size = \"64MiB\" }}]\n",
            stage.work.join(format!("disk-{cookie}")).display()
        );
        let mut crowd = Crowd::new(cookie);
        let mut visit = |setting, config: &str, is_stored: bool| -> Result<()> {
            let mut larder = stage.larder(config)?;
            // The same host each time: it is part of the key, and what is on the disk is to be found again.
            crowd.visit(Client { host: origin, ..larder.client() }, is_stored, &mut random)?;
            println!("| {cookie} | {setting} | {REQUESTS} | {} |", crowd.told());
            ensure!(crowd.hits * 10 >= crowd.shared * 9, "{setting}: too few of the shared pages were hits");
            larder.still_runs()
        };
        visit("none", &site, false)?;
        visit("ttl", &format!("{site}ttl = \"1m\"\n"), false)?;
        visit("disk", &disk, false)?;
        visit("the disk again", &disk, true)?;
    }
    let versions = ["express", "express-session"];
    let versions: Result<Vec<_>> =
        versions.iter().map(|name| Ok(format!("{name} {}", node::version(&folder, name)?))).collect();
    Ok(versions?.join(", "))
}

struct Shop {
    address: SocketAddr,
    _server: Server,
}

impl Shop {
    fn start(folder: &Path, cookie: &str) -> Result<Self> {
        let address = free_port()?;
        let mut command = Command::new("node");
        command
            .arg("app.js")
            .current_dir(folder)
            .env("PORT", address.port().to_string())
            .env("COOKIE", cookie)
            .env("NODE_ENV", "production")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let mut server = Server::start("express", &mut command)?;
        server.wait_for(address, READY_MAX)?;
        Ok(Self { address, _server: server })
    }
}

/// The clients, and all that they were ever given, by whichever larder.
struct Crowd<'a> {
    cookie: &'a str,
    /// What each keeps; the last one keeps nothing.
    jars: [Option<String>; 3],
    /// Each session, and who was given it.
    given: BTreeMap<String, usize>,
    shared: usize,
    hits: usize,
}

impl<'a> Crowd<'a> {
    fn new(cookie: &'a str) -> Self {
        Self { cookie, jars: [const { None }; 3], given: BTreeMap::new(), shared: 0, hits: 0 }
    }

    /// Through one larder. The first client logs in before all else; `is_stored` says that the first page has to be a hit.
    fn visit(&mut self, client: Client, is_stored: bool, random: &mut Random) -> Result<()> {
        (self.shared, self.hits) = (0, 0);
        if is_stored {
            let found = client.get(SHARED[0])?;
            ensure!(found.is_hit(), "{}: not found again: {}", SHARED[0], found.cache_status);
        }
        if self.jars[0].is_none() {
            let welcome = client.post("/login/victoria", &[("password", "of hers".to_owned())])?;
            ensure!(welcome.body == b"welcome", "no login: {}", welcome.status);
            self.receive(0, "/login/victoria", &welcome)?;
            ensure!(self.jars[0].is_some(), "a login without a session");
        }
        for _ in 0..REQUESTS {
            let who = random.below(self.jars.len());
            // Mostly what all may share, as a page has many of them.
            let pages: &[&'static str] = if random.below(4) == 0 { &OWN } else { &SHARED };
            let target = pages.get(random.below(pages.len())).context("a page")?;
            let answer = match &self.jars[who] {
                Some(session) => client.ask_with(target, &format!("Cookie: {}={session}", self.cookie))?,
                None => client.get(target)?,
            };
            ensure!(answer.status == 200, "{target}: {}", answer.status);
            self.receive(who, target, &answer)?;
        }
        Ok(())
    }

    fn receive(&mut self, who: usize, target: &str, answer: &Answer) -> Result<()> {
        for cookie in &answer.set_cookies {
            let value = cookie.split(';').next().and_then(|pair| pair.split_once('='));
            let Some((name, session)) = value else { bail!("{target}: Set-Cookie: {cookie}") };
            ensure!(name == self.cookie, "{target}: Set-Cookie: {cookie}");
            if let Some(first) = self.given.insert(session.to_owned(), who) {
                bail!(
                    "{target}: client {who} was given the session of client {first}: {}",
                    answer.cache_status
                );
            }
            // The last client keeps no cookie, like a program that fetches pages.
            if who + 1 < self.jars.len() {
                self.jars[who] = Some(session.to_owned());
            }
        }
        if SHARED.contains(&target) {
            self.shared += 1;
            self.hits += usize::from(answer.is_hit());
        }
        if OWN.contains(&target) {
            let body = String::from_utf8_lossy(&answer.body).into_owned();
            let (session, user) = body.split_once(' ').with_context(|| format!("{target}: {body}"))?;
            // The cookie has the session's number and a signature.
            let is_ones = |jar: &str| jar.contains(session);
            let is_own = match self.jars[who].as_deref() {
                Some(jar) => is_ones(jar),
                None => answer.set_cookies.iter().any(|cookie| is_ones(cookie)),
            };
            ensure!(is_own, "{target}: client {who} was shown another's page: {}", answer.cache_status);
            ensure!((user == "victoria") == (who == 0), "{target}: client {who} is shown as {user}");
        }
        Ok(())
    }

    fn told(&self) -> String {
        format!("{} | {} | {}", self.shared, self.hits, self.given.len())
    }
}
