//! Why a request for a purge is refused: a word of metrics and of the log.

/// Why a request for a purge was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PurgeRefusal {
    /// No site lets anybody purge, or none lets this sender.
    NotAllowed,
    /// It was passed on by a proxy that is not trusted.
    Forwarded,
    /// A wrong token.
    Token,
    /// Too many wrong tokens from one address.
    TooManyTokens,
    /// It names nothing, or what it names cannot be read.
    Bad,
    /// As many purges are under way as may be.
    Busy,
}

impl PurgeRefusal {
    /// All of them.
    pub(crate) const ALL: [Self; 6] =
        [Self::NotAllowed, Self::Forwarded, Self::Token, Self::TooManyTokens, Self::Bad, Self::Busy];

    /// The fixed word.
    pub(crate) const fn token(self) -> &'static str {
        match self {
            Self::NotAllowed => "not-allowed",
            Self::Forwarded => "forwarded",
            Self::Token => "token",
            Self::TooManyTokens => "too-many-tokens",
            Self::Bad => "bad",
            Self::Busy => "busy",
        }
    }
}
