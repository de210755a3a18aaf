//! The page of the records: waits, what look-ups take of Redis, and the target.
//!
//! In: what was measured. Out: bench/results/records.md and records.json; then an error where the target was missed, after both are
//! written.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::cost::{CONNECTIONS, Cost, GET, LOOK_UP};
use super::{BY_NGINX, BYTES, FROM_ORIGIN, FROM_REDIS, IN_MEMORY, PAGES, ROUNDS, Waits};
use crate::measure::load::quantile;
use crate::measure::outcome::{Judged, Verdict};
use crate::measure::page::{targets, told};
use crate::measure::report::{Report, median, round};

/// What the first request may take beyond a hit in memory, half of the time.
const BEYOND_A_HIT: Duration = Duration::from_micros(150);

/// Prints the tables and writes page and figures.
///
/// # Errors
/// The target is missed; everything has been written then.
pub(super) fn report(root: &Path, waits: &[Waits], costs: &[Cost]) -> Result<()> {
    let micros = |what: &str, share: f64| -> Vec<f64> {
        let of = waits.iter().filter(|waits| waits.what == what);
        of.map(|waits| quantile(&waits.all, share).as_secs_f64() * 1e6).collect()
    };
    let mut table = String::from("| | p50 us | p99 us | p50 of the rounds |\n|---|---|---|---|\n");
    let mut rows: Vec<Value> = Vec::new();
    for what in [IN_MEMORY, FROM_REDIS, FROM_ORIGIN, BY_NGINX] {
        let (p50, p99) = (median(micros(what, 0.5)), median(micros(what, 0.99)));
        let all: Vec<String> = micros(what, 0.5).iter().map(|value| format!("{value:.0}")).collect();
        let _ = writeln!(table, "| {what} | {p50:.0} | {p99:.0} | {} |", all.join(", "));
        rows.push(json!({ "what": what, "p50_us": round(p50), "p99_us": round(p99) }));
    }
    let beyond = median(micros(FROM_REDIS, 0.5)) - median(micros(IN_MEMORY, 0.5));
    let most = BEYOND_A_HIT.as_secs_f64() * 1e6;
    let judged = [Judged {
        scenario: "one at a time".to_owned(),
        target: format!("from Redis at most {most:.0} us beyond a hit in memory, p50"),
        figure: format!("{beyond:.0}"),
        verdict: Verdict::of(beyond <= most),
    }];
    let (of_redis, costs) = cost_table(costs);
    let missed = judged.iter().filter(|judged| judged.missed()).count();
    Report {
        name: "records",
        title: "A page that another larder has fetched",
        table: &[table, of_redis, targets(&judged)].concat(),
        how: &format!(
            "{PAGES} pages of {BYTES} bytes, one request at a time over one connection, each page once in a pass. One worker, pinned to one core; \
             the client, the origin and Redis on another. Redis is reached by a Unix socket. A new larder in each of {ROUNDS} rounds; medians of the \
             rounds. The origin is the floor, which answers each read with one fixed answer. nginx has the module `srcache`, and a script in Lua with \
             the client of `lua-nginx-redis` between it and the same Redis; Debian has no `redis2`. It keeps nothing itself, so it asks Redis each time. \
             What Redis takes is by its own account (`INFO cpu`, `INFO commandstats`), with {CONNECTIONS} connections: larder asked for each \
             page once, and redis-benchmark with `GET` of as many bytes."
        ),
        programs: &[
            ("uname", "-sr"),
            ("rustc", "--version"),
            ("redis-server", "--version"),
            ("nginx", "-v"),
        ],
        figures: json!({ "rows": rows, "redis": costs, "beyond_us": round(beyond), "missed": missed, "targets": told(&judged) }),
    }
    .write(root)?;
    ensure!(missed == 0, "from Redis it takes {beyond:.0} us more than a hit in memory");
    Ok(())
}

/// Medians of the rounds.
fn cost_table(costs: &[Cost]) -> (String, Vec<Value>) {
    let mut table = String::from(
        "\nWhat Redis takes:\n\n| | CPU us | of that its commands | commands |\n|---|---|---|---|\n",
    );
    let mut rows = Vec::new();
    for what in [LOOK_UP, GET] {
        let of = |figure: fn(&Cost) -> f64| {
            median(costs.iter().filter(|cost| cost.what == what).map(figure).collect())
        };
        let (cpu, command) = (of(|cost| cost.cpu_us), of(|cost| cost.command_us));
        // The same in each round.
        let commands = costs.iter().filter(|cost| cost.what == what).flat_map(|cost| &cost.commands);
        let commands: BTreeMap<String, f64> =
            commands.map(|(name, calls)| (name.to_uppercase(), round(*calls))).collect();
        let told: Vec<String> = commands.iter().map(|(name, calls)| format!("{calls} {name}")).collect();
        let _ = writeln!(table, "| {what} | {cpu:.1} | {command:.1} | {} |", told.join(", "));
        rows.push(
            json!({ "what": what, "cpu_us": round(cpu), "command_us": round(command), "commands": commands }),
        );
    }
    (table, rows)
}
