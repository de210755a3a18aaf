//! What a store asks of a tier whose content others write at any moment: values in another program's memory.
//!
//! In: a request, as a site's policy judges it. Out: a value that answers it, or why there is none. Nothing here knows what lies
//! there. So such a tier is asked for whatever memory has no fresh answer to, before the origin is, and what it brings is a
//! copy, which memory uses for a short while. Between the question and its answer something may be invalidated: a ticket
//! tells that.
//! Most tiers have nothing of the kind, and take every default.

use std::time::Duration;

use bytes::Bytes;
use larder_http::message::RequestHead;

use crate::fill::BoxFuture;
use crate::key::CacheKey;
use crate::outlook::RecordOutlook;
use crate::shared_page::{SharedBounds, SharedPageOf};
use crate::vocabulary::Vocabulary;

/// Whether a response with a head, which counts here as fetched after a number, is of use: nothing that was invalidated since ends it.
pub type IsOfUse<'a, H> = dyn Fn(&H, u64) -> bool + Send + Sync + 'a;

/// Values that others write.
pub trait Ask<V: Vocabulary> {
    /// Whether it is such a tier. Only [`ask`](Self::ask) finds what lies there.
    fn is_asked_anew(&self) -> bool {
        false
    }

    /// Whether what it has are responses that larders have fetched. Then it is asked only where a request would go to the origin: what may
    /// be used at once is used, and where a mark tells that nothing can be shared, nothing is asked.
    fn holds_records(&self) -> bool {
        false
    }

    /// Whether it is asked at all for an answer to `request` at a site with this policy. Never waits.
    fn may_ask(&self, _request: &RequestHead, _policy: &V::Policy) -> bool {
        false
    }

    /// The longest that one call of [`ask`](Self::ask) takes.
    fn asks_within(&self) -> Duration {
        Duration::ZERO
    }

    /// Asks it for an answer to `request`, which has this key, as a site's policy judges it. A response that some larder has fetched is
    /// answered only if it is of use.
    ///
    /// # Cancel safety
    /// Dropped, what comes is for nobody.
    fn ask<'a>(
        &'a self,
        _key: &'a CacheKey,
        _request: &'a RequestHead,
        _policy: &'a V::Policy,
        _is_of_use: &'a IsOfUse<'a, V::Head>,
    ) -> BoxFuture<'a, Asked<V>> {
        Box::pin(std::future::ready(Asked::Absent))
    }

    /// Asks that of all larders that write there this one fetches the response to `request`, or waits for the one that does. `Alone` where
    /// no larder is kept from fetching. A response that is found is of use.
    ///
    /// # Cancel safety
    /// Dropped, another may fetch it after a short while.
    fn lead<'a>(
        &'a self,
        _key: &'a CacheKey,
        _request: &'a RequestHead,
        _is_of_use: &'a IsOfUse<'a, V::Head>,
    ) -> BoxFuture<'a, Leading<V>> {
        Box::pin(std::future::ready(Leading::Alone))
    }

    /// What it has for `request`, and how it stands to its server, for people. Nothing is claimed, and nothing of it counts as use.
    ///
    /// # Cancel safety
    /// Dropped, what comes is for nobody.
    fn outlook<'a>(
        &'a self,
        _key: &'a CacheKey,
        _request: &'a RequestHead,
        _is_of_use: &'a IsOfUse<'a, V::Head>,
    ) -> BoxFuture<'a, Option<RecordOutlook>> {
        Box::pin(std::future::ready(None))
    }

    /// The next responses that larders share in it, for people. Nothing of it counts as use here. `None`: it has none.
    ///
    /// # Cancel safety
    /// Dropped, what comes is for nobody.
    fn shared_page<'a>(
        &'a self,
        _from: Option<&'a str>,
        _bounds: SharedBounds,
        _wanted: &'a (dyn Fn(&[u8]) -> bool + Send + Sync),
    ) -> BoxFuture<'a, SharedPageOf<V::Head>> {
        Box::pin(std::future::ready(None))
    }

    /// Whether nothing under the base of `key` was invalidated since what has this ticket was asked for. Under the lock of a
    /// shard of the memory.
    fn is_current(&self, _key: &CacheKey, _ticket: u64) -> bool {
        true
    }

    /// A purge has named what memory has under `key`, and so what lies there under its base, which came from it or will be found in
    /// its place. Nothing of that is used before it is gone.
    fn disown(&self, _key: &CacheKey) {}

    /// Whom it asks, in words.
    fn servers(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whom it asks for an answer to `request`, and by which name, in words.
    fn server_of(&self, _key: &CacheKey, _request: &RequestHead) -> Option<String> {
        None
    }
}

/// What asking came to.
pub enum Asked<V: Vocabulary> {
    /// A value that answers the request.
    Found(Box<FoundValue<V>>),
    /// There is none. What was found of it before is not there any more.
    Absent,
    /// There is one, and not for this request.
    Unfit,
    /// None can be had at this moment, whoever asks.
    Unusable,
}

/// Who fetches a response, of all larders that write to a tier.
pub enum Leading<V: Vocabulary> {
    /// This one. The others wait for as long as this is kept.
    Mine(Box<dyn Lead>),
    /// Another one has put it there.
    Found(Box<FoundValue<V>>),
    /// Each for itself.
    Alone,
}

/// The right to fetch a response for all larders. Dropped, the others look for what was written, or fetch it themselves.
pub trait Lead: Send + Sync {
    /// A head has come that may be stored, with a lifetime of so much and a body of this length where that is known.
    fn sees_head(&self, lifetime: Duration, length: Option<u64>);

    /// The origin has failed.
    fn fails(&self);

    /// A purge came meanwhile that what comes does not outlast.
    fn is_overtaken(&self);

    /// What comes is for nobody else: the others fetch it for themselves from now on, for a while.
    fn is_not_shared(&self);
}

/// A value that was found, as the response that it stands for.
pub struct FoundValue<V: Vocabulary> {
    /// Its head.
    pub head: V::Head,
    /// The pieces of its body.
    pub body: Vec<Bytes>,
    /// What [`is_current`](Ask::is_current) compares.
    pub ticket: u64,
    /// How it was fetched, where it is no copy of another program's value but a response that some larder has fetched.
    pub record: Option<FetchedRecord>,
}

/// A response that some larder has fetched, as it counts in this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchedRecord {
    /// Whatever was invalidated here after this number may have been missed by its fetch.
    pub number: u64,
    /// How long the fetch took.
    pub took: Duration,
}
