//! Numbers for rules, and what is counted by them.
//!
//! In: the events of requests that a rule answers. Out: figures by site and rule, and their sums by store. A number stands for a site, a
//! rule's name and one of the stores that the rule's responses are in, so counters survive a reload and never mix. The first 1024
//! have numbers of their own; all others share one for each store, so that sums by store stay right.
//! What every request counts lies in two cache lines a rule and worker; words that few rules need are made on first use.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use larder_http::fields::cache_status::RequestResult;
use parking_lot::RwLock;

use crate::cells::{Cells, FixedCells};
use crate::exposition::Exposition;
use crate::family::{self, Family};
use crate::label::{BytesFrom, Label, Vocabulary};
use crate::names::{CACHES_MAX, CacheId, OTHER, RuleId};
use crate::sums::{Count, add_counts, counts, sum};

/// The most rules that are told apart, over all configurations of one process.
const RULES_MAX: usize = 1024;
/// The same with a shared number for each store.
pub(crate) const RULE_NUMBERS_MAX: usize = RULES_MAX + CACHES_MAX;

impl Label for RequestResult {
    const NAME: &'static str = "result";
    const TOKENS: &'static [&'static str] = &{
        let mut tokens = [""; RequestResult::ALL.len()];
        let mut index = 0;
        while index < tokens.len() {
            tokens[index] = RequestResult::ALL[index].token();
            index += 1;
        }
        tokens
    };

    fn index(&self) -> usize {
        *self as usize
    }
}

// Places in `RuleCells::counts`, which are all that a hit counts.
const RESULTS: usize = 0;
const BYTES: usize = RESULTS + RequestResult::ALL.len();
const BY_HAND: usize = BYTES + BytesFrom::TOKENS.len();
const STORED: usize = BY_HAND + 1;
const ANSWERS: usize = STORED + 1;
const ANSWER_MICROS: usize = ANSWERS + 1;
const COUNTS: usize = ANSWER_MICROS + 1;

/// What one worker counts of one rule.
pub(crate) struct RuleCells {
    counts: FixedCells<COUNTS>,
    /// By the vocabulary's forward reasons.
    forwarded: Cells,
    /// `hit` and the forward reasons, of what pages asked for.
    fragments: OnceLock<Cells>,
    not_stored: OnceLock<Cells>,
    before: OnceLock<Cells>,
    /// Shared with the exchanges under way, which may end elsewhere.
    received: OnceLock<Arc<AtomicU64>>,
}

impl RuleCells {
    pub(crate) fn new(vocabulary: &Vocabulary) -> Self {
        Self {
            counts: FixedCells::default(),
            forwarded: Cells::new(vocabulary.forward.len()),
            fragments: OnceLock::new(),
            not_stored: OnceLock::new(),
            before: OnceLock::new(),
            received: OnceLock::new(),
        }
    }

    pub(crate) fn answered(&self, result: RequestResult) {
        self.counts.add(RESULTS + result as usize, 1);
    }

    pub(crate) fn forwarded(&self, reason: usize) {
        self.forwarded.add(reason, 1);
    }

    pub(crate) fn sent(&self, from: BytesFrom, bytes: u64) {
        self.counts.add(BYTES + from as usize, bytes);
    }

    pub(crate) fn by_hand(&self) {
        self.counts.add(BY_HAND, 1);
    }

    pub(crate) fn stored(&self) {
        self.counts.add(STORED, 1);
    }

    pub(crate) fn not_stored(&self, reason: usize, of: usize) {
        self.not_stored.get_or_init(|| Cells::new(of)).add(reason, 1);
    }

    pub(crate) fn missed(&self, before: usize, of: usize) {
        self.before.get_or_init(|| Cells::new(of)).add(before, 1);
    }

    pub(crate) fn origin_answered(&self, took: Duration) {
        self.counts.add(ANSWERS, 1);
        self.counts.add(ANSWER_MICROS, u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    pub(crate) fn received(&self) -> Arc<AtomicU64> {
        Arc::clone(self.received.get_or_init(Arc::default))
    }

    /// Place 0 is a hit.
    pub(crate) fn fragments(&self, place: usize, count: u64, of: usize) {
        self.fragments.get_or_init(|| Cells::new(of)).add(place, count);
    }
}

/// What a number stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleName {
    pub(crate) site: Arc<str>,
    pub(crate) rule: Arc<str>,
    pub(crate) store: CacheId,
}

impl RuleName {
    fn new(site: &str, rule: &str, store: CacheId) -> Self {
        Self { site: site.into(), rule: rule.into(), store }
    }

    fn is(&self, site: &str, rule: &str, store: CacheId) -> bool {
        self.store == store && *self.rule == *rule && *self.site == *site
    }
}

/// The numbers given out so far; the lock guards registration and reading, never counting.
#[derive(Debug)]
pub(crate) struct RuleNames(RwLock<Vec<RuleName>>);

impl RuleNames {
    pub(crate) fn new() -> Self {
        Self(RwLock::new(vec![RuleName::new(OTHER, OTHER, CacheId::default())]))
    }

    /// The number of a rule, new or known.
    pub(crate) fn register(&self, site: &str, rule: &str, store: CacheId) -> RuleId {
        let mut names = self.0.write();
        let find = |names: &[RuleName], site: &str, rule: &str| {
            names.iter().position(|name| name.is(site, rule, store))
        };
        let known = find(&names, site, rule);
        let (site, rule) = if names.len() < RULES_MAX { (site, rule) } else { (OTHER, OTHER) };
        let index = known.or_else(|| find(&names, site, rule)).unwrap_or_else(|| {
            names.push(RuleName::new(site, rule, store));
            names.len() - 1
        });
        u16::try_from(index).map(RuleId).unwrap_or_default()
    }

    /// The name of a number.
    pub(crate) fn find(&self, id: RuleId) -> Option<RuleName> {
        self.0.read().get(id.index()).cloned()
    }

    /// All names, each at its number.
    pub(crate) fn all(&self) -> Vec<RuleName> {
        self.0.read().clone()
    }
}

/// One rule with one of its stores.
#[derive(Clone, Debug)]
pub struct RuleSnapshot {
    /// The site, as registered.
    pub site: Arc<str>,
    /// The rule's name in it.
    pub rule: Arc<str>,
    /// The store's number.
    pub store: CacheId,
    /// Requests by result.
    pub results: Vec<Count>,
    /// Requests that were forwarded, or joined another's fetch, by reason.
    pub forwarded: Vec<Count>,
    /// Body bytes handed to the kernel, by where they came from.
    pub bytes: Vec<Count>,
    /// Hits that were files which a person put there.
    pub by_hand: u64,
    /// Responses stored.
    pub stored: u64,
    /// Responses that were not, by reason.
    pub not_stored: Vec<Count>,
    /// Requests that found nothing under their URL, by what became of it.
    pub before: Vec<Count>,
    /// Final heads of origins.
    pub origin_answers: u64,
    /// How long they took together.
    pub origin_time: Duration,
    /// Bytes of content that origins sent.
    pub received: u64,
    /// What pages asked for: `hit`, then every forward reason.
    pub fragments: Vec<Count>,
}

impl RuleSnapshot {
    /// What workers have counted under one name.
    pub(crate) fn of(name: RuleName, cells: &[&RuleCells], vocabulary: &Vocabulary) -> Self {
        let sums = sum(cells.iter().map(|cells| &cells.counts), COUNTS);
        let forwarded = sum(cells.iter().map(|cells| &cells.forwarded), vocabulary.forward.len());
        let words = |tokens: &[&'static str], from: usize| {
            counts(tokens.iter().copied(), sums.iter().skip(from).copied().collect())
        };
        let outcomes = std::iter::once("hit").chain(vocabulary.forward.iter().copied());
        let fragments = cells.iter().filter_map(|cells| cells.fragments.get());
        let not_stored = cells.iter().filter_map(|cells| cells.not_stored.get());
        let before = cells.iter().filter_map(|cells| cells.before.get());
        let (forward, reasons) = (vocabulary.forward, vocabulary.not_stored);
        let at = |place: usize| sums.get(place).copied().unwrap_or_default();
        Self {
            site: name.site,
            rule: name.rule,
            store: name.store,
            results: words(RequestResult::TOKENS, RESULTS),
            forwarded: counts(forward.iter().copied(), forwarded),
            bytes: words(BytesFrom::TOKENS, BYTES),
            by_hand: at(BY_HAND),
            stored: at(STORED),
            not_stored: counts(reasons.iter().copied(), sum(not_stored, reasons.len())),
            before: counts(vocabulary.before.iter().copied(), sum(before, vocabulary.before.len())),
            origin_answers: at(ANSWERS),
            origin_time: Duration::from_micros(at(ANSWER_MICROS)),
            received: cells
                .iter()
                .filter_map(|cells| cells.received.get())
                .fold(0, |sum, received| sum.wrapping_add(received.load(Ordering::Relaxed))),
            fragments: counts(outcomes, sum(fragments, 1 + forward.len())),
        }
    }

    /// Responses of all rules that were not stored, by reason.
    pub(crate) fn all_not_stored(rules: &[Self], reasons: &[&'static str]) -> Vec<Count> {
        let mut all: Vec<Count> = reasons.iter().copied().map(Count::none).collect();
        rules.iter().for_each(|rule| add_counts(&mut all, &rule.not_stored));
        all
    }

    /// The rules with all their stores, in the order of their registration. The store of each is that of its first row.
    pub(crate) fn by_name(rows: &[Self]) -> Vec<Self> {
        let mut places: HashMap<(&str, &str), usize> = HashMap::with_capacity(rows.len());
        let mut all: Vec<Self> = Vec::with_capacity(rows.len());
        for row in rows {
            match places.entry((&row.site, &row.rule)) {
                Entry::Occupied(place) => all[*place.get()].add(row),
                Entry::Vacant(place) => {
                    place.insert(all.len());
                    all.push(row.clone());
                }
            }
        }
        all
    }

    fn add(&mut self, other: &Self) {
        add_counts(&mut self.results, &other.results);
        add_counts(&mut self.forwarded, &other.forwarded);
        add_counts(&mut self.bytes, &other.bytes);
        add_counts(&mut self.not_stored, &other.not_stored);
        add_counts(&mut self.before, &other.before);
        add_counts(&mut self.fragments, &other.fragments);
        self.by_hand += other.by_hand;
        self.stored += other.stored;
        self.origin_answers += other.origin_answers;
        self.origin_time += other.origin_time;
        self.received = self.received.wrapping_add(other.received);
    }

    /// Adds the families by rule. What never occurred is left out: there may be a thousand rules.
    pub(crate) fn expose(&self, out: &mut Exposition) {
        let names = [("site", &*self.site), ("rule", &*self.rule)];
        let mut by_word = |family: &Family, counts: &[Count]| {
            let mut samples = out.family(family);
            for Count { token, count } in counts.iter().filter(|count| count.count > 0) {
                samples.value(&[names[0], names[1], (family.labels[2], token)], *count);
            }
        };
        by_word(&family::RULE_REQUESTS, &self.results);
        by_word(&family::RULE_FORWARDED, &self.forwarded);
        by_word(&family::RULE_BYTES, &self.bytes);
        by_word(&family::RULE_NOT_STORED, &self.not_stored);
        by_word(&family::RULE_MISSES, &self.before);
        if self.stored > 0 {
            out.family(&family::RULE_STORED).value(&names, self.stored);
        }
        if self.origin_answers > 0 {
            out.family(&family::RULE_ORIGIN_ANSWERS).value(&names, self.origin_answers);
            out.family(&family::RULE_ORIGIN_SECONDS).value(&names, self.origin_time.as_secs_f64());
        }
        if self.received > 0 {
            out.family(&family::RULE_RECEIVED).value(&names, self.received);
        }
    }

    /// Requests with one of these results.
    fn with(&self, is_one: impl Fn(RequestResult) -> bool) -> u64 {
        let results = RequestResult::ALL.iter().zip(&self.results);
        results.filter(|(result, _)| is_one(**result)).map(|(_, count)| count.count).sum()
    }

    /// All requests.
    pub fn requests(&self) -> u64 {
        self.with(|_| true)
    }

    /// Requests that a stored response answered.
    pub fn hits(&self) -> u64 {
        self.with(RequestResult::is_hit)
    }

    /// Requests that joined another's fetch.
    pub fn joined(&self) -> u64 {
        self.with(|result| result == RequestResult::Joined)
    }

    /// Requests that went to the origin themselves.
    pub fn asked(&self) -> u64 {
        self.with(|result| result == RequestResult::Asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_keeps_its_number_and_the_surplus_is_other_of_its_store() {
        let names = RuleNames::new();
        let (a, b) = (CacheId(1), CacheId(2));
        let number = |site, rule, store| names.register(site, rule, store).index();
        assert_eq!(number("shop", "/a/*", a), 1);
        assert_eq!(number("shop", "/a/*", b), 2, "another store is counted apart");
        assert_eq!(number("blog", "/a/*", a), 3);
        assert_eq!(number("shop", "/a/*", a), 1);
        for index in 4..RULES_MAX {
            let rule = index.to_string();
            assert_eq!(names.register("shop", &rule, a).index(), index);
        }
        assert_eq!(number("shop", "one more", a), RULES_MAX);
        assert_eq!(number("blog", "and one more", a), RULES_MAX);
        assert_eq!(number("blog", "and one more", b), RULES_MAX + 1);
        assert_eq!(number("shop", "/a/*", b), 2, "what has a number keeps it");
        let shared = names.all()[RULES_MAX].clone();
        assert_eq!(shared, RuleName::new(OTHER, OTHER, a));
        assert!(names.all().len() <= RULE_NUMBERS_MAX);
    }
}
