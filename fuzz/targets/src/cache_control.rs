//! Cache-Control of responses and requests: the order of lines does not matter, what is written again says the same,
//! and one more line never makes a response less restricted.

use std::time::Duration;

use crate::{lines, named};
use http::{HeaderMap, HeaderValue, header};
use larder_http::fields::cache_control::{Argument, Directives, RequestDirectives, ResponseDirectives};
use larder_http::fields::digits::DELTA_MAX;

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let lines = lines(input);
    let cache_control = |lines: &[&HeaderValue]| named(&header::CACHE_CONTROL, lines.iter().copied());
    let forward: Vec<&HeaderValue> = lines.iter().collect();
    let backward: Vec<&HeaderValue> = lines.iter().rev().collect();
    let fields = cache_control(&forward);
    let said = ResponseDirectives::read(&fields);

    assert_eq!(essence(&said), essence(&ResponseDirectives::read(&cache_control(&backward))));
    for lifetime in lifetimes(&said).into_iter().flatten() {
        assert!(lifetime <= DELTA_MAX);
    }
    for name in said.no_cache.fields().iter().chain(said.private.fields()) {
        assert_ne!(name, header::VARY, "a response cannot be selected without its Vary");
    }
    if let Some((_, fewer)) = forward.split_last() {
        is_no_less_restricted(&said, &ResponseDirectives::read(&cache_control(fewer)));
    }
    let wishes = RequestDirectives::read(&fields);
    assert_eq!(wishes, RequestDirectives::read(&cache_control(&backward)), "the order of lines matters");

    for line in &lines {
        written_again_is_the_same(line.as_bytes());
    }
    assert_eq!(said, ResponseDirectives::read(&rewritten(&lines)), "blanks and empty members matter");
}

fn lifetimes(said: &ResponseDirectives) -> [Option<Duration>; 4] {
    [said.max_age, said.s_maxage, said.stale_while_revalidate, said.stale_if_error]
}

/// Everything but the order in which fields were named.
fn essence(said: &ResponseDirectives) -> impl PartialEq + std::fmt::Debug + use<> {
    let sorted = |names: &[http::HeaderName]| {
        let mut names: Vec<String> = names.iter().map(|name| name.as_str().to_owned()).collect();
        names.sort();
        names
    };
    (
        lifetimes(said),
        [said.no_cache.is_whole(), said.private.is_whole()],
        [sorted(said.no_cache.fields()), sorted(said.private.fields())],
        [said.no_store, said.public, said.must_understand, said.must_revalidate, said.proxy_revalidate],
    )
}

fn is_no_less_restricted(more: &ResponseDirectives, fewer: &ResponseDirectives) {
    for (more, fewer) in lifetimes(more).into_iter().zip(lifetimes(fewer)) {
        assert!(fewer.is_none_or(|fewer| more.is_some_and(|more| more <= fewer)), "a lifetime grew");
    }
    for (more, fewer) in [(&more.no_cache, &fewer.no_cache), (&more.private, &fewer.private)] {
        assert!(more.is_whole() || !fewer.is_whole());
        assert!(more.is_whole() || fewer.fields().iter().all(|name| more.fields().contains(name)));
    }
    assert!(more.no_store || !fewer.no_store);
    assert!(more.must_revalidate || !fewer.must_revalidate);
    assert!(more.proxy_revalidate || !fewer.proxy_revalidate);
}

/// One directive as it would be written, or something as malformed.
fn write(name: &[u8], argument: Argument<'_>) -> Vec<u8> {
    match argument {
        Argument::None => name.to_vec(),
        Argument::Token(token) => [name, b"=", token].concat(),
        Argument::Quoted(inside) => [name, b"=\"", inside, b"\""].concat(),
        Argument::Malformed(tail) => [name, tail].concat(),
    }
}

fn written_again_is_the_same(line: &[u8]) {
    let directives: Vec<_> = Directives::new(line).collect();
    assert!(directives.len() <= line.len().div_ceil(2), "more directives than there is room for");
    let written: Vec<Vec<u8>> = directives.iter().map(|(name, argument)| write(name, *argument)).collect();
    let joined = written.join(&b", "[..]);
    let again: Vec<_> = Directives::new(&joined).collect();
    assert_eq!(directives, again);
}

fn rewritten(lines: &[HeaderValue]) -> HeaderMap {
    let members = lines.iter().flat_map(|line| Directives::new(line.as_bytes()));
    let written = members.map(|(name, argument)| write(name, argument));
    let values: Vec<HeaderValue> =
        written.filter_map(|member| HeaderValue::from_bytes(&member).ok()).collect();
    named(&header::CACHE_CONTROL, &values)
}
