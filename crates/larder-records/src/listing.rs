//! What lies in Redis of one store, a page at a time, for people.
//!
//! In: where a page ended, and what a page may take. Out: the responses whose records were met, without their bodies. A record has a hash of its URL
//! as its name, so the front of each record of the store is read to know whether it is wanted. Its checksum is not verified: that would take
//! its body. What does not begin like a record of its name, or has a head that is longer than what is read, is counted.
//! The servers are walked through one after the other. Nothing counts as use here, and nothing is written.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use larder_cache::StoredHead;
use larder_remote::redis::{KeyspaceBounds, KeyspaceCursor};
use larder_tier::shared_page::{NoSharedPage, SharedBounds, SharedEntry, SharedPage};
use tokio::time::Instant;

use crate::Records;
use crate::find::{head, received};
use crate::record::{Front, FrontFound, front};

/// First bytes of a record that are read.
const FRONT_BYTES: usize = 16 << 10;

/// Where a page ended: at which server, and where there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct At {
    server: usize,
    cursor: KeyspaceCursor,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, cursor: KeyspaceCursor { cursor, told } } = self;
        write!(f, "{server}-{cursor}-{told}")
    }
}

impl FromStr for At {
    type Err = NoSharedPage;

    fn from_str(text: &str) -> Result<Self, NoSharedPage> {
        let read = || {
            let (server, rest) = text.split_once('-')?;
            let (cursor, told) = rest.split_once('-')?;
            let cursor = KeyspaceCursor { cursor: cursor.parse().ok()?, told: told.parse().ok()? };
            Some(Self { server: server.parse().ok()?, cursor })
        };
        read().ok_or(NoSharedPage::Cursor)
    }
}

impl Records {
    /// See the head of the file.
    pub(crate) async fn listed(
        &self,
        from: Option<&str>,
        bounds: SharedBounds,
        wanted: &(dyn Fn(&[u8]) -> bool + Send + Sync),
    ) -> Result<SharedPage<SharedEntry<StoredHead>>, NoSharedPage> {
        let mut at = from.map_or(Ok(At::default()), str::parse)?;
        let pattern = self.names.pattern_of_records();
        let until = Instant::now() + bounds.time;
        let mut page = SharedPage { entries: Vec::new(), unreadable: 0, looked_at: 0, names: 0, next: None };
        while let Some(label) = self.servers.told_at(at.server) {
            let bounds = KeyspaceBounds {
                names: bounds.responses.saturating_sub(page.entries.len()),
                looked_at: bounds.names.saturating_sub(page.looked_at),
                value_bytes: FRONT_BYTES,
                until,
                reply: self.settings.timeout,
            };
            if bounds.names == 0 || bounds.looked_at == 0 || Instant::now() >= until {
                page.next = Some(at.to_string());
                break;
            }
            let Some(found) = self.servers.keyspace(at.server, &pattern, at.cursor, bounds).await else {
                break;
            };
            let found = found.map_err(|why| NoSharedPage::Server { server: label, why })?;
            page.looked_at += found.looked_at;
            page.names = found.names;
            for (name, bytes) in found.found {
                match self.entry(&name, &bytes, wanted) {
                    Ok(entry) => page.entries.extend(entry),
                    Err(Unreadable) => page.unreadable += 1,
                }
            }
            at = match found.next {
                Some(cursor) => At { cursor, ..at },
                None => At { server: at.server + 1, cursor: KeyspaceCursor::default() },
            };
        }
        Ok(page)
    }

    /// The response of a record, if it is wanted.
    fn entry(
        &self,
        name: &Bytes,
        bytes: &Bytes,
        wanted: &(dyn Fn(&[u8]) -> bool + Send + Sync),
    ) -> Result<Option<SharedEntry<StoredHead>>, Unreadable> {
        if bytes.is_empty() {
            // It went meanwhile.
            return Ok(None);
        }
        let FrontFound::Response(front) = front(bytes).ok_or(Unreadable)? else { return Ok(None) };
        let Front { key, record, body_bytes } = *front;
        if !name.starts_with(&self.names.of_key(&key)) {
            return Err(Unreadable);
        }
        if !wanted(key.base()) {
            return Ok(None);
        }
        let (now, server_now) = (self.clock.now(), self.standing.server_now());
        let received = server_now.and_then(|server_now| received(&record, now, server_now));
        let head = head(&key, &record, now, received).ok_or(Unreadable)?;
        let number = self.standing.number_of(record.position);
        let number = number.filter(|number| self.removed.is_newer(key.hash(), *number));
        Ok(Some(SharedEntry { key, head, body_bytes, number }))
    }
}

/// It is no record of its name, or its head is long.
struct Unreadable;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_nothing_else_is_one() {
        let at = At { server: 7, cursor: KeyspaceCursor { cursor: u64::MAX, told: 3 } };
        assert_eq!(at.to_string().parse::<At>().unwrap(), at);
        for bad in ["", "7", "7-3", "7-x-1", "-1-1-1", "7-3-1-1", "7-18446744073709551616-0"] {
            assert!(bad.parse::<At>().is_err(), "{bad}");
        }
    }
}
