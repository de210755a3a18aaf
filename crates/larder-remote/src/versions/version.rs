//! A version, and what reading one comes to.

use std::sync::Arc;

/// A version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// As it lies there.
    pub text: Arc<str>,
    /// 0; and another once it has become a lower number than it was: then the same text means something else than before. It is the
    /// time of that in seconds.
    pub time: u64,
}

/// What a version is found to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionReading {
    /// This.
    Version(Version),
    /// It has none.
    Absent,
    /// It cannot be had at this moment.
    Unknown,
}
