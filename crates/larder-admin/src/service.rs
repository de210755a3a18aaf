//! From a request to its answer: guard, endpoint, action.
//!
//! In: a request and the address that it came from. Out: its answer. The order is fixed: Host, token, path, method, page of another site,
//! what the token permits, parameters. A request that is not let in learns nothing, not even which paths exist.

use std::net::IpAddr;
use std::sync::Arc;

use http::StatusCode;
use http::header::ACCEPT;
use larder_http::body::Body;
use larder_http::message::{Request, RequestHead, Response};
use larder_http::time::Clock;
use larder_listen::{BoxedCall, Interims, Service};
use larder_observe::{Event, Exposition, exposition};

use crate::answer::{
    JSON, Refused, TEXT, attachment, content, refusal, unanswered, unexplained, unknown_parameter,
};
use crate::assets;
use crate::endpoints::index_text;
use crate::endpoints::line::{Action, Class, Deed, Endpoint};
use crate::figures;
use crate::guard::{Guard, Permit};
use crate::larder::{Health, Larder, Shown};
use crate::live;
use crate::purges::api::PurgeApi;
use crate::purges::{content_of, may_change, with_receipt};
use crate::query;
use crate::refusals::Refusals;
use crate::wrong_tokens::{Closed, Verdict, WRONG_MAX, WrongTokens};
use tokio::sync::Semaphore;

/// In front of the name of a purge.
const PURGE_PATH: &str = "/api/v1/purges/";

/// The service of the admin address. Cloning shares it.
#[derive(Clone)]
pub struct Admin {
    shared: Arc<Shared>,
}

struct Shared {
    larder: Arc<dyn Larder>,
    guard: Guard,
    clock: Clock,
    wrong: WrongTokens,
    closed: Closed,
    refusals: Refusals,
    /// Places for explanations, each of which may ask an origin.
    explaining: Semaphore,
    /// Places for looks at what is stored, each of which may wait for a disk.
    looking: Semaphore,
}

/// Explanations under way at once; more are refused, so that a silent origin never takes what health checks need.
const EXPLANATIONS_MAX: usize = 8;

/// Looks at what is stored that are under way at once; more are refused, so that the disks stay with the clients.
const LOOKS_MAX: usize = 4;

impl std::fmt::Debug for Admin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admin").field("guard", &self.shared.guard).finish_non_exhaustive()
    }
}

impl Admin {
    /// Shows `larder` to whom `guard` lets in.
    pub fn new(larder: Arc<dyn Larder>, guard: Guard, clock: Clock) -> Self {
        let (explaining, looking) = (Semaphore::new(EXPLANATIONS_MAX), Semaphore::new(LOOKS_MAX));
        let (wrong, closed, refusals) = (WrongTokens::default(), Closed::default(), Refusals::default());
        let shared = Shared { larder, guard, clock, wrong, closed, refusals, explaining, looking };
        Self { shared: Arc::new(shared) }
    }

    /// Answers a request that came from `peer`. To HEAD it gives what GET would get; the listener does not send the content. Of the
    /// request's own content is read what a purge needs.
    ///
    /// # Cancel safety
    /// May be dropped at any time: what is asked for an explanation is given up. A purge that has begun has happened.
    pub async fn answer(&self, head: &RequestHead, peer: IpAddr, body: &mut Body) -> Response {
        let endpoint = Endpoint::at(head.target.path());
        let (action, permit) = match self.admit(head, peer, endpoint) {
            Ok((endpoint, action, permit)) => {
                let unknown = action.unknown_parameter(head.target.query().unwrap_or_default());
                if let Some(name) = unknown.filter(|_| endpoint.is_of_api()) {
                    return unknown_parameter(name, action);
                }
                (action, permit)
            }
            Err(refused) => {
                self.shared.refusals.count(refused);
                return match endpoint.and_then(Endpoint::purge_api) {
                    Some(api) => api.turn_away(refused),
                    None => refusal(refused),
                };
            }
        };
        match action.deed {
            Deed::Requests
            | Deed::Events
            | Deed::Live
            | Deed::Now
            | Deed::Series
            | Deed::Latency
            | Deed::Top
            | Deed::Breakdown => self.watch(action.deed, head),
            Deed::Purge(api) => self.purge(api, head, std::mem::replace(body, Body::Empty)).await,
            Deed::About => {
                let json = self.shared.larder.about(permit == Permit::Everything);
                content(StatusCode::OK, JSON, json)
            }
            Deed::Config => self.config().await,
            Deed::Certificates => content(StatusCode::OK, JSON, self.shared.larder.certificates()),
            Deed::Renew => self.renew(head),
            Deed::Explain => self.explain(head).await,
            Deed::List => self.list(head).await,
            Deed::Object => self.object(head).await,
            Deed::Remove => self.remove(head).await,
            Deed::PurgeOf => self.purge_of(head),
            Deed::Index => index(head),
            Deed::File => {
                assets::file(head.target.path(), &head.fields).unwrap_or_else(|| refusal(Refused::Path))
            }
            Deed::Fleet => self.fleet(),
            Deed::Purges => content(StatusCode::OK, JSON, self.shared.larder.purges()),
            Deed::Health => self.health(),
            Deed::Metrics => self.metrics(),
            Deed::Stats => self.stats(),
        }
    }

    /// Who is let in, and to what. A request without a token learns nothing, not even which paths exist.
    fn admit(
        &self,
        head: &RequestHead,
        peer: IpAddr,
        endpoint: Option<&'static Endpoint>,
    ) -> Result<(&'static Endpoint, &'static Action, Permit), Refused> {
        let guard = &self.shared.guard;
        if !guard.is_trusted_host(head.authority.host()) {
            return Err(Refused::Host);
        }
        let found = endpoint.and_then(|endpoint| Some((endpoint, endpoint.action(&head.method)?)));
        let is_open = endpoint.is_some_and(Endpoint::is_open);
        let own = endpoint.and_then(Endpoint::purge_api).and_then(PurgeApi::token_field);
        let permit = match is_open {
            true => Permit::Look,
            false => guard.permit(&head.fields, own.as_ref()),
        };
        match permit {
            Permit::Nothing => return Err(Refused::NoToken),
            Permit::Wrong => return Err(self.wrong_token(peer)),
            Permit::Look | Permit::Everything => {}
        }
        let endpoint = endpoint.ok_or(Refused::Path)?;
        let (_, action) = found.ok_or(Refused::Method(endpoint))?;
        let is_careful = endpoint.is_of_api() || matches!(action.class, Class::Costs | Class::Changes);
        if is_careful && Guard::is_foreign_page(&head.fields) {
            return Err(Refused::Page);
        }
        if action.class == Class::Changes {
            if permit == Permit::Look {
                return Err(Refused::ViewToken);
            }
            if !may_change(head) {
                return Err(Refused::Change);
            }
        }
        Ok((endpoint, action, permit))
    }

    fn wrong_token(&self, peer: IpAddr) -> Refused {
        let (verdict, has_forgotten) = self.shared.wrong.note(peer, self.shared.clock.now().monotonic);
        if has_forgotten {
            self.shared.refusals.forgot();
        }
        match verdict {
            Verdict::Wrong => Refused::WrongToken,
            Verdict::Closing => {
                self.tell_of_tokens(peer);
                Refused::WrongToken
            }
            Verdict::Wait(left) => Refused::WrongTokens(left),
        }
    }

    /// An address is closed to wrong tokens. Not told of each where there are many at once: what happened besides is worth more.
    fn tell_of_tokens(&self, peer: IpAddr) {
        let now = self.shared.clock.now();
        let Some(watch) = self.shared.larder.watch() else { return };
        let Some(others) = self.shared.closed.may_tell(now.monotonic) else { return };
        let others = match others {
            0 => String::new(),
            count => format!("; so did {count} other addresses since the last such event"),
        };
        let subject = watch.client(peer).unwrap_or_default();
        let text = format!(
            "{WRONG_MAX} tokens from one address within a minute were wrong; for a minute it gets 429 for further ones{others}"
        );
        watch.tell(Event { at: now.wall, kind: "tokens", subject, text });
    }

    /// What is seen of requests.
    fn watch(&self, deed: Deed, head: &RequestHead) -> Response {
        let Some(watch) = self.shared.larder.watch() else { return refusal(Refused::NoWatch) };
        let query = head.target.query().unwrap_or_default();
        match deed {
            Deed::Events => live::events(watch),
            Deed::Live => live::live(watch, query),
            Deed::Now => figures::now(watch, &self.shared.larder.stats()),
            Deed::Series => figures::series(watch, query),
            Deed::Latency => figures::latency(watch, query),
            Deed::Top => figures::top(watch, query, self.shared.clock.now()),
            Deed::Breakdown => figures::breakdown(watch, query, self.shared.clock.now()),
            _ => live::requests(watch, query),
        }
    }

    fn busy(&self) -> Response {
        self.shared.refusals.count(Refused::Busy);
        refusal(Refused::Busy)
    }

    async fn explain(&self, head: &RequestHead) -> Response {
        let Some(question) = query::question(head.target.query().unwrap_or_default()) else {
            return refusal(Refused::Query);
        };
        let Ok(_place) = self.shared.explaining.try_acquire() else {
            return self.busy();
        };
        match self.shared.larder.explain(question).await {
            Ok(json) => content(StatusCode::OK, JSON, json),
            Err(why) => unexplained(&why),
        }
    }

    fn renew(&self, head: &RequestHead) -> Response {
        let Some(name) = query::renew(head.target.query().unwrap_or_default()) else {
            return refusal(Refused::RenewQuery);
        };
        match self.shared.larder.renew_certificate(&name) {
            true => content(StatusCode::OK, JSON, serde_json::json!({ "asked": name }).to_string()),
            false => refusal(Refused::NotOrdered),
        }
    }

    async fn config(&self) -> Response {
        let Ok(_place) = self.shared.looking.try_acquire() else {
            return self.busy();
        };
        match self.shared.larder.config().await {
            Ok(json) => content(StatusCode::OK, JSON, json),
            Err(why) => unanswered(&why),
        }
    }

    async fn list(&self, head: &RequestHead) -> Response {
        let Some(question) = query::list(head.target.query().unwrap_or_default()) else {
            return refusal(Refused::ListQuery);
        };
        let Ok(_place) = self.shared.looking.try_acquire() else {
            return self.busy();
        };
        match self.shared.larder.list(question).await {
            Ok(json) => content(StatusCode::OK, JSON, json),
            Err(why) => unanswered(&why),
        }
    }

    async fn object(&self, head: &RequestHead) -> Response {
        let Some(question) = query::object(head.target.query().unwrap_or_default()) else {
            return refusal(Refused::ObjectQuery);
        };
        let Ok(_place) = self.shared.looking.try_acquire() else {
            return self.busy();
        };
        match self.shared.larder.object(question).await {
            Ok(Shown::Json(json)) => content(StatusCode::OK, JSON, json),
            Ok(Shown::Body(body)) => attachment(body),
            Err(why) => unanswered(&why),
        }
    }

    async fn remove(&self, head: &RequestHead) -> Response {
        let Some(url) = query::purge(head.target.query().unwrap_or_default()) else {
            return refusal(Refused::ObjectQuery);
        };
        match self.shared.larder.remove(url).await {
            Ok(receipt) => with_receipt(content(StatusCode::OK, JSON, receipt.json.clone()), &receipt),
            Err(why) => match &why.receipt {
                Some(receipt) => with_receipt(unanswered(&why), receipt),
                None => unanswered(&why),
            },
        }
    }

    async fn purge(&self, api: PurgeApi, head: &RequestHead, body: Body) -> Response {
        let Some(bytes) = content_of(body).await else {
            let mut response = api.turn_away(Refused::Content);
            response.close = true;
            return response;
        };
        match api.read(head, &bytes) {
            Ok(wanted) => {
                let made = self.shared.larder.purge(wanted.question.clone()).await;
                api.answer(&wanted, made)
            }
            Err(problems) => api.refuse(&problems),
        }
    }

    fn purge_of(&self, head: &RequestHead) -> Response {
        let id = head.target.path().strip_prefix(PURGE_PATH).unwrap_or_default();
        match self.shared.larder.purge_of(id) {
            Some(json) => content(StatusCode::OK, JSON, json),
            None => refusal(Refused::Path),
        }
    }

    fn fleet(&self) -> Response {
        match self.shared.larder.fleet() {
            Some(json) => content(StatusCode::OK, JSON, json),
            None => refusal(Refused::NoFleet),
        }
    }

    fn health(&self) -> Response {
        let health = self.shared.larder.health();
        let status = match health {
            // It serves: what a store lacks costs hits, and the next server may lack the same.
            Health::Ok | Health::Degraded => StatusCode::OK,
            Health::Draining => StatusCode::SERVICE_UNAVAILABLE,
        };
        content(status, TEXT, health.as_str())
    }

    fn metrics(&self) -> Response {
        let mut out = Exposition::default();
        self.shared.larder.expose(&mut out);
        self.shared.refusals.expose(&mut out);
        content(StatusCode::OK, exposition::CONTENT_TYPE, out.finish())
    }

    fn stats(&self) -> Response {
        match serde_json::to_vec_pretty(&self.shared.larder.stats()) {
            Ok(json) => content(StatusCode::OK, JSON, json),
            Err(_) => refusal(Refused::Broken),
        }
    }
}

/// The dashboard for clients that take HTML, and for others the list of what there is.
fn index(head: &RequestHead) -> Response {
    let takes_html = head.fields.get_all(ACCEPT).iter().any(|value| {
        let types = value.as_bytes().split(|byte| *byte == b',');
        let mut names =
            types.map(|of| of.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii());
        names.any(|name| name.eq_ignore_ascii_case(b"text/html"))
    });
    let page = takes_html.then(|| assets::page(&head.fields)).flatten();
    page.unwrap_or_else(|| content(StatusCode::OK, TEXT, index_text()))
}

impl Service for Admin {
    type Receipt = ();

    type Call = BoxedCall;

    fn call(&self, request: Request, _interims: &Interims) -> BoxedCall {
        let admin = self.clone();
        Box::pin(async move {
            let mut body = request.body;
            let mut response = admin.answer(&request.head, request.peer.remote.ip(), &mut body).await;
            // Content that was not read is still on the connection, so nothing can follow it.
            response.close |= !body.is_empty();
            (response, ())
        })
    }
}

#[cfg(test)]
mod tests;
