//! From another program's memory into this one's: values that others write, for what memory has no fresh answer to.
//!
//! In: a request, its key, and a site's policy. Out: a copy of the value in memory's index, where the look-up finds it. A copy is
//! fresh for as long as the tier says, and has the number of the last invalidation when it was asked for.
//! One client per key asks at a time. Those who come meanwhile wait for it, and take what it brings: it came after they did, so
//! it is as new as any of them could ask for. They take its word that there is nothing, too, so that a crowd before an absent
//! value costs one question. Nobody waits longer than one question may take.
//! A copy whose value is not there any more goes. One whose server cannot be asked stays, stale, and may stand in for an
//! origin that fails.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use larder_cache::{CachePolicy, StoredHead};
use larder_http::message::RequestHead;
use larder_http::time::Now;
use larder_tier::outlook::RecordOutlook;
use larder_tier::{Asked, FetchedRecord, FoundValue, IsOfUse, Lead, Leading};
use tokio::time::{Instant, timeout_at};

use crate::key::CacheKey;
use crate::recall::Recalled;
use crate::store::Store;
use crate::stored::{PIECE_OVERHEAD_BYTES, StoredBody, StoredResponse};
use crate::tier::{HttpCaching, StoreTier};

/// A record whose time differs by less is what memory has: larders compare clocks once a second.
const SAME_WITHIN: Duration = Duration::from_millis(50);

/// Who fetches a response, of all larders that share it.
pub enum Led {
    /// This one, for as long as it keeps this.
    Mine(Box<dyn Lead>),
    /// Another one has: it is in memory.
    Found,
    /// Each for itself.
    Alone,
}

impl Store {
    /// Whether a tier is asked for an answer to `request` where memory has no fresh one.
    pub fn may_ask(&self, request: &RequestHead, policy: &CachePolicy) -> bool {
        self.anew().is_some_and(|(tier, _)| tier.may_ask(request, policy))
    }

    /// Asks that tier, and puts what it has into memory, if it is of use. `number` is that of the last invalidation at this moment or before, `now`
    /// the moment of the look that has found nothing fresh.
    ///
    /// # Cancel safety
    /// Dropped, nothing has happened, or what was found is in memory.
    pub async fn ask(
        &self,
        key: &CacheKey,
        (request, policy): (&RequestHead, &CachePolicy),
        (number, is_of_use): (u64, &IsOfUse<'_, StoredHead>),
        now: Now,
    ) -> Recalled {
        let Some((tier, gate)) = self.anew() else { return Recalled::Nothing };
        // A record that is no newer than what memory has would only take its place, and with it what is known of its origin.
        let stored = tier.holds_records().then(|| self.newest_for(key, request, now)).flatten();
        let is_of_use: &IsOfUse<'_, StoredHead> =
            &|head: &StoredHead, number| is_newer(head, stored) && is_of_use(head, number);
        let began = Instant::now();
        let until = began + tier.asks_within();
        let turn = gate.turn(key);
        let (mut turn, has_waited) = match turn.try_lock() {
            Ok(turn) => (turn, false),
            Err(_) => match timeout_at(until, turn.lock()).await {
                Ok(turn) => (turn, true),
                Err(_) => return Recalled::TooLate,
            },
        };
        let asked = match has_waited {
            false => tier.ask(key, request, policy, is_of_use).await,
            true if turn.found_at.is_some_and(|at| at >= began) && self.has_for(key, request, now) => {
                return Recalled::Something;
            }
            true if turn.empty_at.is_some_and(|at| at >= began) => return Recalled::Nothing,
            true => match timeout_at(until, tier.ask(key, request, policy, is_of_use)).await {
                Ok(asked) => asked,
                Err(_) => return Recalled::TooLate,
            },
        };
        match asked {
            Asked::Found(value) => {
                if self.keep_found(tier, key, *value, number) {
                    turn.found_at = Some(Instant::now());
                    return Recalled::Something;
                }
            }
            Asked::Absent => {
                let is_copy = |copy: &StoredResponse| copy.is_copy && copy.head.vary.selects(&request.fields);
                self.memory().discard(key, is_copy);
            }
            // Others may find it.
            Asked::Unfit => return Recalled::Nothing,
            Asked::Unusable => {}
        }
        turn.empty_at = Some(Instant::now());
        Recalled::Nothing
    }

    /// Asks for the right to fetch the response to `request` for all larders, or waits for one that has it. What that one has put there is
    /// in memory then, as for [`Self::ask`], and came after `stored`, the moment of what is to be replaced.
    ///
    /// # Cancel safety
    /// Dropped, nothing has happened, or what was found is in memory.
    pub async fn lead(
        &self,
        key: &CacheKey,
        request: &RequestHead,
        (number, stored): (u64, Option<Now>),
        is_of_use: &IsOfUse<'_, StoredHead>,
    ) -> Led {
        let Some((tier, _)) = self.anew().filter(|(tier, _)| tier.holds_records()) else { return Led::Alone };
        let is_of_use: &IsOfUse<'_, StoredHead> =
            &|head: &StoredHead, number| is_newer(head, stored) && is_of_use(head, number);
        match tier.lead(key, request, is_of_use).await {
            Leading::Mine(lead) => Led::Mine(lead),
            Leading::Found(value) => match self.keep_found(tier, key, *value, number) {
                true => Led::Found,
                false => Led::Alone,
            },
            Leading::Alone => Led::Alone,
        }
    }

    /// When the newest response arrived that memory has for such a request.
    fn newest_for(&self, key: &CacheKey, request: &RequestHead, now: Now) -> Option<Now> {
        let (there, _) = self.memory().responses(key, now.monotonic);
        let selected = there.iter().filter(|stored| stored.head.vary.selects(&request.fields));
        selected.map(|stored| stored.head.freshness.received).max_by_key(|received| received.monotonic)
    }

    /// Whether memory has something for such a request.
    fn has_for(&self, key: &CacheKey, request: &RequestHead, now: Now) -> bool {
        let (there, _) = self.memory().responses(key, now.monotonic);
        there.iter().any(|stored| stored.head.vary.selects(&request.fields))
    }

    /// Puts what was found into memory's index, unless something under its base was invalidated since it was asked for.
    fn keep_found(
        &self,
        tier: &Arc<StoreTier>,
        key: &CacheKey,
        value: FoundValue<HttpCaching>,
        number: u64,
    ) -> bool {
        let FoundValue { head, body, ticket, record } = value;
        let memory = self.memory();
        let length: u64 = body.iter().map(|piece| piece.len() as u64).sum();
        if length > memory.max_object() {
            return false;
        }
        let room = memory.reserve(StoredResponse::overhead_bytes(&head, key));
        let Some((room, body)) = room.zip(self.copied(&body, length)) else { return false };
        let (head, body) = (Arc::new(head), Arc::new(body));
        let found = match record {
            None => StoredResponse::copy(head, body, number, room),
            Some(FetchedRecord { number, took }) => {
                StoredResponse { took, ..StoredResponse::new(head, body, number, room) }
            }
        };
        let identity = found.identity();
        // Where something newer is there already, that is found.
        let is_current = std::cell::Cell::new(true);
        let valid = || {
            is_current.set(tier.is_current(key, ticket));
            is_current.get()
        };
        memory.insert(key, Arc::new(found), |other| other.identity() == identity, valid);
        is_current.get()
    }

    fn copied(&self, body: &[Bytes], length: u64) -> Option<StoredBody> {
        if length == 0 {
            return Some(StoredBody::empty());
        }
        let room = self.memory().reserve(length + PIECE_OVERHEAD_BYTES * body.len() as u64)?;
        // Each may be a slice of more.
        let pieces = body.iter().filter(|piece| !piece.is_empty());
        let pieces = pieces.map(|piece| Bytes::copy_from_slice(piece)).collect();
        Some(StoredBody::new(pieces, room).lendable(self.memory().cap()))
    }

    /// A purge has named a response in memory, by its tags or whatever else than its URL. What a tier holds under its base, and
    /// could bring back in its place, is not used either.
    pub fn disown(&self, key: &CacheKey, response: &StoredResponse) {
        let Some((tier, _)) = self.anew() else { return };
        if !response.is_disowned.swap(true, Ordering::Relaxed) {
            tier.disown(key);
        }
    }

    /// The same for a URL, whatever memory has of it.
    pub fn disown_base(&self, key: &CacheKey) {
        if let Some((tier, _)) = self.anew() {
            tier.disown(key);
        }
    }

    /// Whether it is asked only where a request would go to the origin.
    pub fn asks_for_records(&self) -> bool {
        self.anew().is_some_and(|(tier, _)| tier.holds_records())
    }

    /// What a tier has for `request` of what larders share, and how it stands to its server, for people. `None` where it has no such tier, or
    /// would not ask it.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn outlook(
        &self,
        key: &CacheKey,
        (request, policy): (&RequestHead, &CachePolicy),
        is_of_use: &IsOfUse<'_, StoredHead>,
    ) -> Option<RecordOutlook> {
        let (tier, _) = self.anew().filter(|(tier, _)| tier.may_ask(request, policy))?;
        tier.outlook(key, request, is_of_use).await
    }

    /// Whom it asks, in words.
    pub fn servers(&self) -> Vec<String> {
        self.anew().map(|(tier, _)| tier.servers()).unwrap_or_default()
    }

    /// Whom it asks for an answer to `request`, and by which name.
    pub fn server_of(&self, key: &CacheKey, request: &RequestHead) -> Option<String> {
        self.anew()?.0.server_of(key, request)
    }
}

/// Whether a response with this head arrived later than one that is there.
fn is_newer(head: &StoredHead, stored: Option<Now>) -> bool {
    stored
        .is_none_or(|stored| head.freshness.received.monotonic > stored.monotonic.saturating_add(SAME_WITHIN))
}

#[cfg(test)]
mod tests;
