//! Whether larder takes new work, in the word that `/healthz` and `/stats` say.

/// Whether new work should be sent here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Yes.
    Ok,
    /// Yes; but a store goes on without a disk, or without its directory of files.
    Degraded,
    /// No: it is ending, and finishes what runs.
    Draining,
}

impl Health {
    /// The word that `/healthz` and `/stats` say.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::Draining => "draining",
        }
    }
}
