//! What a Redis is asked while its page is asked for 100 000 times at least.
//!
//! In: a server with its Redis beside it. Out: how often the Redis got each command meanwhile, by its own count. The server does not take turns
//! here: what stands still loses sight of its Redis, and has to ask again.
//! Deliberately absent: the commands of the start. Versions and bodies are read before the count begins.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{BYTES, CONNECTIONS, TARGET};
use crate::measure::contender::{Contender, Kit, Setup};
use crate::measure::curl::{Version, ask};
use crate::measure::drive::{Load, Request, drive};
use crate::measure::outcome::{Judged, Verdict};
use crate::measure::page::More;
use crate::measure::redis::{Command, Redis};
use harness::origin::{Origin, body};

const REQUESTS_MIN: f64 = 100_000.0;
const RUN: Duration = Duration::from_secs(3);
/// Longer than the ten seconds between two TOUCH of a larder.
const LENGTH_MIN: Duration = Duration::from_secs(12);
/// A larder that lives beside its Redis does no more than this: a sign of life, and that the keys are in use.
const SIGNS_OF_LIFE: [&str; 2] = ["ping", "touch"];
/// What this program itself asks for between two counts.
const OWN: [&str; 2] = ["info", "quit"];

/// The commands during one run.
pub(super) struct Asked {
    name: String,
    scenario: String,
    requests: f64,
    took: Duration,
    calls: Vec<(String, u64)>,
}

/// Starts a server before a Redis, and counts.
pub(super) fn count(
    kit: &Kit,
    (scenario, name): (&str, &str),
    redis: Redis,
    start: impl FnOnce(Redis, &Setup<'_>) -> Result<Contender>,
) -> Result<Asked> {
    let (origin, place) = (Origin::start()?, redis.place.clone());
    let mut contender = start(redis, &kit.setup(origin.address))?;
    let (load, request) = (Load::Wrk { connections: CONNECTIONS, script: None }, Request::of(TARGET));
    let right = |contender: &Contender| -> Result<()> {
        let answer = ask(contender.address, Version::Http11, &request)?;
        ensure!(answer.status == 200 && answer.body == body(BYTES), "a wrong answer: {}", answer.status);
        Ok(())
    };
    right(&contender)?;
    drive(&kit.root, &load, &request, (contender.address, kit.certificates()), Duration::from_secs(1))?;
    let (before, asked, begun) = (place.commands()?, origin.asked(), Instant::now());
    let mut requests = 0.0;
    while requests < REQUESTS_MIN || begun.elapsed() < LENGTH_MIN {
        requests += drive(&kit.root, &load, &request, (contender.address, kit.certificates()), RUN)?.requests;
    }
    let (after, took) = (place.commands()?, begun.elapsed());
    right(&contender)?;
    contender.server.still_runs()?;
    let asked = origin.asked().saturating_sub(asked);
    ensure!(asked == 0, "the origin was asked {asked} times");
    let since = |name: &str, now: Command| {
        now.calls.saturating_sub(before.get(name).copied().unwrap_or_default().calls)
    };
    let calls = after.into_iter().map(|(name, now)| (since(&name, now), name));
    let calls = calls.filter(|(calls, name)| *calls > 0 && !OWN.contains(&name.as_str()));
    let calls = calls.map(|(calls, name)| (name, calls)).collect();
    Ok(Asked { name: name.to_owned(), scenario: scenario.to_owned(), requests, took, calls })
}

/// The table of what was asked.
pub(super) fn told(all: &[Asked]) -> Result<More> {
    let mut tables = String::from(
        "\nWhat Redis was asked, by its own count (`INFO commandstats`), in runs without turns:\n\n\
         | | server | requests | seconds | commands |\n|---|---|---|---|---|\n",
    );
    let mut figures = Vec::new();
    for asked in all {
        let calls: Vec<String> =
            asked.calls.iter().map(|(name, calls)| format!("{calls} {}", name.to_uppercase())).collect();
        let calls = if calls.is_empty() { "none".to_owned() } else { calls.join(", ") };
        let Asked { name, scenario, requests, took, .. } = asked;
        let took = took.as_secs_f64();
        writeln!(tables, "| {scenario} | {name} | {requests:.0} | {took:.1} | {calls} |")?;
        let by_name: serde_json::Map<String, Value> =
            asked.calls.iter().map(|(name, calls)| (name.clone(), json!(calls))).collect();
        figures.push(
            json!({ "scenario": scenario, "server": name, "requests": requests.round(), "calls": by_name }),
        );
    }
    Ok(More { tables, figures: json!(figures) })
}

/// That none of the requests of this server reached its Redis.
pub(super) fn judge(all: &[Asked], scenario: &str, name: &str) -> Result<Judged> {
    let asked = all.iter().find(|asked| asked.scenario == scenario && asked.name == name);
    let asked = asked.with_context(|| format!("nothing was counted of {name}"))?;
    let others = asked.calls.iter().filter(|(name, _)| !SIGNS_OF_LIFE.contains(&name.as_str()));
    let others: u64 = others.map(|(_, calls)| calls).sum();
    Ok(Judged {
        scenario: scenario.to_owned(),
        target: format!("{name}: 0 commands but PING and TOUCH for {REQUESTS_MIN:.0} requests"),
        figure: others.to_string(),
        verdict: Verdict::of(others == 0),
    })
}
