//! Calls and their answers over the two pipes, and what pages report meanwhile.
//!
//! In: a method with its parameters, for the browser or for one page (a session). Out: its result, or the browser's own words of why there is
//! none. Messages of consoles, faults, the browser's log and dialogs are kept by page; a dialog is closed at once, as it would stop the page.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// The most that a single wait for the browser takes.
pub(super) const LIMIT: Duration = Duration::from_secs(30);

type Answered = Result<Value, String>;

/// The connection to a browser.
#[derive(Debug)]
pub(super) struct Protocol {
    shared: Arc<Ends>,
}

#[derive(Debug)]
struct Ends {
    to: Mutex<ChildStdin>,
    last: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Answered>>>,
    reports: Mutex<HashMap<String, Vec<String>>>,
}

impl Protocol {
    pub(super) fn over(to: ChildStdin, from: ChildStdout) -> Self {
        let shared = Arc::new(Ends {
            to: Mutex::new(to),
            last: AtomicU64::new(0),
            waiting: Mutex::default(),
            reports: Mutex::default(),
        });
        let heard = Arc::clone(&shared);
        std::thread::spawn(move || heard.read(from));
        Self { shared }
    }

    /// Calls a method.
    ///
    /// # Errors
    /// What the browser said.
    ///
    /// # Panics
    /// The browser has ended, or does not answer in time.
    pub(super) async fn call(&self, session: Option<&str>, method: &str, params: Value) -> Answered {
        let (answer, answered) = oneshot::channel();
        self.shared.send(session, method, &params, Some(answer));
        match tokio::time::timeout(LIMIT, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => panic!("Chromium has ended before it answered {method}"),
            Err(_) => panic!("Chromium did not answer {method}"),
        }
    }

    /// Calls a method of the browser, and waits for nothing.
    pub(super) fn tell(&self, method: &str) {
        self.shared.send(None, method, &json!({}), None);
    }

    /// What a page has reported since this was asked last.
    pub(super) fn reports(&self, session: &str) -> Vec<String> {
        self.shared.reports.lock().remove(session).unwrap_or_default()
    }
}

impl Ends {
    fn send(
        &self,
        session: Option<&str>,
        method: &str,
        params: &Value,
        answer: Option<oneshot::Sender<Answered>>,
    ) {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        if let Some(answer) = answer {
            self.waiting.lock().insert(id, answer);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        if self.to.lock().write_all(&bytes).is_err() {
            self.waiting.lock().remove(&id);
        }
    }

    fn read(&self, from: impl Read) {
        let mut from = BufReader::new(from);
        let mut bytes = Vec::new();
        while from.read_until(0, &mut bytes).is_ok_and(|read| read > 0) {
            bytes.pop();
            if let Ok(message) = serde_json::from_slice(&bytes) {
                self.take(&message);
            }
            bytes.clear();
        }
        // Whoever waits learns that nothing more comes.
        self.waiting.lock().clear();
    }

    fn take(&self, message: &Value) {
        if let Some(id) = message["id"].as_u64() {
            let waiting = self.waiting.lock().remove(&id);
            let answer = match message.get("error") {
                Some(error) => Err(error["message"].to_string()),
                None => Ok(message["result"].clone()),
            };
            let _ = waiting.map(|waiting| waiting.send(answer));
            return;
        }
        let session = message["sessionId"].as_str();
        let Some(method) = message["method"].as_str() else { return };
        if method == "Page.javascriptDialogOpening" {
            self.send(session, "Page.handleJavaScriptDialog", &json!({ "accept": false }), None);
        }
        if let (Some(session), Some(report)) = (session, told(method, &message["params"])) {
            self.reports.lock().entry(session.to_owned()).or_default().push(report);
        }
    }
}

/// An event as a line, where it is one of those that a clean page does not cause.
fn told(method: &str, params: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Some(match method {
        "Runtime.consoleAPICalled" => {
            let said = params["args"].as_array()?.iter();
            let said = said.map(|one| text(one.get("value").unwrap_or(&one["description"])));
            format!("console {}: {}", text(&params["type"]), said.collect::<Vec<_>>().join(" "))
        }
        "Runtime.exceptionThrown" => {
            let details = &params["exceptionDetails"];
            let said = details["exception"].get("description").unwrap_or(&details["text"]);
            format!("exception: {}", text(said))
        }
        "Log.entryAdded" => {
            let entry = &params["entry"];
            format!(
                "{} {}: {} {}",
                text(&entry["source"]),
                text(&entry["level"]),
                text(&entry["text"]),
                entry["url"]
            )
        }
        "Page.javascriptDialogOpening" => format!("dialog: {}", text(&params["message"])),
        "Inspector.targetCrashed" => "crashed".to_owned(),
        _ => return None,
    })
}
