//! The page of the purges: a table for each question, and the targets.
//!
//! In: what was measured. Out: bench/results/purges.md and purges.json; then an error where a target was missed, after both are
//! written.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::cost::{Cost, FEW, MANY, PURGES};
use super::hits::{MANY_KEYS, ONE_KEY, RATE};
use super::origin::{GROUPS, OBJECT_BYTES, SHARED_BY};
use super::{LARDER, LARDER_DISK, LARDER_PURGED, Measured, memory, passes, restart, warm};
use crate::measure::load::quantile;
use crate::measure::outcome::{Judged, Verdict};
use crate::measure::page::{scenarios, table as table_of, targets, told};
use crate::measure::report::{Report, median, round};

/// A purge with many objects may take so many times as long as one with few: as much as two runs differ.
const FLAT_MAX: f64 = 1.2;
/// Longest purge in memory, by its p99.
const PURGE_MAX_MS: f64 = 1.0;
/// Hits during purges, over hits without.
const BESIDE_MAX: f64 = 1.1;
/// `larder warm` over h2load.
const WARM_MAX: f64 = 1.2;
/// What remembered purges may add to a start.
const RESTART_MAX_S: f64 = 1.0;

/// Prints the tables and writes page and figures.
///
/// # Errors
/// A target was missed; everything has been written then.
pub(super) fn report(root: &Path, measured: &Measured) -> Result<()> {
    let judged = judge(measured)?;
    let missed = judged.iter().filter(|judged| judged.missed()).count();
    let text = [
        cost_table(&measured.costs),
        hits_table(measured),
        passes_table(&measured.passes),
        memory_table(&measured.memory),
        restart_table(&measured.costs),
        warm_table(&measured.warm),
        targets(&judged),
    ];
    Report {
        name: "purges",
        title: "Purges",
        table: &text.concat(),
        how: &how(),
        programs: &[
            ("rustc", "--version"),
            ("nginx", "-v"),
            ("varnishd", "-V"),
            ("wrk", "-v"),
            ("h2load", "--version"),
        ],
        figures: json!({
            "costs": measured.costs.iter().map(cost_json).collect::<Vec<Value>>(),
            "hits": scenarios(&measured.hits),
            "passes": measured.passes.iter().map(|row| json!({
                "server": row.server, "purges": row.kind, "before_us": round(row.before_us),
                "first_us": row.first_us.map(round), "later_us": row.later_us.map(round),
            })).collect::<Vec<Value>>(),
            "memory": measured.memory.iter().map(|row| json!({
                "server": row.server, "resident_bytes": row.resident_bytes, "bytes_per_tag": round(row.per_tag()),
            })).collect::<Vec<Value>>(),
            "warm": { "warm_s": measured.warm.warm_s, "h2load_s": measured.warm.h2load_s, "own_s": measured.warm.own_s },
            "missed": missed,
            "targets": told(&judged),
        }),
    }
    .write(root)?;
    ensure!(missed == 0, "{missed} targets missed");
    Ok(())
}

fn us(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// p50 and p99, in microseconds.
fn two(waits: &[Duration]) -> [f64; 2] {
    [0.5, 0.99].map(|share| us(quantile(waits, share)))
}

fn cell(waits: Option<&[Duration]>) -> String {
    waits.map(two).map_or_else(|| "–".to_owned(), |[p50, p99]| format!("{p50:.0} / {p99:.0}"))
}

fn cost_table(costs: &[Cost]) -> String {
    let mut table = String::from(
        "One purge, p50 / p99 us:\n\n| | objects | hard | soft | all, soft ms | all, hard ms | fdatasync alone |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for row in costs {
        let all = row.all.map(|all| all.map(|took| format!("{:.2}", us(took) / 1e3)));
        let [soft, hard] = all.unwrap_or_else(|| ["–".to_owned(), "–".to_owned()]);
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {soft} | {hard} | {} |",
            row.server,
            row.objects,
            cell(Some(&row.hard)),
            cell(row.soft.as_deref()),
            cell(row.sync.as_deref()),
        );
    }
    table
}

fn hits_table(measured: &Measured) -> String {
    let mut table = format!(
        "\nHits, and hits during {RATE} purges a second:\n\n{}\nThose purges:\n\n| | | answered | p50 us | p99 us |\n\
         |---|---|---|---|---|\n",
        table_of(&measured.hits)
    );
    for row in &measured.beside {
        let _ = writeln!(
            table,
            "| {} | {} | {} | {:.0} | {:.0} |",
            row.scenario, row.server, row.purges, row.p50_us, row.p99_us
        );
    }
    table
}

fn passes_table(rows: &[passes::Passes]) -> String {
    let (few, many) = (passes::FEW, passes::MANY);
    let mut table = format!(
        "\nCPU us per hit, one after the other of 20 000 objects:\n\n| | purges | none | first hit after {few} | further \
         hits | first hit after {many} | further hits |\n|---|---|---|---|---|---|---|\n"
    );
    for row in rows {
        let ([first, first_many], [later, later_many]) = (row.first_us, row.later_us);
        let _ = writeln!(
            table,
            "| {} | {} | {:.1} | {first:.1} | {later:.1} | {first_many:.1} | {later_many:.1} |",
            row.server, row.kind, row.before_us
        );
    }
    table
}

fn memory_table(rows: &[memory::Memory]) -> String {
    let mut table = format!(
        "\nMemory of {} objects:\n\n| | 3 tags each, MB | {} tags each, MB | B per further tag of an object |\n\
         |---|---|---|---|\n",
        memory::OBJECTS,
        3 + memory::MORE_TAGS
    );
    for row in rows {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let [without, with] = row.resident_bytes.map(|bytes| bytes as f64 / 1e6);
        let _ = writeln!(table, "| {} | {without:.1} | {with:.1} | {:.0} |", row.server, row.per_tag());
    }
    table
}

fn restart_table(costs: &[Cost]) -> String {
    let mut table = String::new();
    for row in costs {
        for back in row.back.iter().flatten() {
            if table.is_empty() {
                table.push_str(
                    "\nRestart after a kill:\n\n| | objects | purges remembered | first answer ms | first hit ms |\n\
                     |---|---|---|---|---|\n",
                );
            }
            let ms = |took| format!("{:.0}", us(took) / 1e3);
            let _ = writeln!(
                table,
                "| {} | {} | {} | {} | {} |",
                row.server,
                row.objects,
                back.predicates,
                ms(back.first_answer),
                back.first_hit.map_or_else(|| "none".to_owned(), ms)
            );
        }
    }
    table
}

fn warm_table(row: &warm::Warm) -> String {
    let s = |all: &Vec<f64>| median(all.clone());
    format!(
        "\nAn empty larder asked for {} URLs, {} at once:\n\n| | s |\n|---|---|\n| `larder warm` | {:.3} |\n\
         | h2load | {:.3} |\n| the bench's own client | {:.3} |\n",
        warm::URLS,
        warm::AT_ONCE,
        s(&row.warm_s),
        s(&row.h2load_s),
        s(&row.own_s)
    )
}

fn judge(measured: &Measured) -> Result<Vec<Judged>> {
    let cost = |objects| {
        let found = measured.costs.iter().find(|row| row.server == LARDER && row.objects == objects);
        found.with_context(|| format!("no row of {LARDER} with {objects} objects"))
    };
    let in_memory: Vec<&Cost> = measured.costs.iter().filter(|row| row.server == LARDER).collect();
    let one = |scenario: &str, target: String, figure: String, holds: bool| Judged {
        scenario: scenario.to_owned(),
        target,
        figure,
        verdict: Verdict::of(holds),
    };
    let mut judged = Vec::new();
    let (few, many) = (cost(FEW)?, cost(MANY)?);
    let p50 = |waits: &[Duration]| us(quantile(waits, 0.5));
    for (kind, few, many) in
        [("hard", Some(&few.hard), Some(&many.hard)), ("soft", few.soft.as_ref(), many.soft.as_ref())]
    {
        let (few, many) = few.zip(many).context("no soft purges of larder")?;
        let ratio = p50(many) / p50(few);
        judged.push(one(
            "one purge",
            format!("{kind}, {MANY} objects: p50 at most {FLAT_MAX} of that with {FEW}"),
            format!("{ratio:.3}"),
            ratio <= FLAT_MAX,
        ));
    }
    let longest = in_memory.iter().flat_map(|row| [Some(&row.hard), row.soft.as_ref()]).flatten();
    let longest = longest.map(|waits| us(quantile(waits, 0.99)) / 1e3).fold(0.0, f64::max);
    judged.push(one(
        "one purge",
        format!("in memory: p99 at most {PURGE_MAX_MS} ms, with any number of objects"),
        format!("{longest:.3} ms"),
        longest <= PURGE_MAX_MS,
    ));
    for scenario in [ONE_KEY, MANY_KEYS] {
        judged.push(measured.hits.cpu_at_most(scenario, LARDER_PURGED, BESIDE_MAX, LARDER)?);
        judged.push(measured.hits.p99_at_most(scenario, LARDER_PURGED, BESIDE_MAX, LARDER)?);
    }
    if let Some([few, many]) = measured.costs.iter().find_map(|row| row.back) {
        let added = many.first_answer.as_secs_f64() - few.first_answer.as_secs_f64();
        judged.push(one(
            LARDER_DISK,
            format!(
                "{} purges remembered: the first answer at most {RESTART_MAX_S} s later",
                restart::PREDICATES
            ),
            format!("{added:.3} s"),
            added <= RESTART_MAX_S,
        ));
    }
    let ratio = measured.warm.ratio();
    judged.push(one(
        "larder warm",
        format!("at most {WARM_MAX} of the time of h2load"),
        format!("{ratio:.3}"),
        ratio <= WARM_MAX,
    ));
    Ok(judged)
}

fn how() -> String {
    format!(
        "One server at a time, one worker on one core; origin, clients and whoever purges on another. All speak HTTP over \
         connections that are kept. \"One purge\": objects of {OBJECT_BYTES} B, each with its own tag, one of {GROUPS} group tags and one \
         that all carry; {PURGES} hard purges and {PURGES} soft ones of a group tag each, 10 ms apart, then one soft and one hard \
         purge of what all carry. Varnish answers with xkey (`PURGEKEYS`, as FOSHttpCache asks it), nginx takes {PURGES} URLs. That a purged \
         object is gone and another is there is looked at. \"fdatasync alone\": 512 B at the end of a file on the same disk, which is \
         ext4 on a loop device with its image in memory; larder has 64 MiB of memory in front of it. \"Hits\": larder runs \
         bench/full.toml, objects have 20 tags, and the purges are of tags that nothing has (of nginx: of URLs), each another \
         one, over 8 connections; the server's CPU time for them counts as that of its hits. \"10 000 keys\": in the order of \
         bench/load/zipf.lua. \"First hit\": every object is asked for once after the purges, so the figure is the mean of all; none of the \
         purges concerns any of them; patterns and bans are the same expressions on the URL. The kernel counts CPU time in 10 ms, which is \
         up to 4 % of a pass. \"Memory\" is resident memory of all processes after storing; each further tag has 14 B and is on {SHARED_BY} \
         objects. \"Restart\": kill -9, and the time from the program's start. \"none\": none of 500 objects was used without the origin. An h2load with one connection runs for each of the {} \
         requests at once, each with its part of the list, because each connection of h2load begins at the list's start. Medians of 5 \
         runs there, of 3 rounds of {} s for hits; one run of the others.",
        warm::AT_ONCE,
        3
    )
}

fn cost_json(row: &Cost) -> Value {
    let waits = |waits: &[Duration]| {
        let [p50, p99] = two(waits).map(round);
        json!({ "p50_us": p50, "p99_us": p99 })
    };
    json!({
        "server": row.server, "objects": row.objects, "hard": waits(&row.hard), "soft": row.soft.as_deref().map(waits),
        "all_us": row.all.map(|all| all.map(|took| round(us(took)))), "fdatasync": row.sync.as_deref().map(waits),
        "restarts": row.back.map(|both| both.map(|back| json!({
            "purges": back.predicates, "first_answer_ms": round(us(back.first_answer) / 1e3),
            "first_hit_ms": back.first_hit.map(|took| round(us(took) / 1e3)),
        }))),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::restart::Back;
    use super::*;
    use crate::measure::outcome::{Figures, Measured as InScenario, Outcome, Run};

    fn cost(server: &'static str, objects: u64, p50_us: u64) -> Cost {
        let waits = vec![Duration::from_micros(p50_us); 100];
        Cost {
            server,
            objects,
            hard: waits.clone(),
            soft: Some(waits),
            all: Some([Duration::from_millis(3), Duration::from_millis(4)]),
            sync: None,
            back: None,
        }
    }

    fn measured(many_us: u64, beside: f64, added_ms: u64, warm_s: f64) -> Measured {
        let figures = |server: &str, scale: f64| {
            let mut figures = Figures::new(server);
            let driven = crate::measure::outcome::tests::outcome().measured[0].rows[0].runs[0].driven;
            figures.runs.push(Run {
                driven: crate::measure::drive::Driven { p99_us: 100.0 * scale, ..driven },
                cpu_us_per_request: 10.0 * scale,
                origin_requests: 0,
                steal_percent: 0.0,
            });
            figures
        };
        let scenario = |name: &str| InScenario {
            scenario: name.to_owned(),
            load: String::new(),
            rows: vec![figures(LARDER, 1.0), figures(LARDER_PURGED, beside)],
        };
        let back = |ms| Back {
            predicates: 200,
            first_answer: Duration::from_millis(ms),
            first_hit: Some(Duration::from_millis(ms + 60)),
        };
        let disk = Cost { back: Some([back(100), back(100 + added_ms)]), ..cost(LARDER_DISK, MANY, 500) };
        Measured {
            costs: vec![cost(LARDER, FEW, 100), cost(LARDER, MANY, many_us), disk],
            hits: Outcome { measured: vec![scenario(ONE_KEY), scenario(MANY_KEYS)] },
            beside: Vec::new(),
            passes: Vec::new(),
            memory: vec![memory::Memory { server: LARDER, resident_bytes: [100_000_000, 180_000_000] }],
            warm: warm::Warm { warm_s: vec![warm_s], h2load_s: vec![1.0], own_s: vec![0.5] },
        }
    }

    #[test]
    fn each_target_is_judged_by_its_figures() {
        let missed = |measured: &Measured| -> Vec<String> {
            let judged = judge(measured).unwrap();
            judged.iter().filter(|judged| judged.missed()).map(|judged| judged.figure.clone()).collect()
        };
        assert_eq!(missed(&measured(119, 1.09, 900, 1.19)), Vec::<String>::new());
        assert_eq!(missed(&measured(121, 1.0, 0, 1.0)), ["1.210", "1.210"]);
        assert_eq!(missed(&measured(1100, 1.0, 0, 1.0)), ["11.000", "11.000", "1.100 ms"]);
        assert_eq!(missed(&measured(100, 1.11, 0, 1.0)), ["1.110", "1.110", "1.110", "1.110"]);
        assert_eq!(missed(&measured(100, 1.0, 1100, 1.0)), ["1.100 s"]);
        assert_eq!(missed(&measured(100, 1.0, 0, 1.21)), ["1.210"]);
    }

    #[test]
    fn rows_have_their_figures() {
        let measured = measured(110, 1.0, 50, 1.0);
        let text = [
            cost_table(&measured.costs),
            memory_table(&measured.memory),
            restart_table(&measured.costs),
            warm_table(&measured.warm),
        ]
        .concat();
        for line in [
            "| larder | 1000000 | 110 / 110 | 110 / 110 | 3.00 | 4.00 | – |",
            "| larder | 100.0 | 180.0 | 40 |",
            "| larder, a disk | 1000000 | 200 | 150 | 210 |",
            "| h2load | 1.000 |",
        ] {
            assert!(text.lines().any(|found| found == line), "{text}");
        }
    }
}
