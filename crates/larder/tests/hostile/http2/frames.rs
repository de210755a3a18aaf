//! Frames and field blocks of HTTP/2, written as told and never checked (RFC 9113 4.1, RFC 7541 6.2).
//!
//! Fields are literals without indexing and without Huffman coding: a case says exactly which bytes go out. What needs
//! the dynamic table writes it byte by byte. Text stands for the bytes of its characters up to U+00FF.

use larder_testkit::wire::to_bytes;

use crate::hostile::transport::Transport;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const PRIORITY_UPDATE: u8 = 16;
pub const CONTINUATION: u8 = 9;

pub const ACK: u8 = 0x1;
pub const END_STREAM: u8 = 0x1;
pub const END_HEADERS: u8 = 0x4;
pub const PADDED: u8 = 0x8;
pub const PRIORITY_FLAG: u8 = 0x20;
/// The flags of a request that is its head alone.
pub const WHOLE: u8 = END_STREAM | END_HEADERS;

pub const NO_ERROR: u32 = 0;
pub const PROTOCOL_ERROR: u32 = 1;
pub const FLOW_CONTROL_ERROR: u32 = 3;
pub const STREAM_CLOSED: u32 = 5;
pub const FRAME_SIZE_ERROR: u32 = 6;
pub const REFUSED_STREAM: u32 = 7;
pub const CANCEL: u32 = 8;
pub const COMPRESSION_ERROR: u32 = 9;
pub const ENHANCE_YOUR_CALM: u32 = 11;

/// The stream on which cases play.
pub const STREAM: u32 = 1;

/// A frame whose length says what its payload is.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    lying_frame(payload.len(), kind, flags, stream, payload)
}

/// A frame whose length says anything.
pub fn lying_frame(length: usize, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(length).expect("a case's own length");
    let mut out = length.to_be_bytes()[1..].to_vec();
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
    out
}

/// A literal field without indexing.
pub fn field(name: &str, value: &str) -> Vec<u8> {
    let mut out = vec![0];
    out.extend(string(name));
    out.extend(string(value));
    out
}

/// A literal field that goes to the dynamic table.
pub fn indexed_field(name: &str, value: &str) -> Vec<u8> {
    let mut out = vec![0x40];
    out.extend(string(name));
    out.extend(string(value));
    out
}

fn string(text: &str) -> Vec<u8> {
    let bytes = to_bytes(text);
    let mut out = Vec::with_capacity(bytes.len() + 4);
    if bytes.len() < 127 {
        out.push(u8::try_from(bytes.len()).expect("below 127"));
    } else {
        out.push(127);
        let mut rest = bytes.len() - 127;
        while rest >= 128 {
            out.push(u8::try_from(rest % 128).expect("below 128") | 0x80);
            rest /= 128;
        }
        out.push(u8::try_from(rest).expect("below 128"));
    }
    out.extend(bytes);
    out
}

/// A field block.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    fields.iter().flat_map(|(name, value)| field(name, value)).collect()
}

/// The block of a request for `path` at `a.test`, with further fields.
pub fn request(method: &str, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let scheme = Transport::current().scheme();
    let mut out =
        block(&[(":method", method), (":scheme", scheme), (":authority", "a.test"), (":path", path)]);
    out.extend(block(fields));
    out
}

/// HEADERS of [`STREAM`] with everything in one frame, or in as many CONTINUATION as it takes.
pub fn headers(flags: u8, block: &[u8]) -> Vec<u8> {
    headers_on(STREAM, flags, block)
}

/// The same on another stream.
pub fn headers_on(stream: u32, flags: u8, block: &[u8]) -> Vec<u8> {
    const MOST: usize = 16 * 1024;
    if block.len() <= MOST {
        return frame(HEADERS, flags, stream, block);
    }
    let mut pieces = block.chunks(MOST).peekable();
    let mut out = frame(HEADERS, flags & !END_HEADERS, stream, pieces.next().unwrap_or_default());
    while let Some(piece) = pieces.next() {
        let flags = if pieces.peek().is_none() { flags & END_HEADERS } else { 0 };
        out.extend(frame(CONTINUATION, flags, stream, piece));
    }
    out
}

/// A GET of `path` with further fields, whole.
pub fn get(path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    headers(WHOLE, &request("GET", path, fields))
}

/// The head of a POST with further fields, and then these pieces of content; the last one ends the stream.
pub fn post(fields: &[(&str, &str)], pieces: &[&str]) -> Vec<u8> {
    let mut out = headers(END_HEADERS, &request("POST", "/", fields));
    for (n, piece) in pieces.iter().enumerate() {
        let ends = u8::from(n + 1 == pieces.len());
        out.extend(frame(DATA, ends, STREAM, &to_bytes(piece)));
    }
    out
}

/// DATA of [`STREAM`].
pub fn data(flags: u8, content: &str) -> Vec<u8> {
    frame(DATA, flags, STREAM, content.as_bytes())
}

/// One setting.
pub fn setting(id: u16, value: u32) -> Vec<u8> {
    let mut payload = id.to_be_bytes().to_vec();
    payload.extend(value.to_be_bytes());
    frame(SETTINGS, 0, 0, &payload)
}

pub fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

pub fn window_update(stream: u32, by: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &by.to_be_bytes())
}
