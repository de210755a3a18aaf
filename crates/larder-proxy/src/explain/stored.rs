//! What lies under a key: each response, on what it is selected, how fresh it is, and what may be done when it is stale.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use larder_cache::explain::lifetimes;
use larder_cache::stale::may_refresh_behind;
use larder_cache::{CachePolicy, ExchangeTimes, StaleCause, StaleReason, StoredHead, may_serve_stale};
use larder_http::fields::cache_groups;
use larder_http::time::{Now, WallTime};
use larder_store::CacheKey;

use crate::respond;

use super::{
    Candidate, Freshness, Part, Reason, StaleUse, Stored, StoredResponse, VaryField, Walk, printable,
};

/// What lies under a key and under that of its parts, as it was before the look-up.
pub(super) struct Under {
    responses: Vec<Lying>,
    hit_for_miss: bool,
}

/// A stored response as this request finds it.
struct Lying {
    response: Arc<larder_store::StoredResponse>,
    selected: bool,
    holds: bool,
}

impl Under {
    pub(super) fn look(walk: &Walk<'_>, key: &CacheKey) -> Self {
        let groups = walk.worker.proxy.numbering.groups();
        let (store, fields) = (&walk.settings.store, &walk.head().fields);
        let (whole, hit_for_miss) = store.responses(key, walk.now.monotonic);
        let (parts, _) = store.responses(&key.of_parts(), walk.now.monotonic);
        let lying = |response: Arc<larder_store::StoredResponse>| Lying {
            selected: response.head.vary.selects(fields)
                && respond::has_what_is_asked(walk.head(), &response, walk.now.wall),
            holds: groups.hold(&response.head.groups, response.number),
            response,
        };
        Self { responses: whole.into_iter().chain(parts).map(lying).collect(), hit_for_miss }
    }

    /// The newest whole response that the request selects.
    pub(super) fn selected(&self) -> Option<&larder_store::StoredResponse> {
        let is_ours = |lying: &&Lying| lying.selected && lying.holds && lying.response.head.part.is_none();
        self.responses.iter().find(is_ours).map(|lying| &*lying.response)
    }

    pub(super) fn told(&self, walk: &Walk<'_>) -> Stored {
        let told = |lying: &Lying| {
            let head = &lying.response.head;
            let all = head.all_fields();
            StoredResponse {
                selected: lying.selected,
                invalidated: !lying.holds,
                status: head.status.as_u16(),
                body_bytes: lying.response.body.length(),
                part: head.part.as_ref().map(|part| Part {
                    first: part.range.start,
                    last: part.range.end.saturating_sub(1),
                    complete: part.complete,
                }),
                vary: vary(head, &walk.head().fields),
                etag: head.validators.etag.as_ref().map(printable),
                last_modified: head.validators.last_modified.as_ref().map(|(value, _)| printable(value)),
                freshness: Freshness {
                    stale: stale_directives(head),
                    ..freshness(&head.freshness, candidates(head, &all, &walk.settings.policy), walk.now)
                },
                groups: cache_groups::groups(&head.fields.map),
            }
        };
        Stored { responses: self.responses.iter().map(told).collect(), hit_for_miss: self.hit_for_miss }
    }
}

/// The fields that a response varies by, what it was made for, and what the request has.
fn vary(head: &StoredHead, request: &HeaderMap) -> Vec<VaryField> {
    let asked = |name: &http::HeaderName| {
        let lines: Vec<String> = request.get_all(name).iter().map(printable).collect();
        (!lines.is_empty()).then(|| lines.join(", "))
    };
    let told = head.vary.told().into_iter();
    told.map(|(name, stored)| VaryField { asked: asked(&name), name: name.to_string(), stored }).collect()
}

fn candidates(head: &StoredHead, all: &HeaderMap, policy: &CachePolicy) -> Vec<Candidate> {
    let received = head.freshness.received;
    let times = ExchangeTimes { request: received, response: received };
    candidates_of(head.status, all, times, policy)
}

/// Everything that gives a response with `fields` a lifetime.
pub(super) fn candidates_of(
    status: http::StatusCode,
    fields: &HeaderMap,
    times: ExchangeTimes,
    policy: &CachePolicy,
) -> Vec<Candidate> {
    let told = lifetimes(status, fields, times, policy);
    let told = told.into_iter().enumerate().map(|(place, one)| Candidate {
        source: source(one.source),
        field: one.field,
        lifetime_seconds: one.lifetime.as_secs_f64(),
        decides: place == 0,
    });
    told.collect()
}

fn source(source: larder_cache::LifetimeSource) -> Reason {
    Reason::new(source.token(), source.sentence(), source.section())
}

/// A response's freshness at `now`.
pub(super) fn freshness(of: &larder_cache::Freshness, candidates: Vec<Candidate>, now: Now) -> Freshness {
    Freshness {
        lifetime_seconds: of.lifetime.as_secs_f64(),
        source: source(of.source),
        candidates,
        age_seconds: of.age(now).as_secs_f64(),
        ttl_seconds: of.ttl_seconds(now),
        no_cache: of.no_cache,
        stale: Vec::new(),
    }
}

fn stale_directives(head: &StoredHead) -> Vec<String> {
    let said = &head.stale;
    let window =
        |name: &str, window: Option<Duration>| window.map(|window| format!("{name}={}", window.as_secs()));
    let bare = |name: &str, said: bool| said.then(|| name.to_owned());
    [
        bare("must-revalidate", said.must_revalidate),
        bare("s-maxage", said.s_maxage),
        window("stale-while-revalidate", said.while_revalidate),
        window("stale-if-error", said.if_error),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A moment after another.
pub(super) fn after(now: Now, wait: Duration) -> Now {
    let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    Now { wall: WallTime(now.wall.0.saturating_add(millis)), monotonic: now.monotonic.saturating_add(wait) }
}

/// What may be done with a stored response at `now`, when the origin fails or while it is asked.
pub(super) fn stale_use(stored: &StoredHead, now: Now, policy: &CachePolicy) -> Vec<StaleUse> {
    let causes = [("origin-dead", StaleCause::OriginDead), ("origin-error", StaleCause::OriginError)];
    let told = causes.map(|(cause, of)| {
        let (allowed, reason) = match may_serve_stale(stored, now, of, policy) {
            Ok(ground) => (true, Reason::new(ground.token(), ground.sentence(), ground.section())),
            Err(rule) => (false, Reason::new(rule.token(), rule.sentence(), rule.section())),
        };
        StaleUse { cause: cause.to_owned(), allowed, reason }
    });
    let behind = stored.stale.while_revalidate.map(|_| {
        let (allowed, ground) = (may_refresh_behind(stored, now), StaleReason::WhileRevalidate);
        let sentence = match (allowed, stored.freshness.is_fresh(now)) {
            (true, _) => ground.sentence(),
            (false, true) => "It is fresh, and the request asks for its validation.",
            (false, false) => "Its stale-while-revalidate has passed, or another directive forbids it.",
        };
        let reason = Reason::new(ground.token(), sentence, ground.section());
        StaleUse { cause: "while-revalidate".to_owned(), allowed, reason }
    });
    told.into_iter().chain(behind).collect()
}
