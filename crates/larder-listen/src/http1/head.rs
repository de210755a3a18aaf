//! The head of an HTTP/1 request: found, checked and typed (RFC 9112 2 to 5).
//!
//! In: bytes as they arrive. [`Scan`] looks at each byte once, so that no client can make it scan the same bytes
//! twice. It finds the lines and refuses what no head may hold: a bare CR or LF, NUL and other controls, folded
//! lines, and anything beyond the limits. [`parse`] then types the lines of a whole head; values are slices of the
//! read buffer. The tokeniser is our own, because after the scan it is a search for a colon. httparse takes every
//! head that it takes, with the same tokens (a property test holds that); the reverse is not true.
//! Deliberately absent: leniency. One empty line before a request line is all that is forgiven (RFC 9112 2.2).

use std::net::SocketAddr;
use std::ops::Range;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, EXPECT, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Version};
use larder_http::authority::Authority;
use larder_http::connection::{self, ConnectionOptions};
use larder_http::framing::{self, Framing};
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::{self, Target};
use larder_http::trailers;
use smallvec::SmallVec;

use crate::error::Refusal;
use crate::settings::Limits;

/// The longest method name that is looked at.
pub(crate) const METHOD_BYTES_MAX: usize = 32;
/// Two spaces and the version.
const REQUEST_LINE_REST: usize = 10;

/// A search for the end of a head, over bytes that come in any portions.
#[derive(Debug, Default)]
pub struct Scan {
    start: usize,
    position: usize,
    line_start: usize,
    /// Where each line ends, its CRLF excluded.
    ends: SmallVec<[usize; 32]>,
    /// Whether the request line of an unfinished head has been looked at.
    line_is_checked: bool,
}

impl Scan {
    /// Looks at what is new in `buffer`, which holds the same bytes as before and perhaps more. Returns where the
    /// head lies once it is whole.
    ///
    /// # Errors
    /// The bytes so far cannot begin any head that would be served.
    pub fn advance(&mut self, buffer: &[u8], limits: &Limits) -> Result<Option<Range<usize>>, Refusal> {
        loop {
            let rest = buffer.get(self.position..).unwrap_or_default();
            let run = framing::field_run(rest);
            self.position += run;
            match rest.get(run..).unwrap_or_default() {
                [] | [b'\r'] => {
                    self.check_line(limits)?;
                    self.check_request_line(buffer)?;
                    return Ok(None);
                }
                [b'\r', b'\n', ..] => {
                    self.check_line(limits)?;
                    if let Some(end) = self.end_line(limits)? {
                        return Ok(Some(self.start..end));
                    }
                }
                [b'\r' | b'\n', ..] => return Err(Refusal::LineEnd),
                _ => return Err(Refusal::Control),
            }
        }
    }

    /// Forgets everything, for the next head at the front of the buffer.
    pub fn reset(&mut self) {
        self.start = 0;
        self.position = 0;
        self.line_start = 0;
        self.ends.clear();
        self.line_is_checked = false;
    }

    /// Of a head that does not come at once, the request line is looked at as soon as it is whole: whoever speaks
    /// HTTP/0.9, or no HTTP at all, learns it now and not when the time for a head is over.
    fn check_request_line(&mut self, buffer: &[u8]) -> Result<(), Refusal> {
        if let (Some(end), false) = (self.ends.first(), self.line_is_checked) {
            self.line_is_checked = true;
            let line = buffer.get(self.start..*end).unwrap_or_default();
            request_line(line)?;
        }
        Ok(())
    }

    fn end_line(&mut self, limits: &Limits) -> Result<Option<usize>, Refusal> {
        let (line_start, line_end) = (self.line_start, self.position);
        self.position += 2;
        self.line_start = self.position;
        if line_start < line_end {
            self.ends.push(line_end);
            return if self.ends.len() > limits.fields_max + 1 {
                Err(Refusal::TooManyFields)
            } else {
                Ok(None)
            };
        }
        if !self.ends.is_empty() {
            return Ok(Some(self.position));
        }
        if self.start > 0 {
            return Err(Refusal::RequestLine);
        }
        self.start = self.position;
        Ok(None)
    }

    /// Holds the line so far, and the head so far, against the limits.
    fn check_line(&self, limits: &Limits) -> Result<(), Refusal> {
        let line_bytes = self.position - self.line_start;
        if self.ends.is_empty() {
            let most = limits.target_bytes_max + METHOD_BYTES_MAX + REQUEST_LINE_REST;
            if line_bytes > most {
                return Err(Refusal::TargetTooLong);
            }
        } else if line_bytes > limits.field_bytes_max {
            return Err(Refusal::FieldTooLarge);
        }
        // At least the line ends that close the head are still to come.
        let to_come = if line_bytes == 0 { 2 } else { 4 };
        if self.position - self.start + to_come > limits.head_bytes_max {
            return Err(Refusal::HeadTooLarge);
        }
        Ok(())
    }
}

/// A request head, and what it said to this connection alone.
#[derive(Debug)]
pub struct ParsedHead {
    /// What is asked, end to end.
    pub head: RequestHead,
    /// How its content is delimited.
    pub framing: Framing,
    /// What Connection and its kin said.
    pub options: ConnectionOptions,
    /// Whether the client waits for `100 Continue`.
    pub expects_continue: bool,
    /// Whether it is a well-formed opening of a WebSocket (RFC 6455 4.1).
    pub websocket: bool,
    /// Trailers that are announced to come behind the content.
    pub announced: Option<Box<HeaderValue>>,
}

/// Types the head that `scan` found at `extent` of `buffer`, whose first byte is the scan's. `known` is the host that this
/// connection asked for last: nearly all ask for the same again, and it is parsed once.
///
/// # Errors
/// The first rule that it breaks.
pub fn parse(
    buffer: &Bytes,
    extent: &Range<usize>,
    scan: &Scan,
    scheme: Scheme,
    local: SocketAddr,
    limits: &Limits,
    known: &mut Option<Authority>,
) -> Result<ParsedHead, Refusal> {
    let mut ends = scan.ends.iter().copied();
    let line_end = ends.next().ok_or(Refusal::RequestLine)?;
    let line = buffer.get(extent.start..line_end).unwrap_or_default();
    let (method, target, version) = request_line(line)?;
    let raw_target = buffer.slice_ref(target);
    if raw_target.len() > limits.target_bytes_max {
        return Err(Refusal::TargetTooLong);
    }

    let mut fields = HeaderMap::new();
    // All but the request line and Host, which is no field any more: where there is no other, nothing is allocated.
    fields.reserve(scan.ends.len().saturating_sub(2));
    let (mut host, mut is_framed, mut is_expecting) = (None, false, false);
    let mut line_start = line_end + 2;
    for line_end in ends {
        let (name, value) = field_line(buffer.get(line_start..line_end).unwrap_or_default())?;
        line_start = line_end + 2;
        // Every request has it, and it needs no name of its own.
        if name.eq_ignore_ascii_case(HOST.as_str().as_bytes()) {
            if host.replace(value).is_some() {
                return Err(Refusal::HostCount);
            }
            continue;
        }
        let name = HeaderName::from_bytes(name).map_err(|_| Refusal::FieldLine)?;
        is_framed |= name == CONTENT_LENGTH || name == TRANSFER_ENCODING;
        is_expecting |= name == EXPECT;
        let value = HeaderValue::from_maybe_shared(buffer.slice_ref(value)).map_err(|_| Refusal::Control)?;
        fields.try_append(name, value).map_err(|_| Refusal::TooManyFields)?;
    }

    let framing = if is_framed {
        framing::take_request_framing(&mut fields, version).map_err(Refusal::Framing)?
    } else {
        Framing::None
    };
    let host = host.map(|host| authority_of(host, scheme, known)).transpose()?;
    let (authority, target) = whom_and_what(&method, raw_target, host, version, scheme, local)?;
    let expects_continue = is_expecting && take_expectation(&mut fields, version)?;
    let has_content = !matches!(framing, Framing::None | Framing::Length(_));
    let announced = if has_content { trailers::announced(&fields).map(Box::new) } else { None };
    let options = connection::strip(&mut fields);
    let websocket = options.upgrade
        && options.websocket
        && version == Version::HTTP_11
        && method == Method::GET
        && framing == Framing::None
        && is_single(&fields, "sec-websocket-key")
        && is_single(&fields, "sec-websocket-version");
    Ok(ParsedHead {
        head: RequestHead { method, scheme, authority, target, version, fields },
        framing,
        options,
        expects_continue,
        websocket,
        announced,
    })
}

fn request_line(line: &[u8]) -> Result<(Method, &[u8], Version), Refusal> {
    // Nearly all are of this form, and there is nothing more to check of it.
    let plain = line.strip_prefix(b"GET ").and_then(|line| line.strip_suffix(b" HTTP/1.1"));
    if let Some(target) = plain.filter(|target| !target.is_empty() && !target.contains(&b' ')) {
        return Ok((Method::GET, target, Version::HTTP_11));
    }
    let mut parts = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Refusal::RequestLine);
    };
    let version = match version {
        b"HTTP/1.1" => Version::HTTP_11,
        b"HTTP/1.0" => Version::HTTP_10,
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => return Err(Refusal::Version),
        _ => return Err(Refusal::RequestLine),
    };
    if method.is_empty() || target.is_empty() || !method.iter().all(|b| framing::is_token_byte(*b)) {
        return Err(Refusal::RequestLine);
    }
    if method.len() > METHOD_BYTES_MAX {
        return Err(Refusal::Method);
    }
    let method = Method::from_bytes(method).map_err(|_| Refusal::RequestLine)?;
    // CONNECT would make a tunnel of us, TRACE would echo credentials.
    if method == Method::CONNECT || method == Method::TRACE {
        return Err(Refusal::Method);
    }
    Ok((method, target, version))
}

/// A field's name, which is a token, and its value.
fn field_line(bytes: &[u8]) -> Result<(&[u8], &[u8]), Refusal> {
    let colon = bytes.iter().position(|byte| !framing::is_token_byte(*byte)).ok_or(Refusal::FieldLine)?;
    let (name, value) = bytes.split_at(colon);
    // Space before the colon, folded lines and empty names all fail here: a space is no token byte.
    if name.is_empty() || value.first() != Some(&b':') {
        return Err(Refusal::FieldLine);
    }
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let value = value.get(1..).unwrap_or_default();
    let leading = value.iter().take_while(|byte| is_space(byte)).count();
    let value = value.get(leading..).unwrap_or_default();
    let trailing = value.iter().rev().take_while(|byte| is_space(byte)).count();
    Ok((name, value.get(..value.len() - trailing).unwrap_or_default()))
}

fn authority_of(host: &[u8], scheme: Scheme, known: &mut Option<Authority>) -> Result<Authority, Refusal> {
    if let Some(known) = known.as_ref().filter(|known| known.as_str().as_bytes() == host) {
        return Ok(known.clone());
    }
    // A copy, which does not hold the read buffer as long as the connection lasts.
    let parsed = Authority::parse(Bytes::copy_from_slice(host), scheme).map_err(Refusal::Host)?;
    *known = Some(parsed.clone());
    Ok(parsed)
}

/// The authority and the target, from whichever form the target has (RFC 9112 3.2, 3.3).
fn whom_and_what(
    method: &Method,
    raw_target: Bytes,
    host: Option<Authority>,
    version: Version,
    scheme: Scheme,
    local: SocketAddr,
) -> Result<(Authority, Target), Refusal> {
    let host = match host {
        Some(host) => Some(host),
        None if version == Version::HTTP_11 => return Err(Refusal::HostCount),
        None => None,
    };
    if raw_target.first() == Some(&b'/') || raw_target.as_ref() == b"*" {
        let authority = match host {
            Some(host) => host,
            // An HTTP/1.0 client that names no host asks for whoever listens here.
            None => Authority::parse(local.to_string().into(), scheme).map_err(Refusal::Host)?,
        };
        let target = if raw_target.as_ref() != b"*" {
            Target::parse(raw_target).map_err(|_| Refusal::Target)?
        } else if method == Method::OPTIONS {
            Target::asterisk()
        } else {
            return Err(Refusal::Target);
        };
        return Ok((authority, target));
    }
    let (its_scheme, authority, origin_form) =
        target::absolute_form(&raw_target).map_err(|_| Refusal::Target)?;
    if its_scheme != scheme {
        return Err(Refusal::Scheme);
    }
    let authority = Authority::parse(authority, scheme).map_err(Refusal::Host)?;
    let names_no_path = origin_form.as_ref() == b"/" && raw_target.last() != Some(&b'/');
    let target = if method == Method::OPTIONS && names_no_path {
        // RFC 9112 3.2.4: the last proxy before the origin writes it as `*`.
        Target::asterisk()
    } else {
        Target::parse(origin_form).map_err(|_| Refusal::Target)?
    };
    Ok((authority, target))
}

fn take_expectation(fields: &mut HeaderMap, version: Version) -> Result<bool, Refusal> {
    let mut values = fields.get_all(EXPECT).iter();
    let is_continue =
        values.next().is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
            && values.next().is_none();
    fields.remove(EXPECT);
    match (version, is_continue) {
        // RFC 9110 10.1.1: from an HTTP/1.0 client it means nothing.
        (Version::HTTP_10, _) => Ok(false),
        (_, true) => Ok(true),
        (_, false) => Err(Refusal::Expectation),
    }
}

fn is_single(fields: &HeaderMap, name: &'static str) -> bool {
    let mut values = fields.get_all(name).iter();
    values.next().is_some_and(|value| !value.is_empty()) && values.next().is_none()
}
