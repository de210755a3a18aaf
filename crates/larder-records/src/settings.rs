//! What is said about the records of one store.
//!
//! In: the config, already read. Out: what they are called in Redis, and how large they may be.

use std::time::Duration;

/// The largest body that is shared. It is read as a whole before the first byte of it is sent.
pub const RECORD_MAX_BYTES: u64 = 8 << 20;

/// The least lifetime of what is shared.
pub(crate) const LIFETIME_MIN: Duration = Duration::from_secs(1);

/// The settings of one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordsSettings {
    /// What the names of its keys begin with, which is the fleet's.
    pub prefix: String,
    /// The store's name, which all larders have for it.
    pub store: String,
    /// What this larder is called in its fleet.
    pub member: String,
    /// The longest that asking takes, with all its calls. It is the server's setting as well.
    pub timeout: Duration,
    /// Whether bodies that shrink are written in LZ4. They are read in any case.
    pub is_compressed: bool,
    /// The largest body at first, in bytes; [`RECORD_MAX_BYTES`] at most.
    pub max_object: u64,
}
