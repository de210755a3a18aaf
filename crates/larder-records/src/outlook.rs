//! What people are told of the record for a request: where it lies, what it is, why it is not used, and who fetches it.
//!
//! In: a key and a request. Out: [`RecordOutlook`]. The record is read as for a request, by the same calls, with all pieces of its body, and
//! so is the name under which fetches are claimed; each of the two within the time limit. It is judged as for a request, too.
//! Nothing is claimed or written, nothing is counted among the records that were refused, and nothing of it counts as use here.
//! Where several things are in the way, the first is told.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use larder_cache::StoredHead;
use larder_fleet::Position;
use larder_http::message::RequestHead;
use larder_remote::{Failure, LookedUp, Unfit};
use larder_tier::outlook::{ClaimFacts, PlaceFacts, RecordFacts, RecordOutlook, ServerFacts};
use larder_tier::{CacheKey, HeldBack, IsOfUse};
use tokio::time::timeout;

use crate::Records;
use crate::claim::{Apart, Claimant};
use crate::find::{head, received};
use crate::record::{self, Found, Record, RecordBody};
use crate::refusals::Refusal;

/// The longest text of a record that is shown.
const TEXT_MAX_BYTES: usize = 256;

/// What was seen of a record.
struct Seen {
    name: Bytes,
    record: Option<RecordFacts>,
    unused: Option<HeldBack>,
}

impl Records {
    /// See the head of the file.
    pub(crate) async fn looked_over(
        &self,
        key: &CacheKey,
        request: &RequestHead,
        is_of_use: &IsOfUse<'_, StoredHead>,
    ) -> RecordOutlook {
        let own = self.names.of_key(key);
        let limit = self.settings.timeout;
        let seen = match timeout(limit, self.see((key, &own), request, is_of_use)).await {
            Ok(seen) => seen,
            Err(_) => Seen { name: own, record: None, unused: Some(failed(Failure::TimedOut)) },
        };
        let lease = self.names.of_lease(&seen.name);
        let value = |found: larder_remote::Found| Ok(found.body);
        let claimed = timeout(limit, self.servers.look_up(&lease, value)).await;
        let claim = self.claim_facts(claimed.unwrap_or(LookedUp::Failed(Failure::TimedOut)));
        let server = self.servers.outlook(&seen.name).map(|server| ServerFacts {
            told: server.told,
            slot: server.slot,
            connections: server.connections,
            probe_in: server.probe_in,
        });
        RecordOutlook {
            name: text(&seen.name),
            server,
            record: seen.record,
            unused: seen.unused,
            claim,
            place: self.standing.place(),
        }
    }

    async fn see(
        &self,
        (key, own): (&CacheKey, &Bytes),
        request: &RequestHead,
        is_of_use: &IsOfUse<'_, StoredHead>,
    ) -> Seen {
        let nothing = |name: &Bytes, why| Seen { name: name.clone(), record: None, unused: Some(why) };
        let (name, record, names) = match self.look_at(key, own).await {
            Ok(Found::Response(record)) => (own.clone(), record, Bytes::new()),
            Ok(Found::Varies(names)) => {
                let Some(name) = self.name_of_variant(key, &names, request) else {
                    return nothing(own, refused(Refusal::Damaged));
                };
                match self.look_at(key, &name).await {
                    Ok(Found::Response(record)) => (name, record, names),
                    Ok(Found::Varies(_)) => return nothing(&name, refused(Refusal::Damaged)),
                    Err(why) => return nothing(&name, why),
                }
            }
            Err(why) => return nothing(own, why),
        };
        let facts = RecordFacts { varies_by: text(&names), ..self.facts(key, &record) };
        let unused = match self.judged(key, &record, is_of_use) {
            Ok(_) => self.body_of(&name, &record).await.err().map(refused),
            Err(Refusal::Position) => Some(misplaced(record.position, self.standing.place().as_ref())),
            Err(refusal) => Some(refused(refusal)),
        };
        Seen { name, record: Some(facts), unused }
    }

    /// What lies under a name, or why there is nothing to read.
    async fn look_at(&self, key: &CacheKey, name: &Bytes) -> Result<Found, HeldBack> {
        let mut refusal = None;
        let read = |found: larder_remote::Found| {
            record::read(key, &found.body).map_err(|why| {
                refusal = Some(why);
                Unfit::Malformed
            })
        };
        match self.servers.look_up(name, read).await {
            LookedUp::Found(found) => Ok(found),
            LookedUp::Absent => Err(told("absent", "Nothing lies there.")),
            LookedUp::Unfit(_) => Err(refused(refusal.unwrap_or(Refusal::Damaged))),
            LookedUp::Skipped => Err(failed(Failure::Skipped)),
            LookedUp::Failed(failure) => Err(failed(failure)),
        }
    }

    fn facts(&self, key: &CacheKey, record: &Record) -> RecordFacts {
        let (now, server_now) = (self.clock.now(), self.standing.server_now());
        let head =
            server_now.and_then(|server_now| head(key, record, now, received(record, now, server_now)));
        let (body_bytes, pieces) = match &record.body {
            RecordBody::Inline(body) => (body.len() as u64, 0),
            RecordBody::Pieces { pieces, .. } => {
                (pieces.iter().map(|piece| u64::from(piece.length)).sum(), pieces.len())
            }
        };
        RecordFacts {
            writer: text(&record.writer),
            epoch: record.position.epoch.0,
            sequence: record.position.sequence,
            age: server_now.map(|server_now| server_now.saturating_sub(record.received)),
            status: head.map(|head| head.status.as_u16()),
            body_bytes,
            pieces,
            varies_by: String::new(),
        }
    }

    fn claim_facts(&self, claimed: LookedUp<Bytes>) -> ClaimFacts {
        let (state, member, is_own) = match claimed {
            LookedUp::Found(value) => match Claimant::of(&value) {
                Claimant::Member(name) => {
                    let is_own = value == self.holder;
                    (told("held", "A larder fetches it for all."), Some(text(name.as_bytes())), is_own)
                }
                Claimant::Each(why) => (of_mark(why), None, false),
            },
            LookedUp::Absent => (told("free", "No larder fetches it for all at the moment."), None, false),
            LookedUp::Unfit(_) => (refused(Refusal::Damaged), None, false),
            LookedUp::Skipped => (failed(Failure::Skipped), None, false),
            LookedUp::Failed(failure) => (failed(failure), None, false),
        };
        ClaimFacts { state, member, is_own }
    }
}

/// Bytes of another larder, within a bound.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..TEXT_MAX_BYTES).unwrap_or(bytes)).into_owned()
}

const fn told(token: &'static str, sentence: &'static str) -> HeldBack {
    HeldBack { token, sentence: Cow::Borrowed(sentence) }
}

fn of_mark(why: Option<Apart>) -> HeldBack {
    match why {
        Some(Apart::NotShared) => {
            told("no", "For some seconds each larder fetches for itself: what came last could not be shared.")
        }
        Some(Apart::Long) => told(
            "big",
            "For some seconds each larder fetches for itself: what came last is long, or did not end soon.",
        ),
        Some(Apart::Failed) => {
            told("failed", "For two seconds each larder asks the origin itself: it has failed.")
        }
        None => told("each", "For some seconds each larder fetches for itself."),
    }
}

/// Why the server had no answer.
fn failed(failure: Failure) -> HeldBack {
    match failure {
        Failure::Busy => told("redis-busy", "As many questions wait for the server as may."),
        Failure::TimedOut => told("redis-timeout", "The server had no answer in time."),
        Failure::Skipped => {
            told("redis-down", "The server has failed, and is left alone until a probe finds it well.")
        }
        Failure::Connect | Failure::Closed | Failure::Moved => {
            told("redis-down", "There is no connection to the server.")
        }
        Failure::Refused => {
            told("redis-refused", "The server says that it cannot: a message tells its words.")
        }
        Failure::Malformed | Failure::TooLarge => {
            told("damaged", "The server has something there that is no record.")
        }
    }
}

fn refused(refusal: Refusal) -> HeldBack {
    HeldBack { token: refusal.token(), sentence: Cow::Borrowed(refusal.sentence()) }
}

/// Why a position has no number here.
fn misplaced(position: Position, place: Option<&PlaceFacts>) -> HeldBack {
    let known = place.filter(|place| place.left != Some(Duration::ZERO)).and_then(|place| place.position);
    match known {
        None => told("no-lease", "This larder has no lease in its fleet, so no record is used."),
        Some((epoch, _)) if epoch != position.epoch.0 => {
            told("other-epoch", "It was fetched when the fleet had another log of purges.")
        }
        Some(_) => {
            told("below-floor", "It was fetched before what this larder knows of the fleet's log of purges.")
        }
    }
}

#[cfg(test)]
mod tests {
    use larder_fleet::Epoch;

    use super::*;

    #[test]
    fn a_position_without_a_number_has_one_of_three_reasons() {
        let position = Position { epoch: Epoch(7), sequence: 3 };
        let of = |position, left| PlaceFacts { member: "web-1".to_owned(), position, left };
        let (some, none) = (Some(Duration::from_secs(1)), Some(Duration::ZERO));
        for (place, token) in [
            (None, "no-lease"),
            (Some(of(None, some)), "no-lease"),
            (Some(of(Some((7, 9)), none)), "no-lease"),
            (Some(of(Some((8, 9)), some)), "other-epoch"),
            (Some(of(Some((7, 9)), None)), "below-floor"),
        ] {
            assert_eq!(misplaced(position, place.as_ref()).token, token, "{place:?}");
        }
    }
}
