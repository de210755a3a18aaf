//! What a file says, what may be wrong with it, and the bounds of the format.

/// Locations of one file that count: the format's own limit.
pub const LOCATIONS_MAX: usize = 50_000;
/// Bytes of one file that count, uncompressed: the format's own limit.
pub const BYTES_MAX: usize = 50 * 1024 * 1024;

/// What the locations of a file are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Pages.
    #[default]
    Pages,
    /// Other sitemaps.
    Index,
}

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sitemap {
    /// By the name of its root.
    pub kind: Kind,
    /// In the file's order, without blanks around them.
    pub locations: Vec<String>,
    /// The first thing that is wrong with it.
    pub fault: Option<Fault>,
}

/// What is wrong with a file. Positions count bytes from 0, in the uncompressed file where it is compressed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No well-formed XML: what follows is not read.
    #[error("malformed XML at byte {at}: {what}")]
    Malformed {
        /// Where.
        at: u64,
        /// The rule, as a lower-case fragment.
        what: String,
    },
    /// A reference in a location to something that is declared elsewhere or nowhere: that location is left out.
    #[error("unknown entity &{name}; at byte {at}: only the five entities of XML are read")]
    Entity {
        /// Where.
        at: u64,
        /// Its name, cut to a length that can be shown.
        name: String,
    },
    /// Another kind of document.
    #[error("no sitemap: the root element is <{0}>")]
    Root(String),
    /// Nothing in it.
    #[error("no sitemap: there is no root element")]
    Empty,
    /// More locations than the format allows.
    #[error("more than {LOCATIONS_MAX} locations: the rest is left out")]
    TooMany,
    /// More bytes than the format allows.
    #[error("more than {} MiB uncompressed: the rest is left out", BYTES_MAX / (1024 * 1024))]
    TooLarge,
    /// The compressed data breaks off or is damaged.
    #[error("damaged gzip data after {at} bytes of content: {what}")]
    Gzip {
        /// How much was uncompressed before.
        at: u64,
        /// The decoder's word.
        what: String,
    },
}
