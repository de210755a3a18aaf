//! tests/conformance/expected.json: the committed outcome of every test.
//!
//! In: the file, and the outcomes of a run. Out: what differs, in both directions, so that a repaired test leaves the
//! list as surely as a broken one is seen.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::score::{Outcome, Outcomes};

const FILE: &str = "tests/conformance/expected.json";

/// What is committed.
pub(crate) fn read(root: &Path) -> Result<Outcomes> {
    parse(&fs::read_to_string(root.join(FILE)).context(FILE)?)
}

fn parse(text: &str) -> Result<Outcomes> {
    let file: Value = serde_json::from_str(text).context(FILE)?;
    let outcomes = file.get("outcomes").and_then(Value::as_object).context("no object `outcomes`")?;
    let entry = |(id, word): (&String, &Value)| {
        let outcome = word.as_str().and_then(Outcome::of_word);
        Ok((id.clone(), outcome.with_context(|| format!("{FILE}: {id}: {word} is no outcome"))?))
    };
    outcomes.iter().map(entry).collect()
}

/// Commits this run.
pub(crate) fn write(root: &Path, version: &str, outcomes: &Outcomes) -> Result<()> {
    let words: Map<String, Value> =
        outcomes.iter().map(|(id, outcome)| (id.clone(), outcome.word().into())).collect();
    let file = json!({ "suite": format!("http-cache-tests {version}"), "outcomes": words });
    fs::write(root.join(FILE), format!("{file:#}\n")).context(FILE)
}

/// A test whose outcome is not what is committed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Difference<'a> {
    pub(crate) id: &'a str,
    pub(crate) expected: Outcome,
    pub(crate) found: Outcome,
}

/// Every difference. A test that only one side knows is `untested` on the other.
pub(crate) fn differences<'a>(expected: &'a Outcomes, found: &'a Outcomes) -> Vec<Difference<'a>> {
    let of = |outcomes: &Outcomes, id: &str| outcomes.get(id).copied().unwrap_or(Outcome::Untested);
    let mut ids: Vec<&String> = expected.keys().chain(found.keys()).collect();
    ids.sort();
    ids.dedup();
    ids.into_iter()
        .map(|id| Difference { id, expected: of(expected, id), found: of(found, id) })
        .filter(|difference| difference.expected != difference.found)
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_difference_is_seen_in_both_directions() {
        let expected =
            parse(r#"{ "outcomes": { "a": "pass", "b": "fail", "gone": "yes", "same": "no" } }"#).unwrap();
        let found =
            parse(r#"{ "outcomes": { "a": "fail", "b": "pass", "new": "no", "same": "no" } }"#).unwrap();
        let ids: Vec<_> = differences(&expected, &found).iter().map(|d| d.id.to_owned()).collect();
        assert_eq!(ids, ["a", "b", "gone", "new"]);
        assert_eq!(differences(&expected, &expected), []);
    }

    #[test]
    fn an_unknown_word_is_an_error() {
        let failed = parse(r#"{ "outcomes": { "a": "passed" } }"#).unwrap_err();
        assert!(failed.to_string().contains("a:"), "{failed}");
    }
}
