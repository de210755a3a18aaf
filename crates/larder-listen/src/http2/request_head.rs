//! The head of an HTTP/2 request: checked and typed (RFC 9113 8.2, 8.3).
//!
//! In: fields as the decoder gives them. Out: the same [`RequestHead`] that HTTP/1 makes, held to the same limits and the same grammar, so
//! that nothing comes in by one protocol that the other would refuse. What RFC 9113 calls malformed is told apart: its stream is reset.
//! Fields are counted as they were sent, each crumb of a cookie by itself, and only then the crumbs are joined.

use bytes::Bytes;
use http::header::{self, CONTENT_LENGTH, COOKIE, EXPECT, HOST, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Version};
use larder_http::authority::Authority;
use larder_http::connection;
use larder_http::field_block::{Name, Pseudo};
use larder_http::framing::{FramingError, parse_length};
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::Target;
use larder_http::trailers::{self, Wish};

use super::hpack::decode::DecodedField;
use super::priority::{PRIORITY_FIELD, Priority};
use crate::error::Refusal;
use crate::http1::head::METHOD_BYTES_MAX;
use crate::settings::Limits;

/// A typed head and what it said about its content.
#[derive(Debug)]
pub(super) struct ParsedRequest {
    pub(super) head: RequestHead,
    pub(super) length: Option<u64>,
    pub(super) expects_continue: bool,
    pub(super) trailers: Wish,
    pub(super) priority: Option<Priority>,
}

/// Why there is no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRequest {
    /// RFC 9113 8.1.1: the stream is reset, and the log says why.
    Malformed(Refusal),
    /// It is answered.
    Refused(Refusal),
}

/// The last host of a connection, and its text as it was sent: most requests name the same.
pub(super) type KnownHost = Option<(Bytes, Authority)>;

/// What is known beside a block of what it may say.
pub(super) struct HeadContext<'a> {
    /// The connection's.
    pub(super) scheme: Scheme,
    /// Whether the client is a trusted peer, which may state the other scheme.
    pub(super) is_trusted: &'a dyn Fn() -> bool,
    pub(super) limits: &'a Limits,
    pub(super) known_host: &'a mut KnownHost,
}

/// Which fields there are that a head has to be read for: nearly all requests have none of them.
#[derive(Clone, Copy, Debug, Default)]
struct Noted {
    host: bool,
    length: bool,
    expectation: bool,
    of_connection: bool,
}

/// What `:scheme` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatedScheme {
    /// The connection's.
    Own,
    /// The other one of http and https.
    Other,
    Unknown,
}

/// A head in the making.
#[derive(Debug, Default)]
pub(super) struct HeadBuilder {
    method: Option<Result<Method, Refusal>>,
    scheme: Option<StatedScheme>,
    authority: Option<Result<Authority, Refusal>>,
    path: Option<Bytes>,
    fields: HeaderMap,
    cookie: Option<HeaderValue>,
    /// More than one, joined.
    crumbs: Vec<u8>,
    has_regular: bool,
    has: Noted,
    priority: Option<Priority>,
    no_request: Option<NoRequest>,
}

impl HeadBuilder {
    /// Takes the next field of the block.
    pub(super) fn field(&mut self, field: DecodedField<'_>, context: &mut HeadContext<'_>) {
        match field {
            DecodedField::Pseudo(pseudo, octets) => self.pseudo(pseudo, octets, context),
            DecodedField::Known(Name::Pseudo(pseudo), value) => {
                self.pseudo(*pseudo, value.as_bytes(), context);
            }
            DecodedField::Field(Name::Pseudo(pseudo), value) => {
                self.pseudo(pseudo, value.as_bytes(), context);
            }
            DecodedField::Known(Name::Regular(name), value) => {
                self.regular(name.clone(), value.clone(), context.limits);
            }
            DecodedField::Field(Name::Regular(name), value) => self.regular(name, value, context.limits),
            DecodedField::Malformed(_) => self.fail(NoRequest::Malformed(Refusal::FieldLine)),
        }
    }

    /// Whether it asks for a head alone.
    pub(super) fn is_head(&self) -> bool {
        matches!(self.method, Some(Ok(Method::HEAD)))
    }

    fn fail(&mut self, why: NoRequest) {
        // Malformed counts before all else.
        if !matches!(self.no_request, Some(NoRequest::Malformed(_))) {
            self.no_request = Some(why);
        }
    }

    fn pseudo(&mut self, pseudo: Pseudo, octets: &[u8], context: &mut HeadContext<'_>) {
        let (is_first, refusal) = match pseudo {
            Pseudo::Method => {
                let method = match octets {
                    b"GET" => Ok(Method::GET),
                    octets if octets.len() > METHOD_BYTES_MAX => Err(Refusal::Method),
                    octets => Method::from_bytes(octets).map_err(|_| Refusal::RequestLine),
                };
                (self.method.replace(method).is_none(), Refusal::Method)
            }
            Pseudo::Scheme => {
                let is = |scheme: Scheme| octets.eq_ignore_ascii_case(scheme.as_str().as_bytes());
                let stated = match () {
                    () if is(context.scheme) => StatedScheme::Own,
                    () if is(context.scheme.other()) => StatedScheme::Other,
                    () => StatedScheme::Unknown,
                };
                (self.scheme.replace(stated).is_none(), Refusal::Scheme)
            }
            Pseudo::Authority => {
                (self.authority.replace(typed(octets, context)).is_none(), Refusal::HostCount)
            }
            Pseudo::Path => (self.path.replace(Bytes::copy_from_slice(octets)).is_none(), Refusal::Target),
            // Extended CONNECT is not offered.
            Pseudo::Protocol | Pseudo::Status => (false, Refusal::FieldLine),
        };
        if self.has_regular || !is_first {
            self.fail(NoRequest::Malformed(refusal));
        }
    }

    fn regular(&mut self, name: HeaderName, value: HeaderValue, limits: &Limits) {
        self.has_regular = true;
        if is_of_http1(&name) || (name == header::TE && !value.as_bytes().eq_ignore_ascii_case(b"trailers")) {
            return self.fail(NoRequest::Malformed(Refusal::FieldLine));
        }
        if name.as_str().len() + value.len() > limits.field_bytes_max {
            return self.fail(NoRequest::Refused(Refusal::FieldTooLarge));
        }
        match name {
            COOKIE => return self.crumb(value),
            HOST => self.has.host = true,
            CONTENT_LENGTH => self.has.length = true,
            EXPECT => self.has.expectation = true,
            _ if name == PRIORITY_FIELD => {
                self.priority = Some(self.priority.unwrap_or_default().with(value.as_bytes()));
            }
            _ => self.has.of_connection |= connection::is_connection_level(&name),
        }
        self.fields.append(name, value);
    }

    /// Joins the crumbs into which a client may have split its Cookie field (RFC 9113 8.2.3).
    fn crumb(&mut self, value: HeaderValue) {
        let Some(first) = &self.cookie else {
            self.cookie = Some(value);
            return;
        };
        if self.crumbs.is_empty() {
            self.crumbs.extend_from_slice(first.as_bytes());
        }
        self.crumbs.extend_from_slice(b"; ");
        self.crumbs.extend_from_slice(value.as_bytes());
    }

    /// The typed head. `is_over`: the block had more than the limits allow. `ends`: no content follows.
    #[inline]
    pub(super) fn finish(
        &mut self,
        (is_over, ends): (bool, bool),
        context: &mut HeadContext<'_>,
    ) -> Result<ParsedRequest, NoRequest> {
        match self.no_request {
            Some(NoRequest::Malformed(why)) => return Err(NoRequest::Malformed(why)),
            _ if is_over => return Err(NoRequest::Refused(Refusal::HeadTooLarge)),
            Some(why) => return Err(why),
            None => {}
        }
        let refused = NoRequest::Refused;
        let method = self.method()?;
        let (Some(stated), Some(path)) = (self.scheme, self.path.take()) else {
            return Err(NoRequest::Malformed(Refusal::RequestLine));
        };
        if method == Method::TRACE {
            return Err(refused(Refusal::Method));
        }
        let scheme = match stated {
            StatedScheme::Own => context.scheme,
            StatedScheme::Other if (context.is_trusted)() => context.scheme.other(),
            StatedScheme::Other | StatedScheme::Unknown => return Err(refused(Refusal::Scheme)),
        };
        let target = match &path[..] {
            [] => return Err(NoRequest::Malformed(Refusal::Target)),
            path if path.len() > context.limits.target_bytes_max => {
                return Err(refused(Refusal::TargetTooLong));
            }
            b"*" if method == Method::OPTIONS => Target::asterisk(),
            _ => Target::parse(path).map_err(|_| refused(Refusal::Target))?,
        };
        let mut fields = std::mem::take(&mut self.fields);
        let has = self.has;
        let authority = match (has.host, self.authority.take()) {
            (false, Some(authority)) => authority,
            (_, pseudo) => authority(pseudo, &mut fields, context),
        };
        let mut authority = authority.map_err(refused)?;
        if stated != StatedScheme::Own {
            // Another port goes without saying.
            let text = Bytes::copy_from_slice(authority.as_str().as_bytes());
            authority = Authority::parse(text, scheme).map_err(|why| refused(Refusal::Host(why)))?;
        }
        let length = if has.length { take_length(&mut fields).map_err(refused)? } else { None };
        if ends && length.is_some_and(|length| length > 0) {
            return Err(NoRequest::Malformed(Refusal::Framing(FramingError::ContentLength)));
        }
        let expects_continue = has.expectation && take_expectation(&mut fields).map_err(refused)?;
        if let Some(cookie) = self.cookie.take() {
            let joined = match self.crumbs.is_empty() {
                true => Ok(cookie),
                false => HeaderValue::from_maybe_shared(Bytes::from(std::mem::take(&mut self.crumbs))),
            };
            if let Ok(joined) = joined {
                fields.insert(COOKIE, joined);
            }
        }
        let trailers = match has.of_connection {
            true => {
                let announced = trailers::announced(&fields).map(Box::new);
                Wish { takes: connection::strip(&mut fields).te_trailers, announced }
            }
            false => Wish::default(),
        };
        let priority = self.priority;
        let head = RequestHead { method, scheme, authority, target, version: Version::HTTP_2, fields };
        Ok(ParsedRequest { head, length, expects_continue, trailers, priority })
    }

    fn method(&mut self) -> Result<Method, NoRequest> {
        let Some(method) = self.method.take() else {
            return Err(NoRequest::Malformed(Refusal::RequestLine));
        };
        let method = method.map_err(NoRequest::Refused)?;
        if method != Method::CONNECT {
            return Ok(method);
        }
        // RFC 9113 8.5: without a scheme and a path.
        Err(match self.scheme.is_none() && self.path.is_none() {
            true => NoRequest::Refused(Refusal::Method),
            false => NoRequest::Malformed(Refusal::Method),
        })
    }
}

/// Fields that frame messages of HTTP/1 (RFC 9113 8.2.2).
fn is_of_http1(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade"
    )
}

/// `:authority`, Host, or both where they agree.
fn authority(
    pseudo: Option<Result<Authority, Refusal>>,
    fields: &mut HeaderMap,
    context: &mut HeadContext<'_>,
) -> Result<Authority, Refusal> {
    let pseudo = pseudo.transpose()?;
    if !fields.contains_key(HOST) {
        return pseudo.ok_or(Refusal::HostCount);
    }
    let mut hosts = fields.get_all(HOST).iter();
    let host = hosts.next().map(|value| typed(value.as_bytes(), context)).transpose()?;
    let is_alone = hosts.next().is_none();
    fields.remove(HOST);
    match (pseudo, host) {
        (Some(pseudo), Some(host)) if is_alone && pseudo == host => Ok(pseudo),
        (None, Some(host)) if is_alone => Ok(host),
        _ => Err(Refusal::HostCount),
    }
}

fn typed(octets: &[u8], context: &mut HeadContext<'_>) -> Result<Authority, Refusal> {
    if let Some((_, authority)) = context.known_host.as_ref().filter(|(text, _)| *text == octets) {
        return Ok(authority.clone());
    }
    let text = Bytes::copy_from_slice(octets);
    let parsed = Authority::parse(text.clone(), context.scheme).map_err(Refusal::Host)?;
    *context.known_host = Some((text, parsed.clone()));
    Ok(parsed)
}

fn take_length(fields: &mut HeaderMap) -> Result<Option<u64>, Refusal> {
    let mut lengths = fields.get_all(CONTENT_LENGTH).iter();
    let Some(length) = lengths.next() else {
        return Ok(None);
    };
    let length = parse_length(length.as_bytes()).map_err(Refusal::Framing)?;
    if lengths.next().is_some() {
        return Err(Refusal::Framing(FramingError::ContentLength));
    }
    fields.remove(CONTENT_LENGTH);
    Ok(Some(length))
}

fn take_expectation(fields: &mut HeaderMap) -> Result<bool, Refusal> {
    let mut values = fields.get_all(EXPECT).iter();
    let Some(first) = values.next() else {
        return Ok(false);
    };
    if !first.as_bytes().eq_ignore_ascii_case(b"100-continue") || values.next().is_some() {
        return Err(Refusal::Expectation);
    }
    fields.remove(EXPECT);
    Ok(true)
}

/// The fields of a block behind content. A pseudo field among them is malformed, as a field of HTTP/1's framing is (RFC 9113 8.1, 8.2.2).
#[derive(Debug, Default)]
pub(super) struct TrailerBuilder {
    fields: HeaderMap,
    is_malformed: bool,
}

impl TrailerBuilder {
    /// Takes the next field of the block.
    pub(super) fn field(&mut self, field: DecodedField<'_>) {
        match field.into_owned() {
            DecodedField::Field(Name::Regular(name), value) if !is_of_http1(&name) => {
                self.fields.append(name, value);
            }
            _ => self.is_malformed = true,
        }
    }

    /// Those that may be passed on; `None` where there are none.
    pub(super) fn finish(self, is_over: bool) -> Result<Option<HeaderMap>, NoRequest> {
        let refusal = Refusal::Framing(FramingError::Trailer);
        if self.is_malformed {
            return Err(NoRequest::Malformed(refusal));
        }
        if is_over {
            return Err(NoRequest::Refused(refusal));
        }
        trailers::permitted(self.fields).map_err(|trailers::TooMany| NoRequest::Refused(refusal))
    }
}

#[cfg(test)]
mod tests {
    use larder_http::authority::AuthorityError;

    use super::super::hpack::decode::Malformed as MalformedField;
    use super::NoRequest::{Malformed, Refused};
    use super::*;

    type Lines<'a> = &'a [(&'a str, &'a str)];

    fn parse_with(lines: Lines<'_>, ends: bool, limits: &Limits) -> Result<ParsedRequest, NoRequest> {
        let mut builder = HeadBuilder::default();
        let context =
            &mut HeadContext { scheme: Scheme::Http, is_trusted: &|| false, limits, known_host: &mut None };
        for (name, value) in lines {
            let name = Name::parse(name.as_bytes());
            let field = match (name, HeaderValue::from_bytes(value.as_bytes())) {
                (Some(name), Ok(value)) => DecodedField::Field(name, value),
                (None, _) => DecodedField::Malformed(MalformedField::Name),
                (_, Err(_)) => DecodedField::Malformed(MalformedField::Value),
            };
            builder.field(field, context);
        }
        builder.finish((false, ends), context)
    }

    /// A request to `a.test` with these fields behind its pseudo fields.
    fn parse(method: &str, path: &str, fields: Lines<'_>) -> Result<ParsedRequest, NoRequest> {
        let pseudo = [(":method", method), (":scheme", "http"), (":authority", "a.test"), (":path", path)];
        parse_with(&[&pseudo, fields].concat(), true, &Limits::default())
    }

    #[track_caller]
    fn fails(parsed: Result<ParsedRequest, NoRequest>, why: NoRequest) {
        assert_eq!(parsed.map(|parsed| parsed.head).err(), Some(why));
    }

    #[test]
    fn a_head_is_typed_as_http1_would_type_it() {
        let fields =
            [("cookie", "a=1"), ("cookie", "b=2"), ("te", "trailers"), ("x", "y"), ("cookie", "c=3")];
        let parsed = parse("GET", "/p?q", &fields).expect("served");
        assert_eq!((parsed.head.authority.as_str(), parsed.head.target.as_str()), ("a.test", "/p?q"));
        assert_eq!(parsed.head.fields["cookie"], "a=1; b=2; c=3");
        assert_eq!((parsed.head.fields.len(), parsed.trailers.takes), (2, true));
        assert_eq!(parsed.priority, None);
        let parsed = parse("GET", "/", &[("priority", "u=1, i")]).expect("served");
        assert_eq!(parsed.priority, Some(Priority { urgency: 1, incremental: true }));
        assert!(parse("OPTIONS", "*", &[]).expect("served").head.target.is_asterisk());
    }

    #[test]
    fn authority_and_host_agree_or_the_request_is_refused() {
        let whom = |fields: Lines<'_>| {
            let pseudo = [(":method", "GET"), (":scheme", "http"), (":path", "/")];
            let parsed = parse_with(&[&pseudo, fields].concat(), true, &Limits::default());
            parsed.map(|parsed| (parsed.head.authority.as_str().to_owned(), parsed.head.fields.len()))
        };
        for fields in [
            &[(":authority", "a.test")][..],
            &[(":authority", "A.test:80"), ("host", "a.test")],
            &[("host", "A.test.")],
        ] {
            assert_eq!(whom(fields), Ok(("a.test".to_owned(), 0)));
        }
        for (fields, refusal) in [
            (&[(":authority", "a.test"), ("host", "b.test")][..], Refusal::HostCount),
            (&[(":authority", "a.test"), ("host", "a.test"), ("host", "a.test")], Refusal::HostCount),
            (&[("host", "a.test"), ("host", "a.test")], Refusal::HostCount),
            (&[], Refusal::HostCount),
            (&[("host", "")], Refusal::Host(AuthorityError::Empty)),
            (&[(":authority", "u@a.test")], Refusal::Host(AuthorityError::UserInformation)),
        ] {
            assert_eq!(whom(fields), Err(Refused(refusal)), "{fields:?}");
        }
    }

    #[test]
    fn what_http1_refuses_is_refused_here_too() {
        fails(parse("TRACE", "/", &[]), Refused(Refusal::Method));
        fails(parse("G:T", "/", &[]), Refused(Refusal::RequestLine));
        fails(parse("GET", "*", &[]), Refused(Refusal::Target));
        fails(parse("GET", "x", &[]), Refused(Refusal::Target));
        fails(parse("GET", "/a#b", &[]), Refused(Refusal::Target));
        fails(parse("GET", &format!("/{}", "a".repeat(8192)), &[]), Refused(Refusal::TargetTooLong));
        fails(parse("GET", "/", &[("expect", "x")]), Refused(Refusal::Expectation));
        fails(parse("GET", "/", &[("x", &"y".repeat(17_000))]), Refused(Refusal::FieldTooLarge));
        let length = |value| parse("POST", "/", &[("content-length", value)]);
        fails(length("+5"), Refused(Refusal::Framing(FramingError::ContentLength)));
        let lengths = [("content-length", "0"), ("content-length", "0")];
        fails(parse("POST", "/", &lengths), Refused(Refusal::Framing(FramingError::ContentLength)));
        let mut over =
            HeadBuilder { no_request: Some(Refused(Refusal::FieldTooLarge)), ..HeadBuilder::default() };
        let limits = Limits::default();
        let context = &mut HeadContext {
            scheme: Scheme::Http,
            is_trusted: &|| false,
            limits: &limits,
            known_host: &mut None,
        };
        fails(over.finish((true, true), context), Refused(Refusal::HeadTooLarge));
    }

    #[test]
    fn what_the_protocol_calls_malformed_is_told_apart() {
        let all = [(":method", "GET"), (":scheme", "http"), (":authority", "a.test"), (":path", "/")];
        let is_malformed = |lines: Lines<'_>, what: &str| {
            let parsed = parse_with(lines, true, &Limits::default());
            assert!(matches!(parsed, Err(Malformed(_))), "{what}: {parsed:?}");
        };
        for missing in [0, 1, 3] {
            let mut lines = all.to_vec();
            let (name, _) = lines.remove(missing);
            is_malformed(&lines, name);
        }
        for (name, value) in all {
            is_malformed(&[&all[..], &[(name, value)]].concat(), "twice");
            is_malformed(&[&all[..], &[("x", "y"), (name, value)]].concat(), "behind a field");
        }
        for (name, value) in [
            ("connection", "x"),
            ("keep-alive", "1"),
            ("proxy-connection", "x"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("te", "gzip"),
            ("X", "y"),
            ("x", "a\nb"),
            (":status", "200"),
            (":protocol", "websocket"),
            ("content-length", "5"),
        ] {
            is_malformed(&[&all[..], &[(name, value)]].concat(), name);
        }
        fails(parse("GET", "", &[]), Malformed(Refusal::Target));
        fails(parse("CONNECT", "/", &[]), Malformed(Refusal::Method));
        let connect = [(":method", "CONNECT"), (":authority", "a.test:443")];
        fails(parse_with(&connect, true, &Limits::default()), Refused(Refusal::Method));
    }

    #[test]
    fn trailers_have_neither_pseudo_fields_nor_what_frames_a_message() {
        let of = |lines: Lines<'_>| {
            let mut builder = TrailerBuilder::default();
            for (name, value) in lines {
                let name = Name::parse(name.as_bytes()).expect("a name");
                builder.field(DecodedField::Field(name, HeaderValue::from_str(value).expect("a value")));
            }
            builder.finish(false).map(|fields| fields.map_or(0, |fields| fields.len()))
        };
        assert_eq!(of(&[]), Ok(0));
        assert_eq!(of(&[("x-sum", "1"), ("content-length", "1"), ("host", "b")]), Ok(1));
        for line in [(":path", "/"), ("transfer-encoding", "chunked")] {
            assert_eq!(of(&[line]), Err(Malformed(Refusal::Framing(FramingError::Trailer))));
        }
    }
}
