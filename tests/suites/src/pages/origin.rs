//! The origin behind every server: files, and a few answers that no file gives.
//!
//! In: HTTP/1.1 requests on a free loopback port. Out: the files of tests/pages by their paths, cacheable for an hour; `/status/404` and
//! the like with a body of its own, `/redirect`, and below `/echo` the target that was asked for. What files there are is read at the start.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};

/// When every file was modified, in seconds since 1970, and as fields have it.
pub(crate) const MODIFIED_S: u64 = 1_762_164_000;
const MODIFIED: &str = "Mon, 03 Nov 2025 10:00:00 GMT";

const IDLE_MAX: Duration = Duration::from_secs(60);
const LINE_MAX: u64 = 65_536;
const LINES_MAX: usize = 256;
/// How deep files lie.
const DEPTH_MAX: usize = 3;

type Files = HashMap<String, Vec<u8>>;

/// A running origin. Dropped, it accepts nobody any more.
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    stopped: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Origin {
    /// Starts listening on a free port.
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        let mut files = Files::new();
        read_files(folder, "", DEPTH_MAX, &mut files)?;
        let listener = TcpListener::bind("127.0.0.1:0").context("origin")?;
        let address = listener.local_addr()?;
        let (files, stopped) = (Arc::new(files), Arc::new(AtomicBool::new(false)));
        let stop = Arc::clone(&stopped);
        let accepting = thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::Acquire) {
                    break;
                }
                let files = Arc::clone(&files);
                // An error ends this connection only; the server in front sees it closed.
                thread::spawn(move || drop(serve(&stream, &files)));
            }
        });
        Ok(Self { address, stopped, accepting: Some(accepting) })
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        // It waits for a connection, and looks then. Where none can be made, it is left waiting.
        if TcpStream::connect(self.address).is_ok()
            && let Some(accepting) = self.accepting.take()
        {
            let _ = accepting.join();
        }
    }
}

fn read_files(folder: &Path, path: &str, depth: usize, files: &mut Files) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let path = format!("{path}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_file() {
            files.insert(path, fs::read(entry.path())?);
        } else if depth > 0 {
            read_files(&entry.path(), &path, depth - 1, files)?;
        }
    }
    Ok(())
}

fn serve(stream: &TcpStream, files: &Files) -> std::io::Result<()> {
    stream.set_read_timeout(Some(IDLE_MAX))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some((target, is_last)) = read_request(&mut reader)? {
        let mut writer = stream;
        writer.write_all(&answer(&target, files))?;
        if is_last {
            break;
        }
    }
    Ok(())
}

/// The whole answer for a target.
fn answer(target: &str, files: &Files) -> Vec<u8> {
    let path = resolved(target.split('?').next().unwrap_or_default());
    if let Some(content) = files.get(&path) {
        let kind = if path.ends_with(".html") { "text/html" } else { "text/plain" };
        return message("200 OK", kind, &format!("Last-Modified: {MODIFIED}\r\n"), content);
    }
    if path.starts_with("/echo") {
        return message("200 OK", "text/plain", "", target.as_bytes());
    }
    if path == "/redirect" {
        let to = "Location: /parts/word.txt\r\n";
        return message("302 Found", "text/html", to, b"<em>elsewhere</em>");
    }
    match path.strip_prefix("/status/") {
        Some("204") => b"HTTP/1.1 204 No Content\r\nCache-Control: max-age=3600\r\n\r\n".to_vec(),
        Some(status) => {
            let body = format!("<em>the body of a {status}</em>");
            message(&format!("{status} Error"), "text/html", "", body.as_bytes())
        }
        None => message("404 Not Found", "text/html", "", b"<em>no such file</em>"),
    }
}

fn message(status: &str, kind: &str, fields: &str, content: &[u8]) -> Vec<u8> {
    let lifetime = if status.starts_with("200") { "max-age=3600" } else { "no-store" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nCache-Control: {lifetime}\r\n{fields}Content-Length: {}\r\n\r\n",
        content.len()
    );
    [head.as_bytes(), content].concat()
}

/// The path without its segments of dots, as web servers have it: some of the servers in front leave that to their origin.
fn resolved(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => drop(segments.pop()),
            other => segments.push(other),
        }
    }
    format!("/{}", segments.join("/"))
}

/// The target of the next request, and whether it is the last on its connection. `None` at the connection's end.
fn read_request(reader: &mut impl BufRead) -> std::io::Result<Option<(String, bool)>> {
    let mut line = String::new();
    if reader.by_ref().take(LINE_MAX).read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut is_last = line.trim_end().ends_with("HTTP/1.0");
    for _ in 0..LINES_MAX {
        let mut field = String::new();
        reader.by_ref().take(LINE_MAX).read_line(&mut field)?;
        let Some((name, value)) = field.trim_end().split_once(':') else { break };
        is_last |= name.eq_ignore_ascii_case("connection") && value.trim().eq_ignore_ascii_case("close");
    }
    Ok(Some((target, is_last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_paths_with_dots_and_all_else_by_its_name() {
        let files = Files::from([("/parts/word.txt".to_owned(), b"word".to_vec())]);
        let check = |target: &str, status: &str, content: &str| {
            let answer = String::from_utf8_lossy(&answer(target, &files)).into_owned();
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.ends_with(content),
                "{answer}"
            );
        };
        check("/parts/word.txt", "200", "\r\n\r\nword");
        check("/esi/../parts/./word.txt?a=1", "200", "\r\n\r\nword");
        check("/../parts/word.txt", "200", "\r\n\r\nword");
        check("/echo/x?a=1", "200", "\r\n\r\n/echo/x?a=1");
        check("/status/500", "500", "</em>");
        check("/status/204", "204", "\r\n\r\n");
        check("/redirect", "302", "</em>");
        check("/parts", "404", "</em>");
    }
}
