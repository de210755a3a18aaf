//! How a server of Redis is reached: its place, TLS, and who larder is there.
//!
//! In: settings. Out: connections that have had their first reply. A password in a file, and certificates, are read for each
//! connection as they are then, so that they can be renewed without a restart. Under Sentinel a connection ends when a majority of
//! them names another master.
//! The time limit is the caller's.

use std::fmt;
use std::io;
use std::sync::Arc;

use larder_tls::Connector;

use super::login::{Driver, LoggedIn, Pushed};
use super::reach::{LoginSettings, Reach};
use super::scan::Scanner;
use super::sentinel::Masters;
use super::settings::{RedisPlace, RedisSettings};
use crate::address::{Address, Resolve};
use crate::error::RemoteError;

/// See the head of the file.
pub(crate) struct Dial {
    place: Place,
    account: Arc<LoginSettings>,
    reach: Reach,
}

enum Place {
    Server(Address),
    Sentinel(Arc<Masters>),
}

impl Dial {
    /// Reads certificates.
    ///
    /// # Errors
    /// They cannot be used.
    pub(crate) fn new(settings: &RedisSettings, names: Arc<dyn Resolve>) -> Result<Self, RemoteError> {
        let tls = settings.tls.clone().map(Connector::new).transpose().map_err(RemoteError::Tls)?;
        let reach = Reach::new(names, tls);
        let place = match &settings.place {
            RedisPlace::Server(address) => Place::Server(address.clone()),
            RedisPlace::Sentinel(said) => {
                Place::Sentinel(Arc::new(Masters::new(said.clone(), reach.clone(), settings.timeout)))
            }
        };
        let RedisSettings { user, password, database, .. } = settings.clone();
        Ok(Self { place, account: Arc::new(LoginSettings { user, password, database }), reach })
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
                let mut opened = opened.inspect_err(|_| masters.ask_soon())?;
                opened.driver = until_moved(opened.driver, Arc::clone(masters), master);
                Ok(opened)
            }
        }
    }

    /// Finds out where the server is, for as long as it is polled. Never ends.
    pub(crate) async fn watch(&self) {
        match &self.place {
            Place::Server(_) => std::future::pending().await,
            Place::Sentinel(masters) => masters.watch().await,
        }
    }

    /// Whether a server is still the one to be asked, by what is known from now on.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn confirms(&self, address: &Address) -> bool {
        match &self.place {
            Place::Server(_) => true,
            Place::Sentinel(masters) => masters.confirms(address).await,
        }
    }
}

impl fmt::Debug for Dial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Server(address) => write!(f, "Dial({address})"),
            Place::Sentinel(masters) => write!(f, "Dial({masters:?})"),
        }
    }
}

/// A connection that ends when the master is another.
fn until_moved(driver: Driver, masters: Arc<Masters>, master: Address) -> Driver {
    Box::pin(async move {
        tokio::select! {
            () = driver => {}
            () = masters.left(&master) => {}
        }
    })
}
