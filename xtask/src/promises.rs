//! The page of promises is true: each promise of the README has a test for each kind of store, and each test that it names is there.
//!
//! In: README.md, docs/design/promises.md, and the tests that the page names. Out: every promise without a section, every kind of
//! store without a row, every empty cell, every name of a test that leads nowhere, and every test of `every_store` that the page
//! leaves out. Deliberately absent: whether a test holds what the page says of it. That was seen by making it fail.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

const PAGE: &str = "docs/design/promises.md";
/// Under this heading the README has its list.
const LIST: &str = "## What it promises";
const KINDS: [&str; 7] = ["memory", "`single`", "`mirror`", "`stripe`", "`hash`", "plain files", "Redis"];
/// Kind, meaning, fault, tests.
const CELLS: usize = 4;
const SCENARIOS: &str = "tests/scenarios/";
/// Where the paths of tests begin.
const TESTS: &str = "crates/larder/tests/";
const EVERY_STORE: &str = "proofs/every_store";

/// Fails with everything that is missing, empty or not there.
pub(crate) fn run(root: &Path) -> Result<()> {
    let read = |name: &str| fs::read_to_string(root.join(name)).with_context(|| name.to_owned());
    let (readme, page) = (read("README.md")?, read(PAGE)?);
    let source = |name: &str| fs::read_to_string(root.join(TESTS).join(name)).ok();
    let mut faults = faults(&readme, &page, &|test| is_there(test, &source));
    for file in sources(&root.join(TESTS).join(EVERY_STORE))? {
        let name = file.strip_prefix(root.join(TESTS)).unwrap_or(&file).to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).with_context(|| name.clone())?;
        let named = tests(&text).map(|test| format!("{name}::{test}"));
        faults.extend(named.filter(|test| !page.contains(test)).map(|test| format!("{test} is in no cell")));
    }
    ensure!(faults.is_empty(), "{PAGE}:\n  {}", faults.join("\n  "));
    println!("promises: each has a test for each kind of store");
    Ok(())
}

fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files: Vec<_> = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|kind| kind == "rs"));
    files.sort();
    Ok(files)
}

/// Everything that is wrong with a page; `is_there` knows the tests.
fn faults(readme: &str, page: &str, is_there: &dyn Fn(&str) -> bool) -> Vec<String> {
    let promises = promises(readme);
    let mut faults = Vec::new();
    if promises.is_empty() {
        faults.push(format!("the README has no list under {LIST:?}"));
    }
    let sections: Vec<&str> = page.split("\n## ").skip(1).collect();
    for (number, promise) in (1..).zip(&promises) {
        let heading = format!("{number}. {promise}");
        match sections.iter().find(|section| section.lines().next() == Some(&heading)) {
            Some(section) => faults.extend(faults_of(&heading, section, is_there)),
            None => faults.push(format!("no section \"{heading}\"")),
        }
    }
    faults
}

/// The promises in a README, each as one line without links.
fn promises(readme: &str) -> Vec<String> {
    let list = readme.split_once(LIST).map_or("", |(_, after)| after);
    let list = list.split("\n## ").next().unwrap_or(list);
    let item = |line: &str| {
        let (number, text) = line.split_once(". ")?;
        number.parse::<u32>().ok()?;
        Some(without_links(text.trim_end_matches('.')))
    };
    list.lines().filter_map(item).collect()
}

/// `[text](target)` as `text`.
fn without_links(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('[') {
        let Some((shown, after)) = after.split_once("](") else { break };
        let Some((_, after)) = after.split_once(')') else { break };
        plain.extend([before, shown]);
        rest = after;
    }
    plain + rest
}

fn faults_of(heading: &str, section: &str, is_there: &dyn Fn(&str) -> bool) -> Vec<String> {
    let rows: Vec<Vec<&str>> = section.lines().filter_map(row).collect();
    let mut faults = Vec::new();
    for kind in KINDS {
        let Some(cells) = rows.iter().find(|cells| cells.first() == Some(&kind)) else {
            faults.push(format!("{heading}: no row for {kind}"));
            continue;
        };
        if cells.len() != CELLS || cells.iter().any(|cell| cell.is_empty()) {
            faults.push(format!("{heading}: {kind}: a cell is empty or missing"));
            continue;
        }
        let tests: Vec<&str> = cells.last().map_or("", |cell| cell).split('`').skip(1).step_by(2).collect();
        if tests.is_empty() {
            faults.push(format!("{heading}: {kind}: no test is named"));
        }
        let missing = tests.into_iter().filter(|test| !is_there(test));
        faults.extend(missing.map(|test| format!("{heading}: {kind}: there is no test {test}")));
    }
    faults
}

/// The cells of a line of a table.
fn row(line: &str) -> Option<Vec<&str>> {
    let cells = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(cells.split('|').map(str::trim).collect())
}

/// Whether there is such a test: `folder/file.rs::name`, or a scenario.
fn is_there(test: &str, source: &dyn Fn(&str) -> Option<String>) -> bool {
    if let Some(scenario) = test.strip_prefix(SCENARIOS) {
        return scenario.ends_with(".toml") && source(&format!("../../../{SCENARIOS}{scenario}")).is_some();
    }
    let Some((file, name)) = test.split_once("::") else { return false };
    // Those of other crates are named from the root.
    let file = if file.starts_with("crates/") { format!("../../../{file}") } else { file.to_owned() };
    source(&file).is_some_and(|text| tests(&text).any(|found| found == name))
}

/// The names of the tests in a source file.
fn tests(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    text.lines().filter_map(move |line| {
        let line = line.trim();
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
            return None;
        }
        let (_, after) = line.split_once("fn ").filter(|_| is_test)?;
        is_test = false;
        after.split(['(', '<']).next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = "# a\n\n## What it promises\n\n1. All is [well](docs/x.md).\n2. More.\n\nText.\n\n## Further\n\n1. Other.\n";

    fn section(heading: &str, last: &str) -> String {
        let row = |kind: &&str| format!("| {kind} | means | fault | {last} |\n");
        format!(
            "\n## {heading}\n\n| store | means | fault | test |\n|---|---|---|---|\n{}",
            KINDS.iter().map(row).collect::<String>()
        )
    }

    fn check(page: &str, expected: usize) {
        let found = faults(README, page, &|test| test == "a.rs::holds");
        assert_eq!(found.len(), expected, "{found:?}");
    }

    #[test]
    fn each_promise_has_a_row_and_a_test_for_each_kind_of_store() {
        let (first, second) = ("1. All is well", "2. More");
        let page = |one: &str, other: &str| section(first, one) + &section(second, other);
        check(&page("`a.rs::holds`", "both `a.rs::holds` and `a.rs::holds`"), 0);
        check(&page("`a.rs::holds`", "`a.rs::other`"), KINDS.len());
        check(&page("`a.rs::holds`", "untested"), KINDS.len());
        check(&page("`a.rs::holds`", ""), KINDS.len());
        check(&section(first, "`a.rs::holds`"), 1);
        check(&page("`a.rs::holds`", "`a.rs::holds`").replacen("| `hash` |", "| other |", 1), 1);
        check(&page("`a.rs::holds`", "`a.rs::holds`").replacen("| fault |", "| |", 2), 1);
    }

    #[test]
    fn a_test_is_a_function_that_is_one() {
        let text = "fn helper() {}\n#[test]\nfn one() {}\n#[tokio::test(flavor = \"x\")]\n#[ignore]\nasync fn two() {}\nfn three() {}\n";
        assert_eq!(tests(text).collect::<Vec<_>>(), ["one", "two"]);
        let source = |name: &str| {
            (name == "p/a.rs" || name == "../../../tests/scenarios/b/c.toml").then(|| text.to_owned())
        };
        for (test, expected) in [
            ("p/a.rs::one", true),
            ("p/a.rs::helper", false),
            ("p/b.rs::one", false),
            ("p/a.rs", false),
            ("tests/scenarios/b/c.toml", true),
            ("tests/scenarios/b/d.toml", false),
        ] {
            assert_eq!(is_there(test, &source), expected, "{test}");
        }
    }
}
