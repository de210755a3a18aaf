//! Fields that belong to one connection and never travel further (RFC 9110 7.6.1, 11.7; RFC 9113 8.2.2).
//!
//! In: the fields of a request or of an origin's response, framing already taken out. Out: end-to-end fields only,
//! and what the connection-level ones said. A message onwards is built from what is left, so nothing hop-by-hop can
//! be copied by accident.
//! A name listed in Connection is removed, with one exception: fields that decide whether a response may be shared,
//! or how its bytes are to be read. A sender may never list those, and believing it would turn `private` into public.

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue};

/// What the connection-level fields of a message said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionOptions {
    /// `Connection: close`.
    pub close: bool,
    /// `Connection: keep-alive`, in a line of nothing but ASCII: a damaged one keeps no connection open, since not
    /// everybody reads on behind it.
    pub keep_alive: bool,
    /// `Connection: upgrade`.
    pub upgrade: bool,
    /// `Upgrade` is exactly `websocket`, once.
    pub websocket: bool,
    /// `TE` lists `trailers`.
    pub te_trailers: bool,
}

/// Removes every connection-level field from `fields` and tells what they said. Framing (Content-Length,
/// Transfer-Encoding) and Host must have been taken out before by whoever needs them: Transfer-Encoding is removed
/// here, the other two are left alone even where Connection lists them.
pub fn strip(fields: &mut HeaderMap) -> ConnectionOptions {
    let mut options = ConnectionOptions::default();
    if !fields.keys().any(is_connection_level) {
        return options;
    }
    if fields.contains_key(header::UPGRADE) {
        let mut values = fields.get_all(header::UPGRADE).iter();
        let first = values.next().map(|v| v.as_bytes().trim_ascii());
        options.websocket =
            values.next().is_none() && first.is_some_and(|v| v.eq_ignore_ascii_case(b"websocket"));
    }
    options.te_trailers = tokens(fields, &header::TE).any(|t| t.eq_ignore_ascii_case(b"trailers"));
    let mut named = Vec::new();
    // As many as the head has room for: a name that were passed over would let its field through.
    let lines = fields.get_all(header::CONNECTION).into_iter();
    for (token, is_legible) in
        lines.flat_map(|line| members(line).map(|token| (token, line.as_bytes().is_ascii())))
    {
        if token.eq_ignore_ascii_case(b"close") {
            options.close = true;
        } else if token.eq_ignore_ascii_case(b"keep-alive") {
            options.keep_alive |= is_legible;
        } else if token.eq_ignore_ascii_case(b"upgrade") {
            options.upgrade = true;
        } else if let Ok(name) = HeaderName::from_bytes(token)
            && fields.contains_key(&name)
            && !is_needed_by_all(&name)
            && named.last() != Some(&name)
        {
            named.push(name);
        }
    }
    for name in named {
        fields.remove(name);
    }
    for name in CONNECTION_LEVEL {
        fields.remove(*name);
    }
    options
}

/// The fields that are removed from every message.
const CONNECTION_LEVEL: &[&str] = &[
    "connection",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Whether `name` belongs to one connection only.
pub fn is_connection_level(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection"
            | "http2-settings"
            | "keep-alive"
            | "proxy-authenticate"
            | "proxy-authentication-info"
            | "proxy-authorization"
            | "proxy-connection"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
    )
}

fn is_needed_by_all(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "age"
            | "cache-control"
            | "content-encoding"
            | "content-length"
            | "content-range"
            | "content-type"
            | "date"
            | "expires"
            | "host"
            | "pragma"
            | "set-cookie"
            | "vary"
    )
}

fn tokens<'a>(fields: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    fields.get_all(name).into_iter().flat_map(members)
}

fn members(line: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    line.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut fields = HeaderMap::new();
        for (name, value) in lines {
            fields.append(*name, HeaderValue::from_static(value));
        }
        fields
    }

    #[track_caller]
    fn check(lines: &[(&'static str, &'static str)], left: &[&str], expected: ConnectionOptions) {
        let mut fields = map(lines);
        assert_eq!(strip(&mut fields), expected, "{lines:?}");
        let names: Vec<_> = fields.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, left, "{lines:?}");
    }

    #[test]
    fn nothing_hop_by_hop_is_left() {
        let none = ConnectionOptions::default();
        check(&[("accept", "*/*")], &["accept"], none);
        for name in CONNECTION_LEVEL {
            assert!(is_connection_level(&HeaderName::from_static(name)));
            let mut fields =
                map(&[("accept", "*/*"), (name, "x-a"), ("accept-language", "en"), (name, "x-b")]);
            strip(&mut fields);
            assert_eq!(fields.len(), 2, "{name}");
        }
    }

    #[test]
    fn every_line_and_member_of_connection_counts() {
        check(
            &[
                ("connection", "x-a ,, close"),
                ("x-a", "1"),
                ("x-b", "2"),
                ("connection", "X-B,\tKeep-Alive"),
                ("x-c", "3"),
            ],
            &["x-c"],
            ConnectionOptions { close: true, keep_alive: true, ..Default::default() },
        );
    }

    #[test]
    fn a_damaged_connection_keeps_nothing_alive() {
        let mut fields = HeaderMap::new();
        let damaged = HeaderValue::from_bytes(b"\xff, keep-alive").expect("a value");
        fields.insert(header::CONNECTION, damaged);
        assert_eq!(strip(&mut fields.clone()), ConnectionOptions::default());
        fields.append(header::CONNECTION, HeaderValue::from_static("keep-alive"));
        assert_eq!(strip(&mut fields), ConnectionOptions { keep_alive: true, ..Default::default() });
        let damaged = HeaderValue::from_bytes(b"\xff, close").expect("a value");
        fields.insert(header::CONNECTION, damaged);
        assert_eq!(strip(&mut fields), ConnectionOptions { close: true, ..Default::default() });
    }

    #[test]
    fn no_name_hides_behind_many_others() {
        let mut fields = map(&[("x-a", "1"), ("x-199", "2")]);
        let mut many: String = (0..200).map(|n| format!("x-{n},")).collect();
        many.push_str("x-a");
        fields.insert(header::CONNECTION, HeaderValue::try_from(many).expect("a value"));
        strip(&mut fields);
        assert!(fields.is_empty());
    }

    #[test]
    fn a_sender_cannot_remove_what_all_recipients_need() {
        check(
            &[
                ("connection", "cache-control, vary, set-cookie, host, content-length"),
                ("cache-control", "private"),
            ],
            &["cache-control"],
            ConnectionOptions::default(),
        );
    }

    #[test]
    fn only_a_single_websocket_upgrade_is_one() {
        let upgrade = ConnectionOptions { upgrade: true, ..Default::default() };
        let websocket = ConnectionOptions { upgrade: true, websocket: true, ..Default::default() };
        check(&[("connection", "Upgrade"), ("upgrade", "WebSocket")], &[], websocket);
        check(&[("connection", "Upgrade"), ("upgrade", "h2c")], &[], upgrade);
        check(&[("connection", "Upgrade"), ("upgrade", "h2c, websocket")], &[], upgrade);
        check(&[("connection", "Upgrade"), ("upgrade", "websocket"), ("upgrade", "websocket")], &[], upgrade);
        check(&[("upgrade", "websocket")], &[], ConnectionOptions { websocket: true, ..Default::default() });
    }
}
