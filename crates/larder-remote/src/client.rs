//! A worker's way to look values up.
//!
//! In: a key. Out: [`LookedUp`]: the value as the caller judges it, or why there is none. Each worker has a client of its own, with
//! one connection to each server, so that sockets never cross cores.
//! A look-up that is dropped is not counted; what it asked is read and dropped by its connection.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};

use crate::ask::Answer;
use crate::deadline::Limits;
use crate::error::{Failure, Unfit};
use crate::key::RemoteKey;
use crate::link::Link;
use crate::memcached::decoded;
use crate::metrics::{Counters, Result as Counted};
use crate::reply::{Reply, Ttl, Value};
use crate::request::Request;
use crate::settings::KeyPlaces;
use crate::store::RemoteStore;

/// A value, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its bytes.
    pub body: Bytes,
    /// The application's flags, where the server has such.
    pub flags: u32,
    /// How long it stays there.
    pub ttl: Ttl,
}

/// What a look-up came to. All but `Found` are misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookedUp<T> {
    /// There is a value, and the caller can use it.
    Found(T),
    /// There is none.
    Absent,
    /// There is one, and the caller cannot use it.
    Unfit(Unfit),
    /// The server was not asked, because it fails.
    Skipped,
    /// The server had no usable reply in time.
    Failed(Failure),
}

/// What came of claiming a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// Nobody had it: the value is there now.
    Mine,
    /// There is a value already: this one, where the server tells.
    Held(Option<Bytes>),
    /// The server was not asked, or had no usable reply in time.
    Unknown,
}

/// One worker's connections.
#[derive(Debug)]
pub struct Client {
    shared: Arc<RemoteStore>,
    links: Box<[Link]>,
}

impl Client {
    /// A client for one worker, of whatever all of them share. Nothing is connected before something is asked.
    pub fn new(shared: Arc<RemoteStore>) -> Self {
        let limits = Limits::waited_for(shared.timeout());
        let links = shared.members().iter().map(|member| member.link(limits)).collect();
        Self { shared, links }
    }

    /// What all workers share.
    pub fn shared(&self) -> &Arc<RemoteStore> {
        &self.shared
    }

    /// Looks `key` up, and hands what is found to `judge`, which says what it is or why it is not used. To be called on the
    /// worker's runtime. Takes `timeout` at most.
    ///
    /// # Cancel safety
    /// Dropping it leaves the connection as it is, and its reply goes to nobody.
    pub async fn look_up<T>(
        &self,
        key: &RemoteKey,
        judge: impl FnOnce(Found) -> Result<T, Unfit>,
    ) -> LookedUp<T> {
        let begun = Instant::now();
        let Some((place, answer)) = self.ask(key, Request::Get(key.clone())).await else {
            return LookedUp::Failed(Failure::Connect);
        };
        let Some(member) = self.shared.members().get(place) else { return LookedUp::Absent };
        let looked_up = match answer {
            Ok(Reply::Value(value)) => self.judged(value, judge),
            Ok(Reply::ServerError(text)) => {
                member.server.refused(&text);
                LookedUp::Failed(Failure::Refused)
            }
            Ok(Reply::NoValue) => LookedUp::Unfit(Unfit::Malformed),
            Ok(_) => LookedUp::Absent,
            Err(Failure::Skipped) => LookedUp::Skipped,
            Err(failure) => LookedUp::Failed(failure),
        };
        count(member.server.counters(), &looked_up, begun.elapsed());
        looked_up
    }

    /// Puts a value there for `lifetime`, unless there is one. To be called on the worker's runtime. Takes `timeout` at most.
    ///
    /// # Cancel safety
    /// As for [`Self::look_up`]: the value may be there afterwards.
    pub async fn claim(&self, key: &RemoteKey, value: Bytes, lifetime: Duration) -> Claimed {
        let Some(expires) = self.shared.expires(lifetime) else { return Claimed::Unknown };
        let place = self.shared.placement().place(key.as_bytes());
        let server = place.and_then(|place| self.shared.members().get(place));
        // It could not be given back in time, and others would wait for nothing.
        if server.is_some_and(|server| server.is_held_up()) {
            return Claimed::Unknown;
        }
        match self.ask(key, Request::Claim { key: key.clone(), expires, value }).await {
            Some((_, Ok(Reply::Stored))) => Claimed::Mine,
            Some((_, Ok(Reply::Value(Value { body, .. })))) => Claimed::Held(Some(body)),
            Some((_, Ok(Reply::NotStored))) => Claimed::Held(None),
            _ => Claimed::Unknown,
        }
    }

    /// Asks the server that has `key`, and the one that this one names instead, once. Which has answered; `None` where it is not known
    /// which has the key.
    async fn ask(&self, key: &RemoteKey, request: Request) -> Option<(usize, Answer)> {
        let placement = self.shared.placement();
        let place = placement.place(key.as_bytes())?;
        let until = Instant::now() + self.shared.timeout();
        let again = matches!(placement, KeyPlaces::Cluster(_)).then(|| request.clone());
        let answer = self.links.get(place)?.ask(request).await;
        let Some((redirect, request)) = placement.redirected(&answer).zip(again) else {
            return Some((place, answer));
        };
        let request = if redirect.is_asking { Request::Asking(Box::new(request)) } else { request };
        let answer = timeout_at(until, self.links.get(redirect.node)?.ask(request)).await;
        Some((redirect.node, answer.unwrap_or(Err(Failure::TimedOut))))
    }

    fn judged<T>(&self, value: Value, judge: impl FnOnce(Found) -> Result<T, Unfit>) -> LookedUp<T> {
        let Value { flags, ttl, is_stale, is_awaited, body, .. } = value;
        // Its application has called it stale, or somebody holds the place of a value that is not there yet.
        if is_stale || is_awaited && body.is_empty() {
            return LookedUp::Absent;
        }
        let body = decoded(body, flags, self.shared.codings(), self.shared.max_object());
        let judged = body.map_err(|_| Unfit::Malformed).and_then(|body| judge(Found { body, flags, ttl }));
        judged.map_or_else(LookedUp::Unfit, LookedUp::Found)
    }
}

fn count<T>(counters: &Counters, looked_up: &LookedUp<T>, took: Duration) {
    counters.looked_up(match looked_up {
        LookedUp::Found(_) => Counted::Found,
        LookedUp::Absent => Counted::Absent,
        LookedUp::Unfit(Unfit::Malformed) => Counted::Malformed,
        LookedUp::Unfit(Unfit::OtherVariant) => Counted::OtherVariant,
        LookedUp::Skipped => Counted::Skipped,
        LookedUp::Failed(_) => Counted::Failed,
    });
    if !matches!(looked_up, LookedUp::Skipped) {
        counters.took(took);
    }
}
