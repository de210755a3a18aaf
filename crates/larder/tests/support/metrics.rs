//! A scrape of `/metrics`, read as a scraper reads it.
//!
//! In: the text. Out: samples by series and sums by family. A line that is no sample fails the test, and so does a family that has no place on the
//! page of metrics.

use std::collections::HashSet;
use std::sync::LazyLock;

/// The families that docs/reference/metrics.md describes.
static DESCRIBED: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let page = include_str!("../../../../docs/reference/metrics.md");
    page.lines().filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`')).collect()
});

/// A scrape.
pub(crate) struct Metrics(pub String);

impl Metrics {
    /// Of the text that came.
    pub(crate) fn read(text: String) -> Self {
        let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        let missing: Vec<_> = families.filter(|family| !DESCRIBED.contains(family)).collect();
        assert!(missing.is_empty(), "docs/reference/metrics.md lacks {missing:?}");
        Self(text)
    }

    /// The value of one series, written with its labels.
    pub(crate) fn value(&self, series: &str) -> Option<f64> {
        let samples = self.samples();
        samples.into_iter().find(|(name, _)| *name == series).map(|(_, value)| value)
    }

    /// All series of a family, added up.
    pub(crate) fn sum(&self, family: &str) -> u64 {
        let samples = self.samples();
        let of_family = |name: &str| {
            name == family || name.strip_prefix(family).is_some_and(|rest| rest.starts_with('{'))
        };
        let mut found = samples.into_iter().filter(|(name, _)| of_family(name)).peekable();
        assert!(found.peek().is_some(), "no {family} in {}", self.0);
        found.map(|(_, value)| value as u64).sum()
    }

    /// Every sample with its labels.
    pub(crate) fn samples(&self) -> Vec<(&str, f64)> {
        let lines = self.0.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        lines
            .map(|line| {
                let (series, value) = line.rsplit_once(' ').unwrap();
                (series, value.parse().unwrap_or_else(|_| panic!("no number: {line}")))
            })
            .collect()
    }
}
