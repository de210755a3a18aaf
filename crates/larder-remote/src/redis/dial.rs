//! How a server of Redis is reached: its place, TLS, and who larder is there.
//!
//! In: settings. Out: connections that have had their first reply. A password in a file, and certificates, are read for each
//! connection as they are then, so that they can be renewed without a restart. A connection ends when a majority of the Sentinels, or of
//! the masters of a cluster, names another server, and when a node's number has become another node's.
//! The time limit is the caller's.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use larder_observe::Diagnostics;
use larder_tls::Connector;

use super::cluster::Cluster;
use super::login::{LoggedIn, Pushed};
use super::reach::{LoginSettings, Reach};
use super::renewed::RenewedTls;
use super::scan::Scanner;
use super::sentinel::Masters;
use super::settings::{RedisPlace, RedisSettings};
use crate::address::{Address, Resolve};
use crate::error::{Failure, RemoteError};

/// See the head of the file.
pub(crate) struct Dial {
    place: Place,
    account: Arc<LoginSettings>,
    reach: Reach,
}

#[derive(Clone)]
enum Place {
    Server(Address),
    Sentinel(Arc<Masters>),
    /// The node that has a key.
    Slot(Arc<Cluster>, Arc<[u8]>),
    /// The node of a number.
    Node(Arc<Cluster>, usize),
}

impl Dial {
    /// Reads certificates. Of a cluster, the node that has `key` is meant.
    ///
    /// # Errors
    /// They cannot be used.
    pub(crate) fn new(
        settings: &RedisSettings,
        key: &[u8],
        names: Arc<dyn Resolve>,
        diagnostics: &Diagnostics,
    ) -> Result<Self, RemoteError> {
        let RedisSettings { user, password, database, .. } = settings.clone();
        let account = Arc::new(LoginSettings { user, password, database });
        let tls = settings.tls.clone().map(Connector::new).transpose().map_err(RemoteError::Tls)?;
        let tls = tls.map(|tls| RenewedTls::new(tls, diagnostics.clone()));
        let reach = Reach::new(names, tls);
        let place = match &settings.place {
            RedisPlace::Server(address) => Place::Server(address.clone()),
            RedisPlace::Sentinel(said) => {
                Place::Sentinel(Arc::new(Masters::new(said.clone(), reach.clone(), settings.timeout)))
            }
            RedisPlace::Cluster(seeds) => {
                let (seeds, account) = (seeds.clone(), Arc::clone(&account));
                let cluster = Cluster::new(seeds, account, reach.clone(), settings.timeout);
                Place::Slot(Arc::new(cluster), Arc::from(key))
            }
        };
        Ok(Self { place, account, reach })
    }

    /// The cluster, if it is one.
    pub(crate) fn cluster(&self) -> Option<&Arc<Cluster>> {
        match &self.place {
            Place::Slot(cluster, _) | Place::Node(cluster, _) => Some(cluster),
            Place::Server(_) | Place::Sentinel(_) => None,
        }
    }

    /// The same for the node of this number.
    pub(crate) fn node(&self, cluster: &Arc<Cluster>, node: usize) -> Self {
        let place = Place::Node(Arc::clone(cluster), node);
        Self { place, account: Arc::clone(&self.account), reach: self.reach.clone() }
    }

    /// Connects to the server, and has its first reply.
    ///
    /// # Errors
    /// No connection could be made, or what came is no reply, or it says that the server cannot.
    ///
    /// # Cancel safety
    /// Dropping it closes whatever was begun.
    pub(crate) async fn open(&self, scanner: Scanner) -> io::Result<LoggedIn> {
        self.open_with(scanner, None).await
    }

    /// The same for RESP3, where `pushed` takes what the server sends of its own accord.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Cancel safety
    /// As there.
    pub(super) async fn open_with(&self, scanner: Scanner, pushed: Option<Pushed>) -> io::Result<LoggedIn> {
        match &self.place {
            Place::Server(address) => self.reach.open(address, &self.account, scanner, pushed).await,
            Place::Sentinel(masters) => {
                let master = masters.current().await?;
                let opened = self.reach.open(&master, &self.account, scanner, pushed).await;
                let opened = opened.inspect_err(|_| masters.ask_soon())?;
                let masters = Arc::clone(masters);
                Ok(until(opened, async move { masters.left(&master).await }))
            }
            Place::Slot(cluster, key) => {
                let node = cluster.current(key).await?;
                let opened = self.reach.open(&node, &self.account, scanner, pushed).await;
                let opened = opened.inspect_err(|_| cluster.ask_soon())?;
                let (cluster, key) = (Arc::clone(cluster), Arc::clone(key));
                Ok(until(opened, async move { cluster.left(&key, &node).await }))
            }
            Place::Node(cluster, node) => {
                let address =
                    cluster.address(*node).ok_or_else(|| io::Error::other("no such node is known"))?;
                let opened = self.reach.open(&address, &self.account, scanner, pushed).await;
                let opened = opened.inspect_err(|_| cluster.ask_soon())?;
                let (cluster, node) = (Arc::clone(cluster), *node);
                Ok(until(opened, async move { cluster.renumbered(node, &address).await }))
            }
        }
    }

    /// Finds out where the server is, for as long as it is polled. Never ends.
    pub(crate) async fn watch(&self) {
        match &self.place {
            Place::Server(_) | Place::Node(..) => std::future::pending().await,
            Place::Sentinel(masters) => masters.watch().await,
            Place::Slot(cluster, _) => cluster.watch().await,
        }
    }

    /// Since when it is vouched for that the servers are the right ones, on the lease's clock. A majority that cannot be asked vouches for
    /// none.
    pub(crate) fn vouched(&self) -> Duration {
        match &self.place {
            Place::Server(_) => Duration::MAX,
            Place::Sentinel(masters) => masters.vouched(),
            Place::Slot(cluster, _) | Place::Node(cluster, _) => cluster.vouched(),
        }
    }

    /// Waits until another server than this one is [elected](Self::elected). For ever, where there is no vote.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn moved_from(&self, elected: Option<&Address>) {
        match &self.place {
            Place::Sentinel(masters) => masters.moved_from(elected).await,
            Place::Server(_) | Place::Slot(..) | Place::Node(..) => std::future::pending().await,
        }
    }

    /// Waits until a round of questions is over that has begun later than this call.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn later_round(&self) {
        match &self.place {
            Place::Server(_) => {}
            Place::Sentinel(masters) => drop(masters.later_round().await),
            Place::Slot(cluster, _) | Place::Node(cluster, _) => drop(cluster.later_round().await),
        }
    }

    /// Whether it is decided by a vote which server of several is asked.
    pub(crate) fn has_vote(&self) -> bool {
        match &self.place {
            Place::Sentinel(_) => true,
            Place::Server(_) | Place::Slot(..) | Place::Node(..) => false,
        }
    }

    /// The server that is asked now, where a majority decides which it is.
    pub(crate) fn elected(&self) -> Option<Address> {
        match &self.place {
            Place::Sentinel(masters) => masters.known(),
            Place::Server(_) | Place::Slot(..) | Place::Node(..) => None,
        }
    }

    /// Whether a server is still the one to be asked, by what is known from now on.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn confirms(&self, address: &Address) -> bool {
        match &self.place {
            Place::Server(_) | Place::Node(..) => true,
            Place::Sentinel(masters) => masters.confirms(address).await,
            Place::Slot(cluster, key) => cluster.confirms(key, address).await,
        }
    }
}

impl fmt::Debug for Dial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Server(address) => write!(f, "Dial({address})"),
            Place::Sentinel(masters) => write!(f, "Dial({masters:?})"),
            Place::Slot(cluster, _) => write!(f, "Dial({cluster:?})"),
            Place::Node(cluster, node) => write!(f, "Dial({node} of {cluster:?})"),
        }
    }
}

/// A connection that ends when its server is not the one any more. That comes first: what is sent after a vote on another server
/// must not be answered by this one.
fn until(mut opened: LoggedIn, left: impl Future<Output = ()> + Send + 'static) -> LoggedIn {
    let (driver, account) = (opened.driver, Arc::clone(&opened.account));
    opened.driver = Box::pin(async move {
        tokio::select! {
            biased;
            () = left => account.end(Failure::Moved),
            () = driver => {}
        }
    });
    opened
}
