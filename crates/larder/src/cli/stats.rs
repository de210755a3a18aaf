//! `larder stats`: the figures of a running larder, since its start or, with `--every`, per interval.
//!
//! In: what `/stats` says. Out: tables of requests, stores and origins, or the same JSON as it came. A figure that an older
//! or a newer larder does not tell is a dash: nothing here fails for that.

mod figures;
mod pages;
pub(super) mod rates;
mod rules;

use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;

use super::admin::{AdminArguments, run};
use super::ended::failed;
use super::exit;
use super::output::{complain, print_all, printable};
use super::table::{Lean, Table, bytes, count, time};
use figures::{NOTHING, ask, each, number, origin_requests, refused, sum, tenths, wait};
use pages::pages;
use rules::rules;

#[derive(Debug, clap::Args)]
pub(super) struct StatsArguments {
    /// Print a line of rates per interval, until Ctrl-C: 1s, 500ms, 5m
    #[arg(long, value_name = "INTERVAL", value_parser = rates::interval)]
    every: Option<Duration>,
    /// End after so many lines
    #[arg(long, value_name = "N", requires = "every", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print JSON: all that /stats says, or with --every an object of rates per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) fn stats(arguments: &StatsArguments) -> ExitCode {
    if let Some(every) = arguments.every {
        return match run(async {
            rates::watch(&arguments.admin.larder()?, every, arguments.count, arguments.json).await
        }) {
            Ok(()) => ExitCode::SUCCESS,
            Err(ended) => ended.told(),
        };
    }
    let stats = match run(async { ask(&arguments.admin.larder()?).await }) {
        Ok(stats) => stats,
        Err(error) => return failed(&error),
    };
    let out = match arguments.json {
        true => serde_json::to_string_pretty(&stats).map(|json| json + "\n"),
        false => Ok(text(&stats)),
    };
    match out {
        Ok(out) => print_all(out.as_bytes()),
        Err(error) => {
            complain(&error);
            ExitCode::from(exit::FAILURE)
        }
    }
}

fn text(stats: &Value) -> String {
    let up = stats["uptime_seconds"].as_f64().map(|seconds| time(duration(seconds)));
    let mut text = format!(
        "larder {}, {}, up for {}\n",
        word(&stats["version"]),
        word(&stats["health"]),
        up.as_deref().unwrap_or(NOTHING)
    );
    text = printable_lines(&text);
    let tables = [
        saved(stats),
        served(stats),
        rules(stats),
        pages(stats),
        stores(stats),
        disks(stats),
        values(stats),
        origins(stats),
    ];
    for table in tables {
        if !table.is_empty() {
            text.push('\n');
            text.push_str(&table.text(0));
        }
    }
    text
}

fn printable_lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

/// How many requests reached larder, and how many of them no origin was asked for.
fn saved(stats: &Value) -> Table {
    let mut table =
        Table::new(&[("REQUESTS", Lean::Left), ("", Lean::Right), ("", Lean::Right), ("", Lean::Left)]);
    let share = |of: &Value| match (of.as_u64(), stats["requests"].as_u64()) {
        (Some(of), Some(all)) if all > 0 => tenths(of as f64 / all as f64),
        _ => NOTHING.to_owned(),
    };
    let origin_requests = origin_requests(stats).map_or_else(|| NOTHING.to_owned(), count);
    let rows = [
        ("answered", number(&stats["requests"]), String::new(), ""),
        ("saved", number(&stats["saved"]), share(&stats["saved"]), "no origin was asked for them"),
        ("  hits", number(&stats["hits"]), share(&stats["hits"]), "answered from a store"),
        (
            "  collapsed",
            number(&stats["collapsed"]),
            share(&stats["collapsed"]),
            "shared the fetch of another request",
        ),
        ("to origins", origin_requests, String::new(), "refreshes included"),
    ];
    for (name, figure, share, meaning) in rows {
        table.row([name.to_owned(), figure, share, meaning.to_owned()]);
    }
    table
}

/// How long clients waited.
fn served(stats: &Value) -> Table {
    let right = |name| (name, Lean::Right);
    let mut table = Table::new(&[
        ("SERVED", Lean::Left),
        right("REQUESTS"),
        right("MEAN"),
        right("P50"),
        right("P99"),
        right("P99.9"),
    ]);
    for (name, latency) in stats["latency"].as_object().into_iter().flatten() {
        let waits = ["mean", "p50", "p99", "p999"].map(|name| wait(&latency[name]));
        table.row([name.clone(), number(&latency["count"])].into_iter().chain(waits));
    }
    table
}

fn stores(stats: &Value) -> Table {
    let right = |name| (name, Lean::Right);
    let mut table = Table::new(&[
        ("STORE", Lean::Left),
        right("HIT RATIO"),
        right("LOOK-UPS"),
        right("STORED"),
        right("EVICTED"),
        right("COLLAPSED"),
    ]);
    for store in each(&stats["stores"]) {
        table.row([
            word(&store["name"]),
            percent(&store["hit_ratio"]),
            count(sum(&store["lookups"])),
            number(&store["stored"]),
            count(sum(&store["evictions"])),
            number(&store["collapsed"]),
        ]);
    }
    table
}

/// What the stores hold, and where.
fn disks(stats: &Value) -> Table {
    let right = |name| (name, Lean::Right);
    let mut table = Table::new(&[
        ("STORE", Lean::Left),
        ("TIER", Lean::Left),
        right("RESPONSES"),
        right("BYTES"),
        right("OF"),
        right("FULL"),
        ("STATE", Lean::Left),
        ("REFUSED", Lean::Left),
    ]);
    for store in each(&stats["stores"]) {
        for tier in each(&store["tiers"]) {
            let kind = match tier["disk"].as_str() {
                Some(path) => format!("{} {path}", word(&tier["tier"])),
                None => word(&tier["tier"]),
            };
            let (held, most) = (tier["bytes"].as_u64(), tier["max_bytes"].as_u64());
            let size = |size: Option<u64>| size.map_or_else(|| NOTHING.to_owned(), bytes);
            let full = match (held, most) {
                (Some(held), Some(most)) if most > 0 => {
                    format!("{} %", u128::from(held) * 100 / u128::from(most))
                }
                _ => NOTHING.to_owned(),
            };
            let state = word(&tier["state"]);
            table.row([
                word(&store["name"]),
                kind,
                number(&tier["objects"]),
                size(held),
                size(most),
                full,
                state,
                refused(&tier["refused"]),
            ]);
        }
    }
    table
}

/// The servers in which values and shared responses are looked up, and what that came to.
fn values(stats: &Value) -> Table {
    let right = |name| (name, Lean::Right);
    let mut table = Table::new(&[
        ("STORE", Lean::Left),
        ("SERVER", Lean::Left),
        ("STATE", Lean::Left),
        right("LOOK-UPS"),
        right("FOUND"),
        right("FAILED"),
        ("WRITTEN AND DELETED", Lean::Left),
    ]);
    for store in each(&stats["stores"]) {
        for server in each(&store["servers"]) {
            let lookups = &server["lookups"];
            let failed = ["failed", "skipped"].map(|result| lookups[result].as_u64().unwrap_or_default());
            table.row([
                word(&store["name"]),
                server["kind"].as_str().map_or(String::new(), |kind| format!("{kind} "))
                    + &word(&server["server"]),
                word(&server["state"]),
                count(sum(lookups)),
                number(&lookups["found"]),
                count(failed.iter().sum()),
                refused(&server["writes"]),
            ]);
        }
    }
    table
}

/// How much of something there was by reason, such as what a tier did not take: the most frequent reason first.
fn origins(stats: &Value) -> Table {
    let right = |name| (name, Lean::Right);
    let mut table = Table::new(&[
        ("ORIGIN, SERVERS", Lean::Left),
        ("STATE", Lean::Left),
        right("REQUESTS"),
        right("FAILED"),
        right("IN FLIGHT"),
        right("P50"),
        right("P99"),
    ]);
    for origin in each(&stats["origins"]) {
        let waits = ["p50", "p99"].map(|name| wait(&origin["latency"][name]));
        let answered = number(&origin["latency"]["count"]);
        let own = [number(&origin["failed"]), number(&origin["in_flight"])];
        let front = [word(&origin["name"]), String::new(), answered];
        table.row(front.into_iter().chain(own).chain(waits));
        for server in each(&origin["servers"]) {
            let figures = ["requests", "failures", "in_flight"].map(|name| number(&server[name]));
            let front = [format!("  {}", word(&server["server"])), word(&server["state"])];
            table.row(front.into_iter().chain(figures));
        }
    }
    table
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or(NOTHING).to_owned()
}

fn percent(value: &Value) -> String {
    value.as_f64().map_or_else(|| NOTHING.to_owned(), tenths)
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_shown_and_what_is_not_is_a_dash() {
        let stats = serde_json::json!({
            "version": "1.2.3", "health": "ok", "uptime_seconds": 200.0, "requests": 12345, "hit_ratio": 0.9999,
            "saved": 12000, "hits": 10000,
            "latency": {"hit": {"count": 12, "mean": 0.000_05, "p50": 0.002, "p99": 1.5, "p999": null}},
            "rules": [{"site": "a", "rule": "/x", "requests": 4, "results": {"asked": 4}}, {}],
            "stores": [{"name": "default", "lookups": {"hit": 3, "stale": 1}, "tiers": [
                {"tier": "memory", "objects": 7, "bytes": 1024, "max_bytes": 2048, "refused": {}},
                {"tier": "disk", "disk": "/mnt/d1", "objects": 9, "bytes": 0, "max_bytes": 0, "state": "absent",
                 "refused": {"no-room": 2, "queue-full": 1234}},
            ], "servers": [{"server": "m:11211", "state": "left-alone", "writes": {"written": 3},
                            "lookups": {"found": 5, "absent": 2, "failed": 1, "skipped": 7}}]}],
            "origins": [{"name": "app", "failed": 2, "servers": [{"server": "a:1", "state": "up", "requests": 5}]}],
        });
        let text = text(&stats);
        for part in [
            "larder 1.2.3, ok, up for 3 min\n",
            "answered     12 345\n",
            "saved        12 000  97.2 %  no origin was asked for them\n",
            "  hits       10 000  81.0 %  answered from a store\n",
            "  collapsed       -       -  shared",
            "to origins        2          refreshes included\n",
            "hit           12  50 µs  2.0 ms  1.50 s      -\n",
            "a /x         4          -       0      4            -  -\n",
            "default          -         4       -        0          -\n",
            "default  memory                7  1.0 KiB  2.0 KiB  50 %  -       0\n",
            "default  disk /mnt/d1          9      0 B      0 B     -  absent  1 234 queue-full, 2 no-room\n",
            "default  m:11211  left-alone        15      5       8  3 written\n",
            "app                            -       2          -    -    -\n",
            "  a:1            up            5       -          -\n",
        ] {
            assert!(text.contains(part), "no {part:?} in:\n{text}");
        }
    }

    #[test]
    fn nothing_breaks_on_what_is_no_statistics() {
        for odd in [Value::Null, serde_json::json!([]), serde_json::json!({"stores": 1, "origins": [1]})] {
            assert!(text(&odd).starts_with("larder -, -, up for -\n"));
        }
    }
}
