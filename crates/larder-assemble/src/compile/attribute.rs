//! Names and values within a directive or a tag.
//!
//! In: what stands between the name and the end. Out: pairs in order; or that there is something that is none. Values of SSI keep
//! their backslashes, but for those before their own quote: `$` and patterns need them later. In values of ESI, references to
//! characters are decoded.

/// A name in lower case (SSI) or as written (ESI), and its value.
pub(super) type Attribute = (Vec<u8>, Vec<u8>);

/// Attributes up to the first text that is none.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) pairs: Vec<Attribute>,
    /// Something is no attribute.
    pub(super) is_malformed: bool,
}

impl Attributes {
    /// The value of `name`; the first, if there are several.
    pub(super) fn value(&self, name: &[u8]) -> Option<&[u8]> {
        self.pairs.iter().find(|(other, _)| *other == name).map(|(_, value)| &**value)
    }

    /// Whether `name` is there more than once.
    pub(super) fn is_repeated(&self, name: &[u8]) -> bool {
        self.pairs.iter().filter(|(other, _)| *other == name).count() > 1
    }

    /// Of a directive of SSI.
    pub(super) fn ssi(text: &[u8]) -> Self {
        let mut read = Self::default();
        let mut rest = text.trim_ascii();
        while !rest.is_empty() {
            let Some((name, value, after)) = named(rest).and_then(|(name, after)| {
                let (value, after) = ssi_value(after)?;
                Some((name, value, after))
            }) else {
                read.is_malformed = true;
                return read;
            };
            read.pairs.push((name.to_ascii_lowercase(), value));
            rest = after.trim_ascii_start();
        }
        read
    }

    /// Of a tag of ESI.
    pub(super) fn esi(text: &[u8]) -> Self {
        let mut read = Self::default();
        let mut rest = text.trim_ascii();
        while !rest.is_empty() {
            let Some((name, value, after)) = named(rest).and_then(|(name, after)| {
                let (quote @ (b'"' | b'\''), inside) = after.split_first()? else { return None };
                let end = inside.iter().position(|byte| byte == quote)?;
                Some((name, inside.get(..end)?, inside.get(end + 1..)?))
            }) else {
                read.is_malformed = true;
                return read;
            };
            read.pairs.push((name.to_vec(), characters(value)));
            rest = after.trim_ascii_start();
        }
        read
    }
}

/// A name, and what follows its `=`.
fn named(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let is_of_name = |byte: &&u8| !byte.is_ascii_whitespace() && !matches!(byte, b'=' | b'"' | b'\'' | b'`');
    let (name, rest) = text.split_at(text.iter().take_while(is_of_name).count());
    let rest = rest.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    (!name.is_empty()).then_some((name, rest))
}

fn ssi_value(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let [quote @ (b'"' | b'\'' | b'`'), inside @ ..] = text else {
        let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return (!value.is_empty()).then(|| (value.to_vec(), rest));
    };
    let (mut value, mut rest) = (Vec::new(), inside);
    loop {
        match rest {
            [b'\\', escaped, after @ ..] => {
                if escaped != quote {
                    value.push(b'\\');
                }
                value.push(*escaped);
                rest = after;
            }
            [byte, after @ ..] if byte == quote => return Some((value, after)),
            [byte, after @ ..] => {
                value.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

/// A value of SSI in which `$` means nothing: without the backslashes that take the meaning from something.
pub(super) fn plain(value: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(value.len()), value);
    while let [byte, after @ ..] = rest {
        rest = after;
        match (byte, after) {
            (b'\\', [escaped @ (b'$' | b'\\' | b'"' | b'\'' | b'`'), after @ ..]) => {
                out.push(*escaped);
                rest = after;
            }
            _ => out.push(*byte),
        }
    }
    out
}

/// The longest reference that is looked at: `&#x10FFFF;`, with some zeros.
const REFERENCE_BYTES_MAX: usize = 16;

/// With the five entities of XML and references to characters decoded. All else stays.
fn characters(value: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(value.len()), value);
    while let [byte, after @ ..] = rest {
        rest = after;
        let end = after.iter().take(REFERENCE_BYTES_MAX).position(|byte| *byte == b';');
        let decoded = end
            .filter(|_| *byte == b'&')
            .and_then(|end| character(after.get(..end)?).zip(after.get(end + 1..)));
        match decoded {
            Some((character, after)) => {
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                rest = after;
            }
            None => out.push(*byte),
        }
    }
    out
}

fn character(name: &[u8]) -> Option<char> {
    Some(match name {
        b"lt" => '<',
        b"gt" => '>',
        b"amp" => '&',
        b"quot" => '"',
        b"apos" => '\'',
        [b'#', b'x' | b'X', digits @ ..] => number(digits, 16)?,
        [b'#', digits @ ..] => number(digits, 10)?,
        _ => return None,
    })
}

fn number(digits: &[u8], radix: u32) -> Option<char> {
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    char::from_u32(u32::from_str_radix(digits, radix).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(attributes: &Attributes) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut shown: Vec<_> =
            attributes.pairs.iter().map(|(name, value)| format!("{}={}", text(name), text(value))).collect();
        shown.extend(attributes.is_malformed.then(|| "?".to_owned()));
        shown.join("|")
    }

    #[test]
    fn attributes_of_ssi() {
        for (text, expected) in [
            ("", ""),
            (" a=\"b c\" ", "a=b c"),
            ("A = 'b'c=`d`", "a=b|c=d"),
            ("a=b c=d", "a=b|c=d"),
            ("a=\"\\\"\\$\\\\\\'\"", "a=\"\\$\\\\\\'"),
            ("a=\"b\" c", "a=b|?"),
            ("a", "?"),
            ("=b", "?"),
            ("a=", "?"),
            ("a=\"b", "?"),
            ("\"b\"", "?"),
        ] {
            assert_eq!(shown(&Attributes::ssi(text.as_bytes())), expected, "{text}");
        }
        assert_eq!(plain(b"\\$a\\\\\\'\\n$b"), b"$a\\'\\n$b");
    }

    #[test]
    fn attributes_of_esi() {
        for (text, expected) in [
            (
                " src = \"/a?b&amp;c\"\n alt='<\"&apos;&#65;&#x42;&#x110000;&nbsp;&'",
                "src=/a?b&c|alt=<\"'AB&#x110000;&nbsp;&",
            ),
            ("Src='a'b=\"c\"", "Src=a|b=c"),
            ("a=b", "?"),
            ("a='b' c", "a=b|?"),
            ("&#+5;='&#+5;&#;&#x;'", "&#+5;=&#+5;&#;&#x;"),
        ] {
            assert_eq!(shown(&Attributes::esi(text.as_bytes())), expected, "{text}");
        }
    }
}
