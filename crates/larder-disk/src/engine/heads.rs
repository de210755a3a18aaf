//! Records without their contents: what a listing shows.
//!
//! In: a place. Out: the key and the head that lie there, checked, and how long the content is. The content is neither read
//! nor checked, so that a listing of large objects costs no more than one of small ones.
//! Everything here waits for the disk in the thread that calls: what lists has a thread of its own, and the disk's pool stays
//! with the clients. While they wait for the disk, a listing waits for them ([`Disk::give_way`]).

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::address::{Address, Location};
use super::error::ReadError;
use super::format::crc;
use super::format::record::{HEADER_BYTES, Header, Kind, read_pieces};
use super::index::Locations;
use super::{Disk, sys};

/// Read at first: header, key and head of nearly every record.
const HEAD_BYTES_LIKELY: usize = 4096;
/// How long one who lists gives way at once.
const WAY_MAX: Duration = Duration::from_millis(100);
/// How often it is looked whether clients still wait.
const WAY_STEP: Duration = Duration::from_millis(1);

/// A record without its content.
#[derive(Clone, Debug)]
pub struct RecordHead {
    /// Authority, path and query ([`larder_tier::CacheKey::base`]).
    pub base: Bytes,
    /// Scheme and configured parts ([`larder_tier::CacheKey::variant`]).
    pub variant: Bytes,
    /// The number of the last invalidation when its fetch began.
    pub number: u64,
    /// Which of the responses under its key.
    pub identity: u64,
    /// Status, fields, times, tags.
    pub head: Bytes,
    /// The length of the content.
    pub content_bytes: u64,
}

impl Disk {
    /// Reads key and head of a record. Waits for the disk; not for an event loop.
    ///
    /// # Errors
    /// Where it is gone, damaged or cannot be read.
    pub fn read_head(&self, place: Location) -> Result<RecordHead, ReadError> {
        let shared = &self.shared;
        let segment = (!place.is_pending()).then(|| shared.segments.find(place.segment())).flatten();
        let segment = segment.ok_or(ReadError::Gone)?;
        let read = |length: usize| {
            let read = segment.file.get().and_then(|file| sys::read_up_to(&file, length, place.offset()));
            read.map_err(|error| {
                shared.counts.read_errors.add(1);
                shared.health.failed("cannot read", &error);
                ReadError::Failed(error.kind())
            })
        };
        let mut bytes = read(HEAD_BYTES_LIKELY)?;
        let damaged = || {
            shared.counts.damaged.add(1);
            ReadError::Damaged
        };
        let header = Header::read(&bytes).ok_or_else(damaged)?;
        let is_it = header.disk == shared.superblock.disk && header.segment == place.segment();
        if !is_it || header.total_bytes() > shared.record_bytes_max {
            return Err(damaged());
        }
        let wanted = wanted_bytes(&header);
        if wanted > bytes.len() {
            bytes = read(wanted)?;
        }
        decode(&header, bytes.into()).ok_or_else(damaged)
    }

    /// The places of everything under a base, whatever its variant, as far as it is written.
    pub fn find_base(&self, at: &Address) -> Locations {
        let mut places = self.shared.index.of_base(at.base);
        places.retain(|place| !place.is_pending());
        places
    }

    /// Whether the response of this identity is in the index, and written.
    pub fn holds_identity(&self, at: &Address, identity: u64) -> bool {
        self.shared.index.holds_tag(at.base, at.tag(identity))
    }

    /// Waits while others' reads wait for this disk, within a bound; for a thread that is no worker.
    pub fn give_way(&self) {
        let until = Instant::now() + WAY_MAX;
        while self.reads_waiting() > 0 && Instant::now() < until {
            std::thread::park_timeout(WAY_STEP);
        }
    }
}

/// How much of a record has to be read: all but the content itself.
fn wanted_bytes(header: &Header) -> usize {
    let list = match header.kind {
        Kind::Listing => header.content_bytes,
        Kind::Inline | Kind::Piece => 0,
    };
    let parts = [header.base_bytes, header.variant_bytes, header.head_bytes, list];
    HEADER_BYTES + parts.into_iter().map(|part| part as usize).sum::<usize>()
}

fn decode(header: &Header, bytes: Bytes) -> Option<RecordHead> {
    let mut rest = bytes.get(HEADER_BYTES..)?;
    let mut take = |length: u32| {
        let (part, behind) = rest.split_at_checked(length as usize)?;
        rest = behind;
        Some(part)
    };
    let key = take(header.base_bytes.checked_add(header.variant_bytes)?)?;
    let (base, variant) = key.split_at_checked(header.base_bytes as usize)?;
    let head = take(header.head_bytes)?;
    if crc(key) != header.key_crc || crc(head) != header.head_crc {
        return None;
    }
    let content_bytes = match header.kind {
        Kind::Inline => header.content_bytes.into(),
        Kind::Listing => {
            let list = take(header.content_bytes).filter(|list| crc(list) == header.content_crc)?;
            read_pieces(list)?.iter().map(|piece| u64::from(piece.length)).sum()
        }
        Kind::Piece => return None,
    };
    Some(RecordHead {
        base: bytes.slice_ref(base),
        variant: bytes.slice_ref(variant),
        number: header.number,
        identity: header.identity,
        head: bytes.slice_ref(head),
        content_bytes,
    })
}
