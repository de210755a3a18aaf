//! What the origin answers, where only that tells what becomes of a request, and whether it would be stored.
//!
//! One request, over a connection of its own; the content is never read, and nothing is stored. The conditions that
//! larder would add are left out, so that the answer shows all of its fields.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method};
use larder_cache::directives::EffectiveDirectives;
use larder_cache::explain::{LifetimeCandidate, lifetimes};
use larder_cache::{ExchangeTimes, LifetimeSource, Storability, StoredHead, VaryNames};
use larder_http::body::Body;
use larder_http::fields::cache_status::{CacheStatus, Outcome};
use larder_http::message::{Peer, RequestHead};
use larder_origin::{Affinity, Origin, OriginResponse};
use tokio::time::Instant;

use super::cookies;
use super::stored::freshness;
use super::{
    CONFIGURATION, ExplainedFreshness, Field, Judgement, OriginAnswer, Outlook, Reason, Walk, printable,
    seconds,
};
use crate::decision::{Counters, Facts, Next, Storable, next};
use crate::detail::COOKIES_WITHHELD;
use crate::facts;
use crate::fetch::{self, ClientHop};
use crate::forward;
use crate::help::help;
use crate::not_stored::NotStored;

/// Who asks, as the origin is told: an address for documentation (RFC 5737). Applications treat their own machine
/// otherwise than clients.
const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// Response fields that caching looks at; others are not told.
const TOLD: [&str; 17] = [
    "age",
    "cache-control",
    "cache-groups",
    "cdn-cache-control",
    "content-encoding",
    "content-language",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expires",
    "last-modified",
    "set-cookie",
    "surrogate-control",
    "vary",
    "x-accel-expires",
    "x-reverse-proxy-ttl",
];

impl Walk<'_> {
    /// Asks, and judges as the answer to a fetch is judged. With the answer, what Cache-Status says of it.
    pub(super) async fn ask_origin(&self, outlook: &Outlook) -> Option<(OriginAnswer, CacheStatus)> {
        let choice = self.site.settings.origin.and_then(|origin| self.plan.origins.get(origin))?;
        let mut told = OriginAnswer {
            origin: choice.name.to_string(),
            not_asked: None,
            failed: None,
            status: None,
            seconds: None,
            fields: Vec::new(),
            uncompressed: None,
            judgement: None,
        };
        let mut status = CacheStatus::new(Outcome::Own);
        let head = self.head();
        if self.question.offline || !matches!(head.method, Method::GET | Method::HEAD) {
            let why = match self.question.offline {
                true => "asking was switched off",
                false => "only GET and HEAD are sent to explain something",
            };
            told.not_asked = Some(why.to_owned());
            return Some((told, status));
        }
        let via = choice.via;
        let request = fetch::for_flight(head, outlook.marked, outlook.as_get);
        let clock = &self.worker.proxy.clock;
        let (begun, wanted) = (Instant::now(), clock.now());
        let answered = match Origin::new(Arc::clone(&choice.settings), Arc::clone(&choice.state)) {
            Ok(origin) => {
                let remote = SocketAddr::new(IpAddr::V4(CLIENT), 0);
                let hop = ClientHop {
                    peer: Peer::clear(remote, remote),
                    is_waiting: false,
                    trusted: false,
                    takes_trailers: false,
                    via,
                    assembles: self.settings.policy.templates.is_on(),
                };
                let affinity = Affinity::default();
                origin
                    .send(fetch::outgoing(&request, Body::Empty, false, (hop, affinity), None))
                    .await
                    .map_err(|error| (error.token(), error.to_string()))
            }
            Err(error) => Err(("setup", error.to_string())),
        };
        match answered {
            Ok(mut answer) => {
                let on_the_way = begun.elapsed().saturating_sub(answer.timing.first_byte);
                let times = ExchangeTimes { request: wanted.later(on_the_way), response: clock.now() };
                fetch::complete(&mut answer.fields, times.response);
                status.forward_status = Some(answer.status);
                told.status = Some(answer.status.as_u16());
                told.seconds = Some(seconds(times.delay()));
                told.fields = self.fields_told(&answer.fields);
                let announced = answer.body.length().or(answer.content_length);
                told.uncompressed = self.uncompressed((answer.status, &answer.fields, announced));
                told.judgement = Some(self.judge(&request, &answer, (times, outlook.seldom), &mut status));
            }
            Err((token, sentence)) => {
                status.detail = Some(token);
                told.failed = Some(Reason::new(token, sentence, "RFC 9110 15.6"));
            }
        }
        Some((told, status))
    }

    fn fields_told(&self, fields: &HeaderMap) -> Vec<Field> {
        let targets = &self.settings.policy.controls.targets;
        let is_told = |name: &http::HeaderName| TOLD.contains(&name.as_str()) || targets.contains(name);
        let told = fields.iter().filter(|(name, _)| is_told(name));
        told.map(|(name, value)| Field { name: name.to_string(), value: printable(value) }).collect()
    }

    fn judge(
        &self,
        request: &RequestHead,
        answer: &OriginResponse,
        (times, seldom): (ExchangeTimes, bool),
        status: &mut CacheStatus,
    ) -> Judgement {
        let (policy, fields) = (&self.settings.policy, &answer.fields);
        let judged = forward::judge(request, answer, times, policy);
        let announced = answer.body.length().or(answer.content_length);
        let told = lifetimes(answer.status, fields, times, policy);
        let vary = VaryNames::of(fields).map_or_else(
            || vec!["*".to_owned()],
            |names| names.names().iter().map(ToString::to_string).collect(),
        );
        match judged {
            Storability::Storable(found) => {
                let head = StoredHead::new(request, answer.status, fields.clone(), found, policy);
                let cookies_withheld: Vec<String> = head.relieved.names().map(str::to_owned).collect();
                let (store, place) = self.destination((answer.status, fields, announced), &head);
                let storable = facts::storable(store, (&self.place_of(&head), &head), announced, seldom);
                let passing = self.passing(storable);
                status.ttl_seconds = Some(found.ttl_seconds(times.response));
                let shared = found.is_shareable();
                let freshness = freshness(&found, told, times.response, policy);
                if let Some((reason, sentence, help)) = passing {
                    status.detail = Some(reason.token());
                    let reason = Reason::new(reason.token(), sentence, CONFIGURATION);
                    return Judgement {
                        stored: false,
                        shared,
                        reason,
                        help: Some(help),
                        place: None,
                        freshness,
                        vary,
                        cookies_withheld,
                    };
                }
                status.stored = true;
                status.detail = (!cookies_withheld.is_empty()).then_some(COOKIES_WITHHELD);
                let sentence = match shared {
                    true => "It will be stored, and shared with all who ask for the same meanwhile.",
                    false => "It will be stored to be validated; each request will ask the origin.",
                };
                let reason = Reason::new("stored", sentence, "RFC 9111 3");
                Judgement {
                    stored: true,
                    shared,
                    reason,
                    help: None,
                    place: Some(place),
                    freshness,
                    vary,
                    cookies_withheld,
                }
            }
            Storability::NotStorable(reason) => {
                status.detail = Some(reason.token());
                let sentence =
                    cookies::because(reason.sentence(), cookies::named(reason, request, fields, policy));
                Judgement {
                    stored: false,
                    shared: false,
                    reason: Reason::new(reason.token(), sentence, reason.section()),
                    help: help(reason).map(str::to_owned),
                    place: None,
                    freshness: self.lifetime_of_nothing(fields, told, times),
                    vary,
                    cookies_withheld: Vec::new(),
                }
            }
        }
    }

    /// Why what may be stored is sent through a window all the same, and what would help.
    pub(super) fn passing(&self, storable: Storable) -> Option<(NotStored, String, String)> {
        let (Next::SendThrough(why), _) = next(&Facts::Storable(storable), Counters::default()) else {
            return None;
        };
        let (sentence, help) = match why {
            NotStored::MinUses => (
                format!("The rule stores only what was asked for {} times lately.", self.settings.min_uses),
                "Ask again, or set a smaller min_uses.",
            ),
            _ => (
                "It is larger than its store takes: it will be sent through a window.".to_owned(),
                "A larger max_object, or more memory, for the store.",
            ),
        };
        Some((why, sentence, help.to_owned()))
    }

    /// How long it would be fresh if it were stored: what is told where it is not.
    fn lifetime_of_nothing(
        &self,
        fields: &HeaderMap,
        told: Vec<LifetimeCandidate>,
        times: ExchangeTimes,
    ) -> ExplainedFreshness {
        let policy = &self.settings.policy;
        let first = told.first().map(|first| (first.lifetime, first.source));
        let (lifetime, source) = first.unwrap_or((Duration::ZERO, LifetimeSource::Nothing));
        let of = larder_cache::Freshness {
            lifetime,
            source,
            initial_age: larder_cache::age::initial_age(fields, times),
            received: times.response,
            no_cache: EffectiveDirectives::read(fields, policy).said.no_cache.is_whole(),
        };
        freshness(&of, told, times.response, policy)
    }
}
