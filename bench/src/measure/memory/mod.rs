//! What a full store really takes: resident memory while ten million distinct keys pass through a store of 256 MiB.
//!
//! In: objects of 1 KB over HTTP, from an origin that costs next to nothing. First a hot set is asked for a few
//! times. Then comes the flood, each of its keys once, with one request in fifty for the hot set, which is still
//! wanted. At last every key of the hot set is asked for once more, and the hits are counted. Out: the peak of
//! resident memory over all samples, the store's own count beside its cap, the share of the hot set that stayed.
//! Deliberately absent: the peers, whose caps count other things (Varnish's bodies, nginx's files).

mod watch;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::asker::{OBJECT_BYTES, ask_all, object};
use super::contender::larder::{self, AccessLog};
use super::contender::{Kit, floor};
use super::outcome::{Judged, Verdict};
use super::page::targets;
use super::plot::{Series, lines};
use super::report::{Report, round};
use watch::{Sample, while_watched};

/// What the store of full.toml has that takes these keys.
const STORE_BYTES: u64 = 256 << 20;
/// What resident memory may be: 1.3 N + 40 MB.
const RESIDENT_MAX: u64 = STORE_BYTES / 10 * 13 + 40_000_000;
const HOT_KEYS: u64 = 20_000;
/// The first brings it in; what is used only once more does not count as wanted.
const HOT_ROUNDS: u64 = 4;
const FLOOD_KEYS: u64 = 10_000_000;
/// Of the requests of the flood, one in so many is for the hot set.
const HOT_EVERY: u64 = 50;
const HOT_SHARE_MIN: f64 = 0.99;
const CONNECTIONS: usize = 64;

/// Measures, prints the table and writes it to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let origin = floor::origin(&kit, &object())?;
    let mut larder = larder::full(&kit, &kit.setup(origin.address), "larder", AccessLog::Off)?;
    let admin = larder.admin.context("no admin address")?;
    let address = larder.address;
    let (outcome, samples) = while_watched(&larder, admin, || {
        let begun = Instant::now();
        ask_all(address, CONNECTIONS, HOT_KEYS * HOT_ROUNDS, |number| hot(number % HOT_KEYS))?;
        let hot_took = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        ask_all(address, CONNECTIONS, flood_requests(), flood)?;
        let flood_took = begun.elapsed().as_secs_f64();
        let hot_hits = ask_all(address, CONNECTIONS, HOT_KEYS, hot)?;
        Ok(Outcome { hot_took, flood_took, hot_hits })
    })?;
    larder.server.still_runs()?;
    report(root, &outcome, &samples)
}

struct Outcome {
    /// Seconds.
    hot_took: f64,
    /// Seconds.
    flood_took: f64,
    /// Keys of the hot set that were hits after the flood.
    hot_hits: u64,
}

/// As many requests as it takes for the flood's keys, with those for the hot set among them.
fn flood_requests() -> u64 {
    FLOOD_KEYS + FLOOD_KEYS.div_ceil(HOT_EVERY - 1)
}

fn hot(key: u64) -> String {
    format!("/key/hot/{key}")
}

/// The target of one request of the flood. Which hot key it is jumps about, by a step that meets all of them.
fn flood(number: u64) -> String {
    match number % HOT_EVERY {
        0 => hot((number / HOT_EVERY).wrapping_mul(7919) % HOT_KEYS),
        _ => format!("/key/{number}"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn report(root: &Path, outcome: &Outcome, samples: &[Sample]) -> Result<()> {
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let peak = samples.iter().map(|sample| sample.resident).max().unwrap_or(0);
    let last = samples.last().copied().context("no samples")?;
    let most_held = samples.iter().map(|sample| sample.held.bytes).max().unwrap_or(0);
    let exceeded = samples.iter().filter(|sample| sample.held.bytes > sample.held.max_bytes).count();
    let full = samples.iter().find(|sample| sample.held.evicted > 0).context("the store never was full")?;
    let first = samples.first().copied().unwrap_or_default();
    ensure!(last.held.max_bytes == STORE_BYTES, "a store of {} bytes", last.held.max_bytes);
    let per_object = |bytes: u64| bytes / last.held.objects.max(1);
    let share = outcome.hot_hits as f64 / HOT_KEYS as f64;
    let judged = [
        judge(
            "resident memory at most 1.3 N + 40 MB",
            format!("{:.1} of {:.1} MB", mb(peak), mb(RESIDENT_MAX)),
            peak <= RESIDENT_MAX,
        ),
        judge(
            "the cap in bytes is exceeded at no sample, nor between",
            format!(
                "{exceeded} of {} samples, high water {:.2} MB",
                samples.len(),
                mb(last.held.high_water_bytes)
            ),
            exceeded == 0 && last.held.high_water_bytes <= last.held.max_bytes,
        ),
        judge(
            "the hot set is still there after the flood",
            format!("{:.2} % of {HOT_KEYS}", share * 100.0),
            share >= HOT_SHARE_MIN,
        ),
    ];
    let rate = flood_requests() as f64 / outcome.flood_took;
    let table = format!(
        "| | |\n|---|---|\n\
         | resident memory, larder just started | {:.1} MB |\n| the store full for the first time | {:.1} MB |\n\
         | peak | {:.1} MB |\n| at the end | {:.1} MB |\n| most that the store counted | {most_held} of {STORE_BYTES} B |\n\
         | objects of {OBJECT_BYTES} B in the full store | {} |\n| counted for each | {} B |\n\
         | resident for each, all of the process | {} B |\n| requests/s in the flood | {rate:.0} |\n{}\n\
         ![Resident memory and what the store counts](memory.svg)\n",
        mb(first.resident),
        mb(full.resident),
        mb(peak),
        mb(last.resident),
        last.held.objects,
        per_object(last.held.bytes),
        per_object(last.resident),
        targets(&judged),
    );
    let series = |name: &str, of: fn(&Sample) -> u64| Series {
        name: name.to_owned(),
        points: samples.iter().map(|sample| (sample.at, mb(of(sample)))).collect(),
    };
    lines(
        &root.join("bench/results/memory.svg"),
        "Memory: ten million distinct keys through a store of 256 MiB",
        "seconds",
        "MB",
        &[
            series("resident", |sample| sample.resident),
            series("counted by the store", |sample| sample.held.bytes),
            series("allowed: 1.3 N + 40 MB", |_| RESIDENT_MAX),
            series("the store's cap", |sample| sample.held.max_bytes),
        ],
    )?;
    let how = format!(
        "larder runs bench/full.toml, everything on, with one worker on one core; origin and {CONNECTIONS} connections on another. A hot set of {HOT_KEYS} \
         keys, asked for {HOT_ROUNDS} times ({:.0} s); then {FLOOD_KEYS} keys once each, with one request in {HOT_EVERY} for the \
         hot set ({:.0} s); then each key of the hot set once. Every answer was checked, and came under the rule that the other measurements ask for too. {} samples of VmRSS and of what /stats says, \
         four a second.",
        outcome.hot_took,
        outcome.flood_took,
        samples.len()
    );
    let missed = judged.iter().filter(|judged| judged.missed()).count();
    Report {
        name: "memory",
        title: "Memory of a full store",
        table: &table,
        how: &how,
        programs: &[("rustc", "--version")],
        figures: json!({
            "store_bytes": STORE_BYTES, "resident_max_bytes": RESIDENT_MAX, "resident_start_bytes": first.resident,
            "resident_full_bytes": full.resident, "resident_peak_bytes": peak, "resident_end_bytes": last.resident,
            "most_counted_bytes": most_held, "objects": last.held.objects, "hot_share": share,
            "flood_requests_per_s": rate.round(), "missed": missed,
            // About one a second is enough for a plot.
            "samples": samples.iter().step_by(4).map(|sample| json!([
                round(sample.at), sample.resident, sample.held.bytes, sample.held.objects,
            ])).collect::<Vec<_>>(),
        }),
    }
    .write(root)?;
    ensure!(missed == 0, "{missed} targets missed");
    Ok(())
}

fn judge(target: &str, figure: String, holds: bool) -> Judged {
    Judged {
        scenario: "store of 256 MiB".to_owned(),
        target: target.to_owned(),
        figure,
        verdict: Verdict::of(holds),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_flood_asks_once_for_each_of_its_keys_and_all_over_the_hot_set() {
        let requests = 2_000_000;
        let (hot, cold): (Vec<String>, Vec<String>) =
            (0..requests).map(flood).partition(|target| target.starts_with("/key/hot/"));
        assert_eq!(hot.len() as u64, requests / HOT_EVERY);
        assert_eq!(hot.iter().collect::<HashSet<_>>().len() as u64, HOT_KEYS);
        assert_eq!(cold.iter().collect::<HashSet<_>>().len(), cold.len());
        assert_eq!(flood_requests() - flood_requests().div_ceil(HOT_EVERY), FLOOD_KEYS);
    }
}
