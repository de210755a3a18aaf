//! From what the suite says of a test to one word: pass, fail, yes, no, or why there is no verdict.
//!
//! In: the list of tests and one run's raw results, both as JSON from tests/conformance/suite.mjs. Out: an [`Outcome`]
//! for every test, by the rules of the suite's own display, in the words of its legend.
//! One difference: an exception that is neither the suite's assertion nor its set-up check (a request that was cut, say)
//! is `harness_fail`. The suite means that too, but tests a value that never occurs.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

/// Longest chain of prerequisites; the suite's own is four.
const DEPTH_MAX: usize = 16;

/// What the suite says of its test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A requirement of the specifications.
    Required,
    /// What a cache that makes the most of them does.
    Optimal,
    /// A question without a right answer.
    Check,
}

impl Kind {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Optimal => "optimal",
            Self::Check => "check",
        }
    }
}

/// The verdict on one test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Pass,
    Fail,
    OptionalFail,
    Yes,
    No,
    SetupFail,
    HarnessFail,
    DependencyFail,
    Retry,
    Untested,
}

impl Outcome {
    const ALL: [Self; 10] = [
        Self::Pass,
        Self::Fail,
        Self::OptionalFail,
        Self::Yes,
        Self::No,
        Self::SetupFail,
        Self::HarnessFail,
        Self::DependencyFail,
        Self::Retry,
        Self::Untested,
    ];

    /// The suite's own word, as it stands in expected.json and in the page.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::OptionalFail => "optional_fail",
            Self::Yes => "yes",
            Self::No => "no",
            Self::SetupFail => "setup_fail",
            Self::HarnessFail => "harness_fail",
            Self::DependencyFail => "dependency_fail",
            Self::Retry => "retry",
            Self::Untested => "untested",
        }
    }

    pub(crate) fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.word() == word)
    }

    /// Counts as passed: for the score, and for tests that depend on this one.
    pub(crate) const fn is_good(self) -> bool {
        matches!(self, Self::Pass | Self::Yes)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// One test.
#[derive(Debug)]
pub(crate) struct Test {
    pub(crate) id: String,
    /// A sentence in Markdown.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    depends_on: Vec<String>,
}

/// Tests of one matter.
#[derive(Debug)]
pub(crate) struct Suite {
    pub(crate) name: String,
    /// Not part of the suite's index and of its scores.
    pub(crate) apart: bool,
    pub(crate) tests: Vec<Test>,
}

/// Another cache, with the raw results that came with the suite.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) is_browser: bool,
    pub(crate) results: Results,
}

/// What the suite said of each test: `true`, or the name and the message of what was thrown.
pub(crate) type Results = Map<String, Value>;

/// The verdict on every test, by id.
pub(crate) type Outcomes = BTreeMap<String, Outcome>;

/// Everything that the package holds.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) suites: Vec<Suite>,
    pub(crate) peers: Vec<Peer>,
}

impl Package {
    /// Reads what `suite.mjs list` wrote.
    ///
    /// # Errors
    /// It lacks something, or names a kind that is not known.
    pub(crate) fn read(list: &Value) -> Result<Self> {
        let suites = array(list, "suites")?.iter().map(suite).collect::<Result<_>>()?;
        let peers = array(list, "peers")?.iter().map(peer).collect::<Result<_>>()?;
        Ok(Self { suites, peers })
    }

    /// Every test, in the suite's order.
    pub(crate) fn tests(&self) -> impl Iterator<Item = &Test> {
        self.suites.iter().flat_map(|suite| &suite.tests)
    }

    /// The verdict on every test.
    pub(crate) fn judge(&self, results: &Results) -> Outcomes {
        self.tests().map(|test| (test.id.clone(), self.outcome(test, results, 0))).collect()
    }

    fn outcome(&self, test: &Test, results: &Results, depth: usize) -> Outcome {
        let Some(result) = results.get(&test.id) else {
            return Outcome::Untested;
        };
        let met = |id: &String| {
            let prerequisite = self.tests().find(|test| test.id == *id);
            prerequisite.is_some_and(|test| self.outcome(test, results, depth + 1).is_good())
        };
        if depth > DEPTH_MAX || !test.depends_on.iter().all(met) {
            return Outcome::DependencyFail;
        }
        own(test.kind, result)
    }

    /// How many tests of `kind` are good, and how many there are; those apart, or the others.
    pub(crate) fn score(&self, kind: Kind, apart: bool, outcomes: &Outcomes) -> (usize, usize) {
        let tests = self.suites.iter().filter(|suite| suite.apart == apart).flat_map(|suite| &suite.tests);
        let of_kind: Vec<_> = tests.filter(|test| test.kind == kind).collect();
        let good = of_kind.iter().filter(|test| outcomes.get(&test.id).is_some_and(|o| o.is_good()));
        (good.count(), of_kind.len())
    }
}

/// The verdict on a test by itself.
fn own(kind: Kind, result: &Value) -> Outcome {
    let thrown = |place| result.get(place).and_then(Value::as_str).unwrap_or_default();
    match (result == &Value::Bool(true), thrown(0), kind) {
        (true, _, Kind::Check) => Outcome::Yes,
        (true, ..) => Outcome::Pass,
        (false, "Setup", _) if thrown(1) == "retry" => Outcome::Retry,
        (false, "Setup", _) => Outcome::SetupFail,
        (false, "Assertion", Kind::Required) => Outcome::Fail,
        (false, "Assertion", Kind::Optimal) => Outcome::OptionalFail,
        (false, "Assertion", Kind::Check) => Outcome::No,
        (false, ..) => Outcome::HarnessFail,
    }
}

fn array<'a>(value: &'a Value, name: &str) -> Result<&'a Vec<Value>> {
    value.get(name).and_then(Value::as_array).with_context(|| format!("no list `{name}`"))
}

fn string(value: &Value, name: &str) -> Result<String> {
    let found = value.get(name).and_then(Value::as_str).with_context(|| format!("no string `{name}`"))?;
    Ok(found.to_owned())
}

fn suite(value: &Value) -> Result<Suite> {
    Ok(Suite {
        name: string(value, "name")?,
        apart: value.get("apart") == Some(&Value::Bool(true)),
        tests: array(value, "tests")?.iter().map(test).collect::<Result<_>>()?,
    })
}

fn test(value: &Value) -> Result<Test> {
    let kind = string(value, "kind")?;
    let kinds = [Kind::Required, Kind::Optimal, Kind::Check];
    let kind = kinds.into_iter().find(|k| k.word() == kind).with_context(|| format!("kind `{kind}`"))?;
    let depends_on = array(value, "depends_on")?.iter().filter_map(|id| Some(id.as_str()?.to_owned()));
    let depends_on = depends_on.collect();
    Ok(Test { id: string(value, "id")?, name: string(value, "name")?, kind, depends_on })
}

fn peer(value: &Value) -> Result<Peer> {
    Ok(Peer {
        name: string(value, "name")?,
        version: string(value, "version")?,
        is_browser: string(value, "type")? == "browser",
        results: value.get("results").and_then(Value::as_object).context("no results")?.clone(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn check(kind: &str, result: &Value, wanted: Outcome) {
        let list = json!({ "peers": [], "suites": [{ "name": "a", "apart": false, "tests": [
            { "id": "t", "name": "n", "kind": kind, "depends_on": [] }] }] });
        let package = Package::read(&list).unwrap();
        let results = json!({ "t": result }).as_object().unwrap().clone();
        assert_eq!(package.judge(&results)["t"], wanted, "{kind} {result}");
    }

    #[test]
    fn a_result_is_judged_by_its_kind() {
        check("required", &json!(true), Outcome::Pass);
        check("optimal", &json!(true), Outcome::Pass);
        check("check", &json!(true), Outcome::Yes);
        check("required", &json!(["Assertion", "m"]), Outcome::Fail);
        check("optimal", &json!(["Assertion", "m"]), Outcome::OptionalFail);
        check("check", &json!(["Assertion", "m"]), Outcome::No);
        check("check", &json!(["Setup", "m"]), Outcome::SetupFail);
        check("optimal", &json!(["Setup", "retry"]), Outcome::Retry);
        check("required", &json!(["AbortError", "m"]), Outcome::HarnessFail);
        check("required", &json!(null), Outcome::HarnessFail);
    }

    #[test]
    fn a_test_counts_only_with_its_prerequisites() {
        let test =
            |id: &str, on: &[&str]| json!({ "id": id, "name": "n", "kind": "required", "depends_on": on });
        let list = json!({ "peers": [], "suites": [{ "name": "a", "apart": false, "tests": [
            test("base", &[]), test("next", &["base"]), test("last", &["next"]), test("round", &["round"]),
            test("orphan", &["nobody"])] }] });
        let package = Package::read(&list).unwrap();
        let raw =
            json!({ "base": ["Assertion", "m"], "next": true, "last": true, "round": true, "orphan": true });
        let outcomes = package.judge(raw.as_object().unwrap());
        assert_eq!(outcomes["base"], Outcome::Fail);
        for dependent in ["next", "last", "round", "orphan"] {
            assert_eq!(outcomes[dependent], Outcome::DependencyFail, "{dependent}");
        }
        assert_eq!(package.judge(&Map::new())["base"], Outcome::Untested);
        assert_eq!(package.score(Kind::Required, false, &outcomes), (0, 5));
        assert_eq!(package.score(Kind::Required, true, &outcomes), (0, 0));
    }

    #[test]
    fn every_word_is_read_back() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::of_word(outcome.word()), Some(outcome));
        }
        assert_eq!(Outcome::of_word("passed"), None);
    }
}
