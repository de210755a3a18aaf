//! From a request to its answer: guard, endpoint, method.
//!
//! The order is fixed: a request that is not let in learns nothing, not even which paths exist.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::{Method, StatusCode};
use larder_http::message::{Request, RequestHead, Response};
use larder_listen::{Interims, Service};
use larder_observe::{Exposition, exposition};

use crate::answer::{HTML, JSON, Refused, TEXT, content, refusal, unexplained};
use crate::guard::Guard;
use crate::larder::{Health, Larder};
use crate::query;
use tokio::sync::Semaphore;

const INDEX: &str = "<!doctype html>\n<title>larder</title>\n<h1>larder</h1>\n<ul>\n\
    <li><a href=\"/healthz\">/healthz</a>: 200 while new work is welcome, 503 while draining\n\
    <li><a href=\"/metrics\">/metrics</a>: Prometheus text\n\
    <li><a href=\"/stats\">/stats</a>: statistics as JSON\n\
    <li>/explain?url=URL: why a request is answered as it is, as JSON; <code>larder explain</code> asks here\n</ul>\n";

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
}

/// Explanations under way at once; more are refused, so that a silent origin never takes what health checks need.
const EXPLANATIONS_MAX: usize = 8;

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
}

impl Endpoint {
    fn at(path: &str) -> Option<Self> {
        match path {
            "/" => Some(Self::Index),
            "/healthz" => Some(Self::Health),
            "/metrics" => Some(Self::Metrics),
            "/stats" => Some(Self::Stats),
            "/explain" => Some(Self::Explain),
            _ => None,
        }
    }
}

impl Admin {
    /// Shows `larder` to whom `guard` lets in.
    pub fn new(larder: Arc<dyn Larder>, guard: Guard) -> Self {
        let explaining = Semaphore::new(EXPLANATIONS_MAX);
        Self { shared: Arc::new(Shared { larder, guard, explaining }) }
    }

    /// Answers a request by its head. To HEAD it gives what GET would get; the listener does not send the content.
    ///
    /// # Cancel safety
    /// May be dropped at any time: what is asked for an explanation is given up.
    pub async fn answer(&self, head: &RequestHead) -> Response {
        match self.admit(head) {
            Ok(Endpoint::Explain) => self.explain(head).await,
            Ok(endpoint) => self.show(endpoint),
            Err(refused) => refusal(refused),
        }
    }

    fn admit(&self, head: &RequestHead) -> Result<Endpoint, Refused> {
        let guard = &self.shared.guard;
        if !guard.is_trusted_host(head.authority.host()) {
            return Err(Refused::Host);
        }
        let endpoint = Endpoint::at(head.target.path());
        if !matches!(endpoint, Some(Endpoint::Health)) && !guard.is_authorized(&head.fields) {
            return Err(Refused::Token);
        }
        let endpoint = endpoint.ok_or(Refused::Path)?;
        if head.method != Method::GET && head.method != Method::HEAD {
            return Err(Refused::Method);
        }
        // All others only show what is there; this one may send a request.
        if matches!(endpoint, Endpoint::Explain) && Guard::is_foreign_page(&head.fields) {
            return Err(Refused::Page);
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

    fn show(&self, endpoint: Endpoint) -> Response {
        let larder = &*self.shared.larder;
        match endpoint {
            Endpoint::Index | Endpoint::Explain => content(StatusCode::OK, HTML, INDEX),
            Endpoint::Health => {
                let health = larder.health();
                let status = match health {
                    Health::Ok => StatusCode::OK,
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
            let mut response = admin.answer(&request.head).await;
            // Content is never read here, so nothing can follow it on this connection.
            response.close = !request.body.is_empty();
            (response, ())
        })
    }
}

#[cfg(test)]
mod tests;
