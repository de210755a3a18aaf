//! A store of plain files, and the memory in front of it.
//!
//! In: responses that are stored. Out: files for those that a plain file can stand for, memory for all others (another
//! status, variants, keys with further parts). A response that is being written is in memory until its file has its name;
//! from then on the file is the truth. Where the file cannot be written the response was served and is not stored, and an
//! older file of its URL goes.

use std::sync::Arc;
use std::time::Duration;

use larder_http::body::Pieces;
use larder_http::message::Scheme;

use crate::files::{FileStore, Meta, Refused, TargetUri, may_hold};
use crate::key::CacheKey;
use crate::memory::MemoryStore;
use crate::stored::StoredResponse;

impl<'a> TargetUri<'a> {
    /// That of a key; `None` for one that no request has.
    pub(crate) fn of_key(key: &'a CacheKey) -> Option<Self> {
        let scheme = match key.first_part()? {
            b"http" => Scheme::Http,
            b"https" => Scheme::Https,
            _ => return None,
        };
        Self::of_base(key, scheme)
    }

    /// That of a base, whatever scheme its key has.
    pub(crate) fn of_base(key: &'a CacheKey, scheme: Scheme) -> Option<Self> {
        let base = std::str::from_utf8(key.base()).ok()?;
        let (authority, target) = base.split_at(base.find('/')?);
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        Some(Self { scheme, authority, path, query })
    }
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
    if may_hold(&uri, &response.head, key.has_more_parts()).is_err() {
        if !key.has_more_parts() {
            files.invalidate(&uri);
        }
        return true;
    }
    let begun = files.begin(&uri, Some(response.body.length())).and_then(|mut fill| {
        response.body.pieces().iter().try_for_each(|piece| fill.write(piece.clone()))?;
        Ok(fill)
    });
    let Ok(fill) = begun else {
        memory.remove(key, response);
        files.invalidate(&uri);
        return false;
    };
    let done = {
        let (files, memory) = (Arc::downgrade(files), Arc::clone(memory));
        let (key, response) = (key.clone(), Arc::clone(response));
        move |stored: Result<(), Refused>| {
            // Whatever became of it: from now on the file system tells.
            memory.remove(&key, &response);
            if let (Err(_), Some(files), Some(uri)) = (stored, files.upgrade(), TargetUri::of_key(&key)) {
                files.invalidate(&uri);
            }
        }
    };
    let meta = Meta::of(&response.head, response.took, response.number);
    let is_there = || {
        let (there, _) = memory.responses(key, Duration::ZERO);
        there.iter().any(|other| Arc::ptr_eq(other, response))
    };
    fill.commit(meta, is_there, Box::new(done));
    true
}
