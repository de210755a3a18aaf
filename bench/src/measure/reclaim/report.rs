//! What making room costs hits, as a page: a row for either larder and kind of hit, and what has to hold.
//!
//! In: the phases of both. Out: bench/results/reclaim.md and reclaim.json; then an error where a target was missed,
//! after everything is written. Every figure is the median of the phases.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{
    Counted, FULL, FULL_SIZE, IN_MEMORY, OBJECT_BYTES, PHASE, Phase, RATES, ROOM, ROOM_SIZE, ROUNDS, Row,
    USED,
};
use crate::measure::load::quantile;
use crate::measure::outcome::{Judged, Verdict};
use crate::measure::page::{targets, told};
use crate::measure::report::{Report, median, round};

/// The p99 of all hits while segments are given up, beside that while there is room.
const OF_ROOM_MAX: f64 = 1.1;
const DIRTY_MIB_MAX: f64 = 64.0;
/// Of the requests for what is asked for again and again: reclaiming must not lose it.
const THERE_PERCENT_MIN: f64 = 99.0;

/// Which hits.
#[derive(Clone, Copy)]
enum Kind {
    All,
    Memory,
    Disk,
}

const KINDS: &[(Kind, &str)] =
    &[(Kind::All, "all"), (Kind::Memory, "in memory"), (Kind::Disk, "on the disk")];
const SHARES: [f64; 3] = [0.5, 0.99, 0.999];

/// Prints the table and writes page and figures.
///
/// # Errors
/// A target was missed; everything has been written then.
pub(super) fn report(root: &Path, rows: &[Row]) -> Result<()> {
    let judged = judge(rows)?;
    let text = table(rows) + &targets(&judged);
    let missed = judged.iter().filter(|judged| judged.missed()).count();
    Report {
        name: "reclaim",
        title: "Hits while a full disk makes room",
        table: &text,
        how: &how(),
        programs: &[("rustc", "--version")],
        figures: json!({
            "object_bytes": OBJECT_BYTES, "hits_per_s": 2 * RATES.hits_per_s, "misses_per_s": RATES.misses_per_s,
            "phase_s": PHASE.as_secs(), "rounds": ROUNDS, "missed": missed, "targets": told(&judged),
            "rows": rows.iter().map(row_json).collect::<Vec<Value>>(),
        }),
    }
    .write(root)?;
    ensure!(missed == 0, "{missed} targets missed");
    Ok(())
}

impl Phase {
    /// The wait in microseconds that this share of the hits did not exceed.
    fn wait_us(&self, kind: Kind, share: f64) -> f64 {
        let of_all: Vec<Duration>;
        let waits = match kind {
            Kind::Memory => &self.waits.memory,
            Kind::Disk => &self.waits.disk,
            Kind::All => {
                let mut both = [&self.waits.memory[..], &self.waits.disk].concat();
                both.sort_unstable();
                of_all = both;
                &of_all
            }
        };
        quantile(waits, share).as_secs_f64() * 1e6
    }

    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    fn there_percent(&self) -> f64 {
        let asked = self.waits.memory.len() + self.waits.disk.len();
        100.0 * (1.0 - self.waits.not_there as f64 / asked.max(1) as f64)
    }

    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    fn dirty_mib(&self) -> f64 {
        self.dirty_peak_bytes as f64 / f64::from(1 << 20)
    }
}

impl Row {
    fn median(&self, of: impl Fn(&Phase) -> f64) -> f64 {
        median(self.phases.iter().map(of).collect())
    }

    fn wait_us(&self, kind: Kind, share: f64) -> f64 {
        self.median(|phase| phase.wait_us(kind, share))
    }

    fn worst(&self, of: impl Fn(&Phase) -> f64) -> f64 {
        self.phases.iter().map(of).fold(f64::NEG_INFINITY, f64::max)
    }

    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    fn counted(&self, of: impl Fn(&Counted) -> u64) -> f64 {
        self.median(|phase| of(&phase.counted) as f64)
    }
}

fn row<'a>(rows: &'a [Row], name: &str) -> Result<&'a Row> {
    let found = rows.iter().find(|row| row.name == name && !row.phases.is_empty());
    found.with_context(|| format!("nothing measured {name}"))
}

fn judge(rows: &[Row]) -> Result<Vec<Judged>> {
    let (room, full) = (row(rows, ROOM)?, row(rows, FULL)?);
    let p99 = |row: &Row| row.wait_us(Kind::All, 0.99);
    let of_room = p99(full) / p99(room);
    let dirty = full.worst(Phase::dirty_mib);
    let there = -full.worst(|phase| -phase.there_percent());
    let one = |target: String, figure: String, holds: bool| Judged {
        scenario: FULL.to_owned(),
        target,
        figure,
        verdict: Verdict::of(holds),
    };
    Ok(vec![
        one(
            format!("p99 of all hits at most {OF_ROOM_MAX} times that {ROOM}"),
            format!("{of_room:.3}"),
            of_room <= OF_ROOM_MAX,
        ),
        one(
            format!("at most {DIRTY_MIB_MAX} MiB of dirty pages beyond idle, in every phase"),
            format!("{dirty:.1} MiB"),
            dirty <= DIRTY_MIB_MAX,
        ),
        one(
            format!("at least {THERE_PERCENT_MIN} % of what is asked for again are hits, in every phase"),
            format!("{there:.2} %"),
            there >= THERE_PERCENT_MIN,
        ),
    ])
}

fn table(rows: &[Row]) -> String {
    let mut table = String::from("| | hits | p50 us | p99 us | p99.9 us |\n|---|---|---|---|---|\n");
    for row in rows {
        for (kind, name) in KINDS {
            let [p50, p99, p999] = SHARES.map(|share| row.wait_us(*kind, share));
            let _ = writeln!(table, "| {} | {name} | {p50:.0} | {p99:.0} | {p999:.0} |", row.name);
        }
    }
    table.push_str(
        "\n| | segments given up | objects rescued | written MB | stored | hits that were there % | dirty peak MiB | CPU s |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let stored = row.median(|phase| phase.waits.stored as f64);
        let _ = writeln!(
            table,
            "| {} | {:.0} | {:.0} | {:.0} | {stored:.0} | {:.2} | {:.1} | {:.2} |",
            row.name,
            row.counted(|counted| counted.reclaimed_segments),
            row.counted(|counted| counted.rescued_objects),
            row.counted(|counted| counted.written_bytes) / 1e6,
            row.median(Phase::there_percent),
            row.worst(Phase::dirty_mib),
            row.median(|phase| phase.cpu.as_secs_f64()),
        );
    }
    table
}

fn how() -> String {
    format!(
        "Two larders with one worker and a disk each, in turns of {} s, {ROUNDS} of each, another one first each time; whoever is not on turn \
         stands still. Both get {} requests per second for objects of {OBJECT_BYTES} B that are stored: half of them for one of {IN_MEMORY}, \
         which are in memory, half for one of {USED}, of which memory (64 MiB) has room for a quarter and the disk's page cache for all; and {} \
         per second for an object that nobody asks for again, which is stored. \"{ROOM}\": the disk has {ROOM_SIZE}, and is never full. \"{FULL}\": it \
         has {FULL_SIZE} and was full before; what is asked for again lies evenly among the rest. Segments have 16 MiB in both. Requests are sent by a \
         timetable, over 32 and 16 connections that are kept; one that is due while its connection still waits counts from when it was due. \
         Every answer is checked. Worker and the disk's threads share one core, origin and clients another. The disks are ext4 on loop \
         devices with images in memory, not held back. Figures are medians of a phase each; the dirty peak, which is of the whole machine \
         beyond what was dirty before, is the highest of all. CPU time is the server's processes', without the kernel's threads that write.",
        PHASE.as_secs(),
        2 * RATES.hits_per_s,
        RATES.misses_per_s,
    )
}

fn row_json(row: &Row) -> Value {
    let phases: Vec<Value> = row.phases.iter().map(phase_json).collect();
    json!({ "row": row.name, "phases": phases })
}

fn phase_json(phase: &Phase) -> Value {
    let waits = |kind| {
        let [p50, p99, p999] = SHARES.map(|share| round(phase.wait_us(kind, share)));
        json!({ "p50_us": p50, "p99_us": p99, "p999_us": p999 })
    };
    json!({
        "all": waits(Kind::All), "memory": waits(Kind::Memory), "disk": waits(Kind::Disk),
        "reclaimed_segments": phase.counted.reclaimed_segments, "rescued_objects": phase.counted.rescued_objects,
        "written_bytes": phase.counted.written_bytes, "stored": phase.waits.stored,
        "there_percent": round(phase.there_percent()), "dirty_peak_mib": round(phase.dirty_mib()),
        "cpu_s": round(phase.cpu.as_secs_f64()), "steal_percent": round(phase.steal_percent),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::clients::Waits;
    use super::*;

    fn row(name: &'static str, p99_us: u64) -> Row {
        let waits = || {
            let mut waits = vec![Duration::from_micros(100); 980];
            waits.resize(1000, Duration::from_micros(p99_us));
            waits
        };
        let phase = |dirty_mib: u64| Phase {
            waits: Waits { memory: waits(), disk: waits(), not_there: 2, stored: 2800 },
            counted: Counted { reclaimed_segments: 7, rescued_objects: 800, written_bytes: 120_000_000 },
            dirty_peak_bytes: dirty_mib << 20,
            cpu: Duration::from_millis(1500),
            steal_percent: 0.1,
        };
        Row { name, phases: vec![phase(8), phase(9), phase(7)] }
    }

    fn missed(rows: &[Row]) -> Vec<String> {
        let judged = judge(rows).unwrap();
        judged.iter().filter(|judged| judged.missed()).map(|judged| judged.figure.clone()).collect()
    }

    #[test]
    fn what_reclaiming_may_cost_is_judged() {
        assert_eq!(missed(&[row(ROOM, 1000), row(FULL, 1099)]), Vec::<String>::new());
        assert_eq!(missed(&[row(ROOM, 1000), row(FULL, 1101)]), ["1.101"]);
        let mut full = row(FULL, 1000);
        full.phases[1].dirty_peak_bytes = 65 << 20;
        full.phases[2].waits.not_there = 30;
        assert_eq!(missed(&[row(ROOM, 1000), full]), ["65.0 MiB", "98.50 %"]);
        assert!(judge(&[row(ROOM, 1000)]).is_err());
        assert!(judge(&[row(ROOM, 1000), Row { name: FULL, phases: Vec::new() }]).is_err());
    }

    #[test]
    fn a_row_has_its_figures() {
        let table = table(&[row(FULL, 900)]);
        for line in [
            "| reclaiming | in memory | 100 | 900 | 900 |",
            "| reclaiming | 7 | 800 | 120 | 2800 | 99.90 | 9.0 | 1.50 |",
        ] {
            assert!(table.lines().any(|found| found == line), "{table}");
        }
    }
}
