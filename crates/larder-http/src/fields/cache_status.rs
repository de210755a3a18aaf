//! Cache-Status (RFC 9211): what larder did with a request, in one line that every answer carries.
//!
//! In: an outcome and its parameters. Out: one member of the field, `larder; hit; ttl=376` or
//! `larder; fwd=stale; fwd-status=304; stored; ttl=60; detail=...`. Parameters come in that fixed order; `detail` is a
//! fixed token, never free text, so nothing that a peer sent can get in. Only
//! where debugging is allowed does a member say the key as well, which holds what a client asked for, escaped.

mod nearest;
mod result;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};

pub use nearest::NearestCache;
pub use result::{HitSource, RequestResult};

/// The field's name.
pub const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// Bytes of a cache key that are told; the rest of a longer one is cut off.
pub const KEY_MAX: usize = 1024;

/// Room for a line without a key; few are longer.
const LINE_BYTES: usize = 96;

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
    /// Where the bytes of a hit came from; of anything else it says nothing. The field does not tell it.
    pub source: HitSource,
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
            source: HitSource::Memory,
        }
    }

    /// Who answered the request. It was not refused, else there would be no Cache-Status.
    #[inline(always)]
    pub const fn result(&self) -> RequestResult {
        match (self.outcome, self.source) {
            (Outcome::Hit, HitSource::Memory) => RequestResult::Memory,
            (Outcome::Hit, HitSource::Disk) => RequestResult::Disk,
            (Outcome::Hit, HitSource::File) => RequestResult::File,
            (Outcome::Hit, HitSource::Remote) => RequestResult::Remote,
            (Outcome::Hit, HitSource::Stale) => RequestResult::Stale,
            (Outcome::Forwarded(_), _) if self.collapsed => RequestResult::Joined,
            (Outcome::Forwarded(_), _) => RequestResult::Asked,
            (Outcome::Own, _) => RequestResult::Own,
        }
    }

    /// The field value.
    pub fn value(&self) -> HeaderValue {
        let mut line = Vec::with_capacity(LINE_BYTES);
        self.write(&mut line);
        field_value(line)
    }

    /// Writes the same bytes.
    pub fn write(&self, line: &mut Vec<u8>) {
        self.write_front(line);
        self.write_detail(line);
    }

    /// The field value with the cache key in it, for debugging: the `key` of RFC 9211 2.6, an sf-string that stands
    /// before `detail`. What an sf-string cannot hold is percent-encoded; of a key longer than [`KEY_MAX`] bytes only
    /// the beginning is told.
    pub fn value_with_key(&self, key: &str) -> HeaderValue {
        let key = key.get(..key.floor_char_boundary(KEY_MAX)).unwrap_or(key);
        let mut line = Vec::with_capacity(LINE_BYTES + key.len());
        self.write_front(&mut line);
        line.extend_from_slice(b"; key=\"");
        for byte in key.bytes() {
            match byte {
                b'"' | b'\\' => line.extend_from_slice(&[b'\\', byte]),
                b' '..=b'~' => line.push(byte),
                _ => {
                    const HEX: &[u8; 16] = b"0123456789ABCDEF";
                    let digit = |nibble: u8| HEX[usize::from(nibble & 15)];
                    line.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte)]);
                }
            }
        }
        line.push(b'"');
        self.write_detail(&mut line);
        field_value(line)
    }

    /// Writes the member up to where `key` or `detail` would stand.
    fn write_front(&self, line: &mut Vec<u8>) {
        let mut push = |text: &str| line.extend_from_slice(text.as_bytes());
        match self.outcome {
            Outcome::Hit => push("larder; hit"),
            Outcome::Forwarded(reason) => {
                push("larder; fwd=");
                push(reason.token());
            }
            Outcome::Own => push("larder"),
        }
        if let Some(status) = self.forward_status {
            push("; fwd-status=");
            push(status.as_str());
        }
        if self.stored {
            push("; stored");
        }
        if self.collapsed {
            push("; collapsed");
        }
        if let Some(ttl) = self.ttl_seconds {
            // RFC 9651 integers have at most fifteen digits.
            const MOST: i64 = 999_999_999_999_999;
            push("; ttl=");
            push(itoa::Buffer::new().format(ttl.clamp(-MOST, MOST)));
        }
    }

    fn write_detail(&self, line: &mut Vec<u8>) {
        if let Some(detail) = self.detail {
            debug_assert!(is_token(detail), "{detail} is not an sf-token");
            line.extend_from_slice(b"; detail=");
            line.extend_from_slice(detail.as_bytes());
        }
    }
}

fn field_value(line: Vec<u8>) -> HeaderValue {
    HeaderValue::from_maybe_shared(Bytes::from(line)).unwrap_or_else(|_| HeaderValue::from_static("larder"))
}

fn is_token(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'*'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::convert::Infallible;

    use proptest::prelude::*;

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
                source: HitSource::Memory,
            },
            "larder; fwd=stale; fwd-status=304; stored; collapsed; ttl=60; detail=validated",
        );
        check(
            CacheStatus { detail: Some("only-if-cached"), ..CacheStatus::new(Outcome::Own) },
            "larder; detail=only-if-cached",
        );
    }

    #[test]
    fn an_extreme_lifetime_is_still_an_integer_of_a_structured_field() {
        for (ttl, expected) in
            [(i64::MIN, "larder; ttl=-999999999999999"), (i64::MAX, "larder; ttl=999999999999999")]
        {
            check(CacheStatus { ttl_seconds: Some(ttl), ..CacheStatus::new(Outcome::Own) }, expected);
        }
    }

    #[test]
    fn each_outcome_has_one_result() {
        let hit = |source| CacheStatus { source, ..CacheStatus::new(Outcome::Hit) };
        let forwarded =
            |collapsed| CacheStatus { collapsed, ..CacheStatus::new(Outcome::Forwarded(Forward::UriMiss)) };
        for (status, token) in [
            (hit(HitSource::Memory), "memory"),
            (hit(HitSource::Disk), "disk"),
            (hit(HitSource::File), "file"),
            (hit(HitSource::Remote), "remote"),
            (hit(HitSource::Stale), "stale"),
            (forwarded(true), "joined"),
            (forwarded(false), "asked"),
            (CacheStatus::new(Outcome::Own), "own"),
        ] {
            assert_eq!(status.result().token(), token);
            assert_eq!(status.result().is_hit(), status.outcome == Outcome::Hit, "{token}");
        }
    }

    fn check_key(key: &str, expected: &str) {
        let status =
            CacheStatus { ttl_seconds: Some(5), detail: Some("x"), ..CacheStatus::new(Outcome::Hit) };
        assert_eq!(status.value_with_key(key), format!("larder; hit; ttl=5; key=\"{expected}\"; detail=x"));
    }

    #[test]
    fn a_key_is_a_string_and_what_no_string_can_hold_is_percent_encoded() {
        check_key("", "");
        check_key("https://a.example/b?c=d", "https://a.example/b?c=d");
        check_key("a\"b\\c", "a\\\"b\\\\c");
        check_key("a\r\nb\0\x7f", "a%0D%0Ab%00%7F");
        check_key("\u{e9}", "%C3%A9");
        check_key(&"k".repeat(KEY_MAX + 1), &"k".repeat(KEY_MAX));
        let cut_inside_a_letter = format!("{}\u{e9}", "k".repeat(KEY_MAX - 1));
        check_key(&cut_inside_a_letter, &"k".repeat(KEY_MAX - 1));
    }

    proptest! {
        #[test]
        fn a_key_cannot_add_a_parameter(key in any::<String>()) {
            let value = CacheStatus::new(Outcome::Own).value_with_key(&key);
            prop_assert!(value.len() <= 3 * KEY_MAX + 32);
            let mut parameters = Vec::new();
            sfv::Parser::new(value.as_bytes()).parse_list_with_visitor(Parameters(&mut parameters)).unwrap();
            prop_assert_eq!(parameters, ["key"]);
        }
    }

    /// Collects the names of a member's parameters.
    struct Parameters<'a>(&'a mut Vec<String>);

    impl<'de> sfv::visitor::ListVisitor<'de> for Parameters<'_> {
        type Out = ();
        type Error = Infallible;

        fn entry(&mut self) -> Result<impl sfv::visitor::EntryVisitor<'de>, Infallible> {
            Ok(Parameters(self.0))
        }

        fn finish(self) -> Result<(), Infallible> {
            Ok(())
        }
    }

    impl<'de> sfv::visitor::EntryVisitor<'de> for Parameters<'_> {
        type Error = Infallible;

        fn item(self) -> Result<impl sfv::visitor::ItemVisitor<'de>, Infallible> {
            Ok(self)
        }

        fn inner_list(self) -> Result<impl sfv::visitor::InnerListVisitor<'de>, Infallible> {
            Ok(sfv::visitor::Ignored)
        }
    }

    impl<'de> sfv::visitor::ItemVisitor<'de> for Parameters<'_> {
        type Out = ();
        type Error = Infallible;

        fn bare_item(
            self,
            _: sfv::BareItemFromInput<'de>,
        ) -> Result<impl sfv::visitor::ParameterVisitor<'de, Out = ()>, Infallible> {
            Ok(self)
        }
    }

    impl<'de> sfv::visitor::ParameterVisitor<'de> for Parameters<'_> {
        type Out = ();
        type Error = Infallible;

        fn parameter(
            &mut self,
            key: &'de sfv::KeyRef,
            _: sfv::BareItemFromInput<'de>,
        ) -> Result<(), Infallible> {
            self.0.push(key.as_str().to_owned());
            Ok(())
        }

        fn finish(self) -> Result<(), Infallible> {
            Ok(())
        }
    }
}
