//! The config in force, as the admin address shows it.
//!
//! In: what was loaded, and when. Out: JSON: the text without secrets, where sites and rules stand in it, warnings of the check, and how
//! the file on disk differs by now. Each question reads the file anew, beside the admin's own thread, and one after the other: a
//! reader has its place until it is done, also where nobody waits for it any more.
//! Deliberately absent: settings as values. The text says them in the operator's own words.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use bytes::Bytes;
use larder_admin::{Answering, Fault, Unanswered};
use larder_config::{Checked, ConfigText, DiffKind, Difference, Problem};
use larder_http::time::WallTime;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How long somebody waits for the place of a reader, and then for the reader.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// A config in force, without its settings.
#[derive(Debug, Default)]
pub(super) struct RunningConfig {
    pub(super) text: ConfigText,
    warnings: Vec<Problem>,
    pub(super) loaded: WallTime,
}

impl RunningConfig {
    /// Of a config that took over at this moment.
    pub(super) fn of(checked: &Checked, loaded: WallTime) -> Self {
        let text = checked.text.clone();
        let warnings = checked.warnings.iter().cloned().map(|warning| {
            let (key, found) = (text.without_secrets(&warning.key), text.without_secrets(&warning.found));
            let expected = warning.expected.map(|expected| text.without_secrets(&expected));
            let hint = warning.hint.map(|hint| text.without_secrets(&hint));
            Problem { key, found, expected, hint, ..warning }
        });
        Self { warnings: warnings.collect(), text, loaded }
    }

    /// All of it as JSON. Reads the file.
    fn json(&self) -> Value {
        let Self { text, warnings, loaded } = self;
        let sites = text.sites.iter();
        let sites: Vec<_> =
            sites.map(|at| json!({ "site": at.site, "line": at.line, "end": at.end })).collect();
        let rules = text.rules.iter();
        let rules: Vec<_> = rules
            .map(|at| json!({ "site": at.site, "rule": at.rule, "line": at.line, "end": at.end }))
            .collect();
        json!({
            "file": text.file,
            "loaded": seconds(*loaded),
            "text": text.text,
            "sites": sites,
            "rules": rules,
            "warnings": warnings.iter().map(warning).collect::<Vec<_>>(),
            "differs": text.difference().map(difference),
        })
    }
}

/// Since 1970.
pub(super) fn seconds(at: WallTime) -> f64 {
    std::time::Duration::from_millis(at.0).as_secs_f64()
}

fn warning(problem: &Problem) -> Value {
    let sentence = Problem { file: String::new(), hint: None, ..problem.clone() }.to_string();
    let line = (problem.line > 0).then_some(problem.line);
    match &problem.hint {
        Some(hint) => json!({ "line": line, "message": sentence, "hint": hint }),
        None => json!({ "line": line, "message": sentence }),
    }
}

fn difference(difference: Difference) -> Value {
    match difference {
        Difference::Changed { lines, left_out } => {
            let lines = lines.iter().map(|line| {
                let kind = match line.kind {
                    DiffKind::Removed => "-",
                    DiffKind::Added => "+",
                    DiffKind::Same => " ",
                };
                json!({ "kind": kind, "line": line.line, "text": line.text })
            });
            json!({ "why": "changed", "diff": lines.collect::<Vec<_>>(), "left_out": left_out })
        }
        Difference::Unseen => json!({ "why": "unseen", "diff": [] }),
        Difference::Absent => json!({ "why": "absent", "diff": [] }),
        Difference::Unreadable => json!({ "why": "unreadable", "diff": [] }),
    }
}

/// The config in force, for those who ask.
#[derive(Debug)]
pub(super) struct InForce {
    running: ArcSwap<RunningConfig>,
    /// The one place for reading the file.
    place: Arc<Semaphore>,
}

impl Default for InForce {
    fn default() -> Self {
        Self { running: ArcSwap::default(), place: Arc::new(Semaphore::new(1)) }
    }
}

impl InForce {
    /// Another config is in force.
    pub(super) fn run_by(&self, running: RunningConfig) {
        self.running.store(Arc::new(running));
    }

    pub(super) fn load(&self) -> Guard<Arc<RunningConfig>> {
        self.running.load()
    }

    /// Its JSON, once the file has been read.
    pub(super) fn told(&self) -> Answering<Bytes> {
        let running = self.running.load_full();
        self.told_by(move || running.json().to_string())
    }

    fn told_by(&self, read: impl FnOnce() -> String + Send + 'static) -> Answering<Bytes> {
        let place = Arc::clone(&self.place);
        Box::pin(async move {
            let told = async {
                let place = place.acquire_owned().await.map_err(|error| error.to_string())?;
                let read = move || {
                    let _place = place;
                    read()
                };
                tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string())
            };
            match timeout(WAIT_MAX, told).await {
                Ok(told) => told.map(Bytes::from).map_err(|why| unanswered(Fault::Store, "broken", why)),
                Err(_) => {
                    Err(unanswered(Fault::Busy, "busy", "the config file takes long to be read".to_owned()))
                }
            }
        })
    }
}

fn unanswered(fault: Fault, token: &'static str, message: String) -> Unanswered {
    Unanswered { fault, token, message, receipt: None }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_config_is_told_with_its_warnings_and_what_differs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("larder.toml");
        let text = "[admin]\ntoken = \"s3cret-s3cret-s3cret\"\n[origins.a]\nservers = \"http://127.0.0.1:1\"\n[[site]]\n\
                    origin = \"a\"\n[[site.rule]]\n[[site.rule]]\npath = \"/a\"\n";
        std::fs::write(&path, text).unwrap();
        let mut checked = larder_config::load(&path).unwrap();
        checked.warnings[0].hint = Some("not \"s3cret-s3cret-s3cret\"".to_owned());
        let running = RunningConfig::of(&checked, WallTime(1500));
        let told = running.json();
        assert_eq!((&told["loaded"], &told["differs"]), (&1.5.into(), &Value::Null));
        assert_eq!(told["text"], text.replace("s3cret-s3cret-s3cret", "***"));
        assert_eq!(told["sites"], json!([{ "site": "*", "line": 5, "end": 9 }]));
        let rules = json!([
            { "site": "*", "rule": "every request", "line": 7, "end": 7 },
            { "site": "*", "rule": "/a", "line": 8, "end": 9 },
        ]);
        assert_eq!(told["rules"], rules);
        let warning = &told["warnings"][0];
        assert_eq!(warning["line"], 8, "{told}");
        assert!(warning["message"].as_str().unwrap().starts_with("site[0].rule[1]: "), "{told}");
        assert_eq!(warning["hint"], "not \"***\"");
        std::fs::write(&path, text.replace("/a", "/b")).unwrap();
        let differs = &running.json()["differs"];
        assert_eq!(differs["why"], "changed");
        let changed: Vec<_> =
            differs["diff"].as_array().unwrap().iter().filter(|line| line["kind"] != " ").collect();
        assert_eq!(
            changed,
            [
                &json!({ "kind": "-", "line": 9, "text": "path = \"/a\"" }),
                &json!({ "kind": "+", "line": 9, "text": "path = \"/b\"" }),
            ]
        );
    }
    #[tokio::test]
    async fn a_reader_keeps_its_place_until_it_is_done() {
        let in_force = InForce::default();
        let (end, is_ended) = std::sync::mpsc::channel::<()>();
        let silent = in_force.told_by(move || {
            let _ = is_ended.recv();
            String::new()
        });
        // Whoever asked has gone, and the reader waits.
        assert!(timeout(Duration::from_millis(50), silent).await.is_err());
        let busy = in_force.told().await.unwrap_err();
        assert_eq!((busy.fault, busy.token), (Fault::Busy, "busy"));
        end.send(()).unwrap();
        assert!(in_force.told().await.unwrap().starts_with(b"{"));
    }
}
