//! One fetch for all larders: who has claimed a name fetches, and the others wait for its record.
//!
//! In: a key and a request for which nothing usable is there. Out: the right to fetch it, what another larder has fetched meanwhile, or
//! that each fetches for itself. The right is a value in Redis for [`HELD_FOR`], renewed as long as the fetch goes on. It is given back
//! behind the record, in the queue that both go through: so whoever finds it free finds the record as well. A larder that dies
//! loses it by time, and the next one takes it.
//! It is no more than a matter of sparing the origin. Nothing depends on it: where Redis fails, is slow or forgets, each larder fetches for itself.
//!
//! ```text
//!             claim + read, as one
//!   free: mine -> record there?  yes: given back, used     no: fetch, renew .. record, then given back
//!   held: by a larder -> wait, and again                   by nobody in particular: each for itself, for a while
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use larder_http::message::RequestHead;
use larder_http::time::Now;
use larder_remote::{Claimed, Clients};
use larder_tier::rank::{Rank, RankedMutex};
use larder_tier::{CacheKey, FoundValue, Lead, Leading};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::record::Found;
use crate::{HttpCaching, Records};

/// For how long a fetch is claimed at once.
pub(crate) const HELD_FOR: Duration = Duration::from_secs(2);
/// How often that is renewed.
const RENEWED_EVERY: Duration = Duration::from_millis(700);
/// For how long each larder fetches for itself what cannot be shared.
const APART_FOR: Duration = Duration::from_secs(10);
/// What stands for that.
const APART: &[u8] = b"each";
/// The first pause between two looks; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(2);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(50);
/// The longest that a larder waits for another one. Clients leave earlier, by `collapse_wait`.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// A body that is longer is not waited for.
const AWAITED_MAX_BYTES: u64 = 1 << 20;
/// A body of which the length is not known is waited for, for so long.
const AWAITED_FOR: Duration = Duration::from_secs(1);
/// A record whose time differs by less is what memory has: clocks are compared once a second.
const SAME_WITHIN: Duration = Duration::from_millis(50);

/// How a question who fetches has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// This larder has fetched for all.
    Led,
    /// A record had come just before.
    Found,
    /// It has waited for the record of another one.
    Waited,
    /// Each for itself.
    Apart,
}

impl Ended {
    const ALL: [(Self, &str); 4] =
        [(Self::Led, "led"), (Self::Found, "found"), (Self::Waited, "waited"), (Self::Apart, "apart")];
}

/// How often each.
#[derive(Debug, Default)]
pub(crate) struct Leads([AtomicU64; Ended::ALL.len()]);

impl Leads {
    fn note(&self, ended: Ended) {
        let counter = self.0.get(ended as usize);
        counter.into_iter().for_each(|counter| _ = counter.fetch_add(1, Ordering::Relaxed));
    }

    pub(crate) fn each(&self, mut visit: impl FnMut(&'static str, u64)) {
        for ((_, token), counter) in Ended::ALL.iter().zip(&self.0) {
            visit(token, counter.load(Ordering::Relaxed));
        }
    }
}

/// What was found under a name, and who has claimed it.
enum Look {
    Value(Box<FoundValue<HttpCaching>>),
    /// Responses vary: it lies under this name.
    Elsewhere(Bytes),
    Nothing,
}

impl Records {
    pub(crate) async fn lead_or_wait(
        &self,
        key: &CacheKey,
        request: &RequestHead,
        stored: Option<Now>,
    ) -> Leading<HttpCaching> {
        // Without a lease in the fleet nothing is shared.
        if self.standing.server_now().is_none() {
            return Leading::Alone;
        }
        let until = Instant::now() + WAIT_MAX;
        let mut record = self.names.of_key(key);
        let (mut pause, mut ended) = (PAUSE_MIN, Ended::Found);
        while Instant::now() < until {
            let name = self.names.of_lease(&record);
            let claim = self.servers.claim(&name, self.holder.clone(), HELD_FOR);
            // As one, in this order: what was there before the claim was given back is seen.
            let (claimed, found) = tokio::join!(claim, self.read(key, &record));
            // Given back where it is of no use.
            let lease = (claimed == Claimed::Mine).then(|| Lease::new(&self.servers, name));
            match self.look(key, request, stored, (&record, found)).await {
                Look::Value(value) => {
                    self.leads.note(ended);
                    return Leading::Found(value);
                }
                Look::Elsewhere(name) => {
                    record = name;
                    continue;
                }
                Look::Nothing => {}
            }
            match (lease, claimed) {
                (Some(lease), _) => {
                    self.leads.note(Ended::Led);
                    return Leading::Mine(Box::new(lease.renewed(&self.holder)));
                }
                (None, Claimed::Held(Some(holder))) if holder != APART => {}
                (None, _) => break,
            }
            ended = Ended::Waited;
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        self.leads.note(Ended::Apart);
        Leading::Alone
    }

    /// What of it may be used in place of a fetch.
    async fn look(
        &self,
        key: &CacheKey,
        request: &RequestHead,
        stored: Option<Now>,
        (name, found): (&Bytes, Option<Found>),
    ) -> Look {
        match found {
            Some(Found::Varies(names)) => {
                let varying = self.name_of_variant(key, &names, request);
                varying.filter(|varying| varying != name).map_or(Look::Nothing, Look::Elsewhere)
            }
            Some(Found::Response(record)) => {
                let value = self.use_record(key, &record).await;
                let is_new = |received: Now| {
                    stored.is_none_or(|stored| received.monotonic > stored.monotonic + SAME_WITHIN)
                };
                let is_of_use = |value: &FoundValue<HttpCaching>| {
                    let freshness = &value.head.freshness;
                    freshness.is_fresh(self.clock.now()) && is_new(freshness.received)
                };
                value.filter(is_of_use).map_or(Look::Nothing, |value| Look::Value(Box::new(value)))
            }
            None => Look::Nothing,
        }
    }
}

/// A claim. It is given back when it is dropped.
struct Lease {
    servers: Arc<Clients>,
    name: Bytes,
    /// Each larder fetches for itself.
    is_apart: Arc<AtomicBool>,
    tasks: RankedMutex<Vec<JoinHandle<()>>>,
}

impl Lease {
    fn new(servers: &Arc<Clients>, name: Bytes) -> Self {
        let tasks = RankedMutex::new(Rank::Leaf, Vec::new());
        Self { servers: Arc::clone(servers), name, is_apart: Arc::default(), tasks }
    }

    /// The same for a fetch, which may take longer.
    fn renewed(self, holder: &Bytes) -> Self {
        let (servers, name, holder) = (Arc::clone(&self.servers), self.name.clone(), holder.clone());
        let is_apart = Arc::clone(&self.is_apart);
        self.begin(async move {
            loop {
                sleep(RENEWED_EVERY).await;
                if is_apart.load(Ordering::Acquire) {
                    return;
                }
                servers.set(&name, holder.clone(), HELD_FOR);
            }
        });
        self
    }

    fn begin(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.lock().push(tokio::spawn(task));
    }
}

fn set_apart(servers: &Clients, name: &Bytes, is_apart: &AtomicBool) {
    if !is_apart.swap(true, Ordering::AcqRel) {
        servers.set(name, Bytes::from_static(APART), APART_FOR);
    }
}

impl Lead for Lease {
    fn sees_head(&self, length: Option<u64>) {
        match length {
            Some(length) if length <= AWAITED_MAX_BYTES => {}
            Some(_) => self.is_not_shared(),
            None => {
                let (servers, name) = (Arc::clone(&self.servers), self.name.clone());
                let is_apart = Arc::clone(&self.is_apart);
                self.begin(async move {
                    sleep(AWAITED_FOR).await;
                    set_apart(&servers, &name, &is_apart);
                });
            }
        }
    }

    fn is_not_shared(&self) {
        set_apart(&self.servers, &self.name, &self.is_apart);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.tasks.lock().drain(..).for_each(|task| task.abort());
        if !self.is_apart.load(Ordering::Acquire) {
            self.servers.delete_if_up(&self.name);
        }
    }
}
