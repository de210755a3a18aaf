//! The least that an answer costs on this kernel: a bare epoll loop that reads whatever comes and writes one fixed
//! answer for each read. What a server spends beyond this is its own.
//!
//! `larder-floor ADDRESS FILE`: FILE holds the answer, head and all. In: connections of clients that wait for each
//! answer before they ask again. Out: the file, once per read; HTTP/1.0 ends the connection. A connection is read from
//! as soon as it is accepted, and the kernel is asked to watch it only if it goes on: one that asks at once and ends
//! costs four system calls. The line `COUNT` in place of a request is told how many answers there were so far, those
//! to health checks left out: where the floor stands in as an origin, that says how often it was asked. Nothing is
//! parsed, checked, timed or limited.
//! Deliberately absent: everything that a server is for. Never let it listen where others can reach it.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

use anyhow::{Context, Result};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::net::{SocketFlags, accept_with, sockopt};
use slab::Slab;

const READ_BYTES: usize = 16 * 1024;
const EVENTS_MAX: usize = 512;
const LISTENER: u64 = u64::MAX;
const COUNT: &[u8] = b"COUNT\n";
const HEALTH: &[u8] = b"GET /healthz ";

const READABLE: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);

struct Connection {
    stream: TcpStream,
    /// How much of the answer is still to be written.
    left: usize,
    ends: bool,
    /// What the kernel was asked to watch for; nothing so far where it is empty.
    watched: EventFlags,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().context("an address is missing")?;
    let answer = std::fs::read(arguments.next().context("a file is missing")?)?;
    let listener = TcpListener::bind(&address).with_context(|| address.clone())?;
    listener.set_nonblocking(true)?;
    // Inherited by what is accepted.
    sockopt::set_tcp_nodelay(&listener, true)?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut connections = Slab::new();
    let mut events = Vec::with_capacity(EVENTS_MAX);
    let mut input = vec![0; READ_BYTES];
    let mut answered = 0;
    loop {
        events.clear();
        // Interrupted where it was made to stand still between two turns.
        rustix::io::retry_on_intr(|| epoll::wait(&epoll, spare_capacity(&mut events), None))?;
        for event in &events {
            let number = event.data.u64();
            let index = if number == LISTENER {
                let Ok(accepted) = accept_with(&listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)
                else {
                    continue;
                };
                connections.insert(Connection::new(accepted))
            } else {
                usize::try_from(number)?
            };
            let Some(connection) = connections.get_mut(index) else { continue };
            if !connection.advance(&answer, &mut input, &mut answered)
                || connection.watch(&epoll, index as u64).is_err()
            {
                connections.remove(index);
            }
        }
    }
}

impl Connection {
    fn new(accepted: OwnedFd) -> Self {
        Self { stream: accepted.into(), left: 0, ends: false, watched: EventFlags::empty() }
    }

    /// Has the kernel watch for what this connection waits for, if it does not yet. To wait for room while there is
    /// some would wake at once, so that is asked for by the first answer that does not fit.
    fn watch(&mut self, epoll: &OwnedFd, number: u64) -> rustix::io::Result<()> {
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
    fn advance(&mut self, answer: &[u8], input: &mut [u8], answered: &mut u64) -> bool {
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
    use super::*;

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
