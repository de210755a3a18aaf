//! Field sections of HTTP/2 and HTTP/3: what HPACK (RFC 7541) and QPACK (RFC 9204) share.
//!
//! In: fields, or octets of a peer. Out: their coding, in parts that a connection puts together: integers with a
//! prefix, Huffman's code, string literals, the static tables, typed names, and fields encoded once for many connections.
//! Every length is bounded by the block or by the caller.
//! Deliberately absent: dynamic tables and the frames, which belong to a connection.

pub mod huffman;
pub mod integer;
mod name;
pub mod static_table;
mod stored;
pub mod string;

pub use name::{Name, Pseudo};
pub use stored::{Encoded, FieldBlock, Keeping, encode_literal, hash};

/// What is wrong with the coding of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodingError {
    /// The block ends within an integer or a string.
    #[error("the block is cut off")]
    Truncated,
    /// An integer above the bound.
    #[error("an integer is too large")]
    Integer,
    /// EOS, or a false padding.
    #[error("a string's code is invalid")]
    Huffman,
    /// More octets than the caller takes.
    #[error("a string is too long")]
    Long,
}
