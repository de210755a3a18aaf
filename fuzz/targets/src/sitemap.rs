//! Sitemaps: what is read stays within the format's bounds, is the same whether it came compressed or not, and written as a sitemap
//! it is read again as the same.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use larder_sitemap::{Kind, LOCATIONS_MAX, Sitemap, read};

use crate::allocated::at_most;

/// What uncompressing takes at first, and the checks of this target.
const FIXED_BYTES: usize = 1 << 20;
/// The most that one byte of gzip data stands for (1032), with the buffers that grow towards it.
const PER_BYTE: usize = 8 * 1032;

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let sitemap = at_most(FIXED_BYTES + input.len() * PER_BYTE, || read(input));
    assert!(sitemap.locations.len() <= LOCATIONS_MAX);
    assert!(sitemap.locations.iter().all(|location| !location.is_empty() && location.trim() == location));
    if !input.starts_with(&[0x1f, 0x8b]) {
        assert!(
            sitemap.locations.iter().map(String::len).sum::<usize>() <= input.len(),
            "more than there was"
        );
        assert_eq!(read(&compressed(input)), sitemap, "another compressed");
    }
    let again = read(written(&sitemap).as_bytes());
    assert_eq!(again, Sitemap { fault: None, ..sitemap }, "changed by writing it again");
}

fn compressed(input: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(input).and_then(|()| encoder.finish()).expect("a vector takes everything")
}

/// A sitemap with these locations. All but letters and digits are character references.
fn written(sitemap: &Sitemap) -> String {
    let (root, entry) = match sitemap.kind {
        Kind::Pages => ("urlset", "url"),
        Kind::Index => ("sitemapindex", "sitemap"),
    };
    let mut text = format!("<{root}>");
    for location in &sitemap.locations {
        text.push_str(&format!("<{entry}><loc>"));
        for character in location.chars() {
            match character {
                c if c.is_ascii_alphanumeric() => text.push(c),
                c => text.push_str(&format!("&#x{:x};", u32::from(c))),
            }
        }
        text.push_str(&format!("</loc></{entry}>"));
    }
    text + &format!("</{root}>")
}
