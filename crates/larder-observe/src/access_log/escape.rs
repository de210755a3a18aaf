//! What of a peer's bytes may stand in a line as it is, and what stands there instead of the rest.
//!
//! What is plain is the same for both formats: the printable ASCII characters but `"` and `\`. Nearly every text is
//! plain from end to end, so all texts of a record, which stand in one buffer, are looked through at once, many bytes
//! at a time, and then only copied. Where that does not hold, each is copied up to its first byte that is not plain,
//! and on behind it.

/// So many bytes are looked at together; a size for which the compiler uses vector instructions.
const TOGETHER: usize = 16;

const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') & (byte != b'"') & (byte != b'\\')
}

/// Whether all bytes are plain.
pub(super) fn is_all_plain(bytes: &[u8]) -> bool {
    let plain = |piece: &[u8; TOGETHER]| piece.iter().fold(true, |plain, byte| plain & is_plain(*byte));
    let (pieces, rest) = bytes.as_chunks::<TOGETHER>();
    // What is left over is the end of the last bytes that are as many as a piece.
    pieces.iter().all(plain)
        && match bytes.last_chunk() {
            Some(last) => plain(last),
            None => rest.iter().all(|byte| is_plain(*byte)),
        }
}

/// Splits off the first bytes as long as they are plain.
fn split_plain(bytes: &[u8]) -> (&[u8], &[u8]) {
    let plain = bytes.iter().position(|byte| !is_plain(*byte)).unwrap_or(bytes.len());
    bytes.split_at_checked(plain).unwrap_or((bytes, &[]))
}

/// Appends `bytes` as the inside of a JSON string. What is not UTF-8 becomes U+FFFD; controls, DEL, C1 controls and
/// the two Unicode line separators become `\uHHHH`.
pub(super) fn json(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    loop {
        let (plain, odd) = split_plain(rest);
        out.extend_from_slice(plain);
        if odd.is_empty() {
            return;
        }
        rest = odd.get(json_char(odd, out)..).unwrap_or_default();
    }
}

/// Appends the first character of `bytes`, and returns how many bytes it took: at least one where there are any.
fn json_char(bytes: &[u8], out: &mut Vec<u8>) -> usize {
    // Four bytes hold any character whole, and any beginning of one that is broken off.
    let first = bytes.get(..4).unwrap_or(bytes);
    let Some(chunk) = first.utf8_chunks().next() else { return bytes.len() };
    let Some(c) = chunk.valid().chars().next() else {
        out.extend_from_slice("\u{fffd}".as_bytes());
        return chunk.invalid().len();
    };
    match c {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
            let [_, _, high, low] = u32::from(c).to_be_bytes();
            let ([a, b], [c, d]) = (hex(high, b"0123456789abcdef"), hex(low, b"0123456789abcdef"));
            out.extend_from_slice(&[b'\\', b'u', a, b, c, d]);
        }
        c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
    c.len_utf8()
}

/// Appends `bytes` as nginx escapes them: every byte that is not plain becomes `\xHH`.
pub(super) fn nginx(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    loop {
        let (plain, odd) = split_plain(rest);
        out.extend_from_slice(plain);
        let Some((byte, after)) = odd.split_first() else { return };
        let [high, low] = hex(*byte, b"0123456789ABCDEF");
        out.extend_from_slice(&[b'\\', b'x', high, low]);
        rest = after;
    }
}

fn hex(byte: u8, digits: &[u8; 16]) -> [u8; 2] {
    [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn escaped(escape: fn(&[u8], &mut Vec<u8>), bytes: &[u8]) -> String {
        let mut out = Vec::new();
        escape(bytes, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn every_byte_is_seen_wherever_it_stands() {
        for byte in 0..=u8::MAX {
            for at in 0..3 * TOGETHER - 1 {
                let mut bytes = vec![b'a'; 3 * TOGETHER - 1];
                bytes[at] = byte;
                let plain = matches!(byte, 0x20..=0x7e) && byte != b'"' && byte != b'\\';
                assert_eq!(is_all_plain(&bytes), plain, "{byte:#x} at {at}");
                assert_eq!(is_all_plain(&bytes[..at + 1]), plain, "{byte:#x} at the end, {at}");
                assert_eq!(split_plain(&bytes).0.len(), if plain { bytes.len() } else { at }, "{byte:#x}");
            }
        }
    }

    fn check(bytes: &[u8], json_form: &str, nginx_form: &str) {
        assert_eq!(escaped(json, bytes), json_form);
        assert_eq!(escaped(nginx, bytes), nginx_form);
    }

    #[test]
    fn each_format_has_its_escapes() {
        check(b"", "", "");
        check(b"/a~ b", "/a~ b", "/a~ b");
        check(b"a\"b\\", "a\\\"b\\\\", "a\\x22b\\x5C");
        check(b"\0\t\n\x1f\x7f", "\\u0000\\u0009\\u000a\\u001f\\u007f", "\\x00\\x09\\x0A\\x1F\\x7F");
        check("\u{85}\u{2028}".as_bytes(), "\\u0085\\u2028", "\\xC2\\x85\\xE2\\x80\\xA8");
        check("é\u{1f600}".as_bytes(), "é\u{1f600}", "\\xC3\\xA9\\xF0\\x9F\\x98\\x80");
        check(b"\xe2\x80", "\u{fffd}", "\\xE2\\x80");
        check(b"\xff\xe2\x28", "\u{fffd}\u{fffd}(", "\\xFF\\xE2(");
    }

    proptest! {
        #[test]
        fn a_json_reader_reads_what_was_written(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let line = format!("\"{}\"", escaped(json, &bytes));
            let read: String = serde_json::from_str(&line).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!(read, String::from_utf8_lossy(&bytes));
        }
    }
}
