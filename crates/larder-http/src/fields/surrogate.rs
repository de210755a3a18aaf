//! What origins tell a cache in front of them in private fields: Surrogate-Control (the Edge Architecture note of the
//! W3C), X-Accel-Expires (nginx) and X-Reverse-Proxy-TTL (FOSHttpCache). Surrogate-Capability of the same note tells origins
//! what such a cache can do.
//!
//! In: all lines of such a field. Out: a lifetime, or a statement that nothing usable was said. A lifetime in
//! Surrogate-Control that is not one is zero, and the shortest of several wins, as in Cache-Control; the two others
//! hold a single number, and one that cannot be read is as if it were absent.
//! Deliberately absent: which of them comes first, what it replaces, and that they are not passed on: larder-cache's.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::cache_control::{is_tchar, member_end};
use super::digits::{DELTA_MAX, delta_seconds, number};
use crate::template::Language;
use crate::time::WallTime;

/// Directives for surrogates, origin-side caches.
pub const SURROGATE_CONTROL: HeaderName = HeaderName::from_static("surrogate-control");
/// In requests: what the surrogate that sends it can do.
pub const SURROGATE_CAPABILITY: HeaderName = HeaderName::from_static("surrogate-capability");
/// A lifetime in seconds, or the time of expiry after `@`.
pub const X_ACCEL_EXPIRES: HeaderName = HeaderName::from_static("x-accel-expires");
/// A lifetime in seconds.
pub const X_REVERSE_PROXY_TTL: HeaderName = HeaderName::from_static("x-reverse-proxy-ttl");

/// The name under which a directive may be addressed to larder: `max-age=60;larder`.
const TARGET: &[u8] = b"larder";

/// What Surrogate-Control says to larder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SurrogateControl {
    /// `max-age=60`; zero where it is not a lifetime.
    pub max_age: Option<Duration>,
    /// How long after that a stale response may still be used: the 30 of `max-age=60+30`.
    pub stale: Option<Duration>,
    /// `no-store`
    pub no_store: bool,
}

/// Reads all Surrogate-Control lines; `None` where nothing in them is understood and addressed to larder. A directive
/// with larder as its target replaces the one for everybody; one with other targets only is ignored.
pub fn surrogate_control(fields: &HeaderMap) -> Option<SurrogateControl> {
    let (mut everybody, mut larder) = (Lifetimes::default(), Lifetimes::default());
    let mut no_store = false;
    for (name, argument, targets) in directives(fields) {
        let lifetimes = match targets {
            Targets::Everybody => &mut everybody,
            Targets::Larder => &mut larder,
            Targets::Others => continue,
        };
        if name.eq_ignore_ascii_case(b"max-age") {
            lifetimes.add(argument);
        } else if name.eq_ignore_ascii_case(b"no-store") {
            no_store = true;
        }
    }
    let said = larder.shortest.or(everybody.shortest);
    (no_store || said.is_some()).then(|| SurrogateControl {
        max_age: said.map(|(max_age, _)| max_age),
        stale: said.and_then(|(_, stale)| stale),
        no_store,
    })
}

/// The language that `content` names: `content="ESI/1.0"` asks a surrogate to process the response. Its value is a list of
/// tokens, separated by blanks; others than those of [`Language`] are ignored, and of both the answer is ESI. A directive
/// with larder as its target replaces the one for everybody.
pub fn content(fields: &HeaderMap) -> Option<Language> {
    let (mut everybody, mut larder) = (None, None);
    for (_, argument, targets) in
        directives(fields).filter(|(name, ..)| name.eq_ignore_ascii_case(b"content"))
    {
        let said = match targets {
            Targets::Everybody => &mut everybody,
            Targets::Larder => &mut larder,
            Targets::Others => continue,
        };
        let named = language(argument);
        *said = Some(said.unwrap_or(named).max(named));
    }
    match larder.or(everybody)? {
        Named::Esi => Some(Language::Esi),
        Named::Ssi => Some(Language::Ssi),
        Named::Neither => None,
    }
}

/// Which language a value of `content` names; the later one is what counts of several.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    Neither,
    Ssi,
    Esi,
}

fn language(argument: &[u8]) -> Named {
    let value = match argument {
        [b'=', b'"', inside @ .., b'"'] | [b'=', inside @ ..] => inside,
        _ => return Named::Neither,
    };
    let names = |language: Language| {
        value.split(u8::is_ascii_whitespace).any(|token| token == language.token().as_bytes())
    };
    if names(Language::Esi) {
        Named::Esi
    } else if names(Language::Ssi) {
        Named::Ssi
    } else {
        Named::Neither
    }
}

/// All directives of all lines: name, what follows it, and to whom it is addressed.
fn directives(fields: &HeaderMap) -> impl Iterator<Item = (&[u8], &[u8], Targets)> {
    fields.get_all(SURROGATE_CONTROL).iter().flat_map(|line| {
        let mut rest = line.as_bytes();
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (member, after) = rest.split_at(member_end(rest));
            rest = after.get(1..).unwrap_or_default();
            let (directive, targets) = split_targets(member);
            let name_end = directive.iter().position(|b| !is_tchar(*b)).unwrap_or(directive.len());
            let (name, argument) = directive.split_at(name_end);
            Some((name, argument, targets))
        })
    })
}

/// The shortest of the lifetimes said, with what comes after it.
#[derive(Default)]
struct Lifetimes {
    shortest: Option<(Duration, Option<Duration>)>,
}

impl Lifetimes {
    /// Takes what follows the name `max-age`.
    fn add(&mut self, argument: &[u8]) {
        let said = lifetime(argument).unwrap_or_default();
        self.shortest = Some(self.shortest.map_or(said, |before| before.min(said)));
    }
}

/// `=60`, `=60+30`, `="60"`.
fn lifetime(argument: &[u8]) -> Option<(Duration, Option<Duration>)> {
    let value = match argument {
        [b'=', b'"', inside @ .., b'"'] | [b'=', inside @ ..] => inside,
        _ => return None,
    };
    match value.iter().position(|b| *b == b'+') {
        None => Some((delta_seconds(value)?, None)),
        Some(plus) => {
            Some((delta_seconds(value.get(..plus)?)?, Some(delta_seconds(value.get(plus + 1..)?)?)))
        }
    }
}

/// To whom a directive is addressed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Targets {
    Everybody,
    Larder,
    Others,
}

/// Parts a member into its directive and whom its parameters name.
fn split_targets(member: &[u8]) -> (&[u8], Targets) {
    let (mut quoted, mut escaped) = (false, false);
    let mut parts = member.split(move |byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b';' => return !quoted,
            _ => {}
        }
        false
    });
    let directive = parts.next().unwrap_or_default().trim_ascii();
    let mut targets = Targets::Everybody;
    for part in parts.map(<[u8]>::trim_ascii).filter(|part| !part.is_empty()) {
        if part.eq_ignore_ascii_case(TARGET) {
            return (directive, Targets::Larder);
        }
        targets = Targets::Others;
    }
    (directive, targets)
}

/// The lifetime that X-Accel-Expires gives at `now`, at most 2^31 s; zero where `@` names a time that has passed.
/// `None` where the field is absent, `off` or not usable. The shortest of several lines wins.
pub fn accel_expires(fields: &HeaderMap, now: WallTime) -> Option<Duration> {
    shortest_line(fields, &X_ACCEL_EXPIRES, |value| match value {
        [b'@', instant @ ..] => Some(WallTime::from_secs(number(instant)?).since(now).min(DELTA_MAX)),
        _ => delta_seconds(value),
    })
}

/// The lifetime that X-Reverse-Proxy-TTL gives, at most 2^31 s; `None` where the field is absent or not usable. The
/// shortest of several lines wins.
pub fn reverse_proxy_ttl(fields: &HeaderMap) -> Option<Duration> {
    shortest_line(fields, &X_REVERSE_PROXY_TTL, delta_seconds)
}

fn shortest_line(
    fields: &HeaderMap,
    name: &HeaderName,
    read: impl Fn(&[u8]) -> Option<Duration>,
) -> Option<Duration> {
    fields.get_all(name).iter().map(HeaderValue::as_bytes).filter_map(|line| read(line.trim_ascii())).min()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn fields(name: HeaderName, lines: &[&str]) -> HeaderMap {
        let mut fields = HeaderMap::new();
        for line in lines {
            fields.append(&name, HeaderValue::from_str(line).unwrap());
        }
        fields
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn check(lines: &[&str], expected: Option<SurrogateControl>) {
        assert_eq!(surrogate_control(&fields(SURROGATE_CONTROL, lines)), expected, "{lines:?}");
    }

    fn lifetime_of(max_age: u64, stale: Option<u64>) -> Option<SurrogateControl> {
        Some(SurrogateControl { max_age: Some(seconds(max_age)), stale: stale.map(seconds), no_store: false })
    }

    const NO_STORE: Option<SurrogateControl> =
        Some(SurrogateControl { max_age: None, stale: None, no_store: true });

    #[test]
    fn lifetimes_and_no_store_are_read_and_unknown_directives_ignored() {
        check(&[], None);
        check(&[""], None);
        check(&["content=\"ESI/1.0\""], None);
        check(&["no-store-remote, extension=\"no-store, max-age=5\""], None);
        check(&["max-age=60"], lifetime_of(60, None));
        check(&["Max-Age=60"], lifetime_of(60, None));
        check(&["max-age=\"60\""], lifetime_of(60, None));
        check(&["max-age=60+30"], lifetime_of(60, Some(30)));
        check(&["content=\"ESI/1.0\", max-age=60"], lifetime_of(60, None));
        check(&["content=\"ESI/1.0\"", "max-age=60"], lifetime_of(60, None));
        check(&["max-age=99999999999+99999999999"], lifetime_of(1 << 31, Some(1 << 31)));
        check(&["NO-STORE"], NO_STORE);
        check(&["no-store, content=\"ESI/1.0\""], NO_STORE);
        let both = SurrogateControl { max_age: Some(seconds(60)), stale: None, no_store: true };
        check(&["max-age=60, no-store"], Some(both));
    }

    #[test]
    fn a_lifetime_that_is_not_one_is_zero_and_the_shortest_wins() {
        for line in
            ["max-age", "max-age=", "max-age=abc", "max-age=-1", "max-age=60+", "max-age=+30", "max-age=\""]
        {
            check(&[line], lifetime_of(0, None));
        }
        check(&["max-age=60, max-age=5+1"], lifetime_of(5, Some(1)));
        check(&["max-age=60", "max-age=5"], lifetime_of(5, None));
        check(&["max-age=60+9, max-age=60"], lifetime_of(60, None));
    }

    #[test]
    fn directives_for_larder_replace_those_for_everybody_and_those_for_others_are_ignored() {
        check(&["max-age=60;larder"], lifetime_of(60, None));
        check(&["max-age=60; Larder"], lifetime_of(60, None));
        check(&["max-age=60;abc;larder"], lifetime_of(60, None));
        check(&["max-age=5, max-age=60+1;larder"], lifetime_of(60, Some(1)));
        check(&["max-age=60;larder", "max-age=5"], lifetime_of(60, None));
        check(&["max-age=5;abc, max-age=60"], lifetime_of(60, None));
        check(&["max-age=60;abc"], None);
        check(&["no-store;abc, no-store;larders, no-store;larder=1, no-store;\"larder\""], None);
        check(&["no-store;larder"], NO_STORE);
        check(&["no-store;"], NO_STORE);
        check(&["no-store;x=\"\\\";larder\""], None);
        check(&["extension=\";larder\", max-age=\"6;larder\""], lifetime_of(0, None));
    }

    #[test]
    fn content_names_one_language_of_those_that_larder_knows() {
        use Language::{Esi, Ssi};
        for (lines, expected) in [
            (&[][..], None),
            (&["max-age=60"], None),
            (&["content=\"ESI/1.0\""], Some(Esi)),
            (&["content=\"SSI/1.0\""], Some(Ssi)),
            (&["CONTENT=\"ESI/1.0\", max-age=60"], Some(Esi)),
            (&["no-store, content=\"ESI/1.0\""], Some(Esi)),
            (&["content=ESI/1.0"], Some(Esi)),
            (&["content=\"X/2.0  SSI/1.0\tY\""], Some(Ssi)),
            (&["content=\"SSI/1.0 ESI/1.0\""], Some(Esi)),
            (&["content=\"ESI/1.0\", content=\"SSI/1.0\""], Some(Esi)),
            (&["content=\"SSI/1.0\"", "content=\"ESI/1.0\""], Some(Esi)),
            (&["content=\"ESI/1.1\""], None),
            (&["content=\"ESI/1.0+\""], None),
            (&["content=\"esi/1.0\""], None),
            (&["content=\"ESI\""], None),
            (&["content"], None),
            (&["content="], None),
            (&["x=\"content=ESI/1.0\""], None),
            (&["content=\"ESI/1.0\";larder"], Some(Esi)),
            (&["content=\"ESI/1.0\";other"], None),
            (&["content=\"ESI/1.0\", content=\"SSI/1.0\";larder"], Some(Ssi)),
            (&["content=\"X/1.0\";larder, content=\"ESI/1.0\""], None),
        ] {
            assert_eq!(content(&fields(SURROGATE_CONTROL, lines)), expected, "{lines:?}");
        }
    }

    const NOW: WallTime = WallTime::from_secs(1_760_000_000);

    #[test]
    fn accel_expires_is_a_lifetime_or_an_instant() {
        for (lines, expected) in [
            (&[][..], None),
            (&["60"], Some(60)),
            (&["0"], Some(0)),
            (&["@1760000060"], Some(60)),
            (&["@1760000000"], Some(0)),
            (&["@0"], Some(0)),
            (&["@99999999999999999999"], Some(1 << 31)),
            (&["99999999999999999999"], Some(1 << 31)),
            (&["60", "5"], Some(5)),
            (&["60", "junk"], Some(60)),
            (&["off"], None),
            (&[""], None),
            (&["@"], None),
            (&["@-1"], None),
            (&["-1"], None),
            (&["60s"], None),
            (&["60, 5"], None),
        ] {
            let found = accel_expires(&fields(X_ACCEL_EXPIRES, lines), NOW);
            assert_eq!(found, expected.map(seconds), "{lines:?}");
        }
    }

    #[test]
    fn reverse_proxy_ttl_is_a_lifetime() {
        for (lines, expected) in [
            (&[][..], None),
            (&["60"], Some(60)),
            (&["0"], Some(0)),
            (&["60", "5"], Some(5)),
            (&["@60"], None),
            (&["-1"], None),
            (&["1.5"], None),
        ] {
            let found = reverse_proxy_ttl(&fields(X_REVERSE_PROXY_TTL, lines));
            assert_eq!(found, expected.map(seconds), "{lines:?}");
        }
    }

    proptest! {
        #[test]
        fn no_value_panics_and_lifetimes_are_bounded(
            bytes in proptest::collection::vec(any::<u8>(), 0..60), now in any::<u64>()
        ) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                let mut fields = HeaderMap::new();
                for name in [SURROGATE_CONTROL, X_ACCEL_EXPIRES, X_REVERSE_PROXY_TTL] {
                    fields.insert(name, value.clone());
                }
                let said = surrogate_control(&fields).unwrap_or_default();
                for lifetime in [
                    said.max_age,
                    said.stale,
                    accel_expires(&fields, WallTime(now)),
                    reverse_proxy_ttl(&fields),
                ] {
                    prop_assert!(lifetime.is_none_or(|lifetime| lifetime <= DELTA_MAX));
                }
            }
        }

        #[test]
        fn what_stands_beside_a_lifetime_does_not_change_it(
            inside in "[ -~]{0,20}", age in 0..1000_u64, stale in proptest::option::of(0..1000_u64)
        ) {
            let escaped = inside.replace('\\', "\\\\").replace('"', "\\\"");
            let stale_text = stale.map(|stale| format!("+{stale}")).unwrap_or_default();
            let line = format!("content=\"{escaped}\", max-age={age}{stale_text}, x=\"{escaped}\"");
            check(&[&line], lifetime_of(age, stale));
        }
    }
}
