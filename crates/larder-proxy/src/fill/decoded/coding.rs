//! Which content coding a response has, as far as it can be decoded here.
//!
//! In: the fields of a response. Out: its one coding, or none. Two codings, one within the other, are decoded nowhere on the way:
//! no server sends them, and each level multiplies what a byte may become.

use http::HeaderMap;
use http::header::CONTENT_ENCODING;

use super::brotli::Brotli;
use super::decode::Decode;
use super::deflate::Deflate;
use super::gzip::Gzip;
use super::zstd::Zstd;

/// A content coding that can be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    /// RFC 1952.
    Gzip,
    /// RFC 1950, and RFC 1951 alone, which some servers send under the same name.
    Deflate,
    /// RFC 7932.
    Brotli,
    /// RFC 8878, in the windows of RFC 9659.
    Zstd,
}

/// A response has a content coding that is not decoded here, or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnknownCoding;

impl Coding {
    fn named(name: &[u8]) -> Option<Self> {
        const NAMES: [(&str, Coding); 5] = [
            ("gzip", Coding::Gzip),
            ("x-gzip", Coding::Gzip),
            ("deflate", Coding::Deflate),
            ("br", Coding::Brotli),
            ("zstd", Coding::Zstd),
        ];
        let mut names = NAMES.iter();
        names.find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes())).map(|(_, coding)| *coding)
    }

    pub(super) fn decoder(self) -> Box<dyn Decode> {
        match self {
            Self::Gzip => Box::new(Gzip::new()),
            Self::Deflate => Box::new(Deflate::new()),
            Self::Brotli => Box::new(Brotli::new()),
            Self::Zstd => Box::new(Zstd::new()),
        }
    }
}

/// The coding of a response with these fields; `identity` is none.
///
/// # Errors
/// It has another one, or several.
pub(crate) fn coding_of(fields: &HeaderMap) -> Result<Option<Coding>, UnknownCoding> {
    let lines = fields.get_all(CONTENT_ENCODING).iter();
    let members = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    let mut codings =
        members.filter(|member| !member.is_empty() && !member.eq_ignore_ascii_case(b"identity"));
    match (codings.next(), codings.next()) {
        (None, _) => Ok(None),
        (Some(name), None) => Coding::named(name).map(Some).ok_or(UnknownCoding),
        (Some(_), Some(_)) => Err(UnknownCoding),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn one_coding_is_known_or_none() {
        for (lines, expected) in [
            (&[][..], Ok(None)),
            (&["identity"], Ok(None)),
            (&["", " , "], Ok(None)),
            (&["gzip"], Ok(Some(Coding::Gzip))),
            (&[" X-GZip "], Ok(Some(Coding::Gzip))),
            (&["identity, br"], Ok(Some(Coding::Brotli))),
            (&["deflate"], Ok(Some(Coding::Deflate))),
            (&["zstd"], Ok(Some(Coding::Zstd))),
            (&["gzip, gzip"], Err(UnknownCoding)),
            (&["gzip", "br"], Err(UnknownCoding)),
            (&["compress"], Err(UnknownCoding)),
            (&["dcb"], Err(UnknownCoding)),
            (&["utf-8"], Err(UnknownCoding)),
        ] {
            let mut fields = HeaderMap::new();
            for line in lines {
                fields.append(CONTENT_ENCODING, HeaderValue::from_static(line));
            }
            assert_eq!(coding_of(&fields), expected, "{fields:?}");
        }
    }
}
