//! TLS on a client's connection: the handshake, and the stream that HTTP runs on afterwards.
//!
//! In: an accepted transport, and the server side of `larder-tls`. Out: a stream with what was agreed on, whose protocol is known, or a reason why there is none, which is
//! counted. A handshake that fails costs a counter and never a line in a log: there is no end of those who try.

mod handshake;
mod handshakes;
mod reason;
mod stream;

pub(crate) use handshake::{Shaken, shake};
pub use handshakes::Handshakes;
pub(crate) use handshakes::OpenHandshake;
pub use reason::HandshakeFailure;
pub(crate) use reason::HandshakeKinds;
