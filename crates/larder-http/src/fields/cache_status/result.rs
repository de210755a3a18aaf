//! The result of a request: one word, so that the words of all requests add up to all requests.
//!
//! In: where the bytes of a hit came from. Out: a [`RequestResult`], which counters, log and views share. The reasons of RFC 9211 stand beside it: they tell why a request was not a hit, not who answered it.

/// Where the bytes of a hit came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HitSource {
    /// Memory.
    #[default]
    Memory,
    /// A disk: the body lies there, or was read into memory for this request.
    Disk,
    /// A plain file.
    File,
    /// Another program's memory, or another larder's response.
    Remote,
    /// Any of them, and the response was stale.
    Stale,
}

/// Who answered a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestResult {
    /// A fresh response in memory.
    Memory,
    /// A fresh response on a disk.
    Disk,
    /// A plain file of a store.
    File,
    /// A fresh response that another program's memory had.
    Remote,
    /// A stale response, without waiting for the origin.
    Stale,
    /// Another request's fetch.
    Joined,
    /// The origin, which this request asked.
    Asked,
    /// larder itself: a static file, a redirect, an error, a purge.
    Own,
    /// The parser, which refused it.
    Refused,
}

impl RequestResult {
    /// All results. Hits come first.
    pub const ALL: [Self; 9] = [
        Self::Memory,
        Self::Disk,
        Self::File,
        Self::Remote,
        Self::Stale,
        Self::Joined,
        Self::Asked,
        Self::Own,
        Self::Refused,
    ];

    /// The word.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::File => "file",
            Self::Remote => "remote",
            Self::Stale => "stale",
            Self::Joined => "joined",
            Self::Asked => "asked",
            Self::Own => "own",
            Self::Refused => "refused",
        }
    }

    /// Whether a stored response was the answer.
    pub const fn is_hit(self) -> bool {
        (self as usize) < Self::Joined as usize
    }
}
