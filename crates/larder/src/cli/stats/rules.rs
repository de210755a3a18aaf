//! The table of rules: which rule costs hits, and why.
//!
//! In: what `/stats` says of them. Out: the busiest rules, in the order of the config, with a last row that says how many are
//! left out. There is no table where all requests belong to one rule: then the other tables tell all of it.

use serde_json::Value;

use super::figures::{NOTHING, each, number, refused, tenths, wait};
use crate::cli::table::{Lean, Table, count};

/// So many rows.
const ROWS_MAX: usize = 20;
/// So many reasons in a row.
const REASONS_MAX: usize = 2;

/// What each rule answered, and from where.
pub(super) fn rules(stats: &Value) -> Table {
    let right = |name| (name, Lean::Right);
    let mut table = Table::new(&[
        ("RULE", Lean::Left),
        right("REQUESTS"),
        right("HIT RATIO"),
        right("JOINED"),
        right("ASKED"),
        right("ORIGIN MEAN"),
        ("NOT STORED", Lean::Left),
    ]);
    let all: Vec<&Value> = each(&stats["rules"]).collect();
    if all.len() < 2 {
        return table;
    }
    let requests = |rule: &Value| rule["requests"].as_u64().unwrap_or_default();
    let mut busiest: Vec<u64> = all.iter().map(|rule| requests(rule)).collect();
    busiest.sort_unstable_by_key(|requests| std::cmp::Reverse(*requests));
    let least = busiest.get(ROWS_MAX - 1).copied().unwrap_or_default();
    let shown = all.iter().filter(|rule| requests(rule) >= least).take(ROWS_MAX);
    let (mut rows, mut told) = (0, 0_u64);
    for rule in shown {
        let text = |name: &str| rule[name].as_str().unwrap_or(NOTHING).to_owned();
        let result = |word: &str| count(rule["results"][word].as_u64().unwrap_or_default());
        let ratio = rule["hit_ratio"].as_f64().map_or_else(|| NOTHING.to_owned(), tenths);
        (rows, told) = (rows + 1, told.saturating_add(requests(rule)));
        table.row([
            format!("{} {}", text("site"), text("rule")),
            number(&rule["requests"]),
            ratio,
            result("joined"),
            result("asked"),
            wait(&rule["origin_mean"]),
            reasons(&rule["not_stored"]),
        ]);
    }
    if all.len() > rows {
        let left = busiest.iter().fold(0_u64, |sum, requests| sum.saturating_add(*requests)) - told;
        table.row([format!("{} others", all.len() - rows), count(left)]);
    }
    table
}

/// The most frequent reasons.
fn reasons(counts: &Value) -> String {
    let all = refused(counts);
    let most: Vec<&str> = all.split(", ").take(REASONS_MAX).collect();
    most.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, requests: u64) -> Value {
        serde_json::json!({
            "site": "shop.example", "rule": name, "requests": requests, "hit_ratio": 0.75,
            "results": {"memory": 3, "joined": 4, "asked": 1}, "origin_mean": 0.02,
            "not_stored": {"set-cookie": 5, "private": 2, "status": 1},
        })
    }

    #[test]
    fn each_rule_has_a_row_with_the_reasons_that_count_most() {
        let text = rules(&serde_json::json!({"rules": [rule("/blog/*", 8), rule("(site)", 1)]})).text(0);
        for part in [
            "RULE                  REQUESTS  HIT RATIO  JOINED  ASKED  ORIGIN MEAN  NOT STORED\n",
            "shop.example /blog/*         8     75.0 %       4      1      20.0 ms  5 set-cookie, 2 private\n",
            "shop.example (site)          1 ",
        ] {
            assert!(text.contains(part), "no {part:?} in:\n{text}");
        }
    }

    #[test]
    fn the_busiest_rules_stay_in_their_order_and_the_others_are_counted() {
        let all: Vec<Value> = (0..25_u64).map(|index| rule(&format!("r{index}"), 100 + index % 24)).collect();
        let text = rules(&serde_json::json!({"rules": all})).text(0);
        assert_eq!(text.lines().count(), 1 + ROWS_MAX + 1, "{text}");
        assert!(text.contains("5 others"), "{text}");
        assert!(!text.contains("shop.example r0 ") && text.contains("shop.example r23 "), "{text}");
    }

    #[test]
    fn one_rule_needs_no_table() {
        let one = serde_json::json!({"rules": [rule("(site)", 1)]});
        assert!(rules(&one).is_empty() && rules(&Value::Null).is_empty());
    }
}
