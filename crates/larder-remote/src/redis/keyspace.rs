//! Names at a server of Redis, some at a time, with the first bytes of what lies there: for people.
//!
//! In: a pattern, and where the walk before ended. Out: names that match, what they have, and where to go on. A page has a connection of its own, so
//! no look-up waits behind it. It ends with the time or with the number of names that it may take, whichever comes first, and at the end.
//! Redis walks through all of its names, whatever the pattern (`SCAN`): what is there from the first to the last page is met, once or
//! more, and what comes or goes meanwhile may be. Where the server can (Redis 7.2), looking counts as no use.
//! Deliberately absent: what the bytes mean.

use std::io;
use std::time::Duration;

use ::redis::{Cmd, Pipeline, Value, cmd};
use bytes::Bytes;
use tokio::time::{Instant, timeout_at};

use super::dial::Dial;
use super::login::LoggedIn;
use super::scan::{Lists, Scanner};

/// Names that the server looks at for one reply.
const COUNT: usize = 256;
/// Names in one reply: there may be a few more of a server that is just growing its table.
const NAMES_MAX: usize = 64 * COUNT;
/// The longest name that is looked at.
const NAME_MAX_BYTES: usize = 4096;
/// Values that are asked for at once.
const AT_ONCE: usize = 64;

/// Where a walk through the names of one server is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceCursor {
    /// The server's own cursor: 0 at the beginning.
    pub cursor: u64,
    /// So many names of the reply to that were told before.
    pub told: usize,
}

/// What a page may take.
#[derive(Clone, Copy, Debug)]
pub struct KeyspaceBounds {
    /// Names that are told, at least 1.
    pub names: usize,
    /// Names that the server may look at.
    pub looked_at: u64,
    /// First bytes of each value.
    pub value_bytes: usize,
    /// The moment at which no more is asked.
    pub until: Instant,
    /// How long one reply may take.
    pub reply: Duration,
}

/// A page of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyspacePage {
    /// Names, with the first bytes of what lies there. Empty bytes: nothing, or no string.
    pub found: Vec<(Bytes, Bytes)>,
    /// About how many names the server has looked at.
    pub looked_at: u64,
    /// How many names it has.
    pub names: u64,
    /// Where to go on; `None` at the end.
    pub next: Option<KeyspaceCursor>,
}

/// A page of the names at the server that `dial` reaches.
///
/// # Errors
/// The server has no usable reply.
///
/// # Cancel safety
/// Dropping it closes the connection.
pub(crate) async fn keyspace(
    dial: &Dial,
    pattern: &[u8],
    from: KeyspaceCursor,
    bounds: KeyspaceBounds,
) -> io::Result<KeyspacePage> {
    let lists = Lists { nested: 2, elements: NAMES_MAX, bytes: 16 << 20 };
    let scanner = Scanner::with_lists(bounds.value_bytes.max(NAME_MAX_BYTES), lists);
    let late = |_| io::Error::other("no reply came in time");
    let opened = timeout_at(Instant::now() + bounds.reply, dial.open(scanner)).await.map_err(late)??;
    let mut walk = Walk { opened, bounds };
    // An older server does not know it.
    let _ = walk.ask(cmd("CLIENT").arg("NO-TOUCH").arg("ON")).await?;
    let mut page =
        KeyspacePage { names: number(&walk.ask(&cmd("DBSIZE")).await?)?, ..KeyspacePage::default() };
    let mut at = from;
    loop {
        let mut scan = cmd("SCAN");
        scan.arg(at.cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(COUNT).arg("TYPE").arg("string");
        let (cursor, names) = names(walk.ask(&scan).await?)?;
        page.looked_at += COUNT as u64;
        let room = bounds.names.max(1) - page.found.len();
        let told = at.told.min(names.len());
        let (fit, is_all) = match names.get(told..told + room) {
            Some(fit) if told + room < names.len() => (fit, false),
            _ => (names.get(told..).unwrap_or_default(), true),
        };
        for some in fit.chunks(AT_ONCE) {
            page.found.extend(walk.values(some).await?);
        }
        match (is_all, cursor) {
            (false, _) => {
                page.next = Some(KeyspaceCursor { cursor: at.cursor, told: told + fit.len() });
                return Ok(page);
            }
            (true, 0) => return Ok(page),
            (true, cursor) => at = KeyspaceCursor { cursor, told: 0 },
        }
        let is_over = page.found.len() >= bounds.names
            || page.looked_at >= bounds.looked_at
            || Instant::now() >= bounds.until;
        if is_over {
            page.next = Some(at);
            return Ok(page);
        }
    }
}

struct Walk {
    opened: LoggedIn,
    bounds: KeyspaceBounds,
}

impl Walk {
    async fn ask(&mut self, command: &Cmd) -> io::Result<Value> {
        let until = Instant::now() + self.bounds.reply;
        self.opened.ask(command, until).await.map_err(|failure| io::Error::other(failure.to_string()))
    }

    /// The first bytes of what lies under these names.
    async fn values(&mut self, names: &[Bytes]) -> io::Result<Vec<(Bytes, Bytes)>> {
        let mut all = Pipeline::with_capacity(names.len());
        let last = self.bounds.value_bytes.saturating_sub(1);
        for name in names {
            all.cmd("GETRANGE").arg(&name[..]).arg(0).arg(last);
        }
        let until = Instant::now() + self.bounds.reply;
        let replies = self.opened.ask_all(&all, names.len(), until).await;
        let replies = replies.map_err(|failure| io::Error::other(failure.to_string()))?;
        // What became another type meanwhile, or went to another node, is told as nothing.
        let value = |reply| match reply {
            Value::BulkString(value) => Bytes::from(value),
            _ => Bytes::new(),
        };
        Ok(names.iter().cloned().zip(replies.into_iter().map(value)).collect())
    }
}

fn rubbish() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "what it sent is no reply to what was asked")
}

fn number(reply: &Value) -> io::Result<u64> {
    match reply {
        Value::Int(number) => u64::try_from(*number).map_err(|_| rubbish()),
        Value::ServerError(error) => Err(io::Error::other(format!("it says: {error}"))),
        _ => Err(rubbish()),
    }
}

/// The next cursor, and names.
fn names(reply: Value) -> io::Result<(u64, Vec<Bytes>)> {
    let parts = match reply {
        Value::Array(parts) => parts,
        Value::ServerError(error) => return Err(io::Error::other(format!("it says: {error}"))),
        _ => return Err(rubbish()),
    };
    let Ok([Value::BulkString(cursor), Value::Array(names)]) = <[Value; 2]>::try_from(parts) else {
        return Err(rubbish());
    };
    let cursor = std::str::from_utf8(&cursor).ok().and_then(|cursor| cursor.parse().ok());
    let names = names.into_iter().map(|name| match name {
        Value::BulkString(name) => Ok(Bytes::from(name)),
        _ => Err(rubbish()),
    });
    Ok((cursor.ok_or_else(rubbish)?, names.collect::<io::Result<_>>()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_reply_is_a_cursor_and_names_and_nothing_else() {
        let text = |text: &str| Value::BulkString(text.into());
        let good = Value::Array(vec![text("17"), Value::Array(vec![text("a"), text("b")])]);
        assert_eq!(names(good).unwrap(), (17, vec![Bytes::from("a"), Bytes::from("b")]));
        for bad in [
            Value::Nil,
            Value::Int(0),
            Value::Array(vec![text("0")]),
            Value::Array(vec![text("x"), Value::Array(Vec::new())]),
            Value::Array(vec![text("0"), text("a")]),
            Value::Array(vec![text("0"), Value::Array(vec![Value::Nil])]),
            Value::Array(vec![text("0"), Value::Array(Vec::new()), text("a")]),
        ] {
            assert!(names(bad).is_err());
        }
        assert_eq!(number(&Value::Int(7)).unwrap(), 7);
        assert!(number(&Value::Int(-1)).is_err() && number(&Value::Nil).is_err());
    }
}
