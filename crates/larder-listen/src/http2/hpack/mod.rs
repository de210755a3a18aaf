//! Header compression of HTTP/2 (RFC 7541), both directions of one connection.
//!
//! In: joined field blocks of the client, or fields of a response. Out: typed fields, or a block. Each direction has a
//! dynamic table of its own, which is bounded in octets, and works without IO.
//! Deliberately absent: frames, what a message needs, and the meaning of limits: the connection answers with 431.

pub(crate) mod decode;
pub(crate) mod encode;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod speed;
#[cfg(test)]
mod tests;
