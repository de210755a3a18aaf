//! One answer, asked for by curl: what is checked before and after each run, and how caches are filled.
//!
//! In: an address, a version of HTTP, a request. Out: status, every byte of the body, and how long the head was.
//! Deliberately absent: speed. Nothing that is measured is asked for from here.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::drive::Request;
use harness::children::output_within;

/// Longest wait for one answer, and longest filling of a cache.
const CURL_MAX: Duration = Duration::from_secs(60);

/// What curl is to speak.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Version {
    Http10,
    Http11,
    /// In clear text by prior knowledge.
    Http2,
}

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// Status line, fields and the empty line; as text, in HTTP/2 too.
    pub(crate) head_bytes: usize,
    /// Its body comes in chunks.
    pub(crate) is_chunked: bool,
}

/// One request.
///
/// # Errors
/// No answer, or one that breaks off.
pub(crate) fn ask(address: SocketAddr, version: Version, request: &Request) -> Result<Answer> {
    let file = tempfile::NamedTempFile::new()?;
    let mut command = curl(version, request.secured);
    for field in &request.fields {
        command.args(["-H", field]);
    }
    command
        .arg("-g")
        .arg("-o")
        .arg(file.path())
        .args(["-w", "%{http_code} %{size_header} %header{transfer-encoding}"]);
    let printed = output_within(command.arg(request.url(address)), CURL_MAX)?;
    let mut words = printed.split_whitespace();
    let mut next = || words.next().context("curl's figures");
    let (status, head, coding) = (next()?, next()?, next().ok());
    Ok(Answer {
        status: status.parse().context("curl's status")?,
        body: std::fs::read(file.path())?,
        head_bytes: head.parse().context("curl's size of the head")?,
        is_chunked: coding.is_some(),
    })
}

/// Fetches every target that curl makes of the request's, perhaps with its ranges: `/key/[0-9999]/134`.
///
/// # Errors
/// As for [`ask`], or one of them was answered with an error.
pub(crate) fn fill(address: SocketAddr, version: Version, request: &Request) -> Result<()> {
    let mut command = curl(version, request.secured);
    command.args(["-o", "/dev/null", "-w", "%{http_code}\n"]).arg(request.url(address));
    let statuses = output_within(&mut command, CURL_MAX)?;
    let error = statuses.lines().find(|status| !status.starts_with(['2', '3']));
    ensure!(error.is_none(), "status {} while the cache was filled", error.unwrap_or_default());
    Ok(())
}

fn curl(version: Version, secured: bool) -> Command {
    let mut command = Command::new("curl");
    command.args(["-q", "-sS", "--path-as-is"]).arg(match version {
        Version::Http10 => "--http1.0",
        Version::Http11 => "--http1.1",
        Version::Http2 if secured => "--http2",
        Version::Http2 => "--http2-prior-knowledge",
    });
    if secured {
        // Each run makes its own certificate.
        command.arg("--insecure");
    }
    command
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use harness::origin::{Origin, body};

    #[test]
    fn the_origin_is_asked_by_curl_and_fills_are_checked() {
        let origin = Origin::start().unwrap();
        let answer = ask(origin.address, Version::Http11, &Request::of("/page/57")).unwrap();
        assert_eq!((answer.status, answer.body), (200, body(57)));
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 57\r\nCache-Control: max-age=3600\r\n\
                    ETag: \"39\"\r\n\r\n";
        assert_eq!(answer.head_bytes, head.len());
        fill(origin.address, Version::Http11, &Request::of("/key/[0-9]/134")).unwrap();
        assert_eq!(origin.asked(), 11);
        let nobody = harness::children::free_port().unwrap();
        assert!(fill(nobody, Version::Http11, &Request::of("/")).is_err());
    }
}
