//! The combined format: `client - - [time] "request" status bytes "referer" "user agent"`.
//!
//! Escapes are nginx's: the quote, the backslash, controls, DEL and every byte above become `\xHH` with capital
//! digits; what is absent is `-`. The user is always `-`: credentials are never decoded.

use super::record::{Ending, LogRecord, Text};
use super::{calendar, decimal, escape};

/// Behind a text that was cut.
const CUT: &[u8] = b"...";

/// Appends the line of `record`, with its line feed, all but what [`write_ending`] does. Returns where that belongs.
pub(super) fn write(record: &LogRecord<'_>, out: &mut Vec<u8>) -> usize {
    decimal::address(record.client, out);
    out.extend_from_slice(b" - - [");
    out.extend_from_slice(&calendar::common(record.time));
    out.extend_from_slice(b"] \"");
    if record.text(Text::Method).is_empty() {
        out.push(b'-');
    } else {
        text(record, Text::Method, out);
        out.push(b' ');
        let (path, query) = record.path_and_query();
        escape::nginx(path, out);
        if let Some(query) = query {
            out.push(b'?');
            escape::nginx(query, out);
        }
        if record.is_target_cut() {
            out.extend_from_slice(CUT);
        }
        out.extend_from_slice(b" HTTP/");
        out.extend_from_slice(record.version_number().as_bytes());
    }
    out.extend_from_slice(b"\" ");
    out.extend_from_slice(&decimal::three_digits(record.status.as_u16()));
    out.push(b' ');
    let gap = out.len();
    out.extend_from_slice(b" \"");
    or_dash(record, Text::Referer, out);
    out.extend_from_slice(b"\" \"");
    or_dash(record, Text::UserAgent, out);
    out.extend_from_slice(b"\"\n");
    gap
}

/// Appends what is known at the end.
pub(super) fn write_ending(ended: &Ending, out: &mut Vec<u8>) {
    decimal::integer(ended.body_bytes, out);
}

fn or_dash(record: &LogRecord<'_>, which: Text, out: &mut Vec<u8>) {
    if record.text(which).is_empty() { out.push(b'-') } else { text(record, which, out) }
}

#[inline(always)]
fn text(record: &LogRecord<'_>, which: Text, out: &mut Vec<u8>) {
    escape::nginx(record.text(which), out);
    if record.is_cut(which) {
        out.extend_from_slice(CUT);
    }
}
