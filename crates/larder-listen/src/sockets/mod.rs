//! What clients send and get, on real sockets. These are unit tests by place, so that one program is linked for the crate.

#![allow(clippy::disallowed_macros, reason = "a test may panic where it cannot say how it went")]
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "each test uses its part")]

mod accept;
mod exchanges;
mod heads;
mod http2;
mod http2_frames;
mod refusals;
mod support;
mod tls;
