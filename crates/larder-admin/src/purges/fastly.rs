//! The words of Fastly's API: <https://www.fastly.com/documentation/reference/api/purging/>.
//!
//! In: `POST /service/ID/purge/KEY`, `/service/ID/purge` with keys in Surrogate-Key or as JSON, `/service/ID/purge_all`, and
//! `POST /purge/URL`; `Fastly-Soft-Purge` makes them soft, with any value. `ID` is a host of a site, or `all`. Out: a question, and answers
//! in that form.

use http::{HeaderName, StatusCode};
use larder_cache::purge::tags::split;
use larder_cache::purge::{Mode, Selector};
use larder_http::message::RequestHead;
use serde_json::{Value, json};

use super::question::PurgeQuestion;
use super::wanted::{Form, Problem, Wanted, site_of};

const SOFT: HeaderName = HeaderName::from_static("fastly-soft-purge");
const SURROGATE_KEY: HeaderName = HeaderName::from_static("surrogate-key");
/// Keys in one request.
const KEYS_MAX: usize = 256;

/// The ID and what follows `purge` in a path.
fn parts(path: &str) -> Option<(&str, &str)> {
    let (id, what) = path.strip_prefix("/service/")?.split_once('/')?;
    (what == "purge" || what == "purge_all" || what.starts_with("purge/")).then_some((id, what))
}

pub(super) fn read(head: &RequestHead, content: &[u8]) -> Result<Wanted, Vec<Problem>> {
    let mode = if head.fields.contains_key(SOFT) { Mode::Soft } else { Mode::Hard };
    let of = |selectors: Vec<Selector>, site: Option<String>, form| {
        let paths = vec![String::new(); selectors.len()];
        Wanted {
            question: PurgeQuestion { selectors, mode, site, dialect: "fastly", wait: None },
            paths,
            form,
        }
    };
    if let Some(url) = head.target.as_str().strip_prefix("/purge/") {
        let url = decoded(url);
        let url = if url.contains("://") { url } else { format!("https://{url}") };
        return Ok(of(vec![Selector::Url(url.into())], None, Form::FastlyOne));
    }
    let wrong = |message: &str| vec![Problem::new("", message)];
    let (id, what) = parts(head.target.path()).ok_or_else(|| wrong("no such path"))?;
    let site = site_of(&decoded(id));
    if what == "purge_all" {
        return Ok(of(vec![Selector::All], site, Form::FastlyAll));
    }
    if let Some(key) = what.strip_prefix("purge/") {
        let key = decoded(key);
        return Ok(of(vec![Selector::Tag(key.as_bytes().into())], site, Form::FastlyOne));
    }
    let mut keys: Vec<Box<[u8]>> = Vec::new();
    for value in head.fields.get_all(SURROGATE_KEY) {
        keys.extend(split(value.as_bytes()).map(Into::into));
    }
    if keys.is_empty() && !content.is_empty() {
        keys = keys_of(content).map_err(|message| wrong(&message))?;
    }
    match keys.len() {
        0 => Err(wrong("Surrogate-Key, or {\"surrogate_keys\": [...]}, is expected")),
        1..=KEYS_MAX => {
            let names = keys.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect();
            Ok(of(keys.into_iter().map(Selector::Tag).collect(), site, Form::FastlyKeys(names)))
        }
        _ => Err(wrong("more than 256 keys")),
    }
}

fn keys_of(content: &[u8]) -> Result<Vec<Box<[u8]>>, String> {
    let value: Value = serde_json::from_slice(content).map_err(|error| format!("not JSON: {error}"))?;
    let keys = value.get("surrogate_keys").and_then(Value::as_array);
    let keys = keys.ok_or("surrogate_keys is expected: a list of texts")?;
    let text = |key: &Value| key.as_str().map(|key| key.as_bytes().into());
    keys.iter().map(text).collect::<Option<_>>().ok_or_else(|| "a key is no text".to_owned())
}

/// With its escapes undone, where they are text.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        let escaped = (*byte == b'%').then(|| std::str::from_utf8(tail.get(..2)?).ok()).flatten();
        match escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*byte);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

pub(super) fn done(id: &str) -> Value {
    json!({ "status": "ok", "id": id })
}

pub(super) fn done_all() -> Value {
    json!({ "status": "ok" })
}

pub(super) fn done_keys(keys: &[String], id: &str) -> Value {
    let each = keys.iter().map(|key| (key.clone(), Value::from(id)));
    Value::Object(each.collect())
}

pub(super) fn refusal(status: StatusCode, problems: &[Problem]) -> Value {
    let detail: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    json!({ "msg": status.canonical_reason(), "detail": detail.join("; ") })
}
