//! How values are written where they could be read as something else: in markup, and in references.
//!
//! In: bytes of any kind. Out: the same as text that no reader of HTML, or of a URI, takes for more than text.
//! Bytes above 0x7f stay in markup: what they mean is a matter of the page's charset, and they are never markup.

/// For markup: `<`, `>`, `&`, and both quotes.
pub(crate) fn html(text: &[u8], into: &mut Vec<u8>) {
    for byte in text.iter().copied() {
        match byte {
            b'\'' => into.extend_from_slice(b"&#39;"),
            _ => entity_byte(byte, into),
        }
    }
}

/// For markup, as nginx and Apache do it: `<`, `>`, `&` and `"`.
pub(crate) fn entity(text: &[u8], into: &mut Vec<u8>) {
    for byte in text.iter().copied() {
        entity_byte(byte, into);
    }
}

fn entity_byte(byte: u8, into: &mut Vec<u8>) {
    match byte {
        b'<' => into.extend_from_slice(b"&lt;"),
        b'>' => into.extend_from_slice(b"&gt;"),
        b'&' => into.extend_from_slice(b"&amp;"),
        b'"' => into.extend_from_slice(b"&quot;"),
        _ => into.push(byte),
    }
}

/// As one component of a path or a query: all but unreserved characters (RFC 3986 2.3) are escaped.
pub(crate) fn component(text: &[u8], into: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.iter().copied() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            into.push(byte);
        } else {
            into.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

/// Base64 (RFC 4648 4).
pub(crate) fn base64(text: &[u8], into: &mut Vec<u8>) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for three in text.chunks(3) {
        let at = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit)) & 63;
            into.push(if digit > three.len() { b'=' } else { DIGITS[value as usize] });
        }
    }
}

/// Without percent escapes; `+` is a blank where `plus` says so. What is no escape stays as it is.
pub(crate) fn decoded(text: &[u8], plus: bool) -> Vec<u8> {
    let hex = |byte: u8| char::from(byte).to_digit(16);
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        rest = after;
        let escaped = match (byte, after) {
            (b'%', [high, low, ..]) => {
                hex(*high).zip(hex(*low)).and_then(|(h, l)| u8::try_from(h * 16 + l).ok())
            }
            _ => None,
        };
        match escaped {
            Some(decoded) => {
                out.push(decoded);
                rest = after.get(2..).unwrap_or_default();
            }
            None if *byte == b'+' && plus => out.push(b' '),
            None => out.push(*byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(escape: fn(&[u8], &mut Vec<u8>), text: &str) -> String {
        let mut out = Vec::new();
        escape(text.as_bytes(), &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn nothing_that_is_written_is_markup() {
        assert_eq!(written(html, "<a b='c' d=\"e\">&é"), "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;é");
        assert_eq!(written(entity, "<a b='c' d=\"e\">&é"), "&lt;a b='c' d=&quot;e&quot;&gt;&amp;é");
    }

    #[test]
    fn a_component_has_no_delimiter() {
        assert_eq!(written(component, "a/b?c=d&e#f g%20é-._~"), "a%2Fb%3Fc%3Dd%26e%23f%20g%2520%C3%A9-._~");
    }

    #[test]
    fn base64_of_every_length() {
        for (text, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("\u{ff}?>", "w78/Pg=="),
        ] {
            assert_eq!(written(base64, text), expected);
        }
    }

    #[test]
    fn escapes_are_decoded_once() {
        for (text, plus, expected) in [
            ("a%20b+c", true, "a b c"),
            ("a%20b+c", false, "a b+c"),
            ("%", true, "%"),
            ("%4", true, "%4"),
            ("%zz%2541", true, "%zz%41"),
        ] {
            assert_eq!(decoded(text.as_bytes(), plus), expected.as_bytes());
        }
    }
}
