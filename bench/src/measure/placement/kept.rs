//! Which of the objects that were asked for are stored.
//!
//! In: a server and the names, or its folders. Out: a number. larder is asked for each name by a HEAD with
//! `only-if-cached`, which is answered from the store, or with 504, and never from the origin. nginx knows no such
//! request: what its cache holds are files whose names are 32 hexadecimal digits, and those are counted.
//! Deliberately absent: reading the objects back. It would take the disks longer than the run.

use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::clients::target;

const ANSWER_MAX: Duration = Duration::from_secs(30);
const LINE_BYTES_MAX: u64 = 64 * 1024;
const LINES_MAX: usize = 256;
const KEY_DIGITS: usize = 32;
/// `levels=1:2`, and one for the folder itself.
const DEPTH_MAX: usize = 3;

/// How many of these names larder has.
///
/// # Errors
/// An answer that is neither 200 nor 504.
pub(super) fn by_larder(address: SocketAddr, names: &[u64]) -> Result<u64> {
    let mut stored = 0;
    let mut connection: Option<BufReader<TcpStream>> = None;
    for name in names {
        // An error may end the connection: then the next is asked for over another.
        let mut stream = match connection.take() {
            Some(stream) => stream,
            None => connect(address)?,
        };
        let request = format!(
            "HEAD {} HTTP/1.1\r\nHost: {address}\r\nCache-Control: only-if-cached\r\n\r\n",
            target(*name)
        );
        stream.get_mut().write_all(request.as_bytes())?;
        let (status, goes_on) = read_head(&mut stream).with_context(|| target(*name))?;
        match status {
            200 => stored += 1,
            504 => {}
            other => bail!("{}: status {other}", target(*name)),
        }
        if goes_on {
            connection = Some(stream);
        }
    }
    Ok(stored)
}

fn connect(address: SocketAddr) -> Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address).context("connecting")?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    Ok(BufReader::new(stream))
}

/// Status, and whether the connection goes on.
fn read_head(reader: &mut impl BufRead) -> Result<(u16, bool)> {
    let mut line = String::new();
    reader.by_ref().take(LINE_BYTES_MAX).read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.with_context(|| format!("`{}` is no status line", line.trim_end()))?;
    let mut goes_on = true;
    for _ in 0..LINES_MAX {
        line.clear();
        let read = reader.by_ref().take(LINE_BYTES_MAX).read_line(&mut line)?;
        ensure!(read > 0, "the connection ended within a head");
        let field = line.trim_end().to_ascii_lowercase();
        if field.is_empty() {
            return Ok((status, goes_on));
        }
        goes_on &= field != "connection: close";
    }
    bail!("more than {LINES_MAX} lines of head")
}

/// How many files nginx has in these folders that belong to its cache.
pub(super) fn by_nginx(folders: &[PathBuf]) -> Result<u64> {
    folders.iter().map(|folder| files(folder, DEPTH_MAX)).sum()
}

fn files(folder: &Path, depth: usize) -> Result<u64> {
    let mut found = 0;
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            if depth > 1 {
                found += files(&entry.path(), depth - 1)?;
            }
        } else if entry.file_name().to_str().is_some_and(is_key) {
            found += 1;
        }
    }
    Ok(found)
}

/// Files that are still written to have a number behind their name.
fn is_key(name: &str) -> bool {
    name.len() == KEY_DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn files_of_a_cache_are_told_from_those_that_become_some() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("a/bc");
        fs::create_dir_all(&below).unwrap();
        for name in ["0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdef.0000000012", "x"] {
            fs::write(below.join(name), "x").unwrap();
        }
        assert_eq!(by_nginx(&[folder.path().to_path_buf()]).unwrap(), 1);
        assert!(by_nginx(&[folder.path().join("none")]).is_err());
    }

    #[test]
    fn what_is_stored_is_told_from_what_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // Odd names are not there; the answer that says so ends the connection.
        let server = std::thread::spawn(move || {
            for stream in listener.incoming().take(3) {
                let mut reader = BufReader::new(stream.unwrap());
                loop {
                    let mut head = String::new();
                    while !head.ends_with("\r\n\r\n") {
                        if reader.read_line(&mut head).unwrap() == 0 {
                            return;
                        }
                    }
                    assert!(head.starts_with("HEAD /page/") && head.contains("only-if-cached"), "{head}");
                    let odd = head.lines().next().unwrap().ends_with("1 HTTP/1.1");
                    let answer = if odd { "504 Gone\r\nConnection: close" } else { "200 OK\r\nAge: 1" };
                    write!(reader.get_mut(), "HTTP/1.1 {answer}\r\n\r\n").unwrap();
                    if odd {
                        break;
                    }
                }
            }
        });
        assert_eq!(by_larder(address, &[2, 4, 1, 2, 1, 0]).unwrap(), 4);
        server.join().unwrap();
    }
}
