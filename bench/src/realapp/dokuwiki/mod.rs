//! DokuWiki from Debian's package, with a login in Chromium.
//!
//! In: the stage. Out: a table of what was a hit in each setting, and a picture of a page as its writer saw it. A
//! stranger who is shown the writer's name, form or cookie fails the run. So do a writer who is shown a stranger's
//! page, an asset that is not shared, and an edit that one of them does not see at once. See
//! tests/realapp/dokuwiki/README.md.

mod site;

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};

use super::fetch::{Answer, Client};
use super::jar::{Given, Jar};
use super::stage::{CARELESS, Larder, Stage};
use crate::browser::driver::Browser;
use crate::packages;
use site::{NAME, PAGES, PASSWORD, USER};

pub(super) use site::PACKAGES;

/// Views of a page that are made for one visitor.
const VIEWS: [&str; 5] = ["", "&do=edit", "&do=login", "&do=revisions", "&do=recent"];
/// The button of the form in which a page is edited.
const SAVE: &str = "edbtn__save";
const ASSETS_MIN: usize = 6;

/// Runs it all.
pub(super) fn run(stage: &Stage<'_>) -> Result<String> {
    let mut wiki = site::start(&stage.data, stage.work)?;
    let config =
        format!("[origins.wiki]\nservers = \"http://{}\"\n\n[[site]]\norigin = \"wiki\"\n", wiki.address);
    let disk = format!(
        "{config}\n[stores.default]\nmemory = \"16MiB\"\ndisks = [{{ path = \"{}\", size = \"64MiB\" }}]\n",
        stage.work.join("disk").display()
    );
    let strangers = stage.example("dokuwiki.toml", "http://127.0.0.1:8084", wiki.address)?;
    let mut given = Given::default();
    println!(
        "| setting | pages asked for | hits of them | assets | hits of them | with a session | sessions begun |"
    );
    println!("|---|---|---|---|---|---|---|");
    let settings = [
        ("none", config.clone()),
        ("ttl", format!("{config}ttl = \"1m\"\n")),
        ("disk", disk.clone()),
        ("the disk again", disk),
        ("examples/dokuwiki.toml", strangers),
    ];
    for (number, (name, config)) in settings.iter().enumerate() {
        let mut larder = stage.larder(config)?;
        let mut visit = Visit::new(stage, &larder, &mut given, number)?;
        visit.all(name).with_context(|| format!("setting `{name}`"))?;
        println!("| {name} | {} |", visit.told());
        if number == 0 {
            visit.writer.open(&visit.url("/doku.php?id=start"))?;
            visit.writer.picture(&stage.data.join("screenshot.png"))?;
        }
        drop(visit);
        larder.still_runs()?;
        wiki.still_runs()?;
    }
    let larder = stage.larder(&format!("{config}{CARELESS}"))?;
    let found = Visit::new(stage, &larder, &mut given, settings.len())?.all("careless").err();
    let found = found.context("with settings that give away sessions nothing was found")?;
    println!("with settings that give away sessions, as it has to be: {found:#}");
    let version = |name| packages::version(name).unwrap_or_default();
    Ok(format!(
        "dokuwiki {}, apache2-bin {}, php-cli {}, chromium {}",
        version("dokuwiki"),
        version("apache2-bin"),
        version("php-cli"),
        version("chromium")
    ))
}

/// Everybody who visits one larder.
struct Visit<'a> {
    client: Client,
    writer: Browser,
    reader: Browser,
    /// A stranger who keeps cookies, as browsers do.
    jar: Jar,
    given: &'a mut Given,
    number: usize,
    pages: usize,
    page_hits: usize,
    assets: usize,
    asset_hits: usize,
    /// Hits of assets for a client that has a session.
    session_hits: usize,
}

impl<'a> Visit<'a> {
    fn new(stage: &Stage<'_>, larder: &Larder, given: &'a mut Given, number: usize) -> Result<Self> {
        Ok(Self {
            client: larder.client(),
            writer: Browser::start(stage.work, &format!("writer-{number}"))?,
            reader: Browser::start(stage.work, &format!("reader-{number}"))?,
            jar: Jar::default(),
            given,
            number,
            pages: 0,
            page_hits: 0,
            assets: 0,
            asset_hits: 0,
            session_hits: 0,
        })
    }

    fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.client.address)
    }

    fn all(&mut self, name: &str) -> Result<()> {
        // Strangers come first to some pages, the writer to others.
        self.strangers_look("start")?;
        self.log_in()?;
        for page in PAGES {
            self.writer_looks(page)?;
            self.strangers_look(page)?;
            self.writer_looks(page)?;
        }
        self.look_at_assets(name)?;
        self.edit()
    }

    fn log_in(&self) -> Result<()> {
        self.writer.open(&self.url("/doku.php?id=start&do=login"))?;
        self.writer.fill("#dw__login input[name=u]", USER)?;
        self.writer.fill("#dw__login input[name=p]", PASSWORD)?;
        self.writer.click("#dw__login button[type=submit]")?;
        let shown = self.writer.text("#dokuwiki__usertools")?;
        ensure!(shown.contains(NAME), "the login shows no name, but: {shown}");
        Ok(())
    }

    fn writer_looks(&self, page: &str) -> Result<()> {
        for view in VIEWS {
            let target = format!("/doku.php?id={page}{view}");
            self.writer.open(&self.url(&target))?;
            let shown = self.writer.text("#dokuwiki__usertools")?;
            ensure!(shown.contains(NAME), "{target}: the writer is shown a stranger's page");
            if view == "&do=edit" {
                ensure!(self.writer.source()?.contains(SAVE), "{target}: the writer has no form");
            }
        }
        Ok(())
    }

    /// A client without cookies, one that keeps them, and a browser.
    fn strangers_look(&mut self, page: &str) -> Result<()> {
        for view in VIEWS {
            let target = format!("/doku.php?id={page}{view}");
            let bare = self.client.get(&target)?;
            self.stranger_sees(0, &target, &bare)?;
            let again = self.client.get(&target)?;
            self.stranger_sees(0, &target, &again)?;
            let kept: Vec<String> = self.jar.field().into_iter().collect();
            let answer = self.client.send(&target, &kept, &[])?;
            self.stranger_sees(1, &target, &answer)?;
            self.jar.keep(&answer);
            self.reader.open(&self.url(&target))?;
            self.holds_nothing_of_the_writer(&target, &self.reader.source()?)?;
        }
        Ok(())
    }

    fn stranger_sees(&mut self, who: usize, target: &str, answer: &Answer) -> Result<()> {
        self.pages += 1;
        self.page_hits += usize::from(answer.is_hit());
        self.given.note(10 * self.number + who, target, answer)?;
        let secrets = self.writer.cookies()?;
        for cookie in &answer.set_cookies {
            let stolen = secrets.iter().find(|(_, value)| cookie.contains(value.as_str()));
            ensure!(stolen.is_none(), "{target}: a stranger is given the writer's cookie: {cookie}");
        }
        self.holds_nothing_of_the_writer(target, &answer.text()).with_context(|| answer.cache_status.clone())
    }

    fn holds_nothing_of_the_writer(&self, target: &str, page: &str) -> Result<()> {
        ensure!(page.contains("dokuwiki__site"), "{target}: no page of the wiki");
        ensure!(!page.contains(NAME), "{target}: a stranger is shown the writer's page");
        ensure!(!page.contains(SAVE), "{target}: a stranger is shown the form");
        Ok(())
    }

    /// Style sheets, scripts and pictures: shared by all, and without anybody's session.
    fn look_at_assets(&mut self, name: &str) -> Result<()> {
        let page = self.client.get("/doku.php?id=start")?;
        let assets = assets(&page.text());
        ensure!(assets.len() >= ASSETS_MIN, "only {} assets", assets.len());
        let kept: Vec<String> = self.jar.field().into_iter().collect();
        let mut samples = [String::new(), String::new()];
        for target in &assets {
            self.client.get(target)?;
            let again = self.client.get(target)?;
            let with_session = self.client.send(target, &kept, &[])?;
            ensure!(again.status == 200, "{target}: {}", again.status);
            ensure!(again.body == with_session.body, "{target}: two clients, two files");
            self.assets += 1;
            self.asset_hits += usize::from(again.is_hit());
            self.session_hits += usize::from(with_session.is_hit());
            for answer in [&again, &with_session] {
                ensure!(
                    !answer.is_hit() || answer.set_cookies.is_empty(),
                    "{target}: a hit sets {:?}",
                    answer.set_cookies
                );
            }
            ensure!(again.is_hit(), "{target}: {}", again.cache_status);
            if target.contains("fetch.php") {
                samples = [again.cache_status, with_session.cache_status];
            }
        }
        let all = name.starts_with("examples/");
        ensure!(!all || self.session_hits == self.assets, "clients with a session did not share the assets");
        println!("{name}: a picture: `{}`; with a session: `{}`", samples[0], samples[1]);
        Ok(())
    }

    /// What the writer saves is what everybody reads.
    fn edit(&self) -> Result<()> {
        let (target, text) = ("/doku.php?id=play", format!("Edited in setting {}.", self.number));
        self.writer.open(&self.url(&format!("{target}&do=edit")))?;
        self.writer.fill("#wiki__text", &text)?;
        self.writer.click("#edbtn__save")?;
        ensure!(self.writer.text("#dokuwiki__content")?.contains(&text), "the writer does not see the edit");
        self.writer.open(&self.url(target))?;
        ensure!(
            self.writer.text("#dokuwiki__content")?.contains(&text),
            "the writer does not see the edit again"
        );
        let bare = self.client.get(target)?;
        ensure!(bare.text().contains(&text), "a client does not see the edit: {}", bare.cache_status);
        self.reader.open(&self.url(target))?;
        ensure!(self.reader.text("#dokuwiki__content")?.contains(&text), "the reader does not see the edit");
        Ok(())
    }

    fn told(&self) -> String {
        format!(
            "{} | {} | {} | {} | {} | {}",
            self.pages,
            self.page_hits,
            self.assets,
            self.asset_hits,
            self.session_hits,
            self.given.count()
        )
    }
}

/// What a page of DokuWiki is made of.
fn assets(page: &str) -> BTreeSet<String> {
    let text = page.replace("&amp;", "&");
    let scripts = ["css", "js", "jquery", "fetch"].map(|name| format!("/lib/exe/{name}.php?"));
    let is_asset = |part: &&str| {
        part.starts_with("/lib/tpl/")
            || part.starts_with("/lib/images/")
            || scripts.iter().any(|script| part.starts_with(script.as_str()))
    };
    text.split(['"', '\'']).filter(is_asset).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assets_are_found_but_for_what_does_chores() {
        let page = r#"<link href="/lib/exe/css.php?t=dokuwiki&amp;tseed=1"/><img src="/lib/exe/taskrunner.php?id=start"/>
            <script src='/lib/exe/js.php?tseed=1'></script><a href="/doku.php?id=start">"#;
        let found: Vec<String> = assets(page).into_iter().collect();
        assert_eq!(found, ["/lib/exe/css.php?t=dokuwiki&tseed=1", "/lib/exe/js.php?tseed=1"]);
    }
}
