//! The calls of a member as one script for Redis.
//!
//! In: a [`LogCall`]. Out: the words that the script is run with; and what its reply says, a flat list of strings. `fleet.lua` has the
//! other side of both. `tests.rs` compares the script on a real server with the data structure of the model.
//! Numbers are decimal, names of epochs, members and purges are 32 hexadecimal digits. A number is at most 2^53, up to which the
//! script counts exactly.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use crate::call::{Entry, EntryId, Epoch, Incarnation, LogCall, LogReply, Lost, Place, Row};

/// The script. It declares two keys, those of [`Keys`].
pub const SCRIPT: &str = include_str!("fleet.lua");

/// Entries that the log keeps.
const ENTRIES_MAX: u64 = 65_536;
/// Bytes that the log keeps, where a sixteenth of the server's memory is not less. Beyond, its older half goes.
const BYTES_MAX: u64 = 32 << 20;
/// Entries of one reply.
const READ_MAX: u64 = 256;
/// Members of one reply.
const ROWS_MAX: usize = 1024;
/// Numbers beyond are not exact in the script.
const NUMBER_MAX: u64 = 1 << 53;

/// Where a fleet lies in the server. Both keys are in one slot of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// The hash with the epoch and the members.
    pub hash: String,
    /// The stream of the log.
    pub log: String,
}

impl Keys {
    /// Those of the fleet with this prefix. Fleets with different prefixes share nothing.
    pub fn new(prefix: &str) -> Self {
        let hash = format!("{prefix}:1:{{fleet}}");
        Self { log: format!("{hash}:log"), hash }
    }
}

/// What came is no reply of the script to this call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// What the script is run with, beside its keys.
pub fn arguments<W: AsRef<[u8]>>(call: &LogCall<W>) -> Vec<Vec<u8>> {
    kept_to(call, (ENTRIES_MAX, BYTES_MAX))
}

fn kept_to<W: AsRef<[u8]>>(call: &LogCall<W>, (entries_max, bytes_max): (u64, u64)) -> Vec<Vec<u8>> {
    match call {
        LogCall::Attach { fresh, name, incarnation, lease, from } => {
            let lease = lease.map_or_else(|| "-".to_owned(), |lease| lease.as_millis().to_string());
            let (epoch, place) =
                from.map_or((String::new(), Place::default()), |(epoch, at)| (hex(epoch.0), at));
            let [sequence, id] = place_words(place);
            words(["attach", &hex(fresh.0), name, &hex(incarnation.0), &lease, &epoch, &sequence, &id])
        }
        LogCall::Read { epoch, after } => {
            words(["read", &hex(epoch.0), &after.to_string(), &READ_MAX.to_string()])
        }
        LogCall::Leave { epoch, incarnation } => words(["leave", &hex(epoch.0), &hex(incarnation.0)]),
        LogCall::Expire { epoch, incarnation, beat } => {
            words(["expire", &hex(epoch.0), &hex(incarnation.0), &beat.to_string()])
        }
        LogCall::Renew { epoch, incarnation, applied, settles } => {
            let [sequence, id] = place_words(*applied);
            let settles = if *settles { "1" } else { "0" };
            words(["renew", &hex(epoch.0), &hex(incarnation.0), &sequence, &id, settles])
        }
        LogCall::Append { epoch, incarnation, applied, purges } => {
            let [sequence, id] = place_words(*applied);
            let (epoch, incarnation) = (hex(epoch.0), hex(incarnation.0));
            let [entries_max, bytes_max] = [entries_max, bytes_max].map(|most| most.to_string());
            let mut all = words(["append", &epoch, &incarnation, &sequence, &id, &entries_max, &bytes_max]);
            for (id, what) in purges {
                all.push(hex(id.0).into_bytes());
                all.push(what.as_ref().to_vec());
            }
            all
        }
    }
}

/// What the script has answered.
///
/// # Errors
/// It is no reply of the script.
pub fn reply<W: for<'a> From<&'a [u8]>>(said: &[impl AsRef<[u8]>]) -> Result<LogReply<W>, Malformed> {
    let said: Vec<&[u8]> = said.iter().map(AsRef::as_ref).collect();
    let (kind, rest) = said.split_first().ok_or(Malformed)?;
    match (*kind, rest) {
        (b"attached", [epoch, last, floor, settled, rest @ ..]) => Ok(LogReply::Attached {
            epoch: Epoch(name(epoch)?),
            last: number(last)?,
            floor: number(floor)?,
            is_settled: number(settled)? == 1,
            rows: rows(rest)?,
        }),
        (b"rows", [last, rest @ ..]) => Ok(LogReply::Rows { last: number(last)?, rows: rows(rest)? }),
        (b"appended", [first, rest @ ..]) => {
            Ok(LogReply::Appended { first: number(first)?, rows: rows(rest)? })
        }
        (b"entries", [floor, rest @ ..]) => {
            Ok(LogReply::Entries { floor: number(floor)?, entries: entries(rest)? })
        }
        (b"left", []) => Ok(LogReply::Left),
        (b"lost", [b"epoch"]) => Ok(LogReply::Lost(Lost::Epoch)),
        (b"lost", [b"entry"]) => Ok(LogReply::Lost(Lost::Entry)),
        (b"lost", [b"member"]) => Ok(LogReply::Lost(Lost::Member)),
        _ => Err(Malformed),
    }
}

fn rows(said: &[&[u8]]) -> Result<Vec<Row>, Malformed> {
    let (rows, []) = said.as_chunks() else { return Err(Malformed) };
    if rows.len() > ROWS_MAX {
        return Err(Malformed);
    }
    let row = |[incarnation, beat, lease, applied, called]: &[&[u8]; 5]| {
        let lease = match *lease {
            b"-" => None,
            millis => Some(Duration::from_millis(number(millis)?)),
        };
        Ok(Row {
            incarnation: Incarnation(name(incarnation)?),
            name: Arc::from(std::str::from_utf8(called).map_err(|_| Malformed)?),
            beat: number(beat)?,
            lease,
            applied: number(applied)?,
        })
    };
    rows.iter().map(row).collect()
}

fn entries<W: for<'a> From<&'a [u8]>>(said: &[&[u8]]) -> Result<Vec<Entry<W>>, Malformed> {
    let (entries, []) = said.as_chunks() else { return Err(Malformed) };
    let entry = |[sequence, id, by, what]: &[&[u8]; 4]| {
        Ok(Entry {
            sequence: number(sequence)?,
            id: EntryId(name(id)?),
            by: Incarnation(name(by)?),
            what: W::from(what),
        })
    };
    entries.iter().map(entry).collect()
}

fn words<const N: usize>(words: [&str; N]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

fn place_words(place: Place) -> [String; 2] {
    [place.sequence.to_string(), place.id.map_or_else(String::new, |id| hex(id.0))]
}

fn hex(name: u128) -> String {
    format!("{name:032x}")
}

fn name(said: &[u8]) -> Result<u128, Malformed> {
    let text = std::str::from_utf8(said).map_err(|_| Malformed)?;
    let is_name = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u128::from_str_radix(text, 16).ok().filter(|_| is_name).ok_or(Malformed)
}

fn number(said: &[u8]) -> Result<u64, Malformed> {
    let text = std::str::from_utf8(said).map_err(|_| Malformed)?;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_number && *number <= NUMBER_MAX).ok_or(Malformed)
}
