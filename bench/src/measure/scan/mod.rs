//! Scan resistance: larder's store beside a plain LRU of the same bytes, both replaying the same trace.
//!
//! In: a core of a million keys that follows Zipf's law; the same while a scan of two million keys runs through it once;
//! and with a scan that begins again as soon as it has ended. A scan's keys come in turn with the core's. Out: the hit
//! ratio of the core before, during and after, for both. Nothing is served: this is the store as a library, so
//! that only the choice of what stays is compared.
//! Deliberately absent: time. Requests follow each other, and nothing expires.

mod caches;
mod trace;

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::outcome::{Judged, Verdict};
use super::page::targets;
use super::plot::{Series, lines};
use super::report::Report;
use caches::{Cache, Larder, Lru};
use trace::Zipf;

const MEMORY: u64 = 128 << 20;
const KEYS: usize = 1_000_000;
const EXPONENT: f64 = 0.9;
const SEED: u64 = 20_231;
const SCAN_KEYS: usize = 2_000_000;
/// Core requests of each phase without a scan. Two of them come first and are not counted: the cache fills.
const PHASE: usize = 1_000_000;
/// Core requests for each point of a plot.
const WINDOW: usize = 50_000;
/// How much of the hit ratio before the scan has to be there in the first window after it.
const KEPT_MIN: f64 = 0.97;

/// A part of the trace.
#[derive(Clone, Copy)]
struct Phase {
    name: &'static str,
    /// Core requests.
    requests: usize,
    /// Whether each of them has a request of the scan beside it.
    scan: bool,
}

const fn phase(name: &'static str, requests: usize, scan: bool) -> Phase {
    Phase { name, requests, scan }
}

const WARM: Phase = phase("warming", 2 * PHASE, false);

const SCENARIOS: &[(&str, &str, &[Phase])] = &[
    ("no scan", "none", &[WARM, phase("all of it", 2 * PHASE, false)]),
    (
        "one scan",
        "once",
        &[
            WARM,
            phase("before", PHASE, false),
            phase("during the scan", SCAN_KEYS, true),
            phase("right after", WINDOW, false),
            phase("later", PHASE - WINDOW, false),
        ],
    ),
    (
        "a scan that repeats",
        "repeats",
        &[
            WARM,
            phase("before", PHASE, false),
            phase("first scan", SCAN_KEYS, true),
            phase("second scan", SCAN_KEYS, true),
            phase("right after", WINDOW, false),
            phase("later", PHASE - WINDOW, false),
        ],
    ),
];

/// What one cache did in one scenario.
struct Replayed {
    /// Hit ratio of the core, by phase.
    phases: Vec<f64>,
    /// The same by window: core requests so far, in millions, and the ratio.
    windows: Vec<(f64, f64)>,
    objects: usize,
}

/// Replays, prints the table and writes it to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let object_bytes = Larder::new(MEMORY)?.object_bytes(&core_key(KEYS / 2));
    let mut table = String::from("| trace | phase | larder | LRU |\n|---|---|---|---|\n");
    let (mut judged, mut plots, mut figures) = (Vec::new(), String::new(), Vec::new());
    let mut objects = (0, 0);
    for (scenario, file, phases) in SCENARIOS {
        let larder = replay(&mut Larder::new(MEMORY)?, phases);
        let lru = replay(&mut Lru::new(MEMORY, object_bytes), phases);
        objects = (larder.objects, lru.objects);
        for ((phase, ours), plain) in phases.iter().zip(&larder.phases).zip(&lru.phases).skip(1) {
            let _ = writeln!(
                table,
                "| {scenario} | {} | {:.2} % | {:.2} % |",
                phase.name,
                ours * 100.0,
                plain * 100.0
            );
        }
        judged.extend(judge(scenario, phases, &larder, &lru));
        if *file != "none" {
            plot(root, scenario, file, &larder, &lru)?;
            let _ = writeln!(plots, "\n![Hit ratio of the core, {scenario}](scan-{file}.svg)");
        }
        figures.push(json!({
            "trace": scenario,
            "phases": phases.iter().map(|phase| phase.name).collect::<Vec<_>>(),
            "larder": ratios(&larder.phases), "lru": ratios(&lru.phases),
        }));
    }
    table.push_str(&targets(&judged));
    table.push_str(&plots);
    let how = format!(
        "Hit ratios of the core: {KEYS} keys, Zipf with exponent {EXPONENT}, {} requests to warm up; the scan has {SCAN_KEYS} keys of its \
         own and asks once for each core request. Both caches have {} MiB and count {object_bytes} B for each object of 1 KB: larder \
         held {} of them, the LRU {}. Right after: the first {WINDOW} core requests. The same requests in the same order \
         each time (seed {SEED}).",
        WARM.requests,
        MEMORY >> 20,
        objects.0,
        objects.1,
    );
    let missed = judged.iter().filter(|judged| judged.missed()).count();
    Report {
        name: "scan",
        title: "Scan resistance",
        table: &table,
        how: &how,
        programs: &[("rustc", "--version")],
        figures: json!({ "memory_bytes": MEMORY, "object_bytes": object_bytes, "missed": missed, "traces": figures }),
    }
    .write(root)?;
    ensure!(missed == 0, "{missed} targets missed");
    Ok(())
}

fn core_key(rank: usize) -> String {
    format!("/core/{rank:07}")
}

fn replay(cache: &mut dyn Cache, phases: &[Phase]) -> Replayed {
    let mut core = Zipf::new(KEYS, EXPONENT, SEED);
    let mut replayed = Replayed { phases: Vec::new(), windows: Vec::new(), objects: 0 };
    let (mut asked, mut scanned, mut of_window) = (0_usize, 0, 0);
    for phase in phases {
        let mut of_phase = 0;
        for _ in 0..phase.requests {
            let hit = usize::from(cache.ask(&core_key(core.draw())));
            of_phase += hit;
            of_window += hit;
            asked += 1;
            if phase.scan {
                cache.ask(&format!("/scan/{:07}", scanned % SCAN_KEYS));
                scanned += 1;
            }
            if asked.is_multiple_of(WINDOW) {
                replayed.windows.push((share(asked, 1_000_000), share(of_window, WINDOW)));
                of_window = 0;
            }
        }
        replayed.phases.push(share(of_phase, phase.requests));
    }
    replayed.objects = cache.objects();
    replayed
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

/// To four places after the point.
fn ratios(ratios: &[f64]) -> Vec<Value> {
    ratios.iter().map(|ratio| json!((ratio * 1e4).round() / 1e4)).collect()
}

/// Never worse than the LRU; and where there was a scan, what it left.
fn judge(scenario: &str, phases: &[Phase], larder: &Replayed, lru: &Replayed) -> Vec<Judged> {
    let judged = |target: &str, figure: String, holds: bool| Judged {
        scenario: scenario.to_owned(),
        target: target.to_owned(),
        figure,
        verdict: Verdict::of(holds),
    };
    let counted = || larder.phases.iter().zip(&lru.phases).skip(1);
    let least = counted().map(|(ours, plain)| ours - plain).fold(f64::INFINITY, f64::min);
    let mut all = vec![judged(
        "in no phase fewer hits than the LRU",
        format!("{:+.2} points at least", least * 100.0),
        least >= 0.0,
    )];
    let at = |name: &str| {
        phases.iter().position(|phase| phase.name == name).and_then(|place| larder.phases.get(place))
    };
    if let (Some(before), Some(after)) = (at("before"), at("right after")) {
        all.push(judged(
            "right after the scan at least 97 % of the hit ratio before it",
            format!("{:.1} %", after / before * 100.0),
            after / before >= KEPT_MIN,
        ));
    }
    all
}

fn plot(root: &Path, scenario: &str, file: &str, larder: &Replayed, lru: &Replayed) -> Result<()> {
    let series = |name: &str, replayed: &Replayed| Series {
        name: name.to_owned(),
        points: replayed.windows.iter().map(|(asked, ratio)| (*asked, ratio * 100.0)).collect(),
    };
    lines(
        &root.join(format!("bench/results/scan-{file}.svg")),
        &format!("Hit ratio of the core: {scenario}"),
        "million core requests",
        "hits, %",
        &[series("larder", larder), series("LRU", lru)],
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Answers as told, and keeps nothing.
    struct Scripted {
        asked: usize,
        scans: Vec<String>,
    }

    impl Cache for Scripted {
        fn ask(&mut self, key: &str) -> bool {
            if key.starts_with("/scan/") {
                self.scans.push(key.to_owned());
                return true;
            }
            self.asked += 1;
            self.asked.is_multiple_of(2)
        }

        fn objects(&self) -> usize {
            0
        }
    }

    #[test]
    fn only_the_core_is_counted_and_the_scan_goes_on_where_it_was() {
        let mut cache = Scripted { asked: 0, scans: Vec::new() };
        let phases = [phase("warming", 10, false), phase("one", 4, true), phase("two", 2, true)];
        let replayed = replay(&mut cache, &phases);
        assert_eq!(replayed.phases, [0.5, 0.5, 0.5]);
        let scans: Vec<String> = (0..6).map(|number| format!("/scan/{number:07}")).collect();
        assert_eq!((cache.asked, cache.scans), (16, scans));
    }

    #[test]
    fn a_phase_with_fewer_hits_than_the_lru_is_a_miss() {
        let phases = [WARM, phase("before", 1, false), phase("right after", 1, false)];
        let replayed = |ratios: [f64; 3]| Replayed { phases: ratios.into(), windows: Vec::new(), objects: 0 };
        let check = |ours: [f64; 3], plain: [f64; 3], holds: [bool; 2]| {
            let judged = judge("one scan", &phases, &replayed(ours), &replayed(plain));
            assert_eq!(judged.iter().map(|judged| !judged.missed()).collect::<Vec<_>>(), holds);
        };
        check([0.1, 0.5, 0.5], [0.9, 0.4, 0.1], [true, true]);
        check([0.1, 0.5, 0.5], [0.1, 0.51, 0.1], [false, true]);
        check([0.1, 0.5, 0.48], [0.1, 0.4, 0.1], [true, false]);
    }
}
