//! Hostile clients and hostile origins against a whole larder in this process, in one program with the scenarios, so that it is
//! linked once.
//!
//! Deliberately absent: anything but the suites and what they share. Each counts descriptors, so that they run one after the other.
#![allow(clippy::disallowed_macros, reason = "a test may panic where it cannot say how it went")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(unreachable_pub, reason = "the modules of a test target have no outside")]

mod http1;
mod http2;
mod origin;
mod stage;
pub(crate) mod suite;
mod transport;
