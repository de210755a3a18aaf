//! The clients with servers on real sockets: Debian's memcached and redis-server, and scripted ones for what these do not do.
//!
//! In: the programs `memcached` and `redis-server` on the search path (`make units` installs them). Out: what look-ups and writes come
//! to while servers answer, hang, end, send rubbish, and return.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, missing_docs, reason = "each test uses its part")]

mod crowd;
mod faults;
mod lookups;
mod real;
mod redis;
mod replies;
mod scripted;
mod setup;
mod writes;
