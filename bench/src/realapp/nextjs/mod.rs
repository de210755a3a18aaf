//! Next.js in production: pages of both routers, data of the app router, assets, pictures, persons and drafts.
//!
//! In: the stage. Out: tables of what was a hit. The run fails where a client is sent a coding that it does not take,
//! data in place of a page, a page made for another, or a draft. It also fails where an asset is fetched twice, and
//! where a page dies with Next.js. See tests/realapp/nextjs/README.md.

mod next;

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::codings::Taker;
use super::fetch::{Answer, Client};
use super::node;
use super::random::Random;
use super::stage::Stage;
use super::tally::Tally;
use next::Next;

pub(super) const PACKAGES: &[&str] = &[];

const READERS: usize = 800;
const NAVIGATIONS: usize = 400;
const VISITS: usize = 400;
/// How long a page with a lifetime of a second may take to be seen anew.
const RENEWED_MAX: Duration = Duration::from_secs(20);
const HTML: &str = "text/html; charset=utf-8";

/// Runs it all.
pub(super) fn run(stage: &Stage<'_>) -> Result<String> {
    let folder = node::application(stage, "nextjs")?;
    next::build(&folder)?;
    let next = Next::start(&folder)?;
    let config = stage.example("nextjs.toml", "http://127.0.0.1:3000", next.address)?;
    let mut random = Random::of_this_run();
    println!("LARDER_SEED={}", random.seed());

    let mut larder = stage.larder(&config)?;
    let site = Site { direct: Client { host: larder.public, ..next.client() }, through: larder.client() };
    site.fields(&folder)?;
    site.readers(&mut random, &next::assets(&site.direct)?, &next::build_id(&folder)?)?;
    site.navigations(&mut random)?;
    site.persons(&mut random)?;
    site.drafts(&mut random)?;
    site.pictures(&mut random)?;
    site.published()?;
    larder.still_runs()?;
    drop(next);
    site.without_origin()?;
    larder.still_runs()?;
    Ok(format!("next {}, react {}", node::version(&folder, "next")?, node::version(&folder, "react")?))
}

/// The application, by itself and through larder.
struct Site {
    direct: Client,
    through: Client,
}

impl Site {
    /// What Next.js says of each kind of response, and what larder makes of it.
    fn fields(&self, folder: &std::path::Path) -> Result<()> {
        let asset = next::assets(&self.direct)?.into_iter().next().context("no assets")?;
        let data = format!("/_next/data/{}/classic.json", next::build_id(folder)?);
        let targets = [
            "/",
            "/news",
            "/classic",
            &data,
            "/account",
            "/person",
            "/api/hello",
            "/photo.png",
            &asset,
            PICTURE,
            "/missing",
        ];
        println!(
            "\n| asked | Cache-Control | Vary | the same ETag for all codings | Cache-Status, the second time |"
        );
        println!("|---|---|---|---|---|");
        for target in targets {
            let (plain, coded) =
                (self.direct.get(target)?, self.direct.ask_with(target, "Accept-Encoding: gzip")?);
            self.through.get(target)?;
            let again = self.through.get(target)?;
            let said = |name| plain.field(name).unwrap_or("–").to_owned();
            let tag = match (plain.field("etag"), coded.field("etag"), coded.content_encoding.as_str()) {
                (None, ..) => "no ETag".to_owned(),
                (Some(tag), ..) if tag.starts_with("W/") => "weak".to_owned(),
                (_, _, "") => "one coding".to_owned(),
                (plain, coded, _) => if plain == coded { "yes" } else { "no" }.to_owned(),
            };
            println!(
                "| {target} | {} | {} | {tag} | {} |",
                said("cache-control"),
                said("vary"),
                again.cache_status
            );
        }
        println!();
        Ok(())
    }

    /// Readers of every kind, some of whom reload.
    fn readers(&self, random: &mut Random, assets: &[String], build: &str) -> Result<()> {
        let data = format!("/_next/data/{build}/classic.json");
        let pages = ["/", "/news", "/time", "/classic", &data];
        let plain: Vec<Answer> = pages.iter().map(|page| self.direct.get(page)).collect::<Result<_>>()?;
        let own: Vec<Answer> = assets.iter().map(|asset| self.direct.get(asset)).collect::<Result<_>>()?;
        let mut tally = Tally::default();
        for _ in 0..READERS {
            let taker = Taker::any(random);
            let arguments: &[&str] = match random.below(8) {
                0 => &["-H", "Cache-Control: no-cache"],
                1 => &["-H", "Cache-Control: max-age=0"],
                _ => &[],
            };
            if random.below(3) == 0 {
                let chosen = random.below(assets.len());
                let asset = assets.get(chosen).context("an asset")?;
                let answer = taker.get(&self.through, asset, arguments)?;
                ensure!(answer.status == 200, "{asset}: {}", answer.status);
                ensure!(own.get(chosen).is_some_and(|own| own.body == answer.body), "{asset} is another");
                tally.count("`/_next/static/`", &answer);
                continue;
            }
            let chosen = random.below(pages.len());
            let page = pages.get(chosen).context("a page")?;
            let answer = taker.get(&self.through, page, arguments)?;
            let own = plain.get(chosen).context("a page")?;
            ensure!(answer.status == 200, "{page}: {}", answer.status);
            ensure!(answer.content_type == own.content_type, "{page}: {}", answer.content_type);
            // Next.js makes the others anew each second, and not byte for byte the same.
            let is_lasting = *page == "/" || *page == data;
            ensure!(
                if is_lasting { answer.body == own.body } else { is_page(&answer.text()) },
                "{page}: the client `{}` was sent another body: {}",
                taker.name,
                answer.cache_status
            );
            tally.count(if *page == data { "`/_next/data/`" } else { page }, &answer);
        }
        tally.print();
        let shared = tally.of("`/_next/static/`");
        // A quarter of the readers reloads, which larder takes for a wish to validate.
        ensure!(shared.hits * 2 > shared.requests, "too few assets were hits");
        let stable = tally.of("/news");
        ensure!(stable.coded > 0 && stable.coded < stable.requests, "all /news had one coding");
        ensure!(tally.of("/").confirmed > 0, "no page was ever confirmed");
        Ok(())
    }

    /// Pages, and the data that the app router asks for in their place, under the same URLs.
    fn navigations(&self, random: &mut Random) -> Result<()> {
        const TREE: &str =
            "Next-Router-State-Tree: %5B%22%22%2C%7B%22children%22%3A%5B%22__PAGE__%22%2C%7B%7D%5D%7D%5D";
        let kinds: [(&str, &[&str]); 4] = [
            ("page", &[]),
            ("data", &["-H", "RSC: 1"]),
            ("data, by a tree", &["-H", "RSC: 1", "-H", TREE]),
            ("data, ahead", &["-H", "RSC: 1", "-H", "Next-Router-Prefetch: 1"]),
        ];
        // Data has a URL of its own for each set of these fields, to which Next.js redirects requests for another.
        let mut targets: Vec<String> = ["/", "/news", "/account"].map(str::to_owned).to_vec();
        for (_, arguments) in kinds {
            for page in ["/", "/news", "/account"] {
                let own = self.direct.curl(page, arguments)?;
                ensure!(own.location.is_empty() || own.location.starts_with(page), "{}", own.location);
                targets.extend((!own.location.is_empty()).then_some(own.location));
            }
        }
        targets.sort_unstable();
        targets.dedup();
        let mut tally = Tally::default();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..NAVIGATIONS {
            let taker = Taker::any(random);
            let (kind, arguments) = kinds.get(random.below(kinds.len())).context("a kind")?;
            let target = targets.get(random.below(targets.len())).context("a target")?;
            let own = self.direct.curl(target, arguments)?;
            let answer = taker.get(&self.through, target, arguments)?;
            ensure!(answer.status == own.status, "{target} as {kind}: {}", answer.status);
            ensure!(
                answer.content_type == own.content_type && answer.location == own.location,
                "{target} as {kind}: {} in place of {}: {}",
                answer.content_type,
                own.content_type,
                answer.cache_status
            );
            seen.insert(answer.content_type.clone());
            ensure!(
                is_page(&answer.text()) == (own.content_type == HTML),
                "{target} as {kind}: a body of another kind: {}",
                answer.cache_status
            );
            let path = target.split('?').next().unwrap_or_default();
            let what = answer.content_type.split(';').next().unwrap_or_default();
            tally.count(&format!("{path}, {kind}: {} {what}", answer.status), &answer);
        }
        tally.print();
        ensure!(seen.contains(HTML) && seen.len() > 1, "only one type was seen: {seen:?}");
        Ok(())
    }

    /// Victoria, a visitor with another cookie, and one without.
    fn persons(&self, random: &mut Random) -> Result<()> {
        let welcome = self.through.post("/api/login/victoria", &[("password", "of hers".to_owned())])?;
        let cookie = welcome.set_cookies.first().context("no cookie")?;
        ensure!(cookie.starts_with("user=victoria;"), "{cookie}");
        let visitors: [(&str, &[&str]); 3] = [
            ("victoria", &["-H", "Cookie: user=victoria"]),
            ("walter", &["-H", "Cookie: user=walter; _ga=1.2.3"]),
            ("nobody", &[]),
        ];
        let mut tally = Tally::default();
        for _ in 0..VISITS {
            let taker = Taker::any(random);
            let (user, arguments) = visitors.get(random.below(visitors.len())).context("a visitor")?;
            let targets = ["/account", "/person", "/api/hello", "/", "/news"];
            let target = targets.get(random.below(targets.len())).context("a target")?;
            let answer = taker.get(&self.through, target, arguments)?;
            ensure!(answer.status == 200, "{target}: {}", answer.status);
            let text = answer.text();
            let named: Vec<&str> =
                ["victoria", "walter", "nobody"].into_iter().filter(|name| text.contains(name)).collect();
            let wanted: &[&str] = if target.len() > "/news".len() { &[user] } else { &[] };
            ensure!(named == wanted, "{target}: {user} was shown {named:?}: {}", answer.cache_status);
            tally.count(target, &answer);
        }
        tally.print();
        ensure!(tally.of("/account").hits + tally.of("/person").hits == 0, "a person's page was a hit");
        let shared = tally.of("/news");
        ensure!(shared.hits * 10 >= shared.requests * 9, "too few shared pages were hits");
        Ok(())
    }

    /// An editor sees the draft, nobody else does, and the editor's visits change nothing for others.
    fn drafts(&self, random: &mut Random) -> Result<()> {
        let on = self.through.get("/api/draft")?;
        let cookie = on.set_cookies.iter().find_map(|cookie| {
            cookie.starts_with("__prerender_bypass=").then(|| cookie.split(';').next().unwrap_or_default())
        });
        let cookie = format!("Cookie: {}", cookie.context("no draft cookie")?);
        let editor: &[&str] = &["-H", &cookie];
        let mut tally = Tally::default();
        for _ in 0..VISITS / 2 {
            let is_editor = random.below(2) == 0;
            let taker = Taker::any(random);
            let answer = taker.get(&self.through, "/news", if is_editor { editor } else { &[] })?;
            let text = answer.text();
            let shown = (text.contains("Draft for editors alone"), text.contains("News for all"));
            ensure!(shown == (is_editor, !is_editor), "/news, editor: {is_editor}: {}", answer.cache_status);
            tally.count(if is_editor { "/news in draft mode" } else { "/news" }, &answer);
        }
        tally.print();
        Ok(())
    }

    /// The optimiser gives each client a picture of a type that it takes.
    fn pictures(&self, random: &mut Random) -> Result<()> {
        let mut tally = Tally::default();
        for _ in 0..VISITS / 4 {
            let accepted = ["image/webp", "image/png", "*/*", "image/avif,image/webp,*/*;q=0.8"];
            let accepted = accepted.get(random.below(accepted.len())).context("a type")?;
            let field = format!("Accept: {accepted}");
            let own = self.direct.ask_with(PICTURE, &field)?;
            let answer = Taker::any(random).get(&self.through, PICTURE, &["-H", &field])?;
            ensure!(
                answer.status == 200 && answer.content_type == own.content_type,
                "{accepted}: {} {}: {}",
                answer.status,
                answer.content_type,
                answer.cache_status
            );
            ensure!(answer.body == own.body, "{accepted}: another picture");
            tally.count(&format!("{accepted}: {}", answer.content_type), &answer);
        }
        tally.print();
        Ok(())
    }

    /// A page that is fresh for a year is made anew after a change, because both name a cache group.
    fn published(&self) -> Result<()> {
        let before = self.through.get("/")?;
        let published = self.through.post("/api/publish", &[("what", "all".to_owned())])?;
        ensure!(published.text() == "published", "/api/publish: {}", published.status);
        let after = self.through.get("/")?;
        println!("/ before a change: {}", before.cache_status);
        println!("/ after it: {}", after.cache_status);
        ensure!(before.is_hit() && !after.is_hit(), "the change did not reach the page");
        // A page that is made anew each second is seen anew.
        let (first, deadline) = (self.through.get("/time")?, std::time::Instant::now() + RENEWED_MAX);
        while self.through.get("/time")?.body == first.body {
            if std::time::Instant::now() > deadline {
                bail!("/time stays as it is");
            }
            harness::children::pause();
        }
        Ok(())
    }

    /// Next.js is gone: what it gave for all goes on.
    fn without_origin(&self) -> Result<()> {
        for target in ["/", "/news", "/account"] {
            let answer = self.through.get(target)?;
            println!("Next.js stopped: {target}: {} {}", answer.status, answer.cache_status);
            ensure!((answer.status == 200) == (target != "/account"), "{target}: {}", answer.status);
        }
        Ok(())
    }
}

/// Whether it is a page, and all of it.
fn is_page(text: &str) -> bool {
    text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>")
}

const PICTURE: &str = "/_next/image?url=%2Fphoto.png&w=384&q=75";
