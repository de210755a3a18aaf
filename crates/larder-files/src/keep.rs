//! How a stored response becomes a file, behind the memory.
//!
//! In: responses that memory has taken. Out: files for those that a plain file can stand for; all others stay in memory (another
//! status, variants, keys with further parts). Large bodies are written while they arrive; of a response that a 304 has renewed
//! only its fields and times are. A response that is being written is in memory until its file has its name;
//! from then on the file is the truth. Where the file cannot be written the response was served and is not stored, and an
//! older file of its URL goes.

use std::sync::Arc;

use larder_cache::StoredHead;
use larder_tier::entry::{InMemory, Memo};
use larder_tier::{BodySource, CacheKey, Entry, Fill, Keep, TargetUri};

use super::fill::{FileFill, FilledBody};
use super::hit::{FileHit, FileStamp, Source};
use super::tier::HttpCaching;
use super::{FileStore, Look, Meta, NotAFile, Refused, may_hold};

/// Whether a plain file may stand for a response of this head under `key`.
fn may_be_file(key: &CacheKey, head: &StoredHead) -> bool {
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

/// The plain file that a body was read of, where that is what it is.
fn stamp(source: Option<&dyn BodySource>) -> Option<FileStamp> {
    let source = source?;
    source.of::<FileHit>().map(FileHit::stamp).or_else(|| source.of::<FileStamp>().copied())
}

impl Keep<HttpCaching> for FileStore {
    fn takes(&self, key: &CacheKey, head: Option<&StoredHead>) -> bool {
        head.is_some_and(|head| may_be_file(key, head))
    }

    fn max_object(&self) -> u64 {
        Self::max_object(self)
    }

    fn begin_fill(self: Arc<Self>, key: &CacheKey, declared: Option<u64>) -> Option<Box<dyn Fill>> {
        Some(Box::new(self.begin(&TargetUri::of_key(key)?, declared).ok()?))
    }

    /// False where that would take a look that waits.
    fn is_newer(&self, entry: &Entry<'_, StoredHead>) -> bool {
        let key = entry.key;
        let Some(uri) = TargetUri::of_key(key).filter(|_| !key.has_more_parts()) else { return false };
        let Look::Found(hit) = self.look(&uri) else { return false };
        matches!(hit.source(), Source::Stored(meta) if meta.times.are_behind(entry.received))
    }

    /// Whether the file of `old`, which was read of it or has become one since, has changed or gone, or another has taken its
    /// place. False where only a look that waits could tell: whoever writes asks again.
    fn is_replaced(&self, old: &Entry<'_, StoredHead>) -> Option<bool> {
        let Some(uri) = TargetUri::of_key(old.key) else { return Some(true) };
        let stamp = stamp(old.source);
        let hit = match self.look(&uri) {
            Look::Found(hit) => hit,
            Look::Absent => return Some(true),
            // What was in memory is written once more, and that would be in place of something newer.
            Look::WouldBlock => return Some(stamp.is_none()),
        };
        Some(match (stamp, hit.source()) {
            (Some(stamp), _) => !hit.is_of(&stamp),
            (None, Source::Stored(meta)) => meta.times.received != old.received,
            (None, Source::ByHand(_)) => true,
        })
    }

    /// Writes a response that memory has taken, where a file may stand for it; else an older file goes. False where the file
    /// cannot be written: then it is not stored at all, and not in memory either. Never waits.
    ///
    /// Not under a lock of memory's: whether an invalidation came meanwhile is asked of memory, under the lock of the files'
    /// queue. Who invalidates takes it out of memory first, and then out of the files.
    fn put_behind(self: Arc<Self>, entry: &Entry<'_, StoredHead>, memory: Arc<dyn InMemory>) -> bool {
        let key = entry.key;
        let Some(uri) = TargetUri::of_key(key) else { return true };
        if let Err(why) = may_hold(&uri, entry.head, key.has_more_parts()) {
            self.note_not_a_file(why);
            if stamp(entry.source).is_some() || !entry.is_in_memory {
                // Its file goes, and what memory has must not need it; no room was reserved there for what is kept of a file
                // either.
                memory.remove();
            }
            // A coding of the content is for those who take it; the plain form stays for all others.
            let is_beside = why == NotAFile::Encoded && entry.head.vary.codings().has_registered();
            if !key.has_more_parts() && !is_beside {
                self.invalidate(&uri);
            }
            return true;
        }
        let wanted = match wanted(&self, &uri, entry) {
            Ok(wanted) => wanted,
            Err(_) => {
                memory.remove();
                self.invalidate(&uri);
                return false;
            }
        };
        let is_renewal = matches!(wanted, Wanted::Renewed(_));
        let done = {
            let (files, memory, key) = (Arc::downgrade(&self), Arc::clone(&memory), key.clone());
            move |stored: Result<(), Refused>| {
                // Whatever became of it: from now on the file system tells.
                memory.remove();
                // A file that was not renewed, or came later, is still what it was, unless its new fields have no place.
                let goes = |why| why != Refused::Changed && (!is_renewal || why == Refused::NoRoom);
                if let (Err(why), Some(files), Some(uri)) = (stored, files.upgrade(), TargetUri::of_key(&key))
                    && goes(why)
                {
                    files.invalidate(&uri);
                }
            }
        };
        let meta = Meta::of(entry.head, entry.took, entry.number);
        // Asked under the lock of the files' queue: the handles are let go of behind it, since the last one of a large file takes
        // it.
        let mut held = None;
        let is_there = || {
            let (is_there, behind) = memory.is_there();
            held = Some(behind);
            is_there
        };
        match wanted {
            Wanted::Written(fill) => fill.commit(meta, is_there, Box::new(done)),
            Wanted::Renewed(stamp) => self.renew(&uri, stamp, meta, is_there, Box::new(done)),
            Wanted::Nothing => memory.remove(),
        }
        drop(held);
        true
    }

    fn forget(&self, key: &CacheKey, _identity: u64) {
        if let Some(uri) = TargetUri::of_key(key).filter(|_| !key.has_more_parts()) {
            self.invalidate(&uri);
        }
    }

    /// One that is on its way, or that nobody has asked for yet, is not known: then `None` is asked about.
    fn discard(&self, key: &CacheKey, goes: &dyn Fn(Option<&Memo>) -> bool) {
        let Some(uri) = TargetUri::of_key(key).filter(|_| !key.has_more_parts()) else { return };
        let goes = match self.look(&uri) {
            Look::Found(hit) => goes(hit.memo()),
            Look::Absent | Look::WouldBlock => goes(None),
        };
        if goes {
            self.invalidate(&uri);
        }
    }
}

fn wanted(files: &FileStore, uri: &TargetUri<'_>, entry: &Entry<'_, StoredHead>) -> Result<Wanted, Refused> {
    if let Some(stamp) = stamp(entry.source) {
        return Ok(Wanted::Renewed(stamp));
    }
    if let Some(fill) = entry.source.and_then(|source| source.of::<FilledBody>()?.take_fill()) {
        return Ok(Wanted::Written(fill));
    }
    // One that is on its way to its file, and was validated before it got there: what it was is stored.
    if !entry.is_in_memory {
        return Ok(Wanted::Nothing);
    }
    let mut fill = files.begin(uri, Some(entry.length))?;
    entry.chunks.iter().try_for_each(|piece| fill.write(piece.clone()))?;
    Ok(Wanted::Written(fill))
}
