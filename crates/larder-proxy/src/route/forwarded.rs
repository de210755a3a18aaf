//! Who really asks: X-Forwarded fields from trusted peers, and fields that nobody may supply.
//!
//! Applications read fields such as X-Forwarded-Host or X-Original-URL and put them into pages. They are not part of
//! the key, so a client that could set them could have its page stored for everybody. They are dropped before
//! anything looks at the request, and the forwarding fields are written anew for the origin.

use http::HeaderName;
use larder_http::authority::Authority;
use larder_http::message::{RequestHead, Scheme};

/// Dropped from every request, whoever sends it.
fn is_never_kept(name: &str) -> bool {
    matches!(
        name,
        "forwarded"
            | "x-original-url"
            | "x-rewrite-url"
            | "x-http-method-override"
            | "x-http-method"
            | "x-method-override"
            | "x-host"
            | "x-original-host"
            | "proxy"
    )
}

/// Dropped unless the peer is trusted.
fn is_for_trusted_peers(name: &str) -> bool {
    name.starts_with("x-forwarded") || matches!(name, "x-real-ip" | "x-client-ip" | "x-cluster-client-ip")
}

/// Removes fields that would poison what is stored. Free of allocation where there is none, as nearly always.
pub(crate) fn drop_unkeyed_fields(head: &mut RequestHead, trusted: bool) {
    let is_offender = |name: &HeaderName| {
        let name = name.as_str();
        is_never_kept(name) || (!trusted && is_for_trusted_peers(name))
    };
    while let Some(name) = head.fields.keys().find(|name| is_offender(name)).cloned() {
        head.fields.remove(name);
    }
}

/// Takes scheme and authority from a trusted peer's X-Forwarded-Proto and X-Forwarded-Host, the last hop's word being
/// the first member. What does not parse is not believed.
pub(crate) fn believe_forwarded(head: &mut RequestHead) {
    let first = |name: &str| {
        let value = head.fields.get(name)?.as_bytes();
        let member = value.split(|byte| *byte == b',').next()?.trim_ascii();
        Some(bytes::Bytes::copy_from_slice(member))
    };
    let scheme = first("x-forwarded-proto").and_then(|proto| {
        [Scheme::Http, Scheme::Https]
            .into_iter()
            .find(|scheme| proto.eq_ignore_ascii_case(scheme.as_str().as_bytes()))
    });
    let scheme_now = scheme.unwrap_or(head.scheme);
    let authority = first("x-forwarded-host").and_then(|host| Authority::parse(host, scheme_now).ok());
    if let Some(authority) = authority {
        head.authority = authority;
    } else if scheme.is_some() {
        // The default port depends on the scheme: the same name means another authority under another scheme.
        let text = bytes::Bytes::copy_from_slice(head.authority.as_str().as_bytes());
        if let Ok(authority) = Authority::parse(text, scheme_now) {
            head.authority = authority;
        }
    }
    head.scheme = scheme_now;
}
