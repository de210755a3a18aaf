//! The dashboard as a person has it: the binary before a scripted origin, and its page in a real Chromium.
//!
//! What the page shows is read from its document and compared with what the origin counted. Where there is no Chromium, these tests are
//! skipped and say so.

mod every_page;
mod figures;
mod hostile;
mod purging;
mod tokens;

use larder_testkit::browser::Page;
use larder_testkit::client::Request;
use larder_testkit::origin::Origin;
use tempfile::TempDir;

use crate::support::{Process, answer_of, cacheable, config, connect, script, until, written};

/// A larder with an origin that gives pages to store, and answers that set a cookie.
struct Scene {
    origin: Origin,
    larder: Process,
    _directory: TempDir,
}

impl Scene {
    async fn start() -> Self {
        Self::with(|origin| config(origin, "", "")).await
    }

    async fn with(text: impl Fn(&str) -> String) -> Self {
        let cookie = answer_of(&["Set-Cookie: session=8f14e45fceea167a; HttpOnly"], 10);
        let tagged = answer_of(&["Cache-Control: max-age=3600", "Surrogate-Key: news"], 500);
        let brief = answer_of(&[], 200);
        let scripts = vec![
            cacheable("/page*", 1000),
            script("/cookie*", cookie),
            script("/tagged*", tagged),
            script("/brief*", brief),
            cacheable("*", 100),
        ];
        let origin = Origin::simple(scripts).unwrap();
        let (directory, path) = written(&text(&origin.url()));
        let larder = Process::run_config(&path).await;
        Self { origin, larder, _directory: directory }
    }

    /// A URL as clients of this larder use it.
    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.larder.addr)
    }

    /// Asks for each of these, one after the other, under the name that [`Scene::url`] has.
    async fn asked(&self, targets: &[&str]) {
        let mut client = connect(self.larder.addr).await;
        for target in targets {
            let request = Request::new("GET", target, &self.larder.addr.to_string());
            assert_eq!(client.exchange(&request).await.unwrap().status, 200, "{target}");
        }
    }

    /// Where a page of the dashboard is.
    fn page(&self, path: &str) -> String {
        format!("http://{}/#/{path}", self.larder.admin)
    }

    /// The page about a URL.
    fn about(&self, url: &str) -> String {
        self.page(&format!("url?url={}", encoded(url)))
    }

    /// Waits until so many requests are in its figures.
    async fn counted(&self, count: u64) {
        until("all requests are counted", async || {
            self.larder.metrics().await.sum("larder_requests_total") >= count
        })
        .await;
    }
}

/// As `encodeURIComponent` writes it.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// A text as a literal of JavaScript.
fn literal(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Waits until a page has its name above it, its stream is open, and nothing is still asked for.
async fn settled(page: &Page<'_>, name: &str) {
    let ready = format!(
        "document.querySelector('h1')?.textContent === {} && !!document.querySelector('.link.live') && \
         ![...document.querySelectorAll('.none')].some((one) => /^\\s*(Loading|Asking)/.test(one.textContent))",
        literal(name)
    );
    page.until(&format!("{name} is there"), &ready).await;
    // What was known is also drawn.
    page.ask("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))").await;
}

/// Waits for the next second of the page's stream.
async fn ticked(page: &Page<'_>) {
    page.ask(
        "import('/ui/state.js').then(({ onTick }) => new Promise((heard) => { const stop = onTick(() => { stop(); heard(1) }) }))",
    )
    .await;
}

/// Presses what has this text in front.
async fn pressed(page: &Page<'_>, text: &str) {
    let found = format!(
        "(() => {{ const found = [...document.querySelectorAll('button, a, summary')].find((one) => one.innerText.trim().startsWith({}) \
         && !one.disabled); found?.click(); return !!found }})()",
        literal(text)
    );
    page.until(&format!("{text} can be pressed"), &found).await;
}

/// Waits until the page has this text.
async fn shows(page: &Page<'_>, text: &str) {
    let has = format!("document.body.innerText.replace(/\\s/g, ' ').includes({})", literal(text));
    page.until(&format!("it shows {text:?}"), &has).await;
}
