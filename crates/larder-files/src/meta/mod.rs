//! What lies beside a body: the fields and times that a response came with, as a few lines of text.
//!
//! In: a response that is stored, and what the file system says of its file. Out: lines for the attribute `user.larder`
//! of that file (or for a file of their own where there are no attributes), and back. They say which file they belong
//! to by its size, modification time and inode: once somebody edits it or copies something over it they are void, and
//! the file is what a person put there. Text, so that `getfattr` shows a person what larder knows. Bytes from disk are
//! judged, never believed: whatever cannot be read is void. Deliberately absent: checksums of the body. A file that others
//! may write has none.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use larder_cache::{Freshness, LifetimeSource, Relieved, StoredHead};
use larder_http::message::Scheme;
use larder_http::time::{Now, WallTime};

use super::name::TargetUri;
use super::sys::Status;

#[cfg(test)]
mod tests;

/// The first line; another version is void, but for the one before.
const MAGIC: &str = "larder-file 2";
/// That of the version that took fewer cookies for a session, and stored those of one client for all.
const MAGIC_BEFORE: &str = "larder-file 1";
/// The first line of a mark.
const MARK: &str = "larder-file 1";

/// What all lines may take together, in bytes: what an attribute may hold.
pub(super) const META_BYTES_MAX: usize = 64 * 1024;

/// The mark in place of the lines, where those lie in a file of their own at `path`. A file that has another's mark was
/// copied or moved by somebody.
pub(super) fn beside(path: &str) -> Vec<u8> {
    format!("{MARK}\nbeside {path}\n").into_bytes()
}

/// When a response came and for how long it is fresh, by the wall clock: what a restart leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredTimes {
    /// When its head arrived.
    pub received: WallTime,
    /// The freshness lifetime.
    pub lifetime: Duration,
    /// Where that comes from.
    pub source: LifetimeSource,
    /// How old it was on arrival.
    pub initial_age: Duration,
}

/// How much later something may have come, at most, for that to be believed: beyond it the clock was set back.
const LATER_MAX: Duration = Duration::from_secs(600);

impl StoredTimes {
    /// Whether they are those of a response that came later than one that was received then.
    pub(crate) fn are_behind(&self, received: WallTime) -> bool {
        self.received > received && self.received.0 - received.0 <= LATER_MAX.as_millis() as u64
    }

    /// Those of a response that is being stored.
    pub fn of(freshness: &Freshness) -> Self {
        Self {
            received: freshness.received.wall,
            lifetime: freshness.lifetime,
            source: freshness.source,
            initial_age: freshness.initial_age,
        }
    }

    /// The freshness as of now, to be counted on by the monotonic clock. What the wall clock says has passed is taken from
    /// the lifetime; where it stands before the arrival nobody knows, and nothing is left of it.
    pub fn freshness(&self, now: Now) -> Freshness {
        let passed = now.wall.since(self.received);
        let is_known = now.wall >= self.received;
        // As far back as the monotonic clock reaches, the rest into the age or out of the lifetime.
        let resident = passed.min(now.monotonic);
        let before = passed.saturating_sub(resident);
        let lifetime = match (is_known, self.source.is_configured()) {
            (false, _) => Duration::ZERO,
            (true, true) => self.lifetime.saturating_sub(before),
            (true, false) => self.lifetime,
        };
        let received = Now { wall: self.received, monotonic: now.monotonic.saturating_sub(resident) };
        let initial_age = self.initial_age.saturating_add(before);
        Freshness { lifetime, source: self.source, initial_age, received, no_cache: false }
    }
}

/// What a stored response was, beside its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Always 200 for now; written all the same.
    pub status: StatusCode,
    /// Fields as they were stored, without Content-Length.
    pub fields: HeaderMap,
    /// When it came and how long it is fresh.
    pub times: StoredTimes,
    /// How long its fetch took.
    pub took: Duration,
    /// The number of the last invalidation when its fetch began.
    pub number: u64,
    /// Cookies that it came with and that are not stored.
    pub relieved: Relieved,
    /// Whether a version of larder stored it that took fewer cookies for a session.
    pub older: bool,
}

impl Meta {
    /// That of a response that is being stored.
    pub fn of(head: &StoredHead, took: Duration, number: u64) -> Self {
        let mut fields = head.all_fields();
        fields.remove(header::CONTENT_LENGTH);
        let (relieved, older) = (head.relieved.clone(), head.caution.older_rules);
        Self {
            status: head.status,
            fields,
            times: StoredTimes::of(&head.freshness),
            took,
            number,
            relieved,
            older,
        }
    }

    /// The lines, for a file of which the file system says `file`.
    pub(super) fn write(&self, uri: &TargetUri<'_>, file: &Status) -> Vec<u8> {
        let (seconds, nanoseconds) = file.modified;
        let times = &self.times;
        let magic = if self.older { MAGIC_BEFORE } else { MAGIC };
        let mut lines = format!(
            "{magic}\nfile {} {seconds} {nanoseconds} {}\nuri {uri}\nstatus {}\nnumber {}\nreceived_ms {}\n\
             lifetime_ms {}\nlifetime_from {}\nage_ms {}\ntook_ms {}\n",
            file.size,
            file.inode,
            self.status.as_u16(),
            self.number,
            times.received.0,
            times.lifetime.as_millis(),
            times.source.token(),
            times.initial_age.as_millis(),
            self.took.as_millis(),
        )
        .into_bytes();
        if !self.older {
            let names: Vec<&str> = self.relieved.names().collect();
            lines.extend_from_slice(format!("without_cookies {}\n", names.join(";")).as_bytes());
        }
        lines.push(b'\n');
        for (name, value) in &self.fields {
            lines.extend_from_slice(name.as_str().as_bytes());
            lines.extend_from_slice(b": ");
            lines.extend_from_slice(value.as_bytes());
            lines.push(b'\n');
        }
        lines
    }
}

/// What the lines of a response with such fields take at most, in bytes.
pub(super) fn lines_bytes_max(fields: &HeaderMap, uri: &TargetUri<'_>) -> usize {
    const LINE_BYTES: usize = ": \n".len();
    const TIMES_BYTES_MAX: usize = 1024;
    let line = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + LINE_BYTES;
    fields.iter().map(line).sum::<usize>() + uri.to_string().len() + TIMES_BYTES_MAX
}

/// Whose a file is.
#[derive(Debug)]
pub(super) enum JudgedMeta {
    /// A response that larder stored for this URI.
    Stored(Box<Meta>),
    /// One that it stored for the same URI in the other scheme.
    OtherScheme,
    /// What a crash of the machine, or the loss of what was known of it, has left of a response that larder stored: nobody's, and
    /// worth nothing.
    Torn,
    /// Somebody put it there, or changed it.
    ByHand,
}

impl JudgedMeta {
    pub(super) fn is_by_hand(&self) -> bool {
        matches!(self, Self::ByHand)
    }
}

/// The URI that the lines of a file name, and what they say of it. `None` where they are not of this file, as it is.
pub(super) fn read<'a>(lines: &'a [u8], file: &Status) -> Option<(&'a str, Meta)> {
    let mut lines = Lines(lines);
    let older = is_older(lines.next()?)?;
    let (seconds, nanoseconds) = file.modified;
    let is = format!("{} {seconds} {nanoseconds} {}", file.size, file.inode);
    (lines.value("file")? == is).then_some(())?;
    let said = lines.value("uri")?;
    Some((said, lines.meta(older)?))
}

/// Judges a file by the lines that were found with it. `uri` is the one that its name stands for.
pub(super) fn judge(lines: &[u8], uri: &TargetUri<'_>, file: &Status) -> JudgedMeta {
    let Some((said, meta)) = read(lines, file) else {
        return if is_torn(lines, file) { JudgedMeta::Torn } else { JudgedMeta::ByHand };
    };
    let scheme = match uri.scheme {
        Scheme::Http => Scheme::Https,
        Scheme::Https => Scheme::Http,
    };
    let is = |uri: &TargetUri<'_>| said == uri.to_string();
    match (is(uri), is(&TargetUri { scheme, ..*uri })) {
        (true, _) => JudgedMeta::Stored(Box::new(meta)),
        (false, true) => JudgedMeta::OtherScheme,
        (false, false) => JudgedMeta::ByHand,
    }
}

/// Whether lines are those of this very file, untouched since, but for an end that is missing: a file system writes names
/// and attributes down long before contents. Who edits a file changes its modification time.
pub(super) fn is_torn(lines: &[u8], file: &Status) -> bool {
    let read = || {
        let mut lines = Lines(lines);
        is_older(lines.next()?)?;
        let (size, rest) = lines.value("file")?.split_once(' ')?;
        let (seconds, nanoseconds) = file.modified;
        let is_it = rest == format!("{seconds} {nanoseconds} {}", file.inode);
        Some(is_it && file.size < size.parse().ok()?)
    };
    // Lines in a file of their own share its fate.
    lines.is_empty() || read().unwrap_or(false)
}

/// Whether the first line is that of the version before; `None` where it is no version's.
fn is_older(magic: &[u8]) -> Option<bool> {
    match magic {
        _ if magic == MAGIC.as_bytes() => Some(false),
        _ if magic == MAGIC_BEFORE.as_bytes() => Some(true),
        _ => None,
    }
}

/// What is left to read.
struct Lines<'a>(&'a [u8]);

impl<'a> Lines<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == b'\n')?;
        let line = self.0.get(..end)?;
        self.0 = self.0.get(end + 1..)?;
        Some(line)
    }

    /// The value of the next line, which has to be called `name`.
    fn value(&mut self, name: &str) -> Option<&'a str> {
        std::str::from_utf8(self.next()?).ok()?.strip_prefix(name)?.strip_prefix(' ')
    }

    fn milliseconds(&mut self, name: &str) -> Option<Duration> {
        self.value(name)?.parse().ok().map(Duration::from_millis)
    }

    fn meta(&mut self, older: bool) -> Option<Meta> {
        let status = StatusCode::from_bytes(self.value("status")?.as_bytes()).ok()?;
        let number = self.value("number")?.parse().ok()?;
        let received = WallTime(self.value("received_ms")?.parse().ok()?);
        let lifetime = self.milliseconds("lifetime_ms")?;
        let source = LifetimeSource::of_token(self.value("lifetime_from")?)?;
        let initial_age = self.milliseconds("age_ms")?;
        let took = self.milliseconds("took_ms")?;
        let mut relieved = Relieved::default();
        if !older {
            let names = self.value("without_cookies")?.split(';').filter(|name| !name.is_empty());
            names.for_each(|name| relieved.note(name.as_bytes()));
        }
        self.next()?.is_empty().then_some(())?;
        let mut fields = HeaderMap::new();
        while !self.0.is_empty() {
            let line = self.next()?;
            let colon = line.windows(2).position(|two| two == b": ")?;
            let name = HeaderName::from_bytes(line.get(..colon)?).ok()?;
            let value = HeaderValue::from_bytes(line.get(colon + 2..)?).ok()?;
            fields.try_append(name, value).ok()?;
        }
        // Never written, but anybody may who may write the file: the framing is that of the answer.
        larder_http::connection::strip(&mut fields);
        fields.remove(header::CONTENT_LENGTH);
        let times = StoredTimes { received, lifetime, source, initial_age };
        Some(Meta { status, fields, times, took, number, relieved, older })
    }
}
