//! Why something else stands where a fragment should, in one word each: for metrics, the log and `larder explain`.

/// Why an include failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IncludeFailure {
    /// 3xx: redirects are not followed.
    Redirect,
    /// 4xx or 5xx.
    Status,
    /// No answer.
    Origin,
    /// A body that ended before its framing did.
    Broken,
    /// No answer within the time of one fragment.
    Timeout,
    /// No answer within the time of the page.
    PageTimeout,
    /// More than a limit permits.
    TooLarge,
    /// A content coding that cannot be decoded.
    Coding,
    /// A template with a problem, under a rule that takes none.
    Invalid,
    /// A site that may not be asked, or a reference whose site would depend on the request.
    Host,
    /// A path above the root.
    Climbing,
    /// Not a reference.
    Url,
    /// The document is among its own ancestors.
    Loop,
    /// Too many levels.
    Depth,
    /// Too many includes on the page.
    Count,
    /// Too many operations on the page.
    Budget,
}

impl IncludeFailure {
    /// Every reason.
    pub const ALL: [Self; 16] = [
        Self::Redirect,
        Self::Status,
        Self::Origin,
        Self::Broken,
        Self::Timeout,
        Self::PageTimeout,
        Self::TooLarge,
        Self::Coding,
        Self::Invalid,
        Self::Host,
        Self::Climbing,
        Self::Url,
        Self::Loop,
        Self::Depth,
        Self::Count,
        Self::Budget,
    ];

    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Redirect => "redirect",
            Self::Status => "status",
            Self::Origin => "origin",
            Self::Broken => "broken",
            Self::Timeout => "timeout",
            Self::PageTimeout => "page-timeout",
            Self::TooLarge => "too-large",
            Self::Coding => "coding",
            Self::Invalid => "invalid",
            Self::Host => "host",
            Self::Climbing => "climbing",
            Self::Url => "url",
            Self::Loop => "loop",
            Self::Depth => "depth",
            Self::Count => "count",
            Self::Budget => "budget",
        }
    }
}
