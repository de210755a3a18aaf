//! Cache-Status (RFC 9211): what larder did with a request, in one line that every answer carries.
//!
//! In: an outcome and its parameters. Out: one member of the field, `larder; hit; ttl=376` or
//! `larder; fwd=stale; fwd-status=304; stored; ttl=60; detail=...`. Parameters come in that fixed order; `detail` is a
//! fixed token, never free text, so nothing that a peer sent can get in. Written on the stack, allocated once.

use http::{HeaderName, HeaderValue, StatusCode};

/// The field's name.
pub const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// Why a request went to the origin. The variants are RFC 9211's own words (section 2.2), and at once the labels of
/// metrics and the words of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Forward {
    /// Configured not to be handled by the cache.
    Bypass,
    /// The method's semantics require it.
    Method,
    /// Nothing is stored under the request's URI.
    UriMiss,
    /// Something is stored under the URI, but for other request fields.
    VaryMiss,
    /// Nothing stored can be used, and which of the above is not known.
    Miss,
    /// What is stored is fresh, but the request does not allow its use.
    Request,
    /// What is stored is stale, or has to be validated before use.
    Stale,
    /// Only a part of what is needed is stored.
    Partial,
}

impl Forward {
    /// All reasons, in the RFC's order.
    pub const ALL: [Self; 8] = [
        Self::Bypass,
        Self::Method,
        Self::UriMiss,
        Self::VaryMiss,
        Self::Miss,
        Self::Request,
        Self::Stale,
        Self::Partial,
    ];

    /// The token of RFC 9211.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Miss => "miss",
            Self::Request => "request",
            Self::Stale => "stale",
            Self::Partial => "partial",
        }
    }
}

/// How a request was satisfied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// From what is stored, without the origin.
    Hit,
    /// By asking the origin.
    Forwarded(Forward),
    /// By neither: larder's own answer, such as an error.
    Own,
}

/// One member of Cache-Status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheStatus {
    /// Hit or forwarded.
    pub outcome: Outcome,
    /// What the origin answered, where that was asked and differs from nothing.
    pub forward_status: Option<StatusCode>,
    /// Whether the answer was stored.
    pub stored: bool,
    /// Whether this request joined another's.
    pub collapsed: bool,
    /// Seconds of freshness left; negative where stale.
    pub ttl_seconds: Option<i64>,
    /// A fixed token (RFC 9651 sf-token: begins with a letter).
    pub detail: Option<&'static str>,
}

impl CacheStatus {
    /// A bare outcome.
    pub const fn new(outcome: Outcome) -> Self {
        Self {
            outcome,
            forward_status: None,
            stored: false,
            collapsed: false,
            ttl_seconds: None,
            detail: None,
        }
    }

    /// The field value.
    pub fn value(&self) -> HeaderValue {
        let mut line = Line { bytes: [0; 160], length: 0 };
        line.push("larder");
        match self.outcome {
            Outcome::Hit => line.push("; hit"),
            Outcome::Forwarded(reason) => {
                line.push("; fwd=");
                line.push(reason.token());
            }
            Outcome::Own => {}
        }
        if let Some(status) = self.forward_status {
            line.push("; fwd-status=");
            line.push(status.as_str());
        }
        if self.stored {
            line.push("; stored");
        }
        if self.collapsed {
            line.push("; collapsed");
        }
        if let Some(ttl) = self.ttl_seconds {
            // RFC 9651 integers have at most fifteen digits.
            const MOST: i64 = 999_999_999_999_999;
            line.push("; ttl=");
            line.push(itoa::Buffer::new().format(ttl.clamp(-MOST, MOST)));
        }
        if let Some(detail) = self.detail {
            debug_assert!(is_token(detail), "{detail} is not an sf-token");
            // One that does not fit is left out whole: half a token would be another token.
            if line.left() >= "; detail=".len() + detail.len() {
                line.push("; detail=");
                line.push(detail);
            }
        }
        HeaderValue::from_bytes(line.written()).unwrap_or_else(|_| HeaderValue::from_static("larder"))
    }
}

fn is_token(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'*'))
}

/// A line on the stack. Everything but the detail fits by construction: at most 98 bytes.
struct Line {
    bytes: [u8; 160],
    length: usize,
}

impl Line {
    fn push(&mut self, text: &str) {
        if let Some(room) = self.bytes.get_mut(self.length..self.length + text.len()) {
            room.copy_from_slice(text.as_bytes());
            self.length += text.len();
        }
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.length
    }

    fn written(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: CacheStatus, expected: &str) {
        assert_eq!(status.value(), expected);
    }

    #[test]
    fn parameters_come_in_a_fixed_order() {
        check(
            CacheStatus { ttl_seconds: Some(376), ..CacheStatus::new(Outcome::Hit) },
            "larder; hit; ttl=376",
        );
        check(
            CacheStatus {
                ttl_seconds: Some(-412),
                detail: Some("stale-origin-dead"),
                ..CacheStatus::new(Outcome::Hit)
            },
            "larder; hit; ttl=-412; detail=stale-origin-dead",
        );
        check(CacheStatus::new(Outcome::Forwarded(Forward::UriMiss)), "larder; fwd=uri-miss");
        check(
            CacheStatus {
                outcome: Outcome::Forwarded(Forward::Stale),
                forward_status: Some(StatusCode::NOT_MODIFIED),
                stored: true,
                collapsed: true,
                ttl_seconds: Some(60),
                detail: Some("validated"),
            },
            "larder; fwd=stale; fwd-status=304; stored; collapsed; ttl=60; detail=validated",
        );
        check(
            CacheStatus { detail: Some("only-if-cached"), ..CacheStatus::new(Outcome::Own) },
            "larder; detail=only-if-cached",
        );
    }

    #[test]
    fn the_longest_line_fits() {
        for reason in Forward::ALL {
            let longest = CacheStatus {
                outcome: Outcome::Forwarded(reason),
                forward_status: Some(StatusCode::OK),
                stored: true,
                collapsed: true,
                ttl_seconds: Some(i64::MIN),
                detail: Some("a-detail-of-forty-bytes-is-a-long-detail"),
            };
            let value = longest.value();
            assert!(value.to_str().is_ok_and(|text| {
                text.ends_with("ttl=-999999999999999; detail=a-detail-of-forty-bytes-is-a-long-detail")
            }));
        }
    }
}
