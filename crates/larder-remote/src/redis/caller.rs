//! A connection for one caller that has one command under way at a time: scripts, and waiting for a stream.
//!
//! In: a script's arguments. Out: the flat list of strings that it answers. The connection is made when something is asked, and
//! closed by any failure, and when a call is dropped: so a reply is never another call's. There is no breaker, since whoever calls
//! waits between its tries by itself.
//! Deliberately absent: reasons to ask, and what the words mean.

use std::sync::Arc;
use std::time::Duration;

use ::redis::{Cmd, Value, cmd};
use tokio::time::{Instant, timeout_at};

use super::login::{LoggedIn, Login, log_in};
use super::scan::{Lists, Scanner};
use crate::address::{Address, Resolve};
use crate::connect::connect;
use crate::error::Failure;

/// Why a call came to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// No connection, or what came is no reply.
    #[error("{0}")]
    Failed(Failure),
    /// No connection could be made, for this reason.
    #[error("no connection: {0}")]
    Connect(String),
    /// The server says that it cannot.
    #[error("it says: {0}")]
    Says(String),
}

/// See the head of the file.
pub(crate) struct Caller {
    address: Address,
    login: Login,
    names: Arc<dyn Resolve>,
    /// The largest string of a reply, in bytes.
    value_max: usize,
    lists: Lists,
    script: &'static str,
    open: Option<Ready>,
}

/// A connection at whose server the script is loaded.
struct Ready {
    opened: LoggedIn,
    /// What the server calls the script.
    digest: String,
}

impl Caller {
    pub(crate) fn new(
        (address, login): (Address, Login),
        names: Arc<dyn Resolve>,
        (value_max, lists): (usize, Lists),
        script: &'static str,
    ) -> Self {
        Self { address, login, names, value_max, lists, script, open: None }
    }

    /// Runs the script.
    ///
    /// # Errors
    /// It was not run, or nobody knows whether it was.
    ///
    /// # Cancel safety
    /// Dropping it closes the connection; the script may run all the same.
    pub(crate) async fn run(
        &mut self,
        keys: &[&str],
        arguments: &[Vec<u8>],
        limit: Duration,
    ) -> Result<Vec<Vec<u8>>, CallError> {
        let ready = self.ready(limit).await?;
        let mut command = cmd("EVALSHA");
        command.arg(&ready.digest).arg(keys.len()).arg(keys).arg(arguments);
        let Value::Array(all) = self.ask(ready, &command, limit).await? else {
            return Err(self.close(Failure::Malformed));
        };
        let words = all.into_iter().map(|word| match word {
            Value::BulkString(word) => Some(word),
            _ => None,
        });
        words.collect::<Option<_>>().ok_or_else(|| self.close(Failure::Malformed))
    }

    /// Waits for `pause` at the longest until a stream has an entry behind this one.
    ///
    /// # Errors
    /// As for [`Caller::run`].
    ///
    /// # Cancel safety
    /// As for [`Caller::run`].
    pub(crate) async fn wait(
        &mut self,
        (stream, after): (&str, u64),
        pause: Duration,
        limit: Duration,
    ) -> Result<(), CallError> {
        let ready = self.ready(limit).await?;
        let mut command = cmd("XREAD");
        command.arg("COUNT").arg(1).arg("BLOCK").arg(pause.as_millis() as u64);
        command.arg("STREAMS").arg(stream).arg(format!("{after}-0"));
        self.ask(ready, &command, pause + limit).await.map(drop)
    }

    /// What the server's clock says, since 1970.
    ///
    /// # Errors
    /// As for [`Caller::run`].
    ///
    /// # Cancel safety
    /// As for [`Caller::run`].
    pub(crate) async fn time(&mut self, limit: Duration) -> Result<Duration, CallError> {
        let ready = self.ready(limit).await?;
        let Value::Array(parts) = self.ask(ready, &cmd("TIME"), limit).await? else {
            return Err(self.close(Failure::Malformed));
        };
        let number = |part: &Value| match part {
            Value::BulkString(digits) => std::str::from_utf8(digits).ok()?.parse::<u64>().ok(),
            _ => None,
        };
        match &parts[..] {
            [seconds, micros] => number(seconds).zip(number(micros)),
            _ => None,
        }
        .map(|(seconds, micros)| Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros)))
        .ok_or_else(|| self.close(Failure::Malformed))
    }

    fn close(&mut self, failure: Failure) -> CallError {
        self.open = None;
        CallError::Failed(failure)
    }

    /// The connection is put back when a reply has come, so that one call at most is under way on it.
    async fn ask(&mut self, mut ready: Ready, command: &Cmd, limit: Duration) -> Result<Value, CallError> {
        let reply = exchange(&mut ready.opened, command, Instant::now() + limit).await?;
        match reply {
            // A server that has lost the script has it again with the next connection.
            Value::ServerError(error) => Err(CallError::Says(error.to_string())),
            reply => {
                self.open = Some(ready);
                Ok(reply)
            }
        }
    }

    async fn ready(&mut self, limit: Duration) -> Result<Ready, CallError> {
        match self.open.take() {
            Some(ready) => Ok(ready),
            None => timeout_at(Instant::now() + limit, self.open())
                .await
                .unwrap_or(Err(CallError::Failed(Failure::TimedOut))),
        }
    }

    async fn open(&mut self) -> Result<Ready, CallError> {
        let refused = |error: std::io::Error| CallError::Connect(error.to_string());
        let halves = connect(&self.address, &*self.names).await.map_err(refused)?;
        let scanner = Scanner::with_lists(self.value_max, self.lists);
        let mut opened = log_in(halves, &self.login, scanner).await.map_err(refused)?;
        let mut load = cmd("SCRIPT");
        load.arg("LOAD").arg(self.script);
        // The caller's limit holds for all of it.
        let never = Instant::now() + Duration::from_secs(3600);
        match exchange(&mut opened, &load, never).await? {
            Value::BulkString(digest) => {
                let digest = String::from_utf8(digest).map_err(|_| CallError::Failed(Failure::Malformed))?;
                Ok(Ready { opened, digest })
            }
            Value::ServerError(error) => Err(CallError::Says(error.to_string())),
            _ => Err(CallError::Failed(Failure::Malformed)),
        }
    }
}

/// One command and its reply.
async fn exchange(opened: &mut LoggedIn, command: &Cmd, until: Instant) -> Result<Value, CallError> {
    let LoggedIn { connection, driver, account } = opened;
    account.asked(1);
    let reply = tokio::select! {
        biased;
        reply = timeout_at(until, connection.send_packed_command(command)) => reply,
        () = driver => return Err(CallError::Failed(account.failure())),
    };
    let reply = reply.map_err(|_| CallError::Failed(Failure::TimedOut))?;
    reply.map_err(|_| CallError::Failed(account.failure()))
}
