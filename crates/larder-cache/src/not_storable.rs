//! Why a response is not stored.

use http::StatusCode;

/// The rule that forbids storing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotStorable {
    /// Only answers to GET and QUERY are stored, and those to POST that are explicitly what a GET would bring.
    Method,
    /// An interim response is not final.
    Interim,
    /// 206 to a request without Range, with several parts, or without a usable Content-Range.
    PartialContent,
    /// 304 updates what is stored and is nothing by itself.
    NotModified,
    /// 412 answers the request's conditions.
    PreconditionFailed,
    /// 416 answers the request's Range.
    RangeNotSatisfiable,
    /// The request says `no-store`.
    RequestNoStore,
    /// `must-understand` with a status whose rules are not known here.
    MustUnderstand,
    /// `no-store`
    NoStore,
    /// `private`
    Private,
    /// The request has Authorization, and the origin does not say that its response is shared, or gives it no lifetime
    /// where the rule does.
    Authorization,
    /// The request has a cookie that may mean a session, and the response would live by a configured lifetime or a
    /// heuristic one.
    SessionCookie,
    /// `Vary: *`
    VaryAny,
    /// Set-Cookie without an explicit lifetime that holds without validation.
    SetCookie,
    /// Set-Cookie that starts a session, by its name or HttpOnly, and nothing says that the response is for all.
    SetSessionCookie,
    /// Set-Cookie whose value could tell people apart, likewise.
    SetPersonalCookie,
    /// Set-Cookie, and the rule says that such responses are never stored.
    SetCookieBypass,
    /// `no-cache`, and it cannot be validated: nothing could ever be used.
    NoCache,
    /// No lifetime, and it cannot be validated.
    NoLifetime,
}

impl NotStorable {
    /// Whether a final answer of `status` that is not stored for this reason ends what is stored for the same request: the
    /// page is gone, or not for everybody any more. Not where the reason lies in the request or in a cookie that is set,
    /// which say nothing of what others would get; nor after an error, which says nothing of the page.
    pub fn outdates(self, status: StatusCode) -> bool {
        let speaks_of_the_page =
            status.is_success() || status.is_redirection() || matches!(status.as_u16(), 404 | 410);
        let is_of_the_response = matches!(
            self,
            Self::MustUnderstand
                | Self::NoStore
                | Self::Private
                | Self::VaryAny
                | Self::NoCache
                | Self::NoLifetime
        );
        speaks_of_the_page && is_of_the_response
    }

    /// All reasons, in the order of the enum, so that a counter's place is the variant's.
    pub const ALL: [Self; 19] = [
        Self::Method,
        Self::Interim,
        Self::PartialContent,
        Self::NotModified,
        Self::PreconditionFailed,
        Self::RangeNotSatisfiable,
        Self::RequestNoStore,
        Self::MustUnderstand,
        Self::NoStore,
        Self::Private,
        Self::Authorization,
        Self::SessionCookie,
        Self::VaryAny,
        Self::SetCookie,
        Self::SetSessionCookie,
        Self::SetPersonalCookie,
        Self::SetCookieBypass,
        Self::NoCache,
        Self::NoLifetime,
    ];

    /// The fixed word for Cache-Status, logs and metrics.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Interim => "interim",
            Self::PartialContent => "partial-content",
            Self::NotModified => "not-modified",
            Self::PreconditionFailed => "precondition-failed",
            Self::RangeNotSatisfiable => "range-not-satisfiable",
            Self::RequestNoStore => "request-no-store",
            Self::MustUnderstand => "must-understand",
            Self::NoStore => "no-store",
            Self::Private => "private",
            Self::Authorization => "authorization",
            Self::SessionCookie => "session-cookie",
            Self::VaryAny => "vary-any",
            Self::SetCookie => "set-cookie",
            Self::SetSessionCookie => "set-session-cookie",
            Self::SetPersonalCookie => "set-personal-cookie",
            Self::SetCookieBypass => "set-cookie-bypass",
            Self::NoCache => "no-cache",
            Self::NoLifetime => "no-lifetime",
        }
    }

    /// The reason with this word.
    pub fn of_token(token: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.token() == token)
    }

    /// Whether the response may speak of one client, although its fields may not say so: what is made of it is for that
    /// client too.
    pub const fn is_of_one_client(self) -> bool {
        match self {
            Self::Private
            | Self::Authorization
            | Self::SessionCookie
            | Self::VaryAny
            | Self::SetCookie
            | Self::SetSessionCookie
            | Self::SetPersonalCookie
            | Self::SetCookieBypass => true,
            Self::Method
            | Self::Interim
            | Self::PartialContent
            | Self::NotModified
            | Self::PreconditionFailed
            | Self::RangeNotSatisfiable
            | Self::RequestNoStore
            | Self::MustUnderstand
            | Self::NoStore
            | Self::NoCache
            | Self::NoLifetime => false,
        }
    }

    /// Whether it was this request that forbade it: another one for the same URI may well be answered by something
    /// that can be stored.
    pub const fn lies_in_request(self) -> bool {
        match self {
            Self::Method
            | Self::PartialContent
            | Self::NotModified
            | Self::PreconditionFailed
            | Self::RangeNotSatisfiable
            | Self::RequestNoStore
            | Self::Authorization
            | Self::SessionCookie => true,
            Self::Interim
            | Self::MustUnderstand
            | Self::NoStore
            | Self::Private
            | Self::VaryAny
            | Self::SetCookie
            | Self::SetSessionCookie
            | Self::SetPersonalCookie
            | Self::SetCookieBypass
            | Self::NoCache
            | Self::NoLifetime => false,
        }
    }
}
