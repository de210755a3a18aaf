//! One request of a visitor, the same for every page, and the page that comes.
//!
//! In: a server and a target. Out: what was received. Each request has a connection of its own, which ends with the answer.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result};
use harness::received::Received;

const WAIT_MAX: Duration = Duration::from_secs(10);
const ANSWER_MAX: u64 = 1 << 20;

/// What templates may read: cookies, and a field with markup.
const FIELDS: &str = "Host: www.example.org\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0)\r\n\
                      Cookie: group=beta; theme=dark%20blue\r\nX-Markup: <b>\"bold\" & 'quoted'</b>\r\nConnection: close\r\n";

/// Asks for `target`.
///
/// # Errors
/// There is no answer within the time, or what came is none.
pub(crate) fn ask(server: SocketAddr, target: &str) -> Result<Received> {
    let mut stream = TcpStream::connect(server).context("connecting")?;
    stream.set_read_timeout(Some(WAIT_MAX))?;
    stream.write_all(format!("GET {target} HTTP/1.1\r\n{FIELDS}\r\n").as_bytes())?;
    let mut answer = Vec::new();
    // A page that is cut ends in order, too: without its last chunk.
    stream.take(ANSWER_MAX).read_to_end(&mut answer).context("no end of the answer")?;
    Received::read(&answer)
}
