//! Random steps over both proxies, and the judgement of each pair of answers.
//!
//! In: a [`System`] and a source of choices. Out: an error at the first answer that is not as it has to be, or counts. A page shows how often each
//! of its records was changed, so an older one is seen by its text. Whether larder has been told of a change is seen by asking it, for a bounded
//! time; once it has answered with the change, an older page is an error for good.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::super::fetch::{Answer, Client};
use super::super::random::Random;
use super::system::{FILE, System};

const HASH: &str = "resource_versions";
const RECORDS: usize = 8;
const PAGES: [&str; 3 + RECORDS] = [
    "/",
    "/foos",
    "/foos?page=2",
    "/foo/1",
    "/foo/2",
    "/foo/3",
    "/foo/4",
    "/foo/5",
    "/foo/6",
    "/foo/7",
    "/foo/8",
];
/// A file, a page that is never looked for in Redis, and one that the application does not have.
const OTHERS: [&str; 3] = [FILE, "/account", "/foo/99"];
/// Longest time until larder knows of a change, by the guide's own figure for a connection that was cut.
const TOLD_MAX: Duration = Duration::from_secs(2);
/// After a time without Redis larder tries again at least this often, with a little for the machine.
const BACK_MAX: Duration = Duration::from_secs(45);

/// What was done, and what came of it.
#[derive(Default)]
struct Counts {
    reads: usize,
    nginx_from_redis: usize,
    larder_hits: usize,
    both_unavailable: usize,
    only_larder: usize,
    changes: usize,
    while_down: usize,
    behind: usize,
    longest_behind: Duration,
    bodies: usize,
    fields: usize,
    hashes: usize,
    downs: usize,
}

/// A walk of random steps.
pub(super) struct Walk<'a> {
    system: System,
    random: &'a mut Random,
    /// How often each record was changed; the first has number 1.
    changes: [u64; RECORDS + 1],
    /// Pages of which Redis has lost the body or the version, and which have not come back since.
    lost: BTreeSet<&'static str>,
    counts: Counts,
}

impl<'a> Walk<'a> {
    pub(super) fn new(system: System, random: &'a mut Random) -> Self {
        Self { system, random, changes: [0; RECORDS + 1], lost: BTreeSet::new(), counts: Counts::default() }
    }

    /// One step. Reads are most of them.
    pub(super) fn step(&mut self) -> Result<()> {
        let page = PAGES[self.random.below(PAGES.len())];
        match self.random.below(100) {
            0..50 => self.read(page, false),
            50..55 => self.read(page, true),
            55..60 => self.other(),
            60..78 => self.change(),
            78..88 => self.lose_body(page),
            88..91 => self.lose_field(page),
            91 => self.lose_hash(),
            // It is up for most of the time.
            _ if !self.system.is_up() || self.random.below(4) == 0 => self.turn_site(),
            _ => self.read(page, false),
        }
    }

    /// One page through both, in any order.
    fn read(&mut self, target: &'static str, head: bool) -> Result<()> {
        let arguments: &[&str] = if head { &["--head"] } else { &[] };
        let (theirs, ours) = self.both(target, arguments)?;
        self.judge(target, head, &theirs, &ours).with_context(|| {
            format!(
                "{target}: nginx {} {:?}, larder {}",
                theirs.status,
                theirs.field("x-from"),
                ours.cache_status
            )
        })
    }

    fn both(&mut self, target: &str, arguments: &[&str]) -> Result<(Answer, Answer)> {
        let nginx_first = self.random.below(2) == 0;
        let early = if nginx_first { Some(self.system.nginx.curl(target, arguments)?) } else { None };
        let ours = self.system.larder.client().curl(target, arguments)?;
        let theirs = match early {
            Some(theirs) => theirs,
            None => self.system.nginx.curl(target, arguments)?,
        };
        Ok((theirs, ours))
    }

    fn judge(&mut self, target: &'static str, head: bool, theirs: &Answer, ours: &Answer) -> Result<()> {
        self.counts.reads += 1;
        self.counts.nginx_from_redis += usize::from(theirs.field("x-from").is_some());
        self.counts.larder_hits += usize::from(ours.is_hit());
        match (theirs.status, ours.status) {
            (200, 200) => {
                let difference = theirs.difference(ours, &[]);
                ensure!(difference.is_none(), "{}", difference.unwrap_or_default());
                let length = |of: &Answer| of.field("content-length").map(str::to_owned);
                ensure!(length(theirs) == length(ours), "{:?}, not {:?}", length(ours), length(theirs));
                ensure!(head || self.is_current(target, ours)?, "both are older than the last change");
                self.lost.remove(target);
            }
            (502, 502) if !self.system.is_up() => self.counts.both_unavailable += 1,
            // Redis has lost what larder still has a copy of, and there is no application to make it anew.
            (502, 200) if !self.system.is_up() && self.lost.contains(target) => {
                ensure!(head || self.is_current(target, ours)?, "larder's is older than the last change");
                self.counts.only_larder += 1;
            }
            (theirs, ours) => bail!("status {ours}, not {theirs}, application up: {}", self.system.is_up()),
        }
        Ok(())
    }

    /// Whether a page shows every record as it was last committed. A page that shows one newer than that does not exist.
    fn is_current(&self, target: &str, answer: &Answer) -> Result<bool> {
        let text = answer.text();
        let mut current = true;
        for record in shown_on(target) {
            let start = format!("<p>record {record}, change ");
            let (_, rest) =
                text.split_once(&start).with_context(|| format!("{target} lacks record {record}"))?;
            let shown: u64 = rest.split('<').next().unwrap_or_default().parse()?;
            ensure!(shown <= self.changes[record], "{target}: record {record} is newer than it can be");
            current &= shown == self.changes[record];
        }
        Ok(current)
    }

    /// What does not lie in Redis.
    fn other(&mut self) -> Result<()> {
        let target = OTHERS[self.random.below(OTHERS.len())];
        let (theirs, ours) = self.both(target, &[])?;
        let expected = match target {
            FILE => 200,
            _ if !self.system.is_up() => 502,
            "/account" => 200,
            _ => 404,
        };
        ensure!(theirs.status == expected, "{target}: nginx answers {}", theirs.status);
        ensure!(ours.status == expected, "{target}: larder answers {}", ours.status);
        // Each has a page of its own for an application that is down.
        ensure!(expected == 502 || theirs.body == ours.body, "{target}: other bodies");
        Ok(())
    }

    /// One record is changed, which makes two pages new, be the site up or not.
    fn change(&mut self) -> Result<()> {
        let record = 1 + self.random.below(RECORDS);
        let count = self.system.change(record)?;
        self.changes[record] += 1;
        ensure!(count == self.changes[record], "record {record} was changed {count} times");
        self.counts.changes += 1;
        self.counts.while_down += usize::from(!self.system.is_up());
        let nginx_first = self.random.below(2) == 0;
        for target in PAGES.into_iter().filter(|target| shown_on(target).contains(&record)) {
            self.lost.remove(target);
            if nginx_first {
                let theirs = self.system.nginx.get(target)?;
                ensure!(self.is_current_or_down(target, &theirs)?, "{target}: nginx has an older page");
            }
            self.until_told(target, |walk, answer| walk.is_current_or_down(target, answer))?;
        }
        Ok(())
    }

    fn is_current_or_down(&self, target: &str, answer: &Answer) -> Result<bool> {
        match answer.status {
            200 => self.is_current(target, answer),
            502 if !self.system.is_up() => Ok(true),
            other => bail!("{target} was answered {other}"),
        }
    }

    /// Asks larder until its answer shows that it has been told.
    fn until_told(&mut self, target: &str, told: impl Fn(&Self, &Answer) -> Result<bool>) -> Result<()> {
        let (client, begun) = (self.system.larder.client(), Instant::now());
        loop {
            let answer = client.get(target)?;
            if told(self, &answer)? {
                return Ok(());
            }
            self.counts.behind += 1;
            self.counts.longest_behind = self.counts.longest_behind.max(begun.elapsed());
            let status = &answer.cache_status;
            ensure!(begun.elapsed() < TOLD_MAX, "{target}: larder was not told in {TOLD_MAX:?}: {status}");
        }
    }

    /// Redis evicts the body of a page.
    fn lose_body(&mut self, target: &'static str) -> Result<()> {
        let version = self.system.ask(&["HGET", HASH, target])?;
        self.system.ask(&["DEL", &self.system.key(target, &version)])?;
        self.lost.insert(target);
        self.counts.bodies += 1;
        Ok(())
    }

    /// The version of a page is lost, and begins again at numbers that it had before.
    fn lose_field(&mut self, target: &'static str) -> Result<()> {
        self.system.ask(&["HDEL", HASH, target])?;
        self.lost.insert(target);
        self.counts.fields += 1;
        Ok(())
    }

    /// All versions are lost, and the bodies are not.
    fn lose_hash(&mut self) -> Result<()> {
        self.system.ask(&["DEL", HASH])?;
        self.lost.extend(PAGES);
        self.counts.hashes += 1;
        Ok(())
    }

    fn turn_site(&mut self) -> Result<()> {
        self.counts.downs += usize::from(self.system.is_up());
        self.system.turn_site()
    }

    /// Redis ends with all that it has. The application answers through both, and with an empty Redis all is as before.
    pub(super) fn without_redis(&mut self) -> Result<()> {
        if !self.system.is_up() {
            self.system.turn_site()?;
        }
        for target in PAGES {
            self.read(target, false)?;
        }
        self.system.turn_redis()?;
        for target in PAGES {
            self.read(target, false)?;
            let theirs = self.system.nginx.get(target)?;
            ensure!(
                theirs.field("x-from").is_none(),
                "{target}: nginx has it from a Redis that is not there"
            );
        }
        self.system.turn_redis()?;
        let client = self.system.larder.client();
        for target in PAGES {
            let begun = Instant::now();
            while !self.is_from_redis(&client, target)? {
                ensure!(begun.elapsed() < BACK_MAX, "{target}: no hit with Redis back for {BACK_MAX:?}");
            }
            self.read(target, false)?;
        }
        for record in 1..=RECORDS {
            let count = self.system.change(record)?;
            self.changes[record] += 1;
            ensure!(count == self.changes[record], "record {record} was changed {count} times");
        }
        for target in PAGES {
            self.until_told(target, |walk, answer| walk.is_current_or_down(target, answer))?;
            self.read(target, false)?;
        }
        Ok(())
    }

    fn is_from_redis(&self, client: &Client, target: &str) -> Result<bool> {
        let answer = client.get(target)?;
        ensure!(
            answer.status == 200 && self.is_current(target, &answer)?,
            "{target}: {}",
            answer.cache_status
        );
        Ok(answer.is_hit())
    }

    /// What was done, as a table.
    pub(super) fn end(mut self) -> Result<String> {
        self.system.larder.still_runs()?;
        let Counts { reads, nginx_from_redis, larder_hits, both_unavailable, only_larder, .. } = self.counts;
        let Counts { changes, while_down, behind, longest_behind, bodies, fields, hashes, downs, .. } =
            self.counts;
        ensure!(larder_hits * 2 > reads, "{larder_hits} hits of {reads} reads: larder hardly used Redis");
        let mut table = String::from("| | |\n|---|---|\n");
        let mut row = |what: &str, count: String| writeln!(table, "| {what} | {count} |");
        row("pages read through both, answers the same", (reads - only_larder).to_string())?;
        row("of them from Redis in nginx", nginx_from_redis.to_string())?;
        row("hits in larder", larder_hits.to_string())?;
        row("502 through both, the application down", both_unavailable.to_string())?;
        row(
            "502 in nginx, the current page in larder: Redis had lost it, the application was down",
            only_larder.to_string(),
        )?;
        row("changes, each of two pages (with the site down)", format!("{changes} ({while_down})"))?;
        let behind = format!("{behind} (longest {} ms)", longest_behind.as_millis());
        row("answers of larder before it was told of a change", behind)?;
        row("lost: bodies, fields, the whole hash", format!("{bodies}, {fields}, {hashes}"))?;
        row("times the application was down", downs.to_string())?;
        Ok(table)
    }
}

/// The records on a page.
fn shown_on(target: &str) -> Vec<usize> {
    match target {
        "/foos" => (1..=4).collect(),
        "/foos?page=2" => (5..=RECORDS).collect(),
        _ => target.strip_prefix("/foo/").and_then(|record| record.parse().ok()).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_on_two_pages() {
        for record in 1..=RECORDS {
            let pages: Vec<&str> =
                PAGES.into_iter().filter(|page| shown_on(page).contains(&record)).collect();
            assert_eq!(pages.len(), 2, "{pages:?}");
        }
        assert!(shown_on("/").is_empty());
    }
}
