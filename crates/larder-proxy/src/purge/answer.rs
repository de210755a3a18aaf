//! Answers to purges, in the words that clients expect.
//!
//! In: what became of a request. Out: status, reason phrase, content and its type. Deliberately absent: fields that every
//! answer has (`Cache-Control`, the receipt, `Retry-After`); the code that sends the answer adds them.

use std::borrow::Cow;

use http::StatusCode;

use super::dialect::drupal;
use super::manner::Manner;
use super::request::PurgeRequest;

const TEXT: &str = "text/plain; charset=utf-8";

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PurgeAnswer {
    /// The status.
    pub(crate) status: StatusCode,
    /// The reason phrase where it is not the usual one. Varnish puts its words there, and some clients log them.
    pub(crate) reason: Option<&'static str>,
    /// The content.
    pub(crate) body: Cow<'static, str>,
    /// The type of the content; none without content.
    pub(crate) content_type: Option<&'static str>,
}

impl PurgeAnswer {
    /// The purge holds. `stored` says whether it removed something, where that is known at once. `absent` is the site's
    /// status for URLs under which nothing was stored: 404 or 412.
    pub(crate) fn done(manner: Manner, stored: Option<bool>, absent: Option<u16>) -> Self {
        let absent = match (stored, manner, absent) {
            (Some(false), Manner::Location, None) => Some(404),
            (Some(false), Manner::Location | Manner::Purged, absent) => absent,
            _ => None,
        };
        match (absent, manner) {
            (Some(412), _) => Self::usual(StatusCode::PRECONDITION_FAILED),
            (Some(_), _) => Self::usual(StatusCode::NOT_FOUND),
            (None, Manner::PurgedOrNotFound) if stored == Some(false) => Self::ok("Not found"),
            (None, Manner::Purged | Manner::PurgedOrNotFound | Manner::Location) => Self::ok("Purged"),
            (None, Manner::Banned) => Self::ok("Banned"),
            (None, Manner::BanAdded) => Self::ok("Ban added."),
            (None, Manner::NoContent) => Self {
                status: StatusCode::NO_CONTENT,
                reason: None,
                body: Cow::default(),
                content_type: None,
            },
        }
    }

    /// The request names nothing, or not in a way that can be read.
    pub(crate) fn bad(words: impl Into<Cow<'static, str>>) -> Self {
        Self::saying(StatusCode::BAD_REQUEST, words.into())
    }

    /// The client may not purge here. The answer does not depend on what the request names.
    pub(crate) fn refused(request: &PurgeRequest<'_>) -> Self {
        if drupal::is_its(request) {
            Self::saying(StatusCode::FORBIDDEN, Cow::Borrowed("Not allowed."))
        } else {
            Self::saying(StatusCode::METHOD_NOT_ALLOWED, Cow::Borrowed("Not allowed"))
        }
    }

    /// As many purges as may be under way are under way.
    pub(crate) fn too_many() -> Self {
        Self::usual(StatusCode::TOO_MANY_REQUESTS)
    }

    /// The purge is applied in memory, and the place that keeps it has not confirmed it.
    pub(crate) fn not_held(why: impl Into<Cow<'static, str>>) -> Self {
        Self::saying(StatusCode::SERVICE_UNAVAILABLE, why.into())
    }

    fn ok(words: &'static str) -> Self {
        Self::saying(StatusCode::OK, Cow::Borrowed(words))
    }

    fn usual(status: StatusCode) -> Self {
        let body = Cow::Borrowed(status.canonical_reason().unwrap_or_default());
        Self { status, reason: None, body, content_type: Some(TEXT) }
    }

    /// Fixed words are the reason phrase too.
    fn saying(status: StatusCode, body: Cow<'static, str>) -> Self {
        let reason = match body {
            Cow::Borrowed(words) => Some(words),
            Cow::Owned(_) => None,
        };
        Self { status, reason, body, content_type: Some(TEXT) }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::*;

    #[test]
    fn success_is_told_in_the_manner_of_the_dialect() {
        use Manner::{BanAdded, Banned, Location, NoContent, Purged, PurgedOrNotFound};
        for (manner, stored, absent, status, body) in [
            (Purged, Some(true), None, 200, "Purged"),
            (Purged, Some(false), None, 200, "Purged"),
            (Purged, None, Some(404), 200, "Purged"),
            (Purged, Some(true), Some(404), 200, "Purged"),
            (Purged, Some(false), Some(404), 404, "Not Found"),
            (Purged, Some(false), Some(412), 412, "Precondition Failed"),
            (Banned, Some(false), Some(412), 200, "Banned"),
            (BanAdded, None, None, 200, "Ban added."),
            (PurgedOrNotFound, Some(true), None, 200, "Purged"),
            (PurgedOrNotFound, None, None, 200, "Purged"),
            (PurgedOrNotFound, Some(false), None, 200, "Not found"),
            (Location, Some(true), Some(412), 200, "Purged"),
            (Location, Some(false), None, 404, "Not Found"),
            (Location, Some(false), Some(412), 412, "Precondition Failed"),
            (Location, None, None, 200, "Purged"),
            (NoContent, None, None, 204, ""),
        ] {
            let answer = PurgeAnswer::done(manner, stored, absent);
            assert_eq!(
                (answer.status.as_u16(), &*answer.body),
                (status, body),
                "{manner:?} {stored:?} {absent:?}"
            );
            assert_eq!(answer.content_type.is_some(), !answer.body.is_empty());
            assert!(answer.reason.is_none_or(|reason| reason == answer.body));
        }
    }

    #[test]
    fn failures_have_their_status_and_fixed_words_are_the_reason_phrase() {
        for (answer, status, reason, body) in [
            (PurgeAnswer::bad("no"), 400, Some("no"), "no"),
            (PurgeAnswer::bad(format!("at byte {}", 3)), 400, None, "at byte 3"),
            (PurgeAnswer::too_many(), 429, None, "Too Many Requests"),
            (PurgeAnswer::not_held("the journal"), 503, Some("the journal"), "the journal"),
        ] {
            assert_eq!((answer.status.as_u16(), answer.reason, &*answer.body), (status, reason, body));
        }
    }

    #[test]
    fn drupal_is_refused_by_403_and_all_others_by_405() {
        for (method, field, status, words) in [
            ("PURGE", "host", 405, "Not allowed"),
            ("BAN", "cache-tags", 403, "Not allowed."),
            ("BAN", "x-cache-tags", 403, "Not allowed."),
            ("PURGETAGS", "x-cache-tags", 405, "Not allowed"),
            ("URIBAN", "host", 403, "Not allowed."),
            ("GET", "cache-tags", 405, "Not allowed"),
        ] {
            let fields =
                HeaderMap::from_iter([(http::HeaderName::from_static(field), HeaderValue::from_static("a"))]);
            let request = PurgeRequest { method, target: "/", fields: &fields, location: None };
            let answer = PurgeAnswer::refused(&request);
            assert_eq!((answer.status.as_u16(), answer.reason), (status, Some(words)), "{method} {field}");
        }
    }
}
