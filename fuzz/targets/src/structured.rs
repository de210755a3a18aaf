//! Structured fields and their private relatives: targeted cache control, cache groups, surrogate control. Bounds
//! hold, one fault drops a structured field, and a restriction that is added counts.

use crate::{lines, named};
use http::{HeaderMap, HeaderName, HeaderValue};
use larder_http::fields::cache_groups::{
    CACHE_GROUP_INVALIDATION, CACHE_GROUPS, GROUPS_MAX, NAME_MAX, groups, invalidated,
};
use larder_http::fields::digits::DELTA_MAX;
use larder_http::fields::surrogate::{
    SURROGATE_CONTROL, X_ACCEL_EXPIRES, X_REVERSE_PROXY_TTL, accel_expires, reverse_proxy_ttl,
    surrogate_control,
};
use larder_http::fields::targeted;
use larder_http::time::WallTime;

const TARGETED: HeaderName = HeaderName::from_static("cdn-cache-control");
const NOW: WallTime = WallTime::from_secs(1_767_225_600);

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let lines = lines(input);
    targeted_fields(&named(&TARGETED, &lines));
    cache_groups(&lines);
    surrogates(&lines);
}

/// The same fields with one line more.
fn with(fields: &HeaderMap, name: &HeaderName, line: &'static str) -> HeaderMap {
    let mut fields = fields.clone();
    fields.append(name, HeaderValue::from_static(line));
    fields
}

fn targeted_fields(fields: &HeaderMap) {
    let said = targeted::read(fields, &TARGETED);
    assert!(targeted::read(&with(fields, &TARGETED, "&"), &TARGETED).is_none(), "a fault was overlooked");
    let Some(said) = said else { return };
    for lifetime in [said.max_age, said.s_maxage, said.stale_while_revalidate, said.stale_if_error] {
        assert!(lifetime.is_none_or(|lifetime| lifetime <= DELTA_MAX));
    }
    let restricted = targeted::read(&with(fields, &TARGETED, "no-store, private, max-age=0"), &TARGETED)
        .expect("valid with valid is valid");
    assert!(restricted.no_store && restricted.private.is_whole());
    assert!(restricted.max_age.is_some_and(|age| age.is_zero()), "the last of several counts");
    assert_eq!(restricted.s_maxage, said.s_maxage, "one key changes another");
    assert_eq!(restricted.no_cache, said.no_cache, "one key changes another");
    let lifted = targeted::read(&with(fields, &TARGETED, "no-store=?0, public;x"), &TARGETED)
        .expect("valid with valid is valid");
    // One that stands as a parameter somewhere is meant as well, and is not lifted.
    assert!(lifted.public && (said.no_store || !lifted.no_store));
}

fn cache_groups(lines: &[HeaderValue]) {
    let fields = named(&CACHE_GROUPS, lines);
    let names = groups(&fields);
    assert_eq!(names, invalidated(&named(&CACHE_GROUP_INVALIDATION, lines)));
    assert!(names.len() <= GROUPS_MAX);
    for (at, name) in names.iter().enumerate() {
        assert!(name.len() <= NAME_MAX && name.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        assert!(!names[..at].contains(name), "{name} twice");
    }
    let written: Vec<String> =
        names.iter().map(|name| format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))).collect();
    let written = HeaderValue::try_from(written.join(", ")).expect("printable");
    assert_eq!(groups(&named(&CACHE_GROUPS, [&written])), names, "what is written again says the same");
    assert!(groups(&with(&fields, &CACHE_GROUPS, "token")).is_empty(), "a fault was overlooked");
}

fn surrogates(lines: &[HeaderValue]) {
    let fields = named(&SURROGATE_CONTROL, lines);
    let said = surrogate_control(&fields);
    for lifetime in said.iter().flat_map(|said| [said.max_age, said.stale]).flatten() {
        assert!(lifetime <= DELTA_MAX);
    }
    assert!(said.is_none_or(|said| said.no_store || said.max_age.is_some()), "something was understood");
    assert!(said.is_none_or(|said| said.max_age.is_some() || said.stale.is_none()));
    let more = surrogate_control(&with(&fields, &SURROGATE_CONTROL, "no-store, max-age=0;larder"));
    assert!(more.is_some_and(|more| more.no_store && more.max_age.is_some_and(|age| age.is_zero())));
    let others = surrogate_control(&with(&fields, &SURROGATE_CONTROL, "no-store;abc, max-age=0;abc"));
    assert_eq!(others, said, "what is for others counts");

    let expires = accel_expires(&named(&X_ACCEL_EXPIRES, lines), NOW);
    let ttl = reverse_proxy_ttl(&named(&X_REVERSE_PROXY_TTL, lines));
    assert!(expires.is_none_or(|lifetime| lifetime <= DELTA_MAX));
    assert!(ttl.is_none_or(|lifetime| lifetime <= DELTA_MAX));
    assert!(ttl.is_none_or(|ttl| expires.is_some_and(|expires| expires <= ttl)), "both read plain seconds");
}
