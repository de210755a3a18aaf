//! A message as a value: judged like an answer of its Date, and written from a stored response.
//!
//! In: a value and a request. Out: what larder would have stored, had the origin given this answer to this request. Its type, its
//! lifetime, its tags travel with it, and so does what forbids storing. What a client wishes of caches does not count: the value is no
//! answer to that client alone. A message knows the fields that it varies by, and not their values. So it may vary by what the name of
//! the value holds, and by Accept-Encoding, whose value its coding tells.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{ACCEPT_ENCODING, AGE, CACHE_CONTROL};
use http::{Method, StatusCode};
use larder_cache::storable::{Storability, storable};
use larder_cache::{CachePolicy, Codings, ExchangeTimes, NotStorable, StoredHead};
use larder_http::fields::age;
use larder_http::message::{RequestHead, write_http1_fields};
use larder_http::time::Now;
use larder_remote::Unfit;

use super::message::{Message, read};
use larder_tier::template::KeyTemplate;

pub(super) fn response(
    key: &KeyTemplate,
    value: &Bytes,
    request: &RequestHead,
    policy: &CachePolicy,
    (now, most): (Now, Duration),
) -> Result<(StoredHead, Bytes), Unfit> {
    let Message { status, fields, body } = read(value).ok_or(Unfit::Malformed)?;
    if status == StatusCode::PARTIAL_CONTENT {
        return Err(Unfit::Malformed);
    }
    let mut asked = RequestHead { method: Method::GET, ..request.clone() };
    asked.fields.remove(CACHE_CONTROL);
    let times = ExchangeTimes { request: now, response: now };
    let freshness = match storable(&asked, status, &fields, times, policy) {
        Storability::Storable(freshness) => freshness.of_copy(most),
        // Another request may use it.
        Storability::NotStorable(NotStorable::Authorization | NotStorable::SessionCookie) => {
            return Err(Unfit::OtherVariant);
        }
        Storability::NotStorable(_) => return Err(Unfit::Malformed),
    };
    let head = StoredHead::new(&asked, status, fields, freshness, policy);
    let codings = Codings::of(&head.fields.map);
    let is_for_it = |name: &http::HeaderName| match *name == ACCEPT_ENCODING {
        true => codings.are_taken_by(&request.fields),
        false => key.fields().any(|keyed| keyed == name),
    };
    match head.vary.names().names().iter().all(is_for_it) {
        true => Ok((head, body)),
        false => Err(Unfit::OtherVariant),
    }
}

/// The message of a stored response, with the age that it has now.
pub(super) fn value(head: &StoredHead, chunks: &[Bytes], now: Now) -> Bytes {
    let mut fields = head.all_fields();
    let its_age = head.freshness.age(now);
    if its_age >= Duration::from_secs(1) {
        fields.insert(AGE, age::format(its_age));
    }
    let mut lines = Vec::new();
    write_http1_fields(&fields, &mut lines);
    let length: usize = chunks.iter().map(Bytes::len).sum();
    let mut value = BytesMut::with_capacity(BEGINNING.len() + lines.len() + 2 + length);
    for piece in [BEGINNING, &lines, b"\r\n"] {
        value.put_slice(piece);
    }
    chunks.iter().for_each(|chunk| value.put_slice(chunk));
    value.freeze()
}

const BEGINNING: &[u8] = b"HTTP/1.1 200 OK\r\n";
