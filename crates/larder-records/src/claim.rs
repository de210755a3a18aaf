//! A name that this larder has claimed in Redis, for as long as it fetches what lies under it.
//!
//! In: a claim that has succeeded, the head that a fetch brings, and whether its record is written. Out: the claim is renewed, and given
//! back behind the record. Where no record comes, or not soon, the name says that each larder fetches for itself, and why.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use larder_remote::Clients;
use larder_tier::Lead;
use larder_tier::rank::{Rank, RankedMutex};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::settings::LIFETIME_MIN;

/// How often that is renewed.
const RENEWED_EVERY: Duration = Duration::from_millis(700);
/// For how long each larder fetches for itself what cannot be shared.
const APART_FOR: Duration = Duration::from_secs(10);
/// The same after a fetch that failed.
const FAILED_FOR: Duration = Duration::from_secs(2);
/// A body that is longer is not waited for.
const AWAITED_MAX_BYTES: u64 = 1 << 20;
/// A body that is not over by then is not waited for any longer.
const AWAITED_FOR: Duration = Duration::from_secs(1);
/// For how long a fetch is claimed at once.
pub(crate) const HELD_FOR: Duration = Duration::from_secs(2);

/// What a mark begins with. What a larder writes where it fetches for all begins with digits.
const MARK: &[u8] = b"each";
/// Hexadecimal digits before the name of a holder.
const DIGITS: usize = 32;

/// Why each larder fetches for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Apart {
    /// What comes is not to be shared.
    NotShared,
    /// It is long, or does not end soon.
    Long,
    /// The origin has failed.
    Failed,
}

impl Apart {
    const ALL: [(Self, &[u8]); 3] =
        [(Self::NotShared, b"each no"), (Self::Long, b"each big"), (Self::Failed, b"each failed")];

    fn mark(self) -> Bytes {
        let mark = Self::ALL.iter().find(|(why, _)| *why == self).map_or(MARK, |(_, mark)| mark);
        Bytes::from_static(mark)
    }

    const fn lasting(self) -> Duration {
        match self {
            Self::NotShared | Self::Long => APART_FOR,
            Self::Failed => FAILED_FOR,
        }
    }
}

/// What stands under the name of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claimant {
    /// Each larder fetches for itself. Why is not known where another version has written it.
    Each(Option<Apart>),
    /// A member fetches for all. Its name is empty where it could not be read.
    Member(String),
}

impl Claimant {
    pub(crate) fn of(value: &[u8]) -> Self {
        if value.starts_with(MARK) {
            let why = Apart::ALL.iter().find(|(_, mark)| *mark == value);
            return Self::Each(why.map(|(why, _)| *why));
        }
        let name = value.get(DIGITS + 1..).unwrap_or_default();
        Self::Member(String::from_utf8_lossy(name).into_owned())
    }
}

/// What a larder writes where it fetches for all: what tells its run apart, and what people call it.
pub(crate) fn holder(run: u128, member: &str) -> Bytes {
    format!("{run:032x} {member}").into()
}

/// What has become of a fetch that others wait for.
const OPEN: u8 = 0;
/// Its record is written.
const WRITTEN: u8 = 1;
/// Each larder fetches for itself.
const IS_APART: u8 = 2;

/// A name that this larder has claimed.
struct Claim {
    servers: Arc<Clients>,
    name: Bytes,
    state: AtomicU8,
}

impl Claim {
    fn is(&self, state: u8) -> bool {
        self.state.load(Ordering::Acquire) == state
    }

    /// From now on each larder fetches for itself, for a while.
    fn set_apart(&self, why: Apart) {
        if self.state.swap(IS_APART, Ordering::AcqRel) != IS_APART {
            self.servers.set(&self.name, why.mark(), why.lasting());
        }
    }
}

/// The claims of fetches under way, by name.
#[derive(Default)]
pub(crate) struct Fetching(Arc<RankedMutex<ByName>>);

type ByName = HashMap<Bytes, Weak<Claim>, RandomState>;

impl Fetching {
    /// A response was stored whose record is claimed by this name: it is written, or is not to be.
    pub(crate) fn tell(&self, name: &Bytes, is_written: bool) {
        let claim = self.0.lock().get(name).and_then(Weak::upgrade);
        match claim {
            Some(claim) if is_written => {
                let _ = claim.state.compare_exchange(OPEN, WRITTEN, Ordering::AcqRel, Ordering::Acquire);
            }
            Some(claim) => claim.set_apart(Apart::NotShared),
            None => {}
        }
    }

    fn add(&self, claim: &Arc<Claim>) {
        self.0.lock().insert(claim.name.clone(), Arc::downgrade(claim));
    }

    fn remove(&self, claim: &Arc<Claim>) {
        let mut all = self.0.lock();
        // A later one of the same name may have taken its place.
        if all.get(&claim.name).is_some_and(|other| std::ptr::eq(other.as_ptr(), Arc::as_ptr(claim))) {
            all.remove(&claim.name);
        }
    }
}

/// A claim as long as it is needed. It is given back when this is dropped.
pub(crate) struct Lease {
    claim: Arc<Claim>,
    /// Where it is registered, if a fetch has begun.
    fetching: Option<Fetching>,
    /// The origin has answered, or failed, and that was not overtaken by a purge.
    has_answer: AtomicBool,
    tasks: RankedMutex<Vec<JoinHandle<()>>>,
}

impl Lease {
    pub(crate) fn new(servers: &Arc<Clients>, name: Bytes) -> Self {
        let claim = Arc::new(Claim { servers: Arc::clone(servers), name, state: AtomicU8::new(OPEN) });
        let tasks = RankedMutex::new(Rank::Leaf, Vec::new());
        Self { claim, fetching: None, has_answer: AtomicBool::new(false), tasks }
    }

    /// The same for a fetch, which may take longer.
    pub(crate) fn fetching(mut self, holder: &Bytes, fetching: &Fetching) -> Self {
        fetching.add(&self.claim);
        self.fetching = Some(Fetching(Arc::clone(&fetching.0)));
        let (claim, holder) = (Arc::clone(&self.claim), holder.clone());
        self.begin(async move {
            loop {
                sleep(RENEWED_EVERY).await;
                if claim.is(IS_APART) {
                    return;
                }
                claim.servers.set(&claim.name, holder.clone(), HELD_FOR);
            }
        });
        self
    }

    fn begin(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.lock().push(tokio::spawn(task));
    }
}

impl Lead for Lease {
    fn sees_head(&self, lifetime: Duration, length: Option<u64>) {
        self.has_answer.store(true, Ordering::Release);
        if lifetime < LIFETIME_MIN {
            return self.is_not_shared();
        }
        if length.is_some_and(|length| length > AWAITED_MAX_BYTES) {
            return self.claim.set_apart(Apart::Long);
        }
        let claim = Arc::clone(&self.claim);
        self.begin(async move {
            sleep(AWAITED_FOR).await;
            claim.set_apart(Apart::Long);
        });
    }

    fn is_not_shared(&self) {
        self.claim.set_apart(Apart::NotShared);
    }

    fn fails(&self) {
        self.has_answer.store(true, Ordering::Release);
    }

    fn is_overtaken(&self) {
        self.has_answer.store(false, Ordering::Release);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.tasks.lock().drain(..).for_each(|task| task.abort());
        if let Some(fetching) = &self.fetching {
            fetching.remove(&self.claim);
        }
        // What has failed here is not tried by one larder after the other. What was purged meanwhile, or nobody wants any more, is.
        if self.claim.is(OPEN) && self.has_answer.load(Ordering::Acquire) {
            self.claim.set_apart(Apart::Failed);
        }
        if !self.claim.is(IS_APART) {
            self.claim.servers.delete_if_up(&self.claim.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_a_claim_is_read_from_it_and_each_mark_has_its_reason() {
        assert_eq!(Claimant::of(&holder(7, "web 1")), Claimant::Member("web 1".to_owned()));
        assert_eq!(Claimant::of(b"short"), Claimant::Member(String::new()));
        for (why, mark) in Apart::ALL {
            assert_eq!((Claimant::of(mark), &why.mark()[..]), (Claimant::Each(Some(why)), mark));
        }
        assert_eq!(Claimant::of(b"each"), Claimant::Each(None));
    }
}
