//! The same client over one HTTP/2 connection, with prior knowledge (RFC 9113 3.3) or over TLS, one stream at a time.
//!
//! In: requests. Out: status and body. It writes its frames itself, each request in one write: a library would give
//! window back and acknowledge when it sees fit, which is work for larder that differs from run to run. Authority and path are sent
//! as literals that no table keeps (RFC 7541 6.2.2), so every request is as long as the one before. All other fields go to the
//! table the first time, as browsers send them, and are numbers from then on.
//! Deliberately absent: a decoder of fields. Of an answer's head it reads the status, which comes first, and only
//! where it is one of those that have a number in the static table (RFC 7541 A).

use std::io::{Read, Write};

use anyhow::{Context, Result, bail, ensure};

use super::http1::ANSWER_MAX;
use super::scenario::Answer;
use super::stream::Stream;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Frame types and flags (RFC 9113 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 0x1;
const ACK: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

/// Makes the connection's window as large as one may be: it begins with 65 535, and a run takes less than the rest.
const WINDOW_MORE: u32 = (1 << 31) - 1 - 65_535;

/// Largest frame that may come, since nothing else was allowed.
const FRAME_MAX: usize = 16_384;

/// Fields of the static table (RFC 7541 A).
const STATIC_FIELDS: usize = 61;

/// What larder's table keeps, each field counted with 32 bytes (RFC 7541 4.1, RFC 9113 6.5.2).
const TABLE_MAX: usize = 4096;

pub(super) struct Connection {
    stream: Stream,
    next_stream: u32,
    /// Fields in larder's table, oldest first.
    known: Vec<(String, String)>,
}

struct Frame {
    kind: u8,
    flags: u8,
    payload: Vec<u8>,
}

impl Connection {
    pub(super) fn begin(mut stream: Stream) -> Result<Self> {
        let mut opening = PREFACE.to_vec();
        put(&mut opening, SETTINGS, 0, 0, &[])?;
        put(&mut opening, WINDOW_UPDATE, 0, 0, &WINDOW_MORE.to_be_bytes())?;
        stream.write_all(&opening)?;
        Ok(Self { stream, next_stream: 1, known: Vec::new() })
    }

    /// A GET with these fields.
    pub(super) fn exchange(
        &mut self,
        host: &str,
        target: &str,
        fields: &[(String, String)],
    ) -> Result<Answer> {
        // `:method: GET` and `:scheme` by number; `:authority` and `:path` by name.
        let scheme = if matches!(self.stream, Stream::Clear(_)) { 0x86 } else { 0x87 };
        let mut block = vec![0x82, scheme, 0x01];
        put_string(&mut block, host)?;
        block.push(0x04);
        put_string(&mut block, target)?;
        for field in fields {
            self.put_field(&mut block, field)?;
        }
        let mut request = Vec::new();
        put(&mut request, HEADERS, END_STREAM | END_HEADERS, self.next_stream, &block)?;
        self.next_stream += 2;
        self.stream.write_all(&request)?;
        self.answer()
    }

    /// By its number where larder's table has it, else as a literal that goes there.
    fn put_field(&mut self, to: &mut Vec<u8>, field: &(String, String)) -> Result<()> {
        let age = self.known.iter().rev().position(|known| known == field);
        if let Some(number) = age.map(|age| STATIC_FIELDS + 1 + age) {
            ensure!(number < 0x7f, "more fields than one byte can number");
            to.push(0x80 | u8::try_from(number)?);
            return Ok(());
        }
        let (name, value) = field;
        to.push(0x40);
        put_string(to, &name.to_ascii_lowercase())?;
        put_string(to, value)?;
        self.known.push(field.clone());
        let size: usize = self.known.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
        ensure!(size <= TABLE_MAX, "fields of {size} bytes, more than the table keeps");
        Ok(())
    }

    fn answer(&mut self) -> Result<Answer> {
        let mut answer = Answer { status: 0, body: Vec::new() };
        loop {
            let frame = self.frame()?;
            match frame.kind {
                HEADERS => answer.status = status(&frame.payload)?,
                DATA => answer.body.extend_from_slice(&frame.payload),
                SETTINGS | PING if frame.flags & ACK == 0 => {
                    let echo = if frame.kind == PING { frame.payload } else { Vec::new() };
                    let mut reply = Vec::new();
                    put(&mut reply, frame.kind, ACK, 0, &echo)?;
                    self.stream.write_all(&reply)?;
                    continue;
                }
                SETTINGS | PING | WINDOW_UPDATE => continue,
                kind => bail!("a frame of type {kind} in place of an answer: {:?}", frame.payload),
            }
            ensure!(answer.body.len() <= ANSWER_MAX, "an answer without end");
            if frame.flags & END_STREAM != 0 {
                return Ok(answer);
            }
        }
    }

    fn frame(&mut self) -> Result<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).context("no answer")?;
        let [high, middle, low, kind, flags, ..] = head;
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        ensure!(length <= FRAME_MAX, "a frame of {length} bytes");
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload)?;
        Ok(Frame { kind, flags, payload })
    }
}

fn put(to: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Result<()> {
    ensure!(payload.len() <= FRAME_MAX, "a frame of {} bytes", payload.len());
    let [_, high, middle, low] = u32::try_from(payload.len())?.to_be_bytes();
    to.extend([high, middle, low, kind, flags]);
    to.extend(stream.to_be_bytes());
    to.extend_from_slice(payload);
    Ok(())
}

/// A string without Huffman coding, of a length that one byte can say.
fn put_string(to: &mut Vec<u8>, text: &str) -> Result<()> {
    ensure!(text.len() < 127, "a string of {} bytes", text.len());
    to.push(u8::try_from(text.len())?);
    to.extend_from_slice(text.as_bytes());
    Ok(())
}

/// The status that a block of fields begins with.
fn status(block: &[u8]) -> Result<u16> {
    // A change of the table's size may stand before it.
    match block.iter().find(|byte| *byte & 0b1110_0000 != 0b0010_0000) {
        Some(0x88) => Ok(200),
        Some(0x8a) => Ok(206),
        Some(0x8b) => Ok(304),
        other => bail!("an answer that begins with {other:02x?}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_status_is_read_behind_a_change_of_the_table() {
        assert_eq!(status(&[0x88, 0x5f]).unwrap(), 200);
        assert_eq!(status(&[0x20, 0x8a]).unwrap(), 206);
        assert!(status(&[0x8d]).is_err(), "404 is no answer");
        assert!(status(&[]).is_err());
    }

    #[test]
    fn a_frame_says_length_type_flags_and_stream() {
        let mut frame = Vec::new();
        put(&mut frame, HEADERS, END_STREAM | END_HEADERS, 3, &[0x82]).unwrap();
        assert_eq!(frame, [0, 0, 1, 1, 5, 0, 0, 0, 3, 0x82]);
    }
}
