//! The server's side of each call, as the scripts have to do it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::{Entry, Epoch, Incarnation, LogCall, LogReply, Lost, Place, Row};

/// What lies in the server for a fleet.
#[derive(Clone, Debug)]
pub(crate) struct Shared<W> {
    epoch: Epoch,
    /// The server that it was made at.
    server: u64,
    last: u64,
    floor: u64,
    /// Renewals of all members together: no row ever has an older beat than it had.
    beats: u64,
    is_settled: bool,
    rows: BTreeMap<Incarnation, Row>,
    log: VecDeque<Entry<W>>,
}

/// A server. What it keeps may be lost, and may come back as it was before.
#[derive(Clone, Debug)]
pub(crate) struct Server<W> {
    /// Another one after each start and each promotion.
    pub(crate) identity: u64,
    pub(crate) shared: Option<Shared<W>>,
}

impl<W: Clone> Server<W> {
    pub(crate) fn call(&mut self, call: LogCall<W>) -> LogReply<W> {
        match self.answer(call) {
            Ok(reply) => reply,
            Err(lost) => LogReply::Lost(lost),
        }
    }

    fn answer(&mut self, call: LogCall<W>) -> Result<LogReply<W>, Lost> {
        Ok(match call {
            LogCall::Attach { fresh, name, incarnation, lease, from } => {
                self.attach(fresh, name, (incarnation, lease), from)
            }
            LogCall::Renew { epoch, incarnation, applied, settles } => {
                let shared = self.of(epoch)?;
                let beat = shared.beats + 1;
                shared.row(incarnation, applied)?.beat = beat;
                shared.beats = beat;
                shared.is_settled |= settles;
                LogReply::Rows { last: shared.last, rows: shared.rows() }
            }
            LogCall::Append { epoch, incarnation, applied, purges } => {
                let shared = self.of(epoch)?;
                shared.row(incarnation, applied)?;
                let first = shared.last + 1;
                for (id, what) in purges {
                    shared.last += 1;
                    shared.log.push_back(Entry { sequence: shared.last, id, by: incarnation, what });
                }
                LogReply::Appended { first, rows: shared.rows() }
            }
            LogCall::Read { epoch, after } => {
                let shared = self.of(epoch)?;
                let entries = shared.log.iter().filter(|entry| entry.sequence > after).cloned().collect();
                LogReply::Entries { floor: shared.floor, entries }
            }
            LogCall::Expire { epoch, incarnation, beat } => {
                let shared = self.of(epoch)?;
                if shared.rows.get(&incarnation).is_some_and(|row| row.beat == beat) {
                    shared.rows.remove(&incarnation);
                }
                LogReply::Rows { last: shared.last, rows: shared.rows() }
            }
            LogCall::Leave { epoch, incarnation } => {
                self.of(epoch)?.rows.remove(&incarnation);
                LogReply::Left
            }
        })
    }

    fn of(&mut self, epoch: Epoch) -> Result<&mut Shared<W>, Lost> {
        let identity = self.identity;
        let shared = self.shared.as_mut().filter(|shared| shared.epoch == epoch && shared.server == identity);
        shared.ok_or(Lost::Epoch)
    }

    fn attach(
        &mut self,
        fresh: Epoch,
        name: Arc<str>,
        (incarnation, lease): (Incarnation, Option<Duration>),
        from: Option<(Epoch, Place)>,
    ) -> LogReply<W> {
        let identity = self.identity;
        let keeps = |shared: &Shared<W>| {
            let has = |(epoch, place): (Epoch, Place)| epoch != shared.epoch || shared.has(place);
            shared.server == identity && from.is_none_or(has)
        };
        if !self.shared.as_ref().is_some_and(keeps) {
            self.shared = None;
        }
        let shared = self.shared.get_or_insert_with(|| Shared {
            epoch: fresh,
            server: identity,
            last: 0,
            floor: 0,
            beats: 0,
            is_settled: false,
            rows: BTreeMap::new(),
            log: VecDeque::new(),
        });
        shared.rows.retain(|_, row| row.name != name);
        let applied = from.filter(|(epoch, _)| *epoch == shared.epoch).map_or(0, |(_, place)| place.sequence);
        shared.beats += 1;
        shared.rows.insert(incarnation, Row { incarnation, name, beat: shared.beats, lease, applied });
        LogReply::Attached {
            epoch: shared.epoch,
            last: shared.last,
            floor: shared.floor,
            is_settled: shared.is_settled,
            rows: shared.rows(),
        }
    }

    /// Cuts off all but the last so many entries.
    pub(crate) fn trim(&mut self, kept: usize) {
        let Some(shared) = &mut self.shared else { return };
        while shared.log.len() > kept {
            shared.floor = shared.log.pop_front().map_or(shared.floor, |entry| entry.sequence);
        }
    }
}

impl<W: Clone> Shared<W> {
    fn rows(&self) -> Vec<Row> {
        self.rows.values().cloned().collect()
    }

    /// Whether the entry at which a member stands is here, or was.
    fn has(&self, place: Place) -> bool {
        let entry = self.log.iter().find(|entry| entry.sequence == place.sequence);
        place.sequence <= self.floor || entry.is_some_and(|entry| place.id.is_none_or(|id| entry.id == id))
    }

    /// The caller's row, with how far it has applied the log.
    fn row(&mut self, incarnation: Incarnation, applied: Place) -> Result<&mut Row, Lost> {
        if !self.has(applied) {
            return Err(Lost::Entry);
        }
        let row = self.rows.get_mut(&incarnation).ok_or(Lost::Member)?;
        row.applied = row.applied.max(applied.sequence);
        Ok(row)
    }
}
