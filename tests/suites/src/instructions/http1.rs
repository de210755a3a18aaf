//! A client that asks one question after the other over one HTTP/1.1 connection.
//!
//! In: the parts of a request. Out: status and body of each answer, whole. Each request is one write.
//! Deliberately absent: chunks and answers that end with the connection. What is counted here has a known length.

use std::io::{Read, Write};

use anyhow::{Context, Result, ensure};

use super::scenario::Answer;
use super::stream::Stream;

/// Longest answer.
pub(super) const ANSWER_MAX: usize = 1 << 20;

pub(super) struct Connection {
    stream: Stream,
    /// What has come of the answer that is being read.
    come: Vec<u8>,
}

impl Connection {
    pub(super) fn new(stream: Stream) -> Self {
        Self { stream, come: Vec::new() }
    }

    /// A GET with these field lines.
    pub(super) fn exchange(
        &mut self,
        host: &str,
        target: &str,
        fields: &[(String, String)],
    ) -> Result<Answer> {
        self.send("GET", host, target, fields)?;
        self.answer()
    }

    /// Only asks.
    pub(super) fn send(
        &mut self,
        method: &str,
        host: &str,
        target: &str,
        fields: &[(String, String)],
    ) -> Result<()> {
        let mut request = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n");
        for (name, value) in fields {
            request.extend([name, ": ", value, "\r\n"]);
        }
        request.push_str("\r\n");
        Ok(self.stream.write_all(request.as_bytes())?)
    }

    /// Reads one answer to what was asked.
    pub(super) fn answer(&mut self) -> Result<Answer> {
        self.come.clear();
        let head_end = loop {
            if let Some(at) = self.come.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            self.read()?;
        };
        let (status, length) =
            read_head(&String::from_utf8_lossy(self.come.get(..head_end).unwrap_or_default()))?;
        while self.come.len() < head_end + length {
            self.read()?;
        }
        let body = self.come.split_off(head_end);
        ensure!(body.len() == length, "{} bytes behind the answer", body.len() - length);
        Ok(Answer { status, body })
    }

    /// Asks for a target, and reads to the end of the connection what comes, however it is framed.
    pub(super) fn discard(mut self, host: &str, target: &str) -> Result<()> {
        self.send("GET", host, target, &[("Connection".to_owned(), "close".to_owned())])?;
        self.stream.read_to_end(&mut self.come).context("no end of the answer")?;
        ensure!(self.come.starts_with(b"HTTP/1.1 200 "), "not answered");
        Ok(())
    }

    /// Fails unless larder ends the connection here.
    pub(super) fn ended(mut self) -> Result<()> {
        let read = self.stream.read(&mut [0]).context("no end of the connection")?;
        ensure!(read == 0, "bytes behind the last answer");
        Ok(())
    }

    fn read(&mut self) -> Result<()> {
        let mut piece = [0; 16_384];
        let read = self.stream.read(&mut piece).context("no answer")?;
        ensure!(read > 0, "the connection was closed within an answer");
        self.come.extend_from_slice(piece.get(..read).unwrap_or_default());
        ensure!(self.come.len() <= ANSWER_MAX, "an answer without end");
        Ok(())
    }
}

/// Status, and the length of the body that follows.
fn read_head(head: &str) -> Result<(u16, usize)> {
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no status")?;
    if status == 304 {
        return Ok((status, 0));
    }
    let length = head.lines().filter_map(|line| line.split_once(": ")).find_map(|(name, value)| {
        if name.eq_ignore_ascii_case("content-length") { value.parse().ok() } else { None }
    });
    Ok((status, length.context("no Content-Length")?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_304_has_no_body_whatever_it_says() {
        let head = |status| format!("HTTP/1.1 {status} Reason\r\ncontent-length: 57\r\n\r\n");
        assert_eq!(read_head(&head(200)).unwrap(), (200, 57));
        assert_eq!(read_head(&head(304)).unwrap(), (304, 0));
        assert!(read_head("HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
