//! The combined format: `client - - [time] "request" status bytes "referer" "user agent"`.
//!
//! Escapes are nginx's: the quote, the backslash, controls, DEL and every byte above become `\xHH` with capital
//! digits; what is absent is `-`. The user is always `-`: credentials are never decoded.

use super::calendar::{self, Stamp};
use super::record::{LogRecord, Text};
use super::{decimal, escape};

/// Appends the line of `record`, with its line feed.
pub(super) fn write(record: &LogRecord, stamp: &mut Stamp, out: &mut Vec<u8>) {
    let is_plain = record.is_plain();
    decimal::address(record.client, out);
    out.extend_from_slice(b" - - [");
    out.extend_from_slice(stamp.at(record.time, calendar::common).as_bytes());
    out.extend_from_slice(b"] \"");
    if record.text(Text::Method).is_empty() {
        out.push(b'-');
    } else {
        text(record, Text::Method, is_plain, out);
        out.push(b' ');
        text(record, Text::Target, is_plain, out);
        out.extend_from_slice(b" HTTP/");
        out.extend_from_slice(record.version_number().as_bytes());
    }
    out.extend_from_slice(b"\" ");
    decimal::integer(record.status.as_u16(), out);
    out.push(b' ');
    decimal::integer(record.body_bytes, out);
    out.extend_from_slice(b" \"");
    or_dash(record, Text::Referer, is_plain, out);
    out.extend_from_slice(b"\" \"");
    or_dash(record, Text::UserAgent, is_plain, out);
    out.extend_from_slice(b"\"\n");
}

fn or_dash(record: &LogRecord, which: Text, is_plain: bool, out: &mut Vec<u8>) {
    if record.text(which).is_empty() { out.push(b'-') } else { text(record, which, is_plain, out) }
}

fn text(record: &LogRecord, which: Text, is_plain: bool, out: &mut Vec<u8>) {
    let bytes = record.text(which);
    if is_plain {
        out.extend_from_slice(bytes)
    } else {
        escape::nginx(bytes, out)
    }
    if record.is_cut(which) {
        out.extend_from_slice(b"...");
    }
}
