//! A million objects as a page: a row for each server, and what larder has to hold.
//!
//! In: the rows as they were measured, with larder's own figure for its index. Out: bench/results/objects.md, objects.json
//! and objects.svg; then an error where a target was missed, after everything is written.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::restart::Back;
use super::{CONNECTIONS, LARDER, OBJECTS, Pass, Row};
use crate::measure::asker::OBJECT_BYTES;
use crate::measure::load::ms;
use crate::measure::outcome::{Judged, Verdict};
use crate::measure::page::{targets, told};
use crate::measure::plot::{Panel, bars};
use crate::measure::report::{Report, round};

const INDEX_BYTES_MAX: f64 = 64.0;
const FIRST_HIT_MAX: Duration = Duration::from_secs(1);
/// What was stored is all to be found again, before and after a kill. What a queue held when the kill came is not stored
/// yet; that is far less than this leaves.
const FOUND_PERCENT_MIN: f64 = 99.0;

/// Prints the table and writes page, figures and plot.
///
/// # Errors
/// A target was missed; everything has been written then.
pub(super) fn report(root: &Path, rows: &[Row]) -> Result<()> {
    let judged = judge(rows)?;
    let mut text = table(rows);
    text.push_str(&targets(&judged));
    text.push_str("\n![What an object costs](objects.svg)\n");
    plot(root, rows)?;
    let missed = judged.iter().filter(|judged| judged.missed()).count();
    Report {
        name: "objects",
        title: "A million small objects",
        table: &text,
        how: &how(),
        programs: &[("rustc", "--version"), ("nginx", "-v")],
        figures: json!({
            "objects": OBJECTS, "object_bytes": OBJECT_BYTES, "connections": CONNECTIONS, "missed": missed,
            "targets": told(&judged), "rows": rows.iter().map(row_json).collect::<Vec<Value>>(),
        }),
    }
    .write(root)?;
    ensure!(missed == 0, "{missed} targets missed");
    Ok(())
}

fn judge(rows: &[Row]) -> Result<Vec<Judged>> {
    let row = rows.iter().find(|row| row.name == LARDER).context("no larder")?;
    let index = row.index_per_object().context("larder does not tell what its index takes")?;
    let one = |target: String, figure: String, holds: bool| Judged {
        scenario: LARDER.to_owned(),
        target,
        figure,
        verdict: Verdict::of(holds),
    };
    let found = [row.read.hit_percent(), row.warm.found_percent(), row.cold.found_percent()];
    let least = found.into_iter().fold(f64::INFINITY, f64::min);
    Ok(vec![
        one(
            format!("the index takes at most {INDEX_BYTES_MAX} B of memory for each"),
            format!("{index:.1} B"),
            index <= INDEX_BYTES_MAX,
        ),
        one(
            format!(
                "the first hit at most {} s after the start, with a warm page cache",
                FIRST_HIT_MAX.as_secs()
            ),
            format!("{:.0} ms", ms(row.warm.first_hit)),
            row.warm.first_hit <= FIRST_HIT_MAX,
        ),
        one(
            format!("at least {FOUND_PERCENT_MIN} % are read back, and found after each kill"),
            format!("{least:.2} %"),
            least >= FOUND_PERCENT_MIN,
        ),
    ])
}

fn table(rows: &[Row]) -> String {
    let mut table = String::from(
        "| | stored/s | CPU us per object | read/s | CPU us per object | read back % | disk B per object | written B per object | \
         index B per object | memory MB | first hit after a kill ms | cold ms | found again % |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let index = row.index_per_object().map_or_else(|| "–".to_owned(), |bytes| format!("{bytes:.1}"));
        let _ = writeln!(
            table,
            "| {} | {:.0} | {:.1} | {:.0} | {:.1} | {:.2} | {:.0} | {:.0} | {index} | {:.1} | {:.0} | {:.0} | {:.1} |",
            row.name,
            row.stored.per_s(),
            row.stored.cpu_us(),
            row.read.per_s(),
            row.read.cpu_us(),
            row.read.hit_percent(),
            per_object(row.used_bytes),
            per_object(row.written_bytes),
            megabytes(row.resident_bytes),
            ms(row.warm.first_hit),
            ms(row.cold.first_hit),
            row.warm.found_percent().min(row.cold.found_percent()),
        );
    }
    table
}

fn how() -> String {
    format!(
        "{OBJECTS} objects of {OBJECT_BYTES} B with random names, from an origin that costs next to nothing: fetched once each, then read \
         once each in another random order, over {CONNECTIONS} connections. Every answer is checked. One worker on one core; origin and \
         clients on another. The disk is ext4 on a loop device with its image in memory, not held back; larder has 64 MiB of memory in front of \
         it, nginx the page cache. CPU time is the server's processes', until what was stored is on the disk; the \
         kernel's threads that write are not in it. \"Disk\" is what the file system has given away, blocks and inodes, and \"written\" what \
         reached the device meanwhile. \"Memory\" is resident after storing; pages that nginx's processes share count for \
         each. \"First hit after a kill\": kill -9, and the time from the program's start to the end of its first hit, with what \
         the kernel has cached of the disk; \"cold\" without (the image stays in memory: no disk seeks). \"Found again\": of a thousand names all over the \
         store, the lower of both starts. nginx finds files by their names from its start on, and learns what it has meanwhile. \
         One run of each."
    )
}

fn plot(root: &Path, rows: &[Row]) -> Result<()> {
    let panel = |title: &str, of: &dyn Fn(&Row) -> f64| Panel {
        title: title.to_owned(),
        bars: rows.iter().map(|row| (row.name.to_owned(), of(row))).collect(),
    };
    let panels = [
        panel("CPU to store, us", &|row| row.stored.cpu_us()),
        panel("CPU to read, us", &|row| row.read.cpu_us()),
        panel("disk, bytes", &|row| per_object(row.used_bytes)),
        panel("first hit after a kill, ms", &|row| ms(row.warm.first_hit)),
    ];
    bars(&root.join("bench/results/objects.svg"), "A million objects of 1 KB: what each costs", &panels)
}

impl Row {
    fn index_per_object(&self) -> Option<f64> {
        self.index_bytes.map(per_object)
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn per_object(bytes: u64) -> f64 {
    bytes as f64 / OBJECTS as f64
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn row_json(row: &Row) -> Value {
    let pass = |pass: &Pass| json!({ "per_s": pass.per_s().round(), "cpu_us": round(pass.cpu_us()), "hits": pass.hits });
    let back = |back: &Back| {
        json!({ "first_hit_ms": round(ms(back.first_hit)), "misses_before": back.misses_before,
                "found_percent": round(back.found_percent()) })
    };
    json!({
        "server": row.name, "stored": pass(&row.stored), "read": pass(&row.read),
        "disk_bytes_per_object": round(per_object(row.used_bytes)),
        "written_bytes_per_object": round(per_object(row.written_bytes)),
        "index_bytes_per_object": row.index_per_object().map(round), "resident_bytes": row.resident_bytes,
        "warm": back(&row.warm), "cold": back(&row.cold),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn row() -> Row {
        let pass = |hits| Pass { took: Duration::from_secs(40), cpu: Duration::from_secs(30), hits };
        let back = |millis, found| Back { first_hit: Duration::from_millis(millis), misses_before: 0, found };
        Row {
            name: LARDER,
            stored: pass(0),
            read: pass(999_000),
            used_bytes: 1_400_000_000,
            written_bytes: 1_410_000_000,
            index_bytes: Some(56_000_000),
            resident_bytes: 150_000_000,
            warm: back(800, 999),
            cold: back(1500, 995),
        }
    }

    fn missed(row: Row) -> Vec<String> {
        let judged = judge(&[row]).unwrap();
        judged.iter().filter(|judged| judged.missed()).map(|judged| judged.figure.clone()).collect()
    }

    #[test]
    fn what_larder_has_to_hold_is_judged() {
        assert_eq!(missed(row()), Vec::<String>::new());
        assert_eq!(missed(Row { index_bytes: Some(65_000_000), ..row() }), ["65.0 B"]);
        let late = Back { first_hit: Duration::from_millis(1001), ..row().warm };
        assert_eq!(missed(Row { warm: late, ..row() }), ["1001 ms"]);
        let lost = Back { found: 900, ..row().cold };
        assert_eq!(missed(Row { cold: lost, ..row() }), ["90.00 %"]);
        assert!(judge(&[Row { index_bytes: None, ..row() }]).is_err());
        assert!(judge(&[]).is_err());
    }

    #[test]
    fn a_row_has_its_figures() {
        let line = "| larder | 25000 | 30.0 | 25000 | 30.0 | 99.90 | 1400 | 1410 | 56.0 | 150.0 | 800 | 1500 | 99.5 |";
        let table = table(&[row(), Row { name: "other", index_bytes: None, ..row() }]);
        assert!(table.lines().any(|found| found == line), "{table}");
        assert!(table.contains("| 1410 | – | 150.0 |"), "{table}");
    }
}
