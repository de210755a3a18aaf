//! The last purges: what was purged, by whom, and what came of it.
//!
//! In: purges as they are applied. Out: the same for people and for the API, newest first. The list is bounded; the oldest goes. It
//! is in memory alone: what has to outlive the process is in the journals.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use larder_cache::purge::{Mode, Predicate, Scope, What};
use larder_http::time::WallTime;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::dialect::Dialect;
use crate::fleet::{FleetReceipt, Sharing};

/// Purges that are remembered.
const PURGES_MAX: usize = 1000;
/// What is kept of the names of one purge, in bytes.
const TEXT_BYTES_MAX: usize = 512;
/// Predicates of one purge that are kept, and the bytes of their names: 1000 purges have 25 MB of them at most.
const FIRST_MAX: usize = 256;
const FIRST_BYTES_MAX: usize = 4096;

/// Who has something purged.
#[derive(Clone, Debug)]
pub struct Sender {
    /// In which words.
    pub dialect: Dialect,
    /// The address; `None` for larder itself.
    pub peer: Option<IpAddr>,
    /// What let it in: `address`, `token`, `header`, `admin`, `response`.
    pub by: &'static str,
}

/// A purge that was applied.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) id: Box<str>,
    pub(crate) at: WallTime,
    pub(crate) sender: Sender,
    pub(crate) mode: Mode,
    /// The predicates, as text.
    pub(crate) what: Box<str>,
    /// The first of them, to tell later what they concern.
    pub(crate) first: Box<[Predicate]>,
    pub(crate) count: usize,
    /// The numbers of its predicates lie within; numbers of others may, too.
    pub(crate) numbers: RangeInclusive<u64>,
    pub(crate) removed: AtomicU64,
    pub(crate) softened: AtomicU64,
    /// The scopes of those of its predicates that take by what fields say.
    pub(crate) by_fields: Box<[Arc<Scope>]>,
    /// Plain files within these scopes that people put there, as far as they were met.
    pub(crate) by_hand: AtomicU64,
    pub(crate) ended: Mutex<Option<PurgeEnd>>,
    /// What it is in the fleet, where there is one.
    pub(crate) sharing: Option<Sharing>,
}

/// How a purge ended.
#[derive(Clone, Debug)]
pub(crate) struct PurgeEnd {
    pub(crate) took: Duration,
    /// Why it does not hold after a crash, where that is so.
    pub(crate) not_held: Option<String>,
}

/// A purge, for people and for the API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Names it.
    pub id: String,
    /// When it was made, in milliseconds since 1970.
    pub at_ms: u64,
    /// In which words it was asked for.
    pub dialect: String,
    /// The address that asked; null for larder itself.
    pub peer: Option<String>,
    /// What let it in.
    pub by: String,
    /// `hard` or `soft`.
    pub mode: String,
    /// What it names, cut at 512 bytes.
    pub what: String,
    /// How many predicates that are.
    pub predicates: usize,
    /// Responses that were taken out so far.
    pub removed: u64,
    /// Responses that it has made stale so far.
    pub softened: u64,
    /// Plain files that people put there and that stay: they have no fields that it could have gone by.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub by_hand: u64,
    /// Whether it holds after a crash; null while it is not known yet.
    pub held: Option<bool>,
    /// Why it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How long it took until all journals had it, in milliseconds.
    pub took_ms: Option<f64>,
    /// How the other larders of the fleet stand to it; absent without a fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetReceipt>,
}

// Of this shape for serde.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The scopes of predicates that take by what fields say.
pub(crate) fn by_fields(predicates: &[Predicate]) -> Box<[Arc<Scope>]> {
    let goes_by_fields = |predicate: &&Predicate| {
        matches!(predicate.what, What::Tag(_) | What::Group { .. } | What::Pattern(_))
    };
    predicates.iter().filter(goes_by_fields).map(|predicate| Arc::clone(&predicate.scope)).collect()
}

impl Record {
    /// As it is now, here and in the fleet.
    pub(crate) fn receipt(&self, fleet: Option<FleetReceipt>) -> AuditEntry {
        let ended = self.ended.lock().clone();
        AuditEntry {
            id: self.id.to_string(),
            at_ms: self.at.0,
            dialect: self.sender.dialect.token().to_owned(),
            peer: self.sender.peer.map(|peer| peer.to_string()),
            by: self.sender.by.to_owned(),
            mode: mode_word(self.mode).to_owned(),
            what: self.what.to_string(),
            predicates: self.count,
            removed: self.removed.load(Ordering::Relaxed),
            softened: self.softened.load(Ordering::Relaxed),
            by_hand: self.by_hand.load(Ordering::Relaxed),
            held: ended.as_ref().map(|ended| ended.not_held.is_none()),
            why: ended.as_ref().and_then(|ended| ended.not_held.clone()),
            took_ms: ended.map(|ended| ended.took.as_secs_f64() * 1000.0),
            fleet,
        }
    }
}

/// `hard` or `soft`.
pub(crate) const fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Hard => "hard",
        Mode::Soft => "soft",
    }
}

/// Numbers of purges: those of which a sweep or a walk counts what they have made stale. An earlier one has counted up to `after`, and
/// what comes after `upto` is met by a part of this one only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uncounted {
    pub(crate) after: u64,
    pub(crate) upto: u64,
}

impl Uncounted {
    /// None.
    pub(crate) const NONE: Self = Self { after: u64::MAX, upto: 0 };

    pub(crate) const fn has(self, number: u64) -> bool {
        self.after < number && number <= self.upto
    }
}

/// The purges that are remembered.
#[derive(Debug, Default)]
pub(crate) struct Audit(Mutex<VecDeque<Arc<Record>>>);

impl Audit {
    pub(crate) fn add(&self, record: Arc<Record>) {
        let mut records = self.0.lock();
        records.push_front(record);
        records.truncate(PURGES_MAX);
    }

    pub(crate) fn all(&self) -> Vec<Arc<Record>> {
        self.0.lock().iter().cloned().collect()
    }

    /// Calls `each` with the purges whose last number is among these.
    pub(crate) fn each_within(&self, numbers: Uncounted, each: impl FnMut(&Arc<Record>)) {
        let records = self.0.lock();
        let later = records.iter().take_while(|record| *record.numbers.end() > numbers.after);
        later.filter(|record| numbers.has(*record.numbers.end())).for_each(each);
    }

    /// The last purge that has a predicate with this number.
    pub(crate) fn with_number(&self, number: u64) -> Option<Arc<Record>> {
        self.0.lock().iter().find(|record| record.numbers.contains(&number)).cloned()
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<Record>> {
        self.0.lock().iter().find(|record| *record.id == *id).cloned()
    }
}

/// The predicates that are kept of a purge.
pub(crate) fn first_of(predicates: &[Predicate]) -> Box<[Predicate]> {
    let mut bytes = 0;
    let is_kept = |predicate: &&Predicate| {
        bytes += name_bytes(&predicate.what);
        bytes <= FIRST_BYTES_MAX
    };
    predicates.iter().take(FIRST_MAX).take_while(is_kept).cloned().collect()
}

fn name_bytes(what: &What) -> usize {
    match what {
        What::Url { authority, target } => authority.len() + target.len(),
        What::Target(name) | What::Prefix(name) | What::Host(name) => name.len(),
        What::Tag(tag) => tag.len(),
        What::Group { authority, name, .. } => authority.len() + name.len(),
        // Shared with the table, which holds as many of them at most.
        What::All | What::Pattern(_) => 0,
    }
}

/// Predicates as one line of text, cut.
pub(crate) fn text_of(predicates: &[Predicate]) -> Box<str> {
    let mut text = String::new();
    for predicate in predicates {
        if !text.is_empty() {
            text.push_str(", ");
        }
        push_what(&mut text, &predicate.what);
        if text.len() > TEXT_BYTES_MAX {
            let mut end = TEXT_BYTES_MAX;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
            text.push_str("...");
            break;
        }
    }
    text.into()
}

fn push_what(text: &mut String, what: &What) {
    use std::fmt::Write;
    // Writing to a string cannot fail.
    let _ = match what {
        What::Url { authority, target } => write!(text, "url {authority}{target}"),
        What::Target(target) => write!(text, "url *{target}"),
        What::Tag(tag) => write!(text, "tag {}", tag.escape_ascii()),
        What::Group { scheme, authority, name } => {
            write!(text, "group {name} of {}://{authority}", scheme.as_str())
        }
        What::Prefix(path) => write!(text, "prefix {path}"),
        What::Host(host) => write!(text, "host {host}"),
        What::All => write!(text, "all"),
        What::Pattern(pattern) => {
            text.push_str("pattern");
            let parts = pattern.text();
            let parts = [
                ("host", &parts.host),
                ("url", &parts.target),
                ("content-type", &parts.content_type),
                ("tags", &parts.tags),
            ];
            parts.into_iter().try_for_each(|(name, part)| match part {
                Some(part) => write!(text, " {name} {}", part.text),
                None => Ok(()),
            })
        }
    };
}
