//! The app of the demo: it makes one fragment at a time, and puts its page together itself where no one in front of it can.
//!
//! In: requests on a free loopback port. Out: the page, as a template if the request says that ESI is read in front (Edge Architecture,
//! `Surrogate-Capability`), else put together; and each fragment under a path of its own, with its lifetime. The app
//! keeps nothing: a page costs it the time of all four fragments, which is what larder is measured against.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, COOKIE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use larder_http::message::{Request, Response, ResponseHead};
use larder_http::time::Clock;
use larder_listen::{AnyService, BoxedCall, Interims, Service};
use tokio::sync::Semaphore;

use super::super::hosted::AppThread;
use super::fragment::{COUNT, DemoFragment, FRAGMENTS, FragmentStamp};
use super::page::{VISITOR_COOKIE, page, template};

const CAPABILITY: HeaderName = HeaderName::from_static("surrogate-capability");
const SURROGATE_CONTROL: HeaderName = HeaderName::from_static("surrogate-control");
const HTML: &str = "text/html; charset=utf-8";
const SVG: &str = include_str!("../assets/jars.svg");
/// Who has no name.
const STRANGER: &str = "stranger";
/// The longest name of a visitor.
const NAME_BYTES_MAX: usize = 20;

/// A running app.
pub(super) struct FragmentsApp {
    thread: AppThread,
    kitchen: Arc<Kitchen>,
}

impl FragmentsApp {
    /// Starts it on a free port of loopback. A fragment takes `render_time`.
    ///
    /// # Errors
    /// No socket, no thread or no runtime is to be had.
    pub(super) fn start(render_time: Duration) -> anyhow::Result<Self> {
        let clock = Clock::default();
        let kitchen = Arc::new(Kitchen {
            turn: Semaphore::new(1),
            render_time,
            renders: [const { AtomicU64::new(0) }; COUNT],
            clock: clock.clone(),
        });
        Ok(Self {
            thread: AppThread::start(AnyService::new(FragmentsService(Arc::clone(&kitchen))), clock)?,
            kitchen,
        })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.thread.address()
    }

    /// How often each fragment was rendered so far.
    pub(super) fn renders(&self) -> Vec<u64> {
        self.kitchen.renders.iter().map(|renders| renders.load(Ordering::Relaxed)).collect()
    }

    /// Resolves when nobody who came before is waiting for a fragment.
    ///
    /// # Cancel safety
    /// May be dropped and called again.
    pub(super) async fn idle(&self) {
        drop(self.kitchen.turn.acquire().await);
    }
}

/// What all connections share.
struct Kitchen {
    /// Held by whoever renders; the others wait in the order in which they came.
    turn: Semaphore,
    render_time: Duration,
    renders: [AtomicU64; COUNT],
    clock: Clock,
}

impl Kitchen {
    /// Renders a fragment when its turn has come. Who leaves meanwhile loses the turn, and nothing is counted.
    async fn render(&self, (fragment, renders): (&DemoFragment, &AtomicU64), visitor: &str) -> String {
        let _turn = self.turn.acquire().await;
        tokio::time::sleep(self.render_time).await;
        let number = renders.fetch_add(1, Ordering::Relaxed) + 1;
        fragment.print(visitor, &FragmentStamp { number, at: self.clock.now().wall })
    }

    fn all(&self) -> impl Iterator<Item = (&DemoFragment, &AtomicU64)> {
        FRAGMENTS.iter().zip(&self.renders)
    }

    /// The page, put together here.
    async fn page(&self, visitor: &str) -> String {
        let mut fragments = [const { String::new() }; COUNT];
        for (rendered, fragment) in fragments.iter_mut().zip(self.all()) {
            *rendered = self.render(fragment, visitor).await;
        }
        page(&fragments)
    }
}

#[derive(Clone)]
struct FragmentsService(Arc<Kitchen>);

impl Service for FragmentsService {
    type Receipt = ();

    type Call = BoxedCall;

    fn call(&self, request: Request, _interims: &Interims) -> BoxedCall {
        let service = self.clone();
        Box::pin(async move { (service.answer(request).await, ()) })
    }
}

impl FragmentsService {
    async fn answer(&self, request: Request) -> Response {
        if !matches!(request.head.method, Method::GET | Method::HEAD) {
            let allow = (ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer(StatusCode::METHOD_NOT_ALLOWED, "text/plain", [allow], "GET only\n".into());
        }
        let fields = &request.head.fields;
        let visitor = visitor_of(fields);
        match request.head.target.path() {
            "/" if reads_esi(fields) => {
                let says = [control("max-age=3600"), (SURROGATE_CONTROL, value("content=\"ESI/1.0\""))];
                answer(StatusCode::OK, HTML, says, template().into())
            }
            "/" => {
                let page = self.0.page(visitor).await;
                answer(StatusCode::OK, HTML, [control("private, no-cache")], page.into())
            }
            "/assets/jars.svg" => {
                answer(StatusCode::OK, "image/svg+xml", [control("max-age=3600")], SVG.into())
            }
            path => {
                let name = path.strip_prefix("/fragment/");
                let Some(found) = self.0.all().find(|(fragment, _)| Some(fragment.name) == name) else {
                    return answer(StatusCode::NOT_FOUND, "text/plain", [], "no such page\n".into());
                };
                let lives = |lifetime: Duration| format!("max-age={}", lifetime.as_secs());
                let lives = found.0.lifetime.and_then(|lifetime| lives(lifetime).try_into().ok());
                let says = [(CACHE_CONTROL, lives.unwrap_or(value("private")))];
                let text = self.0.render(found, visitor).await;
                answer(StatusCode::OK, HTML, says, text.into())
            }
        }
    }
}

/// Whether a cache in front puts pages together.
fn reads_esi(fields: &HeaderMap) -> bool {
    fields.get_all(CAPABILITY).iter().any(|said| said.to_str().is_ok_and(|said| said.contains("ESI/1.0")))
}

/// The name in a visitor's cookie, if it is one.
fn visitor_of(fields: &HeaderMap) -> &str {
    let lines = fields.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let named = pairs.find(|(name, _)| *name == VISITOR_COOKIE).map(|(_, name)| name);
    let is_name = |name: &&str| {
        (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    named.filter(is_name).unwrap_or(STRANGER)
}

const fn value(text: &'static str) -> HeaderValue {
    HeaderValue::from_static(text)
}

const fn control(text: &'static str) -> (HeaderName, HeaderValue) {
    (CACHE_CONTROL, value(text))
}

fn answer<const N: usize>(
    status: StatusCode,
    content_type: &'static str,
    says: [(HeaderName, HeaderValue); N],
    body: Bytes,
) -> Response {
    let mut fields = HeaderMap::from_iter(says);
    fields.insert(CONTENT_TYPE, value(content_type));
    Response::new(ResponseHead::new(status, fields), body.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visitor_has_the_name_of_the_cookie_or_none() {
        for (line, expected) in [
            ("visitor=Ada", "Ada"),
            ("a=b; visitor=Grace", "Grace"),
            ("visitor=", STRANGER),
            ("visitor=<b>", STRANGER),
            ("visitor=abcdefghijklmnopqrstu", STRANGER),
            ("visitors=Ada", STRANGER),
        ] {
            let fields = HeaderMap::from_iter([(COOKIE, HeaderValue::from_static(line))]);
            assert_eq!(visitor_of(&fields), expected, "{line}");
        }
        assert_eq!(visitor_of(&HeaderMap::new()), STRANGER);
    }
}
