//! The connections by which versions are read: one, or in a cluster one to each node that has some of them.
//!
//! In: names of keys. Out: the connection that is theirs, opened where there is none. What is known counts only as long as every one of
//! them is alive, and ends with the first that ends: what a node has told is worth nothing without the others, since a slot may have
//! moved between them.
//! A node that cannot be had concerns its own keys alone: connections are made in tasks of their own, and a call waits for one for a moment.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ::redis::cmd;
use futures_util::future::{join_all, select_all};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, timeout, timeout_at};

use super::known::TRACKING;
use super::reader_state::SharedVersions;
use crate::clock;
use crate::error::Failure;
use crate::redis::{CallError, Changed, Dial, Lists, RedisReply, Tracked};

/// The longest silence of a server. A reply may then be as late as a second and a half before anything is forgotten.
pub(super) const BEAT: Duration = Duration::from_millis(500);

/// How long a node is left alone to which no connection could be made.
const DOWN: Duration = Duration::from_secs(1);
/// The part of the limit for which a call waits for a connection.
const LIMIT_PARTS: u32 = 4;

/// See the head of the file.
pub(super) struct Links {
    dial: Arc<Dial>,
    /// How long connecting may take.
    limit: Duration,
    /// The largest string of a reply, and its bounds.
    bounds: (usize, Lists),
    changed: Changed,
    shared: Arc<SharedVersions>,
    /// How often slots had moved when the first one was opened.
    since: u64,
    open: Vec<NodeLink>,
    /// Connections that are being made, and the nodes that they are to.
    opening: (JoinSet<Opened>, Vec<usize>),
    /// Nodes of a cluster to which no connection could be made, and until when they are left alone.
    down: HashMap<usize, Instant>,
    /// Why, of the last one, where it was not told yet.
    failure: Option<String>,
}

/// What became of a connection: to which node, when it was begun, and why it could not be made.
type Opened = (usize, Duration, Result<Tracked, CallError>);

struct NodeLink {
    /// The node's number; 0 for the only server.
    node: usize,
    link: Tracked,
    /// When it was asked last for what it has answered, on the clock of the lease.
    alive: Duration,
    /// When it has answered last.
    heard: Instant,
}

impl Links {
    /// Connects, where there is one server only.
    ///
    /// # Errors
    /// No connection, or the server cannot do this.
    ///
    /// # Cancel safety
    /// Dropping it closes the connection.
    pub(super) async fn open(
        (dial, limit): (&Arc<Dial>, Duration),
        bounds: (usize, Lists),
        changed: Changed,
        shared: &Arc<SharedVersions>,
    ) -> Result<Self, CallError> {
        let since = dial.cluster().map_or(0, |cluster| cluster.changes());
        let (dial, shared) = (Arc::clone(dial), Arc::clone(shared));
        let mut links = Self {
            dial,
            limit,
            bounds,
            changed,
            shared,
            since,
            open: Vec::new(),
            opening: (JoinSet::new(), Vec::new()),
            down: HashMap::new(),
            failure: None,
        };
        match links.dial.cluster().cloned() {
            None => {
                let alive = clock::now();
                let changed = Arc::clone(&links.changed);
                let link = Tracked::open(&links.dial, links.bounds, changed).await?;
                links.open.push(NodeLink { node: 0, link, alive, heard: Instant::now() });
            }
            // Whether it can be had at all. Connections are made when something is asked.
            Some(cluster) => cluster.found().await.map_err(|error| CallError::Connect(error.to_string()))?,
        }
        links.tell();
        Ok(links)
    }

    /// The node that has a key. `None` where none is known.
    pub(super) fn node_of(&self, key: &[u8]) -> Option<usize> {
        self.dial.cluster().map_or(Some(0), |cluster| cluster.node_of(key))
    }

    /// Takes what a node says of a key that it does not have. Whether it was that.
    pub(super) fn is_redirection(&self, said: &str) -> bool {
        self.dial.cluster().is_some_and(|cluster| cluster.redirected(said).is_some())
    }

    /// One call. Each answer is a sign of life. `None` where the node of a cluster cannot be had: the others can.
    ///
    /// # Errors
    /// A connection is of no use any more.
    ///
    /// # Cancel safety
    /// None: it has to be dropped with this value.
    pub(super) async fn call(
        &mut self,
        node: usize,
        commands: &[::redis::Cmd],
    ) -> Result<Option<Vec<RedisReply>>, CallError> {
        self.connected(node).await;
        let asked = clock::now();
        let Some(open) = self.open.iter_mut().find(|open| open.node == node) else { return Ok(None) };
        let answers = open.link.ask(commands, TRACKING - BEAT).await?;
        (open.alive, open.heard) = (asked, Instant::now());
        self.tell();
        Ok(Some(answers))
    }

    /// Asks those that are silent for a sign of life, and tries those again that could not be had.
    ///
    /// # Errors
    /// As for [`Links::call`].
    ///
    /// # Cancel safety
    /// As for [`Links::call`].
    pub(super) async fn beat(&mut self) -> Result<(), CallError> {
        let (asked, due) = (clock::now(), Instant::now());
        let silent = self.open.iter_mut().filter(|open| open.heard + BEAT <= due);
        let asking = silent.map(async |open: &mut NodeLink| {
            if let Some(RedisReply::Says(why)) = open.link.ask(&[cmd("PING")], TRACKING - BEAT).await?.pop() {
                return Err(CallError::Says(why));
            }
            (open.alive, open.heard) = (asked, Instant::now());
            Ok(())
        });
        join_all(asking).await.into_iter().collect::<Result<(), CallError>>()?;
        self.tell();
        let due: Vec<usize> =
            self.down.iter().filter(|(_, until)| **until <= Instant::now()).map(|(node, _)| *node).collect();
        due.into_iter().for_each(|node| self.connect(node));
        Ok(())
    }

    /// Why a node of a cluster could not be had, once.
    pub(super) fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// When the first of them has been silent for long.
    pub(super) fn next_beat(&self) -> Instant {
        let heard = self.open.iter().map(|open| open.heard).min();
        heard.unwrap_or_else(Instant::now) + BEAT
    }

    /// Takes what the servers tell, and connections that are made, until one ends or a slot has moved.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn listen(&mut self) -> CallError {
        loop {
            let (cluster, since) = (self.dial.cluster(), self.since);
            let moved = async {
                match cluster {
                    Some(cluster) => cluster.changed(since).await,
                    None => std::future::pending().await,
                }
            };
            let ended = async {
                match self.open.is_empty() {
                    true => std::future::pending().await,
                    false => {
                        select_all(self.open.iter_mut().map(|open| Box::pin(open.link.listen()))).await.0
                    }
                }
            };
            let opened = tokio::select! {
                biased;
                failure = ended => return failure,
                () = moved => return CallError::Failed(Failure::Closed),
                Some(opened) = self.opening.0.join_next() => opened,
            };
            self.take(opened);
        }
    }

    /// Whether what is known ends because slots have moved, and not because something fails.
    pub(super) fn have_moved(&self) -> bool {
        self.dial.cluster().is_some_and(|cluster| cluster.changes() != self.since)
    }

    /// Whether the servers that were asked are still those to be asked, by what is known now.
    pub(super) fn are_current(&self) -> bool {
        let elected = self.dial.elected();
        let is_elected =
            |open: &NodeLink| elected.as_ref().is_none_or(|elected| elected == open.link.address());
        !self.have_moved() && self.open.iter().all(is_elected)
    }

    /// Whether any of them can be had, and none is known to be away.
    pub(super) fn are_well(&self) -> bool {
        !self.open.is_empty() && self.down.is_empty()
    }

    /// Whether a majority has said of late that the servers are the right ones, where there is a vote on that.
    pub(super) fn is_vouched(&self) -> bool {
        clock::now() <= self.dial.vouched().saturating_add(TRACKING)
    }

    /// The same, where a round may be on its way that says so.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn are_vouched_soon(&self) -> bool {
        if !self.is_vouched() {
            let _ = timeout(BEAT, self.dial.later_round()).await;
        }
        self.is_vouched()
    }

    /// What is known counts from the oldest sign of life.
    fn tell(&self) {
        // A server that is not the right one any more answers as well.
        if !self.is_vouched() {
            self.shared.is_down.store(true, Ordering::Release);
            return;
        }
        match self.open.iter().map(|open| open.alive).min() {
            Some(alive) => self.shared.alive(alive.min(self.dial.vouched())),
            // Connections are made when something is asked, so it has to be asked.
            None => self.shared.is_down.store(false, Ordering::Release),
        }
    }

    /// Waits for the connection to a node that is none yet, for a moment: others wait for their turns.
    async fn connected(&mut self, node: usize) {
        let is_down = self.down.get(&node).is_some_and(|until| *until > Instant::now());
        let is_there = self.open.iter().any(|open| open.node == node);
        if is_there || is_down || self.opening.1.contains(&node) {
            return;
        }
        self.connect(node);
        let until = Instant::now() + self.limit / LIMIT_PARTS;
        while self.opening.1.contains(&node) {
            match timeout_at(until, self.opening.0.join_next()).await {
                Ok(Some(opened)) => self.take(opened),
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Begins to connect to a node of a cluster.
    fn connect(&mut self, node: usize) {
        let Some(cluster) = self.dial.cluster() else { return };
        if self.opening.1.contains(&node) {
            return;
        }
        let dial = self.dial.node(cluster, node);
        let (bounds, changed, limit) = (self.bounds, Arc::clone(&self.changed), self.limit);
        self.opening.1.push(node);
        self.opening.0.spawn(async move {
            let alive = clock::now();
            let opened = timeout(limit, Tracked::open(&dial, bounds, changed)).await;
            (node, alive, opened.unwrap_or(Err(CallError::Failed(Failure::TimedOut))))
        });
    }

    fn take(&mut self, opened: Result<Opened, JoinError>) {
        let Ok((node, alive, opened)) = opened else {
            // Which one has come to nothing is not told.
            return self.opening.1.clear();
        };
        self.opening.1.retain(|opening| *opening != node);
        match opened {
            Ok(link) => {
                self.down.remove(&node);
                self.open.push(NodeLink { node, link, alive, heard: Instant::now() });
                self.tell();
            }
            Err(failure) => {
                let cluster = self.dial.cluster();
                cluster.into_iter().for_each(|cluster| cluster.ask_soon());
                let address = cluster.and_then(|cluster| cluster.address(node));
                let label = address.map_or_else(|| "a node".to_owned(), |address| address.to_string());
                self.failure = Some(format!("{label}: {failure}"));
                self.down.insert(node, Instant::now() + DOWN);
            }
        }
    }
}
