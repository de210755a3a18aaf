//! `larder purge`: purges what a running larder has stored.
//!
//! In: URLs, tags, prefixes, patterns, hosts, groups, or all. Out: what was purged and how many responses that concerned so far; 0 only
//! if it holds after a crash as well. How many responses a tag or a prefix concerns is not known at once: they are met when they are
//! asked for, or when larder walks through its stores.

use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use larder_proxy::purges::AuditEntry;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::admin::{AdminArguments, AdminClientError, RunningLarder, run};
use super::ended::failed;
use super::exit;
use super::output::{printable, say, write_out};
use super::table::counted;

/// Where purges are.
pub(super) const PURGES: &str = "/api/v1/purges";
pub(super) const WHAT: &str = "purges";

#[derive(Debug, clap::Args)]
#[group(id = "named", required = true, multiple = true)]
pub(super) struct PurgeArguments {
    /// URLs as clients ask for them: http://HOST/PATH
    #[arg(value_name = "URL", group = "named")]
    urls: Vec<String>,
    /// Every response with this tag; may be repeated, as all of these
    #[arg(long = "tag", value_name = "TAG", group = "named")]
    tags: Vec<String>,
    /// Everything below a path: http://HOST/PATH/, or /PATH/ at every host
    #[arg(long = "prefix", value_name = "URL/", group = "named")]
    prefixes: Vec<String>,
    /// Every response whose path and query match a regular expression
    #[arg(long = "pattern", value_name = "RE", group = "named")]
    patterns: Vec<String>,
    /// Everything at a host
    #[arg(long = "host", value_name = "HOST", group = "named")]
    hosts: Vec<String>,
    /// Every response in a cache group (RFC 9875) of an origin such as https://HOST
    #[arg(long = "group", num_args = 2, value_names = ["ORIGIN", "NAME"], group = "named")]
    groups: Vec<String>,
    /// Everything
    #[arg(long, group = "named")]
    all: bool,
    /// Only responses of the site that this host belongs to
    #[arg(long, value_name = "HOST")]
    site: Option<String>,
    /// Make it stale in place of gone: it may be used while it is refreshed, and for an origin that fails
    #[arg(long)]
    soft: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) fn purge(arguments: &PurgeArguments) -> ExitCode {
    let asked = Bytes::from(asked(arguments).to_string());
    let purged = run(async {
        let larder = arguments.admin.larder()?;
        let is_said = |status| matches!(status, StatusCode::BAD_REQUEST | StatusCode::SERVICE_UNAVAILABLE);
        let (status, body) = larder.post(PURGES, WHAT, asked, is_said).await?;
        if status == StatusCode::BAD_REQUEST {
            return Ok((status, None, body));
        }
        let receipt = serde_json::from_slice::<AuditEntry>(&body).ok();
        Ok::<_, AdminClientError>((status, receipt, body))
    });
    match purged {
        Err(error) => failed(&error),
        Ok((StatusCode::BAD_REQUEST, _, body)) => {
            say(problems(&body));
            ExitCode::from(exit::USAGE)
        }
        Ok((status, receipt, body)) => {
            let text = match (&receipt, arguments.json) {
                (Some(receipt), false) => told(receipt),
                _ => String::from_utf8_lossy(&body).into_owned(),
            };
            // That nobody reads it does not undo what was done.
            let _ = write_out((text + "\n").as_bytes());
            ExitCode::from(if status == StatusCode::OK { exit::SUCCESS } else { exit::FAILURE })
        }
    }
}

/// What is posted.
fn asked(arguments: &PurgeArguments) -> Value {
    let mut members = Map::new();
    let lists = [
        ("urls", &arguments.urls),
        ("tags", &arguments.tags),
        ("prefixes", &arguments.prefixes),
        ("hosts", &arguments.hosts),
    ];
    for (name, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        members.insert(name.to_owned(), json!(list));
    }
    if !arguments.patterns.is_empty() {
        let patterns: Vec<_> = arguments.patterns.iter().map(|url| json!({ "url": url })).collect();
        members.insert("patterns".to_owned(), Value::Array(patterns));
    }
    let groups = arguments.groups.chunks_exact(2);
    let groups: Vec<_> = groups.map(|group| json!({ "origin": group[0], "name": group[1] })).collect();
    if !groups.is_empty() {
        members.insert("groups".to_owned(), Value::Array(groups));
    }
    if arguments.all {
        members.insert("all".to_owned(), true.into());
    }
    if arguments.soft {
        members.insert("soft".to_owned(), true.into());
    }
    if let Some(site) = &arguments.site {
        members.insert("site".to_owned(), json!(site));
    }
    members.insert("by".to_owned(), "cli".into());
    Value::Object(members)
}

/// What is wrong, a line each.
fn problems(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Refused {
        #[serde(default)]
        problems: Vec<Problem>,
    }
    #[derive(Deserialize)]
    struct Problem {
        path: String,
        message: String,
    }
    let refused = serde_json::from_slice(body).unwrap_or(Refused { problems: Vec::new() });
    let line = |problem: &Problem| {
        let place = if problem.path.is_empty() { String::new() } else { format!("{}: ", problem.path) };
        format!("larder: error: {}", printable(&format!("{place}{}", problem.message)))
    };
    match refused.problems.is_empty() {
        true => {
            format!("larder: error: the purge was refused: {}", printable(&String::from_utf8_lossy(body)))
        }
        false => refused.problems.iter().map(line).collect::<Vec<_>>().join("\n"),
    }
}

fn told(receipt: &AuditEntry) -> String {
    let many =
        if receipt.predicates == 1 { "1 name".to_owned() } else { format!("{} names", receipt.predicates) };
    let gone = counted(receipt.removed, "response", "responses");
    let soft = if receipt.mode == "soft" { ", soft" } else { "" };
    let held = match (&receipt.why, receipt.took_ms) {
        (Some(why), _) => format!("it may not hold after a crash: {why}; larder tries on"),
        (None, Some(took)) => format!("written down after {took:.1} ms"),
        (None, None) => "not written down yet".to_owned(),
    };
    printable(&format!("purged {many}{soft}: {}; {gone} removed so far; {held}", receipt.what))
}

/// Asks for the last purges.
pub(super) async fn last(larder: &RunningLarder) -> Result<Vec<AuditEntry>, AdminClientError> {
    larder.ask_for(Method::GET, PURGES, WHAT).await
}

/// Asks for one of them.
pub(super) async fn one(larder: &RunningLarder, id: &str) -> Result<AuditEntry, AdminClientError> {
    let target = format!("{PURGES}/{}", super::admin::encoded(id));
    larder.ask_for(Method::GET, &target, WHAT).await
}

/// A moment as people read it: how long ago it was.
pub(super) fn ago(at_ms: u64, now_ms: u64) -> String {
    let ago = Duration::from_millis(now_ms.saturating_sub(at_ms)).as_secs();
    match ago {
        0..=119 => format!("{ago} s ago"),
        120..=7199 => format!("{} min ago", ago / 60),
        7200..=172_799 => format!("{} h ago", ago / 3600),
        _ => format!("{} d ago", ago / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_in_the_unit_that_suits_it() {
        for (seconds, expected) in
            [(0, "0 s ago"), (119, "119 s ago"), (120, "2 min ago"), (7200, "2 h ago"), (200_000, "2 d ago")]
        {
            assert_eq!(ago(0, seconds * 1000), expected);
        }
    }

    #[test]
    fn what_is_wrong_is_a_line_each() {
        let body = br#"{"error":"purge","problems":[{"path":"tags[1]","message":"no"},{"path":"","message":"x\u001b"}]}"#;
        assert_eq!(problems(body), "larder: error: tags[1]: no\nlarder: error: x\\u{1b}");
        assert!(problems(b"<html>").contains("refused"));
    }
}
