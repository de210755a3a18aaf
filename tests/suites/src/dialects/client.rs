//! A client that sends bytes as they are, from an address of its choice.
//!
//! In: an address to connect to, one of the loopback network to come from, and requests as bytes. Out: the status of each answer. What
//! else it says is read and dropped. Answers have a length or end with their connection: nothing here has another framing.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

const WAIT_MAX: Duration = Duration::from_secs(10);
const LINE_MAX: u64 = 65_536;

/// A connection.
pub(crate) struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    /// Connects to `server` from the address `from`.
    pub(crate) fn connect(server: SocketAddr, from: IpAddr) -> Result<Self> {
        let socket =
            rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        rustix::net::bind(&socket, &SocketAddr::new(from, 0))?;
        rustix::net::connect(&socket, &server).with_context(|| server.to_string())?;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(WAIT_MAX))?;
        stream.set_write_timeout(Some(WAIT_MAX))?;
        Ok(Self { reader: BufReader::new(stream) })
    }

    /// Sends a request, and reads its answer.
    ///
    /// # Errors
    /// The connection broke off, or what came is no answer.
    pub(crate) fn send(&mut self, request: &[u8]) -> Result<u16> {
        self.reader.get_mut().write_all(request)?;
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status: u16 = status.with_context(|| format!("{first:?} is no answer"))?;
        let (mut length, mut ends_open) = (None, false);
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse::<u64>().ok();
            }
            ensure!(!name.eq_ignore_ascii_case("transfer-encoding"), "an answer with Transfer-Encoding");
            ends_open |=
                name.eq_ignore_ascii_case("connection") && value.trim().eq_ignore_ascii_case("close");
        }
        let bytes = match length {
            Some(bytes) => bytes,
            None if status == 204 || status == 304 => 0,
            None => {
                ensure!(ends_open, "an answer without a length");
                u64::MAX
            }
        };
        std::io::copy(&mut self.reader.by_ref().take(bytes), &mut std::io::sink())?;
        Ok(status)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.reader.by_ref().take(LINE_MAX).read_line(&mut line)?;
        ensure!(line.ends_with('\n'), "the connection ended before the answer did");
        Ok(line.trim_end().to_owned())
    }
}
