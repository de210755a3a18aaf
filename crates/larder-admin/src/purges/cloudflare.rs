//! The words of Cloudflare's API: <https://developers.cloudflare.com/api/resources/cache/methods/purge/>.
//!
//! In: `POST /client/v4/zones/ID/purge_cache` with `files`, `tags`, `hosts`, `prefixes` or `purge_everything`. `ID` is a host of a site,
//! or `all`. Of a file that is an object the URL counts: all of its variants go. Out: a question, and answers in that form.

use larder_cache::purge::{Mode, Selector};
use larder_http::message::RequestHead;
use serde_json::{Value, json};

use super::question::PurgeQuestion;
use super::wanted::{Form, Problem, Wanted, site_of};

/// Items in one request.
const ITEMS_MAX: usize = 1000;
const BEFORE_ID: &str = "/client/v4/zones/";
const BEHIND_ID: &str = "/purge_cache";

fn id_of(path: &str) -> Option<&str> {
    let id = path.strip_prefix(BEFORE_ID)?.strip_suffix(BEHIND_ID)?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}

pub(super) fn read(head: &RequestHead, content: &[u8]) -> Result<Wanted, Vec<Problem>> {
    let one = |path: &str, message: String| vec![Problem::new(path, message)];
    let value: Value =
        serde_json::from_slice(content).map_err(|error| one("", format!("not JSON: {error}")))?;
    let members = value.as_object().ok_or_else(|| one("", "an object is expected".to_owned()))?;
    let (mut selectors, mut paths, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for (name, value) in members {
        if name == "purge_everything" {
            match value {
                Value::Bool(true) => {
                    selectors.push(Selector::All);
                    paths.push(name.clone());
                }
                _ => problems.push(Problem::new(name, "true is expected")),
            }
            continue;
        }
        let Some(items) = value.as_array() else {
            problems.push(Problem::new(name, "a list is expected"));
            continue;
        };
        for (number, item) in items.iter().enumerate() {
            let path = format!("{name}[{number}]");
            match selector(name, item) {
                Ok(selector) => {
                    selectors.push(selector);
                    paths.push(path);
                }
                Err(message) => problems.push(Problem::new(path, message)),
            }
        }
    }
    if selectors.len() > ITEMS_MAX {
        problems.push(Problem::new("", format!("more than {ITEMS_MAX} items")));
    }
    if selectors.is_empty() && problems.is_empty() {
        let message = "files, tags, hosts, prefixes or purge_everything is expected";
        problems.push(Problem::new("", message));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let site = id_of(head.target.path()).and_then(site_of);
    let question = PurgeQuestion { selectors, mode: Mode::Hard, site, dialect: "cloudflare", wait: None };
    Ok(Wanted { question, paths, form: Form::Cloudflare })
}

fn selector(name: &str, item: &Value) -> Result<Selector, String> {
    let text = || item.as_str().ok_or_else(|| "a text is expected".to_owned());
    match name {
        "files" => {
            let url = item.as_str().or_else(|| item.get("url").and_then(Value::as_str));
            Ok(Selector::Url(url.ok_or("a URL is expected, or an object with one")?.into()))
        }
        "tags" => Ok(Selector::Tag(text()?.as_bytes().into())),
        "hosts" => Ok(Selector::Host(text()?.into())),
        "prefixes" => {
            let prefix = text()?;
            // Theirs need no slash at the end, and mean whole segments.
            let prefix = if prefix.ends_with('/') { prefix.to_owned() } else { format!("{prefix}/") };
            super::json::prefix(&prefix)
        }
        _ => Err("unknown; known are files, tags, hosts, prefixes and purge_everything".to_owned()),
    }
}

pub(super) fn done(id: &str) -> Value {
    json!({ "success": true, "errors": [], "messages": [], "result": { "id": id } })
}

pub(super) fn refusal(problems: &[Problem]) -> Value {
    let errors: Vec<Value> = problems
        .iter()
        .map(|problem| {
            let place = if problem.path.is_empty() { String::new() } else { format!("{}: ", problem.path) };
            json!({ "code": 1012, "message": format!("{place}{}", problem.message) })
        })
        .collect();
    json!({ "success": false, "errors": errors, "messages": [], "result": null })
}
