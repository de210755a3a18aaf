//! A connection for one caller that has one command under way at a time: scripts, and waiting for a stream.
//!
//! In: a script's arguments. Out: the flat list of strings that it answers. The connection is made when something is asked, and
//! closed by any failure, and when a call is dropped: so a reply is never another call's. There is no breaker, since whoever calls
//! waits between its tries by itself.
//! Deliberately absent: reasons to ask, and what the words mean.

use std::sync::Arc;
use std::time::Duration;

use ::redis::{Cmd, Value, cmd, pipe};
use tokio::time::{Instant, timeout_at};

use super::about::About;
use super::call_error::CallError;
use super::dial::Dial;
use super::login::LoggedIn;
use super::reply::time;
use super::scan::{Lists, Scanner};
use crate::clock;
use crate::error::Failure;

/// A script's keys, and its other arguments.
pub(crate) type Arguments<'a> = (&'a [&'a str], &'a [Vec<u8>]);

/// See the head of the file.
pub(crate) struct Caller {
    dial: Arc<Dial>,
    /// The largest string of a reply, in bytes.
    value_max: usize,
    lists: Lists,
    script: &'static str,
    open: Option<Ready>,
    /// What the last server says of itself.
    about: Option<About>,
}

/// A connection at whose server the script is loaded.
struct Ready {
    opened: LoggedIn,
    /// What the server calls the script.
    digest: String,
}

impl Caller {
    pub(crate) fn new(dial: Arc<Dial>, (value_max, lists): (usize, Lists), script: &'static str) -> Self {
        Self { dial, value_max, lists, script, open: None, about: None }
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
        script: Arguments<'_>,
        limit: Duration,
    ) -> Result<Vec<Vec<u8>>, CallError> {
        let ready = self.ready(limit).await?;
        let replies = self.ask(ready, |run| vec![run], script, limit).await?;
        self.words(replies.into_iter().next())
    }

    /// Runs the script as soon as a stream has an entry behind this one, after `pause` at the latest. Both are sent at once: the server looks
    /// at the second one when the first has its reply.
    ///
    /// # Errors
    /// As for [`Caller::run`].
    ///
    /// # Cancel safety
    /// As for [`Caller::run`].
    pub(crate) async fn run_behind(
        &mut self,
        (stream, after): (&str, u64),
        pause: Duration,
        script: Arguments<'_>,
        limit: Duration,
    ) -> Result<Vec<Vec<u8>>, CallError> {
        let ready = self.ready(limit).await?;
        let mut wait = cmd("XREAD");
        wait.arg("COUNT").arg(1).arg("BLOCK").arg(pause.as_millis() as u64);
        wait.arg("STREAMS").arg(stream).arg(format!("{after}-0"));
        let replies = self.ask(ready, |run| vec![wait, run], script, pause + limit).await?;
        self.words(replies.into_iter().nth(1))
    }

    /// Runs the script, and asks what the server's clock says after it, since 1970, in the same round trip. With it comes the middle between
    /// the moments at which both were sent and answered, on the lease's clock.
    ///
    /// # Errors
    /// As for [`Caller::run`].
    ///
    /// # Cancel safety
    /// As for [`Caller::run`].
    pub(crate) async fn run_and_time(
        &mut self,
        script: Arguments<'_>,
        limit: Duration,
    ) -> Result<(Vec<Vec<u8>>, (Duration, Duration)), CallError> {
        let ready = self.ready(limit).await?;
        let sent = clock::now();
        let replies = self.ask(ready, |run| vec![run, cmd("TIME")], script, limit).await?;
        let middle = sent + clock::now().saturating_sub(sent) / 2;
        let mut replies = replies.into_iter();
        let words = self.words(replies.next())?;
        let said = replies.next().as_ref().and_then(time).ok_or_else(|| self.close(Failure::Malformed))?;
        Ok((words, (said, middle)))
    }

    /// What the server says of itself that was asked last.
    pub(crate) fn about(&self) -> Option<&About> {
        self.about.as_ref()
    }

    /// Whether the server that was asked last is still the one to be asked, by what is known from now on: under Sentinel, a former master
    /// may still answer.
    ///
    /// # Errors
    /// It is not, or that cannot be found out. The connection is closed.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn confirm(&mut self, limit: Duration) -> Result<(), CallError> {
        let Some(ready) = &self.open else { return Err(CallError::Failed(Failure::Closed)) };
        let address = ready.opened.address.clone();
        if timeout_at(Instant::now() + limit, self.dial.confirms(&address)).await == Ok(true) {
            return Ok(());
        }
        self.open = None;
        Err(CallError::Connect("no majority names the server that has answered".to_owned()))
    }

    fn close(&mut self, failure: Failure) -> CallError {
        self.open = None;
        CallError::Failed(failure)
    }

    /// The flat list of strings that a script answers.
    fn words(&mut self, reply: Option<Value>) -> Result<Vec<Vec<u8>>, CallError> {
        let Some(Value::Array(all)) = reply else { return Err(self.close(Failure::Malformed)) };
        let words = all.into_iter().map(|word| match word {
            Value::BulkString(word) => Some(word),
            _ => None,
        });
        words.collect::<Option<_>>().ok_or_else(|| self.close(Failure::Malformed))
    }

    /// The connection is put back when all replies have come, so that one call at most is under way on it.
    async fn ask(
        &mut self,
        mut ready: Ready,
        all: impl FnOnce(Cmd) -> Vec<Cmd>,
        (keys, arguments): Arguments<'_>,
        limit: Duration,
    ) -> Result<Vec<Value>, CallError> {
        let mut script = cmd("EVALSHA");
        script.arg(&ready.digest).arg(keys.len()).arg(keys).arg(arguments);
        let (mut commands, mut count) = (pipe(), 0);
        for command in all(script) {
            commands.add_command(command);
            count += 1;
        }
        let until = Instant::now() + limit;
        let replies = ready.opened.ask_all(&commands, count, until).await.map_err(CallError::Failed)?;
        for reply in &replies {
            // A server that has lost the script has it again with the next connection.
            if let Value::ServerError(error) = reply {
                return Err(CallError::Says(error.to_string()));
            }
        }
        self.open = Some(ready);
        Ok(replies)
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
        let scanner = Scanner::with_lists(self.value_max, self.lists);
        let mut opened = self.dial.open(scanner).await.map_err(refused)?;
        let mut load = cmd("SCRIPT");
        load.arg("LOAD").arg(self.script);
        // The caller's limit holds for all of it.
        let never = Instant::now() + Duration::from_secs(3600);
        if let Value::BulkString(info) = opened.ask(&cmd("INFO"), never).await.map_err(CallError::Failed)? {
            self.about = About::read(&String::from_utf8_lossy(&info));
            if let Some(why) = self.about.as_ref().and_then(About::refusal) {
                return Err(CallError::Connect(why));
            }
        }
        match opened.ask(&load, never).await.map_err(CallError::Failed)? {
            Value::BulkString(digest) => {
                let digest = String::from_utf8(digest).map_err(|_| CallError::Failed(Failure::Malformed))?;
                Ok(Ready { opened, digest })
            }
            Value::ServerError(error) => Err(CallError::Says(error.to_string())),
            _ => Err(CallError::Failed(Failure::Malformed)),
        }
    }
}
