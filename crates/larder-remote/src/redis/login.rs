//! A new connection to Redis, up to the first reply on it.
//!
//! In: a socket, and who larder is there. Out: a connection that the library reads ([`LoggedIn`]), behind a check of all that the server sends. The
//! library sends user, password and database. `PING` is asked last, so a connection counts as made when the server has replied: a hung one
//! accepts connections all the same. A server that wants a password, or still loads its data, is not well.
//! The time limit is the caller's.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use ::redis::aio::MultiplexedConnection;
use ::redis::{
    AsyncConnectionConfig, Cmd, Pipeline, ProtocolVersion, PushInfo, RedisConnectionInfo, RedisError, Value,
    cmd,
};
use tokio::time::{Instant, timeout_at};

use super::account::Account;
use super::checked::Checked;
use super::reply::pong;
use super::scan::Scanner;
use crate::address::Address;
use crate::ask::OUTSTANDING_MAX;
use crate::connect::{Reader, Writer};
use crate::error::Failure;
use crate::reply::Reply;

/// Who larder is at a server. The library hides the password where this is printed.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    info: RedisConnectionInfo,
    /// How many commands that takes.
    commands: usize,
    /// A server before version 6 knows no users. The library then does without the user's name, and sends all anew.
    may_be_repeated: bool,
}

impl Login {
    /// The user needs a password.
    pub(super) fn new(user: Option<&str>, password: Option<&str>, database: u32) -> Self {
        let mut info = RedisConnectionInfo::default().set_db(database.into()).set_skip_set_lib_name();
        if let Some(user) = user {
            info = info.set_username(user);
        }
        if let Some(password) = password {
            info = info.set_password(password);
        }
        let commands = usize::from(password.is_some()) + usize::from(database != 0);
        Self { info, commands, may_be_repeated: user.is_some() && password.is_some() }
    }

    /// The same for a connection that speaks RESP3: one command says that, and who larder is.
    pub(super) fn speaking_three(self) -> Self {
        let commands = 1 + usize::from(self.info.db() != 0);
        let info = self.info.set_protocol(ProtocolVersion::RESP3);
        Self { info, commands, may_be_repeated: false }
    }
}

/// Takes what a server sends of its own accord (RESP3), in the order in which it comes: what is called for it is called before a later
/// reply is handed on.
pub(super) type Pushed = Arc<dyn Fn(PushInfo) + Send + Sync>;

/// What reads and writes. It ends with the connection.
pub(super) type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A connection that has had its first reply. Nothing is read or written while the driver is not polled.
pub(crate) struct LoggedIn {
    pub(super) connection: MultiplexedConnection,
    pub(super) driver: Driver,
    pub(super) account: Arc<Account>,
    /// Where its server is.
    pub(super) address: Address,
}

impl LoggedIn {
    /// One command and its reply, where nothing else is under way.
    ///
    /// # Errors
    /// The connection is of no use any more.
    ///
    /// # Cancel safety
    /// None: a reply that is not waited for would be the next command's. It has to be dropped with this value.
    pub(super) async fn ask(&mut self, command: &Cmd, until: Instant) -> Result<Value, Failure> {
        let Self { connection, driver, account, .. } = self;
        account.asked(1);
        let reply = tokio::select! {
            biased;
            reply = timeout_at(until, connection.send_packed_command(command)) => reply,
            () = driver => return Err(account.failure()),
        };
        reply.map_err(|_| Failure::TimedOut)?.map_err(|_| account.failure())
    }

    /// The same for several at once.
    ///
    /// # Errors
    /// As for [`Self::ask`].
    ///
    /// # Cancel safety
    /// As for [`Self::ask`].
    pub(super) async fn ask_all(
        &mut self,
        commands: &Pipeline,
        count: usize,
        until: Instant,
    ) -> Result<Vec<Value>, Failure> {
        let Self { connection, driver, account, .. } = self;
        account.asked(count);
        let replies = tokio::select! {
            biased;
            replies = timeout_at(until, connection.send_packed_commands(commands, 0, count)) => replies,
            () = driver => return Err(account.failure()),
        };
        replies.map_err(|_| Failure::TimedOut)?.map_err(|_| account.failure())
    }
}

/// Logs in, and has a reply. `pushed` takes what the server sends of its own accord.
///
/// # Errors
/// The connection broke, or what came is no reply, or it says that the server cannot.
///
/// # Cancel safety
/// Dropping it closes the connection.
pub(super) async fn log_in(
    (reader, writer): (Reader, Writer),
    address: &Address,
    (login, scanner): (&Login, Scanner),
    pushed: Option<Pushed>,
) -> io::Result<LoggedIn> {
    let rounds = 1 + usize::from(login.may_be_repeated);
    let account = Arc::new(Account::new(rounds * login.commands + 1));
    let stream = tokio::io::join(Checked::new(reader, scanner, Arc::clone(&account)), writer);
    // Callers have time limits of their own, and there is room for as many requests as may be outstanding.
    let mut config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(OUTSTANDING_MAX);
    if let Some(pushed) = pushed {
        config = config.set_push_sender(move |info| {
            pushed(info);
            Ok::<(), ()>(())
        });
    }
    let made = MultiplexedConnection::new_with_config(&login.info, stream, config).await;
    let (mut connection, driver) = made.map_err(|error| said(&account, &error))?;
    let mut driver: Driver = Box::pin(driver);
    let ping = cmd("PING");
    let reply = tokio::select! {
        biased;
        reply = connection.send_packed_command(&ping) => reply.map_err(|error| said(&account, &error))?,
        () = &mut driver => return Err(broken(&account)),
    };
    match pong(&reply) {
        Ok(Reply::NoOp) => {}
        Ok(Reply::ServerError(text)) => return Err(io::Error::other(text)),
        Ok(_) | Err(_) => return Err(rubbish()),
    }
    // Those of the second round, where there was none.
    let is_even = account.due() == 0 || login.may_be_repeated && account.due() == login.commands;
    if !is_even {
        return Err(rubbish());
    }
    account.forgive();
    Ok(LoggedIn { connection, driver, account, address: address.clone() })
}

/// What the library says, or why the connection has ended.
fn said(account: &Account, error: &RedisError) -> io::Error {
    match error.is_io_error() {
        true => broken(account),
        false => io::Error::other(harmless(&error.to_string())),
    }
}

/// A server that does not know a command repeats what was said to it, a password too.
fn harmless(said: &str) -> String {
    said.split(", with args beginning with").next().unwrap_or_default().to_owned()
}

fn broken(account: &Account) -> io::Error {
    let why = match (account.said(), account.failure()) {
        (Some(said), _) => said.to_owned(),
        (None, Failure::Closed) => {
            "it closed the connection before its first reply; does it want TLS?".to_owned()
        }
        (None, failure) => failure.to_string(),
    };
    io::Error::other(why)
}

fn rubbish() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "its first reply is none of the protocol")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_repeats_is_not_told() {
        let said = "ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'larder' 's3cret' ";
        assert_eq!(harmless(said), "ERR unknown command 'HELLO'");
        assert_eq!(harmless("WRONGPASS invalid"), "WRONGPASS invalid");
    }
}
