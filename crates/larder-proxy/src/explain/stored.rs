//! What lies under a key: each response, on what it is selected, and how fresh it is.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use larder_cache::explain::{LifetimeCandidate, lifetimes, shortened_from};
use larder_cache::{CachePolicy, ExchangeTimes, LifetimeSource, StoredHead, Verdict};
use larder_http::fields::cache_groups;
use larder_http::time::Now;
use larder_observe::{CacheId, Label};
use larder_store::CacheKey;

use crate::before::Before;
use crate::invalidation::Forgotten;
use crate::lookup::file_of;
use crate::respond;

use super::purged::ExplainedPurge;
use super::purges::tags_of;
use super::{
    Candidate, ExplainedBefore, ExplainedFreshness, ExplainedResponse, PartBounds, Reason, Stored, VaryField,
    Walk, printable, seconds, visible,
};

/// What lies under a key and under that of its parts, as it was before the look-up.
pub(super) struct Under {
    responses: Vec<Lying>,
    hit_for_miss: bool,
}

/// A stored response as this request finds it.
struct Lying {
    response: Arc<larder_store::StoredResponse>,
    store: CacheId,
    places: Vec<String>,
    held_back: Option<Reason>,
    selected: bool,
    verdict: Verdict,
    purge: Option<ExplainedPurge>,
}

impl Lying {
    fn of(
        walk: &Walk<'_>,
        (key, response, since): (&CacheKey, Arc<larder_store::StoredResponse>, Forgotten),
        (store, places, held_back): (CacheId, Vec<String>, Option<Reason>),
    ) -> Self {
        let verdict = walk.worker.proxy.invalidations.verdict(key, &response, since);
        let verdict = verdict.unwrap_or(Verdict::Gone);
        Self {
            purge: (verdict != Verdict::Good).then(|| walk.purge_that_ended(key, &response)).flatten(),
            selected: response.head.vary.selects(&walk.head().fields)
                && respond::has_what_is_asked(walk.head(), &response, walk.now.wall),
            verdict,
            response,
            store,
            places,
            held_back,
        }
    }
}

impl Lying {
    fn is_of_use(&self) -> bool {
        self.verdict.is_of_use(self.response.head.validators.etag.is_some())
    }
}

impl Under {
    pub(super) async fn look(walk: &Walk<'_>, key: &CacheKey) -> Self {
        let (mut whole, mut parts, mut hit_for_miss) = (Vec::new(), Vec::new(), false);
        let since = walk.worker.proxy.invalidations.forgotten();
        for (store, id) in walk.settings.stores() {
            let (own, is_marked) = store.responses(key, walk.now.monotonic);
            hit_for_miss |= is_marked;
            if let Some((response, path)) = file_of(walk.settings, store, walk.head(), walk.now).await {
                let path = visible(path.as_os_str().as_bytes());
                whole.push(Lying::of(walk, (key, response, since), (id, vec![path], None)));
            }
            let of_parts = key.of_parts();
            let (own_parts, _) = store.responses(&of_parts, walk.now.monotonic);
            for (found, key, into) in [(own, key, &mut whole), (own_parts, &of_parts, &mut parts)] {
                into.extend(found.into_iter().map(|response| {
                    let (places, held_back) = walk.lies_in(store, key, &response);
                    Lying::of(walk, (key, response, since), (id, places, held_back))
                }));
            }
        }
        // The one that is used before the others; of those that fit alike, and of all others, the newest.
        let fit = |lying: &Lying| {
            let head = &lying.response.head;
            let fit = head.vary.fit(&walk.head().fields).filter(|_| lying.selected && lying.is_of_use())?;
            Some(fit.where_fresh(head.freshness.is_fresh(walk.now)))
        };
        whole.sort_by_key(|lying| std::cmp::Reverse(fit(lying)));
        whole.append(&mut parts);
        Self { responses: whole, hit_for_miss }
    }

    /// Whether nothing lies there.
    pub(super) fn is_empty(&self) -> bool {
        self.responses.is_empty()
    }

    /// Whether all of some response lies there.
    pub(super) fn has_whole(&self) -> bool {
        self.responses.iter().any(|lying| lying.response.head.part.is_none())
    }

    /// The whole response that the request selects, and that fits it best.
    pub(super) fn selected(&self) -> Option<&larder_store::StoredResponse> {
        self.selected_in().map(|(response, _)| &**response)
    }

    /// The same, and the store that has it.
    pub(super) fn selected_in(&self) -> Option<(&Arc<larder_store::StoredResponse>, CacheId)> {
        let is_ours =
            |lying: &&Lying| lying.selected && lying.is_of_use() && lying.response.head.part.is_none();
        self.responses.iter().find(is_ours).map(|lying| (&lying.response, lying.store))
    }

    pub(super) fn told(&self, walk: &Walk<'_>, key: &CacheKey) -> Stored {
        let policy = &walk.settings.policy;
        let told = |lying: &Lying| {
            let head = &lying.response.head;
            let (tags, every_tag) = tags_of(head);
            let since = match lying.verdict {
                Verdict::Soft { since } | Verdict::Invalid { since } => since,
                _ => None,
            };
            ExplainedResponse {
                selected: lying.selected,
                invalidated: lying.verdict != Verdict::Good,
                soft: matches!(lying.verdict, Verdict::Soft { .. }),
                gone: !lying.is_of_use(),
                status: head.status.as_u16(),
                body_bytes: lying.response.body.length(),
                store: walk.store_name(lying.store),
                places: lying.places.clone(),
                held_back: lying.held_back.clone(),
                part: head.part.as_ref().map(|part| PartBounds {
                    first: part.range.start,
                    last: part.range.end.saturating_sub(1),
                    complete: part.complete,
                }),
                vary: vary(head, &walk.head().fields),
                content_encoding: content_encoding(head),
                uncompressed: walk
                    .uncompressed((head.status, &head.fields.map, Some(lying.response.body.length())))
                    .filter(|_| lying.selected),
                etag: head.validators.etag.as_ref().map(printable),
                last_modified: head.validators.last_modified.as_ref().map(|(value, _)| printable(value)),
                freshness: ExplainedFreshness {
                    stale: stale_directives(head),
                    ..freshness(&head.freshness, lifetimes_of(head, policy), walk.now, policy)
                },
                groups: cache_groups::groups(&head.fields.map),
                tags,
                every_tag,
                invalidated_seconds: since.map(|since| seconds(walk.now.monotonic.saturating_sub(since))),
                purge: lying.purge.clone(),
                cookies: larder_cache::cookies_of(&head.fields.map),
                cookies_withheld: head.relieved.names().map(str::to_owned).collect(),
            }
        };
        Stored {
            stores: walk.looked_through(),
            responses: self.responses.iter().map(told).collect(),
            hit_for_miss: self.hit_for_miss,
            before: self.is_empty().then(|| before(walk, key)),
            records: Vec::new(),
            last_purge: walk.last_purge(key, self.responses.iter().map(|lying| &*lying.response)),
        }
    }
}

/// What became of the URL.
fn before(walk: &Walk<'_>, key: &CacheKey) -> ExplainedBefore {
    let (before, ago) = Before::of(&walk.worker.proxy.fates, key, walk.now.monotonic);
    ExplainedBefore {
        word: before.token().to_owned(),
        sentence: before.sentence().to_owned(),
        minutes_ago: ago.map(|ago| ago.as_secs() / 60),
    }
}

/// The codings of its content, as they were sent.
fn content_encoding(head: &StoredHead) -> Option<String> {
    let lines: Vec<String> =
        head.fields.map.get_all(http::header::CONTENT_ENCODING).iter().map(printable).collect();
    (!lines.is_empty()).then(|| lines.join(", "))
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

/// Everything that gives a stored response a lifetime.
fn lifetimes_of(head: &StoredHead, policy: &CachePolicy) -> Vec<LifetimeCandidate> {
    // What its fields say is not asked.
    let field = match head.freshness.source {
        LifetimeSource::ByHand => Some("a file by hand"),
        LifetimeSource::Remote => Some("near"),
        _ => None,
    };
    if let Some(field) = field {
        let larder_cache::Freshness { lifetime, source, .. } = head.freshness;
        return vec![LifetimeCandidate { source, field: field.to_owned(), lifetime }];
    }
    let received = head.freshness.received;
    let times = ExchangeTimes { request: received, response: received };
    lifetimes(head.status, &head.all_fields(), times, policy)
}

fn candidates(told: Vec<LifetimeCandidate>) -> Vec<Candidate> {
    let told = told.into_iter().enumerate().map(|(place, one)| Candidate {
        source: source(one.source),
        field: one.field,
        lifetime_seconds: seconds(one.lifetime),
        decides: place == 0,
    });
    told.collect()
}

fn source(source: larder_cache::LifetimeSource) -> Reason {
    Reason::new(source.token(), source.sentence(), source.section())
}

/// A response's freshness at `now`, and what gave it.
pub(super) fn freshness(
    of: &larder_cache::Freshness,
    told: Vec<LifetimeCandidate>,
    now: Now,
    policy: &CachePolicy,
) -> ExplainedFreshness {
    ExplainedFreshness {
        lifetime_seconds: seconds(of.lifetime),
        source: source(of.source),
        shortened_from_seconds: shortened_from(of, &told, policy).map(seconds),
        candidates: candidates(told),
        age_seconds: seconds(of.age(now)),
        left_seconds: seconds(of.remaining(now)) - seconds(of.staleness(now)),
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
