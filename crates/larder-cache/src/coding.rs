//! Content codings (RFC 9110 8.4.1, 12.5.3): which ones a response has, and which ones a request takes.
//!
//! In: the fields of a response, or those of a request. Out: [`Codings`] and `Taken`, two small values that can be
//! compared without parsing again. Only registered codings count; any other word in Content-Encoding is noted as such
//! and means nothing by itself. A coding is taken where Accept-Encoding names it with a weight above zero: a missing
//! field takes none, and neither does `*` alone, since clients that send it cannot always decode what they get.
//! Deliberately absent: coding and decoding.

use http::{HeaderMap, header};
use larder_http::fields::preference::Preferences;

/// The registered codings that are told apart, from the least to the most welcome where a client likes them equally.
/// `x-gzip` and `x-compress` are other names of two of them.
const NAMES: [&str; 7] = ["compress", "deflate", "gzip", "zstd", "br", "dcb", "dcz"];
const GZIP: u8 = 1 << 2;
/// Those that need a dictionary which the client has (RFC 9842).
const DICTIONARY: u8 = (1 << 5) | (1 << 6);

/// The bit of a registered coding.
fn bit(name: &[u8]) -> Option<u8> {
    let name: &[u8] = match name {
        name if name.eq_ignore_ascii_case(b"x-gzip") => b"gzip",
        name if name.eq_ignore_ascii_case(b"x-compress") => b"compress",
        name => name,
    };
    let place = NAMES.iter().position(|known| name.eq_ignore_ascii_case(known.as_bytes()))?;
    Some(1 << place)
}

/// The codings of a response's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Codings {
    registered: u8,
    /// Whether there is a word that is no registered coding.
    other: bool,
}

impl Codings {
    /// Reads all lines of Content-Encoding. `identity` is no coding.
    pub fn of(response: &HeaderMap) -> Self {
        let mut codings = Self::default();
        let lines = response.get_all(header::CONTENT_ENCODING).iter();
        let members =
            lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
        for member in members.filter(|member| !member.is_empty() && !member.eq_ignore_ascii_case(b"identity"))
        {
            match bit(member) {
                Some(bit) => codings.registered |= bit,
                None => codings.other = true,
            }
        }
        codings
    }

    /// Whether the content is as it is, without a coding of any name.
    pub fn is_plain(self) -> bool {
        self == Self::default()
    }

    /// Whether there is a registered coding among them, which not everybody can read.
    pub fn has_registered(self) -> bool {
        self.registered != 0
    }

    /// Whether a request takes all registered ones, and needs no dictionary for them. Content without any suits every request.
    pub fn are_taken_by(self, request: &HeaderMap) -> bool {
        let is_taken = || !self.needs_dictionary() && Taken::by(request).liking(self).is_some();
        !self.has_registered() || is_taken()
    }

    /// Whether the registered ones are the same.
    pub(crate) fn are_like(self, other: Self) -> bool {
        self.registered == other.registered
    }

    /// Whether there is a word that is no registered coding.
    pub(crate) fn has_other(self) -> bool {
        self.other
    }

    /// Whether a dictionary is needed to read it.
    pub(crate) fn needs_dictionary(self) -> bool {
        self.registered & DICTIONARY != 0
    }

    /// The registered ones, as a number that tells them apart in every process.
    pub(crate) fn number(self) -> u8 {
        self.registered
    }
}

/// Which codings a request takes, and how gladly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// In thousandths, by the place of the name; zero for what is not taken.
    weights: [u16; NAMES.len()],
    /// False where Accept-Encoding is there and cannot be read: then nothing is known.
    is_readable: bool,
    refuses_identity: bool,
    /// Whether there is a word that is no registered coding, or nothing is known.
    has_other: bool,
}

impl Taken {
    const NOTHING: Self =
        Self { weights: [0; NAMES.len()], is_readable: true, refuses_identity: false, has_other: false };

    /// Reads Accept-Encoding.
    pub(crate) fn by(request: &HeaderMap) -> Self {
        if !request.contains_key(header::ACCEPT_ENCODING) {
            return Self::NOTHING;
        }
        match Preferences::read(request, &header::ACCEPT_ENCODING) {
            Some(preferences) => Self::of(preferences.iter()),
            None => Self::UNREADABLE,
        }
    }

    /// What nothing is known of.
    pub(crate) const UNREADABLE: Self = Self { is_readable: false, has_other: true, ..Self::NOTHING };

    /// From members with their weights in thousandths. Of several weights for one coding the least counts.
    pub(crate) fn of<'a>(members: impl Iterator<Item = (&'a [u8], u16)>) -> Self {
        let mut least: [Option<u16>; NAMES.len()] = [None; NAMES.len()];
        let (mut identity, mut any) = (None, None);
        let mut has_other = false;
        let note = |known: &mut Option<u16>, weight: u16| {
            *known = Some(known.map_or(weight, |before: u16| before.min(weight)));
        };
        for (member, weight) in members {
            match member {
                b"*" => note(&mut any, weight),
                member if member.eq_ignore_ascii_case(b"identity") => note(&mut identity, weight),
                member => {
                    let place = bit(member).map(|bit| bit.trailing_zeros() as usize);
                    match place.and_then(|place| least.get_mut(place)) {
                        Some(known) => note(known, weight),
                        None => has_other = true,
                    }
                }
            }
        }
        Self {
            weights: least.map(Option::unwrap_or_default),
            is_readable: true,
            refuses_identity: identity.or(any) == Some(0),
            has_other,
        }
    }

    fn bits(&self) -> u8 {
        let taken = (0..).zip(&self.weights).filter(|(_, weight)| **weight > 0);
        taken.fold(0, |bits, (place, _): (u8, _)| bits | (1 << place))
    }

    /// Whether it is sure that no registered coding is taken.
    pub(crate) fn is_nothing(&self) -> bool {
        self.is_readable && self.bits() == 0
    }

    /// Whether a word is there that no client needs: it may stand in what the origin made of it.
    pub(crate) fn has_other(&self) -> bool {
        self.has_other
    }

    /// Whether gzip is taken, which every origin that codes at all knows.
    pub(crate) fn has_gzip(&self) -> bool {
        self.bits() & GZIP != 0
    }

    /// How gladly content of these codings is taken: the least of their weights, and the place among codings that are
    /// liked equally. `None` where one of them is not taken, or none of them is registered.
    pub(crate) fn liking(&self, codings: Codings) -> Option<(u16, u8)> {
        let has = |place: &u8| codings.registered & (1 << place) != 0;
        let weight = |place: u8| self.weights.get(usize::from(place)).copied().unwrap_or_default();
        let places = || (0..u8::try_from(NAMES.len()).unwrap_or_default()).filter(has);
        let least = places().map(weight).min().filter(|least| *least > 0)?;
        Some((least, places().max()?))
    }

    /// Whether content without a coding that a request with `given` was given suits this one too: it takes no coding
    /// either, or the origin has shown with `given` that it codes this content for nobody.
    pub(crate) fn takes_plain_of(&self, given: &Self) -> bool {
        if !self.is_readable || self.refuses_identity {
            return false;
        }
        self.is_nothing() || (given.is_readable && (given.has_gzip() || self.bits() & !given.bits() == 0))
    }

    /// Whether one fetch may well do for both: neither takes a coding, or both take gzip, or just the same ones.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let both_readable = self.is_readable && other.is_readable;
        both_readable && (self.bits() == other.bits() || (self.has_gzip() && other.has_gzip()))
    }
}

/// Whether a request takes a registered coding.
pub fn takes_a_coding(request: &HeaderMap) -> bool {
    Taken::by(request).bits() != 0
}

/// Types beside `text/*` whose content shrinks.
const TYPES: [&str; 11] = [
    "application/javascript",
    "application/json",
    "application/manifest+json",
    "application/rss+xml",
    "application/vnd.ms-fontobject",
    "application/wasm",
    "application/x-javascript",
    "application/xml",
    "font/otf",
    "font/ttf",
    "image/svg+xml",
];

/// The media type of content with these fields, in lower case, if it is one that shrinks.
pub fn type_that_shrinks(response: &HeaderMap) -> Option<String> {
    let media = response.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let shrinks = media.starts_with("text/")
        || TYPES.contains(&media.as_str())
        || media.ends_with("+json")
        || media.ends_with("+xml");
    shrinks.then_some(media)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::fields;

    fn taken(line: &str) -> Taken {
        Taken::by(&fields(&[("accept-encoding", line)]))
    }

    fn codings(line: &str) -> Codings {
        Codings::of(&fields(&[("content-encoding", line)]))
    }

    #[test]
    fn a_request_takes_all_codings_or_not_the_content() {
        for (coded, accept, expected) in [
            ("", "", true),
            ("other", "", true),
            ("gzip", "gzip, br", true),
            ("gzip", "gzip;q=0, br", false),
            ("gzip", "*", false),
            ("gzip, br", "gzip", false),
            ("dcb", "dcb", false),
        ] {
            let request = fields(&[("accept-encoding", accept)]);
            assert_eq!(codings(coded).are_taken_by(&request), expected, "{coded} {accept}");
        }
        assert!(!codings("gzip").are_taken_by(&HeaderMap::new()));
    }

    #[test]
    fn only_registered_words_are_codings() {
        assert!(Codings::of(&HeaderMap::new()).is_plain());
        for plain in ["", "identity", " Identity ,"] {
            assert!(codings(plain).is_plain(), "{plain}");
        }
        for coded in
            ["gzip", "X-GZIP", "deflate", "br", "zstd", "compress", "x-compress", "dcb", "dcz", "a, gzip"]
        {
            assert!(codings(coded).has_registered(), "{coded}");
        }
        for other in ["rot13", "aes128gcm", "gzipped", "utf-8"] {
            assert!(!codings(other).has_registered() && codings(other).has_other(), "{other}");
        }
        assert_eq!(codings("gzip"), codings("x-gzip"));
        assert_ne!(codings("gzip"), codings("gzip, br"));
        assert_eq!(
            Codings::of(&fields(&[("content-encoding", "br"), ("content-encoding", "gzip")])),
            codings("gzip, br")
        );
    }

    #[test]
    fn a_coding_is_taken_where_it_is_named_with_a_weight() {
        let check = |accepted: &str, coding: &str, expected: Option<u16>| {
            let found = taken(accepted).liking(codings(coding)).map(|(weight, _)| weight);
            assert_eq!(found, expected, "{accepted}: {coding}");
        };
        check("gzip", "gzip", Some(1000));
        check("x-gzip;q=0.5", "gzip", Some(500));
        check("GZIP, br;q=0.2", "x-gzip", Some(1000));
        check("gzip, br;q=0.2", "gzip, br", Some(200));
        check("gzip", "gzip, br", None);
        check("gzip;q=0", "gzip", None);
        check("gzip;q=0, gzip", "gzip", None);
        check("*", "gzip", None);
        check("", "gzip", None);
        check("identity", "gzip", None);
        check("gzip;level=1", "gzip", None);
        check("gzip", "rot13", None);
        assert_eq!(Taken::by(&HeaderMap::new()).liking(codings("gzip")), None);
        let (br, gzip) = (taken("gzip, br").liking(codings("br")), taken("gzip, br").liking(codings("gzip")));
        assert!(br > gzip, "liked equally, the better one");
    }

    #[test]
    fn plain_content_is_for_those_who_take_nothing_or_were_given_it() {
        let check = |given: &str, asked: &str, expected: bool| {
            assert_eq!(taken(asked).takes_plain_of(&taken(given)), expected, "{given}: {asked}");
        };
        check("", "identity", true);
        check("", "*", true);
        check("", "gzip", false);
        check("gzip", "gzip, br", true);
        check("br", "gzip", false);
        check("br, zstd", "br", true);
        check("br", "", true);
        check("gzip", "gzip, identity;q=0", false);
        check("gzip", "br, *;q=0", false);
        check("gzip", "br, identity, *;q=0", true);
        check("gzip;level=1", "gzip", false);
        check("gzip", "gzip;level=1", false);
    }

    #[test]
    fn one_fetch_does_for_all_that_take_gzip() {
        let check = |one: &str, other: &str, expected: bool| {
            assert_eq!(taken(one).is_like(&taken(other)), expected, "{one}: {other}");
        };
        check("gzip", "gzip, deflate, br;q=0.1", true);
        check("br", "br;q=0.5", true);
        check("br", "br, zstd", false);
        check("", "identity", true);
        check("", "gzip", false);
        check("gzip;level=1", "gzip;level=1", false);
    }
}
