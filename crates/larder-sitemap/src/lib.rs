//! Sitemaps and their indexes, as sitemaps.org describes them.
//!
//! In: a file as it was fetched, plain or compressed with gzip, of any quality. Out: the locations in it in their order, and the first
//! fault. A fault takes nothing from what was read before it: a file that breaks off still gives all its whole entries. The output
//! is bounded by [`LOCATIONS_MAX`] and [`BYTES_MAX`], whatever the input is.
//!
//! A location is text: whether it is a URL, and whether it belongs to the sitemap's own site, is for the caller. A crate of its
//! own, because bytes of other people are fuzzed, and the fuzz targets cannot see into the binary. Deliberately absent: I/O, the
//! other elements of an entry (`lastmod`, `priority`), sitemaps in other formats (RSS, Atom, plain text), and every entity but the
//! five of XML.

mod gzip;
mod xml;

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

/// Reads a file.
pub fn read(content: &[u8]) -> Sitemap {
    let (text, fault) = gzip::uncompressed(content);
    let mut sitemap = xml::read(&text);
    // What the cut made malformed is no fault of the file.
    sitemap.fault = fault.or(sitemap.fault);
    sitemap
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_read_within_bounds(content in proptest::collection::vec(any::<u8>(), 0..2000)) {
            bounded(&content);
        }

        #[test]
        fn any_marks_are_read_within_bounds(
            parts in proptest::collection::vec(0..MARKS.len(), 0..60),
        ) {
            let text: String = parts.into_iter().filter_map(|part| MARKS.get(part).copied()).collect();
            bounded(text.as_bytes());
        }
    }

    const MARKS: [&str; 20] = [
        "<urlset>",
        "</urlset>",
        "<url>",
        "</url>",
        "<loc>",
        "</loc>",
        "<sitemapindex>",
        "<sitemap>",
        "<a:loc>",
        "http://a/",
        "&amp;",
        "&x;",
        "&#38;",
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "<?xml?>",
        "<!DOCTYPE a [",
        "é",
    ];

    fn bounded(content: &[u8]) {
        let sitemap = read(content);
        assert!(sitemap.locations.len() <= LOCATIONS_MAX);
        assert!(sitemap.locations.iter().map(String::len).sum::<usize>() <= content.len());
    }
}
