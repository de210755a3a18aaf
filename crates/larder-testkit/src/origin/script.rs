//! What a scripted origin answers: the vocabulary of `[[origin]]` tables in scenario files.
//!
//! In: tables for each path. Out: for a request, the answer that is due. For each path there is a list of answers.
//! Those that name the request's method come before those that name none; among them the first whose conditions
//! (`when`) all hold; else the ones without conditions in order, the last one again and again.

use bytes::Bytes;
use serde::Deserialize;

use super::log::Seen;
use super::place::Pool;
use crate::{seeded, wire};

/// The answers for one path.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathScript {
    /// Which origin of the scenario; `origin` where none is named.
    #[serde(default = "default_origin")]
    pub name: String,
    /// Path and query as received; a last `*` stands for anything.
    pub path: String,
    /// Requests for it stand beside those of clients: health checks, whose number nobody can tell. They are counted apart
    /// and not recorded.
    #[serde(default)]
    pub aside: bool,
    /// The answers, in order.
    #[serde(default)]
    pub answer: Vec<Answer>,
}

fn default_origin() -> String {
    "origin".to_owned()
}

/// How the end of a body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BodyFraming {
    /// Content-Length.
    Length,
    /// Chunks, one per piece.
    Chunked,
    /// The end of the connection.
    UntilClose,
    /// Nothing is added and the connection stays open: the fields of the script say it, or lie.
    AsScripted,
}

/// One answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Answer {
    /// Only for this method.
    pub method: Option<String>,
    /// Only where all of these hold: `name` (present), `!name` (absent), `name: value` (a line of exactly that).
    pub when: Vec<String>,
    /// Wait before the first byte, in real time; for tests of time limits only.
    pub delay: Option<String>,
    /// The gate that must be released before the first byte of the final head.
    pub hold: Option<String>,
    /// Interim responses, sent before the gate; each may have one of its own.
    pub interim: Vec<Interim>,
    /// 200 where not given.
    pub status: Option<u16>,
    /// The usual one, or `Scripted`, where not given.
    pub reason: Option<String>,
    /// `1.1` or `1.0`.
    pub version: Option<String>,
    /// Lines of `Name: value`, sent in this order; placeholders are filled in.
    pub fields: Vec<String>,
    /// More field lines, for their number and size alone.
    pub filler: Option<Filler>,
    /// The body itself.
    pub body: Option<String>,
    /// A body of this many bytes, derived from `seed`.
    pub bytes: Option<u64>,
    /// Where the derived body begins; for parts.
    pub first: u64,
    /// The target as received where not given.
    pub seed: Option<String>,
    /// A body with placeholders.
    pub template: Option<String>,
    /// By length where not given; a body until the end of the connection under HTTP/1.0.
    pub framing: Option<BodyFraming>,
    /// Lines of `Name: value` behind the last chunk.
    pub trailers: Vec<String>,
    /// The most bytes in one piece (and chunk); 16 KiB where not given.
    pub piece_bytes: Option<u64>,
    /// Wait before each piece but the first, in real time; for tests of time limits only.
    pub pause: Option<String>,
    /// Gates before certain bytes of the body.
    pub holds: Vec<Hold>,
    /// Waits before certain bytes of the body, in real time; for tests of time limits and of segments only.
    pub pauses: Vec<Pause>,
    /// Answer 304 where If-None-Match or If-Modified-Since match the ETag or Last-Modified among `fields`.
    pub conditional: bool,
    /// Answer a single byte range with 206, Content-Range and a Content-Length in place of chunks, unless If-Range is
    /// another thing than the ETag among `fields`.
    pub ranges: bool,
    /// The body ends here with an orderly close of the connection.
    pub cut_at: Option<u64>,
    /// The body ends here with a reset.
    pub reset_at: Option<u64>,
    /// Sent after the message.
    pub extra: Option<String>,
    /// Sent again and again after everything else, until the other side leaves.
    pub flood: Option<String>,
    /// After everything else: nothing more is sent, and what comes is read, until the other side leaves.
    pub stay: bool,
    /// Sent instead of head and body, in pieces and up to a cut like these; the connection is closed afterwards,
    /// unless `keep`.
    pub raw: Option<String>,
    /// Keep the connection after `raw`.
    pub keep: bool,
    /// Close without one byte of answer.
    pub vanish: bool,
    /// After the head, or `raw`, send back whatever comes, until the other side ends.
    pub echo: bool,
    /// Read so many bytes of the request's body at least, and not its rest, then answer and close.
    pub stop_reading_at: Option<u64>,
    /// Close after this answer.
    pub close: bool,
    /// Read what still comes between the end of this side and the close, so that unread bytes do not make it a reset.
    pub linger: bool,
}

/// A 1xx response.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interim {
    /// 100 to 199.
    pub status: u16,
    /// The gate that must be released before it.
    pub hold: Option<String>,
    /// Lines of `Name: value`.
    #[serde(default)]
    pub fields: Vec<String>,
}

/// Field lines that say nothing: `Filler-1: vvv...` and so on.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filler {
    /// How many lines.
    pub fields: usize,
    /// The length of each value.
    pub bytes: usize,
}

/// A gate in a body.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// The gate is before this byte.
    pub at: u64,
    /// Its name.
    pub gate: String,
}

/// A wait in a body.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// The wait is before this byte.
    pub at: u64,
    /// How long it is.
    pub time: String,
}

/// A body that can be cut anywhere.
#[derive(Clone, Debug)]
pub(super) enum AnswerContent {
    Literal(Bytes),
    Derived { seed: String, first: u64, length: u64 },
}

impl AnswerContent {
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Literal(bytes) => bytes.len() as u64,
            Self::Derived { length, .. } => *length,
        }
    }

    /// Bytes `from..to` as content of its own, both within the length.
    pub(super) fn part(&self, from: u64, to: u64) -> Self {
        match self {
            Self::Literal(_) => Self::Literal(self.slice(from, to)),
            Self::Derived { seed, first, .. } => {
                Self::Derived { seed: seed.clone(), first: first + from, length: to.saturating_sub(from) }
            }
        }
    }

    /// Bytes `from..to`, both within the length.
    pub(super) fn slice(&self, from: u64, to: u64) -> Bytes {
        match self {
            Self::Literal(bytes) => {
                let at = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(bytes.len());
                bytes.slice(at(from)..at(to))
            }
            Self::Derived { seed, first, .. } => {
                seeded::bytes_of(seed, first + from, to.saturating_sub(from))
            }
        }
    }
}

impl Answer {
    /// An answer with a status, field lines and a body; for tests written in Rust.
    pub fn new(status: u16, fields: &[&str], body: &str) -> Self {
        Self {
            status: Some(status),
            fields: fields.iter().map(|&line| line.to_owned()).collect(),
            body: Some(body.to_owned()),
            ..Self::default()
        }
    }

    fn applies(&self, seen: &Seen) -> bool {
        self.when.iter().all(|condition| match (condition.strip_prefix('!'), condition.split_once(": ")) {
            (Some(name), _) => !seen.fields.has(name),
            (None, Some((name, value))) => seen.fields.all(name).any(|v| v == value),
            (None, None) => seen.fields.has(condition),
        })
    }

    /// The body, once placeholders in `template` have been filled in.
    pub(super) fn content(&self, seen: &Seen, filled: Option<String>) -> AnswerContent {
        match (filled, &self.body, self.bytes) {
            (Some(text), _, _) => AnswerContent::Literal(wire::to_bytes(&text).into()),
            (None, Some(text), _) => AnswerContent::Literal(text.clone().into_bytes().into()),
            (None, None, Some(length)) => {
                let seed = self.seed.clone().unwrap_or_else(|| seen.target.clone());
                AnswerContent::Derived { seed, first: self.first, length }
            }
            (None, None, None) => AnswerContent::Literal(Bytes::new()),
        }
    }

    /// What is contradictory in it.
    ///
    /// # Errors
    /// One sentence.
    pub fn check(&self) -> Result<(), String> {
        let bodies = [self.body.is_some(), self.bytes.is_some(), self.template.is_some(), self.raw.is_some()];
        if bodies.into_iter().filter(|&given| given).count() > 1 {
            return Err("an answer has one of body, bytes, template and raw".to_owned());
        }
        if let Some(line) = self.fields.iter().find(|line| !line.contains(':')) {
            return Err(format!("not a field line: {line:?}"));
        }
        let pauses = self.pauses.iter().map(|pause| &pause.time);
        for time in [&self.delay, &self.pause].into_iter().flatten().chain(pauses) {
            if crate::template::duration(time).is_none() {
                return Err(format!("not a duration: {time:?}"));
            }
        }
        if self.flood.as_ref().is_some_and(String::is_empty) {
            return Err("a flood of nothing".to_owned());
        }
        if let Some(version) = &self.version
            && !matches!(version.as_str(), "1.0" | "1.1")
        {
            return Err(format!("an origin speaks version 1.0 or 1.1, not {version:?}"));
        }
        Ok(())
    }
}

impl PathScript {
    /// These answers for a path; for tests written in Rust.
    pub fn new(path: &str, answer: impl Into<Vec<Answer>>) -> Self {
        Self { name: default_origin(), path: path.to_owned(), aside: false, answer: answer.into() }
    }

    /// Whether requests for `target` are answered from here.
    pub(super) fn covers(&self, target: &str) -> bool {
        match self.path.strip_suffix('*') {
            Some(prefix) => target.starts_with(prefix),
            None => self.path == target,
        }
    }

    /// The answer that is due for `seen`.
    pub(super) fn choose(&self, seen: &Seen, pools: &mut Vec<Pool>) -> Option<&Answer> {
        let named = |answer: &Answer| answer.method.as_ref() == Some(&seen.method);
        let own = self.answer.iter().any(named);
        let pool = || {
            let of_pool = move |(_, answer): &(usize, &Answer)| {
                if own { named(answer) } else { answer.method.is_none() }
            };
            self.answer.iter().enumerate().filter(of_pool)
        };
        if let Some((_, answer)) = pool().find(|(_, answer)| !answer.when.is_empty() && answer.applies(seen))
        {
            return Some(answer);
        }
        let plain: Vec<(usize, &Answer)> = pool().filter(|(_, answer)| answer.when.is_empty()).collect();
        let (first, _) = *plain.first()?;
        let at = match pools.iter_mut().find(|pool| pool.first == first) {
            Some(pool) => {
                pool.at += 1;
                pool.at
            }
            None => {
                pools.push(Pool { first, at: 0 });
                0
            }
        };
        plain.get(at).or_else(|| plain.last()).map(|(_, answer)| *answer)
    }
}
