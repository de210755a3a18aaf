//! Django with its own middleware under gunicorn: sessions and tokens stay with their visitor, pages for all are shared.
//!
//! In: the stage. Out: a table of hits by page and setting. A cookie or a token that two clients are given, a page with
//! another's name and a form that Django refuses fail the run; see tests/realapp/django/README.md.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::fetch::{Answer, Client};
use super::jar::{Given, Jar};
use super::python;
use super::random::Random;
use super::stage::{CARELESS, Stage};
use harness::children::{Server, free_port, output_within, run_within};

pub(super) use super::python::PACKAGES;

const READY_MAX: Duration = Duration::from_secs(60);
const REQUESTS: usize = 400;
const USER: &str = "victoria";
const PASSWORD: &str = "only for this run";
/// Of these, only the first two never differ between visitors.
const PAGES: [&str; 7] = ["/catalogue", "/news", "/greeting", "/", "/form", "/account", "/admin/"];
const TOKEN: &str = "name=\"csrfmiddlewaretoken\" value=\"";
/// Who is logged in, who keeps what they are given, who keeps nothing, and five who are followed by analytics.
const CLIENTS: usize = 8;
const LOGGED_IN: usize = 0;
const KEEPER: usize = 1;
const FOLLOWED: std::ops::Range<usize> = 3..CLIENTS;

/// Runs it all.
pub(super) fn run(stage: &Stage<'_>) -> Result<String> {
    let python = python::interpreter(stage, "django")?;
    let mut random = Random::of_this_run();
    println!("LARDER_SEED={}", random.seed());
    let mut shop = Shop::start(stage, &python)?;
    let site =
        format!("[origins.django]\nservers = \"http://{}\"\n\n[[site]]\norigin = \"django\"\n", shop.address);
    let disk = format!(
        "{site}\n[stores.default]\nmemory = \"16MiB\"\ndisks = [{{ path = \"{}\", size = \"64MiB\" }}]\n",
        stage.work.join("disk").display()
    );
    let example = stage.example("django.toml", "http://127.0.0.1:8086", shop.address)?;
    println!("hits of requests, by page; those of clients with a cookie of analytics alone in brackets\n");
    let names = PAGES.map(|page| format!("`{page}`"));
    println!("| setting | {} | static files | cookies given |", names.join(" | "));
    println!("|---|{}---|---|", "---|".repeat(PAGES.len()));
    // What Django gives to whom by itself, so that what follows is larder's doing.
    let alone = Client { address: shop.address, host: shop.address, compressed: false };
    Crowd::new(alone)?.visit(&mut random).context("without larder")?;
    for (name, config) in [
        ("none", site.clone()),
        ("`ttl = \"1m\"`", format!("{site}ttl = \"1m\"\n")),
        ("disk", disk.clone()),
        ("the disk again", disk),
        ("examples/django.toml", example),
    ] {
        let mut larder = stage.larder(&config)?;
        let mut crowd = Crowd::new(larder.client())?;
        crowd.visit(&mut random).with_context(|| format!("setting {name}"))?;
        println!("| {name} | {} |", crowd.told());
        crowd.is_as_expected(name)?;
        larder.still_runs()?;
    }
    let larder = stage.larder(&format!("{site}{CARELESS}"))?;
    let found = Crowd::new(larder.client()).and_then(|mut crowd| crowd.visit(&mut random));
    let found = found.err().context("with settings that give away sessions nothing was found")?;
    println!("with settings that give away sessions, as it has to be: {found:#}");
    shop.server.still_runs()?;
    let script = "import django, gunicorn, importlib.metadata as m; \
                  print('django', django.__version__, '/ gunicorn', gunicorn.__version__, '/ whitenoise', m.version('whitenoise'))";
    let versions = output_within(Command::new(&python).args(["-c", script]), READY_MAX)?;
    Ok(versions.trim().replace(" / ", ", "))
}

struct Shop {
    address: SocketAddr,
    server: Server,
}

impl Shop {
    fn start(stage: &Stage<'_>, python: &Path) -> Result<Self> {
        let prepare = |command: &mut Command| {
            command
                .current_dir(&stage.data)
                .env("SHOP_WORK", stage.work)
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .stdin(Stdio::null())
                .stdout(Stdio::null());
        };
        let mut command = Command::new(python);
        prepare(command.arg("prepare.py"));
        ensure!(run_within(&mut command, READY_MAX)?.success(), "the shop could not be prepared");
        let address = free_port()?;
        let mut command = Command::new(python);
        prepare(command.args([
            "-m",
            "gunicorn",
            "--workers",
            "2",
            "--bind",
            &address.to_string(),
            "shop.wsgi",
        ]));
        command.stderr(fs::File::create(stage.work.join("gunicorn.log"))?);
        let mut server = Server::start("gunicorn", &mut command)?;
        server.wait_for(address, READY_MAX)?;
        Ok(Self { address, server })
    }
}

/// The clients, and all that they were ever given.
struct Crowd {
    client: Client,
    jars: [Jar; CLIENTS],
    given: Given,
    /// Tokens of forms, which Django masks anew each time, and who had each.
    tokens: BTreeMap<String, usize>,
    asked: [usize; PAGES.len()],
    hits: [usize; PAGES.len()],
    followed_asked: [usize; PAGES.len()],
    followed_hits: [usize; PAGES.len()],
    files: (usize, usize),
}

impl Crowd {
    fn new(client: Client) -> Result<Self> {
        let mut crowd = Self {
            client,
            jars: Default::default(),
            given: Given::default(),
            tokens: BTreeMap::new(),
            asked: [0; PAGES.len()],
            hits: [0; PAGES.len()],
            followed_asked: [0; PAGES.len()],
            followed_hits: [0; PAGES.len()],
            files: (0, 0),
        };
        for who in FOLLOWED {
            crowd.jars[who].put("_ga", &format!("GA1.1.{who}123456789.1700000000"));
        }
        crowd.log_in()?;
        Ok(crowd)
    }

    /// As a browser does it: the form, then its answer with the token and the cookie.
    fn log_in(&mut self) -> Result<()> {
        let target = "/admin/login/?next=/admin/";
        let form = self.ask(LOGGED_IN, target, &[])?;
        let token = token(&form.text()).context("the login has no token")?;
        let form = [("csrfmiddlewaretoken", token.as_str()), ("username", USER), ("password", PASSWORD)];
        let welcome = self.ask(LOGGED_IN, target, &form)?;
        ensure!(welcome.status == 302, "the login was answered {}", welcome.status);
        ensure!(self.jars[LOGGED_IN].value("sessionid").is_some(), "a login without a session");
        Ok(())
    }

    fn ask(&mut self, who: usize, target: &str, form: &[(&str, &str)]) -> Result<Answer> {
        let fields: Vec<String> = self.jars[who].field().into_iter().collect();
        let answer = self.client.send(target, &fields, form)?;
        self.given.note(who, target, &answer)?;
        ensure!(!answer.is_hit() || answer.set_cookies.is_empty(), "{target}: a hit sets a cookie");
        if who == LOGGED_IN || who == KEEPER {
            self.jars[who].keep(&answer);
        }
        Ok(answer)
    }

    fn visit(&mut self, random: &mut Random) -> Result<()> {
        for _ in 0..REQUESTS {
            let (who, page) = (random.below(CLIENTS), random.below(PAGES.len()));
            let target = PAGES[page];
            let answer = self.ask(who, target, &[])?;
            self.asked[page] += 1;
            self.hits[page] += usize::from(answer.is_hit());
            if FOLLOWED.contains(&who) {
                self.followed_asked[page] += 1;
                self.followed_hits[page] += usize::from(answer.is_hit());
            }
            self.judge(who, target, &answer).with_context(|| answer.cache_status.clone())?;
            self.fetch_files(who, &answer)?;
            if target == "/form" && (who == LOGGED_IN || who == KEEPER) {
                let token = token(&answer.text()).context("a form without a token")?;
                let sent = self.ask(who, target, &[("csrfmiddlewaretoken", &token)])?;
                ensure!(
                    sent.text().contains("Received"),
                    "client {who}: the form was answered {}",
                    sent.status
                );
            }
        }
        Ok(())
    }

    fn judge(&mut self, who: usize, target: &str, answer: &Answer) -> Result<()> {
        let (text, logged_in) = (answer.text(), who == LOGGED_IN);
        match target {
            "/account" | "/admin/" => {
                let expected = if logged_in { 200 } else { 302 };
                ensure!(answer.status == expected, "{target}: client {who} is answered {}", answer.status);
            }
            "/" | "/greeting" => {
                let name = if logged_in { USER } else { "stranger" };
                ensure!(text.contains(&format!("Hello, {name}.")), "{target}: client {who} is shown {text}");
            }
            _ => ensure!(answer.status == 200, "{target}: {}", answer.status),
        }
        ensure!(logged_in || !text.contains(USER), "{target}: client {who} is shown another's name");
        if let Some(token) = token(&text)
            && let Some(first) = self.tokens.insert(token, who)
        {
            bail!("{target}: client {who} was given a form of client {first}");
        }
        Ok(())
    }

    /// The style sheets of a page.
    fn fetch_files(&mut self, who: usize, page: &Answer) -> Result<()> {
        let text = page.text();
        for target in text.split('"').filter(|part| part.starts_with("/static/") && part.ends_with(".css")) {
            let answer = self.ask(who, target, &[])?;
            ensure!(answer.status == 200, "{target}: {}", answer.status);
            self.files.0 += 1;
            self.files.1 += usize::from(answer.is_hit());
        }
        Ok(())
    }

    fn is_as_expected(&self, setting: &str) -> Result<()> {
        let mostly = |hits: usize, all: usize| hits * 10 >= all * 8;
        let [catalogue, news, greeting, front, form, account, admin] = self.hits;
        ensure!(mostly(catalogue, self.asked[0]), "{setting}: the catalogue was not shared");
        ensure!(mostly(news, self.asked[1]), "{setting}: the news were not shared");
        ensure!(mostly(self.files.1, self.files.0), "{setting}: static files were not shared");
        ensure!(form + account + admin == 0, "{setting}: what is one visitor's was shared");
        let (asked, hits) = (self.followed_asked[2], self.followed_hits[2]);
        if setting.starts_with("examples/") {
            ensure!(mostly(hits, asked), "{setting}: strangers with analytics did not share the greeting");
        }
        ensure!(greeting > 0, "{setting}: strangers did not share the greeting");
        ensure!(front <= self.asked[3], "{setting}: more hits than requests");
        Ok(())
    }

    fn told(&self) -> String {
        let cell = |page: usize| {
            format!(
                "{} of {} ({} of {})",
                self.hits[page], self.asked[page], self.followed_hits[page], self.followed_asked[page]
            )
        };
        let cells: Vec<String> = (0..PAGES.len()).map(cell).collect();
        format!("{} | {} of {} | {}", cells.join(" | "), self.files.1, self.files.0, self.given.count())
    }
}

/// The token of a form.
fn token(page: &str) -> Option<String> {
    let (_, rest) = page.split_once(TOKEN)?;
    rest.split('"').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forms_token_is_found() {
        let form = r#"<input type="hidden" name="csrfmiddlewaretoken" value="abc">"#;
        assert_eq!(token(form).as_deref(), Some("abc"));
        assert_eq!(token("<form>"), None);
    }
}
