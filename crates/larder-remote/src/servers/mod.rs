//! The client for memcached with servers on real sockets: Debian's memcached, and scripted ones for what it does not do.
//!
//! In: the program `memcached` on the search path (`make units` installs it). Out: what look-ups and writes come to while servers answer,
//! hang, end, send rubbish, and return.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, missing_docs, reason = "each test uses its part")]

mod crowd;
mod faults;
mod lookups;
mod real;
mod replies;
mod scripted;
mod setup;
mod writes;
