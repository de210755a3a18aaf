//! One fetch for all larders: who has claimed a name fetches, and the others wait for its record.
//!
//! In: a key and a request for which nothing usable is there. Out: the right to fetch it, what another larder has fetched meanwhile, or
//! that each fetches for itself. The right is a value in Redis for [`HELD_FOR`], renewed as long as the fetch goes on. It is given back
//! behind the record, in the queue that both go through: so whoever finds it free finds the record as well. A larder that dies
//! loses it by time, and the next one takes it.
//! Where no record comes of a fetch, each larder fetches for itself for a while: else one would wait for the next.
//! It is no more than a matter of sparing the origin. Nothing depends on it: where Redis fails, is slow or forgets, each larder fetches for itself.
//!
//! ```text
//!             claim + read, as one
//!   free: mine -> record there?  yes: given back, used     no: fetch, renew .. record, then given back
//!   held: by a larder -> wait, and again                   by nobody in particular: each for itself, for a while
//! ```

use std::time::Duration;

use bytes::Bytes;
use larder_cache::StoredHead;
use larder_http::message::RequestHead;
use larder_remote::Claimed;
use larder_tier::{CacheKey, FoundValue, IsOfUse, Leading};
use tokio::time::{Instant, sleep, timeout_at};

use crate::claim::{Claimant, HELD_FOR, Lease};
use crate::leads::Ended;
use crate::record::Found;
use crate::{HttpCaching, Records};

/// The first pause between two looks; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(2);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(50);
/// The longest that a larder waits for another one. An origin that hangs is not waited for twice.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// What was found under a name.
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
        is_of_use: &IsOfUse<'_, StoredHead>,
    ) -> Leading<HttpCaching> {
        // Who has just waited for a record as long as Redis is waited for does not wait for it again.
        if self.late.is_now() {
            self.leads.note(Ended::Apart);
            return Leading::Alone;
        }
        let until = Instant::now() + WAIT_MAX;
        let (mut record, mut is_variant) = (self.names.of_key(key), false);
        let (mut pause, mut ended) = (PAUSE_MIN, Ended::Found);
        while Instant::now() < until {
            // Without a lease in the fleet nothing is shared. It may be lost while this waits.
            if self.standing.server_now().is_none() {
                return Leading::Alone;
            }
            let turn = Instant::now() + self.settings.timeout;
            let name = self.names.of_lease(&record);
            let claim = self.servers.claim(&name, self.holder.clone(), HELD_FOR);
            // As one, in this order: what was there before the claim was given back is seen.
            let (claimed, found) = tokio::join!(claim, self.read(key, &record));
            // Given back where it is of no use.
            let lease = (claimed == Claimed::Mine).then(|| Lease::new(&self.servers, name));
            // Pieces and all, within the limit of one look-up. Why it is not used is counted where it was looked for first.
            let looking = self.look((key, &record), request, is_of_use, found.ok().flatten());
            match timeout_at(turn, looking).await.unwrap_or(Look::Nothing) {
                Look::Value(value) => {
                    self.leads.note(ended);
                    return Leading::Found(value);
                }
                Look::Elsewhere(name) if !is_variant => {
                    (record, is_variant) = (name, true);
                    continue;
                }
                Look::Elsewhere(_) => break,
                Look::Nothing => {}
            }
            match (lease, claimed) {
                (Some(lease), _) => {
                    self.leads.note(Ended::Led);
                    return Leading::Mine(Box::new(lease.fetching(&self.holder, &self.leading)));
                }
                (None, Claimed::Held(Some(held))) if matches!(Claimant::of(&held), Claimant::Member(_)) => {}
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
        (key, name): (&CacheKey, &Bytes),
        request: &RequestHead,
        is_of_use: &IsOfUse<'_, StoredHead>,
        found: Option<Found>,
    ) -> Look {
        match found {
            Some(Found::Varies(names)) => {
                self.name_of_variant(key, &names, request).map_or(Look::Nothing, Look::Elsewhere)
            }
            Some(Found::Response(record)) => {
                // Before its body is fetched: what is waited for may have an old one under its name all the time.
                let is_wanted = |head: &StoredHead, number| {
                    is_of_use(head, number) && head.freshness.is_fresh(self.clock.now())
                };
                let value = self.used((key, name), &record, &is_wanted).await.ok();
                value.map_or(Look::Nothing, |value| Look::Value(Box::new(value)))
            }
            None => Look::Nothing,
        }
    }
}
