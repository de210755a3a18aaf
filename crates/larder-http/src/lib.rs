//! The vocabulary of HTTP that every crate of larder uses.
//!
//! In: bytes and strings that came from a peer. Out: typed heads, bodies, times and parsed fields, or a refusal
//! that names the rule. Nothing here does I/O and nothing reads a clock on its own: a [`time::Clock`] is handed in.
//! Deliberately absent: any decision. Crates of higher layers decide from what is parsed here whether a response may be
//! stored, or which site a host belongs to.

pub mod authority;
pub mod body;
pub mod connection;
pub mod field_block;
pub mod fields;
pub mod framing;
pub mod hosts;
pub mod message;
mod peer;
mod scheme;
pub mod target;
pub mod template;
pub mod time;
pub mod trailers;
