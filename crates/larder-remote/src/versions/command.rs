//! The commands by which versions are read, begun and kept, and what may be one.
//!
//! In: names. Out: commands for one node each. Text of the server becomes a version only if it is fit to be part of a key.

use ::redis::{Cmd, cmd};

use super::name::VersionName;

/// The longest version, in bytes.
const TEXT_MAX: usize = 256;
/// The server's time, where the field has nothing.
const BEGIN: &str = "return redis.call('HSETNX', KEYS[1], ARGV[1], redis.call('TIME')[1])";
/// The same of a key.
const BEGIN_KEY: &str = "return redis.call('SET', KEYS[1], redis.call('TIME')[1], 'NX') and 1 or 0";

/// Reads names of one key, in such a way that the server tells of its changes from then on.
pub(super) fn commands(group: &[VersionName]) -> [Cmd; 2] {
    let mut caching = cmd("CLIENT");
    caching.arg("CACHING").arg("YES");
    let key = group.first().map(VersionName::key).unwrap_or_default();
    let fields: Vec<&[u8]> = group.iter().filter_map(VersionName::field).collect();
    // A string of another use may be large.
    let mut read = if fields.is_empty() { cmd("GETRANGE") } else { cmd("HMGET") };
    read.arg(key);
    match fields.is_empty() {
        true => read.arg(0).arg(TEXT_MAX),
        false => read.arg(fields),
    };
    [caching, read]
}

pub(super) fn touch(keys: &[Box<[u8]>]) -> Cmd {
    let mut touch = cmd("TOUCH");
    keys.iter().for_each(|key| {
        touch.arg(&**key);
    });
    touch
}

pub(super) fn begin(name: &VersionName) -> Cmd {
    let mut begin = cmd("EVAL");
    match name.field() {
        Some(field) => begin.arg(BEGIN).arg(1).arg(name.key()).arg(field),
        None => begin.arg(BEGIN_KEY).arg(1).arg(name.key()),
    };
    begin
}

/// A text that may be part of a key.
pub(super) fn usable(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?;
    let is_fit = (1..=TEXT_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
    is_fit.then_some(text)
}
