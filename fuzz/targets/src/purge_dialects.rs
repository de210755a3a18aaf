//! Requests for purges, in any words: none concerns a response of a host that its sender may not purge, and none is let in without the
//! token.
//!
//! The first line of an input is method and target, the others are fields. Responses of other hosts stand for all that others may have:
//! they carry every word of the request as a tag, at the targets that the request may mean.

use crate::allocated::at_most;
use http::{HeaderMap, HeaderName, HeaderValue};
use larder_cache::purge::Scope;
use larder_http::authority::Authority;
use larder_http::target::Target;
use larder_proxy::fuzzing::{PurgeHead, authority};

/// For reading, compiling and matching as many expressions as there may be.
const ALLOCATED_MAX: usize = 1 << 30;
const LINES_MAX: usize = 24;
/// Words of a request that are tried as hosts.
const WORDS_MAX: usize = 16;

const TOKEN: &str = "5f2c81d09b7ae346";
/// Whose hosts are let in, and whose are not.
const SITES: [(&str, bool); 4] =
    [("tenant.test", true), ("*.tenant.example", true), ("www.tenant.example", false), ("other.test", false)];
const OF_OTHERS: [&str; 4] = ["other.test", "www.tenant.example", "tenant.example", "other.test:8080"];

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let mut lines = input.split(|byte| *byte == b'\n').take(LINES_MAX);
    let first = std::str::from_utf8(lines.next().unwrap_or_default());
    let Ok(Some((method, target))) = first.map(|first| first.split_once(' ')) else { return };
    let mut fields = HeaderMap::new();
    for line in lines {
        let Some(at) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = line.split_at(at);
        let name = HeaderName::from_bytes(name);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value[1..].trim_ascii())) {
            fields.append(name, value);
        }
    }
    let host = fields.get("host").map_or(&b"tenant.test"[..], HeaderValue::as_bytes);
    let Some(own) = authority(host) else { return };
    let head = PurgeHead { method, target, fields: &fields, authority: &own, location: "/purge" };
    let shows_it = fields.values().any(|value| value.as_bytes().ends_with(TOKEN.as_bytes()));
    assert!(shows_it || !head.is_let_in(TOKEN), "let in without the token");
    at_most(ALLOCATED_MAX, || reaches_nobody_else(&head));
}

fn reaches_nobody_else(head: &PurgeHead<'_>) {
    let scope = Scope::of_sites(SITES, false);
    let Some(purged) = head.purged(&scope) else { return };
    for other in others(head, &scope) {
        for target in targets(head) {
            let is_left = purged.leaves(&other, &target, carrying_every_word(head.fields));
            assert!(is_left, "{}{} is gone", other.as_str(), target.as_str());
        }
    }
}

/// Hosts that are not in the scope: those that the request names, and a few more.
fn others(head: &PurgeHead<'_>, scope: &Scope) -> Vec<Authority> {
    let values = head.fields.values().map(HeaderValue::as_bytes);
    let is_between = |byte: &u8| !byte.is_ascii_alphanumeric() && !matches!(byte, b'.' | b'-' | b':');
    let words = values.flat_map(|value| value.split(is_between)).take(WORDS_MAX);
    let named = words.filter_map(authority).chain([head.authority.clone()]);
    let known = OF_OTHERS.iter().filter_map(|host| authority(host.as_bytes()));
    named.chain(known).filter(|other| !scope.holds(other.host())).collect()
}

fn targets(head: &PurgeHead<'_>) -> Vec<Target> {
    let below = head.target.strip_prefix(head.location).unwrap_or(head.target);
    let texts = ["/", "/a/b?c", head.target, below];
    texts.into_iter().filter_map(|text| Target::parse(text.as_bytes().to_vec().into()).ok()).collect()
}

fn carrying_every_word(fields: &HeaderMap) -> HeaderMap {
    let mut of_response = HeaderMap::new();
    of_response.insert("content-type", HeaderValue::from_static("text/html"));
    for value in fields.values() {
        of_response.append("surrogate-key", value.clone());
    }
    of_response
}
