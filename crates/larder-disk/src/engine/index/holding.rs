//! What a listing asks of the index beside its pages: whether an object is in it, and how a page's end is written down.

use std::fmt;
use std::str::FromStr;

use larder_tier::cursor::NoCursor;

use super::{DiskCursor, Index};
use crate::engine::address::Address;

impl Index {
    /// Whether the response that `tag` names is there, and written.
    pub(in crate::engine) fn holds_tag(&self, base: u64, tag: u32) -> bool {
        let shard = self.shard(base).read();
        let is_it =
            |entry: &super::Entry| entry.base == base && entry.tag == tag && !entry.place.is_pending();
        shard.entries.find(base, is_it).is_some()
    }

    /// Whether the response that `tag` names waits to be written.
    pub(in crate::engine) fn awaits_tag(&self, base: u64, tag: u32) -> bool {
        let shard = self.shard(base).read();
        let is_it = |entry: &super::Entry| entry.base == base && entry.tag == tag && entry.place.is_pending();
        shard.entries.find(base, is_it).is_some()
    }

    /// Whether anything that may be under a key waits to be written.
    pub(in crate::engine) fn awaits_any(&self, at: &Address) -> bool {
        let shard = self.shard(at.base).read();
        let is_it = |entry: &super::Entry| {
            entry.base == at.base && at.is_variant_of(entry.tag) && entry.place.is_pending()
        };
        shard.entries.find(at.base, is_it).is_some()
    }
}

impl fmt::Display for DiskCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.shard, self.after)
    }
}

impl FromStr for DiskCursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let (shard, after) = text.split_once('-').ok_or(NoCursor)?;
        let shard = usize::from_str_radix(shard, 16).map_err(|_| NoCursor)?;
        Ok(Self { shard, after: u64::from_str_radix(after, 16).map_err(|_| NoCursor)? })
    }
}
