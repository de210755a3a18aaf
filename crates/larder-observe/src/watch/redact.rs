//! Values of parameters that are shown nowhere.
//!
//! In: names of parameters, with `*` and `?` as in filters, and targets or other URLs as bytes of any kind. Out: the same URLs with `***`
//! in place of the values of those parameters. Case does not count in names, `%74oken` is `token`, and `user[token]` has the name in it.
//! Applications split queries at `&`, some at `;`, too, and a value may itself be a URL with a query. Where a name stands behind any of
//! these signs, all of the value up to the next `&` goes: more than the secret rather than less.
//! Deliberately absent: values in paths, and names within a value that is percent-encoded as a whole.

use crate::filter::Glob;

/// What stands in place of a value.
const HIDDEN: &[u8] = b"***";

/// The names whose values are hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redact(Box<[Glob]>);

impl Default for Redact {
    fn default() -> Self {
        Self::new(Self::DEFAULT)
    }
}

impl Redact {
    /// The names of usual secrets.
    pub const DEFAULT: [&str; 7] =
        ["token", "password", "sig", "Signature", "AWSAccessKeyId", "X-Goog-Signature", "*_key"];

    /// Hides the values of parameters with these names.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(names.into_iter().map(|name| Glob::of_value(name, true)).collect())
    }

    /// Appends a URL, or a part of one that begins before its query.
    pub fn write(&self, url: &[u8], out: &mut Vec<u8>) {
        let query = url.iter().position(|byte| matches!(byte, b'?' | b'#'));
        let (path, query) = query.and_then(|at| url.split_at_checked(at + 1)).unwrap_or((url, &[]));
        out.extend_from_slice(path);
        for (number, parameter) in query.split(|byte| *byte == b'&').enumerate() {
            if number > 0 {
                out.push(b'&');
            }
            let shown = self.shown(parameter);
            out.extend_from_slice(parameter.get(..shown).unwrap_or(parameter));
            if shown < parameter.len() {
                out.extend_from_slice(HIDDEN);
            }
        }
    }

    /// How many bytes of a parameter, or of several with other signs between them, may be shown.
    fn shown(&self, parameter: &[u8]) -> usize {
        let mut begin = 0;
        for part in parameter.split(|byte| matches!(byte, b';' | b'?' | b'#')) {
            if let Some(equal) = part.iter().position(|byte| *byte == b'=')
                && self.is_hidden(part.get(..equal).unwrap_or_default())
            {
                return begin + equal + 1;
            }
            begin += part.len() + 1;
        }
        parameter.len()
    }

    fn is_hidden(&self, name: &[u8]) -> bool {
        let name = decoded(name);
        let name = String::from_utf8_lossy(&name);
        let is_one = |name: &str| self.0.iter().any(|hidden| hidden.matches(name.trim()));
        is_one(&name) || (name.contains('[') && name.split(['[', ']']).any(is_one))
    }
}

/// Percent-decoded; what is no escape stays.
fn decoded(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((first, behind)) = rest.split_first() {
        let escape = match (first, behind) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        match escape {
            Some(byte) => out.push(byte),
            None => out.push(if *first == b'+' { b' ' } else { *first }),
        }
        rest = behind.get(if escape.is_some() { 2 } else { 0 }..).unwrap_or_default();
    }
    out
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn redacted(redact: &Redact, url: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        redact.write(url, &mut out);
        out
    }

    #[test]
    fn values_of_secret_parameters_are_hidden_wherever_they_stand() {
        let redact = Redact::default();
        for (url, expected) in [
            ("", ""),
            ("*", "*"),
            ("/a", "/a"),
            ("/token=1", "/token=1"),
            ("/a?", "/a?"),
            ("/a?&&", "/a?&&"),
            ("/a?b=1&token=secret&c=2", "/a?b=1&token=***&c=2"),
            ("/a?TOKEN=secret", "/a?TOKEN=***"),
            ("/a?%74oke%6E=secret", "/a?%74oke%6E=***"),
            ("/a?%2574oken=1", "/a?%2574oken=1"),
            ("/a?+token+=secret", "/a?+token+=***"),
            ("/a?tok%=1&tok%6=1&%=1", "/a?tok%=1&tok%6=1&%=1"),
            ("/a?api_key=x&_KEY=y&key=z&keys_=z", "/a?api_key=***&_KEY=***&key=z&keys_=z"),
            ("/a?signature=x&sig=y&sign=z", "/a?signature=***&sig=***&sign=z"),
            ("/a?token", "/a?token"),
            ("/a?token=", "/a?token="),
            ("/a?token==&b", "/a?token=***&b"),
            (
                "/a?user[password]=x&user%5Btoken%5D=y&a[]=z",
                "/a?user[password]=***&user%5Btoken%5D=***&a[]=z",
            ),
            ("/a?b=1;token=x;c=2&d", "/a?b=1;token=***&d"),
            ("/a?token=x;y", "/a?token=***"),
            ("/a?next=/b?token=x&c", "/a?next=/b?token=***&c"),
            ("https://a.example/#token=x&b=1", "https://a.example/#token=***&b=1"),
            ("/a?b=token&c=password=1", "/a?b=token&c=password=1"),
        ] {
            assert_eq!(str::from_utf8(&redacted(&redact, url.as_bytes())).unwrap(), expected, "{url}");
        }
        assert_eq!(redacted(&redact, b"/\xff?\xfe=1&token=\xfd"), b"/\xff?\xfe=1&token=***");
    }

    #[test]
    fn names_are_those_of_the_settings() {
        let redact = Redact::new(["s?d", "\u{e9}*"]);
        let url = "/?sid=1&sd=2&token=3&%C3%A9t%C3%A9=4".as_bytes();
        assert_eq!(redacted(&redact, url), b"/?sid=***&sd=2&token=3&%C3%A9t%C3%A9=***");
        assert_eq!(redacted(&Redact::new([]), b"/?token=1"), b"/?token=1");
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_and_little_is_added(url in prop::collection::vec(any::<u8>(), 0..600)) {
            let out = redacted(&Redact::default(), &url);
            prop_assert!(out.len() <= url.len() * 2);
            prop_assert_eq!(redacted(&Redact::new([]), &url), url);
        }

        #[test]
        fn no_secret_is_left(
            before in "[a-z=&;?#%+/]{0,40}",
            name in "(token|PassWord|%73ig|x_key|a\\[token\\])",
            after in "[a-z=&;?#%+/]{0,40}",
        ) {
            for sign in ["?", "&", ";"] {
                let url = format!("/?{before}{sign}{name}=S3CRET{after}");
                let out = String::from_utf8(redacted(&Redact::default(), url.as_bytes())).unwrap();
                prop_assert!(!out.contains("S3CRET"), "{} {}", url, out);
            }
        }
    }
}
