//! Clients that differ in the content codings that they take, and whether one was sent another.
//!
//! In: a client and a target. Out: the answer, its body decoded by curl, and what is wrong with its coding. A coding that a
//! client did not ask for is what a browser shows as rubbish, and curl without `--compressed` writes as it is.

use anyhow::{Result, bail};

use super::fetch::{Answer, Client};
use super::random::Random;

/// A kind of client.
pub(super) struct Taker {
    pub(super) name: &'static str,
    accept_encoding: Option<&'static str>,
    takes: &'static [&'static str],
}

/// Browsers, programs, and those that take nothing, each in its own way.
pub(super) const TAKERS: [Taker; 8] = [
    taker("browser", Some("gzip, deflate, br, zstd"), &["gzip", "deflate", "br", "zstd"]),
    taker("gzip", Some("gzip"), &["gzip"]),
    taker("npm", Some("gzip,deflate"), &["gzip", "deflate"]),
    taker("br", Some("br"), &["br"]),
    taker("br first", Some("br;q=1.0, gzip;q=0.5"), &["br", "gzip"]),
    taker("identity", Some("identity"), &[]),
    taker("no gzip", Some("gzip;q=0"), &[]),
    taker("nothing", None, &[]),
];

const fn taker(
    name: &'static str,
    accept_encoding: Option<&'static str>,
    takes: &'static [&'static str],
) -> Taker {
    Taker { name, accept_encoding, takes }
}

impl Taker {
    pub(super) fn any(random: &mut Random) -> &'static Self {
        TAKERS.get(random.below(TAKERS.len())).unwrap_or(&TAKERS[0])
    }

    /// Asks with `arguments` of curl beside its own; the body comes decoded.
    pub(super) fn ask(&self, client: &Client, target: &str, arguments: &[&str]) -> Result<Answer> {
        let line = self.accept_encoding.map(|codings| format!("Accept-Encoding: {codings}"));
        let mut all = arguments.to_vec();
        if let Some(line) = &line {
            all.extend(["-H", line]);
        }
        if !self.takes.is_empty() {
            all.push("--compressed");
        }
        client.curl(target, &all)
    }

    /// Whether the answer has a coding that this client takes, or none.
    pub(super) fn takes(&self, answer: &Answer) -> bool {
        answer.content_encoding.is_empty() || self.takes.contains(&answer.content_encoding.as_str())
    }

    /// As [`Taker::ask`], and fails at a coding that it does not take.
    pub(super) fn get(&self, client: &Client, target: &str, arguments: &[&str]) -> Result<Answer> {
        let answer = self.ask(client, target, arguments)?;
        if !self.takes(&answer) {
            let (name, coding, said) = (self.name, &answer.content_encoding, &answer.cache_status);
            bail!("{target}: the client `{name}` was sent {coding}: {said}");
        }
        Ok(answer)
    }
}
