//! What goes to origins and comes back, on real sockets: one program for all of it, so that it is linked once.
//!
//! Beside the tests stand those who answer them: scripted connections, a peer of HTTP/2, replicas of an origin, a name server, and an authority.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, missing_docs, reason = "each test uses its part")]

mod answers;
mod balance;
mod ejection;
mod health;
mod http2;
mod http2_lives;
mod http2_sharing;
mod names;
mod nameserver;
mod peer;
mod proxy_protocol;
mod queue;
mod replica;
mod retry;
mod reuse;
mod scripted;
mod tls;
mod trust;
mod uploads;
mod waits;
