//! When a count passes, and when it does not.
#![allow(clippy::unwrap_used)]

use super::*;

fn figures(rows: &[(&str, u64)]) -> BTreeMap<String, u64> {
    rows.iter().map(|(name, figure)| ((*name).to_owned(), *figure)).collect()
}

fn tools(rustc: &str) -> Tools {
    Tools(BTreeMap::from([("rustc".to_owned(), rustc.to_owned())]))
}

/// Judges by figures taken with rustc 1: a hit of 10 000 instructions and a miss of 50 000.
fn check(rustc: &str, counted: &[(&str, u64)], passes: bool) {
    let committed = Figures { tools: tools("1"), of: figures(&[("hit", 10_000), ("miss", 50_000)]) };
    let judged = judge(&tools(rustc), &figures(counted), &committed);
    assert_eq!(judged.is_ok(), passes, "{counted:?}: {judged:?}");
}

#[test]
fn three_percent_above_fails_and_below_passes() {
    check("1", &[("hit", 10_300), ("miss", 50_000)], true);
    check("1", &[("hit", 10_301), ("miss", 50_000)], false);
    check("1", &[("hit", 10_000), ("miss", 51_501)], false);
    check("1", &[("hit", 2_000), ("miss", 2_000)], true);
}

#[test]
fn a_scenario_without_figure_and_a_figure_without_scenario_fail() {
    check("1", &[("hit", 10_000)], false);
    check("1", &[("hit", 10_000), ("miss", 50_000), ("range", 1)], false);
}

#[test]
fn figures_of_other_tools_judge_nothing() {
    check("2", &[("hit", 99_000), ("miss", 50_000)], true);
    let differences = tools("2").differences(&tools("1"));
    assert_eq!(differences, ["rustc: committed with `1`, here is `2`"]);
}

#[test]
fn figures_are_read_as_written() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("bench")).unwrap();
    let written = Figures { tools: tools("1"), of: figures(&[("hit", 15_858)]) };
    written.write(root.path()).unwrap();
    let read = Figures::read(root.path()).unwrap();
    assert_eq!((read.tools, read.of), (written.tools, written.of));
}

#[test]
fn every_scenario_has_a_name_of_its_own() {
    let scenarios = scenario::all(&crate::checkout()).unwrap();
    let mut names: Vec<&str> = scenarios.iter().map(|scenario| scenario.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), scenarios.len());
}
