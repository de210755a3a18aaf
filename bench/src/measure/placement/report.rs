//! The experiment on placement as a page: a row for each way, the targets, the published figures beside them.
//!
//! In: the rows as they were measured. Out: bench/results/placement.md, placement.json, placement.svg (what the clients
//! got, what was stored) and placement-clients.svg (what the clients got in each second); then an error where a
//! target was missed, after everything is written.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::clients::CONNECTIONS;
use super::origin::ANSWER_TAKES;
use super::{
    DISK_BYTES_PER_S, LARDER_HASH, LARDER_MIRROR, LARDER_NONE, LARDER_SINGLE, LARDER_SIZE, LARDER_STRIPE,
    NGINX_SINGLE, NGINX_SPLIT, OBJECT_BYTES, Published, Row, SECONDS, Way,
};
use crate::measure::load::ms;
use crate::measure::outcome::{Judged, Verdict};
use crate::measure::page::{targets, told};
use crate::measure::plot::{Panel, Series, bars, lines};
use crate::measure::report::{Report, round};

/// What the clients of a cache get of what they get without one.
const CLIENTS_MIN: f64 = 0.9;
/// Peak of dirty pages beyond what was idle.
const DIRTY_MAX_BYTES: u64 = 64 << 20;
/// What is stored, of what one disk stores.
const OF_SINGLE: &[(&str, f64)] = &[(LARDER_MIRROR, 0.95), (LARDER_STRIPE, 1.9), (LARDER_HASH, 1.9)];
/// Whose clients are drawn by the second.
const DRAWN: &[&str] = &[LARDER_SINGLE, NGINX_SINGLE, NGINX_SPLIT, LARDER_HASH, LARDER_NONE];

/// Prints the table and writes page, figures and plots.
///
/// # Errors
/// A target was missed; everything has been written then.
pub(super) fn report(root: &Path, rows: &[Row]) -> Result<()> {
    let judged = judge(rows)?;
    let mut text = table(rows);
    text.push_str(&targets(&judged));
    text.push_str(PLOTS);
    plot(root, rows)?;
    let missed = judged.iter().filter(|judged| judged.missed()).count();
    Report {
        name: "placement",
        title: "Two slow disks",
        table: &text,
        how: &how(),
        programs: &[("rustc", "--version"), ("nginx", "-v")],
        figures: json!({
            "object_bytes": OBJECT_BYTES, "connections": CONNECTIONS, "seconds": SECONDS,
            "disk_bytes_per_s": DISK_BYTES_PER_S, "missed": missed, "targets": told(&judged),
            "rows": rows.iter().map(row_json).collect::<Vec<Value>>(),
        }),
    }
    .write(root)?;
    ensure!(missed == 0, "{missed} targets missed");
    Ok(())
}

const PLOTS: &str = "\n![What clients got, and what was stored](placement.svg)\n\n\
                     ![What clients got in each second](placement-clients.svg)\n";

fn find<'a>(rows: &'a [Row], name: &str) -> Result<&'a Row> {
    rows.iter().find(|row| row.kind.name == name).with_context(|| format!("no row for {name}"))
}

fn judge(rows: &[Row]) -> Result<Vec<Judged>> {
    let one = |row: &Row, target: String, figure: String, holds: bool| Judged {
        scenario: row.kind.name.to_owned(),
        target,
        figure,
        verdict: Verdict::of(holds),
    };
    let mut judged = Vec::new();
    for row in rows.iter().filter(|row| matches!(row.kind.way, Way::Larder(_))) {
        let ratio = row.client_mb_per_s() / find(rows, row.kind.beside())?.client_mb_per_s();
        judged.push(one(
            row,
            format!("clients get at least {CLIENTS_MIN} of what they get without a cache"),
            format!("{ratio:.3}"),
            ratio >= CLIENTS_MIN,
        ));
        judged.push(one(
            row,
            format!("at most {} MiB of dirty pages beyond idle", DIRTY_MAX_BYTES >> 20),
            format!("{:.1} MiB", mebibytes(row.dirty_peak_bytes)),
            row.dirty_peak_bytes <= DIRTY_MAX_BYTES,
        ));
    }
    let single = find(rows, LARDER_SINGLE)?.stored_mb_per_s();
    for (name, least) in OF_SINGLE {
        let row = find(rows, name)?;
        let ratio = row.stored_mb_per_s() / single;
        judged.push(one(
            row,
            format!("stores at least {least} of what one disk stores"),
            format!("{ratio:.3}"),
            ratio >= *least,
        ));
    }
    Ok(judged)
}

fn table(rows: &[Row]) -> String {
    let mut table = String::from(
        "| | clients MB/s | of no cache | its last 10 s MB/s | stored MB/s | published, EC2 | published, bare metal | to the disks MB/s | \
         its last 10 s MB/s | left after MB | objects | stored | dirty peak MiB | CPU ms per MB | p99 ms | longest ms |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let share = find(rows, row.kind.beside())
            .map_or(f64::NAN, |beside| row.client_mb_per_s() / beside.client_mb_per_s());
        let (ec2, metal) = row.kind.published.map_or_else(
            || ("–".to_owned(), "–".to_owned()),
            |Published(ec2, metal)| (format!("{ec2}"), format!("{metal}")),
        );
        let _ = writeln!(
            table,
            "| {} | {:.0} | {share:.3} | {:.0} | {:.1} | {ec2} | {metal} | {:.1} | {:.1} | {:.0} | {} | {} | {:.0} | {:.2} | \
             {:.1} | {:.0} |",
            row.kind.name,
            row.client_mb_per_s(),
            row.client_mb_per_s_at_last(),
            row.stored_mb_per_s(),
            row.reached_per_s / 1e6,
            row.reached_per_s_at_last / 1e6,
            megabytes(row.left_bytes),
            row.objects,
            row.stored,
            mebibytes(row.dirty_peak_bytes),
            row.cpu_ms_per_mb(),
            ms(row.p99),
            ms(row.longest),
        );
    }
    table
}

fn how() -> String {
    let answer_ms = ANSWER_TAKES.as_millis();
    format!(
        "{CONNECTIONS} connections, each asking for an object of {OBJECT_BYTES} bytes with a random name, and for the next as \
         soon as it has it, for {SECONDS} s. Nothing is asked for twice. Every byte of every answer is checked. The origin takes \
         {answer_ms} ms for each answer, so that without a cache about 250 MB/s pass: six times what one disk takes, three times what both do. One worker on one \
         core; clients and origin on another. The disks are ext4 on loop devices with images in memory, new for each row, each held by \
         the kernel's block throttle to {:.0} MB/s of writes, which is tried before. No cache was ever full: each may have \
         {LARDER_SIZE} of its disk. \
         \"Stored\" counts objects that were there after the run (larder is asked for each with only-if-cached; nginx's files are \
         counted); \"stored MB/s\" is of those, and at most what reached the disks within the run, each byte once. \"To the disks\" is the devices' own count within the run, \
         second copies, journals and tables included, and \"left after\" what came after it. nginx leaves it to the kernel when to \
         write, which begins when much is dirty (here vm.dirty_background_ratio {}, vm.dirty_ratio {}, as the machine has them): until then its \
         disks rest, and \"its last 10 s\" tells what they take once they do not. CPU time is the server's processes', without the \
         kernel's threads that write. One run of each, one after the other. The published figures are cache writes of nginx on volumes of \
         their own: \"mirror\" and \"stripe\" were RAID below it, \"hash\" split_clients; compare the columns' shapes, and not their figures.",
        megabytes(DISK_BYTES_PER_S),
        setting("dirty_background_ratio"),
        setting("dirty_ratio"),
    )
}

fn setting(name: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/sys/vm/{name}")).unwrap_or_default();
    format!("{} %", text.trim())
}

fn plot(root: &Path, rows: &[Row]) -> Result<()> {
    let results = root.join("bench/results");
    let panel = |title: &str, of: fn(&Row) -> f64| Panel {
        title: title.to_owned(),
        bars: rows.iter().map(|row| (row.kind.name.to_owned(), of(row))).collect(),
    };
    let panels = [panel("clients, MB/s", Row::client_mb_per_s), panel("stored, MB/s", Row::stored_mb_per_s)];
    bars(
        &results.join("placement.svg"),
        "Two disks of 40 MB/s, 1 MB objects that are never asked for again",
        &panels,
    )?;
    let mut series = Vec::new();
    for name in DRAWN {
        let row = find(rows, name)?;
        let points = (0_u32..).zip(&row.bytes_by_second);
        let points = points.map(|(second, bytes)| (f64::from(second), megabytes(*bytes))).collect();
        series.push(Series { name: (*name).to_owned(), points });
    }
    lines(
        &results.join("placement-clients.svg"),
        "What clients got in each second",
        "seconds",
        "MB/s",
        &series,
    )
}

fn row_json(row: &Row) -> Value {
    json!({
        "row": row.kind.name, "client_mb_per_s": round(row.client_mb_per_s()),
        "client_mb_per_s_at_last": round(row.client_mb_per_s_at_last()),
        "client_bytes_by_second": row.bytes_by_second,
        "stored_mb_per_s": round(row.stored_mb_per_s()), "objects": row.objects, "objects_stored": row.stored,
        "disks_mb_per_s": round(row.reached_per_s / 1e6),
        "disks_mb_per_s_at_last": round(row.reached_per_s_at_last / 1e6),
        "left_bytes": row.left_bytes, "dirty_peak_bytes": row.dirty_peak_bytes,
        "cpu_ms_per_mb": round(row.cpu_ms_per_mb()), "steal_percent": round(row.steal_percent), "p99_ms": round(ms(row.p99)), "longest_ms": round(ms(row.longest)),
        "published_mb_per_s": row.kind.published.map(|Published(ec2, metal)| json!({ "ec2": ec2, "bare_metal": metal })),
    })
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use super::*;
    use crate::measure::placement::KINDS;

    /// All rows, as larder should be: 250 MB/s for everybody, and what the disks take.
    fn rows() -> Vec<Row> {
        let row = |kind: &'static super::super::Kind| {
            let disks = f64::from(u32::try_from(kind.disks).unwrap());
            Row {
                kind,
                bytes_by_second: vec![250_000_000; 30],
                objects: 7500,
                stored: 1200 * kind.disks as u64 / kind.copies,
                reached_per_s: 40e6 * disks,
                reached_per_s_at_last: 40e6 * disks,
                left_bytes: 1_000_000,
                dirty_peak_bytes: 60 << 20,
                cpu: Duration::from_secs(6),
                steal_percent: 0.1,
                p99: Duration::from_millis(27),
                longest: Duration::from_millis(40),
            }
        };
        KINDS.iter().map(row).collect()
    }

    fn missed(rows: &[Row]) -> Vec<String> {
        let judged = judge(rows).unwrap();
        let missed = judged.iter().filter(|judged| judged.missed());
        missed.map(|judged| format!("{}: {}", judged.scenario, judged.figure)).collect()
    }

    fn change(rows: &mut [Row], name: &str, change: impl Fn(&mut Row)) {
        change(rows.iter_mut().find(|row| row.kind.name == name).unwrap());
    }

    #[test]
    fn what_two_disks_store_is_compared_with_one() {
        assert_eq!(missed(&rows()), Vec::<String>::new());
        assert_eq!(judge(&rows()).unwrap().len(), 4 * 2 + 3);
        let mut fewer = rows();
        change(&mut fewer, LARDER_HASH, |row| row.stored = 2200);
        change(&mut fewer, LARDER_MIRROR, |row| row.reached_per_s = 75e6);
        assert_eq!(missed(&fewer), ["larder, mirror: 0.938", "larder, hash: 1.833"]);
    }

    #[test]
    fn objects_that_only_wait_in_memory_are_not_stored() {
        let mut waiting = rows();
        change(&mut waiting, LARDER_SINGLE, |row| row.stored = 3000);
        assert_eq!(missed(&waiting), Vec::<String>::new());
        assert!((find(&waiting, LARDER_SINGLE).unwrap().stored_mb_per_s() - 40.0).abs() < 1e-9);
    }

    #[test]
    fn slower_clients_and_too_many_dirty_pages_are_missed_by_larder_alone() {
        let mut slow = rows();
        for name in [LARDER_SINGLE, NGINX_SINGLE] {
            change(&mut slow, name, |row| row.bytes_by_second = vec![220_000_000; 30]);
        }
        for name in [LARDER_STRIPE, NGINX_SPLIT] {
            change(&mut slow, name, |row| row.dirty_peak_bytes = 65 << 20);
        }
        assert_eq!(missed(&slow), ["larder, single: 0.880", "larder, stripe: 65.0 MiB"]);
    }

    #[test]
    fn a_row_has_what_was_published_for_its_way() {
        let table = table(&rows());
        let line = table.lines().find(|line| line.starts_with("| nginx, split_clients |")).unwrap();
        assert!(
            line.starts_with("| nginx, split_clients | 250 | 1.000 | 250 | 80.0 | 56 | 215.3 | 80.0 |"),
            "{line}"
        );
        assert!(table.contains("| larder, no cache | 250 | 1.000 | 250 | 0.0 | – | – |"), "{table}");
    }
}
