//! The least that an answer costs on this kernel: a bare epoll loop that reads whatever comes and writes one fixed
//! answer for each read. What a server spends beyond this is its own.
//!
//! `larder-floor ADDRESS FILE`: FILE holds the answer, head and all. In: connections of clients that wait for each
//! answer before they ask again. Out: the file, once per read; HTTP/1.0 ends the connection. The line `COUNT` in
//! place of a request is told how many answers there were so far: where the floor stands in as an origin, that says
//! how often it was asked. Nothing is parsed, checked, timed or limited.
//! Deliberately absent: everything that a server is for. Never let it listen where others can reach it.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

use anyhow::{Context, Result};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use slab::Slab;

const READ_BYTES: usize = 16 * 1024;
const EVENTS_MAX: usize = 512;
const LISTENER: u64 = u64::MAX;
const COUNT: &[u8] = b"COUNT\n";

struct Connection {
    stream: TcpStream,
    /// How much of the answer is still to be written.
    left: usize,
    ends: bool,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().context("an address is missing")?;
    let answer = std::fs::read(arguments.next().context("a file is missing")?)?;
    let listener = TcpListener::bind(&address).with_context(|| address.clone())?;
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut connections = Slab::new();
    let mut events = Vec::with_capacity(EVENTS_MAX);
    let mut input = vec![0; READ_BYTES];
    let mut answered = 0;
    loop {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), None)?;
        for event in &events {
            let number = event.data.u64();
            if number == LISTENER {
                let Ok((stream, _)) = listener.accept() else { continue };
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                let entry = connections.vacant_entry();
                let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
                epoll::add(&epoll, &stream, EventData::new_u64(entry.key() as u64), flags)?;
                entry.insert(Connection { stream, left: 0, ends: false });
                continue;
            }
            let index = usize::try_from(number)?;
            let Some(connection) = connections.get_mut(index) else { continue };
            if !connection.advance(&answer, &mut input, &mut answered) {
                connections.remove(index);
            }
        }
    }
}

impl Connection {
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
                    *answered += 1;
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
