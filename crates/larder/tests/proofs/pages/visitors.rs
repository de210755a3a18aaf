//! A thousand visitors with cookies ask for pages at the same time, and each answer is that visitor's page and no other's.
//!
//! The templates have conditions on cookies, and values of them. Their fragments are private, or stored for each visitor by `Vary: Cookie`
//! or by the rule's key, or shared and stale after a second. All the while purges take fragments and templates away. So the
//! workers keep pages, put others together from what is stored, and send some while parts are on their way; each way has to
//! occur. Clients also ask with the entity tags of others' pages. A shared fragment is never older than its last purge.
//! `LARDER_SECONDS` says how long it takes, in place of a number of requests.

use std::collections::{HashMap, HashSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use larder_testkit::client::{Connection, End, Progress, Request, Response, exchange_http2};
use larder_testkit::origin::{Answer, Origin, Seen};
use parking_lot::Mutex;
use serde_json::json;

use super::{pages, part, template};
use crate::disks::catalogue::Draws;
use crate::disks::seed;
use crate::support::{BOUND, Process, config, connect, within, written};

const VISITORS: u64 = 1000;
const CLIENTS: u64 = 32;
const REQUESTS: u64 = 8000;
/// On a machine that is busy there are fewer requests.
const TIME_MAX: Duration = Duration::from_secs(20);
/// Requests for one page in a row, by one visitor.
const BURST_MAX: u64 = 10;
const PAGES: u64 = 6;
/// The pages with a private fragment: these are never whole.
const WITH_BASKET: [u64; 2] = [0, 1];
const NOBODY: &str = "nobody";

/// Somebody with cookies, or one of the strangers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Visitor(u64);

impl Visitor {
    fn user(self) -> Option<String> {
        (!self.0.is_multiple_of(8)).then(|| format!("u{:04}x", self.0))
    }

    fn is_dark(self) -> bool {
        self.0.is_multiple_of(3)
    }

    fn cookie(self) -> Option<String> {
        let theme = if self.is_dark() { "dark" } else { "light" };
        self.user().map(|user| format!("theme={theme}; user={user}"))
    }

    /// Whether a page of one is as good as one of the other.
    fn is_like(self, other: Self) -> bool {
        self.cookie() == other.cookie()
    }

    /// The page that it has to get, but for the version of the news.
    fn page(self, number: u64) -> String {
        let name = self.user().unwrap_or_else(|| NOBODY.to_owned());
        let hello = self.user().map_or_else(|| "sign in".to_owned(), |user| format!("hello {user}"));
        let theme = if self.user().is_some() && self.is_dark() { "dark" } else { "light" };
        let own = match number {
            0 | 1 => format!("greeting-of-{name} basket-of-{name} "),
            2 | 3 => format!("greeting-of-{name} cart-of-{name} "),
            _ => String::new(),
        };
        format!("page {number} {hello} {theme} {own}news end")
    }
}

/// The text of a page: the even ones are in SSI.
fn text(number: u64) -> String {
    let include = |target: &str| match number.is_multiple_of(2) {
        true => format!("<!--#include virtual=\"{target}\" --> "),
        false => format!("<esi:include src=\"{target}\"/> "),
    };
    let own = match number {
        0 | 1 => include("/own/greeting") + &include("/private/basket"),
        2 | 3 => include("/own/greeting") + &include("/keyed/cart"),
        _ => String::new(),
    };
    // One page has its conditions in a fragment.
    let header = if number == 5 { include("/shared/header") } else { header(number).to_owned() };
    format!("page {number} {header}{own}{}end", include("/shared/news"))
}

fn header(number: u64) -> &'static str {
    if number.is_multiple_of(2) {
        "<!--#if expr=\"$cookie_user\" -->hello <!--#echo var=\"cookie_user\" --><!--#else -->sign in<!--#endif --> \
         <!--#if expr=\"$cookie_theme = dark\" -->dark<!--#else -->light<!--#endif --> "
    } else {
        "<esi:choose><esi:when test=\"$(HTTP_COOKIE{user}) != ''\">hello <esi:vars>$(HTTP_COOKIE{user})</esi:vars>\
         </esi:when><esi:otherwise>sign in</esi:otherwise></esi:choose> <esi:choose><esi:when \
         test=\"$(HTTP_COOKIE{theme}) == 'dark'\">dark</esi:when><esi:otherwise>light</esi:otherwise></esi:choose> "
    }
}

/// What the application says: of each visitor's own what the cookie says.
fn answer(seen: &Seen, news: &AtomicU64) -> Answer {
    let cookie = seen.fields.first("cookie").unwrap_or_default();
    let user = cookie.split("user=").nth(1).unwrap_or(NOBODY);
    let late = |answer: Answer| Answer { delay: Some("1ms".to_owned()), ..answer };
    match seen.target.as_str() {
        "/private/basket" => part(&["Cache-Control: private"], format!("basket-of-{user}")),
        "/own/greeting" => {
            let fields = ["Cache-Control: max-age=1", "Vary: Cookie", "Surrogate-Key: own"];
            late(part(&fields, format!("greeting-of-{user}")))
        }
        "/keyed/cart" => {
            late(part(&["Cache-Control: max-age=1", "Surrogate-Key: own"], format!("cart-of-{user}")))
        }
        "/shared/news" => {
            let version = news.load(Ordering::SeqCst);
            late(part(&["Cache-Control: max-age=1"], format!("news-{version}")))
        }
        "/shared/header" => template("ESI", &["Cache-Control: max-age=1"], header(5)),
        target => {
            let number: u64 = target.trim_start_matches("/page/").parse().unwrap();
            let language = if number.is_multiple_of(2) { "SSI" } else { "ESI" };
            template(language, &["Cache-Control: max-age=30", "Surrogate-Key: templates"], &text(number))
        }
    }
}

/// What the clients and those who purge share.
struct Crowd {
    addr: SocketAddr,
    seed: String,
    began: Instant,
    seconds: Option<u64>,
    asked: AtomicU64,
    baskets: AtomicU64,
    /// The version of the news from which on it was purged.
    purged: AtomicU64,
    purges: AtomicU64,
    /// By page, the entity tag that somebody got last, and who.
    tags: Mutex<HashMap<u64, (Visitor, String)>>,
    unchanged: AtomicU64,
    visitors: Mutex<HashSet<Visitor>>,
}

impl Crowd {
    fn is_over(&self) -> bool {
        match self.seconds {
            Some(seconds) => self.began.elapsed() >= Duration::from_secs(seconds),
            None => self.asked.load(Ordering::Relaxed) >= REQUESTS || self.began.elapsed() >= TIME_MAX,
        }
    }

    async fn client(self: Arc<Self>, number: u64) {
        let mut draws = Draws::new(format!("{} client {number}", self.seed));
        let mut connection = connect(self.addr).await;
        for visitor in (number..VISITORS).step_by(CLIENTS as usize).cycle().map(Visitor) {
            let page = draws.below(PAGES);
            for _ in 0..=draws.below(BURST_MAX) {
                if self.is_over() {
                    return;
                }
                self.ask(&mut connection, &mut draws, visitor, page).await;
            }
            self.visitors.lock().insert(visitor);
        }
    }

    async fn ask(&self, connection: &mut Connection, draws: &mut Draws, visitor: Visitor, page: u64) {
        let mut request = Request::new("GET", &format!("/page/{page}"), "localhost");
        if let Some(cookie) = visitor.cookie() {
            request = request.field("Cookie", &cookie);
        }
        let tag = self.tags.lock().get(&page).cloned().filter(|_| draws.below(8) == 0);
        if let Some((_, tag)) = &tag {
            request = request.field("If-None-Match", tag);
        }
        let purged = self.purged.load(Ordering::SeqCst);
        let exchange = async {
            match draws.below(40) {
                0 => exchange_http2(self.addr, &request, &Progress::default(), BOUND).await,
                _ => connection.exchange(&request).await,
            }
        };
        let answer = within("a page", exchange).await.unwrap();
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.baskets.fetch_add(u64::from(WITH_BASKET.contains(&page)), Ordering::Relaxed);
        self.judge(visitor, page, (purged, tag.map(|(owner, _)| owner)), &answer);
        if let Some(tag) = answer.fields.first("etag") {
            self.tags.lock().insert(page, (visitor, tag.to_owned()));
        }
    }

    /// It is this visitor's page. `owner` got the page whose entity tag was sent.
    fn judge(&self, visitor: Visitor, page: u64, (purged, owner): (u64, Option<Visitor>), answer: &Response) {
        let told = || format!("LARDER_SEED={}: page {page} for {visitor:?}, {owner:?}: {answer}", self.seed);
        assert_eq!(answer.end, End::Complete, "{}", told());
        if answer.status == 304 {
            assert!(owner.is_some_and(|owner| owner.is_like(visitor)), "{}", told());
            self.unchanged.fetch_add(1, Ordering::Relaxed);
            return;
        }
        assert_eq!(answer.status, 200, "{}", told());
        let mut version = None;
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        let words = body.split_whitespace().map(|word| match word.strip_prefix("news-") {
            Some(number) => {
                version = number.parse::<u64>().ok();
                "news"
            }
            None => word,
        });
        let words: Vec<&str> = words.collect();
        assert_eq!(words.join(" "), visitor.page(page), "{}", told());
        assert!(version.is_some_and(|version| version >= purged), "{} after a purge of {purged}", told());
    }

    /// Purges of the news, of what is visitors' own, and of templates.
    async fn purger(self: Arc<Self>, admin: SocketAddr, news: Arc<AtomicU64>) {
        let mut connection = connect(admin).await;
        let mut draws = Draws::new(format!("{} purger", self.seed));
        let url = |target: &str| format!("http://localhost{target}");
        while !self.is_over() {
            let version = news.fetch_add(1, Ordering::SeqCst) + 1;
            let (mut what, is_news) = match draws.below(6) {
                0..3 => (json!({ "urls": [url("/shared/news")] }), true),
                3 => (json!({ "tags": ["own"] }), false),
                4 => (json!({ "urls": [url(&format!("/page/{}", draws.below(PAGES)))] }), false),
                _ => (json!({ "prefixes": ["/shared/"] }), true),
            };
            let is_soft = draws.below(3) == 0;
            what["soft"] = is_soft.into();
            let request = Request::new("POST", "/api/v1/purges", "localhost")
                .field("Content-Type", "application/json")
                .body(what.to_string());
            let answer = within("a purge", connection.exchange(&request)).await.unwrap();
            assert_eq!(answer.status, 200, "{answer}");
            if is_news {
                self.purged.store(version, Ordering::SeqCst);
            }
            self.purges.fetch_add(1, Ordering::Relaxed);
            // Pages are to be kept between two purges: some are asked for meanwhile, whatever the machine's speed.
            let until = self.asked.load(Ordering::Relaxed) + 150;
            while !self.is_over() && self.asked.load(Ordering::Relaxed) < until {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_a_thousand_visitors_gets_a_page_of_its_own() {
    let news = Arc::new(AtomicU64::new(0));
    let answers = Arc::clone(&news);
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let origin = Origin::answering(anywhere, BOUND, move |seen| answer(seen, &answers)).unwrap();
    let rule = "[[site.rule]]\npath = \"/keyed/*\"\nkey = { cookies = [\"user\"] }\n";
    let (_directory, path) = written(&config(&origin.url(), "workers = 2", rule));
    let larder = Process::run_config(&path).await;
    let before = larder.idle_usage().await;
    let crowd = Arc::new(Crowd {
        addr: larder.addr,
        seed: seed(),
        began: Instant::now(),
        seconds: std::env::var("LARDER_SECONDS").ok().and_then(|text| text.parse().ok()),
        asked: AtomicU64::new(0),
        baskets: AtomicU64::new(0),
        purged: AtomicU64::new(0),
        purges: AtomicU64::new(0),
        tags: Mutex::default(),
        unchanged: AtomicU64::new(0),
        visitors: Mutex::default(),
    });
    println!("LARDER_SEED={}", crowd.seed);
    let purger = tokio::spawn(Arc::clone(&crowd).purger(larder.admin, news));
    let clients: Vec<_> =
        (0..CLIENTS).map(|number| tokio::spawn(Arc::clone(&crowd).client(number))).collect();
    for client in clients {
        client.await.unwrap();
    }
    purger.await.unwrap();
    larder.comes_back_to(&before).await;
    let metrics = larder.metrics().await;
    let [kept, whole, open] = ["kept", "whole", "open"].map(|how| pages(&metrics, how));
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (asked, visitors) = (count(&crowd.asked), crowd.visitors.lock().len());
    println!(
        "{asked} pages for {visitors} visitors: {kept} kept, {whole} whole, {open} open, {} unchanged; {} purges, \
         {} requests at the origin",
        count(&crowd.unchanged),
        count(&crowd.purges),
        origin.log().count()
    );
    // Each private fragment was asked for by its own page, and by that alone.
    assert_eq!(origin.log().count_of("/private/basket"), count(&crowd.baskets));
    assert_eq!(kept + whole + open, asked);
    let least = [kept, whole, open, count(&crowd.unchanged), count(&crowd.purges)];
    assert!(visitors > 100 && least.iter().all(|count| *count > 0), "this proves little: {least:?}");
    assert!(origin.log().complaints().is_empty(), "{:?}", origin.log().complaints());
}
