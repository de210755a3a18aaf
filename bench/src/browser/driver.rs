//! A browser that is told what to do: Debian's Chromium, by its chromedriver (W3C WebDriver).
//!
//! In: pages to open, forms to fill in, scripts to run. Out: what the page shows then. Each browser has a profile of its
//! own, and with it cookies of its own. The driver is asked with curl, on a free port of the loopback interface.
//! Deliberately absent: any knowledge of the pages.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::{OPTIONS, end_left_overs};
use harness::children::{Server, free_port, pause};

const READY_MAX: Duration = Duration::from_secs(30);
/// How long a page may take to show what is waited for.
pub(super) const SHOW_MAX: Duration = Duration::from_secs(30);
/// How WebDriver names an element in its answers.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser that runs.
pub(crate) struct Browser {
    driver: SocketAddr,
    session: String,
    profile: PathBuf,
    _server: Server,
}

impl Browser {
    /// Starts one with an empty profile below `work`, which `name` tells from others.
    pub(crate) fn start(work: &Path, name: &str) -> Result<Self> {
        let driver = free_port()?;
        let mut command = Command::new("chromedriver");
        command
            .arg(format!("--port={}", driver.port()))
            .arg(format!("--log-path={}", work.join(format!("chromedriver-{name}.log")).display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let mut server = Server::start("chromedriver", &mut command)?;
        server.wait_for(driver, READY_MAX)?;
        let profile = work.join(format!("profile-{name}"));
        let mut arguments: Vec<String> = OPTIONS.iter().map(|option| (*option).to_owned()).collect();
        arguments.push(format!("--user-data-dir={}", profile.display()));
        arguments.push("--window-size=1100,1000".to_owned());
        // A film may play unasked.
        arguments.push("--autoplay-policy=no-user-gesture-required".to_owned());
        let wanted = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": arguments}}}});
        let begun = call(driver, "POST", "/session", Some(&wanted))?;
        let session = begun.get("sessionId").and_then(Value::as_str).context("no session")?.to_owned();
        Ok(Self { driver, session, profile, _server: server })
    }

    /// Opens a page, and waits until it is loaded.
    pub(crate) fn open(&self, url: &str) -> Result<()> {
        self.post("/url", &json!({"url": url})).map(drop)
    }

    /// The whole page as it is now.
    pub(crate) fn source(&self) -> Result<String> {
        let source = self.ask("GET", "/source", None)?;
        Ok(source.as_str().context("no source")?.to_owned())
    }

    /// What the first element that `css` selects shows; nothing where there is none.
    pub(crate) fn text(&self, css: &str) -> Result<String> {
        let script = "const e = document.querySelector(arguments[0]); return e ? e.innerText : ''";
        let text = self.script(script, &json!([css]))?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Replaces what a field of a form holds.
    pub(crate) fn fill(&self, css: &str, text: &str) -> Result<()> {
        let element = self.find(css)?;
        self.post(&format!("/element/{element}/clear"), &json!({}))?;
        self.post(&format!("/element/{element}/value"), &json!({"text": text})).map(drop)
    }

    /// Clicks, and waits for the page that comes of it.
    pub(crate) fn click(&self, css: &str) -> Result<()> {
        let element = self.find(css)?;
        self.post(&format!("/element/{element}/click"), &json!({})).map(drop)
    }

    /// Runs the body of a function in the page.
    pub(crate) fn script(&self, script: &str, arguments: &Value) -> Result<Value> {
        self.post("/execute/sync", &json!({"script": script, "args": arguments}))
    }

    /// The same for one that calls its last argument when it is done.
    pub(crate) fn script_until_done(&self, script: &str, arguments: &Value) -> Result<Value> {
        self.post("/timeouts", &json!({"script": 60_000}))?;
        self.post("/execute/async", &json!({"script": script, "args": arguments}))
    }

    /// Names and values of the cookies that the page is sent.
    pub(crate) fn cookies(&self) -> Result<Vec<(String, String)>> {
        let cookies = self.ask("GET", "/cookie", None)?;
        let of = |cookie: &Value, name| cookie.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
        let all = cookies.as_array().context("no cookies")?;
        Ok(all.iter().map(|cookie| (of(cookie, "name"), of(cookie, "value"))).collect())
    }

    /// Makes the window `width` wide and as high as the document is then, up to `height_max`.
    pub(super) fn fit(&self, width: u64, height_max: u64) -> Result<()> {
        let sized = |height: u64| self.post("/window/rect", &json!({"width": width, "height": height}));
        sized(height_max)?;
        // A window is higher than what it shows.
        let script = "return [document.querySelector('body').offsetHeight, outerHeight - innerHeight]";
        let heights = self.script(script, &json!([]))?;
        let of = |at: usize| heights.get(at).and_then(Value::as_f64).map(|height| height.ceil() as u64);
        let (document, frame) = of(0).zip(of(1)).context("no height")?;
        sized(document.saturating_add(frame).min(height_max)).map(drop)
    }

    /// Writes what the window shows into `picture`.
    pub(crate) fn picture(&self, picture: &Path) -> Result<()> {
        let answer = self.ask("GET", "/screenshot", None)?;
        let text = answer.as_str().context("no picture")?;
        let mut decoder = Command::new("base64")
            .arg("-d")
            .stdin(Stdio::piped())
            .stdout(std::fs::File::create(picture)?)
            .spawn()
            .context("base64")?;
        decoder.stdin.take().context("base64 reads nothing")?.write_all(text.as_bytes())?;
        ensure!(decoder.wait()?.success(), "the picture is no base64");
        Ok(())
    }

    fn find(&self, css: &str) -> Result<String> {
        let deadline = Instant::now() + SHOW_MAX;
        loop {
            match self.post("/element", &json!({"using": "css selector", "value": css})) {
                Ok(element) => {
                    let id = element.get(ELEMENT).and_then(Value::as_str);
                    return Ok(id.context("an element without a name")?.to_owned());
                }
                Err(error) if Instant::now() > deadline => return Err(error.context(css.to_owned())),
                Err(_) => pause(),
            }
        }
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.ask("POST", path, Some(body))
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        call(self.driver, method, &format!("/session/{}{path}", self.session), body)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Where the driver is gone, its browser is ended by its id.
        let _ = self.ask("DELETE", "", None);
        let _ = end_left_overs(&self.profile);
    }
}

/// One command of WebDriver; its value.
fn call(driver: SocketAddr, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
    let mut command = Command::new("curl");
    command
        .args(["-sS", "--max-time", "120", "-X", method, "-H", "Content-Type: application/json"])
        .arg(format!("http://{driver}{path}"))
        .stdin(Stdio::null());
    if let Some(body) = body {
        command.args(["--data-binary", &body.to_string()]);
    }
    let output = command.output().context("curl")?;
    ensure!(output.status.success(), "chromedriver: {}", String::from_utf8_lossy(&output.stderr).trim());
    let answer: Value = serde_json::from_slice(&output.stdout).context("chromedriver's answer")?;
    let value = answer.get("value").cloned().unwrap_or_default();
    if let Some(error) = value.get("error").and_then(Value::as_str) {
        let message = value.get("message").and_then(Value::as_str).unwrap_or_default();
        bail!("chromedriver: {error}: {}", message.lines().next().unwrap_or_default());
    }
    Ok(value)
}
