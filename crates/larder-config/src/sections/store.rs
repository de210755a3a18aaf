//! A store: how much it may keep.

use crate::document::Table;
use crate::reading::{At, Reading};
use crate::schema::Consistent;
use crate::schema::section::section;
use crate::value::size::ByteSize;

/// The store of whoever names none.
pub const DEFAULT_STORE: &str = "default";

section! {
    /// Where responses are kept. NAME is what `store` calls it; the one named `default` serves whoever names none.
    pub struct Store in "`[stores.NAME]`" {
        /// What the store may keep in memory: bodies, fields, keys and its index, until the last reader lets go.
        memory: ByteSize = "256MiB", in "1MiB" ..= "1024TiB", why "Useful on any machine, noticed on none.";
        /// The largest body that is stored; larger ones are served and not stored.
        max_object: Option<ByteSize> = ("a quarter of `memory`"), in "1B" ..= "1024TiB",
            why "One response never pushes out more than a quarter of the others.";
    }
}

impl Store {
    /// The largest body that is stored, in bytes.
    pub fn max_object_bytes(&self) -> u64 {
        self.max_object.map_or(self.memory.0 / 4, |size| size.0)
    }
}

impl Default for Store {
    fn default() -> Self {
        crate::schema::Fallback::Absent.value()
    }
}

impl Consistent for Store {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        if let Some(node) = table.get("max_object")
            && self.max_object_bytes() > self.memory.0
        {
            let expected = format!("at most memory, which is {}", self.memory);
            reading.refuse_value(node, &At::Key(at, "max_object"), expected, None);
        }
    }
}
