//! What larder writes there, where it is to.
//!
//! In: a response that memory has taken, under the lock of memory's shard. Out: its value in the queue, behind all that was queued
//! for the name before; nothing waits. A response that makes no value of the store's format takes the place of one that made
//! some, so that one is deleted, as far as its server is asked at the moment.
//! No body is filled here while it arrives: a value is small, and is written as a whole.

use std::sync::Arc;

use bytes::Bytes;
use larder_cache::StoredHead;
use larder_http::authority::Authority;
use larder_tier::{CacheKey, Entry, Keep, TargetUri};

use crate::format::{self, NotWritten};
use crate::{HttpCaching, Values};

impl Keep<HttpCaching> for Values {
    fn put(self: Arc<Self>, entry: &Entry<'_, StoredHead>) {
        let Ok(name) = self.name_to_write(entry.key) else { return };
        let base = (entry.key.base(), entry.key.hash());
        let value = format::value((&self.settings, self.max_object()), entry, self.clock.now());
        self.notes.write(base, entry.number, |is_new| match value {
            // Where the queue has no room, or the server fails, what lies there is as fresh as it was.
            Ok((value, lifetime)) if is_new => {
                self.servers.set(&name, value, lifetime);
            }
            Ok(_) => {}
            Err(_) => self.servers.delete_if_up(&name),
        });
    }

    fn forget(&self, key: &CacheKey, _identity: u64) {
        if let Ok(name) = self.name_to_write(key) {
            self.notes.write((key.base(), key.hash()), u64::MAX, |_| self.servers.delete_if_up(&name));
        }
    }
}

impl Values {
    /// The name under which a response under `key` is written; or why it is not.
    pub(crate) fn name_to_write(&self, key: &CacheKey) -> Result<Bytes, NotWritten> {
        if !self.settings.write {
            return Err(NotWritten::ByApplication);
        }
        // Anything but the scheme: what the rule adds, the content of a QUERY, or that it is a part.
        let has_more = match self.settings.key.has_versions() {
            // What cannot be told apart there, or was not known.
            true if key.has_marked_versions() || has_gap(key.versions().unwrap_or_default()) => true,
            true => key.versions().is_none() || key.has_more_parts_than_versions(),
            false => key.has_more_parts(),
        };
        let uri = TargetUri::of_key(key).filter(|_| !has_more).ok_or(NotWritten::KeyParts)?;
        let authority = self.served(&uri).ok_or(NotWritten::Host)?;
        // A stranger's port would choose what others get.
        if !self.settings.key.has_host() && has_port(&authority) {
            return Err(NotWritten::Host);
        }
        let name = self.settings.key.of_uri(&uri, key.versions()).ok_or(NotWritten::KeyParts)?;
        Ok(Bytes::copy_from_slice(&name))
    }
}

/// Whether one of several versions is missing.
fn has_gap(versions: &[u8]) -> bool {
    versions.split(|byte| *byte == b'.').any(<[u8]>::is_empty)
}

fn has_port(authority: &Authority) -> bool {
    authority.as_str() != authority.host()
}
