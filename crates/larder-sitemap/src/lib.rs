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
mod sitemap;
mod xml;

pub use sitemap::{BYTES_MAX, Fault, Kind, LOCATIONS_MAX, Sitemap};

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
