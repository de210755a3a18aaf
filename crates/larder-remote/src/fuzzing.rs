//! What the fuzz targets call.
//!
//! In: bytes as a server might send them, cut in pieces. Out: what was read of them, as values that can be compared.

use bytes::BytesMut;

use crate::memcached::codec::Decoder;
use crate::redis::{Lists, RespVersion, Scanner};
use crate::reply::Reply;

/// What was read: each reply in words of its own, the value's key and body among them, and whether the rest is no reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// Each reply as it prints.
    pub replies: Vec<String>,
    /// Keys and bodies of the values.
    pub values: Vec<(bytes::Bytes, bytes::Bytes)>,
    /// Why reading ended, where what came is no reply.
    pub malformed: Option<String>,
}

/// Reads `pieces` as they come, with values of up to `value_max` bytes.
pub fn read_replies<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, value_max: usize) -> Read {
    let (mut decoder, mut inbox, mut read) = (Decoder::new(value_max), BytesMut::new(), Read::default());
    for piece in pieces {
        inbox.extend_from_slice(piece);
        loop {
            match decoder.read(&mut inbox) {
                Ok(Some(reply)) => {
                    read.replies.push(format!("{reply:?}"));
                    if let Reply::Value(value) = reply {
                        read.values.push((value.key, value.body));
                    }
                }
                Ok(None) => break,
                Err(malformed) => {
                    read.malformed = Some(format!("{malformed:?}"));
                    return read;
                }
            }
        }
    }
    read
}

/// How many replies of Redis end within `pieces`, with strings of up to `value_max` bytes; `None` where the connection has to be closed.
pub fn follow_replies<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, value_max: usize) -> Option<usize> {
    let mut scanner = Scanner::new(value_max);
    pieces.into_iter().map(|piece| scanner.scan(piece)).sum::<Result<_, _>>().ok()
}

/// The same as [`follow_replies`] of a connection that speaks RESP3, with the bounds of one that reads versions.
pub fn follow_three<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, value_max: usize) -> Option<usize> {
    let lists = Lists { nested: 4, elements: 65_536, bytes: 4 << 20 };
    let mut scanner = Scanner::speaking(RespVersion::Three, value_max, lists);
    pieces.into_iter().map(|piece| scanner.scan(piece)).sum::<Result<_, _>>().ok()
}

/// What lists may be part of a reply.
#[derive(Clone, Copy, Debug)]
pub struct ListBounds {
    /// How many may lie within each other.
    pub nested: usize,
    /// Elements of all lists of a reply.
    pub elements: usize,
    /// Bytes of all strings of a reply.
    pub bytes: usize,
}

/// The same as [`follow_replies`], with lists.
pub fn follow_lists<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    value_max: usize,
    ListBounds { nested, elements, bytes }: ListBounds,
) -> Option<usize> {
    let mut scanner = Scanner::with_lists(value_max, Lists { nested, elements, bytes });
    pieces.into_iter().map(|piece| scanner.scan(piece)).sum::<Result<_, _>>().ok()
}

/// The length of the string that the library reads of a reply, where it is one; `None` where it reads none.
pub fn string_of_reply(reply: &[u8]) -> Option<usize> {
    match ::redis::parse_redis_value(reply).ok()? {
        ::redis::Value::BulkString(body) => Some(body.len()),
        ::redis::Value::Array(_) | ::redis::Value::Map(_) | ::redis::Value::Set(_) => Some(usize::MAX),
        _ => Some(0),
    }
}

/// How many stretches of slots an answer to `CLUSTER SLOTS` has; `None` where it is none.
pub fn stretches_of_slots(bytes: &[u8]) -> Option<usize> {
    crate::redis::read_slots(bytes)
}

/// Whether an answer of a Sentinel names a master.
pub fn names_master(bytes: &[u8]) -> bool {
    crate::redis::names_master(bytes)
}

/// Whether a server's description of itself (`INFO`) tells its version.
pub fn tells_version(info: &[u8]) -> bool {
    crate::redis::About::read(&String::from_utf8_lossy(info)).is_some_and(|about| {
        // All that is said of it is one line.
        !format!("{about}{:?}{:?}", about.refusal(), about.advice()).contains('\n')
    })
}
