//! The cache key of a request, and the target as the origin will see it.
//!
//! Key = canonical authority, raw path, raw query (the base), then scheme and the parts that the rule adds (the
//! variant). A rule that leaves parameters out of the key, or sorts them, changes the target itself: the origin
//! receives exactly what was keyed, so a page made for one query is never found under another.

mod query;

use larder_http::fields::cookie;
use larder_http::message::RequestHead;
use larder_http::target::Target;
use larder_store::CacheKey;

use crate::settings::KeySettings;

/// The target with the rule's normalisation of the query applied; `None` where it changes nothing.
pub(crate) fn normalise(target: &Target, settings: &KeySettings) -> Option<Target> {
    let query = target.query()?;
    let normal = query::normalise(query, settings)?;
    let text = match normal.as_str() {
        "" => target.path().to_owned(),
        normal => format!("{}?{normal}", target.path()),
    };
    // Parameters of a valid target, fewer or in another order, make a valid target.
    Target::parse(text.into()).ok()
}

/// The key of a request whose target is already normalised.
pub(crate) fn key(head: &RequestHead, settings: &KeySettings) -> CacheKey {
    let mut key = CacheKey::new(head.authority.as_str(), head.target.as_str());
    key.push_part(head.scheme.as_str().as_bytes());
    for name in &settings.cookies {
        let mut values = cookie::pairs(&head.fields).filter(|(other, _)| *other == name.as_bytes());
        push_optional(&mut key, values.next().map(|(_, value)| value));
    }
    for name in &settings.fields {
        let mut values = head.fields.get_all(name).iter().peekable();
        if values.peek().is_none() {
            push_optional(&mut key, None);
        }
        for value in values {
            push_optional(&mut key, Some(value.as_bytes()));
        }
        key.push_part(b";");
    }
    key
}

/// An absent value and an empty one are different keys.
fn push_optional(key: &mut CacheKey, value: Option<&[u8]>) {
    match value {
        Some(value) => {
            key.push_part(b"=");
            key.push_part(value);
        }
        None => key.push_part(b"-"),
    }
}
