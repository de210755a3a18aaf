//! The connections by which versions are read: one, or in a cluster one to each node that has some of them.
//!
//! In: names of keys. Out: the connection that is theirs, opened where there is none. What is known counts only as long as every one of
//! them is alive, and ends with the first that ends: what a node has told is worth nothing without the others, since a slot may have
//! moved between them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ::redis::cmd;
use futures_util::future::{join_all, select_all};
use tokio::time::{Instant, timeout};

use super::known::TRACKING;
use super::reader_state::SharedVersions;
use crate::clock;
use crate::error::Failure;
use crate::redis::{CallError, Changed, Cluster, Dial, Lists, RedisReply, Tracked};

/// The longest silence of a server. A reply may then be as late as a second and a half before anything is forgotten.
pub(super) const BEAT: Duration = Duration::from_millis(500);

/// How long a node is left alone to which no connection could be made.
const DOWN: Duration = Duration::from_secs(1);

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
    /// Nodes of a cluster to which no connection could be made, and until when they are left alone.
    down: HashMap<usize, Instant>,
    /// Why, of the last one, where it was not told yet.
    failure: Option<String>,
}

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
            down: HashMap::new(),
            failure: None,
        };
        match links.dial.cluster().cloned() {
            None => {
                links.at(0).await?;
            }
            // Whether it can be had at all.
            Some(cluster) => cluster.found().await.map_err(|error| CallError::Connect(error.to_string()))?,
        }
        links.tell();
        // In a cluster connections are made when something is asked, so it has to be asked.
        links.shared.is_down.store(false, Ordering::Release);
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
        let asked = clock::now();
        if self.down.get(&node).is_some_and(|until| *until > Instant::now()) {
            return Ok(None);
        }
        let open = match self.at(node).await {
            Ok(_) => self.at(node).await?,
            Err(failure) => {
                let Some(cluster) = self.dial.cluster() else { return Err(failure) };
                cluster.ask_soon();
                let label =
                    cluster.address(node).map_or_else(|| "a node".to_owned(), |node| node.to_string());
                self.failure = Some(format!("{label}: {failure}"));
                self.down.insert(node, Instant::now() + DOWN);
                return Ok(None);
            }
        };
        let answers = open.link.ask(commands, TRACKING - BEAT).await?;
        (open.alive, open.heard) = (asked, Instant::now());
        self.tell();
        Ok(Some(answers))
    }

    /// Asks those that are silent for a sign of life.
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

    /// Takes what the servers tell until a connection ends, or a slot has moved.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn listen(&mut self) -> CallError {
        let cluster = self.dial.cluster().cloned();
        let since = self.since;
        let moved = async {
            match cluster {
                Some(cluster) => cluster.changed(since).await,
                None => std::future::pending().await,
            }
        };
        let ended = async {
            match self.open.is_empty() {
                true => std::future::pending().await,
                false => select_all(self.open.iter_mut().map(|open| Box::pin(open.link.listen()))).await.0,
            }
        };
        tokio::select! {
            biased;
            failure = ended => failure,
            () = moved => CallError::Failed(Failure::Closed),
        }
    }

    /// Whether what is known ends because slots have moved, and not because something fails.
    pub(super) fn have_moved(&self) -> bool {
        self.dial.cluster().is_some_and(|cluster| cluster.changes() != self.since)
    }

    /// What is known counts from the oldest sign of life.
    fn tell(&self) {
        if let Some(alive) = self.open.iter().map(|open| open.alive).min() {
            // A server that is not the master any more answers as well.
            self.shared.alive(alive.min(self.dial.vouched()));
        }
    }

    /// The connection to a node.
    async fn at(&mut self, node: usize) -> Result<&mut NodeLink, CallError> {
        let place = match self.open.iter().position(|open| open.node == node) {
            Some(place) => place,
            None => {
                let alive = clock::now();
                let dial = self.dial.cluster().map(|cluster: &Arc<Cluster>| self.dial.node(cluster, node));
                let dial = dial.as_ref().unwrap_or(&self.dial);
                let opening = Tracked::open(dial, self.bounds, Arc::clone(&self.changed));
                let opened = timeout(self.limit, opening).await;
                let link = opened.unwrap_or(Err(CallError::Failed(Failure::TimedOut)))?;
                self.open.push(NodeLink { node, link, alive, heard: Instant::now() });
                self.open.len() - 1
            }
        };
        self.open.get_mut(place).ok_or(CallError::Failed(Failure::Closed))
    }
}
