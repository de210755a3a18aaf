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

mod connection;

use std::net::TcpListener;

use anyhow::{Context, Result};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::{SocketFlags, accept_with, sockopt};
use slab::Slab;

use connection::Connection;

const READ_BYTES: usize = 16 * 1024;
const EVENTS_MAX: usize = 512;
const LISTENER: u64 = u64::MAX;

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
