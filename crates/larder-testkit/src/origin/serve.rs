//! One connection of a scripted origin: read a request, record it, answer as told, again.
//!
//! In: a socket. Out: the bytes of the script, in its order, and nothing that it did not say, but for the framing
//! fields of an answer with an ordinary body. An error on this side ends the connection: that is how a real
//! origin behaves, and the record shows what came before it.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use tokio::net::TcpStream;

use super::log::Seen;
use super::script::{Answer, AnswerContent, BodyFraming};
use super::state::Shared;
use crate::Error;
use crate::template::{self, Context};
use crate::wire::{Fields, Framing, Wire, latin1, split_head, to_bytes};

const PIECE_BYTES: u64 = 16 * 1024;
/// Written at once in a flood, at least.
const FLOOD_BYTES: usize = 4 * 1024;
/// A flood ends here, wherever the other side has gone.
const FLOOD_BYTES_MAX: usize = 1024 * 1024 * 1024;
const BODY_BYTES_MAX: usize = 256 * 1024 * 1024;

/// What is to become of the connection after an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Keep,
    Close,
    /// Once the other side has ended too.
    Linger,
    Reset,
}

/// Answers until the connection ends.
pub(super) async fn connection(stream: TcpStream, number: u64, shared: &Arc<Shared>) {
    let log = Arc::clone(shared);
    let mut wire = Wire::new(stream, shared.limit).tapped(move |bytes| log.log.read(number, bytes));
    let mut lingers = false;
    while let Ok(Some(head)) = wire.read_head().await {
        match exchange(&mut wire, head, number, shared).await {
            Ok(Then::Keep) => {}
            Ok(Then::Linger) => {
                lingers = true;
                break;
            }
            Ok(Then::Close) | Err(_) => break,
            Ok(Then::Reset) => return wire.reset(),
        }
    }
    let _ = wire.close_write().await;
    if lingers {
        // Whatever ends it: nothing is left to be done.
        let _ = wire.drain().await;
    }
}

async fn exchange(wire: &mut Wire, head: Bytes, connection: u64, shared: &Shared) -> Result<Then, Error> {
    let (mut seen, framing) = read_request(head, connection);
    let due = framing.is_ok().then(|| shared.source.due(&seen)).flatten();
    let (at, _in_flight) = shared.log.request(seen.clone(), shared.source.is_aside(&seen.target));
    let mut framing = match framing {
        Ok(framing) => framing,
        Err(why) => {
            shared.log.malformed(at, why.to_string());
            wire.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await?;
            return Ok(Then::Close);
        }
    };
    let Some((answer, number)) = due else {
        shared.log.unscripted(&seen.target);
        wire.write(b"HTTP/1.1 500 Unscripted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await?;
        return Ok(Then::Close);
    };
    if answer.stop_reading_at.is_none() && seen.fields.lists("expect", "100-continue") {
        wire.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    seen.body = read_body(wire, &mut framing, answer.stop_reading_at, at, shared).await?;
    if let Some(delay) = answer.delay.as_deref().and_then(template::duration) {
        tokio::time::sleep(delay).await;
    }
    if answer.vanish {
        return Ok(Then::Close);
    }
    let context = Context { clock: &shared.clock, start: shared.start, request: Some((&seen, number)) };
    for interim in &answer.interim {
        if let Some(gate) = &interim.hold {
            pass(gate, wire, shared).await?;
        }
        let head = response_head("1.1", interim.status, None, &interim.fields, &context);
        wire.write(&to_bytes(&(head + "\r\n"))).await?;
    }
    if let Some(gate) = &answer.hold {
        pass(gate, wire, shared).await?;
    }
    let sent = match &answer.raw {
        Some(raw) => {
            let raw = AnswerContent::Literal(to_bytes(raw).into());
            match send_body(wire, &raw, &answer, BodyFraming::AsScripted, shared).await? {
                Then::Keep if answer.echo => echo(wire).await?,
                Then::Keep if !answer.keep => Then::Close,
                sent => sent,
            }
        }
        None => respond(wire, &answer, &seen, &context, shared).await?,
    };
    if let Some(extra) = &answer.extra {
        wire.write(&to_bytes(extra)).await?;
    }
    if let Some(text) = &answer.flood {
        flood(wire, &to_bytes(text)).await?;
    }
    if answer.stay {
        wire.drain().await?;
    }
    let closes = answer.close || answer.stop_reading_at.is_some() || seen.fields.lists("connection", "close");
    Ok(match sent {
        Then::Keep if !closes => Then::Keep,
        Then::Keep | Then::Close if answer.linger => Then::Linger,
        Then::Keep => Then::Close,
        Then::Close | Then::Linger | Then::Reset => sent,
    })
}

/// Reads what a head says. A malformed one is recorded as far as it can be read.
fn read_request(head: Bytes, connection: u64) -> (Seen, Result<Framing, Error>) {
    let mut seen = Seen {
        head: head.clone(),
        method: String::new(),
        target: String::new(),
        version: String::new(),
        fields: Fields::default(),
        body: Bytes::new(),
        body_complete: false,
        trailers: Fields::default(),
        connection,
        at: Instant::now(),
        malformed: None,
    };
    let framing = split_head(&head).and_then(|(line, block)| {
        let text = latin1(line);
        let mut words = text.split(' ');
        let (method, target, version) = (words.next(), words.next(), words.next());
        seen.method = method.unwrap_or_default().to_owned();
        seen.target = target.unwrap_or_default().to_owned();
        seen.version = version.unwrap_or_default().to_owned();
        let versioned = matches!(seen.version.as_str(), "HTTP/1.1" | "HTTP/1.0");
        if words.next().is_some() || !versioned || seen.method.is_empty() || seen.target.is_empty() {
            return Err(Error::malformed("request line", line));
        }
        seen.fields = Fields::parse(block)?;
        if seen.fields.all("host").count() != 1 {
            return Err(Error::Malformed { what: "host", found: format!("{:?}", seen.fields.0) });
        }
        Framing::stated(&seen.fields, Framing::Ended)
    });
    (seen, framing)
}

/// Reads the content of a request, or so much of it at least as `stop_at` says.
async fn read_body(
    wire: &mut Wire,
    framing: &mut Framing,
    stop_at: Option<u64>,
    at: usize,
    shared: &Shared,
) -> Result<Bytes, Error> {
    let mut body = BytesMut::new();
    let mut trailers = Fields::default();
    while stop_at.is_none_or(|stop_at| (body.len() as u64) < stop_at) {
        match wire.read_piece(framing, &mut trailers).await {
            Ok(Some(piece)) if body.len() + piece.len() <= BODY_BYTES_MAX => body.extend_from_slice(&piece),
            Ok(Some(piece)) => return Err(Error::malformed("size of a request's body", &piece)),
            Ok(None) => {
                let body = body.freeze();
                shared.log.trailers(at, trailers);
                shared.log.body(at, body.clone(), true);
                return Ok(body);
            }
            Err(error) => {
                if matches!(error, Error::Malformed { .. }) {
                    shared.log.malformed(at, error.to_string());
                }
                shared.log.body(at, body.freeze(), false);
                return Err(error);
            }
        }
    }
    let body = body.freeze();
    shared.log.body(at, body.clone(), false);
    Ok(body)
}

/// Waits at a gate; a peer that leaves meanwhile ends the wait.
async fn pass(gate: &str, wire: &Wire, shared: &Shared) -> Result<(), Error> {
    tokio::select! {
        passed = tokio::time::timeout(shared.limit, shared.gates.pass(gate)) => {
            passed.map_err(|_| Error::TimedOut("gate"))
        }
        left = left(wire, shared) => Err(left.err().unwrap_or(Error::Cut("gate"))),
    }
}

/// Waits until the other side has gone.
async fn left(wire: &Wire, shared: &Shared) -> Result<(), Error> {
    let left = async {
        // A pipelined request says nothing about the peer's end: then only the limit counts.
        if let Ok(1..) = wire.stream().peek(&mut [0]).await {
            std::future::pending().await
        }
    };
    tokio::time::timeout(shared.limit, left).await.map_err(|_| Error::TimedOut("end of the other side"))
}

/// Writes until the other side has gone; the error says so.
async fn flood(wire: &mut Wire, bytes: &[u8]) -> Result<(), Error> {
    let block = bytes.repeat(FLOOD_BYTES.div_ceil(bytes.len().max(1)));
    for _ in 0..FLOOD_BYTES_MAX / block.len().max(1) {
        wire.write(&block).await?;
    }
    Ok(())
}

fn response_head(
    version: &str,
    status: u16,
    reason: Option<&str>,
    fields: &[String],
    context: &Context<'_>,
) -> String {
    let usual = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let mut head = format!("HTTP/{version} {status} {}\r\n", reason.or(usual).unwrap_or("Scripted"));
    for line in fields {
        head.push_str(&template::expand(line, context));
        head.push_str("\r\n");
    }
    head
}

async fn respond(
    wire: &mut Wire,
    answer: &Answer,
    seen: &Seen,
    context: &Context<'_>,
    shared: &Shared,
) -> Result<Then, Error> {
    let filled = answer.template.as_ref().map(|text| template::expand(text, context));
    let mut content = answer.content(seen, filled);
    let version = answer.version.as_deref().unwrap_or("1.1");
    let not_modified = answer.conditional && matches_stored(answer, seen, context);
    let mut status = if not_modified { 304 } else { answer.status.unwrap_or(200) };
    let mut fields = answer.fields.clone();
    let mut framing = answer.framing;
    if answer.ranges
        && status == 200
        && let Some((from, to)) = range_asked(answer, seen, context, content.length())
    {
        fields.push(format!("Content-Range: bytes {from}-{}/{}", to - 1, content.length()));
        (status, content) = (206, content.part(from, to));
        framing = framing.filter(|&framing| framing != BodyFraming::Chunked);
    }
    let bodiless = seen.method == "HEAD" || matches!(status, 100..=199 | 204 | 304);
    let default = if version == "1.0" { BodyFraming::UntilClose } else { BodyFraming::Length };
    let framing = framing.unwrap_or(default);

    if let Some(filler) = answer.filler {
        fields.extend((1..=filler.fields).map(|n| format!("Filler-{n}: {}", "v".repeat(filler.bytes))));
    }
    let mut head = response_head(version, status, answer.reason.as_deref(), &fields, context);
    match framing {
        BodyFraming::Length if !matches!(status, 100..=199 | 204 | 304) => {
            head.push_str(&format!("Content-Length: {}\r\n", content.length()));
        }
        BodyFraming::Chunked if !bodiless => head.push_str("Transfer-Encoding: chunked\r\n"),
        _ => {}
    }
    head.push_str("\r\n");
    wire.write(&to_bytes(&head)).await?;
    if answer.echo {
        return echo(wire).await;
    }
    if bodiless {
        let until_close = framing == BodyFraming::UntilClose && answer.framing.is_some();
        return Ok(if until_close || version == "1.0" { Then::Close } else { Then::Keep });
    }
    let sent = send_body(wire, &content, answer, framing, shared).await?;
    if sent != Then::Keep {
        return Ok(sent);
    }
    if framing == BodyFraming::Chunked {
        let trailers: String = answer.trailers.iter().map(|line| format!("{line}\r\n")).collect();
        wire.write(format!("0\r\n{trailers}\r\n").as_bytes()).await?;
    }
    Ok(if framing == BodyFraming::UntilClose { Then::Close } else { Then::Keep })
}

/// Sends content, piece by piece, through the answer's gates and up to where it is to be cut.
async fn send_body(
    wire: &mut Wire,
    content: &AnswerContent,
    answer: &Answer,
    framing: BodyFraming,
    shared: &Shared,
) -> Result<Then, Error> {
    let end = [answer.cut_at, answer.reset_at].into_iter().flatten().min().unwrap_or(u64::MAX);
    let end = end.min(content.length());
    let piece_bytes = answer.piece_bytes.unwrap_or(PIECE_BYTES).max(1);
    let pause = answer.pause.as_deref().and_then(template::duration);
    let (holds, pauses) = (&answer.holds, &answer.pauses);
    let waits = || holds.iter().map(|hold| hold.at).chain(pauses.iter().map(|pause| pause.at));
    let mut at = 0;
    loop {
        for hold in holds.iter().filter(|hold| hold.at == at) {
            pass(&hold.gate, wire, shared).await?;
        }
        for pause in pauses.iter().filter(|pause| pause.at == at) {
            tokio::time::sleep(template::duration(&pause.time).unwrap_or_default()).await;
        }
        if at >= end {
            return Ok(match (answer.reset_at, answer.cut_at) {
                (Some(_), _) => Then::Reset,
                (None, Some(_)) => Then::Close,
                (None, None) => Then::Keep,
            });
        }
        if let Some(pause) = pause.filter(|_| at > 0) {
            tokio::time::sleep(pause).await;
        }
        let next_wait = waits().filter(|&wait| wait > at).min().unwrap_or(u64::MAX);
        let to = at.saturating_add(piece_bytes).min(next_wait).min(end);
        let piece = content.slice(at, to);
        if framing == BodyFraming::Chunked {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(&piece);
            chunk.extend_from_slice(b"\r\n");
            wire.write(&chunk).await?;
        } else {
            wire.write(&piece).await?;
        }
        at = to;
    }
}

/// Whether the request's conditions name what the answer would send (RFC 9110 13.1.2 and 13.1.3, by equality).
fn matches_stored(answer: &Answer, seen: &Seen, context: &Context<'_>) -> bool {
    let lines: Vec<String> = answer.fields.iter().map(|line| template::expand(line, context)).collect();
    let own = |name: &str| {
        lines.iter().filter_map(|line| line.split_once(':')).find(|(n, _)| n.eq_ignore_ascii_case(name))
    };
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    if let Some(asked) = seen.fields.first("if-none-match") {
        return own("etag").is_some_and(|(_, tag)| asked.split(',').any(|one| opaque(one) == opaque(tag)));
    }
    match (seen.fields.first("if-modified-since"), own("last-modified")) {
        (Some(asked), Some((_, modified))) => asked == modified.trim(),
        _ => false,
    }
}

/// The one range that the request asks for, as `from..to` within `length`; `None` where the whole is due.
fn range_asked(answer: &Answer, seen: &Seen, context: &Context<'_>, length: u64) -> Option<(u64, u64)> {
    let spec = seen.fields.first("range").filter(|_| seen.method == "GET")?.strip_prefix("bytes=")?;
    if let Some(asked) = seen.fields.first("if-range") {
        let lines = answer.fields.iter().map(|line| template::expand(line, context));
        let mut tags = lines.filter_map(|line| Some(line.strip_prefix("ETag: ")?.to_owned()));
        tags.find(|tag| tag == asked)?;
    }
    let (from, to) = match spec.split_once('-')? {
        ("", suffix) => (length.saturating_sub(suffix.parse().ok()?), length),
        (from, "") => (from.parse().ok()?, length),
        (from, last) => (from.parse().ok()?, last.parse::<u64>().ok()?.saturating_add(1).min(length)),
    };
    (from < to).then_some((from, to))
}

async fn echo(wire: &mut Wire) -> Result<Then, Error> {
    let mut framing = Framing::UntilClose;
    while let Some(piece) = wire.read_piece(&mut framing, &mut Fields::default()).await? {
        wire.write(&piece).await?;
    }
    Ok(Then::Close)
}
