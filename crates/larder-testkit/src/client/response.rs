//! Reading an answer, strictly: what RFC 9112 does not allow a server to send is an error here.
//!
//! In: a connection and the request's method. Out: a [`Response`]. A head must be right; a body that breaks off
//! or is malformed is told in [`End`], since tests expect exactly that.

use std::fmt;

use super::progress::Progress;
use crate::Error;
use crate::wire::{Fields, Framing, Wire, latin1, split_head};

const INTERIM_MAX: usize = 64;

/// How a response ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// As its framing says.
    Complete,
    /// Before; the reason.
    Broken(String),
}

/// A 1xx response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterimResponse {
    /// 100 to 199.
    pub status: u16,
    /// Its fields in order.
    pub fields: Fields,
}

/// A final response.
#[derive(Clone, Debug)]
pub struct Response {
    /// `HTTP/1.1`, `HTTP/1.0` or `HTTP/2`.
    pub version: String,
    /// 200 to 999, or 101.
    pub status: u16,
    /// The reason phrase.
    pub reason: String,
    /// Fields in order.
    pub fields: Fields,
    /// The content, without its framing.
    pub body: Vec<u8>,
    /// Trailer fields.
    pub trailers: Fields,
    /// What came before it, in order.
    pub interim: Vec<InterimResponse>,
    /// How it ended.
    pub end: End,
}

impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for interim in &self.interim {
            writeln!(f, "  (before it: {} {:?})", interim.status, interim.fields.0)?;
        }
        writeln!(f, "  {} {} {}", self.version, self.status, self.reason)?;
        for (name, value) in &self.fields.0 {
            writeln!(f, "  {name}: {value}")?;
        }
        let shown = self.body.get(..200).unwrap_or(&self.body);
        writeln!(f, "  body of {} bytes, {:?}: {}", self.body.len(), self.end, shown.escape_ascii())
    }
}

struct Head {
    version: String,
    status: u16,
    reason: String,
    fields: Fields,
}

async fn read_head(wire: &mut Wire) -> Result<Head, Error> {
    let head = wire.read_head().await?.ok_or(Error::Cut("wait for a response"))?;
    let (line, block) = split_head(&head)?;
    let text = latin1(line);
    let wrong = || Error::malformed("status line", line);
    let (version, rest) = text.split_once(' ').ok_or_else(wrong)?;
    let (status, reason) = rest.split_once(' ').ok_or_else(wrong)?;
    let digits = status.len() == 3 && status.bytes().all(|b| b.is_ascii_digit());
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") || !digits {
        return Err(wrong());
    }
    let status = status.parse().map_err(|_| wrong())?;
    Ok(Head { version: version.to_owned(), status, reason: reason.to_owned(), fields: Fields::parse(block)? })
}

/// How the body of an answer to `method` is framed (RFC 9112 6.3).
fn framing(head: &Head, method: &str) -> Result<Framing, Error> {
    let stated = Framing::stated(&head.fields, Framing::UntilClose)?;
    if matches!(head.status, 100..=199 | 204) {
        let plain = matches!(stated, Framing::UntilClose);
        let why = || Error::Malformed {
            what: "framing of a response without content",
            found: format!("{stated:?}"),
        };
        return if plain { Ok(Framing::Ended) } else { Err(why()) };
    }
    let chunked = matches!(stated, Framing::Chunked(_));
    if chunked && head.version == "HTTP/1.0" {
        return Err(Error::malformed("chunks under HTTP/1.0", b""));
    }
    Ok(if method == "HEAD" || head.status == 304 { Framing::Ended } else { stated })
}

pub(super) async fn read(wire: &mut Wire, method: &str, progress: &Progress) -> Result<Response, Error> {
    let mut interim = Vec::new();
    let head = loop {
        let head = read_head(wire).await?;
        if !matches!(head.status, 100 | 102..=199) {
            break head;
        }
        framing(&head, method)?;
        interim.push(InterimResponse { status: head.status, fields: head.fields });
        if interim.len() > INTERIM_MAX {
            return Err(Error::malformed("number of interim responses", b"more than 64"));
        }
    };
    progress.begin();
    let mut framing = framing(&head, method)?;
    let mut trailers = Fields::default();
    let end = loop {
        match wire.read_piece(&mut framing, &mut trailers).await {
            Ok(Some(piece)) => progress.take(&piece).await,
            Ok(None) => break End::Complete,
            Err(error) => break End::Broken(error.to_string()),
        }
    };
    let Head { version, status, reason, fields } = head;
    Ok(Response { version, status, reason, fields, body: progress.body(), trailers, interim, end })
}
