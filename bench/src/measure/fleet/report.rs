//! The page of the fleet: receipts, their histogram, the lag, the cold page, and the targets.
//!
//! In: what was measured. Out: bench/results/fleet.md and fleet.json; then an error where a target was missed, after both are written.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::Measured;
use super::cold::{CLIENTS, Cold, RENDER};
use crate::measure::load::{ms, quantile};
use crate::measure::outcome::{Judged, Verdict};
use crate::measure::page::{targets, told};
use crate::measure::receipts::Receipts;
use crate::measure::report::{Report, round};

/// Of the receipts at the steady rate, in milliseconds.
const P50_MAX: f64 = 2.0;
const P99_MAX: f64 = 20.0;
/// Members are equal so soon after the last receipt.
const EQUAL_MAX: Duration = Duration::from_millis(100);
/// The p50 of the last fifth over that of the first one.
const GROWTH_MAX: f64 = 1.5;
/// Ends of the histogram's classes, in milliseconds.
const CLASSES: [f64; 10] = [0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, f64::INFINITY];

/// Prints the tables and writes page and figures.
///
/// # Errors
/// A target was missed; everything has been written then.
pub(super) fn report(root: &Path, measured: &Measured) -> Result<()> {
    let judged = judge(measured);
    let missed = judged.iter().filter(|judged| judged.missed()).count();
    let Measured { receipts, cold } = measured;
    let table = [receipts_table(receipts), histogram(receipts), cold_table(cold), targets(&judged)].concat();
    Report {
        name: "fleet",
        title: "Three larders",
        table: &table,
        how: &format!(
            "Three larders, one worker each, all on one core; the clients, the origin and Redis on another, reached by a Unix socket. Purges of tags are \
             sent to each of the three in turn, at the moments when they are due, and each answer was 200: the purge is complete. A wait counts from \
             the moment when its purge was due to the end of the receipt. The lag is the difference of `larder_fleet_position` between the members, \
             looked at four times a second; \"equal after\" is from the last receipt to the first look that finds none. The first and the last fifth are by the moments when purges were due. \
             The cold page: {CLIENTS} clients with a connection each, to the three larders in turn, ask at once for a page that takes {} ms to \
             render. Each of them got it whole.",
            RENDER.as_millis()
        ),
        programs: &[("uname", "-sr"), ("rustc", "--version"), ("redis-server", "--version")],
        figures: json!({
            "receipts": receipts.iter().map(receipts_json).collect::<Vec<Value>>(),
            "cold": cold.iter().map(cold_json).collect::<Vec<Value>>(),
            "missed": missed,
            "targets": told(&judged),
        }),
    }
    .write(root)?;
    ensure!(missed == 0, "{missed} targets missed");
    Ok(())
}

fn judge(measured: &Measured) -> Vec<Judged> {
    let judged = |scenario: String, target: String, figure: f64, most: f64| Judged {
        scenario,
        target,
        figure: format!("{figure:.2}"),
        verdict: Verdict::of(figure <= most),
    };
    let [steady, fast] = &measured.receipts;
    let at = |receipts: &Receipts| format!("{} purges/s", receipts.rate);
    let mut all = vec![
        judged(at(steady), format!("receipts: p50 at most {P50_MAX} ms"), wait(steady, 0.5), P50_MAX),
        judged(at(steady), format!("receipts: p99 at most {P99_MAX} ms"), wait(steady, 0.99), P99_MAX),
        judged(
            at(fast),
            format!("receipts: p50 of the last fifth at most {GROWTH_MAX} of that of the first"),
            growth(fast),
            GROWTH_MAX,
        ),
    ];
    for receipts in &measured.receipts {
        let target = format!("members equal at most {} ms after the last receipt", EQUAL_MAX.as_millis());
        all.push(judged(at(receipts), target, ms(receipts.equal_after), ms(EQUAL_MAX)));
    }
    for cold in &measured.cold {
        let due = if cold.are_shared { 1 } else { 3 };
        all.push(Judged {
            scenario: scenario(cold).to_owned(),
            target: format!("{CLIENTS} clients, one cold page: origin requests are {due}"),
            figure: cold.origin_requests.to_string(),
            verdict: Verdict::of(cold.origin_requests == due),
        });
    }
    all
}

fn scenario(cold: &Cold) -> &'static str {
    if cold.are_shared { "shared through Redis" } else { "each alone" }
}

fn wait(receipts: &Receipts, share: f64) -> f64 {
    of_sorted(receipts.waits.clone(), share)
}

fn of_sorted(mut waits: Vec<Duration>, share: f64) -> f64 {
    waits.sort_unstable();
    ms(quantile(&waits, share))
}

/// p50 of the last fifth over that of the first.
fn growth(receipts: &Receipts) -> f64 {
    let fifth = receipts.waits.len() / 5;
    let (first, last) = (receipts.waits.iter().take(fifth), receipts.waits.iter().rev().take(fifth));
    of_sorted(last.copied().collect(), 0.5) / of_sorted(first.copied().collect(), 0.5)
}

fn receipts_table(all: &[Receipts]) -> String {
    let mut table = String::from(
        "| purges/s | receipts | p50 ms | p90 ms | p99 ms | longest ms | p50 of the last fifth over the first | most lag, entries | equal after ms |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for receipts in all {
        let [p50, p90, p99, most] = [0.5, 0.9, 0.99, 1.0].map(|share| wait(receipts, share));
        let _ = writeln!(
            table,
            "| {} | {} | {p50:.2} | {p90:.2} | {p99:.2} | {most:.2} | {:.2} | {} | {:.1} |",
            receipts.rate,
            receipts.waits.len(),
            growth(receipts),
            receipts.lag_max,
            ms(receipts.equal_after),
        );
    }
    table
}

/// How many waits end up to each of the classes' ends, beyond the one before.
fn classes(receipts: &Receipts) -> Vec<usize> {
    let upto = |end: f64| receipts.waits.iter().filter(|wait| ms(**wait) <= end).count();
    let upto: Vec<usize> = CLASSES.iter().map(|end| upto(*end)).collect();
    upto.iter().zip([0].iter().chain(&upto)).map(|(upto, before)| upto - before).collect()
}

fn histogram(all: &[Receipts]) -> String {
    let mut table = String::from("\nReceipts by their wait:\n\n| purges/s |");
    for end in CLASSES {
        let class = if end.is_finite() { format!("to {end} ms") } else { "longer".to_owned() };
        let _ = write!(table, " {class} |");
    }
    let _ = writeln!(table, "\n|{}", "---|".repeat(CLASSES.len() + 1));
    for receipts in all {
        let cells: Vec<String> = classes(receipts).iter().map(usize::to_string).collect();
        let _ = writeln!(table, "| {} | {} |", receipts.rate, cells.join(" | "));
    }
    table
}

fn cold_table(all: &[Cold]) -> String {
    let mut table = format!(
        "\nOne page that no larder has, {CLIENTS} clients at once:\n\n| | origin requests | p50 ms | longest ms |\n|---|---|---|---|\n"
    );
    for cold in all {
        let [p50, most] = [0.5, 1.0].map(|share| ms(quantile(&cold.waits, share)));
        let _ = writeln!(table, "| {} | {} | {p50:.0} | {most:.0} |", scenario(cold), cold.origin_requests);
    }
    table
}

fn receipts_json(receipts: &Receipts) -> Value {
    json!({
        "purges_per_s": receipts.rate, "seconds": receipts.length.as_secs(), "receipts": receipts.waits.len(),
        "p50_ms": round(wait(receipts, 0.5)), "p90_ms": round(wait(receipts, 0.9)), "p99_ms": round(wait(receipts, 0.99)),
        "longest_ms": round(wait(receipts, 1.0)), "growth": round(growth(receipts)), "lag_max": receipts.lag_max,
        "equal_after_ms": round(ms(receipts.equal_after)),
        "classes_ms": CLASSES[..CLASSES.len() - 1], "in_classes": classes(receipts),
    })
}

fn cold_json(cold: &Cold) -> Value {
    let [p50, most] = [0.5, 1.0].map(|share| round(ms(quantile(&cold.waits, share))));
    json!({ "what": scenario(cold), "origin_requests": cold.origin_requests, "p50_ms": p50, "longest_ms": most })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_receipt_is_in_one_class_and_growth_is_of_the_ends() {
        let waits = [400, 500, 501, 1700, 9000, 60_000, 1200, 1200, 1000, 1000].map(Duration::from_micros);
        let (length, equal_after) = (Duration::from_secs(1), Duration::ZERO);
        let receipts = Receipts { rate: 10, length, waits: waits.to_vec(), lag_max: 0, equal_after };
        assert_eq!(classes(&receipts), [2, 3, 2, 1, 0, 0, 1, 0, 0, 1]);
        assert!((growth(&receipts) - 2.5).abs() < 1e-9, "{}", growth(&receipts));
    }
}
