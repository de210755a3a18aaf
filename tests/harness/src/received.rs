//! What a client has received on a connection that has ended: one answer, whole or cut.
//!
//! In: all bytes that came. Out: status and content, and whether the message ended as its framing says. A page whose fragment has failed may
//! be cut, and its status does not tell.
//! Deliberately absent: interim responses, trailers, and more than one answer.

use anyhow::{Context as _, Result, ensure};

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The status code.
    pub status: u16,
    /// The content without its framing, as far as it came.
    pub content: Vec<u8>,
    /// Whether it ended as its framing says.
    pub is_whole: bool,
}

impl Received {
    /// Reads an answer.
    ///
    /// # Errors
    /// What came is none, or there are bytes behind it.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let end = head_end(bytes).context("no head")?;
        let (head, rest) = bytes.split_at(end);
        let head = String::from_utf8_lossy(head).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no status")?;
        let field = |wanted: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(':'));
            lines.find_map(|(name, value)| name.eq_ignore_ascii_case(wanted).then(|| value.trim().to_owned()))
        };
        if field("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            let (content, is_whole) = without_chunks(rest);
            return Ok(Self { status, content, is_whole });
        }
        let length = field("content-length").map(|length| length.parse::<usize>()).transpose()?;
        ensure!(length.is_none_or(|length| rest.len() <= length), "bytes behind the answer");
        let is_whole = length.is_none_or(|length| rest.len() == length);
        Ok(Self { status, content: rest.to_vec(), is_whole })
    }
}

/// Where the content begins, once the head is whole.
pub fn head_end(bytes: &[u8]) -> Option<usize> {
    Some(bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4)
}

/// The content of the chunks that came, and whether the last one did.
fn without_chunks(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut content = Vec::new();
    while let Some(line) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = String::from_utf8_lossy(rest.get(..line).unwrap_or_default()).into_owned();
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16);
        let Ok(size) = size else { break };
        rest = rest.get(line + 2..).unwrap_or_default();
        if size == 0 {
            return (content, rest.starts_with(b"\r\n"));
        }
        content.extend_from_slice(rest.get(..size.min(rest.len())).unwrap_or_default());
        rest = rest.get(size.saturating_add(2)..).unwrap_or_default();
    }
    (content, false)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn check(answer: &str, content: &str, is_whole: bool) {
        let received = Received::read(answer.as_bytes()).unwrap();
        let text = String::from_utf8_lossy(&received.content);
        assert_eq!((text.as_ref(), received.is_whole), (content, is_whole), "{answer}");
    }

    #[test]
    fn an_answer_is_whole_if_it_ends_as_its_framing_says() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "abc", true);
        check("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc", "abc", false);
        check("HTTP/1.1 200 OK\r\n\r\nabc", "abc", true);
        let chunked = |rest| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{rest}");
        check(&chunked("3\r\nabc\r\n1;x\r\nd\r\n0\r\n\r\n"), "abcd", true);
        check(&chunked("0\r\n\r\n"), "", true);
        check(&chunked("3\r\nabc\r\n"), "abc", false);
        check(&chunked("a\r\nabc"), "abc", false);
        check(&chunked("3\r\nabc\r\n0\r\n"), "abc", false);
        check(&chunked("x\r\nabc\r\n0\r\n\r\n"), "", false);
        assert!(Received::read(b"HTTP/1.1 200 OK\r\n").is_err());
        assert!(Received::read(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab").is_err());
    }
}
