//! A connection of the floor: it reads once, and writes the answer.
//!
//! In: a socket, and the answer. Out: whether it goes on. The program has nothing else to test, so the tests of the measurements
//! compile this file as well, and one test program less is linked.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;

const COUNT: &[u8] = b"COUNT\n";
const HEALTH: &[u8] = b"GET /healthz ";

const READABLE: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);

pub(crate) struct Connection {
    stream: TcpStream,
    /// How much of the answer is still to be written.
    left: usize,
    ends: bool,
    /// What the kernel was asked to watch for; nothing so far where it is empty.
    watched: EventFlags,
}

impl Connection {
    pub(crate) fn new(accepted: OwnedFd) -> Self {
        Self { stream: accepted.into(), left: 0, ends: false, watched: EventFlags::empty() }
    }

    /// Has the kernel watch for what this connection waits for, if it does not yet. To wait for room while there is
    /// some would wake at once, so that is asked for by the first answer that does not fit.
    pub(crate) fn watch(&mut self, epoll: &OwnedFd, number: u64) -> rustix::io::Result<()> {
        let wanted = if self.left > 0 { READABLE | EventFlags::OUT } else { READABLE };
        if self.watched.contains(wanted) {
            return Ok(());
        }
        let data = EventData::new_u64(number);
        if self.watched.is_empty() {
            epoll::add(epoll, &self.stream, data, wanted)?;
        } else {
            epoll::modify(epoll, &self.stream, data, wanted)?;
        }
        self.watched = wanted;
        Ok(())
    }

    /// Reads once and writes what it can; false where the connection is over.
    pub(crate) fn advance(&mut self, answer: &[u8], input: &mut [u8], answered: &mut u64) -> bool {
        if self.left == 0 {
            match self.stream.read(input) {
                Ok(0) => return false,
                Ok(read) => {
                    let request = input.get(..read).unwrap_or_default();
                    if request == COUNT {
                        // A few bytes into an empty buffer; who does not get them asks in vain.
                        let _ = self.stream.write_all(answered.to_string().as_bytes());
                        return false;
                    }
                    *answered += u64::from(!request.starts_with(HEALTH));
                    let line = request.split(|byte| *byte == b'\n').next().unwrap_or_default();
                    self.ends = line.ends_with(b"HTTP/1.0\r");
                    self.left = answer.len();
                }
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        while self.left > 0 {
            let start = answer.len() - self.left;
            match self.stream.write(answer.get(start..).unwrap_or_default()) {
                Ok(written) => self.left -= written,
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        !self.ends
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::TcpListener;

    use super::*;

    const READ_BYTES: usize = 16 * 1024;

    #[test]
    fn a_health_check_is_answered_and_not_counted_and_the_old_protocol_ends_the_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (mut answered, mut input) = (0, vec![0; READ_BYTES]);
        let mut check = |request: &[u8], goes_on: bool, counted: u64| {
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            client.write_all(request).unwrap();
            let (stream, _) = listener.accept().unwrap();
            let mut connection = Connection::new(stream.into());
            assert_eq!(connection.advance(b"answer", &mut input, &mut answered), goes_on);
            // Once for reading; the second time there is nothing to change.
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
            let watched = [(); 2].map(|()| connection.watch(&epoll, 0));
            assert_eq!((watched, connection.watched), ([Ok(()), Ok(())], READABLE));
            drop(connection);
            let mut got = String::new();
            client.read_to_string(&mut got).unwrap();
            assert_eq!(answered, counted);
            got
        };
        assert_eq!(check(b"GET / HTTP/1.1\r\n\r\n", true, 1), "answer");
        assert_eq!(check(b"GET /healthz HTTP/1.1\r\n\r\n", true, 1), "answer");
        assert_eq!(check(b"GET / HTTP/1.0\r\n\r\n", false, 2), "answer");
        assert_eq!(check(COUNT, false, 2), "2");
    }
}
