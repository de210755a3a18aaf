//! What is kept of a response besides its body: fields, freshness, selecting fields, validators and directives, all
//! read once so that a hit parses nothing.
//!
//! In: the head of a response that may be stored. Out: a [`StoredHead`], owned by the store and shared by answers;
//! it never changes, a validation makes a new one. Field values are copied into one piece of exactly their size,
//! so that nothing keeps a read buffer alive; the map and the HTTP/1 lines are two views of it.
//! Left out: Age and Cache-Status, made anew for each answer; Content-Length, which is the listener's; and what a
//! qualified `no-cache` or `private` names. A missing Date is added (RFC 9110 6.6.1).

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use larder_http::fields::cache_control::ResponseDirectives;
use larder_http::fields::cache_status::CACHE_STATUS;
use larder_http::fields::date::{self, DateField};
use larder_http::fields::etag::EntityTag;
use larder_http::message::{PreparedFields, RequestHead};
use larder_http::time::WallTime;

use crate::freshness::{Freshness, LifetimeSource};
use crate::storable::is_left_out;
use crate::vary::{Selecting, VaryNames};

/// A stored response without its body.
#[derive(Clone, Debug)]
pub struct StoredHead {
    /// As the origin sent it.
    pub status: StatusCode,
    /// End-to-end fields, ready to be sent.
    pub fields: Arc<PreparedFields>,
    /// How long it is fresh.
    pub freshness: Freshness,
    /// Which requests it answers.
    pub vary: Selecting,
    /// With what it can be validated.
    pub validators: Validators,
    /// What was said about its use when stale.
    pub stale: StaleDirectives,
}

/// What a stored response can be validated with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// Its entity tag as it came, odd ones included.
    pub etag: Option<HeaderValue>,
    /// Last-Modified as it came, and the instant it names.
    pub last_modified: Option<(HeaderValue, WallTime)>,
}

impl Validators {
    fn of(fields: &HeaderMap, now: WallTime) -> Self {
        let etag = EntityTag::of(fields).and_then(|_| fields.get(header::ETAG).cloned());
        let modified = DateField::read(fields, &header::LAST_MODIFIED, now).at();
        Self { etag, last_modified: fields.get(header::LAST_MODIFIED).cloned().zip(modified) }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
}

/// Directives that matter once a response is stale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StaleDirectives {
    /// `must-revalidate` or `proxy-revalidate`.
    pub must_revalidate: bool,
    /// `s-maxage`, which implies `proxy-revalidate`.
    pub s_maxage: bool,
    /// `stale-while-revalidate`
    pub while_revalidate: Option<std::time::Duration>,
    /// `stale-if-error`
    pub if_error: Option<std::time::Duration>,
}

impl StaleDirectives {
    fn of(directives: &ResponseDirectives, source: LifetimeSource) -> Self {
        let overridden = source == LifetimeSource::OverrideTtl;
        Self {
            must_revalidate: !overridden && (directives.must_revalidate || directives.proxy_revalidate),
            s_maxage: !overridden && directives.s_maxage.is_some(),
            while_revalidate: directives.stale_while_revalidate,
            if_error: directives.stale_if_error,
        }
    }
}

impl StoredHead {
    /// Prepares a response for the store. `freshness` comes from [`storable`](fn@crate::storable), which has refused
    /// whatever has no usable Vary; such a response selects as if it did not vary.
    pub fn new(request: &RequestHead, status: StatusCode, fields: HeaderMap, freshness: Freshness) -> Self {
        let directives = ResponseDirectives::read(&fields);
        let names = VaryNames::of(&fields);
        debug_assert!(names.is_some(), "a response with Vary: * is not storable");
        let prepared = prepare(&fields, &directives, freshness.received.wall);
        Self {
            status,
            validators: Validators::of(&prepared.map, freshness.received.wall),
            fields: Arc::new(prepared),
            freshness,
            vary: Selecting::new(names.unwrap_or_default(), &request.fields),
            stale: StaleDirectives::of(&directives, freshness.source),
        }
    }

    /// Bytes in memory, the struct itself included: an upper estimate for the weight of a stored response.
    pub fn memory_bytes(&self) -> usize {
        /// Name, value, hash and links of one entry, and its share of the map's index.
        const ENTRY: usize = 112;
        /// A further value of the same name.
        const EXTRA: usize = 72;
        /// Reference counts of the shared pieces.
        const SHARED: usize = 64;
        let map = &self.fields.map;
        let entries = map.capacity() * ENTRY + (map.len() - map.keys_len()) * EXTRA;
        let own_names: usize = map.keys().map(|name| name.as_str().len() + 16).sum();
        size_of::<Self>()
            + size_of::<PreparedFields>()
            + SHARED
            + entries
            + own_names
            + self.fields.http1.len()
            + self.vary.memory_bytes()
    }
}

/// Copies what is to be stored into one piece.
fn prepare(fields: &HeaderMap, directives: &ResponseDirectives, received: WallTime) -> PreparedFields {
    let is_kept = |name: &HeaderName| {
        *name != header::AGE
            && *name != header::CONTENT_LENGTH
            && *name != CACHE_STATUS
            && !is_left_out(directives, name)
    };
    let added_date = (!fields.contains_key(header::DATE)).then(|| date::format(received));
    let kept = || {
        let date = added_date.as_ref().map(|date| (&header::DATE, date));
        fields.iter().filter(|(name, _)| is_kept(name)).chain(date)
    };
    let length = kept().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    let mut http1 = Vec::with_capacity(length);
    let mut values: Vec<(HeaderName, Range<usize>)> = Vec::new();
    for (name, value) in kept() {
        http1.extend_from_slice(name.as_str().as_bytes());
        http1.extend_from_slice(b": ");
        let start = http1.len();
        http1.extend_from_slice(value.as_bytes());
        values.push((copied(name), start..http1.len()));
        http1.extend_from_slice(b"\r\n");
    }
    let http1 = Bytes::from(http1);
    let mut map = HeaderMap::with_capacity(values.len());
    for (name, range) in values {
        let value = HeaderValue::from_maybe_shared(http1.slice(range));
        map.append(name, value.expect("these bytes were a field value before"));
    }
    PreparedFields { map, http1 }
}

/// The same name without a share in the buffer that it was read from.
fn copied(name: &HeaderName) -> HeaderName {
    HeaderName::from_bytes(name.as_str().as_bytes()).unwrap_or_else(|_| name.clone())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::example::{DATE, fields, stored};
    use crate::policy::CachePolicy;

    fn lines(said: &[(&str, &str)]) -> String {
        let head = stored(&[], said, &CachePolicy::default());
        let mut again = Vec::new();
        larder_http::message::write_http1_fields(&head.fields.map, &mut again);
        assert_eq!(head.fields.http1, again, "the map and the lines say the same");
        String::from_utf8_lossy(&again).into_owned()
    }

    #[test]
    fn fields_are_kept_as_they_came_less_what_is_made_anew() {
        let said = [
            ("cache-control", "max-age=60"),
            ("date", DATE),
            ("x-a", "1"),
            ("age", "3"),
            ("content-length", "9"),
            ("cache-status", "other; hit"),
            ("x-a", "2"),
            ("content-range", "odd"),
        ];
        let kept = format!(
            "cache-control: max-age=60\r\ndate: {DATE}\r\nx-a: 1\r\nx-a: 2\r\ncontent-range: odd\r\n"
        );
        assert_eq!(lines(&said), kept);
    }

    #[test]
    fn a_missing_date_is_added() {
        let said = [("cache-control", "max-age=60")];
        assert_eq!(lines(&said), format!("cache-control: max-age=60\r\ndate: {DATE}\r\n"));
    }

    #[test]
    fn fields_named_by_a_qualified_directive_are_not_kept() {
        let cc = "max-age=60, private=\"x-p\", no-cache=\"set-cookie\"";
        let said = [("cache-control", cc), ("date", DATE), ("x-p", "1"), ("set-cookie", "sid=1")];
        assert_eq!(lines(&said), format!("cache-control: {cc}\r\ndate: {DATE}\r\n"));
    }

    proptest! {
        #[test]
        fn nothing_keeps_a_read_buffer_alive(values in proptest::collection::vec("[!-~]{1,30}", 1..20)) {
            let buffer = Bytes::from(values.concat());
            let mut said = fields(&[("cache-control", "max-age=60")]);
            let mut at = 0;
            for value in &values {
                let slice = buffer.slice(at..at + value.len());
                at += value.len();
                if let Ok(value) = HeaderValue::from_maybe_shared(slice) {
                    said.append("x-a", value);
                }
            }
            let request = crate::example::request("GET", &[]);
            let freshness = stored(&[], &[("cache-control", "max-age=60")], &CachePolicy::default()).freshness;
            let head = StoredHead::new(&request, StatusCode::OK, said, freshness);
            prop_assert!(buffer.is_unique());
            prop_assert!(head.memory_bytes() >= head.fields.http1.len() + size_of::<StoredHead>());
        }
    }
}
