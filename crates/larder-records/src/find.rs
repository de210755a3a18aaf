//! A record for a request.
//!
//! In: a key, and a request. Out: the response that some larder of the fleet has fetched, with the number by which it is judged here; or
//! nothing. Where responses vary, what lies under the key says by which fields, and the record of this request lies under
//! their values: two calls. The pieces of a long body follow, four at a time. All of it together takes no longer than the time limit.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::header::VARY;
use http::{HeaderMap, HeaderValue, Method};
use larder_cache::{CachePolicy, StoredHead, VaryNames};
use larder_http::message::RequestHead;
use larder_http::time::Now;
use larder_remote::{Failure, LookedUp, Unfit};
use larder_tier::fill::BoxFuture;
use larder_tier::outlook::RecordOutlook;
use larder_tier::shared_page::{SharedBounds, SharedPageOf};
use larder_tier::{Ask, Asked, CacheKey, FetchedRecord, Find, FoundValue, IsOfUse, Leading, TargetUri};
use tokio::time::timeout;

use crate::coding::Coding;
use crate::known::Pieces;
use crate::record::{self, Found, Piece, Record, RecordBody};
use crate::refusals::Refusal;
use crate::{HttpCaching, Records};

/// How far a record may be ahead of the server's clock: larders compare that with theirs once a second.
const AHEAD_MAX: Duration = Duration::from_secs(2);
/// Pieces that are asked for at once.
const PIECES_AT_ONCE: usize = 4;

/// The name of a record, the id of its pieces, and how they may lie there.
type OfRecord<'a> = (&'a [u8], u128, Coding);

impl Find<HttpCaching> for Records {
    /// A hit in memory never reaches Redis, which would evict first what is used most. So Redis is told, about once a minute for each.
    fn note_use_at(&self, base: &[u8], variant: &[u8]) {
        let key = CacheKey::of_levels(base, variant);
        let known = self.known.all(&key);
        if known.is_empty() {
            return;
        }
        // By which fields the others vary, where they do.
        self.servers.touch(&self.names.of_key(&key));
        for (name, pieces) in known {
            if name != self.names.of_key(&key) {
                self.servers.touch(&name);
            }
            if let Some((id, count)) = pieces {
                (0..count).for_each(|number| self.servers.touch(&self.names.of_piece(&name, id, number)));
            }
        }
    }
}

impl Ask<HttpCaching> for Records {
    fn is_asked_anew(&self) -> bool {
        true
    }

    fn holds_records(&self) -> bool {
        true
    }

    fn may_ask(&self, request: &RequestHead, policy: &CachePolicy) -> bool {
        matches!(request.method, Method::GET | Method::HEAD) && !policy.has_credentials(&request.fields)
    }

    fn asks_within(&self) -> Duration {
        self.settings.timeout
    }

    fn ask<'a>(
        &'a self,
        key: &'a CacheKey,
        request: &'a RequestHead,
        _policy: &'a CachePolicy,
        is_of_use: &'a IsOfUse<'a, StoredHead>,
    ) -> BoxFuture<'a, Asked<HttpCaching>> {
        Box::pin(async move {
            let found = timeout(self.settings.timeout, self.find(key, request, is_of_use)).await;
            if found.is_err() {
                self.late.note();
            }
            match found.ok().flatten() {
                Some(value) => Asked::Found(Box::new(value)),
                // What memory has is judged by its own age, whatever lies there.
                None => Asked::Unusable,
            }
        })
    }

    fn lead<'a>(
        &'a self,
        key: &'a CacheKey,
        request: &'a RequestHead,
        is_of_use: &'a IsOfUse<'a, StoredHead>,
    ) -> BoxFuture<'a, Leading<HttpCaching>> {
        Box::pin(self.lead_or_wait(key, request, is_of_use))
    }

    fn outlook<'a>(
        &'a self,
        key: &'a CacheKey,
        request: &'a RequestHead,
        is_of_use: &'a IsOfUse<'a, StoredHead>,
    ) -> BoxFuture<'a, Option<RecordOutlook>> {
        Box::pin(async move { Some(self.looked_over(key, request, is_of_use).await) })
    }

    fn shared_page<'a>(
        &'a self,
        from: Option<&'a str>,
        bounds: SharedBounds,
        wanted: &'a (dyn Fn(&[u8]) -> bool + Send + Sync),
    ) -> BoxFuture<'a, SharedPageOf<StoredHead>> {
        Box::pin(async move { Some(self.listed(from, bounds, wanted).await) })
    }

    /// Whether nothing under the base was removed that the fetch of what has this number may have missed.
    fn is_current(&self, key: &CacheKey, ticket: u64) -> bool {
        self.removed.is_newer(key.hash(), ticket)
    }

    fn servers(&self) -> Vec<String> {
        self.servers.told()
    }

    fn server_of(&self, key: &CacheKey, _request: &RequestHead) -> Option<String> {
        self.servers.told_of(&self.names.of_key(key))
    }
}

impl Records {
    async fn find(
        &self,
        key: &CacheKey,
        request: &RequestHead,
        is_of_use: &IsOfUse<'_, StoredHead>,
    ) -> Option<FoundValue<HttpCaching>> {
        let found = self.found(key, request, is_of_use).await;
        found.map_err(|refusal| self.refusals.note(refusal)).ok().flatten()
    }

    async fn found(
        &self,
        key: &CacheKey,
        request: &RequestHead,
        is_of_use: &IsOfUse<'_, StoredHead>,
    ) -> Result<Option<FoundValue<HttpCaching>>, Refusal> {
        let mut name = self.names.of_key(key);
        let mut found = self.read(key, &name).await?;
        if let Some(Found::Varies(names)) = &found {
            let Some(of_variant) = self.name_of_variant(key, names, request) else { return Ok(None) };
            name = of_variant;
            found = self.read(key, &name).await?;
        }
        match found {
            Some(Found::Response(record)) => self.used((key, &name), &record, is_of_use).await.map(Some),
            Some(Found::Varies(_)) | None => Ok(None),
        }
    }

    /// The name of the record for a request, where responses under the key vary by these fields.
    pub(crate) fn name_of_variant(
        &self,
        key: &CacheKey,
        names: &Bytes,
        request: &RequestHead,
    ) -> Option<Bytes> {
        let values = vary_names(names)?.secondary(&request.fields);
        Some(self.names.of_variant(key, values.as_bytes()))
    }

    /// What lies under a name, if it is of `key`.
    ///
    /// # Errors
    /// Something else lies there.
    pub(crate) async fn read(&self, key: &CacheKey, name: &Bytes) -> Result<Option<Found>, Refusal> {
        let mut refused = None;
        let read = |found: larder_remote::Found| {
            record::read(key, &found.body).map_err(|refusal| {
                refused = Some(refusal);
                Unfit::Malformed
            })
        };
        let looked_up = self.servers.look_up(name, read).await;
        match (looked_up, refused) {
            (_, Some(refusal)) => Err(refusal),
            (LookedUp::Found(found), None) => Ok(Some(found)),
            (LookedUp::Failed(Failure::TimedOut), None) => {
                self.late.note();
                Ok(None)
            }
            (LookedUp::Absent | LookedUp::Unfit(_) | LookedUp::Skipped | LookedUp::Failed(_), None) => {
                Ok(None)
            }
        }
    }

    /// The response that a record is, if it may be used here.
    pub(crate) async fn used(
        &self,
        (key, name): (&CacheKey, &Bytes),
        record: &Record,
        is_of_use: &IsOfUse<'_, StoredHead>,
    ) -> Result<FoundValue<HttpCaching>, Refusal> {
        let (head, number) = self.judged(key, record, is_of_use)?;
        let body = self.body_of(name, record).await?;
        self.note_found((key, name), &record.body);
        let fetched = FetchedRecord { number, took: record.took };
        Ok(FoundValue { head, body, ticket: number, record: Some(fetched) })
    }

    /// The head of a record, and the number by which it is judged here, if it may be used.
    pub(crate) fn judged(
        &self,
        key: &CacheKey,
        record: &Record,
        is_of_use: &IsOfUse<'_, StoredHead>,
    ) -> Result<(StoredHead, u64), Refusal> {
        // Before its body is fetched. That it is still so when it is in memory is seen there.
        let number = self.standing.number_of(record.position).ok_or(Refusal::Position)?;
        let is_over = self.ended.is_over(key.full_hash(), record.received);
        if is_over || !self.removed.is_newer(key.hash(), number) {
            return Err(Refusal::Invalidated);
        }
        let now = self.clock.now();
        let server_now = self.standing.server_now().ok_or(Refusal::Clock)?;
        let is_ahead = record.received > server_now.saturating_add(AHEAD_MAX);
        if is_ahead || record.received <= self.standing.clock_set_back_at() {
            // The server's clock was set back: nobody knows how old it is.
            return Err(Refusal::Clock);
        }
        let received = received(record, now, server_now);
        let head = head(key, record, now, received).ok_or(Refusal::Damaged)?;
        if !is_of_use(&head, number) {
            return Err(Refusal::Invalidated);
        }
        Ok((head, number))
    }

    /// The whole body of a record, which has this name.
    pub(crate) async fn body_of(&self, name: &Bytes, record: &Record) -> Result<Vec<Bytes>, Refusal> {
        match &record.body {
            RecordBody::Inline(body) => Ok(vec![body.clone()]),
            RecordBody::Pieces { id, pieces } => self.pieces((name, *id, record.coding), pieces).await,
        }
    }

    /// Remembers what lies under a name, unless this larder has written it.
    fn note_found(&self, (key, name): (&CacheKey, &Bytes), body: &RecordBody) {
        let found = match body {
            RecordBody::Inline(_) => None,
            RecordBody::Pieces { id, pieces } => Some(Pieces { id: *id, all: pieces.clone(), body: None }),
        };
        let known = self.known.pieces(key, name);
        if known.as_ref().map(|known| known.id) != found.as_ref().map(|found| found.id) || known.is_none() {
            self.known.note(key, name, found);
        }
    }

    async fn pieces(&self, of: OfRecord<'_>, pieces: &[Piece]) -> Result<Vec<Bytes>, Refusal> {
        let total: u64 = pieces.iter().map(|piece| u64::from(piece.length)).sum();
        if total > self.max_object() {
            return Err(Refusal::Incomplete);
        }
        let _room = self.reading.room(total).ok_or(Refusal::Busy)?;
        let mut read = Vec::with_capacity(pieces.len());
        let numbered: Vec<(usize, Piece)> = pieces.iter().copied().enumerate().collect();
        for some in numbered.chunks(PIECES_AT_ONCE) {
            let some = some.iter().map(|(number, piece)| self.piece(of, *number, *piece));
            for piece in join_all(some).await {
                read.push(piece?);
            }
        }
        Ok(read)
    }

    async fn piece(
        &self,
        (record, id, coding): OfRecord<'_>,
        number: usize,
        piece: Piece,
    ) -> Result<Bytes, Refusal> {
        let read = |found: larder_remote::Found| piece.open(found.body, coding).ok_or(Unfit::Malformed);
        match self.servers.look_up(&self.names.of_piece(record, id, number), read).await {
            LookedUp::Found(piece) => Ok(piece),
            LookedUp::Unfit(_) => Err(Refusal::Damaged),
            LookedUp::Absent | LookedUp::Skipped | LookedUp::Failed(_) => Err(Refusal::Incomplete),
        }
    }
}

/// The names of fields, as a record has them.
fn vary_names(names: &Bytes) -> Option<VaryNames> {
    let mut fields = HeaderMap::new();
    fields.insert(VARY, HeaderValue::from_maybe_shared(names.clone()).ok()?);
    VaryNames::of(&fields)
}

/// When the head of a record arrived, on this larder's clocks. `None`: before their beginning.
pub(crate) fn received(record: &Record, now: Now, server_now: Duration) -> Option<Now> {
    // What is from the future by a little was received now.
    let age = server_now.saturating_sub(record.received);
    let age_ms = u64::try_from(age.as_millis()).ok()?;
    Some(Now {
        wall: larder_http::time::WallTime(now.wall.0.checked_sub(age_ms)?),
        monotonic: now.monotonic.checked_sub(age)?,
    })
}

pub(crate) fn head(key: &CacheKey, record: &Record, now: Now, received: Option<Now>) -> Option<StoredHead> {
    let uri = TargetUri::of_key(key)?;
    let authority = Bytes::copy_from_slice(uri.authority.as_bytes());
    let authority = larder_http::authority::Authority::parse(authority, uri.scheme).ok()?;
    StoredHead::from_bytes_received(&record.head, now, |_| received, (uri.scheme, &authority)).ok()
}
