//! The API's own words: one JSON object with lists of what is to be purged.
//!
//! In: `{"urls": [], "tags": [], "prefixes": [], "patterns": [{"host", "url", "content_type", "tags"}], "hosts": [], "groups":
//! [{"origin", "name"}], "all": true, "site": "HOST", "soft": true, "wait": 10, "by": "cli"}`, each member where it is needed. Out: a question, or
//! every problem with its path. A member of another name is a problem, and so is a purge that names nothing.

use std::time::Duration;

use larder_cache::purge::{Expression, Mode, PatternText, Selector};
use larder_http::message::Scheme;
use serde_json::{Map, Value};

use super::question::{PurgeQuestion, WAIT_MAX};
use super::wanted::{Form, NAMES_MAX, Problem, Wanted};

pub(super) fn read(content: &[u8]) -> Result<Wanted, Vec<Problem>> {
    let value: Value = serde_json::from_slice(content)
        .map_err(|error| vec![Problem::new("", format!("not JSON: {error}"))])?;
    let Value::Object(members) = value else {
        return Err(vec![Problem::new("", "an object is expected, such as {\"tags\": [\"news\"]}")]);
    };
    let mut reading = Reading::default();
    reading.read(&members);
    reading.ended()
}

#[derive(Default)]
struct Reading {
    selectors: Vec<Selector>,
    paths: Vec<String>,
    problems: Vec<Problem>,
    is_soft: bool,
    is_cli: bool,
    site: Option<String>,
    wait: Option<Duration>,
}

/// The members that there are.
const MEMBERS: [&str; 11] =
    ["urls", "tags", "prefixes", "patterns", "hosts", "groups", "all", "site", "soft", "wait", "by"];

impl Reading {
    fn read(&mut self, members: &Map<String, Value>) {
        for (name, value) in members {
            match name.as_str() {
                "urls" => self.texts(name, value, |text| Ok(Selector::Url(text.into()))),
                "tags" => self.texts(name, value, |text| Ok(Selector::Tag(text.as_bytes().into()))),
                "prefixes" => self.texts(name, value, prefix),
                "hosts" => self.texts(name, value, |text| Ok(Selector::Host(text.into()))),
                "patterns" => self.objects(name, value, pattern),
                "groups" => self.objects(name, value, group),
                "all" => match value {
                    Value::Bool(true) => self.push(name.clone(), Selector::All),
                    Value::Bool(false) => {}
                    _ => self.problem(name, "true is expected"),
                },
                "soft" => match value {
                    Value::Bool(is_soft) => self.is_soft = *is_soft,
                    _ => self.problem(name, "true or false is expected"),
                },
                "site" => match value {
                    Value::String(site) => self.site = Some(site.clone()),
                    _ => self.problem(name, "a host is expected"),
                },
                "wait" => {
                    match value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
                        Some(wait) if !wait.is_zero() && wait <= WAIT_MAX => self.wait = Some(wait),
                        _ => self.problem(
                            name,
                            format!(
                                "a number of seconds is expected, above 0 and at most {}",
                                WAIT_MAX.as_secs()
                            ),
                        ),
                    }
                }
                "by" => match value.as_str() {
                    Some("cli") => self.is_cli = true,
                    _ => self.problem(name, "\"cli\" is expected"),
                },
                _ => {
                    let message = format!("unknown; known are {}", MEMBERS.join(", "));
                    self.problem(name, message);
                }
            }
        }
    }

    fn push(&mut self, path: String, selector: Selector) {
        self.paths.push(path);
        self.selectors.push(selector);
    }

    fn problem(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.problems.push(Problem::new(path, message));
    }

    fn texts(&mut self, name: &str, value: &Value, read: impl Fn(&str) -> Result<Selector, String>) {
        self.each(name, value, |item| match item.as_str() {
            Some(text) => read(text),
            None => Err("a text is expected".to_owned()),
        });
    }

    fn objects(
        &mut self,
        name: &str,
        value: &Value,
        read: impl Fn(&Map<String, Value>) -> Result<Selector, String>,
    ) {
        self.each(name, value, |item| match item.as_object() {
            Some(members) => read(members),
            None => Err("an object is expected".to_owned()),
        });
    }

    fn each(&mut self, name: &str, value: &Value, read: impl Fn(&Value) -> Result<Selector, String>) {
        let Some(items) = value.as_array() else { return self.problem(name, "a list is expected") };
        for (number, item) in items.iter().enumerate() {
            let path = format!("{name}[{number}]");
            if self.selectors.len() >= NAMES_MAX {
                return self.problem(path, format!("more than {NAMES_MAX} names"));
            }
            match read(item) {
                Ok(selector) => self.push(path, selector),
                Err(message) => self.problem(path, message),
            }
        }
    }

    fn ended(mut self) -> Result<Wanted, Vec<Problem>> {
        if self.selectors.is_empty() && self.problems.is_empty() {
            let message =
                "it names nothing: urls, tags, prefixes, patterns, hosts, groups or all is expected";
            self.problem("", message);
        }
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        let mode = if self.is_soft { Mode::Soft } else { Mode::Hard };
        let dialect = if self.is_cli { "cli" } else { "api" };
        let question =
            PurgeQuestion { selectors: self.selectors, mode, site: self.site, dialect, wait: self.wait };
        Ok(Wanted { question, paths: self.paths, form: Form::Own })
    }
}

/// `http://HOST/PATH/`, `HOST/PATH/`, or `/PATH/` at every host.
pub(super) fn prefix(text: &str) -> Result<Selector, String> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")).unwrap_or(text);
    let slash = rest.find('/').ok_or_else(|| format!("{text:?} has no path: a prefix ends in /"))?;
    let (host, path) = rest.split_at(slash);
    if !path.ends_with('/') {
        return Err(format!("{text:?} does not end in /: a prefix is a path with all that lies below it"));
    }
    // A port tells no hosts apart here.
    let host =
        host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(host, |(host, _)| host);
    Ok(Selector::Prefix { host: (!host.is_empty()).then(|| host.into()), path: path.into() })
}

fn pattern(members: &Map<String, Value>) -> Result<Selector, String> {
    let mut text = PatternText::default();
    for (name, value) in members {
        let part = match name.as_str() {
            "host" => &mut text.host,
            "url" => &mut text.target,
            "content_type" => &mut text.content_type,
            "tags" => &mut text.tags,
            _ => return Err(format!("{name:?} is unknown; known are host, url, content_type, tags")),
        };
        let expression = value.as_str().ok_or_else(|| format!("{name:?} is no text"))?;
        *part = Some(Expression { text: expression.into(), at_start: false });
    }
    match text == PatternText::default() {
        true => Err("it has no expression: host, url, content_type or tags is expected".to_owned()),
        false => Ok(Selector::Pattern(text)),
    }
}

fn group(members: &Map<String, Value>) -> Result<Selector, String> {
    if let Some(name) = members.keys().find(|name| !matches!(name.as_str(), "origin" | "name")) {
        return Err(format!("{name:?} is unknown; known are origin and name"));
    }
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let (Some(origin), Some(name)) = (text("origin"), text("name")) else {
        return Err("origin, such as https://example.com, and name are expected".to_owned());
    };
    let schemes = [("http://", Scheme::Http), ("https://", Scheme::Https)];
    let named = schemes.into_iter().find_map(|(prefix, scheme)| Some((scheme, origin.strip_prefix(prefix)?)));
    let (scheme, authority) =
        named.ok_or_else(|| format!("{origin:?} is no origin such as https://example.com"))?;
    Ok(Selector::Group { scheme, authority: authority.trim_end_matches('/').into(), name: name.into() })
}
