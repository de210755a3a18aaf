//! Bringing a stored response up to date with the 304 that confirmed it (RFC 9111 3.2, 4.3.4), or with the 200 to a HEAD
//! that describes it (4.3.5).
//!
//! In: what is stored, the request that was sent on, the new fields. Out: a new head to store in its place, or the
//! merged fields for this one answer where a 304 now forbids storing. New fields replace all stored lines of
//! the same name; what they do not mention stays. The exceptions describe the stored bytes, and those have not
//! changed: Content-Encoding, Content-Length, Content-Range, and the digests. A HEAD that names another coding than the
//! stored content has is about another form of it, and changes nothing. Cookies that may be somebody's are no news for
//! others: they never come in, and never end what is stored. All rules of storing are asked again, with the stored
//! response's private control fields, which no client sees. Fields with tags are one list, whatever their names: a 304 that has
//! one of them replaces them all. The language of a template stays, and what was none becomes none.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use larder_http::fields::date::{self, DateField};
use larder_http::fields::etag::EntityTag;
use larder_http::message::RequestHead;

use crate::age::ExchangeTimes;
use crate::coding::Codings;
use crate::cookies::Relieved;
use crate::cookies::own::take_cookies;
use crate::directives::{EffectiveDirectives, strip};
use crate::freshness::Freshness;
use crate::head::{StoredHead, kept_back};
use crate::not_storable::NotStorable;
use crate::policy::CachePolicy;
use crate::storable::{Storability, is_its_clients_alone, is_personal, storable_as_get};

/// Fields of one response, as towards origins.
const FIELDS_MAX: usize = 256;
/// Their names and values together, in bytes.
const BYTES_MAX: usize = 128 * 1024;

/// What became of a stored response.
#[derive(Clone, Debug)]
pub enum Updated {
    /// It lives on.
    Stored(Box<StoredHead>),
    /// The 304 brings more fields than a response may have: it is not used, and the request repeated without
    /// conditions.
    TooLarge,
    /// It answers this request once more. Where the reason [lies in the request](NotStorable::lies_in_request), what
    /// is stored stays as it was; otherwise it is to be removed.
    NoLongerStorable {
        /// The merged fields for this answer, without private control fields.
        fields: HeaderMap,
        /// The rule that forbids storing it.
        reason: NotStorable,
    },
}

/// Updates `stored`, which a 304 with the fields `not_modified` confirmed in answer to `request`.
pub fn update(
    stored: &StoredHead,
    request: &RequestHead,
    not_modified: &HeaderMap,
    times: ExchangeTimes,
    policy: &CachePolicy,
) -> Updated {
    let before = Before::of(stored, policy);
    let Some(merged) = renewed(&before.fields, not_modified, times, policy) else {
        return Updated::TooLarge;
    };
    let head = |fields, freshness| before.head(stored, request, (fields, freshness), policy);
    let judge = |fields: &HeaderMap| storable_as_get(request, stored.status, fields, times, policy);
    let reason = match before.with_cookies_of(not_modified, &merged, policy, judge) {
        (fields, Storability::Storable(freshness)) => {
            return Updated::Stored(Box::new(head(fields, freshness)));
        }
        (_, Storability::NotStorable(reason)) => reason,
    };
    let mut fields = merged;
    strip(&mut fields, &policy.controls);
    Updated::NoLongerStorable { fields, reason }
}

/// What is stored until now, as far as it stays.
struct Before {
    /// Without cookies that the rule keeps out of what is stored.
    fields: HeaderMap,
    relieved: Relieved,
}

impl Before {
    fn of(stored: &StoredHead, policy: &CachePolicy) -> Self {
        let mut fields = stored.all_fields();
        let taken = take_cookies(&mut fields, |line| policy.is_own(line));
        Self { fields, relieved: stored.relieved.clone().and(&taken) }
    }

    /// `merged`, with such cookies of `newer` as a stored response may carry, and how that is judged. Those that may be
    /// somebody's never get there; nor do others where the guard would not store the response with them: what one client
    /// is sent must not end what all others share.
    fn with_cookies_of(
        &self,
        newer: &HeaderMap,
        merged: &HeaderMap,
        policy: &CachePolicy,
        judge: impl Fn(&HeaderMap) -> Storability,
    ) -> (HeaderMap, Storability) {
        let with = |cookies: &[&HeaderValue]| {
            let mut fields = merged.clone();
            fields.remove(header::SET_COOKIE);
            fields.extend(cookies.iter().map(|line| (header::SET_COOKIE, (*line).clone())));
            let judged = judge(&fields);
            (fields, judged)
        };
        let stored: Vec<&HeaderValue> = self.fields.get_all(header::SET_COOKIE).iter().collect();
        let newer: Vec<&HeaderValue> = newer.get_all(header::SET_COOKIE).iter().collect();
        if newer.is_empty() || !policy.guards_cookies() {
            let judged = judge(merged);
            return (merged.clone(), judged);
        }
        let shared: Vec<&HeaderValue> = newer.into_iter().filter(|line| !policy.is_own(line)).collect();
        match with(if shared.is_empty() { &stored } else { &shared }) {
            (_, Storability::NotStorable(NotStorable::SetCookie)) if !shared.is_empty() => with(&stored),
            judged => judged,
        }
    }

    /// The head of the same response with newer fields.
    fn head(
        &self,
        stored: &StoredHead,
        request: &RequestHead,
        (fields, freshness): (HeaderMap, Freshness),
        policy: &CachePolicy,
    ) -> StoredHead {
        let head = StoredHead::new(request, stored.status, fields, freshness, policy);
        StoredHead {
            vary: head.vary.renewing(&stored.vary, &request.fields),
            relieved: self.relieved.clone().and(&head.relieved),
            ..head
        }
        // Which bytes are held is nothing that the origin says, nor is what was made of them when they came.
        .with_holes(stored.part.as_ref().map(|part| part.holes.clone()).unwrap_or_default())
        .with_language(stored.language())
    }
}

/// The lines of a 304 that are for the client alone that caused the validation of `stored`: those that the directives in
/// force after the update keep from being stored. They are the 304's own where it has any, else the stored ones, and
/// those of the field that decides; and under the guard every cookie that `renewed`, what is stored from now on, does not
/// carry. [`StoredHead::with_withheld`] is the same for a whole response. Empty where the update is
/// [`TooLarge`](Updated::TooLarge); what is [no longer storable](Updated::NoLongerStorable) has them among its fields.
pub fn withheld_by_update(
    stored: &StoredHead,
    renewed: &StoredHead,
    not_modified: &HeaderMap,
    policy: &CachePolicy,
) -> HeaderMap {
    let after = merged(&stored.all_fields(), not_modified, |_| true).unwrap_or_default();
    let directives = EffectiveDirectives::read(&after, policy).said;
    let sets_cookies = not_modified.contains_key(header::SET_COOKIE);
    let mut withheld = kept_back((&directives, sets_cookies), not_modified, policy);
    if policy.guards_cookies() && sets_cookies {
        withheld.remove(header::SET_COOKIE);
        let carried = |line: &HeaderValue| {
            renewed.fields.map.get_all(header::SET_COOKIE).iter().any(|carried| carried == line)
        };
        let own = not_modified.get_all(header::SET_COOKIE).iter().filter(|line| !carried(line));
        withheld.extend(own.map(|line| (header::SET_COOKIE, line.clone())));
    }
    withheld
}

/// What a 200 to HEAD makes of a stored response.
#[derive(Clone, Debug)]
pub enum HeadUpdate {
    /// It lives on with these fields.
    Updated(Box<StoredHead>),
    /// The origin would send something else now: it is to be removed.
    Outdated,
    /// It stays as it is: the HEAD says nothing that could be kept.
    Unchanged,
}

/// Updates `stored`, a whole response that `request`, a HEAD, selects and that was answered by 200 with `fields`. What
/// the HEAD names of ETag and Last-Modified has to be what is stored; a stored response with another status is not what
/// a GET would get any more. Its Content-Length, which is not kept among a response's fields, is for the caller to
/// compare with the body. A HEAD that is somebody's own says nothing about what all others get, and what it sets is for its
/// client.
pub fn update_by_head(
    stored: &StoredHead,
    request: &RequestHead,
    fields: &HeaderMap,
    times: ExchangeTimes,
    policy: &CachePolicy,
) -> HeadUpdate {
    let is_own =
        is_personal(request, policy) || is_its_clients_alone(&request.fields, &stored.freshness, policy);
    // Many servers compress no answer to HEAD, or choose another coding for this request.
    let is_coded_otherwise = !Codings::of(fields).are_like(stored.vary.codings());
    if stored.part.is_some() || is_own || is_coded_otherwise {
        return HeadUpdate::Unchanged;
    }
    if stored.status != StatusCode::OK || !is_described_by(stored, fields) {
        return HeadUpdate::Outdated;
    }
    let before = Before::of(stored, policy);
    let Some(merged) = renewed(&before.fields, fields, times, policy) else {
        return HeadUpdate::Unchanged;
    };
    let judge = |fields: &HeaderMap| storable_as_get(request, stored.status, fields, times, policy);
    match before.with_cookies_of(fields, &merged, policy, judge) {
        (fields, Storability::Storable(freshness)) => {
            let head = before.head(stored, request, (fields, freshness), policy);
            HeadUpdate::Updated(Box::new(head))
        }
        (_, Storability::NotStorable(reason)) if reason.lies_in_request() => HeadUpdate::Unchanged,
        (_, Storability::NotStorable(_)) => HeadUpdate::Outdated,
    }
}

/// Whether the validators in `fields` are those of what is stored. Tags are compared weakly, as for a 304: a server that
/// compresses weakens them. Where the HEAD names none, or nothing is stored to compare it with, it describes what is stored:
/// RFC 9111 4.3.5 asks that the validators received have matching ones, and a page without any would otherwise never be
/// brought up to date.
fn is_described_by(stored: &StoredHead, fields: &HeaderMap) -> bool {
    let validators = &stored.validators;
    let same_tag = !fields.contains_key(header::ETAG) || {
        let own = validators.etag.as_ref().and_then(|value| EntityTag::new(value.as_bytes()));
        own.zip(EntityTag::of(fields)).is_some_and(|(own, said)| own.equals_weakly(&said))
    };
    let same_date = !fields.contains_key(header::LAST_MODIFIED)
        || validators.last_modified.as_ref().is_some_and(|(value, modified)| {
            let said = DateField::read(fields, &header::LAST_MODIFIED, stored.freshness.received.wall);
            said == DateField::At(*modified) || fields.get(header::LAST_MODIFIED) == Some(value)
        });
    same_tag && same_date
}

/// Fields that say what the content hashes to (RFC 9530, RFC 2616 14.15).
const DIGESTS: [&str; 3] = ["content-md5", "content-digest", "repr-digest"];

/// The stored fields brought up to date; `None` where they are too large.
fn renewed(
    stored: &HeaderMap,
    newer: &HeaderMap,
    times: ExchangeTimes,
    policy: &CachePolicy,
) -> Option<HeaderMap> {
    let tag_fields = &policy.controls.tags;
    let mut stored = Cow::Borrowed(stored);
    if tag_fields.is_in(newer) {
        tag_fields.names().iter().for_each(|name| drop(stored.to_mut().remove(name)));
    }
    let mut fields = merged(&stored, newer, |name| match *name {
        header::CONTENT_ENCODING | header::CONTENT_LENGTH | header::CONTENT_RANGE => false,
        // The two are the same but perhaps for their strength, and that of the stored bytes is known.
        header::ETAG => !stored.contains_key(header::ETAG),
        // Digests are of the stored bytes.
        _ if DIGESTS.iter().any(|digest| name == digest) => !stored.contains_key(name),
        _ => true,
    })?;
    if !newer.contains_key(header::DATE) {
        // The stored Date would make the confirmed response as old as it was before.
        fields.insert(header::DATE, date::format(times.response.wall));
    }
    Some(fields)
}

/// `stored` with the lines of `newer` in place of those of the same name, for the names that `replaces` allows. `None`
/// where the sum is larger than a response's head may be: each answer may bring new names, without end.
pub(crate) fn merged(
    stored: &HeaderMap,
    newer: &HeaderMap,
    replaces: impl Fn(&HeaderName) -> bool,
) -> Option<HeaderMap> {
    let kept = stored.iter().filter(|(name, _)| !(replaces(name) && newer.contains_key(*name)));
    let new = newer.iter().filter(|(name, _)| replaces(name));
    let mut fields = HeaderMap::new();
    let mut bytes = 0;
    for (name, value) in kept.chain(new) {
        bytes += name.as_str().len() + value.len();
        if fields.len() == FIELDS_MAX || bytes > BYTES_MAX {
            return None;
        }
        fields.append(name, value.clone());
    }
    Some(fields)
}

#[cfg(test)]
mod tests;
