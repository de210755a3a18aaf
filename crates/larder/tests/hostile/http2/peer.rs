//! A client that says over HTTP/2 whatever it is told and reads just enough of what comes back.
//!
//! In: bytes to send. Out: what each stream got (status, content, end, reset) and how the connection ended. Of field
//! blocks only `:status` is read, which the server writes first; the dynamic table is switched off by our SETTINGS.
//! It never opens a window unless told. SETTINGS and PING are acknowledged, unless it is told to keep silent.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use larder_testkit::client::Connection;

use crate::hostile::http2::frames::{self, ACK, END_HEADERS, END_STREAM};
use crate::hostile::stage::Outcome;
use crate::hostile::transport::{Protocol, Transport};

/// The longest wait for anything single.
const LIMIT: Duration = Duration::from_secs(8);

/// What came on one stream.
#[derive(Debug, Default)]
pub struct Answer {
    pub interim: Vec<u16>,
    pub status: Option<u16>,
    pub content: Vec<u8>,
    pub ended: bool,
    pub reset: Option<u32>,
}

/// What came so far.
#[derive(Debug, Default)]
pub struct Received {
    pub streams: BTreeMap<u32, Answer>,
    /// The last stream and the code of the last GOAWAY.
    pub goaway: Option<(u32, u32)>,
    pub settings: BTreeMap<u16, u32>,
    pub settings_acks: usize,
    pub pongs: usize,
    pub closed: bool,
}

impl Received {
    pub fn reset(&self, stream: u32) -> Option<u32> {
        self.streams.get(&stream)?.reset
    }

    pub fn status(&self, stream: u32) -> Option<u16> {
        self.streams.get(&stream)?.status
    }

    /// How much content came on a stream.
    pub fn content_bytes(&self, stream: u32) -> usize {
        self.streams.get(&stream).map_or(0, |answer| answer.content.len())
    }

    /// The stream came to an end of either kind.
    pub fn is_over(&self, stream: u32) -> bool {
        self.streams.get(&stream).is_some_and(|answer| answer.ended || answer.reset.is_some())
    }
}

pub struct Peer {
    connection: Connection,
    ahead: BytesMut,
    acknowledges: bool,
    pub got: Received,
}

impl Peer {
    /// Connects and says nothing.
    pub async fn silent(addr: SocketAddr) -> Result<Self, String> {
        let connection = Transport::current().connect(addr, Protocol::Http2, LIMIT).await?;
        Ok(Self { connection, ahead: BytesMut::new(), acknowledges: true, got: Received::default() })
    }

    /// Connects, with the preface and SETTINGS, and `more` in the same write.
    pub async fn open(addr: SocketAddr, more: &[u8]) -> Result<Self, String> {
        let mut peer = Self::silent(addr).await?;
        let mut bytes = frames::PREFACE.to_vec();
        // HEADER_TABLE_SIZE: the server's encoder may not refer to earlier fields.
        bytes.extend(frames::setting(1, 0));
        bytes.extend_from_slice(more);
        peer.send(&bytes).await?;
        Ok(peer)
    }

    /// From now on only what is told is sent.
    pub fn keep_silent(&mut self) {
        self.acknowledges = false;
    }

    /// Sends. A server may close before it has taken everything, which is not this side's failure.
    pub async fn send(&mut self, bytes: &[u8]) -> Outcome {
        let written = tokio::time::timeout(LIMIT, self.connection.write(bytes)).await;
        written.map(drop).map_err(|_| "larder takes no bytes".to_owned())
    }

    /// Reads until `holds`.
    pub async fn until(&mut self, what: &str, holds: impl Fn(&Received) -> bool) -> Outcome {
        let deadline = tokio::time::Instant::now() + LIMIT;
        while !holds(&self.got) {
            if self.got.closed {
                return Err(format!("the connection ended before {what}: {:?}", self.got));
            }
            let read = tokio::time::timeout_at(deadline, self.connection.read_some()).await;
            match read {
                Err(_) => return Err(format!("no {what} in time: {:?}", self.got)),
                Ok(Err(_)) => self.got.closed = true,
                Ok(Ok(piece)) if piece.is_empty() => self.got.closed = true,
                Ok(Ok(piece)) => {
                    self.ahead.extend_from_slice(&piece);
                    self.take_frames().await?;
                }
            }
        }
        Ok(())
    }

    async fn take_frames(&mut self) -> Outcome {
        while let Some(&[a, b, c, kind, flags]) = self.ahead.first_chunk::<5>() {
            let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
            if self.ahead.len() < 9 + length {
                return Ok(());
            }
            self.ahead.advance(5);
            let stream = self.ahead.get_u32();
            let payload = self.ahead.split_to(length);
            if self.acknowledges && flags & ACK == 0 {
                match kind {
                    frames::SETTINGS => self.send(&frames::frame(kind, ACK, 0, &[])).await?,
                    frames::PING => self.send(&frames::frame(kind, ACK, 0, &payload)).await?,
                    _ => {}
                }
            }
            self.note(kind, flags, stream, &payload)?;
        }
        Ok(())
    }

    fn note(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Outcome {
        let number = |at: usize| {
            let bytes = payload.get(at..at + 4).and_then(|four| four.try_into().ok());
            bytes.map_or(0, u32::from_be_bytes)
        };
        let got = &mut self.got;
        match kind {
            frames::HEADERS => {
                if flags & END_HEADERS == 0 {
                    return Err("the response's head is in several frames".to_owned());
                }
                let answer = got.streams.entry(stream).or_default();
                let status =
                    status(payload).ok_or_else(|| format!("no :status in {}", payload.escape_ascii()))?;
                if status < 200 {
                    answer.interim.push(status);
                } else if answer.status.replace(status).is_some() {
                    return Err("two final heads on a stream".to_owned());
                }
                answer.ended |= flags & END_STREAM != 0;
            }
            frames::DATA => {
                let answer = got.streams.entry(stream).or_default();
                answer.content.extend_from_slice(payload);
                answer.ended |= flags & END_STREAM != 0;
            }
            frames::RST_STREAM => got.streams.entry(stream).or_default().reset = Some(number(0)),
            frames::GOAWAY => got.goaway = Some((number(0), number(4))),
            frames::SETTINGS if flags & ACK != 0 => got.settings_acks += 1,
            frames::SETTINGS => {
                for setting in payload.chunks_exact(6) {
                    if let Some(&[a, b, c, d, e, f]) = setting.first_chunk::<6>() {
                        got.settings.insert(u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]));
                    }
                }
            }
            frames::PING if flags & ACK != 0 => got.pongs += 1,
            _ => {}
        }
        Ok(())
    }

    /// Everything that was sent so far has been read: a PING comes back.
    pub async fn round_trip(&mut self) -> Outcome {
        let due = self.got.pongs + 1;
        self.send(&frames::frame(frames::PING, 0, 0, &[0; 8])).await?;
        self.until("answer to a PING", |got| got.pongs >= due).await
    }

    /// The stream is answered with this status and content, whole.
    pub async fn answered(&mut self, stream: u32, status: u16, content: &[u8]) -> Outcome {
        self.until("end of the stream", |got| got.is_over(stream)).await?;
        match self.got.streams.get(&stream) {
            Some(answer) if answer.status == Some(status) && answer.ended && answer.content == content => {
                Ok(())
            }
            found => Err(format!("expected {status}, found {found:?}")),
        }
    }

    /// The stream is reset with this code.
    pub async fn is_reset(&mut self, stream: u32, code: u32) -> Outcome {
        self.until("reset of the stream", |got| got.is_over(stream)).await?;
        crate::hostile::stage::same("reset", &self.got.reset(stream), &Some(code))
    }

    /// Larder says GOAWAY with this code and closes.
    pub async fn goes_away(&mut self, code: u32) -> Outcome {
        self.until("end of the connection", |got| got.closed).await?;
        match self.got.goaway {
            Some((_, found)) if found == code => Ok(()),
            found => Err(format!("expected GOAWAY with {code}, found {found:?}")),
        }
    }

    /// A further request on this connection is served: both sides still mean the same.
    pub async fn probe(&mut self, stream: u32) -> Outcome {
        let block = frames::block(&[
            (":method", "GET"),
            (":scheme", Transport::current().scheme()),
            (":authority", "probe.test"),
            (":path", "/probe"),
        ]);
        self.send(&frames::headers_on(stream, frames::WHOLE, &block)).await?;
        self.until("answer to the probe", |got| got.is_over(stream)).await?;
        match self.got.streams.get(&stream) {
            Some(answer) if answer.status == Some(200) && answer.content == b"probe" => Ok(()),
            found => Err(format!("the probe got {found:?}")),
        }
    }
}

/// `:status` at the beginning of a block, after changes of the table's size.
fn status(mut block: &[u8]) -> Option<u16> {
    while let [first, rest @ ..] = block
        && first & 0xe0 == 0x20
    {
        block = rest;
    }
    match block {
        [0x88, ..] => Some(200),
        [0x89, ..] => Some(204),
        [0x8a, ..] => Some(206),
        [0x8b, ..] => Some(304),
        [0x8c, ..] => Some(400),
        [0x8d, ..] => Some(404),
        [0x8e, ..] => Some(500),
        // A literal whose name is that of entry 8 of the static table, with or without indexing.
        [0x48 | 0x08 | 0x18, length, rest @ ..] => {
            let value = rest.get(..usize::from(length & 0x7f))?;
            let digits = if length & 0x80 == 0 {
                value.iter().map(|digit| u16::from(digit & 0xf)).collect()
            } else {
                huffman_digits(value)
            };
            <[u16; 3]>::try_from(digits).ok().map(|[a, b, c]| a * 100 + b * 10 + c)
        }
        _ => None,
    }
}

/// Three digits in the code of RFC 7541 appendix B: 0 to 2 take five bits (0 to 2), 3 to 9 six (0x19 to 0x1f).
fn huffman_digits(bytes: &[u8]) -> Vec<u16> {
    let mut bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |shift| u16::from(byte >> shift & 1)));
    let mut digits = Vec::new();
    while digits.len() < 3 {
        let mut take = |count: usize| bits.by_ref().take(count).fold(0, |sum, bit| sum << 1 | bit);
        let five = take(5);
        digits.push(if five < 3 { five } else { (five << 1 | take(1)).wrapping_sub(0x16) });
    }
    digits
}
