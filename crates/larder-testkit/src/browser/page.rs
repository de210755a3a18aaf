//! One page: opened, looked at in a size and in light or dark, typed into, asked, and what it reported.
//!
//! In: URLs, expressions of JavaScript, keys. Out: values as JSON. A wait asks again and again until its condition holds, and fails with what
//! was waited for, the text of the page and its reports.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::protocol::{LIMIT, Protocol};

/// Tells of each report of the policy of the page, which is otherwise only an event within it.
const POLICY: &str = "document.addEventListener('securitypolicyviolation', (event) => \
    console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sourceFile))";

/// A key that is no letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// To the next element.
    Tab,
    /// Sends a form, presses a button.
    Enter,
    /// Closes a dialog.
    Escape,
}

/// A page of a browser.
#[derive(Debug)]
pub struct Page<'a> {
    protocol: &'a Protocol,
    session: String,
}

impl<'a> Page<'a> {
    pub(super) async fn begin(protocol: &'a Protocol, session: &str) -> Self {
        let page = Self { protocol, session: session.to_owned() };
        for domain in ["Page", "Runtime", "Log"] {
            page.call(&format!("{domain}.enable"), json!({})).await;
        }
        page.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": POLICY })).await;
        // Keys go to it as if its window were in front.
        page.call("Emulation.setFocusEmulationEnabled", json!({ "enabled": true })).await;
        page
    }

    async fn call(&self, method: &str, params: Value) -> Value {
        match self.protocol.call(Some(&self.session), method, params).await {
            Ok(result) => result,
            Err(why) => panic!("{method}: {why}"),
        }
    }

    /// Goes to a URL. Another fragment of the same document loads nothing.
    pub async fn open(&self, url: &str) {
        let result = self.call("Page.navigate", json!({ "url": url })).await;
        assert!(result.get("errorText").is_none(), "{url}: {result}");
        self.until("the document is there", "document.readyState === 'complete'").await;
    }

    /// Its size in CSS pixels, and whether the system prefers dark.
    pub async fn look(&self, width: u32, height: u32, is_dark: bool) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size).await;
        let scheme = if is_dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", media).await;
    }

    /// The value of an expression; that of a promise once it has one.
    pub async fn ask(&self, expression: &str) -> Value {
        match self.evaluated(expression).await {
            Ok(value) => value,
            Err(why) => panic!("{}: {why}", expression.get(..200).unwrap_or(expression)),
        }
    }

    /// The text that an expression has.
    pub async fn text(&self, expression: &str) -> String {
        let value = self.ask(expression).await;
        value.as_str().unwrap_or_else(|| panic!("{expression} is {value}")).to_owned()
    }

    async fn evaluated(&self, expression: &str) -> Result<Value, String> {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let told = self.protocol.call(Some(&self.session), "Runtime.evaluate", params).await?;
        match told.get("exceptionDetails") {
            Some(details) => Err(details["exception"]["description"].to_string()),
            None => Ok(told["result"]["value"].clone()),
        }
    }

    /// Waits until an expression is true.
    ///
    /// # Panics
    /// It is not, in all of the time that there is.
    pub async fn until(&self, what: &str, expression: &str) {
        let begun = Instant::now();
        loop {
            // While another document takes its place, nothing can be asked.
            let last = self.evaluated(expression).await;
            if last == Ok(Value::Bool(true)) {
                return;
            }
            if begun.elapsed() > LIMIT {
                let shown = self.evaluated("document.body.innerText").await;
                panic!("waited too long until {what}: {last:?}\n{shown:?}\n{:#?}", self.reports());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Presses and releases a key.
    pub async fn press(&self, key: Key) {
        let (name, code, text) = match key {
            Key::Tab => ("Tab", 9, ""),
            Key::Enter => ("Enter", 13, "\r"),
            Key::Escape => ("Escape", 27, ""),
        };
        for kind in [if text.is_empty() { "rawKeyDown" } else { "keyDown" }, "keyUp"] {
            let text = if kind == "keyUp" { "" } else { text };
            let pressed = json!({ "type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code, "text": text });
            self.call("Input.dispatchKeyEvent", pressed).await;
        }
    }

    /// Types into the element that has the focus.
    pub async fn write(&self, text: &str) {
        self.call("Input.insertText", json!({ "text": text })).await;
    }

    /// What it has reported since this was asked last: messages of its console, faults, reports of its policy, the browser's log, dialogs.
    pub fn reports(&self) -> Vec<String> {
        self.protocol.reports(&self.session)
    }
}
