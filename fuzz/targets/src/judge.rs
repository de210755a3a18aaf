//! Which differences are on the written list, and which are findings.
//!
//! Each entry of fuzz/DIFFERENCES.md has its condition here, checked on what hyper read and on the input: a refusal
//! for a reason that the input does not show is a finding as well. The panics are the fuzzer's signal.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, header};
use larder_http::authority::Authority;
use larder_http::framing::{Chunked, Decoded, FramingError, parse_length};
use larder_http::message::Scheme;
use larder_listen::Refusal;

use crate::hypers::{self, Raw};
use crate::ours;
use crate::seen::Seen;

/// Asked after the content under test: whoever finds another end of the content does not see it.
const NEXT: &[u8] = b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n";

/// HTTP/2 on the same port is not hyper's HTTP/1 server's business.
pub fn is_comparable(input: &[u8]) -> bool {
    !holds(input, b"PRI")
}

/// Compares two readings of one connection.
///
/// # Panics
/// On a difference that is not on the list.
pub fn connections(input: &[u8], ours: &ours::Reading, hypers: &hypers::Reading) {
    let count = ours.requests.len().max(hypers.requests.len());
    for at in 0..count {
        match (ours.requests.get(at), hypers.requests.get(at)) {
            (Some(mine), Some((theirs, raw))) => {
                if !one_request(input, ours, mine, theirs, raw) {
                    return;
                }
            }
            (None, Some((theirs, raw))) => {
                match ours.refusal {
                    Some(refusal) => assert!(
                        splits_a_line_end(refusal, at, hypers) || may_refuse(refusal, input, theirs, raw),
                        "refused for {refusal:?}, which hyper does not see in {theirs:?}"
                    ),
                    None => assert!(may_close(hypers, at), "closed without a word before {theirs:?}"),
                }
                return;
            }
            (Some(mine), None) => {
                let error = hypers.error.as_deref().unwrap_or("closed without a word");
                panic!("read {mine:?}, where hyper: {error}");
            }
            (None, None) => return,
        }
    }
}

/// Compares one request; false where the comparison ends with it.
fn one_request(input: &[u8], ours: &ours::Reading, mine: &Seen, theirs: &Seen, raw: &Raw) -> bool {
    assert_eq!(
        (&mine.method, &mine.target, &mine.version, &mine.authority, &mine.fields),
        (&theirs.method, &theirs.target, &theirs.version, &expected_authority(theirs), &theirs.fields),
        "one head, read in two ways"
    );
    match (mine.whole, theirs.whole) {
        (true, true) => {
            assert_eq!(mine.content, theirs.content, "one content, read in two ways");
            true
        }
        (false, true) => {
            let refusal = ours.refusal.expect("content breaks for a reason");
            assert!(
                may_refuse(refusal, input, theirs, raw),
                "content broken by {refusal:?}, whole for hyper"
            );
            false
        }
        (true, false) => panic!("content whole, which hyper does not see: {mine:?}"),
        (false, false) => {
            let both = mine.content.len().min(theirs.content.len());
            assert_eq!(mine.content[..both], theirs.content[..both], "one content, read in two ways");
            false
        }
    }
}

/// An HTTP/1.0 request may come without Host: larder takes the address that it came to, hyper has no opinion.
fn expected_authority(theirs: &Seen) -> Option<String> {
    let unnamed = theirs.authority.is_none() && theirs.version == "HTTP/1.0";
    if unnamed { Some(ours::LOCAL.to_owned()) } else { theirs.authority.clone() }
}

/// Whether the content before ended in the middle of what looks like a line end: hyper skips a lone line feed there.
fn splits_a_line_end(refusal: Refusal, at: usize, hypers: &hypers::Reading) -> bool {
    let before = at.checked_sub(1).and_then(|before| hypers.requests.get(before));
    refusal == Refusal::LineEnd && before.is_some_and(|(seen, _)| seen.content.ends_with(b"\r"))
}

/// Whether larder may refuse what hyper read as `theirs`, for this reason.
fn may_refuse(refusal: Refusal, input: &[u8], theirs: &Seen, raw: &Raw) -> bool {
    let hosts = || raw.fields.get_all(header::HOST).iter();
    let is_canonical = |host: &[u8]| Authority::parse(Bytes::copy_from_slice(host), Scheme::Http).is_ok();
    // The authority of a target in absolute form.
    let is_odd_name = raw.uri.authority().is_some_and(|named| !is_canonical(named.as_str().as_bytes()));
    let is_other_scheme = raw.uri.scheme_str().is_some_and(|scheme| scheme != "http");
    match refusal {
        Refusal::LineEnd => has_bare_line_end(input),
        Refusal::Control => input.iter().any(|byte| is_control(*byte)),
        Refusal::Method => matches!(theirs.method.as_str(), "CONNECT" | "TRACE") || theirs.method.len() > 32,
        // hyper cuts a fragment off before anybody sees it.
        Refusal::Target => input.contains(&b'#') || is_odd_name || is_other_scheme || !is_plain_target(raw),
        Refusal::TargetTooLong => raw.uri.to_string().len() > 8 * 1024,
        Refusal::Scheme => is_other_scheme,
        Refusal::FieldTooLarge => {
            raw.fields.iter().any(|(name, value)| name.as_str().len() + value.len() > 16 * 1024 - 8)
        }
        Refusal::TooManyFields => raw.fields.len() > 100,
        Refusal::HeadTooLarge => input.len() > 32 * 1024,
        Refusal::HostCount => hosts().count() != 1,
        Refusal::Host(_) => is_odd_name || hosts().any(|host| !is_canonical(host.as_bytes())),
        Refusal::Framing(error) => may_doubt(error, input, &raw.fields, theirs),
        Refusal::Expectation => raw.fields.contains_key(header::EXPECT),
        Refusal::BodyCut => !theirs.whole,
        // More than one empty line before it; behind content this cannot be told from the end of a head.
        Refusal::RequestLine => {
            let before = format!("\r\n\r\n{} ", theirs.method);
            holds(input, before.as_bytes()) || input.starts_with(b"\r\n\r\n") || holds(input, b"\r\n\r\n\r\n")
        }
        Refusal::ClearText
        | Refusal::Version
        | Refusal::FieldLine
        | Refusal::HeadTimeout
        | Refusal::BodyTimeout
        | Refusal::BodyTooLarge => false,
    }
}

/// Whether larder may doubt the framing of what hyper read.
fn may_doubt(error: FramingError, input: &[u8], fields: &HeaderMap, theirs: &Seen) -> bool {
    // hyper resolves some doubts by taking lines away, so the input is asked as well.
    let lines = |name: &str| {
        let name = name.as_bytes();
        input.windows(name.len()).filter(|bytes| bytes.eq_ignore_ascii_case(name)).count()
    };
    let lengths = fields.get_all(header::CONTENT_LENGTH);
    let encodings = fields.get_all(header::TRANSFER_ENCODING);
    match error {
        FramingError::Both => lines("content-length") > 0 && lines("transfer-encoding") > 0,
        FramingError::ContentLength => {
            lines("content-length") > 1
                || lengths.iter().any(|length| parse_length(length.as_bytes()).is_err())
        }
        FramingError::TransferEncoding => {
            encodings.iter().count() > 1
                || theirs.version == "HTTP/1.0"
                || encodings.iter().any(|e| !e.as_bytes().eq_ignore_ascii_case(b"chunked"))
        }
        in_content => may_refuse_content(in_content, input),
    }
}

/// Whether larder may close where hyper reads on: at `at` stands what hyper saw next.
fn may_close(hypers: &hypers::Reading, at: usize) -> bool {
    // hyper overlooks `close` beside bytes that are not ASCII.
    let says_close = |value: &HeaderValue| holds(&value.as_bytes().to_ascii_lowercase(), b"close");
    let before = at.checked_sub(1).and_then(|before| hypers.requests.get(before));
    before.is_some_and(|(_, raw)| raw.fields.get_all(header::CONNECTION).iter().any(says_close))
}

fn holds(input: &[u8], wanted: &[u8]) -> bool {
    input.windows(wanted.len()).any(|bytes| bytes == wanted)
}

fn is_control(byte: u8) -> bool {
    (byte < 0x20 && !matches!(byte, b'\t' | b'\r' | b'\n')) || byte == 0x7f
}

fn has_bare_line_end(input: &[u8]) -> bool {
    let after_cr = |at: usize| at > 0 && input[at - 1] == b'\r';
    (0..input.len()).any(|at| match input[at] {
        b'\n' => !after_cr(at),
        b'\r' => input.get(at + 1) != Some(&b'\n'),
        _ => false,
    })
}

fn is_plain_target(raw: &Raw) -> bool {
    let target = raw.uri.path_and_query().map_or("", |target| target.as_str());
    target.starts_with('/') && target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')
}

/// What the decoder made of content.
#[derive(Debug, PartialEq, Eq)]
struct Decoding {
    data: Vec<u8>,
    /// What is left after the end; `None` where more was needed.
    end: Result<Option<Vec<u8>>, FramingError>,
}

/// Decodes `input`, which arrives in pieces of `piece` bytes.
fn decode(input: &[u8], piece: usize) -> Decoding {
    let (mut decoder, mut buffer, mut data) = (Chunked::default(), BytesMut::new(), Vec::new());
    let mut pieces = input.chunks(piece);
    loop {
        match decoder.decode(&mut buffer) {
            Ok(Decoded::Data(more)) => data.extend_from_slice(&more),
            Ok(Decoded::End) => {
                let rest = buffer.iter().copied().chain(pieces.flatten().copied()).collect();
                return Decoding { data, end: Ok(Some(rest)) };
            }
            Ok(Decoded::NeedMore) => match pieces.next() {
                Some(more) => buffer.extend_from_slice(more),
                None => return Decoding { data, end: Ok(None) },
            },
            Err(error) => {
                return Decoding { data, end: Err(error) };
            }
        }
    }
}

/// Compares the decoder with itself and with hyper's on chunked content.
///
/// # Panics
/// On a difference that is not on the list.
pub fn content(input: &[u8]) {
    let input = [input, NEXT].concat();
    let mine = decode(&input, input.len());
    assert_eq!(mine, decode(&input, 1), "the same content in pieces");
    assert_eq!(mine, decode(&input, 7), "the same content in pieces");
    let head: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let hypers = hypers::read(&[head, &input].concat());
    let (theirs, _) = hypers.requests.first().expect("hyper reads a plain head");
    match (&mine.end, theirs.whole) {
        (Ok(Some(rest)), true) => {
            assert_eq!(mine.data, theirs.content, "one content, read in two ways");
            if rest == NEXT {
                let next = hypers.requests.get(1).map(|(seen, _)| seen.target.as_str());
                assert_eq!(next, Some("/next"), "the content ends elsewhere for hyper");
            }
        }
        (Ok(Some(_)), false) => {
            let error = hypers.error.as_deref().unwrap_or_default();
            panic!("content whole, which hyper does not see: {error}");
        }
        (Ok(None), true) => panic!("content ends for hyper, and more is waited for"),
        (Err(error), true) => {
            assert!(may_refuse_content(*error, &input), "{error:?}, which hyper does not see")
        }
        (Ok(None) | Err(_), false) => {
            let both = mine.data.len().min(theirs.content.len());
            assert_eq!(mine.data[..both], theirs.content[..both], "one content, read in two ways");
        }
    }
}

/// Whether larder's decoder may refuse `input`, which hyper's takes.
fn may_refuse_content(error: FramingError, input: &[u8]) -> bool {
    match error {
        // hyper skips space around the size, and takes any number of leading zeros.
        FramingError::ChunkSize => {
            input.iter().any(|byte| matches!(byte, b' ' | b'\t'))
                || longest_run(input, u8::is_ascii_hexdigit) > 16
        }
        // hyper takes every byte but a line feed, and up to 16 KiB.
        FramingError::ChunkExtension => {
            input.iter().any(|byte| is_control(*byte)) || has_bare_line_end(input) || input.len() > 4096
        }
        // hyper takes bare line feeds between trailer lines, and folds nothing.
        FramingError::Trailer => has_bare_line_end(input),
        FramingError::ChunkEnd
        | FramingError::Both
        | FramingError::ContentLength
        | FramingError::TransferEncoding => false,
    }
}

fn longest_run(input: &[u8], belongs: impl Fn(&u8) -> bool) -> usize {
    input.split(|byte| !belongs(byte)).map(<[u8]>::len).max().unwrap_or(0)
}
