//! A connection whose server tells of changes by itself (RESP3, `CLIENT TRACKING`).
//!
//! In: commands, one call at a time. Out: their answers; and, before any later answer, the keys that have changed since they were
//! read. Only what is read behind `CLIENT CACHING YES` is told of. The server forgets that once it has told.
//! `NOLOOP` is not asked for: a server that spares larder the news of its own write forgets all the same that the key was read, so later
//! changes by others would not be told.
//! Deliberately absent: when to connect, what to read, and what a change means.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{Cmd, Pipeline, PushInfo, PushKind, Value, cmd};
use tokio::time::{Instant, timeout_at};

use super::call_error::CallError;
use super::dial::Dial;
use super::login::{LoggedIn, Pushed};
use super::scan::{Lists, RespVersion, Scanner};
use crate::address::Address;
use crate::error::Failure;

/// Takes a key that has changed; `None` where it may be any.
pub(crate) type Changed = Arc<dyn Fn(Option<&[u8]>) + Send + Sync>;

/// What a command came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RedisReply {
    /// A string.
    Text(Vec<u8>),
    /// There is none.
    Nothing,
    /// A list.
    List(Vec<RedisReply>),
    /// Done, or a number.
    Done,
    /// The server says that it cannot.
    Says(String),
}

/// See the head of the file.
pub(crate) struct Tracked(LoggedIn);

impl Tracked {
    /// Connects, logs in, and has changes told. The time limit is the caller's.
    ///
    /// # Errors
    /// No connection, or the server cannot do this.
    ///
    /// # Cancel safety
    /// Dropping it closes the connection.
    pub(crate) async fn open(
        dial: &Dial,
        (value_max, lists): (usize, Lists),
        changed: Changed,
    ) -> Result<Self, CallError> {
        let refused = |error: std::io::Error| CallError::Connect(error.to_string());
        let scanner = Scanner::speaking(RespVersion::Three, value_max, lists);
        let pushed: Pushed = Arc::new(move |push| tell(&push, &*changed));
        let opened = dial.open_with(scanner, Some(pushed)).await;
        let mut tracked = Self(opened.map_err(refused)?);
        let (mut tracking, mut name) = (cmd("CLIENT"), cmd("CLIENT"));
        tracking.arg("TRACKING").arg("ON").arg("OPTIN");
        name.arg("SETNAME").arg("larder:versions");
        // Nothing depends on the name.
        let until = Instant::now() + Duration::from_secs(3600);
        match tracked.ask_until(&[tracking, name], until).await?.into_iter().next() {
            Some(RedisReply::Done) => Ok(tracked),
            Some(RedisReply::Says(why)) => Err(CallError::Says(why)),
            _ => Err(CallError::Failed(Failure::Malformed)),
        }
    }

    /// The server that it is to.
    pub(crate) fn address(&self) -> &Address {
        &self.0.address
    }

    /// Sends `commands` as one, and waits for the answers to all of them.
    ///
    /// # Errors
    /// The connection is of no use any more.
    ///
    /// # Cancel safety
    /// None: an answer that is not waited for would be the next call's. It has to be dropped with this value.
    pub(crate) async fn ask(
        &mut self,
        commands: &[Cmd],
        limit: Duration,
    ) -> Result<Vec<RedisReply>, CallError> {
        self.ask_until(commands, Instant::now() + limit).await
    }

    async fn ask_until(&mut self, commands: &[Cmd], until: Instant) -> Result<Vec<RedisReply>, CallError> {
        let LoggedIn { connection, driver, account, .. } = &mut self.0;
        let mut pipeline = Pipeline::with_capacity(commands.len());
        commands.iter().for_each(|command| {
            pipeline.add_command(command.clone());
        });
        account.asked(commands.len());
        let replies = tokio::select! {
            biased;
            replies = timeout_at(until, connection.send_packed_commands(&pipeline, 0, commands.len())) => replies,
            () = driver => return Err(CallError::Failed(account.failure())),
        };
        let replies = replies.map_err(|_| CallError::Failed(Failure::TimedOut))?;
        let replies = replies.map_err(|_| CallError::Failed(account.failure()))?;
        if replies.len() != commands.len() {
            return Err(CallError::Failed(Failure::Malformed));
        }
        replies.into_iter().map(answer).collect()
    }

    /// Takes what the server tells until the connection ends.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn listen(&mut self) -> CallError {
        let LoggedIn { driver, account, .. } = &mut self.0;
        poll_fn(|context| driver.as_mut().poll(context)).await;
        CallError::Failed(account.failure())
    }
}

/// Whether it ends well is the next command's to say: a push has no reply.
fn tell(push: &PushInfo, changed: &dyn Fn(Option<&[u8]>)) {
    match (&push.kind, push.data.as_slice()) {
        (PushKind::Invalidate, [Value::Array(keys)]) => {
            for key in keys {
                match key {
                    Value::BulkString(key) => changed(Some(key)),
                    _ => changed(None),
                }
            }
        }
        // The end of the connection is told otherwise.
        (PushKind::Disconnection, _) => {}
        // A flush, or what nobody has asked for.
        _ => changed(None),
    }
}

fn answer(value: Value) -> Result<RedisReply, CallError> {
    Ok(match value {
        Value::BulkString(text) => RedisReply::Text(text),
        Value::Nil => RedisReply::Nothing,
        Value::Array(all) => RedisReply::List(all.into_iter().map(answer).collect::<Result<_, _>>()?),
        Value::Okay | Value::Int(_) | Value::SimpleString(_) => RedisReply::Done,
        Value::ServerError(error) => RedisReply::Says(error.to_string()),
        _ => return Err(CallError::Failed(Failure::Malformed)),
    })
}
