//! The combined format: `client - - [time] "request" status bytes "referer" "user agent"`.
//!
//! Escapes are nginx's: the quote, the backslash, controls, DEL and every byte above become `\xHH` with capital
//! digits; what is absent is `-`. The user is always `-`: credentials are never decoded.

use std::io::Write;

use super::calendar;
use super::record::{LogRecord, Text};

/// Appends the line of `record`, with its line feed.
pub(super) fn write(record: &LogRecord, out: &mut Vec<u8>) {
    let _ = write!(out, "{} - - [{}] \"", record.client, calendar::common(record.time));
    if record.method.is_empty() {
        out.push(b'-');
    } else {
        escape(&record.method, out);
        out.push(b' ');
        escape(&record.target, out);
        let _ = write!(out, " HTTP/{}", record.version_number());
    }
    let _ = write!(out, "\" {} {} \"", record.status.as_u16(), record.body_bytes);
    or_dash(&record.referer, out);
    out.extend_from_slice(b"\" \"");
    or_dash(&record.user_agent, out);
    out.extend_from_slice(b"\"\n");
}

fn or_dash<const MAX: usize>(text: &Text<MAX>, out: &mut Vec<u8>) {
    if text.is_empty() { out.push(b'-') } else { escape(text, out) }
}

fn escape<const MAX: usize>(text: &Text<MAX>, out: &mut Vec<u8>) {
    for byte in text.as_bytes() {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f..=0xff => {
                let _ = write!(out, "\\x{byte:02X}");
            }
            _ => out.push(*byte),
        }
    }
    if text.is_cut() {
        out.extend_from_slice(b"...");
    }
}
