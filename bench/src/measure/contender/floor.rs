//! The floor: a bare epoll loop with one fixed answer, which is the least that an answer costs on this kernel.
//!
//! In: the answer, head and all. Out: the floor at a free port, in the place of a server or, on the load's core, as
//! an origin that costs next to nothing and counts its answers.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::{Contender, Kit, LOAD_CORE, Setup, pinned, readable_folder, start};
use harness::children::free_port;

/// Longest wait for the count.
const COUNT_MAX: Duration = Duration::from_secs(10);

/// The floor as a server.
pub(crate) fn server(kit: &Kit, setup: &Setup<'_>, answer: &[u8]) -> Result<Contender> {
    run(kit, "floor", setup.folder()?, setup.command(), answer)
}

/// The floor as an origin, on the load's core.
pub(crate) fn origin(kit: &Kit, answer: &[u8]) -> Result<Contender> {
    run(kit, "origin", readable_folder(kit.scratch.path())?, pinned(LOAD_CORE), answer)
}

fn run(kit: &Kit, name: &str, work: TempDir, mut command: Command, answer: &[u8]) -> Result<Contender> {
    let (file, address) = (work.path().join("answer"), free_port()?);
    fs::write(&file, answer).with_context(|| format!("the answer of {name}"))?;
    command.arg(&kit.floor).arg(address.to_string()).arg(&file);
    Ok(start(name, address, &mut command)?.owning(work))
}

/// How many answers the floor at this address has given so far, those to health checks left out.
pub(crate) fn answered(address: SocketAddr) -> Result<u64> {
    let mut stream = TcpStream::connect(address).context("the floor's count")?;
    stream.set_read_timeout(Some(COUNT_MAX))?;
    stream.write_all(b"COUNT\n")?;
    let mut count = String::new();
    stream.read_to_string(&mut count).context("the floor's count")?;
    count.parse().with_context(|| format!("the floor's count: `{count}`"))
}

/// A whole answer: this status line, fields (lines without their ends) and body, with its Content-Length unless the
/// status has none.
pub(crate) fn answer(status: &str, fields: &[String], body: &[u8]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status}\r\n");
    for field in fields {
        head.push_str(field);
        head.push_str("\r\n");
    }
    if !status.starts_with("304") {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}
