//! What is counted of pages that are put together from templates and fragments.
//!
//! In: what a page calls when it is answered, when a fragment came or failed, and when a template was compiled. Out: sums
//! over all workers ([`AssemblySnapshot`]), and their families.
//! The limits that pages reach are some of the failures of fragments, counted once: the vocabulary says which.
//! Deliberately absent: the meaning of a word. Languages, failures and problems are labels of the crates that decide.

use std::time::Duration;

use crate::cells::Cells;
use crate::exposition::Exposition;
use crate::family;
use crate::histogram::{Histogram, HistogramSnapshot};
use crate::label::{Label, Vocabulary};
use crate::sums::{Count, counts, sum, sum_histograms};

/// How a page came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageHow {
    /// It was put together before, and is used again.
    Kept,
    /// All of its parts were in memory.
    Whole,
    /// It was sent while parts of it were on their way.
    Open,
}

impl Label for PageHow {
    const NAME: &'static str = "how";
    const TOKENS: &'static [&'static str] = &["kept", "whole", "open"];

    fn index(&self) -> usize {
        *self as usize
    }
}

/// One worker's counters that belong to no site and no store.
pub(crate) struct AssemblyCells {
    failures: Cells,
    /// Opened less closed.
    open: Cells,
    cookies_dropped: Cells,
    wait: Histogram,
    compiled: Cells,
    /// By language, then by problem.
    problems: Cells,
}

impl AssemblyCells {
    pub(crate) fn new(vocabulary: &Vocabulary) -> Self {
        Self {
            failures: Cells::new(vocabulary.fragment_failure.len()),
            open: Cells::new(1),
            cookies_dropped: Cells::new(1),
            wait: Histogram::default(),
            compiled: Cells::new(vocabulary.language.len()),
            problems: Cells::new(vocabulary.language.len() * vocabulary.template_problem.len()),
        }
    }
}

impl AssemblyCells {
    pub(crate) fn failed(&self, reason: usize) {
        self.failures.add(reason, 1);
    }

    pub(crate) fn opened(&self) {
        self.open.add(0, 1);
    }

    pub(crate) fn closed(&self) {
        // Cells wrap: this is one less.
        self.open.add(0, u64::MAX);
    }

    pub(crate) fn dropped_cookies(&self, count: u64) {
        self.cookies_dropped.add(0, count);
    }

    pub(crate) fn waited(&self, waited: Duration) {
        self.wait.observe(waited);
    }

    pub(crate) fn compiled(&self, language: usize) {
        self.compiled.add(language, 1);
    }

    pub(crate) fn problem(&self, place: usize) {
        self.problems.add(place, 1);
    }
}

/// Pages and their parts, as far as they belong to no site and no store.
#[derive(Clone, Debug)]
pub struct AssemblySnapshot {
    /// Includes that failed, by reason.
    pub failures: Vec<Count>,
    /// Those of them that are limits.
    pub limits: Vec<Count>,
    /// Pages that are being sent while parts of them are on their way.
    pub open: u64,
    /// Fields with cookies that fragments came with.
    pub cookies_dropped: u64,
    /// Time in which pages had nothing to send.
    pub wait: HistogramSnapshot,
    /// Templates compiled, by language.
    pub compiled: Vec<Count>,
    /// Language, problem, how often; those that occurred.
    pub problems: Vec<(&'static str, &'static str, u64)>,
}

impl AssemblySnapshot {
    pub(crate) fn of(workers: &[&AssemblyCells], vocabulary: &Vocabulary) -> Self {
        let cells = |of: fn(&AssemblyCells) -> &Cells, len| sum(workers.iter().map(|worker| of(worker)), len);
        let by_word = |words: &'static [&'static str], of: fn(&AssemblyCells) -> &Cells| {
            counts(words.iter().copied(), cells(of, words.len()))
        };
        let (languages, problems) = (vocabulary.language, vocabulary.template_problem);
        let places = languages.iter().flat_map(|l| problems.iter().map(move |p| (*l, *p)));
        let sums = cells(|cells| &cells.problems, languages.len() * problems.len());
        let failures = by_word(vocabulary.fragment_failure, |cells| &cells.failures);
        let is_limit = |failure: &&Count| vocabulary.assembly_limit.contains(&failure.token);
        Self {
            limits: failures.iter().filter(is_limit).copied().collect(),
            failures,
            open: cells(|cells| &cells.open, 1).iter().fold(0, |sum, open| sum.wrapping_add(*open)),
            cookies_dropped: cells(|cells| &cells.cookies_dropped, 1).iter().sum(),
            wait: sum_histograms(workers.iter().map(|worker| &worker.wait)),
            compiled: by_word(vocabulary.language, |cells| &cells.compiled),
            problems: places.zip(sums).filter(|(_, n)| *n > 0).map(|((l, p), n)| (l, p, n)).collect(),
        }
    }

    pub(crate) fn expose(&self, out: &mut Exposition) {
        for (family, counts) in [
            (&family::FRAGMENT_FAILURES, &self.failures),
            (&family::ASSEMBLY_LIMITS, &self.limits),
            (&family::TEMPLATES_COMPILED, &self.compiled),
        ] {
            let mut samples = out.family(family);
            for Count { token, count } in counts {
                samples.value(&[(family.labels[0], token)], *count);
            }
        }
        out.family(&family::PAGES_OPEN).value(&[], self.open);
        out.family(&family::FRAGMENT_COOKIES_DROPPED).value(&[], self.cookies_dropped);
        out.family(&family::FRAGMENT_WAIT_SECONDS).histogram(&[], &self.wait);
        for (language, problem, count) in &self.problems {
            let labels = [("language", *language), ("problem", *problem)];
            out.family(&family::TEMPLATE_PROBLEMS).value(&labels, *count);
        }
    }
}

#[cfg(test)]
mod tests {
    use larder_http::fields::cache_status::RequestResult;
    use larder_http::time::WallTime;

    use super::*;
    use crate::metrics::Metrics;
    use crate::names::RuleId;

    macro_rules! label {
        ($name:ident, $tokens:expr) => {
            struct $name(usize);

            impl Label for $name {
                const NAME: &'static str = "word";
                const TOKENS: &'static [&'static str] = $tokens;

                fn index(&self) -> usize {
                    self.0
                }
            }
        };
    }

    label!(Forward, &["uri-miss", "stale"]);
    label!(Failure, &["status", "depth", "origin", "loop"]);
    label!(Language, &["ssi", "esi"]);
    label!(Problem, &["unknown", "value", "unclosed"]);

    fn metrics() -> Metrics {
        type No = std::convert::Infallible;
        let vocabulary = Vocabulary::of::<Forward, No, No, No>();
        let vocabulary = vocabulary.with_assembly::<Failure, Language, Problem>(&["depth", "loop"]);
        Metrics::new(2, vocabulary, WallTime(0), "1")
    }

    fn exposed(metrics: &Metrics) -> String {
        let mut out = Exposition::default();
        metrics.expose(&mut out);
        out.finish()
    }

    #[test]
    fn pages_and_fragments_are_summed_over_workers_by_their_words() {
        let metrics = metrics();
        let site = metrics.route("shop");
        let rule = metrics.rule("shop", "(site)", metrics.cache("default"));
        for worker in [metrics.worker(0), metrics.worker(1)] {
            worker.page(site, PageHow::Whole);
            worker.fragment_hits(rule, 1);
            worker.fragment_forwarded(rule, &Forward(1));
            worker.fragment_failed(&Failure(3));
            worker.fragment_cookies_dropped(2);
            worker.page_waited(Duration::from_millis(40));
            (0..3).for_each(|_| worker.page_opened());
            worker.page_closed();
            worker.template_compiled(&Language(1));
            worker.template_problem(&Language(1), &Problem(2));
        }
        metrics.worker(0).page(site, PageHow::Open);
        metrics.worker(1).fragment_failed(&Failure(0));
        metrics.worker(1).template_problem(&Language(0), &Problem(2));
        let text = exposed(&metrics);
        for line in [
            "larder_pages_total{site=\"shop\",how=\"kept\"} 0",
            "larder_pages_total{site=\"shop\",how=\"whole\"} 2",
            "larder_pages_total{site=\"shop\",how=\"open\"} 1",
            "larder_fragments_total{store=\"default\",status=\"hit\"} 2",
            "larder_fragments_total{store=\"default\",status=\"uri-miss\"} 0",
            "larder_fragments_total{store=\"default\",status=\"stale\"} 2",
            "larder_cache_lookups_total{store=\"default\",status=\"hit\"} 0",
            "larder_fragment_failures_total{reason=\"status\"} 1",
            "larder_fragment_failures_total{reason=\"loop\"} 2",
            "larder_pages_open 4",
            "larder_fragment_cookies_dropped_total 4",
            "larder_fragment_wait_seconds_count 2",
            "larder_templates_compiled_total{language=\"ssi\"} 0",
            "larder_templates_compiled_total{language=\"esi\"} 2",
            "larder_template_problems_total{language=\"ssi\",problem=\"unclosed\"} 1",
            "larder_template_problems_total{language=\"esi\",problem=\"unclosed\"} 2",
        ] {
            assert!(text.lines().any(|other| other == line), "no {line:?} in\n{text}");
        }
        assert!(!text.contains("problem=\"value\""), "only problems that occurred:\n{text}");
    }

    #[test]
    fn limits_are_the_failures_that_the_vocabulary_names_so() {
        let metrics = metrics();
        metrics.worker(0).fragment_failed(&Failure(0));
        (0..3).for_each(|_| metrics.worker(1).fragment_failed(&Failure(1)));
        let text = exposed(&metrics);
        let limits: Vec<_> =
            text.lines().filter(|line| line.starts_with("larder_assembly_limits_total{")).collect();
        let expected = [
            "larder_assembly_limits_total{limit=\"depth\"} 3",
            "larder_assembly_limits_total{limit=\"loop\"} 0",
        ];
        assert_eq!(limits, expected);
    }

    #[test]
    fn a_site_without_pages_has_no_line_of_them() {
        let metrics = metrics();
        let (counted, result) = ((metrics.route("plain"), RuleId::default()), RequestResult::Own);
        metrics.worker(0).request(counted, &http::Method::GET, http::StatusCode::OK, result);
        assert!(!exposed(&metrics).contains("larder_pages_total{"));
    }

    #[test]
    fn the_words_follow_the_variants() {
        assert_eq!(
            [PageHow::Kept, PageHow::Whole, PageHow::Open].map(|how| how.token()),
            ["kept", "whole", "open"]
        );
    }
}
