//! PHP with a session for everybody: what one client was given reaches no other, and what is for all is shared.
//!
//! In: the stage. Out: a table of hits by page and setting. A session that two clients are given, and a page with another's
//! session, name or language, fail the run; see tests/realapp/php-sessions/README.md.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::apache::Apache;
use super::fetch::{Answer, Client};
use super::jar::{Given, Jar};
use super::random::Random;
use super::stage::{CARELESS, Larder, Stage};
use crate::packages;
use harness::children::run_within;

pub(super) const PACKAGES: &[&str] = &["libapache2-mod-php", "media-types"];

const TOUCH_MAX: Duration = Duration::from_secs(10);
const REQUESTS: usize = 500;
const PAGES: [&str; 5] = ["/account.php", "/catalogue.php", "/news.php", "/banner.php", "/style.css"];
const SESSION: &str = "PHPSESSID";
const USER: &str = "victoria";

/// Who visits. The first is logged in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visitor {
    Customer,
    /// Keeps what it is given.
    Browser,
    /// Keeps nothing, like a program that fetches pages.
    Program,
    /// A browser that declines the application's cookies, but is followed by analytics.
    Followed,
    /// Has chosen a language.
    German,
}

const VISITORS: [Visitor; 5] =
    [Visitor::Customer, Visitor::Browser, Visitor::Program, Visitor::Followed, Visitor::German];

/// Runs it all.
pub(super) fn run(stage: &Stage<'_>) -> Result<String> {
    let mut random = Random::of_this_run();
    println!("LARDER_SEED={}", random.seed());
    println!("hits of requests, by page; sessions begun\n");
    let names = PAGES.map(|page| format!("`{page}`"));
    println!("| PHP's limiter | setting | {} | sessions |", names.join(" | "));
    println!("|---|---|{}---|", "---|".repeat(PAGES.len()));
    for limiter in ["nocache", "public"] {
        let work = stage.work.join(limiter);
        fs::create_dir(&work)?;
        let mut app = App::start(stage, &work, limiter)?;
        let site = format!(
            "[origins.app]\nservers = \"http://{}\"\n\n[[site]]\norigin = \"app\"\n",
            app.apache.address
        );
        let example = stage.example("sessions.toml", "http://127.0.0.1:8085", app.apache.address)?;
        let disk = format!(
            "{example}\n[stores.default]\nmemory = \"16MiB\"\ndisks = [{{ path = \"{}\", size = \"64MiB\" }}]\n",
            work.join("disk").display()
        );
        let settings = [
            ("none", site.clone()),
            ("`ttl = \"1m\"`", format!("{site}ttl = \"1m\"\n")),
            ("examples/sessions.toml", example),
            ("the same with a disk", disk.clone()),
            ("the disk again", disk),
        ];
        for (name, config) in &settings {
            let mut larder = stage.larder(config)?;
            let mut crowd = Crowd::new(larder.client(), limiter == "public")?;
            crowd.visit(&mut random).with_context(|| format!("limiter `{limiter}`, setting {name}"))?;
            println!("| {limiter} | {name} | {} |", crowd.told());
            crowd.is_as_expected(name)?;
            if *name == "examples/sessions.toml" && limiter == "nocache" {
                explain(stage, &larder)?;
            }
            larder.still_runs()?;
        }
        let larder = stage.larder(&format!("{site}{CARELESS}"))?;
        let found =
            Crowd::new(larder.client(), limiter == "public").and_then(|mut crowd| crowd.visit(&mut random));
        let found = found.err().context("with settings that give away sessions nothing was found")?;
        println!("{limiter}: with settings that give away sessions, as it has to be: {found:#}");
        app.apache.still_runs()?;
    }
    let version = |name| packages::version(name).unwrap_or_default();
    Ok(format!(
        "libapache2-mod-php {}, apache2-bin {}",
        version("libapache2-mod-php"),
        version("apache2-bin")
    ))
}

/// Which cookie keeps a request from the cache, as an operator finds it.
fn explain(stage: &Stage<'_>, larder: &Larder) -> Result<()> {
    let url = format!("http://{}/news.php", larder.public);
    let said =
        larder.explain(stage, &[&url, "-H", "Cookie: _ga=GA1.1.7; PHPSESSID=0123456789abcdef0123456789"])?;
    let decision = said.split("\n\n").find(|part| part.contains("Decision")).context("no decision")?;
    println!("\n{decision}\n");
    ensure!(said.contains(SESSION), "explain does not name the cookie");
    Ok(())
}

struct App {
    apache: Apache,
}

impl App {
    fn start(stage: &Stage<'_>, work: &std::path::Path, limiter: &str) -> Result<Self> {
        for folder in ["app", "sessions"] {
            fs::create_dir(work.join(folder))?;
        }
        for entry in fs::read_dir(stage.data.join("app"))? {
            let entry = entry?;
            let copy = work.join("app").join(entry.file_name());
            fs::copy(entry.path(), &copy)?;
            // As files on servers are: a guess from Last-Modified makes nothing of one that is a second old.
            let status = run_within(Command::new("touch").args(["-d", "30 days ago"]).arg(copy), TOUCH_MAX)?;
            ensure!(status.success(), "touch: {status}");
        }
        let template = work.join("apache.template");
        let text = fs::read_to_string(stage.data.join("apache.conf"))?;
        fs::write(&template, text.replace("@LIMITER@", limiter))?;
        Ok(Self { apache: Apache::start(&template, work)? })
    }
}

/// The visitors, and all that they were ever given.
struct Crowd {
    client: Client,
    jars: [Jar; VISITORS.len()],
    given: Given,
    /// Whether PHP says of every page that it is for all.
    all_public: bool,
    asked: [usize; PAGES.len()],
    hits: [usize; PAGES.len()],
    /// Of the style sheet, by visitors without any cookie of the application.
    strangers: (usize, usize),
}

impl Crowd {
    fn new(client: Client, all_public: bool) -> Result<Self> {
        let mut crowd = Self {
            client,
            jars: Default::default(),
            given: Given::default(),
            all_public,
            asked: [0; PAGES.len()],
            hits: [0; PAGES.len()],
            strangers: (0, 0),
        };
        let welcome = client.post("/login.php", &[("user", USER.to_owned())])?;
        ensure!(welcome.body == b"welcome", "no login: {}", welcome.status);
        crowd.given.note(0, "/login.php", &welcome)?;
        crowd.jars[0].keep(&welcome);
        crowd.jars[3].put("_ga", "GA1.1.1234567890.1700000000");
        crowd.jars[4].put("lang", "de");
        Ok(crowd)
    }

    fn visit(&mut self, random: &mut Random) -> Result<()> {
        for _ in 0..REQUESTS {
            let (who, page) = (random.below(VISITORS.len()), random.below(PAGES.len()));
            let (visitor, target) = (VISITORS[who], PAGES[page]);
            let fields: Vec<String> = self.jars[who].field().into_iter().collect();
            let answer = self.client.send(target, &fields, &[])?;
            ensure!(answer.status == 200, "{target}: {}", answer.status);
            self.given.note(who, target, &answer)?;
            ensure!(!answer.is_hit() || answer.set_cookies.is_empty(), "{target}: a hit sets a cookie");
            self.asked[page] += 1;
            self.hits[page] += usize::from(answer.is_hit());
            if target == "/style.css" && matches!(visitor, Visitor::Program | Visitor::Followed) {
                self.strangers.0 += 1;
                self.strangers.1 += usize::from(answer.is_hit());
            }
            self.judge(who, visitor, target, &answer).with_context(|| answer.cache_status.clone())?;
            if matches!(visitor, Visitor::Customer | Visitor::Browser) {
                self.jars[who].keep(&answer);
            }
        }
        Ok(())
    }

    fn judge(&self, who: usize, visitor: Visitor, target: &str, answer: &Answer) -> Result<()> {
        let text = answer.text();
        let user = if visitor == Visitor::Customer { USER } else { "nobody" };
        match target {
            // Where PHP says that this page is for all, it is for all: no cache can know better.
            "/account.php" if !self.all_public => {
                let (session, shown) = text.trim().split_once(' ').context("no account")?;
                let sent = self.jars[who].value(SESSION).is_some_and(|own| own == session);
                let begun = answer.set_cookies.iter().any(|cookie| cookie.contains(session));
                ensure!(sent || begun, "client {who} is shown another's session");
                ensure!(shown == user, "client {who} is shown as {shown}");
            }
            "/news.php" => {
                let expected = if visitor == Visitor::Customer { USER } else { "stranger" };
                ensure!(text.contains(expected), "client {who} is shown {text}");
            }
            "/banner.php" => {
                let expected = if visitor == Visitor::German { "Willkommen" } else { "Welcome" };
                ensure!(text.contains(expected), "client {who} is shown {text}");
            }
            _ => {}
        }
        Ok(())
    }

    /// What has to be shared in a setting, and what must not be.
    fn is_as_expected(&self, setting: &str) -> Result<()> {
        let [account, catalogue, news, banner, _] = self.hits;
        let [_, all_catalogue, _, all_banner, _] = self.asked;
        let mostly = |hits: usize, all: usize| hits * 10 >= all * 9;
        ensure!(mostly(catalogue, all_catalogue), "{setting}: the catalogue was not shared");
        if !self.all_public {
            ensure!(account == 0, "{setting}: the account page was shared");
        }
        let without_rules = setting == "none" || setting.starts_with("`ttl");
        if without_rules {
            ensure!(news == 0 && banner == 0, "{setting}: pages that begin sessions were shared");
        } else {
            ensure!(news > 0, "{setting}: strangers did not share the news");
            ensure!(mostly(banner, all_banner), "{setting}: the banner was not shared");
        }
        // Without a lifetime of the application's own, who has a session does not share it.
        let (asked, hits) = self.strangers;
        ensure!(mostly(hits, asked), "{setting}: strangers shared {hits} of {asked} style sheets");
        Ok(())
    }

    fn told(&self) -> String {
        let cells: Vec<String> =
            self.hits.iter().zip(&self.asked).map(|(hits, asked)| format!("{hits} of {asked}")).collect();
        format!("{} | {}", cells.join(" | "), self.given.count())
    }
}
