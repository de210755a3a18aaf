//! The two ends of a flight: the fetch task's, and that of each request that waits for it.
//!
//! In: a [`Flight`] and its channel. Out: interim responses, and one outcome for all who wait. The fetch task owns the
//! [`FlightGuard`]; when that is dropped, however it comes about, the flight leaves the table and its followers learn that
//! nothing more will come. A [`Follower`] owns nothing of the fetch: one that leaves stops no other.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::header::SET_COOKIE;
use larder_cache::{StoredHead, Verdict};
use larder_http::message::{Interim, RequestHead};
use larder_http::time::Now;
use larder_observe::Fetched;
use larder_store::audience::Member;
use larder_store::rank::{Rank, RankedMutex};
use larder_store::{Audience, CacheKey, Lead};
use tokio::sync::watch;
use tokio::time::timeout;

use super::flight::{Ended, Flight, View};
use super::outcome::FlightOutcome;
use super::table::Flights;

/// Interim responses relayed per exchange; more are dropped.
const INTERIMS_MAX: usize = 16;

/// The fetch task's end. Dropped without an outcome, it tells all who wait that the fetch is lost.
pub(crate) struct FlightGuard {
    flight: Arc<Flight>,
    sender: Arc<watch::Sender<View>>,
    table: Arc<Flights>,
    is_open: bool,
    number: u64,
    begun: Now,
    /// What the origin is asked in place of the flight's own request.
    instead: Option<Arc<RequestHead>>,
    /// The right to fetch for all larders, given back when everything else is over.
    lead: Option<Box<dyn Lead>>,
}

impl FlightGuard {
    pub(super) fn new(
        (flight, sender): (Arc<Flight>, watch::Sender<View>),
        table: Arc<Flights>,
        is_open: bool,
        begun: Now,
    ) -> Self {
        let number = flight.mark.number();
        Self { flight, sender: Arc::new(sender), table, is_open, number, begun, instead: None, lead: None }
    }

    pub(super) fn is_of(&self, flight: &Arc<Flight>) -> bool {
        Arc::ptr_eq(&self.flight, flight)
    }

    /// Whether others could join.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_open
    }

    pub(crate) fn key(&self) -> &CacheKey {
        &self.flight.key
    }

    /// The key that a response to this flight lies under: parts have one of their own.
    pub(crate) fn place_of(&self, head: &StoredHead) -> Cow<'_, CacheKey> {
        match head.part {
            Some(_) => Cow::Owned(self.key().of_parts()),
            None => Cow::Borrowed(self.key()),
        }
    }

    /// How asking the origin went, for all who wait. To be called before the flight has its outcome.
    pub(crate) fn note(&self, fetched: Option<Arc<Fetched>>) {
        self.flight.fetched.store(fetched);
    }

    /// The request as the origin receives it.
    pub(crate) fn request(&self) -> &Arc<RequestHead> {
        self.instead.as_ref().unwrap_or(&self.flight.request)
    }

    /// From now on the origin is asked this. Who may follow does not change.
    pub(crate) fn ask_instead(&mut self, request: RequestHead) {
        self.instead = Some(Arc::new(request));
    }

    /// When it was found that the origin has to be asked.
    pub(crate) fn begun(&self) -> Now {
        self.begun
    }

    /// The origin was asked only at `begun`: until then its client sent what it had to say.
    pub(crate) fn began(&mut self, begun: Now) {
        self.begun = begun;
    }

    /// The last invalidation that does not concern what this flight brings.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The first invalidation since its start after which what it brings has to be validated before others use it.
    pub(crate) fn outdated(&self) -> Option<u64> {
        self.flight.mark.outdated()
    }

    /// What the flight brings is not concerned by invalidation `number` either: it was caused by its own request.
    pub(crate) fn is_newer_than(&mut self, number: u64) {
        self.number = self.number.max(number);
    }

    /// What the invalidations since its start leave of what it brings. Asked again under the store's lock.
    pub(crate) fn verdict(&self) -> Verdict {
        self.flight.mark.verdict()
    }

    /// Whether what it brings may be stored.
    pub(crate) fn is_valid(&self) -> bool {
        self.verdict() != Verdict::Gone
    }

    /// Those who wait for it, and the readers of its body.
    pub(crate) fn audience(&self) -> &Arc<Audience> {
        &self.flight.audience
    }

    /// Other larders wait for what it brings.
    pub(crate) fn leads_for_all(&mut self, lead: Box<dyn Lead>) {
        self.lead = Some(lead);
    }

    /// Resolves when there is no client left to fetch for: at once where only the leader could want the answer, else
    /// when no request has waited for `orphan_time`.
    pub(crate) async fn abandoned(&self, orphan_time: Duration) {
        let audience = self.audience();
        loop {
            audience.empty().await;
            let is_over = !self.is_shared() || timeout(orphan_time, audience.present()).await.is_err();
            if is_over {
                return;
            }
        }
    }

    /// The end of the client that causes the fetch.
    pub(crate) fn lead(&self) -> Follower {
        self.flight.has_leader.store(true, Ordering::SeqCst);
        Follower::new(&self.flight, true)
    }

    /// Whether the client that caused the fetch waits for its outcome.
    pub(crate) fn has_leader(&self) -> bool {
        self.flight.has_leader.load(Ordering::SeqCst)
    }

    /// Whether only requests for the head have caused and joined it. If so, nobody new joins.
    pub(crate) fn gives_up_unread(&self) -> bool {
        if self.flight.is_wanted.load(Ordering::Relaxed) {
            return false;
        }
        self.flight.closed.store(true, Ordering::SeqCst);
        !self.flight.is_wanted.load(Ordering::SeqCst)
    }

    /// Where interim responses go. Holds nothing: it falls silent when the flight ends. What others hear too sets no
    /// cookies.
    pub(crate) fn interim_sink(&self) -> impl Fn(Interim) + Send + Sync + 'static {
        let (sender, shared) = (Arc::downgrade(&self.sender), self.is_open);
        move |mut interim| {
            if shared {
                interim.fields.remove(SET_COOKIE);
            }
            if let Some(sender) = sender.upgrade() {
                sender.send_if_modified(|view| {
                    let room = view.interims.len() < INTERIMS_MAX;
                    if room {
                        view.interims.push(interim);
                    }
                    room
                });
            }
        }
    }

    /// Nobody new joins.
    pub(crate) fn close(&self) {
        self.flight.closed.store(true, Ordering::Release);
    }

    /// Tells all who wait the same, but for what is the leader's alone.
    pub(crate) fn conclude(&self, outcome: FlightOutcome) {
        let for_followers = outcome.for_follower();
        self.conclude_apart(outcome, for_followers);
    }

    /// Tells the leader one thing and the followers another. Only a response that is shared with followers can be joined
    /// afterwards.
    pub(crate) fn conclude_apart(&self, for_leader: FlightOutcome, for_followers: FlightOutcome) {
        if !matches!(for_followers, FlightOutcome::Shared { .. }) {
            self.close();
        }
        if let Some(lead) = &self.lead {
            for_followers.tell(&**lead);
        }
        // What a leader has left behind is dropped once the lock is released: its place among the readers, the origin's
        // connection.
        let mut for_leader = Some(for_leader);
        self.sender.send_modify(|view| {
            let for_leader = self.has_leader().then(|| for_leader.take()).flatten();
            let ended = Ended { for_leader, for_followers };
            view.ended = Some(Box::new(RankedMutex::new(Rank::Outcome, ended)));
        });
    }
}

impl Drop for FlightGuard {
    fn drop(&mut self) {
        self.close();
        if let Some(lead) = self.lead.as_ref().filter(|_| !self.is_valid()) {
            lead.is_overtaken();
        }
        self.table.remove(&self.flight);
    }
}

/// A client's end: hears interim responses from now on, and the outcome.
pub(crate) struct Follower {
    flight: Arc<Flight>,
    view: watch::Receiver<View>,
    heard: usize,
    leads: bool,
    _waits: Member,
}

impl Follower {
    pub(super) fn new(flight: &Arc<Flight>, leads: bool) -> Self {
        let waits = flight.audience.wait();
        let mut view = flight.view.clone();
        let heard = view.borrow_and_update().interims.len();
        // The outcome may be there already: it has to be heard.
        view.mark_changed();
        Self { flight: Arc::clone(flight), view, heard, leads, _waits: waits }
    }

    /// How asking the origin went, once there is an outcome; `None` where it was not asked.
    pub(crate) fn fetched(&self) -> Option<Arc<Fetched>> {
        self.flight.fetched.load_full()
    }

    /// Waits for the outcome, and hands on the interim responses that come before it. There is no limit here: the fetch
    /// has its own. To be called until it has given the outcome, which the leader gets once.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn outcome(&mut self, mut interim: impl FnMut(Interim)) -> FlightOutcome {
        loop {
            {
                let view = self.view.borrow_and_update();
                while let Some(next) = view.interims.get(self.heard) {
                    self.heard += 1;
                    interim(next.clone());
                }
                if let Some(ended) = &view.ended {
                    let mut ended = ended.lock();
                    return match self.leads {
                        true => ended.for_leader.take().unwrap_or(FlightOutcome::Lost),
                        false => ended.for_followers.for_follower(),
                    };
                }
            }
            // The outcome may have been announced just before the sender went.
            if self.view.changed().await.is_err() && self.view.borrow().ended.is_none() {
                return FlightOutcome::Lost;
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if self.leads {
            self.flight.has_leader.store(false, Ordering::SeqCst);
            // What was for it goes with it.
            let _own = self.view.borrow().ended.as_ref().and_then(|ended| ended.lock().for_leader.take());
        }
    }
}
