//! What of a peer's bytes may stand in a line as it is, and what stands there instead of the rest.
//!
//! What is plain is the same for both formats: the printable ASCII characters but `"` and `\`. Nearly every text is
//! plain from end to end, so each is looked through many bytes at a time, and then only copied. Where that does not
//! hold, it is copied up to its first byte that is not plain, and on behind it.

/// So many bytes are looked at together; a size for which the compiler uses vector instructions.
const TOGETHER: usize = 16;

const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') & (byte != b'"') & (byte != b'\\')
}

/// Appends `bytes` if all are plain. What is left over of a text behind its pieces is the end of its last bytes that are
/// as many as a piece; a short one is put together in a register, which is less than a call.
#[inline]
fn append_plain(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    let short = if let Some(last) = bytes.last_chunk() {
        let plain = |piece: &[u8; TOGETHER]| piece.iter().fold(true, |plain, byte| plain & is_plain(*byte));
        let is_plain = bytes.as_chunks().0.iter().all(plain) && plain(last);
        if is_plain {
            out.extend_from_slice(bytes);
        }
        return is_plain;
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let [first, last] = [first, last].map(|eight| u64::from_le_bytes(*eight));
        if !(is_word_plain(first) && is_word_plain(last)) {
            return false;
        }
        u128::from(first) | u128::from(last) << (8 * (bytes.len() - 8))
    } else {
        // A plain character in place of those that are not there.
        let mut word = u64::from_le_bytes(*b"        ");
        for byte in bytes.iter().rev() {
            word = word << 8 | u64::from(*byte);
        }
        if !is_word_plain(word) {
            return false;
        }
        word.into()
    };
    let end = out.len() + bytes.len();
    out.extend_from_slice(&short.to_le_bytes());
    out.truncate(end);
    true
}

/// Whether all eight bytes are. A borrow may pass from a byte that is not plain to the next, never from one that is.
#[inline(always)]
fn is_word_plain(word: u64) -> bool {
    const ONES: u64 = u64::MAX / 255;
    let has_zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let is_control = word.wrapping_sub(ONES * 0x20) & !word;
    let is_one_of =
        has_zero(word ^ (ONES * 0x7f)) | has_zero(word ^ (ONES * 0x22)) | has_zero(word ^ (ONES * 0x5c));
    (word | is_control | is_one_of) & (ONES * 0x80) == 0
}

/// Splits off the first bytes as long as they are plain.
fn split_plain(bytes: &[u8]) -> (&[u8], &[u8]) {
    let plain = bytes.iter().position(|byte| !is_plain(*byte)).unwrap_or(bytes.len());
    bytes.split_at_checked(plain).unwrap_or((bytes, &[]))
}

/// Appends `bytes` as the inside of a JSON string. What is not UTF-8 becomes U+FFFD; controls, DEL, C1 controls and
/// the two Unicode line separators become `\uHHHH`.
#[inline]
pub(crate) fn json(bytes: &[u8], out: &mut Vec<u8>) {
    if !append_plain(bytes, out) {
        json_odd(bytes, out);
    }
}

fn json_odd(bytes: &[u8], out: &mut Vec<u8>) {
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
#[inline]
pub(super) fn nginx(bytes: &[u8], out: &mut Vec<u8>) {
    if !append_plain(bytes, out) {
        nginx_odd(bytes, out);
    }
}

fn nginx_odd(bytes: &[u8], out: &mut Vec<u8>) {
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
            let plain = matches!(byte, 0x20..=0x7e) && byte != b'"' && byte != b'\\';
            for (len, at) in (1..3 * TOGETHER).flat_map(|len| (0..len).map(move |at| (len, at))) {
                let mut bytes = vec![b'a'; len];
                bytes[at] = byte;
                let mut out = b"before".to_vec();
                assert_eq!(append_plain(&bytes, &mut out), plain, "{byte:#x} at {at} of {len}");
                assert_eq!(out, [b"before", &bytes[..if plain { len } else { 0 }]].concat());
                assert_eq!(split_plain(&bytes).0.len(), if plain { len } else { at }, "{byte:#x}");
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
