//! A store: how much it may keep, and where.

use std::time::Duration;

use crate::schema::section::section;
use crate::sections::disk::Disk;
use crate::sections::files::Files;
use crate::sections::memcached::Memcached;
use crate::sections::redis::Redis;
use crate::sections::values::ValueSettings;
use crate::value::size::ByteSize;
use crate::value::words::Layout;

/// The store of whoever names none.
pub const DEFAULT_STORE: &str = "default";

/// The largest body that goes to disks whose size depends on their file system, unless the config says otherwise: 1 GiB.
const MAX_OBJECT_WHERE_UNKNOWN: u64 = 1 << 30;

section! {
    /// Where responses are kept. NAME is what `store` calls it; the one named `default` serves whoever names none.
    pub struct Store in "`[stores.NAME]`" {
        /// What the store may keep in memory: bodies, fields, keys and its index, until the last reader lets go.
        memory: ByteSize = "256MiB", in "1MiB" ..= "1024TiB", why "Useful on any machine, noticed on none.";
        /// Disks behind the memory. What is stored goes there and is found again after a restart; what is asked for often is
        /// in memory as well.
        disks: Vec<Disk> = ("none: memory alone"), why "Only the operator knows which disks there are, and what else is on them.";
        /// How several disks are used. `"mirror"`: each response on every disk, so that all but one may be lost; `"stripe"`:
        /// the pieces of each spread over all; `"hash"`: each on one disk, by its URL, so that a disk that is lost or added
        /// moves only its share. `"single"` is one disk.
        layout: Option<Layout> = ("`\"single\"` with one disk; with several it has to be said"), why "To survive a disk or to have the room of all of them: nobody can guess which.";
        /// How long a response stays that nobody asks for.
        idle: Option<Duration> = ("none: until its room is needed"), in "1s" ..= "3650d", why "Room that is there may be used.";
        /// Keep bodies as plain files at the URL's own path, in place of disks: the directory alone, or a table. What lies
        /// there is served, whoever wrote it, and what is removed there is gone.
        files: Option<Files> = ("none"), why "For those who want to touch what is stored with `cat`, `rm` and an editor. A disk of larder's own takes more kinds of responses, and checks what it reads.";
        /// Values that an application keeps in memcached: the servers alone, or a table. What memory has no fresh copy of is asked for
        /// there, before the origin is.
        memcached: Option<Memcached> = ("none"), why "For applications that keep pages and fragments there already, as many do for nginx.";
        /// Share what is stored with all larders that name the same Redis or Valkey; or values that an application keeps there, likewise.
        redis: Option<Redis> = ("none"), why "Only several larders gain by it, or an application that keeps values there.";
        /// The largest body that is stored; larger ones are served and not stored.
        max_object: Option<ByteSize> = ("a quarter of `memory`; with disks, of the smallest one, or `\"1GiB\"` where that depends on the file system, whichever is less; with `files`, of its `size`"), in "1B" ..= "1024TiB",
            why "One response never pushes out more than a quarter of the others. On disks and in files a body need not fit into memory.";
    }
}

impl Store {
    /// What is said of its values, and the key of the table that says it; `None` where it has none.
    pub fn values(&self) -> Option<(&'static str, &ValueSettings)> {
        let memcached = self.memcached.as_ref().map(|said| ("memcached", &said.values));
        memcached.or_else(|| Some(("redis", self.redis.as_ref()?.values.as_ref()?)))
    }

    /// Where larders share its responses, if they do.
    pub fn records(&self) -> Option<&Redis> {
        self.redis.as_ref().filter(|redis| redis.values.is_none())
    }

    /// How the disks are used; `Single` where there is one, or none.
    pub fn chosen_layout(&self) -> Layout {
        self.layout.unwrap_or_default()
    }

    /// The largest body that is stored, in bytes.
    pub fn max_object_bytes(&self) -> u64 {
        self.max_object.map_or_else(|| self.max_object_default(), |size| size.0)
    }

    fn max_object_default(&self) -> u64 {
        if let Some(files) = &self.files {
            return files.size.0 / 4;
        }
        let sizes = self.disks.iter().map(|disk| disk.known_bytes().map(|bytes| bytes / 4));
        let sizes = sizes.map(|quarter| quarter.unwrap_or(MAX_OBJECT_WHERE_UNKNOWN));
        sizes.min().unwrap_or(self.memory.0 / 4)
    }
}

impl Default for Store {
    fn default() -> Self {
        crate::schema::Fallback::Absent.value()
    }
}
