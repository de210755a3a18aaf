//! Content that could have been compressed and was not.
//!
//! In: a request and the response that it gets, from the origin or from what is stored. Out: that the request takes a
//! coding, that the content would shrink, and that the origin sent it as it is; with what to do about it. Most such
//! responses come from an nginx behind larder, which compresses nothing that is asked for with Via unless it is told to.

use http::{HeaderMap, StatusCode, header};
use larder_cache::Codings;
use larder_cache::coding::{takes_a_coding, type_that_shrinks};

use super::{Reason, Walk};

/// Shorter content does not shrink by much; servers leave it alone.
const BYTES_MIN: u64 = 1024;

impl Walk<'_> {
    /// What there is to say of a response to this request, with its status, fields and length.
    pub(super) fn uncompressed(&self, of: (StatusCode, &HeaderMap, Option<u64>)) -> Option<Reason> {
        let origin = self.site.settings.origin.and_then(|origin| self.plan.origins.get(origin))?;
        uncompressed(&self.head().fields, of, origin.via)
    }
}

/// What there is to say, if anything, of a response with `status`, `fields` and so many bytes.
pub(super) fn uncompressed(
    request: &HeaderMap,
    (status, fields, bytes): (StatusCode, &HeaderMap, Option<u64>),
    sends_via: bool,
) -> Option<Reason> {
    let is_long = bytes.is_none_or(|bytes| bytes >= BYTES_MIN);
    let is_kept_as_it_is = || {
        let lines = fields.get_all(header::CACHE_CONTROL).iter().filter_map(|line| line.to_str().ok());
        lines.flat_map(|line| line.split(',')).any(|word| word.trim().eq_ignore_ascii_case("no-transform"))
    };
    let media = type_that_shrinks(fields)?;
    let is_plain = status == StatusCode::OK && Codings::of(fields).is_plain();
    if !(is_plain && is_long && takes_a_coding(request)) || is_kept_as_it_is() {
        return None;
    }
    let help = match sends_via {
        true => {
            "Behind a Via field nginx compresses only with gzip_proxied any (and gzip_vary on); via = false for this origin sends \
             none."
        }
        false => "See whether the origin compresses this type at all.",
    };
    let sentence = format!("The request takes a coding, and the origin sent {media} without one. {help}");
    Some(Reason::new("uncompressed", sentence, "RFC 9110 12.5.3"))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn only_what_would_shrink_for_somebody_who_takes_a_coding_is_told_of() {
        let check = |accepted: &'static str, said: &[(&'static str, &'static str)], bytes, expected: bool| {
            let (request, fields) = (fields(&[("accept-encoding", accepted)]), fields(said));
            let told = uncompressed(&request, (StatusCode::OK, &fields, bytes), true);
            assert_eq!(told.is_some(), expected, "{accepted} {said:?} {bytes:?}");
        };
        let html = [("content-type", "text/html; charset=utf-8")];
        check("gzip", &html, Some(5000), true);
        check("br, gzip;q=0", &html, None, true);
        check("identity", &html, Some(5000), false);
        check("*", &html, Some(5000), false);
        check("gzip", &html, Some(500), false);
        check("gzip", &[], Some(5000), false);
        for (media, expected) in [
            ("application/JSON", true),
            ("application/ld+json", true),
            ("image/svg+xml", true),
            ("image/png", false),
            ("font/woff2", false),
            ("application/octet-stream", false),
        ] {
            check("gzip", &[("content-type", media)], Some(5000), expected);
        }
        check("gzip", &[html[0], ("content-encoding", "gzip")], Some(5000), false);
        check("gzip", &[html[0], ("content-encoding", "own")], Some(5000), false);
        check("gzip", &[html[0], ("cache-control", "max-age=1, No-Transform")], Some(5000), false);
    }

    #[test]
    fn what_helps_depends_on_whether_the_origin_is_sent_via() {
        let (request, fields) =
            (fields(&[("accept-encoding", "gzip")]), fields(&[("content-type", "text/css")]));
        let help = |via| {
            let told = uncompressed(&request, (StatusCode::OK, &fields, None), via);
            told.map(|told| told.sentence).unwrap_or_default()
        };
        assert!(help(true).contains("gzip_proxied any") && help(true).contains("via = false"));
        assert!(!help(false).contains("via"));
    }
}
