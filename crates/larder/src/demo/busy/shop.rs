//! The app of the busy demo: one of the two servers of a shop.
//!
//! In: requests on a free loopback port. Out: what [`shelf`] says, after the time that it takes. Of the two servers one is weak: three times
//! as slow, and now and then it answers nothing but 503 for a while. Bodies are pieces of one filler, so that the shop costs little beside
//! larder. Dropping a [`ShopServer`] ends it.
//! Deliberately absent: baskets and accounts; nothing that is sent here is kept.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH, LOCATION, SET_COOKIE, VARY,
};
use http::{HeaderMap, StatusCode};
use larder_http::message::{Request, RequestHead, Response, ResponseHead};
use larder_http::time::{Clock, Now};
use larder_listen::{AnyService, BoxedCall, Interims, Service};

use super::super::hosted::AppThread;
use super::super::prose;
use super::chance::{Chance, mixed};
use super::shelves::{Shelf, ShelfContent, ShelfHabit, shelf};

/// How many times as long the weak server takes.
const WEAK_FACTOR: u32 = 3;
/// From one bad spell of the weak server to the next, when in that time it begins, and how long it lasts, in seconds.
const SPELL_EVERY: u64 = 60;
const SPELL_AT: u64 = 12;
const SPELL_SECONDS: u64 = 8;
/// How much text there is to cut pages from.
const TEXT_BYTES: usize = 80_000;
/// The same of pictures, which is as much as the largest.
const PICTURE_BYTES: usize = 200_000;

/// How a server bears its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerHealth {
    Well,
    Weak,
}

/// A running server.
pub(super) struct ShopServer(AppThread);

impl ShopServer {
    /// Starts one on a free port of loopback.
    ///
    /// # Errors
    /// No socket, no thread or no runtime is to be had.
    pub(super) fn start(health: ServerHealth, filler: &Arc<Filler>) -> anyhow::Result<Self> {
        let clock = Clock::default();
        let service = ShopService(Arc::new(Counter {
            health,
            filler: Arc::clone(filler),
            sessions: AtomicU64::new(0),
            began: clock.now(),
            clock: clock.clone(),
        }));
        Ok(Self(AppThread::start(AnyService::new(service), clock)?))
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.0.address()
    }
}

/// What bodies are cut from, made once for both servers.
pub(super) struct Filler {
    /// Paragraphs of HTML, one a line.
    text: String,
    picture: Bytes,
}

impl Filler {
    pub(super) fn new() -> Self {
        let paragraphs = prose::paragraphs(1, TEXT_BYTES);
        let text = paragraphs.iter().map(|paragraph| format!("<p>{paragraph}</p>\n")).collect();
        let mut chance = Chance::new(1);
        let picture = (0..PICTURE_BYTES / 8).flat_map(|_| chance.number().to_le_bytes()).collect();
        Self { text, picture }
    }

    /// Whole lines of text, `bytes` long at most.
    fn lines(&self, bytes: usize) -> &str {
        let cut = self.text.get(..bytes).unwrap_or(&self.text);
        cut.rsplit_once('\n').map_or("", |(lines, _)| lines)
    }

    /// A body of about `bytes`.
    fn body(&self, shelf: &Shelf, bytes: usize) -> Bytes {
        match shelf.content {
            ShelfContent::Picture => self.picture.slice(..bytes.min(self.picture.len())),
            ShelfContent::Json => format!("{{\"stock\":\"{:-<bytes$}\"}}\n", bytes % 90).into(),
            ShelfContent::Script | ShelfContent::Style => format!("/*\n{}\n*/\n", self.lines(bytes)).into(),
            ShelfContent::Page if bytes == 0 => Bytes::new(),
            ShelfContent::Page => {
                let cache = shelf
                    .cache
                    .map_or("no Cache-Control".to_owned(), |cache| format!("Cache-Control: {cache}"));
                format!(
                    "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>A busy shop</title>\n\
                     <h1>A busy shop: {}</h1>\n<p>This page has <b>{cache}</b>.</p>\n<p><a href=\"/\">home</a> \
                     <a href=\"/deals\">deals</a> <a href=\"/product/0\">a product</a> <a href=\"/blog/0\">the blog</a> \
                     <a href=\"/search?q=word-0\">search</a> <a href=\"/account/orders\">orders</a></p>\n{}\n",
                    shelf.path,
                    self.lines(bytes),
                )
                .into()
            }
        }
    }
}

/// What all connections of a server share.
struct Counter {
    health: ServerHealth,
    filler: Arc<Filler>,
    /// Sessions begun so far.
    sessions: AtomicU64,
    began: Now,
    clock: Clock,
}

#[derive(Clone)]
struct ShopService(Arc<Counter>);

impl Service for ShopService {
    type Receipt = ();

    type Call = BoxedCall;

    fn call(&self, request: Request, _interims: &Interims) -> BoxedCall {
        let counter = Arc::clone(&self.0);
        Box::pin(async move { (counter.serve(&request.head).await, ()) })
    }
}

impl Counter {
    async fn serve(&self, request: &RequestHead) -> Response {
        if self.health == ServerHealth::Weak && is_bad_spell(self.clock.now().since(&self.began)) {
            return response(StatusCode::SERVICE_UNAVAILABLE, HeaderMap::new(), "too busy\n".into());
        }
        let path = request.target.path();
        let shelf = shelf(path);
        let factor = if self.health == ServerHealth::Weak { WEAK_FACTOR } else { 1 };
        tokio::time::sleep(Duration::from_millis(shelf.render_ms) * factor).await;
        self.answer(path, &shelf, &request.fields)
    }

    fn answer(&self, path: &str, shelf: &Shelf, asked: &HeaderMap) -> Response {
        let hash = path.bytes().fold(1, |hash, byte| mixed(hash ^ u64::from(byte)));
        let mut fields = HeaderMap::new();
        let mut add = |name, value: Option<HeaderValue>| value.and_then(|value| fields.insert(name, value));
        add(CACHE_CONTROL, shelf.cache.map(HeaderValue::from_static));
        match shelf.habit {
            ShelfHabit::None => None,
            ShelfHabit::Session => add(SET_COOKIE, self.session()),
            ShelfHabit::VariesByAgent => add(VARY, Some(HeaderValue::from_static("User-Agent"))),
            ShelfHabit::Redirects => add(LOCATION, Some(HeaderValue::from_static("/"))),
        };
        if shelf.is_tagged {
            let tag = HeaderValue::try_from(format!("\"{hash:016x}\"")).ok();
            add(ETAG, tag.clone());
            if tag.is_some() && asked.get(IF_NONE_MATCH) == tag.as_ref() {
                return response(StatusCode::NOT_MODIFIED, fields, Bytes::new());
            }
        }
        add(CONTENT_TYPE, Some(HeaderValue::from_static(shelf.content.media_type())));
        let (least, most) = shelf.bytes;
        let bytes = u64::from(least) + hash % u64::from(most - least + 1);
        response(shelf.status, fields, self.filler.body(shelf, bytes as usize))
    }

    /// The cookie of a new session.
    fn session(&self) -> Option<HeaderValue> {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        HeaderValue::try_from(format!("session={:016x}; Path=/; HttpOnly", mixed(number + 1))).ok()
    }
}

/// Whether the weak server fails at `time` since its start.
fn is_bad_spell(time: Duration) -> bool {
    (SPELL_AT..SPELL_AT + SPELL_SECONDS).contains(&(time.as_secs() % SPELL_EVERY))
}

fn response(status: StatusCode, fields: HeaderMap, body: Bytes) -> Response {
    Response::new(ResponseHead::new(status, fields), body.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(path: &str, asked: &HeaderMap) -> Response {
        let clock = Clock::default();
        let (health, filler) = (ServerHealth::Well, Arc::new(Filler::new()));
        let counter = Counter { health, filler, sessions: AtomicU64::new(0), began: clock.now(), clock };
        counter.answer(path, &shelf(path), asked)
    }

    #[test]
    fn each_mistake_is_in_the_fields_of_its_shelf() {
        for (path, name, part) in [
            ("/blog/1", "set-cookie", "session="),
            ("/search", "vary", "User-Agent"),
            ("/api/stock", "cache-control", "no-store"),
            ("/account/orders", "cache-control", "private"),
            ("/cart/add", "location", "/"),
            ("/assets/shop-1.js", "cache-control", "immutable"),
            ("/", "cache-control", "max-age=2,"),
        ] {
            let fields = answer(path, &HeaderMap::new()).head.fields;
            assert!(fields[name].to_str().is_ok_and(|value| value.contains(part)), "{path}: {fields:?}");
        }
        let absent = answer("/old/1", &HeaderMap::new()).head;
        assert_eq!((absent.status, absent.fields.get(CACHE_CONTROL)), (StatusCode::NOT_FOUND, None));
    }

    #[test]
    fn what_has_a_tag_is_confirmed_by_it() {
        let tag = answer("/product/1", &HeaderMap::new()).head.fields[ETAG].clone();
        let asked = HeaderMap::from_iter([(IF_NONE_MATCH, tag)]);
        assert_eq!(answer("/product/1", &asked).head.status, StatusCode::NOT_MODIFIED);
        assert_eq!(answer("/product/2", &asked).head.status, StatusCode::OK);
    }

    #[test]
    fn bodies_have_the_size_of_their_shelf() {
        let filler = Filler::new();
        for (path, bytes) in [("/img/1.jpg", 150_000), ("/", 9000), ("/assets/shop-1.js", 50_000)] {
            let found = filler.body(&shelf(path), bytes).len();
            assert!(found.abs_diff(bytes) < 1200, "{path}: {found} and not {bytes}");
        }
        assert!(filler.body(&shelf("/cart/add"), 0).is_empty());
    }

    #[test]
    fn the_weak_server_fails_for_8_s_of_each_minute() {
        let bad = (0..600).filter(|second| is_bad_spell(Duration::from_secs(*second))).count();
        assert_eq!(bad, 10 * 8);
        assert!(!is_bad_spell(Duration::ZERO));
    }
}
