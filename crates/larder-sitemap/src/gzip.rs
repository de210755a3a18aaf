//! The uncompressed form of a file, known by its first bytes and not by its name.
//!
//! In: a file. Out: its content, cut at [`BYTES_MAX`], and why it is not all there. A file that is compressed already may have been
//! compressed once more on its way, so there may be two layers. What was uncompressed before damage counts.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::MultiGzDecoder;

use crate::sitemap::{BYTES_MAX, Fault};

/// How gzip data begin (RFC 1952 2.3.1).
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The file itself, and the coding of the message that brought it.
const LAYERS_MAX: usize = 2;

pub(crate) fn uncompressed(content: &[u8]) -> (Cow<'_, [u8]>, Option<Fault>) {
    let (mut text, mut fault) = (Cow::Borrowed(content), None);
    for _ in 0..LAYERS_MAX {
        if !text.starts_with(&MAGIC) {
            break;
        }
        let (inner, damage) = layer(&text);
        text = Cow::Owned(inner);
        fault = fault.or(damage);
    }
    if text.len() > BYTES_MAX {
        match &mut text {
            Cow::Borrowed(text) => *text = text.get(..BYTES_MAX).unwrap_or_default(),
            Cow::Owned(text) => text.truncate(BYTES_MAX),
        }
        fault = fault.or(Some(Fault::TooLarge));
    }
    (text, fault)
}

/// One layer less, with one byte beyond the limit where there is one.
fn layer(content: &[u8]) -> (Vec<u8>, Option<Fault>) {
    let mut inner = Vec::new();
    let read = MultiGzDecoder::new(content).take(BYTES_MAX as u64 + 1).read_to_end(&mut inner);
    let damage = read.err().map(|error| Fault::Gzip { at: inner.len() as u64, what: error.to_string() });
    (inner, damage)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::{Sitemap, read};

    const TEXT: &str = "<urlset><url><loc>http://a/1</loc></url><url><loc>http://a/2</loc></url></urlset>";

    fn compressed(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_compressed_file_reads_like_the_plain_one_also_twice_and_in_members() {
        let plain = read(TEXT.as_bytes());
        assert_eq!((plain.locations.len(), &plain.fault), (2, &None));
        let once = compressed(TEXT.as_bytes());
        assert_eq!(read(&once), plain);
        assert_eq!(read(&compressed(&once)), plain);
        let (front, back) = TEXT.as_bytes().split_at(20);
        assert_eq!(read(&[compressed(front), compressed(back)].concat()), plain);
        // A third layer is nothing that a server makes.
        assert!(read(&compressed(&compressed(&once))).fault.is_some());
    }

    #[test]
    fn what_was_read_before_damage_counts() {
        // A checksum that is cut off, and one that is wrong.
        let whole = compressed(TEXT.as_bytes());
        let cut = read(whole.get(..whole.len() - 4).unwrap());
        let Sitemap { locations, fault: Some(Fault::Gzip { at, .. }), .. } = &cut else { panic!("{cut:?}") };
        assert_eq!((locations.len(), *at), (2, TEXT.len() as u64));
        let mut wrong = whole.clone();
        *wrong.last_mut().unwrap() ^= 1;
        let wrong = read(&wrong);
        assert!(wrong.locations.len() == 2 && matches!(wrong.fault, Some(Fault::Gzip { .. })), "{wrong:?}");
    }

    #[test]
    fn a_bomb_is_cut_at_the_limit() {
        let mut text = TEXT.as_bytes().to_vec();
        text.resize(BYTES_MAX + 1000, b' ');
        let bomb = compressed(&text);
        assert!(bomb.len() < BYTES_MAX / 100);
        for content in [&bomb, &text] {
            let cut = read(content);
            assert_eq!((cut.locations.len(), cut.fault), (2, Some(Fault::TooLarge)));
        }
        text.truncate(BYTES_MAX);
        assert_eq!(read(&text).fault, None);
    }
}
