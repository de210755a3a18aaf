//! Visitors of every kind through larder at once, and whether anything of one reaches another.
//!
//! In: a site, and larder with the example config before it. Out: what `Cache-Status` said to whom. All the while
//! anonymous visitors read the same pages and look for what is not theirs: the admin bar, a comment that nobody has
//! approved, its author's name and address, the text behind a password. One such find fails the run, and so does a
//! page of one's own that was kept or shared, an anonymous reader who is no longer answered from the cache, or a
//! comment that its author does not see.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::pause;
use super::site::{ADMIN, AUTHOR, Site};
use super::visitor::{Answer, Visitor};
use crate::measure::contender::Contender;

pub(super) const DISCUSSED: &str = "/the-discussed-shelf/";
pub(super) const LOCKED: &str = "/the-locked-shelf/";
const COLD: &str = "/shelf-number-3/";
const CROWD_COLD: &str = "/shelf-number-4/";
const FILE: &str = "/wp-includes/css/dashicons.min.css";
/// What anonymous visitors read all the time, and who is logged in between.
const READ: &[&str] = &["/", DISCUSSED, LOCKED, "/shelf-number-1/", "/feed/", "/comments/feed/"];
/// Never kept and never answered from what is kept, whoever asks.
const WORKSHOP: &[&str] =
    &["/wp-login.php", "/wp-admin/", "/wp-admin/profile.php", "/wp-admin/admin-ajax.php", "/xmlrpc.php"];

/// What a leak is called.
const NOT_FOR_ALL: &str = "what is not for all";
const ANOTHERS: &str = "somebody else's page";
const SHARED: &str = "a page of one's own was kept or shared";

pub(super) const BEHIND_THE_LOCK: &str = "What lies behind the lock.";
const ADMIN_BAR: &str = "id=\"wpadminbar\"";
const WATCHERS: u8 = 2;
const CROWD: usize = 5;

/// What was seen, none of it wrong.
pub(super) struct Safety {
    pub(super) ttl: &'static str,
    /// Who asked for what, and `Cache-Status`.
    pub(super) seen: Vec<(String, String)>,
    pub(super) anonymous: u64,
    pub(super) anonymous_hits: u64,
    /// Until an anonymous visitor saw a writer's edit, where that is a matter of the lifetime.
    pub(super) edit_shown_after: Option<Duration>,
}

/// One round on a site, and what was seen in it.
pub(super) struct Round<'a> {
    work: &'a Path,
    larder: &'a Contender,
    pub(super) number: u8,
    seen: Vec<(String, String)>,
}

/// Tries everything once. `number` tells rounds on one site apart: 1, 2, ...
pub(super) fn run(
    site: &Site,
    larder: &Contender,
    work: &Path,
    number: u8,
    ttl: &'static str,
) -> Result<Safety> {
    let mut round = Round { work, larder, number, seen: Vec::new() };
    let private = [
        ADMIN_BAR.to_owned(),
        "logged-in".to_owned(),
        round.pending(),
        round.undecided(),
        "Carla Commenter".to_owned(),
        "carla-".to_owned(),
        BEHIND_THE_LOCK.to_owned(),
    ];
    let (over, asked, hits) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let mut edit_shown_after = None;
    std::thread::scope(|scope| -> Result<()> {
        let watchers: Vec<_> = (0..WATCHERS)
            .map(|one| {
                let watcher = round.visitor(&format!("watcher-{one}"), one);
                let (over, asked, hits, private) = (&over, &asked, &hits, &private);
                scope.spawn(move || watch(&watcher, private, over, asked, hits))
            })
            .collect();
        let tried = round.all(&private).and_then(|()| {
            edit_shown_after = (ttl == "1s").then(|| round.edit()).transpose()?;
            Ok(())
        });
        over.store(true, Ordering::Relaxed);
        for watcher in watchers {
            watcher.join().unwrap_or_else(|_| bail!("a watcher panicked"))?;
        }
        tried
    })
    .with_context(|| format!("with ttl = \"{ttl}\""))?;
    let (asked, hits) = (asked.into_inner(), hits.into_inner());
    ensure!(hits * 2 > asked, "only {hits} of {asked} anonymous requests were hits");
    ensure!(
        site.asked("POST /wp-comments-post.php")? >= 3 * usize::from(number),
        "comments did not reach WordPress"
    );
    Ok(Safety { ttl, seen: round.seen, anonymous: asked, anonymous_hits: hits, edit_shown_after })
}

/// Reads until it is over; fails at the first thing that is not for everybody.
fn watch(
    visitor: &Visitor,
    private: &[String],
    over: &AtomicBool,
    asked: &AtomicU64,
    hits: &AtomicU64,
) -> Result<()> {
    while !over.load(Ordering::Relaxed) {
        for target in READ {
            let answer = visitor.look_at(target)?;
            nothing_private(&answer, private).with_context(|| format!("an anonymous visitor of {target}"))?;
            asked.fetch_add(1, Ordering::Relaxed);
            hits.fetch_add(u64::from(answer.is_hit()), Ordering::Relaxed);
        }
    }
    Ok(())
}

fn nothing_private(answer: &Answer, private: &[String]) -> Result<()> {
    ensure!(answer.status == 200, "status {}", answer.status);
    let found = private.iter().find(|text| answer.says(text));
    ensure!(
        found.is_none(),
        "was sent {NOT_FOR_ALL}: `{}` ({})",
        found.map_or("", |f| f),
        answer.cache_status
    );
    Ok(())
}

impl Round<'_> {
    /// Somebody new, with an address of their own: WordPress takes one comment per address and quarter of a minute.
    pub(super) fn visitor(&self, name: &str, place: u8) -> Visitor {
        let name = format!("{name}-{}", self.number);
        Visitor::new(self.larder.address, self.work, &name, 20 * self.number + place)
    }

    pub(super) fn pending(&self) -> String {
        format!("Words of round {} that nobody has approved.", self.number)
    }

    pub(super) fn undecided(&self) -> String {
        format!("Words of round {} by somebody without cookies.", self.number)
    }

    pub(super) fn note(&mut self, what: &str, answer: &Answer) {
        self.seen.push((what.to_owned(), answer.cache_status.clone()));
    }

    fn all(&mut self, private: &[String]) -> Result<()> {
        let anonymous = self.visitor("anonymous", 10);
        let everybody = |target: &str| -> Result<Answer> {
            let answer = anonymous.look_at(target)?;
            nothing_private(&answer, private).with_context(|| format!("an anonymous visitor of {target}"))?;
            Ok(answer)
        };
        let admin = self.log_in("admin", 11, ADMIN)?;
        let author = self.log_in("author", 12, AUTHOR)?;
        self.logged_in(&admin, &author, &everybody)?;
        self.workshop(&admin, &anonymous)?;
        self.crowd(&admin, &author, &anonymous, private)?;
        self.comment_that_waits(&everybody)?;
        self.comment_without_cookies(&everybody)?;
        self.comment_that_shows(&everybody)?;
        self.password(&everybody)?;
        self.log_out(&author, private)
    }

    pub(super) fn log_in(&mut self, name: &str, place: u8, who: (&str, &str)) -> Result<Visitor> {
        let visitor = self.visitor(name, place);
        // The first view sets the cookie by which WordPress sees that cookies work.
        visitor.get("/wp-login.php")?;
        let form = [("log", who.0), ("pwd", who.1), ("testcookie", "1"), ("redirect_to", "/wp-admin/")];
        let answer = visitor.post("/wp-login.php", &form)?;
        ensure!(answer.status == 302, "the login as {name} was answered {}", answer.status);
        ensure!(visitor.has_cookie("wordpress_logged_in_"), "no cookie says that {name} is logged in");
        self.note(&format!("the {name} logs in"), &answer);
        Ok(visitor)
    }

    /// Pages of those who are logged in are theirs, also where nobody else has asked yet.
    fn logged_in(
        &mut self,
        admin: &Visitor,
        author: &Visitor,
        everybody: &dyn Fn(&str) -> Result<Answer>,
    ) -> Result<()> {
        for target in READ.iter().copied().filter(|t| !t.contains("feed")).chain([COLD]) {
            for (visitor, name) in [(admin, ADMIN.0), (author, "Annabel Author"), (admin, ADMIN.0)] {
                let answer = visitor.look_at(target)?;
                ensure!(
                    answer.says(ADMIN_BAR)
                        && answer.says(&format!("Howdy, <span class=\"display-name\">{name}</span>")),
                    "{target}: {name} sees {ANOTHERS}"
                );
                own(&answer).with_context(|| format!("{name} at {target}"))?;
                everybody(target)?;
            }
        }
        let answer = admin.look_at("/")?;
        self.note("the front page, by the admin", &answer);
        let first = everybody("/shelf-number-2/")?;
        let second = everybody("/shelf-number-2/")?;
        ensure!(second.is_hit(), "an anonymous visitor's second view: {}", second.cache_status);
        self.note("a post, by an anonymous visitor", &first);
        self.note("the same again", &second);
        everybody(FILE)?;
        let file = everybody(FILE)?;
        let (_, left) = file.cache_status.split_once("ttl=").context("a file is not stored")?;
        ensure!(
            file.is_hit() && left.parse().is_ok_and(|left: u32| left > 3000),
            "a file: {}",
            file.cache_status
        );
        self.note("a style sheet, by an anonymous visitor", &file);
        Ok(())
    }

    fn workshop(&mut self, admin: &Visitor, anonymous: &Visitor) -> Result<()> {
        for target in WORKSHOP {
            for visitor in [admin, anonymous, admin, anonymous] {
                let answer = visitor.look_at(target)?;
                let bypassed = ["larder; fwd=bypass", "larder; fwd=method"];
                ensure!(
                    bypassed.iter().any(|said| answer.cache_status.starts_with(said)),
                    "{target} met the cache: {}",
                    answer.cache_status
                );
                own(&answer).with_context(|| (*target).to_owned())?;
            }
        }
        let answer = admin.look_at("/wp-admin/profile.php")?;
        ensure!(answer.says("keeper@site.example"), "the admin's profile is not theirs");
        self.note("the admin's profile", &answer);
        let answer = anonymous.look_at("/wp-admin/profile.php")?;
        ensure!(answer.status == 302, "an anonymous visitor of the profile is answered {}", answer.status);
        self.note("the same, by an anonymous visitor", &answer);
        Ok(())
    }

    /// Everybody at once at a page that is not stored: nobody may join somebody else's fetch of their own page.
    fn crowd(
        &mut self,
        admin: &Visitor,
        author: &Visitor,
        anonymous: &Visitor,
        private: &[String],
    ) -> Result<()> {
        let kinds = [(admin, Some(ADMIN.0)), (anonymous, None), (author, Some("Annabel Author"))];
        let answers: Vec<_> = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..CROWD)
                .flat_map(|_| kinds)
                .map(|(visitor, name)| (name, scope.spawn(move || visitor.look_at(CROWD_COLD))))
                .collect();
            asking
                .into_iter()
                .map(|(name, one)| (name, one.join().unwrap_or_else(|_| bail!("a visitor panicked"))))
                .collect()
        });
        let mut led = Vec::new();
        for (name, answer) in answers {
            let answer = answer?;
            match name {
                Some(name) => {
                    own(&answer).with_context(|| format!("{name} in the crowd"))?;
                    ensure!(answer.says(name) && answer.says(ADMIN_BAR), "{name} sees {ANOTHERS}");
                }
                None => {
                    nothing_private(&answer, private).context("an anonymous visitor in the crowd")?;
                    if !answer.is_hit() && !answer.cache_status.contains("; collapsed") {
                        led.push(answer.cache_status);
                    }
                }
            }
        }
        ensure!(led.len() <= 1, "several anonymous visitors of one page asked WordPress for it: {led:?}");
        Ok(())
    }

    /// A session that has ended is nobody's, though the cookie may still be sent.
    fn log_out(&mut self, author: &Visitor, private: &[String]) -> Result<()> {
        let page = author.look_at("/")?;
        let mut links = page.body().split(['"', '\'']);
        let link = links.find(|part| part.contains("action=logout")).context("no way out")?;
        let answer = author.look_at(&link.replace("&amp;", "&").replace("&#038;", "&"))?;
        ensure!(answer.location.contains("loggedout=true"), "logging out was answered {}", answer.status);
        own(&answer)?;
        let answer = author.look_at("/")?;
        nothing_private(&answer, private).context("somebody who has logged out")?;
        own(&answer).context("a cookie of a session that has ended")
    }
}

/// Whether a round failed with a leak, and not because something was out of order.
pub(super) fn is_leak(failure: &str) -> bool {
    [NOT_FOR_ALL, ANOTHERS, SHARED].iter().any(|leak| failure.contains(leak))
}

pub(super) fn own(answer: &Answer) -> Result<()> {
    ensure!(answer.is_own(), "{SHARED}: {}", answer.cache_status);
    Ok(())
}

/// The database is gone: who reads what is stored does not notice, who is logged in is told.
pub(super) fn outage(site: &mut Site, larder: &Contender, work: &Path) -> Result<Vec<(String, String)>> {
    let mut round = Round { work, larder, number: 4, seen: Vec::new() };
    let admin = round.log_in("admin", 11, ADMIN)?;
    let anonymous = round.visitor("anonymous", 10);
    anonymous.look_at("/")?;
    site.stop_database();
    site.still_runs()?;
    // Until what is stored has to be fetched again.
    let start = Instant::now();
    let mut answer = anonymous.look_at("/")?;
    while !answer.cache_status.contains("stale-if-error") {
        ensure!(answer.status == 200, "without a database: {} {}", answer.status, answer.cache_status);
        ensure!(
            start.elapsed() < Duration::from_secs(30),
            "the database's end does not show: {}",
            answer.cache_status
        );
        pause();
        answer = anonymous.look_at("/")?;
    }
    ensure!(
        answer.status == 200 && answer.says(">Shelf number 1</a>"),
        "without a database: {}",
        answer.status
    );
    let own_page = admin.look_at("/")?;
    ensure!(own_page.status == 500, "the admin, without a database: {}", own_page.status);
    own(&own_page)?;
    Ok(vec![
        (format!("the front page without a database: {}", answer.status), answer.cache_status),
        (format!("the same, by the admin: {}", own_page.status), own_page.cache_status),
    ])
}
