//! What is stored of large bodies, as a page: a table for clients at a pace, one for clients without a limit, and one for disks
//! that are slow.
//!
//! In: the rows. Out: bench/results/large.md and large.json; then an error where a target was missed, after everything is written.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::json;

use super::slow::{SIZE_MB as SLOW_MB, Slow};
use super::{BACKLOG_MB, BEFORE, BODIES, LARDER, NGINX, REQUESTS, Row, SIZES_MB};
use crate::measure::outcome::{Judged, Verdict};
use crate::measure::page::{targets, told};
use crate::measure::report::{Report, median, round};

/// Of what clients get without a cache, in the median of first requests.
const OF_NO_CACHE_MIN: f64 = 0.95;

/// Prints the tables and writes page and figures.
///
/// # Errors
/// A target was missed; everything has been written then.
pub(super) fn report(root: &Path, rows: &[Row], slow: &Option<Vec<Slow>>) -> Result<()> {
    let judged = judge(rows, slow.as_deref().unwrap_or_default());
    let missed = judged.iter().filter(|judged| judged.missed()).count();
    let text = held_table(rows) + &free_table(rows) + &slow_table(slow.as_deref()) + &targets(&judged);
    Report {
        name: "large",
        title: "Large bodies, stored while they are sent",
        table: &text,
        how: HOW,
        programs: &[("rustc", "--version"), ("nginx", "-v")],
        figures: json!({
            "missed": missed, "targets": told(&judged),
            "rows": rows.iter().map(|row| json!({
                "server": row.who, "size_mb": row.size_mb, "held": row.is_held, "bodies": row.bodies,
                "whole_after": row.whole_after, "first_mb_per_s": round(row.first_mb_per_s),
            })).collect::<Vec<_>>(),
            "slow_disks": slow.iter().flatten().map(|row| json!({
                "row": row.name,
                "mb_per_s": rounded(&row.held.with), "without_cache_mb_per_s": rounded(&row.held.without),
                "free_mb_per_s": rounded(&row.free.with), "free_without_cache_mb_per_s": rounded(&row.free.without),
                "found_mb": rounded(&row.found_mb),
            })).collect::<Vec<_>>(),
        }),
    }
    .write(root)?;
    ensure!(missed == 0, "{missed} targets missed");
    Ok(())
}

fn rounded(figures: &[f64]) -> Vec<f64> {
    figures.iter().map(|figure| round(*figure)).collect()
}

const HOW: &str = "Bodies of so many MB (10^6 bytes) under names that were not asked for before, five of each size one after the other, \
    from an origin on the loopback that sends as fast as it is read and answers ranges. \"Whole\": when what waited was written, all \
    of the body was found without the origin. Of the largest, held, the peers have one body only. Without a limit each body is asked for three times. \
    Memory of 256 MiB in front of one disk of 6 GiB that nothing holds back, an ext4 on a loop device with its image in memory, a new one for each size, \
    all of which is taken beforehand; nginx has its cache there. \"When what waited was written\" includes what is fetched behind a client. \
    For the slow disks: bodies of 512 MB, two such disks held to 40 MB/s each by the kernel's block throttle; five bodies for the first requests of clients at each pace, in turns with \
    five without a cache, and another one that is asked for again and again; \"found\" is what the origin did not send. Every byte is checked. Servers share one core, origin and clients another.";

fn named(rows: &[Row]) -> impl Iterator<Item = &'static str> {
    [LARDER, BEFORE, NGINX].into_iter().filter(|name| rows.iter().any(|row| row.who == *name))
}

fn of<'a>(rows: &'a [Row], who: &str, size_mb: u64, is_held: bool) -> Option<&'a Row> {
    rows.iter().find(|row| row.who == who && row.size_mb == size_mb && row.is_held == is_held)
}

fn heading(title: &str) -> String {
    let sizes: Vec<String> = SIZES_MB.iter().map(|size| format!("{size} MB")).collect();
    format!("{title}\n\n| | {} |\n|---|{}\n", sizes.join(" | "), "---|".repeat(SIZES_MB.len()))
}

fn table(rows: &[Row], title: &str, is_held: bool, cell: impl Fn(&Row) -> String) -> String {
    let mut table = heading(title);
    for who in named(rows) {
        let cells = SIZES_MB.iter().map(|size| of(rows, who, *size, is_held).map_or("-".to_owned(), &cell));
        let _ = writeln!(table, "| {who} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    table + "\n"
}

fn held_table(rows: &[Row]) -> String {
    table(rows, "Clients held to 100 MB/s: whole after one request", true, |row| {
        format!("{} of {}", row.whole_after.first().copied().unwrap_or_default(), row.bodies)
    })
}

fn free_table(rows: &[Row]) -> String {
    let whole =
        table(rows, "Clients without a limit: whole after one, two and three requests, of 5", false, |row| {
            row.whole_after.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        });
    let rate = table(rows, "What these clients got in the first request, MB/s", false, |row| {
        format!("{:.0}", row.first_mb_per_s)
    });
    whole + &rate
}

fn slow_table(slow: Option<&[Slow]>) -> String {
    let Some(slow) = slow else { return "No slow disks: this machine cannot hold them back.\n\n".to_owned() };
    let mut table = format!(
        "{SLOW_MB} MB on two disks held to 40 MB/s\n\n\
         | | MB/s of first requests, held to 250 | without a cache | no limit | without a cache | MB found by each further request for one body |\n\
         |---|---|---|---|---|---|\n"
    );
    for row in slow {
        let columns = [&row.held.with, &row.held.without, &row.free.with, &row.free.without, &row.found_mb];
        let cells = columns.map(|figures| listed(figures)).join(" | ");
        let _ = writeln!(table, "| {} | {cells} |", row.name);
    }
    table + "\n"
}

fn listed(figures: &[f64]) -> String {
    figures.iter().map(|figure| format!("{figure:.0}")).collect::<Vec<_>>().join(", ")
}

fn judge(rows: &[Row], slow: &[Slow]) -> Vec<Judged> {
    let mut judged = Vec::new();
    let mut add = |scenario: String, target: &str, figure: String, holds: bool| {
        judged.push(Judged { scenario, target: target.to_owned(), figure, verdict: Verdict::of(holds) });
    };
    for row in rows.iter().filter(|row| row.who == LARDER) {
        let (first, last) = (row.whole_after.first().copied(), row.whole_after.last().copied());
        let figure = |whole: Option<usize>| format!("{} of {}", whole.unwrap_or_default(), row.bodies);
        let pace = if row.is_held { "held to 100 MB/s" } else { "no limit" };
        let scenario = format!("{} MB, {pace}", row.size_mb);
        if row.is_held || row.size_mb <= BACKLOG_MB {
            add(scenario, "5 of 5 whole after one request", figure(first), first == Some(BODIES));
        } else {
            let target = format!("5 of 5 whole after {REQUESTS} requests");
            add(scenario, &target, figure(last), last == Some(BODIES));
        }
    }
    for row in slow {
        let scenario = format!("two slow disks, {}", row.name);
        let part = median(row.held.with.clone()) / median(row.held.without.clone());
        let target = format!(
            "clients held to 250 MB/s get at least {OF_NO_CACHE_MIN} of what they get without a cache"
        );
        add(scenario.clone(), &target, format!("{part:.2}"), part >= OF_NO_CACHE_MIN);
        let grows = row.found_mb.array_windows().all(|[before, after]| after > before);
        add(scenario, "each request finds more than the one before", listed(&row.found_mb), grows);
    }
    judged
}

#[cfg(test)]
mod tests {
    use super::super::slow::Rates;
    use super::*;

    fn row(size_mb: u64, is_held: bool, whole_after: &[usize]) -> Row {
        let whole_after = whole_after.to_vec();
        Row { who: LARDER, size_mb, is_held, bodies: 5, whole_after, first_mb_per_s: 100.0 }
    }

    #[test]
    fn targets_depend_on_pace_and_size() {
        let missed = |row: Row| judge(&[row], &[]).iter().filter(|judged| judged.missed()).count();
        assert_eq!(missed(row(3000, true, &[5])), 0);
        assert_eq!(missed(row(3000, true, &[4])), 1);
        assert_eq!(missed(row(64, false, &[4, 5, 5])), 1);
        assert_eq!(missed(row(512, false, &[0, 1, 5])), 0);
        assert_eq!(missed(row(512, false, &[0, 1, 4])), 1);
        let slow = |rates: &[f64], found_mb: &[f64]| {
            let without = vec![100.0, 90.0, 300.0];
            let held = Rates { with: rates.to_vec(), without };
            Slow { name: "stripe", held, free: Rates::default(), found_mb: found_mb.to_vec() }
        };
        let judged = judge(&[], &[slow(&[20.0, 96.0, 800.0], &[0.0, 7.0])]);
        assert!(judged.len() == 2 && !judged.iter().any(Judged::missed));
        let judged = judge(&[], &[slow(&[20.0, 94.0, 800.0], &[9.0, 9.0])]);
        assert!(judged.iter().all(Judged::missed));
    }
}
