//! What larder writes there.
//!
//! In: a response that memory has taken, under the lock of memory's shard. Out: its record in the queue, with the position of its
//! fetch in the fleet's log; nothing waits. The pieces of a long body are queued before the record that names them. Where one has no
//! room, the record is not written, and the pieces go when their time is over.
//! Where bodies are compressed, the thread that writes does it: here a lock is held.
//! Without a lease nothing is written: nobody knows then what the fetch has missed.
//! No body is filled here while it arrives: what has no room in memory is not shared.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use larder_cache::StoredHead;
use larder_remote::{Offered, Pack};
use larder_tier::{CacheKey, Entry, Keep};

use crate::coding::{Coding, shrinks};
use crate::known::Pieces;
use crate::random::draw;
use crate::record::{self, INLINE_MAX_BYTES, PART_MAX_BYTES, PIECE_MAX_BYTES, Piece, Record, RecordBody};
use crate::refusals::NotShared;
use crate::settings::LIFETIME_MIN;
use crate::{HttpCaching, Records};

/// The longest that anything stays there.
const STAYS_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long it is known by which fields responses vary, at least.
const VARIES_STAYS_MIN: Duration = Duration::from_secs(24 * 3600);
/// A head and a key that are longer are not shared.
const HEAD_MAX_BYTES: usize = PART_MAX_BYTES - INLINE_MAX_BYTES - 4096;
/// A chunk that is shorter is put together with its neighbours.
const CHUNK_MIN_BYTES: usize = 64 << 10;

impl Keep<HttpCaching> for Records {
    fn put(self: Arc<Self>, entry: &Entry<'_, StoredHead>) {
        let varies = !entry.head.vary.names().is_empty();
        let own = self.names.of_key(entry.key);
        let name = match varies {
            true => self.names.of_variant(entry.key, entry.head.vary.key().as_bytes()),
            false => own.clone(),
        };
        let written = self.write(entry, &name);
        // Who leads may have begun when it was not known yet that the response varies.
        self.leading.tell(&self.names.of_lease(&name), written.is_ok());
        if varies {
            self.leading.tell(&self.names.of_lease(&own), written.is_ok());
        }
        if let Err(why) = written {
            self.refusals.note_not_shared(why);
        }
    }

    /// What is not to be used is told by the log, and what took its place has its name.
    fn forget(&self, _key: &CacheKey, _identity: u64) {}

    fn discard(&self, key: &CacheKey, goes: &dyn Fn(Option<&larder_tier::Memo>) -> bool) {
        if !key.is_of_parts() && goes(None) {
            self.servers.delete_if_up(&self.names.of_key(key));
        }
    }
}

impl Records {
    /// How long the record of a response with this head stays, if there is to be one.
    ///
    /// # Errors
    /// There is not.
    pub(crate) fn is_fit(&self, key: &CacheKey, head: &StoredHead) -> Result<Duration, NotShared> {
        if head.part.is_some() || key.is_of_parts() {
            return Err(NotShared::Part);
        }
        let freshness = &head.freshness;
        let left = freshness.remaining(self.clock.now());
        // By the lifetime that it was given: a second is over soon.
        if freshness.no_cache || left.is_zero() || freshness.lifetime < LIFETIME_MIN {
            return Err(NotShared::Lifetime);
        }
        Ok(left.saturating_add(head.stale.longest_window()).clamp(LIFETIME_MIN, STAYS_MAX))
    }

    fn write(&self, entry: &Entry<'_, StoredHead>, name: &Bytes) -> Result<(), NotShared> {
        let key = entry.key;
        let stays = self.is_fit(key, entry.head)?;
        if !entry.is_in_memory || entry.length > self.settings.max_object {
            return Err(NotShared::Length);
        }
        let position = self.standing.position_of(entry.number).ok_or(NotShared::Position)?;
        let server_now = self.standing.server_now().ok_or(NotShared::Position)?;
        let head = Bytes::from((entry.head_bytes)());
        if head.len() + key.bytes().len() > HEAD_MAX_BYTES {
            return Err(NotShared::Length);
        }
        let received = server_now.saturating_sub(entry.head.freshness.resident(self.clock.now()));
        let packing = self.packing.as_ref().filter(|_| shrinks(&entry.head.fields.map));
        let coding = if packing.is_some() { Coding::Lz4 } else { Coding::None };
        let former = self.known.pieces(key, name);
        let pack = packing.map(|packing| &packing.piece);
        let pieces = self.write_pieces((name, entry), former.as_ref(), stays, pack)?;
        let body = match &pieces {
            Some(Pieces { id, all, .. }) => RecordBody::Pieces { id: *id, pieces: all.clone() },
            None => RecordBody::Inline(match entry.chunks {
                [only] => only.clone(),
                chunks => chunks.concat().into(),
            }),
        };
        let writer = self.settings.member.clone().into();
        let record = Record { position, received, took: entry.took, writer, head, coding, body };
        let pack = packing.map(|packing| &packing.record);
        self.queue(name, record::response(key, &record), stays, pack)?;
        let id = pieces.as_ref().map(|pieces| pieces.id);
        self.known.note(key, name, pieces);
        // Behind the record that names others.
        if let Some(former) = former.filter(|former| id != Some(former.id)) {
            for number in 0..former.all.len() {
                self.servers.delete_if_up(&self.names.of_piece(name, former.id, number));
            }
        }
        let vary = &entry.head.vary;
        if vary.names().is_empty() {
            return Ok(());
        }
        let fields: Vec<&str> = vary.names().names().iter().map(http::HeaderName::as_str).collect();
        let varies = record::varies(key, &fields.join(","));
        self.queue(&self.names.of_key(key), varies, stays.max(VARIES_STAYS_MIN), None)
    }

    fn queue(
        &self,
        name: &Bytes,
        value: Bytes,
        stays: Duration,
        pack: Option<&Pack>,
    ) -> Result<(), NotShared> {
        match self.servers.set_packed(name, value, stays, pack) {
            Offered::Queued => Ok(()),
            Offered::Failing | Offered::TooLarge | Offered::TooShort | Offered::Full => Err(NotShared::Queue),
        }
    }

    /// Writes the pieces of a body that is not in the record itself. What was confirmed is written anew under its names, so that nothing is
    /// left over.
    fn write_pieces(
        &self,
        (name, entry): (&Bytes, &Entry<'_, StoredHead>),
        former: Option<&Pieces>,
        stays: Duration,
        pack: Option<&Pack>,
    ) -> Result<Option<Pieces>, NotShared> {
        if entry.length <= INLINE_MAX_BYTES as u64 {
            return Ok(None);
        }
        let cut: Vec<Bytes> = pieces(entry.chunks).collect();
        let all: Option<Vec<Piece>> = cut.iter().map(|piece| Piece::of(piece)).collect();
        let all = all.ok_or(NotShared::Length)?;
        let body = (entry.chunks.first().map_or(0, |chunk| chunk.as_ptr() as usize), entry.length);
        let same = former.filter(|former| former.is_of(body, &all)).map(|former| former.id);
        let id = same.or_else(draw).ok_or(NotShared::Queue)?;
        for (number, piece) in cut.into_iter().enumerate() {
            self.queue(&self.names.of_piece(name, id, number), piece, stays, pack)?;
        }
        Ok(Some(Pieces { id, all, body: Some(body) }))
    }
}

/// A body in pieces: none is longer than [`PIECE_MAX_BYTES`], and few are short.
fn pieces(chunks: &[Bytes]) -> impl Iterator<Item = Bytes> {
    let mut rest = chunks.iter().flat_map(|chunk| {
        let parts = chunk.len().div_ceil(PIECE_MAX_BYTES);
        (0..parts).map(move |part| {
            let start = part * PIECE_MAX_BYTES;
            chunk.slice(start..chunk.len().min(start + PIECE_MAX_BYTES))
        })
    });
    let mut next = None;
    std::iter::from_fn(move || {
        let first = next.take().or_else(|| rest.next())?;
        if first.len() >= CHUNK_MIN_BYTES {
            return Some(first);
        }
        let mut joined = first.to_vec();
        for part in rest.by_ref() {
            if joined.len() + part.len() > PIECE_MAX_BYTES {
                next = Some(part);
                break;
            }
            joined.extend_from_slice(&part);
        }
        Some(joined.into())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_are_the_body_and_none_is_too_long(lengths in proptest::collection::vec(0usize..700_000, 0..8)) {
            let chunks: Vec<Bytes> = lengths.iter().map(|length| Bytes::from(vec![*length as u8; *length])).collect();
            let pieces: Vec<Bytes> = pieces(&chunks).collect();
            prop_assert_eq!(pieces.concat(), chunks.concat());
            prop_assert!(pieces.iter().all(|piece| (1..=PIECE_MAX_BYTES).contains(&piece.len())));
            let total: usize = lengths.iter().sum();
            prop_assert!(pieces.len() <= chunks.len() + total / PIECE_MAX_BYTES + 1);
        }
    }
}
