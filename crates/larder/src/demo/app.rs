//! The slow app: 180 ms for a page, one page at a time, as an application with one worker and a busy database is.
//!
//! In: requests on a free loopback port. Out: pages with the stamp of their rendering, and a few assets, which are as
//! fast as files. It runs on a thread of its own ([`AppThread`]). Dropping an [`App`] ends it.
//! Deliberately absent: any word on caching in its answers; that is what the config in front of it is for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use larder_http::message::{Request, Response, ResponseHead};
use larder_http::time::Clock;
use larder_listen::{AnyService, BoxedCall, Interims, Service};
use tokio::sync::Semaphore;

use super::hosted::AppThread;
use super::page::{Pages, Stamp, Template};

/// How long the rendering of a page takes.
pub(super) const RENDER_TIME: Duration = Duration::from_millis(180);

const CSS: &str = include_str!("assets/demo.css");
const JS: &str = include_str!("assets/demo.js");
const SVG: &str = include_str!("assets/jars.svg");

/// A running app.
pub(super) struct App {
    thread: AppThread,
    desk: Arc<Desk>,
}

impl App {
    /// Starts it on a free port of loopback.
    ///
    /// # Errors
    /// No socket, no thread or no runtime is to be had.
    pub(super) fn start() -> anyhow::Result<Self> {
        let clock = Clock::default();
        let desk = Arc::new(Desk {
            pages: Pages::new(),
            turn: Semaphore::new(1),
            renders: AtomicU64::new(0),
            clock: clock.clone(),
        });
        Ok(Self { thread: AppThread::start(AnyService::new(AppService(Arc::clone(&desk))), clock)?, desk })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.thread.address()
    }

    /// What its page at `path` looks like.
    pub(super) fn page(&self, path: &str) -> Option<&Arc<Template>> {
        self.desk.pages.at(path)
    }

    /// Pages rendered so far.
    pub(super) fn renders(&self) -> u64 {
        self.desk.renders.load(Ordering::Relaxed)
    }

    /// Resolves when nobody who came before is waiting for a page.
    ///
    /// # Cancel safety
    /// May be dropped and called again.
    pub(super) async fn idle(&self) {
        drop(self.desk.turn.acquire().await);
    }
}

/// What all connections share.
struct Desk {
    pages: Pages,
    /// Held by whoever renders; the others wait in the order in which they came.
    turn: Semaphore,
    renders: AtomicU64,
    clock: Clock,
}

#[derive(Clone)]
struct AppService(Arc<Desk>);

impl Service for AppService {
    type Receipt = ();

    type Call = BoxedCall;

    fn call(&self, request: Request, _interims: &Interims) -> BoxedCall {
        let service = self.clone();
        Box::pin(async move { (service.answer(request).await, ()) })
    }
}

impl AppService {
    async fn answer(&self, request: Request) -> Response {
        if !matches!(request.head.method, Method::GET | Method::HEAD) {
            let mut response = answer(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "GET only\n".into());
            response.head.fields.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        match request.head.target.path() {
            "/assets/demo.css" => answer(StatusCode::OK, "text/css; charset=utf-8", CSS.into()),
            "/assets/demo.js" => answer(StatusCode::OK, "text/javascript; charset=utf-8", JS.into()),
            "/assets/jars.svg" => answer(StatusCode::OK, "image/svg+xml", SVG.into()),
            path => match self.0.render(path).await {
                Some(page) => answer(StatusCode::OK, "text/html; charset=utf-8", page),
                None => answer(StatusCode::NOT_FOUND, "text/plain", "no such page\n".into()),
            },
        }
    }
}

impl Desk {
    /// Renders a page when its turn has come. Who leaves meanwhile loses the turn, and nothing is counted.
    async fn render(&self, path: &str) -> Option<Bytes> {
        let template = self.pages.at(path)?;
        let _turn = self.turn.acquire().await.ok()?;
        let began = self.clock.now();
        tokio::time::sleep(RENDER_TIME).await;
        let now = self.clock.now();
        let took_ms = u64::try_from(now.since(&began).as_millis()).unwrap_or(u64::MAX);
        let number = self.renders.fetch_add(1, Ordering::Relaxed) + 1;
        Some(template.render(&Stamp { number, took_ms, at: now.wall }))
    }
}

fn answer(status: StatusCode, content_type: &'static str, body: Bytes) -> Response {
    let fields = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(content_type))]);
    Response::new(ResponseHead::new(status, fields), body.into())
}
