//! What goes to origins and comes back, on real sockets. These are unit tests by place, so that one program is linked for the crate.
//!
//! Most servers here are the testkit's scripted origin. Beside it stand what it does not speak: a peer of HTTP/2, a name
//! server, and an authority for TLS, which a front takes off.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, missing_docs, reason = "each test uses its part")]

mod answers;
mod balance;
mod contents;
mod ejection;
mod front;
mod health;
mod http2;
mod http2_lives;
mod http2_sharing;
mod larder;
mod names;
pub(crate) mod nameserver;
mod origins;
mod patience;
mod peer;
mod proxy_protocol;
mod queue;
mod replica;
mod retry;
mod reuse;
mod tls;
mod trust;
mod uploads;
mod waits;
