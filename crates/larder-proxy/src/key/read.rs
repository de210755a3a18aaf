//! The variant of a stored key, for people: what tells the responses under one URL apart.
//!
//! In: the variant as [`key`](super::key) wrote it. Out: a value for each part that the rule added, in its order. Which cookie or
//! field that was is not in the key: it is the rule's to know, and the rule may be another by now.
//! A part that stands by itself is the scheme, the content of a QUERY or the mark of parts, and never begins like the marks
//! around the values of cookies and fields.

use larder_store::key::VERSIONS;

/// Of a digest: enough to tell contents apart.
const DIGEST_BYTES: usize = 8;

/// The values that a rule added to the key, escaped; `None` where the request had none. Nothing where the bytes are no
/// variant.
pub(crate) fn values(variant: &[u8]) -> Option<Vec<Option<String>>> {
    let mut rest = variant;
    let _scheme = part(&mut rest)?;
    let mut values = Vec::new();
    if let Some(behind) = rest.strip_prefix(VERSIONS) {
        rest = behind;
        let versions = part(&mut rest)?.split(|byte| *byte == 0).next().unwrap_or_default();
        values.push(Some(match versions {
            b"" => "no version".to_owned(),
            versions => format!("version {}", versions.escape_ascii()),
        }));
    }
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix(b"-;") {
            rest = behind;
            values.push(None);
        } else if rest.starts_with(b"=") {
            let mut all: Vec<String> = Vec::new();
            while let Some(behind) = rest.strip_prefix(b"=") {
                rest = behind;
                all.push(part(&mut rest)?.escape_ascii().to_string());
            }
            rest = rest.strip_prefix(b";")?;
            values.push(Some(all.join(", ")));
        } else {
            match part(&mut rest)? {
                b"query" => {
                    let digest = part(&mut rest)?.iter().take(DIGEST_BYTES);
                    let hex: String = digest.map(|byte| format!("{byte:02x}")).collect();
                    values.push(Some(format!("content {hex}")));
                }
                b"parts" => {}
                _ => return None,
            }
        }
    }
    Some(values)
}

/// Takes a part and its length off the front.
fn part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, behind) = rest.split_first_chunk()?;
    let (part, behind) = behind.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    *rest = behind;
    Some(part)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::header::{COOKIE, HeaderName};
    use http::{HeaderValue, Method};
    use proptest::prelude::*;

    use super::*;
    use crate::key;
    use crate::settings::KeySettings;

    #[test]
    fn what_a_rule_adds_is_read_again_in_its_order() {
        let settings = KeySettings {
            cookies: vec!["lang".to_owned(), "theme".to_owned()],
            fields: vec![HeaderName::from_static("x-a")],
            ..KeySettings::default()
        };
        let mut head = crate::testing::request("/");
        head.fields.insert(COOKIE, HeaderValue::from_static("theme=; lang=de; lang=fr"));
        let read = |head: &_| values(key::key(head, &settings, None, b"q").variant());
        let told = |value: &str| Some(value.to_owned());
        assert_eq!(read(&head), Some(vec![told("de, fr"), told(""), None]));
        head.method = Method::from_bytes(b"QUERY").unwrap();
        let content = told("content 8e35c2cd3bf6641b");
        assert_eq!(read(&head), Some(vec![told("de, fr"), told(""), None, content, None, None]));
    }

    #[test]
    fn versions_are_told_before_all_else_and_without_their_times() {
        let settings = KeySettings { cookies: vec!["lang".to_owned()], ..KeySettings::default() };
        let head = crate::testing::request("/");
        let read = |versions: &[u8]| values(key::key(&head, &settings, Some(versions), b"").variant());
        assert_eq!(read(b"7.1"), Some(vec![Some("version 7.1".to_owned()), None]));
        assert_eq!(read(b"7.1\x00123"), Some(vec![Some("version 7.1".to_owned()), None]));
        assert_eq!(read(b"\x00123"), Some(vec![Some("no version".to_owned()), None]));
    }

    #[test]
    fn parts_add_nothing_that_is_told() {
        let plain = key::key(&crate::testing::request("/"), &KeySettings::default(), None, b"");
        assert_eq!(values(plain.variant()), Some(Vec::new()));
        assert_eq!(values(plain.of_parts().variant()), Some(Vec::new()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = values(&bytes);
        }
    }
}
