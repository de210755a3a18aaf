//! What larder is tested with: a scripted origin, a raw client, a browser, a terminal, a memcached, a Redis, an authority for certificates, and scenarios in data files, on real loopback
//! sockets and free ports.
//!
//! In: a script, bytes to send, or a file of `tests/scenarios`. Out: what arrived, byte for byte, and a report that
//! puts the expected beside the received. Both ends are written here by hand, without an HTTP library (but for
//! HTTP/2), for two reasons. An origin and a client must be able to misbehave exactly as told. And a test must not
//! rely on the same parser as the program it tests.
//!
//! Deliberately absent: larder itself. A larder under test is handed in through [`scenario::Larder`].
//! Nothing here sleeps to wait for a condition; all waits are on events and have a time limit.

pub mod browser;
pub mod certificates;
pub mod client;
pub mod dice;
mod error;
pub mod front;
pub mod memcached;
pub mod multipart;
pub mod origin;
pub mod other_time;
pub mod pebble;
pub mod redis;
pub mod scenario;
pub mod seeded;
pub mod template;
pub mod tmux;
pub mod wire;

pub use error::Error;
