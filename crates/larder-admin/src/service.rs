//! From a request to its answer: guard, endpoint, method.
//!
//! The order is fixed: a request that is not let in learns nothing, not even which paths exist.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::{Method, StatusCode};
use larder_http::body::Body;
use larder_http::message::{Request, RequestHead, Response};
use larder_listen::{Interims, Service};
use larder_observe::{Exposition, exposition};

use crate::answer::{BYTES, HTML, JSON, Refused, TEXT, content, refusal, unanswered, unexplained, with_body};
use crate::guard::Guard;
use crate::larder::{Health, Larder, Shown};
use crate::purges::{PurgeApi, content_of, with_receipt};
use crate::query;
use tokio::sync::Semaphore;

/// In front of the name of a purge.
const PURGE_PATH: &str = "/api/v1/purges/";

const INDEX: &str = "<!doctype html>\n<title>larder</title>\n<h1>larder</h1>\n<ul>\n\
    <li><a href=\"/healthz\">/healthz</a>: 200 while new work is welcome (<code>degraded</code> while a store goes on without a disk or its files), \
    503 while draining\n\
    <li><a href=\"/metrics\">/metrics</a>: Prometheus text\n\
    <li><a href=\"/stats\">/stats</a>: statistics as JSON\n\
    <li>/explain?url=URL: why a request is answered as it is, as JSON; <code>larder explain</code> asks here\n\
    <li><a href=\"/objects\">/objects</a>: what is stored, as JSON, a page at a time; <code>larder ls</code>\n\
    <li>/object?url=URL: what is stored under a URL; with &amp;body=1 its body, with &amp;assembled=page the page of a template; <code>larder get</code>\n\
    <li>DELETE /object?url=URL: takes it out of all stores; <code>larder rm</code>\n\
    <li><a href=\"/api/v1/purges\">/api/v1/purges</a>: the last purges; POST with JSON purges; <code>larder purge</code>\n\
    <li><a href=\"/api/v1/fleet\">/api/v1/fleet</a>: the larders that purge together with this one; <code>larder fleet</code>\n</ul>\n";

/// The service of the admin address. Cloning shares it.
#[derive(Clone)]
pub struct Admin {
    shared: Arc<Shared>,
}

struct Shared {
    larder: Arc<dyn Larder>,
    guard: Guard,
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

#[derive(Clone, Copy)]
enum Endpoint {
    Index,
    Health,
    Metrics,
    Stats,
    Explain,
    List,
    Object,
    Fleet,
    Purges,
    PurgeOf,
    Purge(PurgeApi),
}

impl Endpoint {
    /// The methods that are answered.
    fn methods(self) -> &'static str {
        match self {
            Self::Object => "GET, HEAD, DELETE",
            Self::Purge(_) => "POST",
            _ => "GET, HEAD",
        }
    }

    /// Whether all it does is to show what is there at once. The others cost something, or change it.
    fn only_shows(self) -> bool {
        !matches!(self, Self::Explain | Self::List | Self::Object | Self::Purge(_))
    }

    fn at(method: &Method, path: &str) -> Option<Self> {
        let api = PurgeApi::at(path);
        if let Some(api) = api.filter(|api| *method == Method::POST || *api != PurgeApi::Own) {
            return Some(Self::Purge(api));
        }
        match path {
            "/api/v1/fleet" => Some(Self::Fleet),
            "/api/v1/purges" => Some(Self::Purges),
            _ if path.starts_with(PURGE_PATH) => Some(Self::PurgeOf),
            "/" => Some(Self::Index),
            "/healthz" => Some(Self::Health),
            "/metrics" => Some(Self::Metrics),
            "/stats" => Some(Self::Stats),
            "/explain" => Some(Self::Explain),
            "/objects" => Some(Self::List),
            "/object" => Some(Self::Object),
            _ => None,
        }
    }
}

impl Admin {
    /// Shows `larder` to whom `guard` lets in.
    pub fn new(larder: Arc<dyn Larder>, guard: Guard) -> Self {
        let (explaining, looking) = (Semaphore::new(EXPLANATIONS_MAX), Semaphore::new(LOOKS_MAX));
        Self { shared: Arc::new(Shared { larder, guard, explaining, looking }) }
    }

    /// Answers a request without content.
    ///
    /// # Cancel safety
    /// As [`Self::answer_with`].
    pub async fn answer(&self, head: &RequestHead) -> Response {
        self.answer_with(head, &mut Body::Empty).await
    }

    /// Answers a request. To HEAD it gives what GET would get; the listener does not send the content. Of the request's own
    /// content is read what a purge needs.
    ///
    /// # Cancel safety
    /// May be dropped at any time: what is asked for an explanation is given up. A purge that has begun has happened.
    pub async fn answer_with(&self, head: &RequestHead, body: &mut Body) -> Response {
        match self.admit(head) {
            Ok(Endpoint::Purge(api)) => self.purge(api, head, std::mem::replace(body, Body::Empty)).await,
            Ok(Endpoint::Explain) => self.explain(head).await,
            Ok(Endpoint::List) => self.list(head).await,
            Ok(Endpoint::Object) if head.method == Method::DELETE => self.remove(head).await,
            Ok(Endpoint::PurgeOf) => self.purge_of(head),
            Ok(Endpoint::Object) => self.object(head).await,
            Ok(endpoint) => self.show(endpoint),
            Err(refused) => match PurgeApi::at(head.target.path()) {
                Some(api) => api.turn_away(refused),
                None => refusal(refused),
            },
        }
    }

    fn admit(&self, head: &RequestHead) -> Result<Endpoint, Refused> {
        let guard = &self.shared.guard;
        if !guard.is_trusted_host(head.authority.host()) {
            return Err(Refused::Host);
        }
        let endpoint = Endpoint::at(&head.method, head.target.path());
        let own = match endpoint {
            Some(Endpoint::Purge(api)) => api.token_field(),
            _ => None,
        };
        if !matches!(endpoint, Some(Endpoint::Health)) && !guard.is_authorized(&head.fields, own.as_ref()) {
            return Err(Refused::Token);
        }
        let endpoint = endpoint.ok_or(Refused::Path)?;
        let methods = endpoint.methods();
        if !methods.split(", ").any(|method| head.method == method) {
            return Err(Refused::Method(methods));
        }
        if !endpoint.only_shows() && Guard::is_foreign_page(&head.fields) {
            return Err(Refused::Page);
        }
        if let Endpoint::Purge(api) = endpoint
            && !api.may_change(head, |host| guard.is_trusted_host(host))
        {
            return Err(Refused::Change);
        }
        Ok(endpoint)
    }

    async fn explain(&self, head: &RequestHead) -> Response {
        let Some(question) = query::question(head.target.query().unwrap_or_default()) else {
            return refusal(Refused::Query);
        };
        let Ok(_place) = self.shared.explaining.try_acquire() else {
            return refusal(Refused::Busy);
        };
        match self.shared.larder.explain(question).await {
            Ok(json) => content(StatusCode::OK, JSON, json),
            Err(why) => unexplained(&why),
        }
    }

    async fn list(&self, head: &RequestHead) -> Response {
        let Some(question) = query::list(head.target.query().unwrap_or_default()) else {
            return refusal(Refused::ListQuery);
        };
        let Ok(_place) = self.shared.looking.try_acquire() else {
            return refusal(Refused::Busy);
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
            return refusal(Refused::Busy);
        };
        match self.shared.larder.object(question).await {
            Ok(Shown::Json(json)) => content(StatusCode::OK, JSON, json),
            Ok(Shown::Body(body)) => with_body(StatusCode::OK, BYTES, body),
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

    fn show(&self, endpoint: Endpoint) -> Response {
        let larder = &*self.shared.larder;
        match endpoint {
            Endpoint::Index
            | Endpoint::Explain
            | Endpoint::List
            | Endpoint::Object
            | Endpoint::PurgeOf
            | Endpoint::Purge(_) => content(StatusCode::OK, HTML, INDEX),
            Endpoint::Fleet => match larder.fleet() {
                Some(json) => content(StatusCode::OK, JSON, json),
                None => refusal(Refused::NoFleet),
            },
            Endpoint::Purges => content(StatusCode::OK, JSON, larder.purges()),
            Endpoint::Health => {
                let health = larder.health();
                let status = match health {
                    // It serves: what a store lacks costs hits, and the next server may lack the same.
                    Health::Ok | Health::Degraded => StatusCode::OK,
                    Health::Draining => StatusCode::SERVICE_UNAVAILABLE,
                };
                content(status, TEXT, health.as_str())
            }
            Endpoint::Metrics => {
                let mut out = Exposition::default();
                larder.expose(&mut out);
                content(StatusCode::OK, exposition::CONTENT_TYPE, out.finish())
            }
            Endpoint::Stats => match serde_json::to_vec_pretty(&larder.stats()) {
                Ok(json) => content(StatusCode::OK, JSON, json),
                Err(_) => refusal(Refused::Broken),
            },
        }
    }
}

impl Service for Admin {
    type Receipt = ();

    type Call = Pin<Box<dyn Future<Output = (Response, ())> + Send>>;

    fn call(&self, request: Request, _interims: &Interims) -> Self::Call {
        let admin = self.clone();
        Box::pin(async move {
            let mut body = request.body;
            let mut response = admin.answer_with(&request.head, &mut body).await;
            // Content that was not read is still on the connection, so nothing can follow it.
            response.close |= !body.is_empty();
            (response, ())
        })
    }
}

#[cfg(test)]
mod tests;
