//! Debian's Chromium, without a window, driven over two pipes by the DevTools protocol.
//!
//! In: the program `/usr/bin/chromium`, or the one that `CHROMIUM` names (`make units` installs it). Out: a [`Browser`] with pages that can be
//! looked at, typed into and asked, and what they reported. It reaches nothing but 127.0.0.1, and keeps its profile in a folder that goes away
//! with it. One browser runs at a time, because each takes hundreds of megabytes and both cores.
//!
//! The protocol is Chromium's own: JSON, each message ended by a zero byte. Over pipes it needs no port, no WebSocket and no second program.
//! Deliberately absent: other browsers, downloads, screenshots.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]

mod page;
mod protocol;

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};

pub use page::{Key, Page};
use protocol::{LIMIT, Protocol};

/// The most that it may take to end by itself.
const CLOSE_MAX: Duration = Duration::from_secs(5);
const PROGRAM: &str = "/usr/bin/chromium";

/// Chromium expects to read from descriptor 3 and to write to 4. A shell moves its own two there, which takes no `unsafe`.
const MOVED: &str = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null";

const OPTIONS: [&str; 15] = [
    "--headless=new",
    // Its sandbox takes user namespaces, which root and containers lack. It opens larder's own page alone.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-breakpad",
    "--disable-sync",
    "--disable-extensions",
    "--disable-component-update",
    "--disable-background-networking",
    "--disable-default-apps",
    "--no-first-run",
    "--no-default-browser-check",
    "--password-store=basic",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
];

static ONE: Mutex<()> = Mutex::const_new(());

/// A running Chromium, ended with this value.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    protocol: Protocol,
    /// Ends when the last process that inherited its standard error is gone.
    all_gone: Receiver<()>,
    _profile: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Browser {
    /// Starts it, once no other one runs; `None`, with a line that says so, where it is not installed.
    ///
    /// # Panics
    /// `CHROMIUM` names a program that does not start.
    pub async fn launch() -> Option<Self> {
        Self::launch_with(None).await
    }

    /// The same, where it trusts the server whose key `pin` stands for, whatever its certificate says
    /// ([`crate::certificates::Certificates::server_pin`]).
    ///
    /// # Panics
    /// As [`Browser::launch`].
    pub async fn launch_trusting(pin: &str) -> Option<Self> {
        Self::launch_with(Some(pin)).await
    }

    #[expect(clippy::disallowed_macros, clippy::print_stderr, reason = "a test that is skipped says so")]
    async fn launch_with(pin: Option<&str>) -> Option<Self> {
        let named = std::env::var("CHROMIUM").ok();
        if named.is_none() && !Path::new(PROGRAM).exists() {
            eprintln!("skipped: there is no {PROGRAM} on this machine");
            return None;
        }
        let alone = ONE.lock().await;
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", MOVED, named.as_deref().unwrap_or(PROGRAM)]).args(OPTIONS);
        command.arg(format!("--user-data-dir={}", profile.path().join("profile").display()));
        command.args(pin.map(|pin| format!("--ignore-certificate-errors-spki-list={pin}")));
        command.arg("about:blank");
        for name in ["HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"] {
            command.env(name, profile.path());
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap();
        let protocol = Protocol::over(child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (ended, all_gone) = channel();
        let mut errors = child.stderr.take().unwrap();
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut errors, &mut std::io::sink());
            let _ = ended.send(());
        });
        let browser = Self { child, protocol, all_gone, _profile: profile, _alone: alone };
        browser.protocol.call(None, "Browser.getVersion", json!({})).await.expect("Chromium answers");
        Some(browser)
    }

    /// A new page, with nothing in it and storage of its own.
    pub async fn page(&self) -> Page<'_> {
        let ask = async |method: &str, params| self.protocol.call(None, method, params).await.unwrap();
        let context = ask("Target.createBrowserContext", json!({})).await;
        let wanted = json!({ "url": "about:blank", "browserContextId": context["browserContextId"] });
        let target = ask("Target.createTarget", wanted).await;
        let wanted = json!({ "targetId": target["targetId"], "flatten": true });
        let session = ask("Target.attachToTarget", wanted).await;
        Page::begin(&self.protocol, session["sessionId"].as_str().unwrap()).await
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Asked first, it ends its own children, and nobody else has to wait for them.
        self.protocol.tell("Browser.close");
        let _ = self.all_gone.recv_timeout(CLOSE_MAX);
        // Children that are still there are of its group.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
        // The profile can be removed only once nobody writes to it.
        let _ = self.all_gone.recv_timeout(LIMIT);
    }
}
