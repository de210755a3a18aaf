//! A stored head as bytes, for stores that outlive the process, and back.
//!
//! In: a [`StoredHead`]. Out: bytes that say all of it that cannot be read from its fields again: status, freshness, which
//! requests it answers, what was said about stale use. Times are wall time; read back, they are placed on the monotonic
//! clock as far as the wall clock has been right since. Where that says that the response comes from the future, it
//! counts as stale: no jump of a clock makes it fresh. What the version before wrote is read under the rules of this one:
//! without cookies that may be somebody's, and with [`Caution`] where its lifetime is not the application's.
//! A head without tags is written as it was before there were tags. One with tags has the names of their fields behind it. A head
//! without such names has the tags that the default names give. The head of a template has a version of its own, so that a
//! larder that knows no templates refuses it and still reads all others.
//! Bytes come from a disk and may be anything: reading checks each length, and refuses what this version did not write.
//! Deliberately absent: checksums, which are the store's, and the key, which it compares.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use larder_http::authority::Authority;
use larder_http::message::{PreparedFields, Scheme};
use larder_http::template::Language;
use larder_http::time::{Now, WallTime};

use super::{StaleDirectives, StoredHead, TemplateHead};
use crate::codec::{HeadError, Reading, push};
use crate::coding::Codings;
use crate::cookies::own::take_known;
use crate::cookies::{Caution, Relieved};
use crate::freshness::{Freshness, LifetimeSource};
use crate::groups::GroupTags;
use crate::part::Part;
use crate::purge::tags::{TagFields, Tags};
use crate::validators::Validators;
use crate::vary::Selecting;

/// What a head without tags is written as.
const VERSION: u8 = 2;
/// The same with one block more: the names of the fields that its tags are read from.
const VERSION_WITH_TAGS: u8 = 3;
/// The same with another block behind that one, which may be empty here: the language of a template.
const VERSION_WITH_LANGUAGE: u8 = 4;
/// It took fewer cookies for a session, stored those of one client for all, and had no names at its end.
const VERSION_BEFORE: u8 = 1;

/// Bits of one byte; three are free.
const NO_CACHE: u8 = 1;
const MUST_REVALIDATE: u8 = 2;
const S_MAXAGE: u8 = 4;
/// The holes of a part follow everything else.
const HOLES: u8 = 128;
const OLDER_RULES: u8 = 8;
const OWN_COOKIES: u8 = 16;

/// Stands for a duration that was not said.
const NONE: u64 = u64::MAX;

impl StoredHead {
    /// Writes it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(80 + self.fields.http1.len() + self.vary.memory_bytes());
        let (freshness, stale) = (&self.freshness, &self.stale);
        let holes = self.part.as_ref().map_or(&[][..], |part| &part.holes);
        let flag = |is: bool, bit: u8| if is { bit } else { 0 };
        out.push(match (self.language(), &self.tags) {
            (Some(_), _) => VERSION_WITH_LANGUAGE,
            (None, Some(_)) => VERSION_WITH_TAGS,
            (None, None) => VERSION,
        });
        out.push(freshness.source.number());
        out.push(
            flag(freshness.no_cache, NO_CACHE)
                | flag(stale.must_revalidate, MUST_REVALIDATE)
                | flag(stale.s_maxage, S_MAXAGE)
                | flag(self.caution.older_rules, OLDER_RULES)
                | flag(self.caution.own_cookies, OWN_COOKIES)
                | flag(!holes.is_empty(), HOLES),
        );
        out.extend_from_slice(&self.status.as_u16().to_le_bytes());
        let said = |duration: Option<Duration>| duration.map_or(NONE, millis);
        for number in [
            millis(freshness.lifetime),
            millis(freshness.initial_age),
            freshness.received.wall.0,
            said(stale.while_revalidate),
            said(stale.if_error),
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        push(&mut out, &self.fields.http1);
        push(&mut out, &self.controls.as_deref().map(lines).unwrap_or_default());
        self.vary.write(&mut out);
        push(&mut out, self.relieved.names().collect::<Vec<_>>().join("\n").as_bytes());
        if !holes.is_empty() {
            let numbers = holes.iter().flat_map(|hole| [hole.start, hole.end]);
            push(&mut out, &numbers.flat_map(u64::to_le_bytes).collect::<Vec<u8>>());
        }
        let language = self.language();
        if self.tags.is_some() || language.is_some() {
            let names = self.tags.iter().flat_map(|tags| tags.names()).map(HeaderName::as_str);
            push(&mut out, names.collect::<Vec<_>>().join("\n").as_bytes());
        }
        if let Some(language) = language {
            push(&mut out, language.as_str().as_bytes());
        }
        out
    }

    /// Reads it again, `now`, for a response of this origin.
    ///
    /// # Errors
    /// The bytes are not what this version or one before it wrote.
    pub fn from_bytes(bytes: &[u8], now: Now, origin: (Scheme, &Authority)) -> Result<Self, HeadError> {
        Self::from_bytes_received(bytes, now, |wall| now.at_wall(wall), origin)
    }

    /// The same of a response of which the caller knows better than its own wall clock when it was received: `received` is told what
    /// that clock said. `None`: nobody knows, and it counts as stale.
    ///
    /// # Errors
    /// As for [`Self::from_bytes`].
    pub fn from_bytes_received(
        bytes: &[u8],
        now: Now,
        received: impl FnOnce(WallTime) -> Option<Now>,
        (scheme, authority): (Scheme, &Authority),
    ) -> Result<Self, HeadError> {
        let placed = received;
        let mut from = Reading::new(bytes);
        let [version, source, flags] = *from.array()?;
        if !matches!(version, VERSION_BEFORE | VERSION | VERSION_WITH_TAGS | VERSION_WITH_LANGUAGE) {
            return Err(HeadError::Version(version));
        }
        let status = StatusCode::from_u16(u16::from_le_bytes(*from.array()?));
        let status = status.map_err(|_| HeadError::Malformed)?;
        let [lifetime, initial_age] = [from.number()?, from.number()?].map(Duration::from_millis);
        let received = WallTime(from.number()?);
        let [while_revalidate, if_error] =
            [from.number()?, from.number()?].map(|ms| (ms != NONE).then_some(Duration::from_millis(ms)));
        // Copied: a slice would keep all that was read with them.
        let mut fields = read_lines(&Bytes::copy_from_slice(from.block()?))?;
        let controls = read_lines(&Bytes::copy_from_slice(from.block()?))?;
        let vary = Selecting::read(&mut from, Codings::of(&fields.map))?;
        let relieved = match version {
            VERSION_BEFORE => relieve(&mut fields)?,
            _ => read_names(from.block()?),
        };
        let holes = if flags & HOLES == 0 { None } else { Some(read_holes(from.block()?)?) };
        let tag_fields = match version {
            VERSION_WITH_TAGS => Cow::Owned(read_tag_fields(from.block()?)?),
            VERSION_WITH_LANGUAGE => match from.block()? {
                b"" => Cow::Borrowed(TagFields::known()),
                names => Cow::Owned(read_tag_fields(names)?),
            },
            _ => Cow::Borrowed(TagFields::known()),
        };
        let language = match version {
            VERSION_WITH_LANGUAGE => Some(read_language(from.block()?)?),
            _ => None,
        };
        if language.is_some() && status == StatusCode::PARTIAL_CONTENT {
            return Err(HeadError::Malformed);
        }
        let (groups, tags) = {
            let all = match controls.map.is_empty() {
                true => Cow::Borrowed(&fields.map),
                false => Cow::Owned(joined(&fields.map, &controls.map)),
            };
            (GroupTags::of(scheme, authority, &all), Tags::of(&all, &tag_fields))
        };
        if !from.is_empty() {
            return Err(HeadError::Malformed);
        }
        // From the future, or from before the clock's own beginning: of what age, nobody knows.
        let (received, lifetime) = match placed(received) {
            Some(received) => (received, lifetime),
            None => (now, Duration::ZERO),
        };
        let mut part = (status == StatusCode::PARTIAL_CONTENT).then(|| Part::of(&fields.map)).flatten();
        if let Some(holes) = holes {
            let part = part.as_mut().ok_or(HeadError::Malformed)?;
            let bounds = || std::iter::once(part.range.start).chain(holes.iter().map(|hole| hole.end));
            let are_within =
                bounds().zip(&holes).all(|(before, hole)| before < hole.start && hole.start < hole.end)
                    && holes.last().is_some_and(|last| last.end < part.range.end);
            if !are_within {
                return Err(HeadError::Malformed);
            }
            part.holes = holes;
        }
        let is = |bit: u8| flags & bit != 0;
        let source = LifetimeSource::of_number(source).ok_or(HeadError::Malformed)?;
        let caution = Caution {
            older_rules: is(OLDER_RULES) || (version == VERSION_BEFORE && source.is_assumed()),
            own_cookies: is(OWN_COOKIES),
        };
        Ok(Self {
            status,
            freshness: Freshness { lifetime, source, initial_age, received, no_cache: is(NO_CACHE) },
            vary,
            validators: Validators::of(status, &fields.map, received.wall),
            stale: StaleDirectives {
                must_revalidate: is(MUST_REVALIDATE),
                s_maxage: is(S_MAXAGE),
                while_revalidate,
                if_error,
            },
            part,
            groups,
            tags,
            controls: (!controls.map.is_empty()).then(|| Box::new(controls.map)),
            relieved,
            caution,
            template: language.map(|language| Box::new(TemplateHead::new(language, &fields.map))),
            fields: std::sync::Arc::new(fields),
        })
    }
}

fn read_holes(block: &[u8]) -> Result<Vec<std::ops::Range<u64>>, HeadError> {
    let mut from = Reading::new(block);
    let mut holes = Vec::with_capacity(block.len() / 16);
    while !from.is_empty() {
        holes.push(from.number()?..from.number()?);
    }
    Ok(holes)
}

/// Takes the cookies out that the version before stored for all, and that may be somebody's.
fn relieve(fields: &mut PreparedFields) -> Result<Relieved, HeadError> {
    let mut left = fields.map.clone();
    let relieved = take_known(&mut left);
    if !relieved.is_empty() {
        *fields = read_lines(&Bytes::from(lines(&left)))?;
    }
    Ok(relieved)
}

fn read_names(block: &[u8]) -> Relieved {
    let mut names = Relieved::default();
    block.split(|byte| *byte == b'\n').filter(|name| !name.is_empty()).for_each(|name| names.note(name));
    names
}

/// Names of fields, each once.
fn read_tag_fields(block: &[u8]) -> Result<TagFields, HeadError> {
    let mut names = Vec::new();
    for name in block.split(|byte| *byte == b'\n') {
        let name = HeaderName::from_bytes(name).map_err(|_| HeadError::Malformed)?;
        if names.contains(&name) {
            return Err(HeadError::Malformed);
        }
        names.push(name);
    }
    Ok(TagFields::new(names, false))
}

fn read_language(block: &[u8]) -> Result<Language, HeadError> {
    let languages = [Language::Ssi, Language::Esi];
    let named = languages.into_iter().find(|language| language.as_str().as_bytes() == block);
    named.ok_or(HeadError::Malformed)
}

fn joined(fields: &HeaderMap, controls: &HeaderMap) -> HeaderMap {
    let mut all = fields.clone();
    all.extend(controls.iter().map(|(name, value)| (name.clone(), value.clone())));
    all
}

fn millis(duration: Duration) -> u64 {
    // The largest number stands for something else.
    u64::try_from(duration.as_millis()).unwrap_or(NONE).min(NONE - 1)
}

fn lines(fields: &HeaderMap) -> Vec<u8> {
    let mut out = Vec::new();
    larder_http::message::write_http1_fields(fields, &mut out);
    out
}

/// Reads what [`larder_http::message::write_http1_fields`] writes.
fn read_lines(bytes: &Bytes) -> Result<PreparedFields, HeadError> {
    let mut map = HeaderMap::new();
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let end = rest.windows(2).position(|pair| pair == b"\r\n").ok_or(HeadError::Malformed)?;
        let (line, behind) = rest.split_at(end);
        rest = behind.get(2..).unwrap_or_default();
        let colon = line.iter().position(|byte| *byte == b':').ok_or(HeadError::Malformed)?;
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b": ").ok_or(HeadError::Malformed)?;
        let name = HeaderName::from_bytes(name).map_err(|_| HeadError::Malformed)?;
        let value = HeaderValue::from_maybe_shared(bytes.slice_ref(value));
        map.try_append(name, value.map_err(|_| HeadError::Malformed)?).map_err(|_| HeadError::Malformed)?;
    }
    Ok(PreparedFields::with_lines(map, bytes.clone()))
}

#[cfg(test)]
mod tests;
