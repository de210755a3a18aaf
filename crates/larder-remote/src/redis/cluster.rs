//! Which node of a Redis Cluster has which keys.
//!
//! In: some of its nodes. Out: the node of each slot, as more than half of the masters say. All that are known are asked twice a second, and
//! whenever a node says that a slot is elsewhere. A node that is cut off knows the former state, so one answer alone is believed only
//! where nothing is known yet. Between two rounds a slot follows what its node says of it (`MOVED`).
//! A node has a number for as long as larder runs, which is its place among the servers of a store. Replicas are never read.
//! One task has the connections ([`Cluster::watch`]). All others wait for what it finds.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::redis::{Value, cmd};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use super::login::LoggedIn;
use super::reach::{LoginSettings, Reach};
use super::round;
use super::scan::{Lists, Scanner};
use super::slot::{SLOTS, slot_of};
use super::slot_map::{SlotMap, SlotRanges, Voters, told};
use crate::address::Address;
use crate::clock;

/// Between two rounds, where nothing asks for one.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// Between two rounds at least.
const PAUSE: Duration = Duration::from_millis(50);
/// The part of the limit that one question may take: who waits for a round has the whole.
const LIMIT_PARTS: u32 = 4;
/// The longest string of a reply: the name of a host.
const NAME_MAX: usize = 4096;
/// The bounds of a reply: stretches of slots, each with its nodes and what there is to say of them.
const LISTS: Lists = Lists { nested: 6, elements: 1 << 20, bytes: 16 << 20 };

/// A connection to a node.
type NodeLink = (Address, Option<LoggedIn>);

/// See the head of the file.
pub(crate) struct Cluster {
    seeds: Vec<Address>,
    account: Arc<LoginSettings>,
    reach: Reach,
    limit: Duration,
    map: RwLock<SlotMap>,
    begun: AtomicU64,
    /// When the last round began in which a majority has answered, in nanoseconds of the lease's clock.
    vouched: AtomicU64,
    /// The last round that is over.
    over: watch::Sender<u64>,
    is_wanted: Notify,
    /// Why a node had no answer, in the last round in which one had none.
    failure: Mutex<Option<String>>,
}

/// Where a request has to go instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) node: usize,
    /// For this once, behind `ASKING`.
    pub(crate) is_asking: bool,
}

impl Cluster {
    pub(super) fn new(
        seeds: Vec<Address>,
        account: Arc<LoginSettings>,
        reach: Reach,
        limit: Duration,
    ) -> Self {
        let (map, over) = (RwLock::default(), watch::Sender::new(0));
        let (begun, vouched) = (AtomicU64::new(0), AtomicU64::new(0));
        Self {
            seeds,
            account,
            reach,
            limit,
            map,
            begun,
            vouched,
            over,
            is_wanted: Notify::new(),
            failure: Mutex::default(),
        }
    }

    /// The number of the node that has a key. `None` where none is known.
    pub(crate) fn node_of(&self, key: &[u8]) -> Option<usize> {
        self.map.read().owner(slot_of(key))
    }

    /// The address of a node.
    pub(crate) fn address(&self, node: usize) -> Option<Address> {
        self.map.read().node(node).cloned()
    }

    /// Of each node by its number, whether it has slots.
    pub(crate) fn have_slots(&self) -> Vec<bool> {
        self.map.read().have_slots()
    }

    /// How many numbers nodes have.
    pub(crate) fn nodes(&self) -> usize {
        self.map.read().count()
    }

    /// What a node says of a slot that it does not have: `MOVED 866 10.0.0.7:6379`, or `ASK ..` while it is on its way. `None` for all
    /// else. What `MOVED` says holds from now on, and all nodes are asked soon.
    pub(crate) fn redirected(&self, said: &str) -> Option<Redirect> {
        let mut words = said.split(' ');
        let kind = words.next().filter(|kind| ["MOVED", "ASK"].contains(kind))?;
        let slot = words.next()?.parse().ok().filter(|slot| usize::from(*slot) < SLOTS)?;
        let (host, port) = words.next()?.rsplit_once(':')?;
        let address = Address::Tcp { host: host.to_ascii_lowercase(), port: port.parse().ok()? };
        let is_asking = kind == "ASK";
        if !is_asking {
            self.ask_soon();
        }
        let mut map = self.map.write();
        // One that no majority has named is not followed: the next round will tell.
        let node = map.known(&address)?;
        if !is_asking {
            map.moved(slot, node, clock::now());
        }
        Some(Redirect { node: usize::from(node), is_asking })
    }

    /// Where the node of a key is.
    ///
    /// # Errors
    /// None is known.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn current(&self, key: &[u8]) -> io::Result<Address> {
        // The sender is this value's own.
        self.over.subscribe().wait_for(|over| *over > 0).await.map_err(io::Error::other)?;
        self.known(key).ok_or_else(|| self.unknown())
    }

    /// Waits until a majority of its masters has told what is where.
    ///
    /// # Errors
    /// No node has told anything.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn found(&self) -> io::Result<()> {
        let mut over = self.over.subscribe();
        over.wait_for(|over| *over > 0).await.map_err(io::Error::other)?;
        if self.nodes() == 0 {
            return Err(self.unknown());
        }
        over.wait_for(|_| !self.vouched().is_zero()).await.map(drop).map_err(io::Error::other)
    }

    fn unknown(&self) -> io::Error {
        self.ask_soon();
        let (answered, of) = self.map.read().answered();
        let why = self.failure.lock().clone().map_or(String::new(), |why| format!("; {why}"));
        io::Error::other(format!(
            "no node of the cluster is known to have its keys; {answered} of {of} answered{why}"
        ))
    }

    /// Since when a majority of the masters vouches for what is known, on the lease's clock.
    pub(super) fn vouched(&self) -> Duration {
        Duration::from_nanos(self.vouched.load(Ordering::Acquire))
    }

    /// Whether a majority says, in a round that has begun later than this call, that each of these keys is at its node.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn confirms_all(&self, keys: &[(&[u8], usize)]) -> bool {
        let is_over = self.later_round().await;
        let map = self.map.read();
        is_over
            && keys
                .iter()
                .all(|(key, node)| map.node(*node).is_some_and(|at| map.named(slot_of(key)) == Some(at)))
    }

    fn known(&self, key: &[u8]) -> Option<Address> {
        self.node_of(key).and_then(|node| self.address(node))
    }

    /// Waits until the node of a key is another one.
    pub(super) async fn left(&self, key: &[u8], address: &Address) {
        let mut over = self.over.subscribe();
        while self.known(key).is_none_or(|known| known == *address) {
            if over.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits until a number is another node's.
    pub(super) async fn renumbered(&self, node: usize, address: &Address) {
        let mut over = self.over.subscribe();
        while self.map.read().node(node) == Some(address) {
            if over.changed().await.is_err() {
                return;
            }
        }
    }

    /// Whether a majority says, in a round that has begun later than this call, that the node at this address has a key.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn confirms(&self, key: &[u8], address: &Address) -> bool {
        self.later_round().await && self.map.read().named(slot_of(key)) == Some(address)
    }

    /// Waits until a round is over that has begun later than this call.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn later_round(&self) -> bool {
        let last = self.begun.load(Ordering::Acquire);
        self.ask_soon();
        self.over.subscribe().wait_for(|over| *over > last).await.is_ok()
    }

    /// A round is to begin without waiting for its time.
    pub(crate) fn ask_soon(&self) {
        self.is_wanted.notify_one();
    }

    /// How often a slot has got another owner.
    pub(crate) fn changes(&self) -> u64 {
        self.map.read().changes()
    }

    /// Waits until that has happened since.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn changed(&self, since: u64) {
        let mut over = self.over.subscribe();
        while self.changes() == since {
            if over.changed().await.is_err() {
                return;
            }
        }
    }

    /// Asks, for as long as it is polled. Never ends.
    pub(crate) async fn watch(&self) {
        let mut links: Vec<NodeLink> = Vec::new();
        loop {
            let number = self.begun.fetch_add(1, Ordering::AcqRel) + 1;
            let began = clock::now();
            let masters = self.map.read().masters();
            let is_new = masters.is_empty();
            let asked = if is_new { self.seeds.clone() } else { masters };
            let mut answers = self.ask_all(&asked, &mut links).await;
            let mut said = (asked.len(), if is_new { Voters::AnyNode } else { Voters::Masters });
            if !is_new && answers.len() * 2 <= said.0 {
                // Where most of the masters have gone, the cluster may have others: the seeds may know.
                let mut links = Vec::new();
                let by_seeds = self.ask_all(&self.seeds, &mut links).await;
                if by_seeds.len() * 2 > self.seeds.len() {
                    (answers, said) = (by_seeds, (self.seeds.len(), Voters::Seeds));
                }
            }
            if said.1 == Voters::Masters && answers.len() * 2 > said.0 {
                self.vouched.store(nanos(began), Ordering::Release);
            }
            self.take(answers, said, clock::now());
            self.over.send_replace(number);
            if is_new && !self.map.read().masters().is_empty() {
                // They have the word from now on.
                continue;
            }
            sleep(PAUSE).await;
            let _ = timeout(ASK_EVERY, self.is_wanted.notified()).await;
        }
    }

    /// The vote is counted beside the lock: requests look up nodes meanwhile.
    fn take(&self, answers: Vec<SlotRanges>, said: (usize, Voters), now: Duration) {
        let Some(ballot) = self.map.write().ballot(&answers, said, now) else { return };
        let elected = ballot.count(&answers);
        self.map.write().take(elected, answers, said, now);
    }

    async fn ask_all(&self, asked: &[Address], links: &mut Vec<NodeLink>) -> Vec<SlotRanges> {
        links.retain(|(address, _)| asked.contains(address));
        for address in asked {
            if !links.iter().any(|(known, _)| known == address) {
                links.push((address.clone(), None));
            }
        }
        let asking = links.iter_mut().map(|(address, link)| self.ask(address, link));
        let answers = round::ask_all(asking).await;
        let failed = answers.iter().zip(links.iter()).find_map(|(answer, (address, _))| {
            let why = answer.as_ref().err()?;
            Some(format!("{address}: {why}"))
        });
        *self.failure.lock() = failed;
        answers.into_iter().flatten().collect()
    }

    /// What one node says. Its connection stays open as long as it answers.
    async fn ask(&self, address: &Address, link: &mut Option<LoggedIn>) -> Result<SlotRanges, String> {
        let scanner = || Scanner::with_lists(NAME_MAX, LISTS);
        let mut question = cmd("CLUSTER");
        question.arg("SLOTS");
        let asked = (address, &self.account, scanner);
        let reply = self.reach.ask_one(asked, link, (&question, self.limit / LIMIT_PARTS)).await?;
        told(&reply, address).ok_or_else(|| match reply {
            Value::ServerError(error) => format!("it says: {error}"),
            _ => "what it says is no map of slots".to_owned(),
        })
    }
}

/// A moment of the lease's clock.
fn nanos(moment: Duration) -> u64 {
    u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cluster({:?})", self.seeds)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at(port: u16) -> Address {
        Address::Tcp { host: "n".to_owned(), port }
    }

    fn cluster() -> Cluster {
        let reach = Reach::new(Arc::new(crate::SystemNames), None);
        let account = Arc::new(LoginSettings { user: None, password: None, database: 0 });
        Cluster::new(vec![at(9)], account, reach, Duration::from_secs(1))
    }

    #[tokio::test]
    async fn the_connections_of_a_number_end_when_it_is_another_nodes() {
        let cluster = cluster();
        let round = |ports: std::ops::RangeInclusive<u16>, secs| {
            let told = ports.map(|port| (port * 60, port * 60 + 59, at(port))).collect();
            cluster.take(vec![told], (1, Voters::AnyNode), Duration::from_secs(secs));
            cluster.over.send_modify(|over| *over += 1);
        };
        round(1..=250, 0);
        let former = at(1);
        let ended = cluster.renumbered(0, &former);
        tokio::pin!(ended);
        // Another one has its slots.
        cluster.take(vec![vec![(60, 119, at(2))]], (1, Voters::AnyNode), Duration::from_secs(1));
        round(251..=251, 300);
        assert_eq!(cluster.address(0), Some(at(1)), "251 has to wait");
        assert!(timeout(Duration::ZERO, &mut ended).await.is_err());
        round(251..=251, 301);
        assert_eq!((cluster.address(0), cluster.nodes()), (Some(at(251)), 250));
        timeout(Duration::from_secs(20), &mut ended).await.unwrap();
    }

    #[test]
    fn a_redirection_is_followed_and_moved_is_remembered() {
        let cluster = cluster();
        let slot = slot_of(b"key");
        assert_eq!(cluster.node_of(b"key"), None);
        assert_eq!(cluster.redirected(&format!("MOVED {slot} n:1")), None, "no majority has named it");
        let map = vec![vec![(0, 8191, at(1)), (8192, 16_383, at(2))]];
        cluster.take(map, (1, Voters::AnyNode), Duration::ZERO);
        let moved = cluster.redirected(&format!("MOVED {slot} n:1")).unwrap();
        assert_eq!((moved.node, moved.is_asking, cluster.node_of(b"key")), (0, false, Some(0)));
        let asked = cluster.redirected(&format!("ASK {slot} n:2")).unwrap();
        assert_eq!((asked.node, asked.is_asking, cluster.node_of(b"key")), (1, true, Some(0)));
        assert_eq!(cluster.address(1), Some(at(2)));
        for said in [
            "",
            "MOVED",
            "MOVED x n:1",
            "MOVED 16384 n:1",
            "MOVED 1 n",
            "MOVED 1 n:x",
            "ERR no",
            "LOADING 1 n:1",
        ] {
            assert_eq!(cluster.redirected(said), None, "{said}");
        }
    }
}
