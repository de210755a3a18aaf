//! The requests of a file in tests/dialects, as bytes. tests/dialects/README.md has the format.
//!
//! In: a file. Out: its requests, but for those that are no purges. What larder reads and answers is for larder-proxy's own tests.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

/// The secret in the files.
const SECRET: &str = "5f2c81d09b7ae346";
const WRONG: &str = "0000000000000000";

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PurgeRequest {
    pub(crate) title: String,
    text: String,
    is_purge: bool,
    /// Whether it makes stale what it names.
    pub(crate) is_soft: bool,
}

impl PurgeRequest {
    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// The same with a wrong secret, where there is one.
    pub(crate) fn with_wrong_secret(&self) -> Self {
        let (title, text) = (format!("{}, refused", self.title), self.text.replace(SECRET, WRONG));
        Self { title, text, ..self.clone() }
    }
}

/// Reads a file.
pub(crate) fn read(file: &Path) -> Result<Vec<PurgeRequest>> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let requests = parse(&text);
    ensure!(!requests.is_empty(), "{}: no request", file.display());
    Ok(requests)
}

fn parse(text: &str) -> Vec<PurgeRequest> {
    let mut requests: Vec<PurgeRequest> = Vec::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("= ") {
            requests.push(PurgeRequest {
                title: title.to_owned(),
                is_purge: true,
                ..PurgeRequest::default()
            });
        } else if let Some(request) = requests.last_mut() {
            if let Some(line) = line.strip_prefix('>') {
                request.text += line.strip_prefix(' ').unwrap_or(line);
                request.text += "\r\n";
            }
            request.is_purge &= line != "passes";
            request.is_soft |= line.starts_with("reads ") && line.ends_with(" soft");
        }
    }
    requests.retain(|request| request.is_purge);
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_the_lines_behind_their_signs_and_what_is_no_purge_is_left_out() {
        let text = "# A head\n\n= one\nlocation /purge\n> PURGE / HTTP/1.1\n> X-Key: 5f2c81d09b7ae346\n>\nreads plain hard\n\
                    = two\n> GET / HTTP/1.1\n>\npasses\n";
        let requests = parse(text);
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].bytes(), b"PURGE / HTTP/1.1\r\nX-Key: 5f2c81d09b7ae346\r\n\r\n");
        let wrong = requests[0].with_wrong_secret();
        assert_eq!(wrong.bytes(), b"PURGE / HTTP/1.1\r\nX-Key: 0000000000000000\r\n\r\n");
        assert_eq!((requests[0].title.as_str(), wrong.title.as_str()), ("one", "one, refused"));
        assert!(!requests[0].is_soft && parse("= a\n> B\n>\nreads varnish soft\n")[0].is_soft);
    }
}
