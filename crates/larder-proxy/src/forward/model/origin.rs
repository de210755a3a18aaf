//! What the origin says: as of the moment at which it was asked, and under names that change.

use std::time::Duration;

use http::header::{IF_NONE_MATCH, IF_RANGE, RANGE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use larder_http::body::Body;
use larder_origin::{OriginResponse, Timing};

use super::Dice;
use super::map::{NAMES, TYPES};

/// Of a body: each word is the moment at which it was asked for.
pub(super) const WORD_BYTES: u64 = 8;
pub(super) const WORDS: u64 = 16;
/// More tags than are kept of a response.
const TAGS_TOO_MANY: usize = 1001;

/// The answer to a request with the fields `sent`, which was sent at the moment `begun`; `offered` is the entity tag that it may confirm.
pub(super) fn answer(
    dice: &mut Dice,
    begun: u64,
    sent: &HeaderMap,
    offered: Option<HeaderValue>,
) -> OriginResponse {
    let offered = offered.filter(|_| sent.contains_key(IF_NONE_MATCH) && dice.percent(60));
    let own = HeaderValue::try_from(format!("\"{begun}\"")).unwrap();
    let mut words = 0..WORDS;
    let (status, etag) = match (offered, sent.get(RANGE)) {
        (Some(etag), _) => (StatusCode::NOT_MODIFIED, etag),
        (None, Some(range)) if !sent.contains_key(IF_RANGE) || dice.percent(70) => {
            let range = range.to_str().unwrap().trim_start_matches("bytes=");
            let (first, last) = range.split_once('-').unwrap();
            let end = last.parse::<u64>().map_or(WORDS, |last| (last + 1) / WORD_BYTES);
            words = first.parse::<u64>().unwrap() / WORD_BYTES..end.min(WORDS);
            // Parts of one representation, where they meet, as often as not.
            let other = if dice.percent(60) { HeaderValue::from_static("\"0\"") } else { own };
            (StatusCode::PARTIAL_CONTENT, sent.get(IF_RANGE).cloned().unwrap_or(other))
        }
        _ => (StatusCode::OK, own),
    };
    let mut fields = fields(dice, begun);
    fields.insert("etag", etag);
    if status == StatusCode::PARTIAL_CONTENT {
        let (first, last) = (words.start * WORD_BYTES, words.end * WORD_BYTES - 1);
        let range = format!("bytes {first}-{last}/{}", WORDS * WORD_BYTES);
        fields.insert("content-range", HeaderValue::try_from(range).unwrap());
    }
    let length = (words.end - words.start) * WORD_BYTES;
    let bytes: Vec<u8> = words.flat_map(|_| begun.to_le_bytes()).collect();
    let body = match status {
        StatusCode::NOT_MODIFIED => Body::Empty,
        _ => Body::Full(bytes.into()),
    };
    OriginResponse {
        status,
        fields,
        content_length: Some(length).filter(|_| status != StatusCode::NOT_MODIFIED),
        announced: None,
        body,
        tunnel: None,
        server: "http://origin.test:80".into(),
        attempts: 1,
        tag: "0000000000000000".parse().unwrap(),
        reused: false,
        timing: Timing { queue: Duration::ZERO, connect: None, first_byte: Duration::ZERO },
    }
}

fn fields(dice: &mut Dice, begun: u64) -> HeaderMap {
    let lifetime = dice.of(&["max-age=60", "max-age=9", "max-age=9, stale-while-revalidate=600"]);
    let mut tags = format!("t{} t{}", dice.below(NAMES), dice.below(NAMES));
    if dice.percent(5) {
        (0..TAGS_TOO_MANY).for_each(|number| tags.push_str(&format!(" x{number}")));
    }
    let said = [
        ("cache-control", lifetime.to_owned()),
        ("surrogate-key", tags),
        ("cache-groups", format!("\"g{}\"", dice.below(NAMES))),
        ("content-type", dice.of(&TYPES).to_owned()),
        ("x-asked", begun.to_string()),
    ];
    let field = |(name, value)| (HeaderName::from_static(name), HeaderValue::try_from(value).unwrap());
    said.into_iter().map(field).collect()
}
