//! What the origin is asked, and what of its answer goes on.
//!
//! In: the request as larder understood it. Out: a new request built from typed parts: forwarding fields written anew,
//! our Via, what larder can put together, nothing that belongs to the client's connection. And back: the origin's fields completed as a proxy has to
//! (Date, Via), ready to be judged, stored or passed on.

mod affinity;

use std::ops::Range;

use http::header::{CACHE_CONTROL, DATE, HOST, IF_RANGE, PRAGMA, RANGE, VIA};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version};
use larder_cache::Part;
use larder_http::body::Body;
use larder_http::fields::date;
use larder_http::fields::surrogate::SURROGATE_CAPABILITY;
use larder_http::message::{Peer, RequestHead};
use larder_http::time::Now;
use larder_http::trailers::Wish;
use larder_origin::{Affinity, InterimSink, OriginRequest};

pub(crate) use affinity::hash;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The name that larder goes by in Via and Cache-Status.
const PSEUDONYM: &str = "larder";

/// What larder can do for an origin: heed Surrogate-Control, and put pages together from templates in either language. It is the
/// same for every request, so that an answer that varies by it is the same for all.
const CAPABILITY: HeaderValue = HeaderValue::from_static(r#"larder="Surrogate/1.0 ESI/1.0 SSI/1.0""#);

/// How often a request may have passed a larder before it is taken for a loop. Chains of caches are a few long.
const PASSES_MAX: usize = 8;

/// What the origin learns of the client.
#[derive(Clone, Debug)]
pub(crate) struct ClientHop {
    /// Its connection.
    pub(crate) peer: Peer,
    /// Whether it is for its sake that the origin is asked. Nobody's connection is told of otherwise.
    pub(crate) is_waiting: bool,
    /// The client is a proxy that is believed: its list of addresses is continued.
    pub(crate) trusted: bool,
    /// It takes trailers.
    pub(crate) takes_trailers: bool,
    /// Whether the origin is told of the proxies on the way.
    pub(crate) via: bool,
    /// Whether it is told that its templates become pages here.
    pub(crate) assembles: bool,
}

/// The request of a flight. Under a mark (`is_marked`) the client's conditions and range are the origin's to answer. A HEAD may
/// be sent `as_get`, whose answer both can use.
pub(crate) fn for_flight(head: &RequestHead, is_marked: bool, as_get: bool) -> RequestHead {
    let mut request = if is_marked { head.clone() } else { for_everyone(head) };
    if as_get {
        request.method = Method::GET;
    }
    request
}

/// The request for a fetch that many may share: without conditions, which are answered from what arrives, and without
/// a Range that asks for everything. Any other Range is passed on unchanged.
fn for_everyone(head: &RequestHead) -> RequestHead {
    let mut shared = head.clone();
    larder_cache::drop_conditionals(&mut shared.fields);
    // HEAD knows no ranges, and several lines contradict each other (RFC 9110 14.2).
    let lines = shared.fields.get_all(RANGE).iter().count();
    if head.method == Method::HEAD || lines > 1 {
        drop_range(&mut shared.fields);
    }
    shared
}

/// The request for a refresh that no client waits for: for all of what is stored, whoever caused it, and with nobody's
/// wishes. A part is refreshed as the part that it is.
pub(crate) fn for_refresh(head: &RequestHead, part: Option<&Part>) -> RequestHead {
    let mut shared = for_everyone(head);
    if shared.method == Method::HEAD {
        shared.method = Method::GET;
    }
    drop_range(&mut shared.fields);
    shared.fields.remove(CACHE_CONTROL);
    shared.fields.remove(PRAGMA);
    if let Some(Range { start, end }) = part.map(|part| part.range.clone())
        && let Ok(range) = HeaderValue::try_from(format!("bytes={start}-{}", end.saturating_sub(1)))
    {
        shared.fields.insert(RANGE, range);
    }
    shared
}

/// The same request for all of what it wants a part of.
pub(crate) fn without_range(head: &RequestHead) -> RequestHead {
    let mut whole = head.clone();
    drop_range(&mut whole.fields);
    whole
}

fn drop_range(fields: &mut HeaderMap) {
    fields.remove(RANGE);
    fields.remove(IF_RANGE);
}

/// Builds the request.
pub(crate) fn outgoing(
    head: &RequestHead,
    body: Body,
    websocket: bool,
    (hop, affinity): (ClientHop, Affinity),
    interims: Option<InterimSink>,
) -> OriginRequest {
    let mut fields = head.fields.clone();
    fields.remove(HOST);
    forward_client(&mut fields, head, &hop);
    match hop.via {
        true => append_via(&mut fields, head.version),
        false => drop(fields.remove(VIA)),
    }
    if hop.assembles {
        fields.insert(SURROGATE_CAPABILITY, CAPABILITY);
    }
    OriginRequest {
        method: head.method.clone(),
        target: head.target.clone(),
        authority: head.authority.clone(),
        fields,
        body,
        trailers: Wish { takes: hop.takes_trailers, announced: None },
        websocket,
        interims,
        affinity,
        peer: hop.is_waiting.then_some(hop.peer),
        progress: None,
        received: None,
    }
}

fn forward_client(fields: &mut HeaderMap, head: &RequestHead, hop: &ClientHop) {
    let client = hop.peer.remote.ip().to_canonical().to_string();
    let before: Vec<&[u8]> = fields.get_all(X_FORWARDED_FOR).iter().map(HeaderValue::as_bytes).collect();
    let list = if hop.trusted && !before.is_empty() {
        [before.join(&b", "[..]).as_slice(), client.as_bytes()].join(&b", "[..])
    } else {
        client.into_bytes()
    };
    if let Ok(list) = HeaderValue::from_maybe_shared(bytes::Bytes::from(list)) {
        fields.insert(X_FORWARDED_FOR, list);
    }
    fields.insert(X_FORWARDED_PROTO, HeaderValue::from_static(head.scheme.as_str()));
    if let Ok(host) = HeaderValue::from_str(head.authority.as_str()) {
        fields.insert(X_FORWARDED_HOST, host);
    }
}

/// Adds this hop to Via; `received` is the version of the message that came in (RFC 9110 7.6.3).
fn append_via(fields: &mut HeaderMap, received: Version) {
    let via = match received {
        Version::HTTP_10 => "1.0 larder",
        Version::HTTP_2 => "2 larder",
        _ => "1.1 larder",
    };
    fields.append(VIA, HeaderValue::from_static(via));
}

/// Whether a request has come through larders too often to be going anywhere.
pub(crate) fn is_looping(fields: &HeaderMap) -> bool {
    let members =
        fields.get_all(VIA).iter().filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
    members.filter(|member| member.split_whitespace().nth(1) == Some(PSEUDONYM)).count() >= PASSES_MAX
}

/// Completes the fields of a final response: Date where the origin has no clock (RFC 9110 6.6.1), and Via.
pub(crate) fn complete(fields: &mut HeaderMap, now: Now) {
    if !fields.contains_key(DATE) {
        fields.insert(DATE, date::format(now.wall));
    }
    append_via(fields, Version::HTTP_11);
}

/// Whether a response varies on a field that is written here for each client and so is not there to be compared when a
/// request comes in: no stored response can be told to be for it.
pub(crate) fn varies_on_ours(fields: &HeaderMap) -> bool {
    let names =
        fields.get_all(http::header::VARY).iter().flat_map(|line| line.as_bytes().split(|b| *b == b','));
    let ours = [X_FORWARDED_FOR, VIA];
    names
        .map(<[u8]>::trim_ascii)
        .any(|name| ours.iter().any(|own| name.eq_ignore_ascii_case(own.as_str().as_bytes())))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn sent(head: &RequestHead, trusted: bool) -> HeaderMap {
        sent_via(head, trusted, true)
    }

    fn sent_via(head: &RequestHead, trusted: bool, via: bool) -> HeaderMap {
        sent_by(head, ClientHop { trusted, via, ..hop() })
    }

    fn hop() -> ClientHop {
        let peer = Peer::clear("192.0.2.7:1".parse().unwrap(), "192.0.2.8:80".parse().unwrap());
        ClientHop {
            peer,
            is_waiting: true,
            trusted: false,
            takes_trailers: false,
            via: true,
            assembles: false,
        }
    }

    fn sent_by(head: &RequestHead, hop: ClientHop) -> HeaderMap {
        outgoing(head, Body::Empty, false, (hop, Affinity::default()), None).fields
    }

    #[test]
    fn forwarding_fields_are_written_anew_and_continued_for_trusted_peers() {
        let mut head = crate::testing::request("/");
        head.fields.append(X_FORWARDED_FOR, HeaderValue::from_static("198.51.100.1"));
        head.fields.append(X_FORWARDED_FOR, HeaderValue::from_static("198.51.100.2"));
        head.fields.insert(X_FORWARDED_PROTO, HeaderValue::from_static("gopher"));
        let fields = sent(&head, false);
        assert_eq!(fields.get_all(X_FORWARDED_FOR).iter().collect::<Vec<_>>(), ["192.0.2.7"]);
        assert_eq!(fields[X_FORWARDED_PROTO], "http");
        assert_eq!(fields[X_FORWARDED_HOST], "example.com");
        let fields = sent(&head, true);
        assert_eq!(
            fields.get_all(X_FORWARDED_FOR).iter().collect::<Vec<_>>(),
            ["198.51.100.1, 198.51.100.2, 192.0.2.7"]
        );
    }

    #[test]
    fn via_names_the_proxies_on_the_way_or_is_left_out() {
        let mut head = crate::testing::request("/");
        head.fields.insert(VIA, HeaderValue::from_static("1.1 front"));
        let lines = |fields: HeaderMap| {
            let lines = fields.get_all(VIA).iter().map(|line| line.to_str().unwrap().to_owned());
            lines.collect::<Vec<_>>()
        };
        assert_eq!(lines(sent_via(&head, false, true)), ["1.1 front", "1.1 larder"]);
        assert!(lines(sent_via(&head, false, false)).is_empty());
    }

    #[test]
    fn the_origin_is_told_in_one_line_what_larder_can_put_together() {
        let mut head = crate::testing::request("/");
        let told = |head: &RequestHead, assembles| {
            let fields = sent_by(head, ClientHop { assembles, ..hop() });
            let lines = fields.get_all("surrogate-capability").iter().cloned();
            lines.collect::<Vec<_>>()
        };
        assert_eq!(told(&head, true), [r#"larder="Surrogate/1.0 ESI/1.0 SSI/1.0""#]);
        assert!(told(&head, false).is_empty());
        // A rule may set it for itself.
        head.fields.insert("surrogate-capability", HeaderValue::from_static("other=\"ESI/1.0\""));
        assert_eq!(told(&head, true), [CAPABILITY]);
        assert_eq!(told(&head, false), ["other=\"ESI/1.0\""]);
    }

    #[test]
    fn a_shared_fetch_has_no_conditions_and_no_range_of_everything() {
        for (name, value, kept) in [
            ("if-none-match", "\"a\"", false),
            ("if-modified-since", "Sat, 21 Nov 2026 00:00:00 GMT", false),
            ("range", "bytes=0-", false),
            ("range", "bytes=1-", true),
            ("accept", "*/*", true),
        ] {
            let mut head = crate::testing::request("/");
            head.fields.insert(name, HeaderValue::from_static(value));
            assert_eq!(for_everyone(&head).fields.contains_key(name), kept, "{name}: {value}");
        }
    }

    #[test]
    fn what_varies_on_the_clients_address_is_told() {
        for (vary, ours) in
            [("accept", false), ("x-forwarded-host", false), ("accept, X-Forwarded-For", true), ("Via", true)]
        {
            let fields = HeaderMap::from_iter([(http::header::VARY, HeaderValue::from_static(vary))]);
            assert_eq!(varies_on_ours(&fields), ours, "{vary}");
        }
    }

    #[test]
    fn a_request_that_came_by_too_often_is_a_loop() {
        let mut fields = HeaderMap::new();
        for _ in 0..PASSES_MAX - 1 {
            append_via(&mut fields, Version::HTTP_11);
        }
        fields.append(VIA, HeaderValue::from_static("1.1 other, 1.1 larder.example"));
        assert!(!is_looping(&fields));
        fields.append(VIA, HeaderValue::from_static("1.1 other, 1.1 larder"));
        assert!(is_looping(&fields));
    }
}
