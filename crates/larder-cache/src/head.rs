//! What is kept of a response besides its body: fields, freshness, selecting fields, validators and directives, all
//! read once so that a hit parses nothing.
//!
//! In: the head of a response that may be stored. Out: a [`StoredHead`], owned by the store and shared by answers;
//! it never changes, a validation makes a new one. Field values are copied into one piece of exactly their size,
//! so that nothing keeps a read buffer alive; the map and the HTTP/1 lines are two views of it.
//! Left out: Age, made anew for each answer; Content-Length, which is the listener's; what a qualified `no-cache` or
//! `private` names; cookies that may be somebody's; Set-Cookie where the rule strips it. Fields that only this cache is told lie apart, so that a
//! validation can judge the response anew. A missing Date is added (RFC 9110 6.6.1).

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use larder_http::fields::cache_control::ResponseDirectives;
use larder_http::fields::date;
use larder_http::message::{PreparedFields, RequestHead};
use larder_http::template::Language;
use larder_http::time::WallTime;

use crate::coding::Codings;
use crate::cookies::own::{first_own, take_cookies};
use crate::cookies::{Caution, Relieved};
use crate::directives::{self, EffectiveDirectives, is_left_out};
use crate::freshness::{Freshness, LifetimeSource};
use crate::groups::GroupTags;
use crate::part::Part;
use crate::policy::{CachePolicy, SetCookiePolicy};
use crate::purge::pattern::TagText;
use crate::purge::tags::Tags;
use crate::template;
use crate::validators::Validators;
use crate::vary::{Selecting, selecting_names};

mod template_head;
mod weight;
pub(crate) mod written;

pub use template_head::{TemplateHead, page_fields};
use weight::{map_bytes, prepared_bytes};

/// A stored response without its body.
#[derive(Clone, Debug)]
pub struct StoredHead {
    /// As the origin sent it.
    pub status: StatusCode,
    /// End-to-end fields, ready to be sent.
    pub fields: Arc<PreparedFields>,
    /// How long it is fresh.
    pub freshness: Freshness,
    /// Which requests it answers.
    pub vary: Selecting,
    /// With what it can be validated.
    pub validators: Validators,
    /// What was said about its use when stale.
    pub stale: StaleDirectives,
    /// Which bytes it holds, where it is a 206.
    pub part: Option<Part>,
    /// With which responses of its origin it becomes outdated.
    pub groups: GroupTags,
    /// By which names its application purges it.
    pub tags: Option<Box<Tags>>,
    /// The fields that only this cache is told; never sent.
    pub controls: Option<Box<HeaderMap>>,
    /// Cookies that it came with and that are not stored.
    pub relieved: Relieved,
    /// What keeps it from being used before the origin has confirmed it.
    pub caution: Caution,
    /// What makes it a template, where it is one.
    pub template: Option<Box<TemplateHead>>,
}

/// Directives that matter once a response is stale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StaleDirectives {
    /// `must-revalidate` or `proxy-revalidate`.
    pub must_revalidate: bool,
    /// `s-maxage`, which implies `proxy-revalidate`.
    pub s_maxage: bool,
    /// `stale-while-revalidate`
    pub while_revalidate: Option<Duration>,
    /// `stale-if-error`
    pub if_error: Option<Duration>,
}

impl StaleDirectives {
    /// How long past its lifetime a response may be of use by its own words.
    pub fn longest_window(&self) -> Duration {
        match self.must_revalidate {
            true => Duration::ZERO,
            false => self.while_revalidate.max(self.if_error).unwrap_or_default(),
        }
    }

    fn of(directives: &ResponseDirectives, source: LifetimeSource) -> Self {
        let overridden = matches!(source, LifetimeSource::OverrideTtl | LifetimeSource::ByHand);
        Self {
            must_revalidate: !overridden && (directives.must_revalidate || directives.proxy_revalidate),
            s_maxage: !overridden && directives.s_maxage.is_some(),
            while_revalidate: directives.stale_while_revalidate,
            if_error: directives.stale_if_error,
        }
    }
}

impl StoredHead {
    /// Prepares a response for the store, with all fields that the origin sent. `freshness` comes from
    /// [`storable`](fn@crate::storable) under the same policy, which has refused whatever has no usable Vary; such a
    /// response would select as if it did not vary.
    pub fn new(
        request: &RequestHead,
        status: StatusCode,
        fields: HeaderMap,
        freshness: Freshness,
        policy: &CachePolicy,
    ) -> Self {
        let said = Said::of(&fields, policy);
        Self::of(&said, (request, status), fields, freshness, policy)
    }

    /// The same, and the lines of the answer that are for the client alone that caused it: those that a qualified `no-cache` or
    /// `private` keeps from being stored (RFC 9111 5.2.2.4, 5.2.2.7), and cookies that may be somebody's. What the rule strips or
    /// only this cache is told, nobody gets.
    pub fn with_withheld(
        request: &RequestHead,
        status: StatusCode,
        fields: HeaderMap,
        freshness: Freshness,
        policy: &CachePolicy,
    ) -> (Self, HeaderMap) {
        let said = Said::of(&fields, policy);
        let withheld = said.kept_back(&fields, policy);
        (Self::of(&said, (request, status), fields, freshness, policy), withheld)
    }

    fn of(
        said: &Said,
        (request, status): (&RequestHead, StatusCode),
        mut fields: HeaderMap,
        freshness: Freshness,
        policy: &CachePolicy,
    ) -> Self {
        let directives = &said.directives;
        let language = template::language(policy, status, &fields);
        let names = selecting_names(&fields, policy);
        debug_assert!(names.is_some(), "a response with Vary: * is not storable");
        let is_own = |line: &HeaderValue| policy.is_own(line);
        let relieved = match said.sets_cookies && fields.get_all(header::SET_COOKIE).iter().any(is_own) {
            true => take_cookies(&mut fields, is_own),
            false => Relieved::default(),
        };
        let own_cookies =
            said.sets_cookies && !policy.guards_cookies() && carries_own(&fields, directives, policy);
        let prepared = prepare(&fields, said, freshness.received.wall, policy);
        let template = language.map(|language| Box::new(TemplateHead::new(language, &prepared.map)));
        let mut languages = prepared.map.get_all(header::CONTENT_LANGUAGE).iter();
        // A text in two languages is not what somebody wants who likes the first of them best.
        let language = match (languages.next(), languages.next()) {
            (language, None) => language.filter(|_| policy.language_selection),
            (_, Some(_)) => None,
        };
        Self {
            status,
            validators: Validators::of(status, &prepared.map, freshness.received.wall),
            vary: Selecting::new(names.unwrap_or_default(), &request.fields, language, Codings::of(&fields)),
            stale: StaleDirectives::of(directives, freshness.source),
            part: (status == StatusCode::PARTIAL_CONTENT).then(|| Part::of(&fields)).flatten(),
            groups: GroupTags::of(request.scheme, &request.authority, &fields),
            tags: said.may_have_tags.then(|| Tags::of(&fields, &policy.controls.tags)).flatten(),
            controls: said.may_have_tags.then(|| controls(&fields, directives, policy)).flatten(),
            relieved,
            caution: Caution { own_cookies, ..Caution::default() },
            template,
            fields: Arc::new(prepared),
            freshness,
        }
    }

    /// The same, of which only this is held. Its Content-Range says where that begins and ends.
    pub fn with_holes(mut self, holes: Vec<std::ops::Range<u64>>) -> Self {
        if let Some(part) = &mut self.part {
            part.holes = holes;
        }
        self
    }

    /// The same for a response that was invalidated: its lifetime ended at this moment of the monotonic clock, or never
    /// was where the moment is not known.
    #[must_use]
    pub fn invalidated(&self, since: Option<Duration>) -> Self {
        let freshness = match since {
            Some(since) => self.freshness.ended_at(since),
            None => Freshness { lifetime: Duration::ZERO, ..self.freshness },
        };
        Self { freshness, ..self.clone() }
    }

    /// The same as a template of this language, or as none.
    #[must_use]
    pub fn with_language(mut self, language: Option<Language>) -> Self {
        if self.language() != language {
            self.template = language.map(|language| Box::new(TemplateHead::new(language, &self.fields.map)));
        }
        self
    }

    /// Its language, where it is a template.
    pub fn language(&self) -> Option<Language> {
        self.template.as_ref().map(|template| template.language)
    }

    /// The stored fields and those that only this cache was told: what the response is judged by.
    pub fn all_fields(&self) -> HeaderMap {
        let mut all = self.fields.map.clone();
        for (name, value) in self.controls.iter().flat_map(|controls| controls.iter()) {
            all.append(name, value.clone());
        }
        all
    }

    /// Its tags as patterns see them.
    pub fn tag_text(&self) -> TagText<'static> {
        match &self.tags {
            None => TagText::Joined(Cow::Borrowed(&[])),
            Some(tags) if tags.carries_every() => TagText::Every,
            Some(tags) => TagText::Joined(tags.text(&self.all_fields()).into()),
        }
    }

    /// Bytes in memory, the struct itself included: an upper estimate for the weight of a stored response.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + prepared_bytes(&self.fields)
            + self.vary.memory_bytes()
            + self.relieved.memory_bytes()
            + self.groups.memory_bytes()
            + self.tags.as_ref().map_or(0, |tags| tags.memory_bytes())
            + self.part.as_ref().map_or(0, |part| part.holes.capacity() * size_of::<std::ops::Range<u64>>())
            + self.controls.as_deref().map_or(0, map_bytes)
            + self.template.as_ref().map_or(0, |template| template.memory_bytes())
    }
}

/// The private fields of a response, copied. So are those with its tags that are not kept among the others.
fn controls(
    fields: &HeaderMap,
    directives: &ResponseDirectives,
    policy: &CachePolicy,
) -> Option<Box<HeaderMap>> {
    let is_copied = |name: &&HeaderName| {
        directives::is_private(&policy.controls, name)
            || (policy.controls.tags.has(name) && is_left_out(directives, policy, name))
    };
    let mut controls = HeaderMap::new();
    for name in fields.keys().filter(is_copied) {
        for value in fields.get_all(name) {
            let value = HeaderValue::from_bytes(value.as_bytes());
            controls.append(name, value.expect("these bytes were a field value before"));
        }
    }
    (!controls.is_empty()).then(|| Box::new(controls))
}

/// Whether cookies are stored that would be kept out under the guard.
fn carries_own(fields: &HeaderMap, directives: &ResponseDirectives, policy: &CachePolicy) -> bool {
    !is_left_out(directives, policy, &header::SET_COOKIE) && first_own(fields, policy).is_some()
}

/// What a response says of itself, read once.
struct Said {
    directives: ResponseDirectives,
    sets_cookies: bool,
    /// Some field ends here.
    has_private: bool,
    /// Some field ends here, or carries tags that are passed on.
    may_have_tags: bool,
}

impl Said {
    fn of(fields: &HeaderMap, policy: &CachePolicy) -> Self {
        let has_private = fields.keys().any(|name| directives::is_private(&policy.controls, name));
        Self {
            directives: EffectiveDirectives::read(fields, policy).said,
            sets_cookies: fields.contains_key(header::SET_COOKIE),
            has_private,
            may_have_tags: has_private || policy.controls.tags.is_passed(),
        }
    }

    fn kept_back(&self, fields: &HeaderMap, policy: &CachePolicy) -> HeaderMap {
        kept_back((&self.directives, self.sets_cookies), fields, policy)
    }
}

/// What [`StoredHead::with_withheld`] keeps back, also where the directives are not those of the same fields.
pub(crate) fn kept_back(
    (directives, sets_cookies): (&ResponseDirectives, bool),
    fields: &HeaderMap,
    policy: &CachePolicy,
) -> HeaderMap {
    let names = directives.no_cache.fields().iter().chain(directives.private.fields());
    let is_nobodys = |name: &HeaderName| {
        (policy.set_cookie == SetCookiePolicy::Strip && *name == header::SET_COOKIE)
            || directives::is_private(&policy.controls, name)
    };
    let mut withheld = HeaderMap::new();
    for name in names.filter(|name| !is_nobodys(name)) {
        if !withheld.contains_key(name) {
            withheld.extend(fields.get_all(name).iter().map(|value| (name.clone(), value.clone())));
        }
    }
    if sets_cookies && !withheld.contains_key(header::SET_COOKIE) {
        let own = fields.get_all(header::SET_COOKIE).iter().filter(|line| policy.is_own(line));
        withheld.extend(own.map(|line| (header::SET_COOKIE, line.clone())));
    }
    withheld
}

/// Copies what is to be stored into one piece.
fn prepare(fields: &HeaderMap, said: &Said, received: WallTime, policy: &CachePolicy) -> PreparedFields {
    let is_kept = |name: &HeaderName| {
        *name != header::AGE
            && *name != header::CONTENT_LENGTH
            && !is_left_out(&said.directives, policy, name)
            && !(said.has_private && directives::is_private(&policy.controls, name))
    };
    let added_date = (!fields.contains_key(header::DATE)).then(|| date::format(received));
    let kept = || {
        let date = added_date.as_ref().map(|date| (&header::DATE, date));
        fields.iter().filter(|(name, _)| is_kept(name)).chain(date)
    };
    let length = kept().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    let mut http1 = Vec::with_capacity(length);
    let mut values: Vec<(HeaderName, Range<usize>)> = Vec::new();
    for (name, value) in kept() {
        http1.extend_from_slice(name.as_str().as_bytes());
        http1.extend_from_slice(b": ");
        let start = http1.len();
        http1.extend_from_slice(value.as_bytes());
        values.push((copied(name), start..http1.len()));
        http1.extend_from_slice(b"\r\n");
    }
    let http1 = Bytes::from(http1);
    let mut map = HeaderMap::with_capacity(values.len());
    for (name, range) in values {
        let value = HeaderValue::from_maybe_shared(http1.slice(range));
        map.append(name, value.expect("these bytes were a field value before"));
    }
    PreparedFields::with_lines(map, http1)
}

/// The same name without a share in the buffer that it was read from.
fn copied(name: &HeaderName) -> HeaderName {
    HeaderName::from_bytes(name.as_str().as_bytes()).unwrap_or_else(|_| name.clone())
}

#[cfg(test)]
mod tests;
