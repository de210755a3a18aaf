//! The example's alerts can fire, and the runbook says what to do then.
//!
//! In: the rules for Prometheus, the page of metrics and the runbook. Out: every metric in a rule that larder does not have, and every alert without a place in
//! the runbook. Deliberately absent: the syntax of rules, which `promtool check rules` knows.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

const RULES: &str = "examples/prometheus/alerts.yml";
const METRICS: &str = "docs/reference/metrics.md";
const RUNBOOK: &str = "docs/guide/runbook.md";

/// Fails with everything that is missing.
pub(crate) fn run(root: &Path) -> Result<()> {
    let read = |name: &str| fs::read_to_string(root.join(name)).with_context(|| name.to_owned());
    let rules = read(RULES)?;
    let faults = faults(&rules, &read(METRICS)?, &read(RUNBOOK)?);
    ensure!(faults.is_empty(), "{RULES}:\n  {}", faults.join("\n  "));
    println!(
        "alerts: {}, each of metrics that are there, and with its place in the runbook",
        alerts(&rules).count()
    );
    Ok(())
}

fn alerts(rules: &str) -> impl Iterator<Item = &str> {
    rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: "))
}

fn faults(rules: &str, metrics: &str, runbook: &str) -> Vec<String> {
    let is_there = |name: &&str| {
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        [Some(*name), family].into_iter().flatten().any(|name| metrics.contains(&format!("## `{name}`\n")))
    };
    let words = rules.split(|symbol: char| !symbol.is_ascii_alphanumeric() && !"_:".contains(symbol));
    let named = words.filter(|word| word.starts_with("larder_") || word.starts_with("process_"));
    let unknown = named.filter(|name| !is_there(name)).map(|name| format!("no metric {name}"));
    let silent = alerts(rules).filter(|alert| !runbook.contains(&format!("`{alert}`")));
    unknown.chain(silent.map(|alert| format!("{alert} has no place in {RUNBOOK}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_that_is_not_there_and_an_alert_without_a_place_are_faults() {
        let rules = "rules:\n  - record: larder:hit_ratio\n  - alert: LarderSlow\n    expr: larder_x_seconds_sum / larder_y > up\n";
        let metrics = "## `larder_x_seconds`\n\n## `larder_y`\n";
        assert_eq!(faults(rules, metrics, "Alert: `LarderSlow`."), [""; 0]);
        let missing = ["no metric larder_x_seconds_sum", "LarderSlow has no place in docs/guide/runbook.md"];
        assert_eq!(faults(rules, "## `larder_y`\n", "`LarderSlowly`"), missing);
    }
}
