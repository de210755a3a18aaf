//! Which protocol a server speaks: the one place that asks, once for each connection.
//!
//! In: how to reach a server. Out: a session with it, up to its end. What stands above, from the breaker to the queue of writes, knows
//! requests and replies and no protocol.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc::UnboundedReceiver;

use crate::address::{Address, Resolve};
use crate::ask::Ask;
use crate::connect::connect;
use crate::memcached::{Conversation, Opened, open};
use crate::redis::{Dial, Multiplexed, Scanner};
use crate::server::Server;

/// What is spoken, and where.
#[derive(Clone)]
pub(crate) enum Protocol {
    Memcached(Address, Arc<dyn Resolve>),
    Redis(Arc<Dial>),
}

/// How one server is reached.
pub(crate) struct Dialer {
    pub(crate) protocol: Protocol,
    /// The largest value that is read, in bytes. A connection has what it was when it was made.
    pub(crate) value_max: Arc<AtomicUsize>,
}

impl Dialer {
    /// Connects, and has a first reply: a server that hangs accepts connections all the same.
    ///
    /// # Errors
    /// No connection could be made, or what came is no reply, or it says that the server cannot.
    ///
    /// # Cancel safety
    /// Dropping it closes whatever was begun.
    pub(crate) async fn open(&self) -> io::Result<Session> {
        let value_max = self.value_max.load(Ordering::Relaxed);
        match &self.protocol {
            Protocol::Memcached(address, names) => {
                let halves = connect(address, &**names).await?;
                Ok(Session::Memcached(open(halves).await?, value_max))
            }
            Protocol::Redis(dial) => {
                let opened = dial.open(Scanner::new(value_max)).await?;
                Ok(Session::Redis(Multiplexed::new(opened)))
            }
        }
    }

    /// The server that is connected to now, where a vote decides which it is.
    pub(crate) fn elected(&self) -> Option<Address> {
        match &self.protocol {
            Protocol::Memcached(..) => None,
            Protocol::Redis(dial) => dial.elected(),
        }
    }

    /// Waits until it is another one than this. For ever, where there is no vote.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn moved_from(&self, elected: Option<&Address>) {
        match &self.protocol {
            Protocol::Memcached(..) => std::future::pending().await,
            Protocol::Redis(dial) => dial.moved_from(elected).await,
        }
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.protocol {
            Protocol::Memcached(address, _) => write!(f, "Dialer({address})"),
            Protocol::Redis(dial) => dial.fmt(f),
        }
    }
}

/// A connection that has had its first reply.
pub(crate) enum Session {
    /// With the largest value that is read.
    Memcached(Opened, usize),
    Redis(Multiplexed),
}

impl Session {
    /// Asks what comes, until the connection ends, or nobody can ask any more.
    pub(crate) async fn converse(self, server: &Server, first: Ask, asks: &mut UnboundedReceiver<Ask>) {
        match self {
            Self::Memcached(opened, value_max) => {
                Conversation::new(server, opened, value_max).run(first, asks).await;
            }
            Self::Redis(multiplexed) => multiplexed.run(server, first, asks).await,
        }
    }
}
