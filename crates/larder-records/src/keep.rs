//! What larder writes there.
//!
//! In: a response that memory has taken, under the lock of memory's shard. Out: its record in the queue, with the position of its
//! fetch in the fleet's log; nothing waits. Checksums, copies and compressed bodies are made by the writer when its turn has come, and the pieces of a long body are
//! written before the record that names them. What has no room in the queue is not shared.
//! Where a response has ended, or another has taken its place that is not shared, its record goes: it would be found again once memory
//! has nothing.
//! Without a lease nothing is written: nobody knows then what the fetch has missed.
//! No body is filled here while it arrives: what has no room in memory is not shared.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use larder_cache::StoredHead;
use larder_remote::{MadeValue, Offered};
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
            if why != NotShared::Part {
                // What lies there is older, and would be found once this one has gone from memory.
                self.end_all(entry.key);
            }
        }
    }

    /// What was purged is told by the log, and what took its place has its name.
    fn forget(&self, _key: &CacheKey, _identity: u64) {}

    fn end(&self, key: &CacheKey) {
        self.end_all(key);
    }

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

    fn write(self: &Arc<Self>, entry: &Entry<'_, StoredHead>, name: &Bytes) -> Result<(), NotShared> {
        let key = entry.key;
        let stays = self.is_fit(key, entry.head)?;
        if !entry.is_in_memory || entry.length > self.max_object() {
            return Err(NotShared::Length);
        }
        let position = self.standing.position_of(entry.number).ok_or(NotShared::Position)?;
        let server_now = self.standing.server_now().ok_or(NotShared::Position)?;
        let head = Bytes::from((entry.head_bytes)());
        if head.len() + key.bytes().len() > HEAD_MAX_BYTES {
            return Err(NotShared::Length);
        }
        let received = server_now.saturating_sub(entry.head.freshness.resident(self.clock.now()));
        let is_packed = self.packing.is_some() && shrinks(&entry.head.fields.map);
        let coding = if is_packed { Coding::Lz4 } else { Coding::None };
        let vary = entry.head.vary.names();
        let fields = vary.names().iter().map(http::HeaderName::as_str).collect::<Vec<_>>().join(",");
        let new = NewRecord {
            records: Arc::clone(self),
            key: key.clone(),
            name: name.clone(),
            record: Record {
                position,
                received,
                took: entry.took,
                writer: self.settings.member.clone().into(),
                head,
                coding,
                body: RecordBody::Inline(Bytes::new()),
            },
            chunks: entry.chunks.to_vec(),
            length: entry.length,
            stays,
            varies: (!vary.is_empty()).then_some(fields),
        };
        let bytes = usize::try_from(entry.length).map_err(|_| NotShared::Length)? + new.record.head.len();
        self.known.note_name(key, name);
        match self.servers.set_made(name, bytes, move || new.values()) {
            Offered::Queued => Ok(()),
            Offered::Failing | Offered::TooLarge | Offered::TooShort | Offered::Full => Err(NotShared::Queue),
        }
    }

    /// What lies there under a key is of no use any more. Where the server fails it stays, and is not used here.
    fn end_all(&self, key: &CacheKey) {
        let known = self.known.take(key);
        if known.is_empty() {
            return;
        }
        if let Some(now) = self.standing.server_now() {
            self.ended.note(key.full_hash(), now);
        }
        for (name, pieces) in known {
            self.servers.delete_if_up(&name);
            if let Some((id, count)) = pieces {
                self.delete_pieces(&name, id, count);
            }
        }
    }

    fn delete_pieces(&self, name: &Bytes, id: u128, count: usize) {
        for number in 0..count {
            self.servers.delete_if_up(&self.names.of_piece(name, id, number));
        }
    }
}

/// A response whose record is to be written. What takes the processor for long is done when its turn has come, by the writer.
struct NewRecord {
    records: Arc<Records>,
    key: CacheKey,
    name: Bytes,
    /// Without its body.
    record: Record,
    chunks: Vec<Bytes>,
    length: u64,
    stays: Duration,
    /// By which fields responses under the key vary, if they do.
    varies: Option<String>,
}

impl NewRecord {
    /// All that is written for it: pieces before the record that names them.
    fn values(self) -> Vec<MadeValue> {
        let (records, lifetime) = (&self.records, self.stays);
        let made = |name, value| MadeValue { name, value, lifetime };
        if records.ended.is_over(self.key.full_hash(), self.record.received) {
            return Vec::new();
        }
        let packing = records.packing.as_ref().filter(|_| self.record.coding == Coding::Lz4);
        let former = records.known.pieces(&self.key, &self.name);
        let (mut values, mut pieces) = (Vec::new(), None);
        let body = if self.length <= INLINE_MAX_BYTES as u64 {
            RecordBody::Inline(match self.chunks.as_slice() {
                [only] => only.clone(),
                chunks => chunks.concat().into(),
            })
        } else {
            let Some(cut) = self.pieces(former.as_ref()) else {
                records.refusals.note_not_shared(NotShared::Length);
                return Vec::new();
            };
            let (named, bodies) = cut;
            for (number, piece) in bodies.into_iter().enumerate() {
                let piece = packing.map_or(piece.clone(), |packing| packing.piece(piece));
                values.push(made(records.names.of_piece(&self.name, named.id, number), piece));
            }
            let body = RecordBody::Pieces { id: named.id, pieces: named.all.clone() };
            pieces = Some(named);
            body
        };
        let record = record::response(&self.key, &Record { body, ..self.record });
        let record = packing.map_or(record.clone(), |packing| packing.record(record));
        values.push(made(self.name.clone(), record));
        if let Some(fields) = &self.varies {
            let varies = record::varies(&self.key, fields);
            let lifetime = self.stays.max(VARIES_STAYS_MIN);
            values.push(MadeValue { name: records.names.of_key(&self.key), value: varies, lifetime });
        }
        let id = pieces.as_ref().map(|pieces| pieces.id);
        records.known.note(&self.key, &self.name, pieces);
        // Behind the record that names others.
        if let Some(former) = former.filter(|former| id != Some(former.id)) {
            records.delete_pieces(&self.name, former.id, former.all.len());
        }
        values
    }

    /// Cuts a body that has no room in the record itself. What was confirmed is written anew under its names, so that nothing is left over.
    fn pieces(&self, former: Option<&Pieces>) -> Option<(Pieces, Vec<Bytes>)> {
        let cut: Vec<Bytes> = pieces(&self.chunks).collect();
        let all = cut.iter().map(|piece| Piece::of(piece)).collect::<Option<Vec<Piece>>>()?;
        let body = (self.chunks.first().map_or(0, |chunk| chunk.as_ptr() as usize), self.length);
        let same = former.filter(|former| former.is_of(body, &all)).map(|former| former.id);
        let id = same.or_else(draw)?;
        Some((Pieces { id, all, body: Some(body) }, cut))
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
