//! When a count passes, and when it does not.
#![allow(clippy::unwrap_used)]

use super::*;

fn figures(rows: &[(&str, u64)]) -> BTreeMap<String, u64> {
    rows.iter().map(|(name, figure)| ((*name).to_owned(), *figure)).collect()
}

fn tools(rustc: &str) -> Tools {
    with_library(rustc, "2.36")
}

fn with_library(rustc: &str, libc: &str) -> Tools {
    Tools(BTreeMap::from([("rustc".to_owned(), rustc.to_owned()), ("libc".to_owned(), libc.to_owned())]))
}

/// A row of purges is called that here.
fn margin(name: &str) -> f64 {
    if name == "purge" { MARGIN_OF_PURGES_PERCENT } else { MARGIN_PERCENT }
}

fn judged(tools: &Tools, counted: &BTreeMap<String, u64>, committed: &Figures) -> Result<String> {
    judge(tools, counted, (committed, &margin))
}

fn committed() -> Figures {
    Figures { tools: tools("1"), of: figures(&[("hit", 10_000), ("miss", 50_000)]) }
}

/// Judges by figures taken with rustc 1: a hit of 10 000 instructions and a miss of 50 000.
fn check(rustc: &str, counted: &[(&str, u64)], passes: bool) {
    let judged = judged(&tools(rustc), &figures(counted), &committed());
    assert_eq!(judged.is_ok(), passes, "{counted:?}: {judged:?}");
}

#[test]
fn more_than_three_percent_above_or_below_fails() {
    check("1", &[("hit", 10_300), ("miss", 50_000)], true);
    check("1", &[("hit", 10_301), ("miss", 50_000)], false);
    check("1", &[("hit", 10_000), ("miss", 51_501)], false);
    check("1", &[("hit", 9_700), ("miss", 50_000)], true);
    check("1", &[("hit", 9_699), ("miss", 50_000)], false);
}

#[test]
fn a_purge_has_a_margin_of_its_own() {
    let committed = Figures { tools: tools("1"), of: figures(&[("purge", 10_000)]) };
    let passes = |count| judged(&tools("1"), &figures(&[("purge", count)]), &committed).is_ok();
    assert_eq!([8_999, 9_000, 11_000, 11_001].map(passes), [false, true, true, false]);
    let of = |work| {
        scenario::all(&crate::checkout())
            .unwrap()
            .iter()
            .filter(|one| one.name.contains(work))
            .map(Scenario::margin_percent)
            .collect::<Vec<_>>()
    };
    assert_eq!(of("purge of"), [MARGIN_OF_PURGES_PERCENT; 2]);
    assert_eq!(of("after a purge"), [MARGIN_PERCENT]);
}

#[test]
fn a_failure_names_what_moved_on_either_side_and_the_library_that_differs() {
    let counted = figures(&[("hit", 11_000), ("miss", 40_000)]);
    let failed = judged(&with_library("1", "2.41"), &counted, &committed()).unwrap_err().to_string();
    for said in [
        "above the committed figures:\n  hit: +10.00 % where 3 %",
        "below the committed figures:\n  miss: -20.00 % where 3 %",
    ] {
        assert!(failed.contains(said), "{failed}");
    }
    assert!(failed.ends_with("libc: committed with `2.36`, here is `2.41`"), "{failed}");
}

#[test]
fn a_scenario_without_figure_and_a_figure_without_scenario_fail() {
    check("1", &[("hit", 10_000)], false);
    check("1", &[("hit", 10_000), ("miss", 50_000), ("range", 1)], false);
}

#[test]
fn figures_of_another_compiler_judge_nothing_and_the_closing_line_says_so() {
    let closing = judged(&tools("2"), &figures(&[("hit", 99_000)]), &committed()).unwrap();
    assert!(closing.starts_with("NOT JUDGED: rustc: committed with `1`, here is `2`;"), "{closing}");
}

#[test]
fn figures_of_another_c_library_are_judged() {
    let judged = |hit| {
        let counted = figures(&[("hit", hit), ("miss", 50_000)]);
        judged(&with_library("1", "2.41"), &counted, &committed())
    };
    assert_eq!(judged(10_000).unwrap(), "2 scenarios, from +0.00 % to +0.00 % beside the committed figures");
    assert!(judged(99_000).is_err());
}

#[test]
fn of_a_c_library_only_the_version_counts() {
    assert_eq!(last_word("ldd (Debian GLIBC 2.36-9+deb12u14) 2.36"), "2.36");
    assert_eq!(last_word("ldd (Debian GLIBC 2.36-9+deb12u15) 2.36"), "2.36");
    assert_eq!(last_word(""), "");
}

#[test]
fn a_figure_of_nothing_is_none() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("bench")).unwrap();
    Figures { tools: tools("1"), of: figures(&[("hit", 0)]) }.write(root.path()).unwrap();
    assert!(Figures::read(root.path()).is_err());
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
