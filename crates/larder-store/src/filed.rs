//! A store of plain files, and the memory in front of it.
//!
//! In: responses that are stored. Out: files for those that a plain file can stand for, memory for all others (another
//! status, variants, keys with further parts). Large bodies are written while they arrive; of a response that a 304 has renewed
//! only its fields and times are. A response that is being written is in memory until its file has its name;
//! from then on the file is the truth. Where the file cannot be written the response was served and is not stored, and an
//! older file of its URL goes.

use std::sync::Arc;
use std::time::Duration;

use larder_cache::StoredHead;
use larder_http::body::Pieces;
use smallvec::SmallVec;

use crate::files::{
    FileFill, FileStamp, FileStore, Look, Meta, NotAFile, Refused, Source, TargetUri, may_hold,
};
use crate::key::CacheKey;
use crate::memory::MemoryStore;
use crate::stored::StoredResponse;

/// Whether a plain file may stand for a response of this head under `key`.
pub(crate) fn may_be_file(key: &CacheKey, head: &StoredHead) -> bool {
    let uri = TargetUri::of_key(key);
    uri.is_some_and(|uri| may_hold(&uri, head, key.has_more_parts()).is_ok())
}

/// What becomes of a response beside memory, and why.
enum Wanted {
    /// Its content, or what is left of it to be written, and its meta.
    Written(FileFill),
    /// Its file has its content already.
    Renewed(FileStamp),
    /// It is gone from where it was.
    Nothing,
}

/// Writes a response that memory has taken, where a file may stand for it; else an older file goes. False where the file
/// cannot be written: then it is not stored at all, and not in memory either. Never waits.
///
/// Not under a lock of memory's: whether an invalidation came meanwhile is asked of memory, under the lock of the files'
/// queue. Who invalidates takes it out of memory first, and then out of the files.
pub(crate) fn put(
    files: &Arc<FileStore>,
    memory: &Arc<MemoryStore>,
    key: &CacheKey,
    response: &Arc<StoredResponse>,
) -> bool {
    let Some(uri) = TargetUri::of_key(key) else { return true };
    if let Err(why) = may_hold(&uri, &response.head, key.has_more_parts()) {
        files.note_not_a_file(why);
        if response.body.is_a_file() || !response.body.is_in_memory() {
            // Its file goes, and what memory has must not need it; no room was reserved there for what is kept of a file either.
            memory.remove(key, response);
        }
        // A coding of the content is for those who take it; the plain form stays for all others.
        let is_beside = why == NotAFile::Encoded && response.head.vary.codings().has_registered();
        if !key.has_more_parts() && !is_beside {
            files.invalidate(&uri);
        }
        return true;
    }
    let wanted = match wanted(files, &uri, response) {
        Ok(wanted) => wanted,
        Err(_) => {
            memory.remove(key, response);
            files.invalidate(&uri);
            return false;
        }
    };
    let is_renewal = matches!(wanted, Wanted::Renewed(_));
    let done = {
        let (files, memory) = (Arc::downgrade(files), Arc::clone(memory));
        let (key, response) = (key.clone(), Arc::clone(response));
        move |stored: Result<(), Refused>| {
            // Whatever became of it: from now on the file system tells.
            memory.remove(&key, &response);
            // A file that was not renewed, or came later, is still what it was, unless its new fields have no place.
            let goes = |why| why != Refused::Changed && (!is_renewal || why == Refused::NoRoom);
            if let (Err(why), Some(files), Some(uri)) = (stored, files.upgrade(), TargetUri::of_key(&key))
                && goes(why)
            {
                files.invalidate(&uri);
            }
        }
    };
    let meta = Meta::of(&response.head, response.took, response.number);
    // Asked under the lock of the files' queue: the handles are let go of behind it, since the last one of a large file takes it.
    let mut held = SmallVec::new();
    let is_there = || {
        held = memory.responses(key, Duration::ZERO).0;
        held.iter().any(|other| Arc::ptr_eq(other, response))
    };
    match wanted {
        Wanted::Written(fill) => fill.commit(meta, is_there, Box::new(done)),
        Wanted::Renewed(stamp) => files.renew(&uri, stamp, meta, is_there, Box::new(done)),
        Wanted::Nothing => memory.remove(key, response),
    }
    true
}

/// Whether the file of `old`, which was read of it or has become one since, has changed or gone, or another has taken its place.
/// False where only a look that waits could tell: whoever writes asks again.
pub(crate) fn is_replaced(files: &FileStore, key: &CacheKey, old: &StoredResponse) -> bool {
    let Some(uri) = TargetUri::of_key(key) else { return true };
    let hit = match files.look(&uri) {
        Look::Found(hit) => hit,
        Look::Absent => return true,
        // What was in memory is written once more, and that would be in place of something newer.
        Look::WouldBlock => return old.body.stamp().is_none(),
    };
    match (old.body.stamp(), hit.source()) {
        (Some(stamp), _) => !hit.is_of(&stamp),
        (None, Source::Stored(meta)) => meta.times.received != old.head.freshness.received.wall,
        (None, Source::ByHand(_)) => true,
    }
}

/// Whether the file of a key has come later than `response`. False where that would take a look that waits.
pub(crate) fn is_outdated(files: &FileStore, key: &CacheKey, response: &StoredResponse) -> bool {
    let Some(uri) = TargetUri::of_key(key).filter(|_| !key.has_more_parts()) else { return false };
    let Look::Found(hit) = files.look(&uri) else { return false };
    matches!(hit.source(), Source::Stored(meta) if meta.times.are_behind(response.head.freshness.received.wall))
}

/// Takes out the file of a key where `which` says so of its response. One that is on its way, or that nobody has asked for yet, is
/// not known: then `None` is asked about.
pub(crate) fn discard(files: &FileStore, key: &CacheKey, which: impl Fn(Option<&StoredResponse>) -> bool) {
    let Some(uri) = TargetUri::of_key(key).filter(|_| !key.has_more_parts()) else { return };
    let goes = match files.look(&uri) {
        Look::Found(hit) => which(hit.response().map(|response| &**response)),
        Look::Absent | Look::WouldBlock => which(None),
    };
    if goes {
        files.invalidate(&uri);
    }
}

fn wanted(files: &Arc<FileStore>, uri: &TargetUri<'_>, response: &StoredResponse) -> Result<Wanted, Refused> {
    let body = &response.body;
    if let Some(stamp) = body.stamp() {
        return Ok(Wanted::Renewed(stamp));
    }
    if let Some(fill) = body.take_fill() {
        return Ok(Wanted::Written(fill));
    }
    // One that is on its way to its file, and was validated before it got there: what it was is stored.
    if !body.is_in_memory() {
        return Ok(Wanted::Nothing);
    }
    let mut fill = files.begin(uri, Some(body.length()))?;
    body.pieces().iter().try_for_each(|piece| fill.write(piece.clone()))?;
    Ok(Wanted::Written(fill))
}

#[cfg(test)]
mod tests;
