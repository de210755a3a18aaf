//! Cookie and Set-Cookie, as far as a cache has to look at them (RFC 6265 4.2, 5.2).
//!
//! In: all lines of either field, of any quality: browsers send what scripts once set. Out: names and values as they
//! stand, nothing decoded. Deliberately absent: whether a cookie is still valid, and for whom.

use http::{HeaderMap, HeaderValue, header};

/// The pairs of all Cookie lines, in order: name, value. A pair without `=` is a name with an empty value.
pub fn pairs(request: &HeaderMap) -> impl Iterator<Item = (&[u8], &[u8])> {
    request
        .get_all(header::COOKIE)
        .iter()
        .flat_map(|line| line.as_bytes().split(|b| *b == b';'))
        .map(<[u8]>::trim_ascii)
        .filter(|pair| !pair.is_empty())
        .map(split)
}

/// Takes the cookie `name` out of a request, every time that it is there, and returns its first value. Lines without it
/// stay as they are; of those with it the other pairs stay, in order.
pub fn take(request: &mut HeaderMap, name: &[u8]) -> Option<Vec<u8>> {
    let first = pairs(request).find(|(other, _)| *other == name).map(|(_, value)| value.to_vec())?;
    let lines: Vec<HeaderValue> = request.get_all(header::COOKIE).iter().cloned().collect();
    request.remove(header::COOKIE);
    for line in lines {
        let of_line = || line.as_bytes().split(|b| *b == b';').map(<[u8]>::trim_ascii);
        let is_other = |pair: &&[u8]| !pair.is_empty() && split(pair).0 != name;
        if of_line().all(|pair| pair.is_empty() || is_other(&pair)) {
            request.append(header::COOKIE, line);
            continue;
        }
        let others = of_line().filter(is_other).collect::<Vec<_>>().join(&b"; "[..]);
        // Parts of a field's value, joined by what may stand in one.
        if let Some(line) = (!others.is_empty()).then(|| HeaderValue::from_bytes(&others).ok()).flatten() {
            request.append(header::COOKIE, line);
        }
    }
    Some(first)
}

/// What matters of one Set-Cookie line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetCookie<'a> {
    /// As sent; may be empty.
    pub name: &'a [u8],
    /// As sent, quotes included.
    pub value: &'a [u8],
    /// Whether scripts are kept from it, as is usual for sessions.
    pub http_only: bool,
}

/// The cookies that a response sets.
pub fn set_cookies(response: &HeaderMap) -> impl Iterator<Item = SetCookie<'_>> {
    response.get_all(header::SET_COOKIE).iter().map(|line| SetCookie::of(line.as_bytes()))
}

impl<'a> SetCookie<'a> {
    /// What one line sets.
    pub fn of(line: &'a [u8]) -> Self {
        let mut parts = line.split(|b| *b == b';').map(<[u8]>::trim_ascii).map(split);
        let (name, value) = parts.next().unwrap_or_default();
        let http_only = parts.any(|(attribute, _)| attribute.eq_ignore_ascii_case(b"httponly"));
        Self { name, value, http_only }
    }
}

fn split(pair: &[u8]) -> (&[u8], &[u8]) {
    let at = pair.iter().position(|b| *b == b'=').unwrap_or(pair.len());
    let (name, value) = pair.split_at(at);
    (name.trim_ascii_end(), value.get(1..).unwrap_or_default().trim_ascii_start())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pairs_of_all_lines_in_order() {
        let mut fields = HeaderMap::new();
        for line in ["a=1; b = 2;; c", "=x; d=e=f; ", ""] {
            fields.append(header::COOKIE, HeaderValue::from_static(line));
        }
        let expected: [(&[u8], &[u8]); 5] =
            [(b"a", b"1"), (b"b", b"2"), (b"c", b""), (b"", b"x"), (b"d", b"e=f")];
        assert_eq!(pairs(&fields).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_cookie_is_taken_out_and_the_others_stay() {
        for (lines, value, left) in [
            (&["a=1; b=2"][..], Some("1"), &["b=2"][..]),
            (&["b=2;  a = 1 ;c"], Some("1"), &["b=2; c"]),
            (&["a=1", "b=2;c=3", "a=4; d=5"], Some("1"), &["b=2;c=3", "d=5"]),
            (&["a=1; a=2"], Some("1"), &[]),
            (&["a"], Some(""), &[]),
            (&["aa=1; ba=2;"], None, &["aa=1; ba=2;"]),
            (&[], None, &[]),
        ] {
            let mut fields = HeaderMap::new();
            for line in lines {
                fields.append(header::COOKIE, HeaderValue::from_static(line));
            }
            assert_eq!(take(&mut fields, b"a"), value.map(|value| value.as_bytes().to_vec()), "{lines:?}");
            assert_eq!(fields.get_all(header::COOKIE).iter().collect::<Vec<_>>(), left, "{lines:?}");
        }
    }

    #[test]
    fn http_only_is_an_attribute_and_not_a_value() {
        for (line, name, value, http_only) in [
            ("sid=1; Path=/; HTTPONLY", "sid", "1", true),
            ("sid=1;httponly=yes", "sid", "1", true),
            ("sid=httponly; Path=httponly", "sid", "httponly", false),
            ("httponly", "httponly", "", false),
            ("", "", "", false),
            (" spaced = \"1 2\"", "spaced", "\"1 2\"", false),
        ] {
            let mut fields = HeaderMap::new();
            fields.append(header::SET_COOKIE, HeaderValue::from_static(line));
            let expected = SetCookie { name: name.as_bytes(), value: value.as_bytes(), http_only };
            assert_eq!(set_cookies(&fields).collect::<Vec<_>>(), [expected], "{line:?}");
        }
    }

    proptest! {
        #[test]
        fn no_value_panics(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                let mut fields = HeaderMap::new();
                fields.insert(header::COOKIE, value.clone());
                fields.insert(header::SET_COOKIE, value);
                let _ = (pairs(&fields).count(), set_cookies(&fields).count());
            }
        }
    }
}
