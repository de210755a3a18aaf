//! `larder purge`: purges what a running larder has stored.
//!
//! In: URLs, tags, prefixes, patterns, hosts, groups, or all. Out: what was purged and how many responses that concerned so far; 0 only
//! if it holds after a crash as well, and with `--warm` if every URL was answered. How many responses a tag or a prefix concerns is not known at once: they are met when they are
//! asked for, or when larder walks through its stores.

mod arguments;
mod warming;

use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use larder_proxy::FleetReceipt;
use larder_proxy::purges::AuditEntry;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::admin::{AdminClientError, RunningLarder, run};
use super::ended::failed;
use super::exit;
use super::output::{complain, printable, say, write_out};
use super::table::counted;
use super::warm::{self, WarmReport};
pub(super) use arguments::PurgeArguments;
use warming::{NotWarmed, Warming};

/// Where purges are.
pub(super) const PURGES: &str = "/api/v1/purges";
pub(super) const WHAT: &str = "purges";

pub(super) fn purge(arguments: &PurgeArguments) -> ExitCode {
    match run(purged(arguments)) {
        Ok(code) => ExitCode::from(code),
        Err(NotPurged::Admin(error)) => failed(&error),
        Err(NotPurged::Warming(NotWarmed::Warm(error))) => {
            let code = warm::failed(&error, "http:// in the URL");
            say("  nothing was purged");
            code
        }
        Err(NotPurged::Warming(error)) => {
            complain(&error);
            if matches!(error, NotWarmed::NoUrls(_)) {
                say("  hint: purge without --warm, then larder warm --sitemap URL or larder warm URL...");
            }
            say("  nothing was purged");
            ExitCode::from(exit::USAGE)
        }
    }
}

/// Why nothing was purged.
enum NotPurged {
    Admin(AdminClientError),
    Warming(NotWarmed),
}

impl From<AdminClientError> for NotPurged {
    fn from(error: AdminClientError) -> Self {
        Self::Admin(error)
    }
}

/// Purges, and warms where that is asked for; gives the code to exit with.
async fn purged(arguments: &PurgeArguments) -> Result<u8, NotPurged> {
    let warming = match arguments.warm {
        true => Some(Warming::of(arguments).await.map_err(NotPurged::Warming)?),
        false => None,
    };
    let larder = arguments.admin.larder()?;
    let is_said = |status| matches!(status, StatusCode::BAD_REQUEST | StatusCode::SERVICE_UNAVAILABLE);
    let asked = Bytes::from(asked(arguments).to_string());
    let (status, body) = larder.post(PURGES, WHAT, asked, is_said).await?;
    if status == StatusCode::BAD_REQUEST {
        say(problems(&body));
        return Ok(exit::USAGE);
    }
    let text = match (serde_json::from_slice::<AuditEntry>(&body), arguments.json) {
        (Ok(receipt), false) => told(&receipt),
        _ => String::from_utf8_lossy(&body).into_owned(),
    };
    // That nobody reads it does not undo what was done.
    let _ = write_out((text + "\n").as_bytes());
    let Some(warming) = warming else {
        return Ok(if status == StatusCode::OK { exit::SUCCESS } else { exit::FAILURE });
    };
    if status != StatusCode::OK {
        say("larder: not warmed: the purge may not hold, or not everywhere");
        return Ok(exit::FAILURE);
    }
    let others = warming::others(arguments);
    if !others.is_empty() {
        say(format_args!("larder: only the URLs are warmed, not what {} concern", others.join(" and ")));
    }
    let report = warming.warm(arguments.json).await;
    let _ = write_out(warmed(&report, arguments.json).as_bytes());
    Ok(report.exit_code())
}

fn warmed(report: &WarmReport, json: bool) -> String {
    match json {
        true => json!({ "warmed": report }).to_string() + "\n",
        false => report.text(),
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
    if let Some(wait) = arguments.wait {
        members.insert("wait".to_owned(), json!(wait.as_secs_f64()));
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
    let everywhere =
        receipt.fleet.as_ref().map_or_else(String::new, |fleet| "; ".to_owned() + &in_fleet(fleet));
    printable(&format!("purged {many}{soft}: {}; {gone} removed so far; {held}{everywhere}", receipt.what))
}

/// How the fleet stands to a purge.
pub(super) fn in_fleet(fleet: &FleetReceipt) -> String {
    let applied: Vec<&str> = fleet.applied().collect();
    let applied = if applied.is_empty() { String::new() } else { format!(" and on {}", applied.join(", ")) };
    match fleet.why() {
        None => format!("complete: applied here{applied}"),
        Some(why) => format!("applied here{applied}; not complete: {why}"),
    }
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
