//! A stored head as bytes, for stores that outlive the process, and back.
//!
//! In: a [`StoredHead`]. Out: bytes that say all of it that cannot be read from its fields again: status, freshness, which
//! requests it answers, what was said about stale use. Times are wall time; read back, they are placed on the monotonic
//! clock as far as the wall clock has been right since. Where that says that the response comes from the future, it
//! counts as stale: no jump of a clock makes it fresh.
//! Bytes come from a disk and may be anything: reading checks each length, and refuses what this version did not write.
//! Deliberately absent: checksums, which are the store's, and the key, which it compares.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use larder_http::authority::Authority;
use larder_http::message::{PreparedFields, Scheme};
use larder_http::time::{Now, WallTime};

use super::{StaleDirectives, StoredHead, Validators};
use crate::freshness::{Freshness, LifetimeSource};
use crate::groups::GroupTags;
use crate::part::Part;
use crate::vary::Selecting;

/// Changes with every change of what is written.
const VERSION: u8 = 1;

const NO_CACHE: u8 = 1;
const MUST_REVALIDATE: u8 = 2;
const S_MAXAGE: u8 = 4;

/// Stands for a duration that was not said.
const NONE: u64 = u64::MAX;

/// Why bytes are no head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// Another version of larder wrote them.
    #[error("head of version {0}")]
    Version(u8),
    /// They are cut, or say what no head says.
    #[error("malformed head")]
    Malformed,
}

impl StoredHead {
    /// Writes it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(80 + self.fields.http1.len() + self.vary.memory_bytes());
        let (freshness, stale) = (&self.freshness, &self.stale);
        let flag = |is: bool, bit: u8| if is { bit } else { 0 };
        out.push(VERSION);
        out.push(freshness.source.number());
        out.push(
            flag(freshness.no_cache, NO_CACHE)
                | flag(stale.must_revalidate, MUST_REVALIDATE)
                | flag(stale.s_maxage, S_MAXAGE),
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
        out
    }

    /// Reads it again, `now`, for a response of this origin.
    ///
    /// # Errors
    /// The bytes are not what this version wrote.
    pub fn from_bytes(
        bytes: &[u8],
        now: Now,
        (scheme, authority): (Scheme, &Authority),
    ) -> Result<Self, HeadError> {
        let mut from = Reading(bytes);
        let [version, source, flags] = *from.array()?;
        if version != VERSION {
            return Err(HeadError::Version(version));
        }
        let status = StatusCode::from_u16(u16::from_le_bytes(*from.array()?));
        let status = status.map_err(|_| HeadError::Malformed)?;
        let [lifetime, initial_age] = [from.number()?, from.number()?].map(Duration::from_millis);
        let received = WallTime(from.number()?);
        let [while_revalidate, if_error] =
            [from.number()?, from.number()?].map(|ms| (ms != NONE).then_some(Duration::from_millis(ms)));
        // Copied: a slice would keep all that was read with them.
        let fields = read_lines(&Bytes::copy_from_slice(from.block()?))?;
        let controls = read_lines(&Bytes::copy_from_slice(from.block()?))?;
        let vary = Selecting::read(&mut from)?;
        if !from.0.is_empty() {
            return Err(HeadError::Malformed);
        }
        // From the future, or from before the clock's own beginning: of what age, nobody knows.
        let (received, lifetime) = match now.at_wall(received) {
            Some(received) => (received, lifetime),
            None => (now, Duration::ZERO),
        };
        let is = |bit: u8| flags & bit != 0;
        let groups = match controls.map.is_empty() {
            true => GroupTags::of(scheme, authority, &fields.map),
            false => GroupTags::of(scheme, authority, &joined(&fields.map, &controls.map)),
        };
        Ok(Self {
            status,
            freshness: Freshness {
                lifetime,
                source: LifetimeSource::of_number(source).ok_or(HeadError::Malformed)?,
                initial_age,
                received,
                no_cache: is(NO_CACHE),
            },
            vary,
            validators: Validators::of(status, &fields.map, received.wall),
            stale: StaleDirectives {
                must_revalidate: is(MUST_REVALIDATE),
                s_maxage: is(S_MAXAGE),
                while_revalidate,
                if_error,
            },
            part: (status == StatusCode::PARTIAL_CONTENT).then(|| Part::of(&fields.map)).flatten(),
            groups,
            controls: (!controls.map.is_empty()).then(|| Box::new(controls.map)),
            fields: std::sync::Arc::new(fields),
        })
    }
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

/// Adds a block: its length, then its bytes.
pub(crate) fn push(out: &mut Vec<u8>, block: &[u8]) {
    // Heads are bounded far below this; a block that were not is cut, and refused when it is read.
    let length = u32::try_from(block.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(block);
}

/// What is left to read.
pub(crate) struct Reading<'a>(&'a [u8]);

impl<'a> Reading<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], HeadError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(HeadError::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], HeadError> {
        self.take(N)?.try_into().map_err(|_| HeadError::Malformed)
    }

    fn number(&mut self) -> Result<u64, HeadError> {
        Ok(u64::from_le_bytes(*self.array()?))
    }

    pub(crate) fn block(&mut self) -> Result<&'a [u8], HeadError> {
        let length = u32::from_le_bytes(*self.array()?);
        self.take(usize::try_from(length).map_err(|_| HeadError::Malformed)?)
    }
}

#[cfg(test)]
mod tests;
