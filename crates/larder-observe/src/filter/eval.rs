//! Whether a filter matches an exchange.
//!
//! In: a tree, and the [`Facts`] of an exchange. Out: yes or no. It is total: a field without a value satisfies no operator but
//! `!=` and `!~`, so that these are the exact opposite of `=` and `~`, as `not` is of everything.
//! Nothing is allocated for a text that lies somewhere. What has to be put together is put into a [`Scratch`], which
//! keeps its room from one exchange to the next.

use std::time::Duration;

use super::fields::{NumberField, TextField, TimeField};
use super::operator::Operator;
use super::tree::{Asked, Comparison, TextSource, Tree};

/// What is known of one exchange. `None` everywhere means that the exchange has no such thing.
pub trait Facts {
    /// A text. One that does not lie anywhere as it is may be written into `scratch`, which is empty, and returned from
    /// there.
    fn text<'a>(&'a self, field: TextField, scratch: &'a mut String) -> Option<&'a str>;

    /// A length of time.
    fn time(&self, field: TimeField) -> Option<Duration>;

    /// A number.
    fn number(&self, field: NumberField) -> Option<u64>;

    /// The status code of the response.
    fn status(&self) -> Option<u16>;

    /// Whether the response was stored.
    fn stored(&self) -> Option<bool>;
}

/// Room for texts that are put together while a filter is compared. It says nothing of an exchange, and can be used for any.
#[derive(Debug, Default)]
pub struct Scratch {
    text: String,
    url: String,
    /// What is known of the URL, once it was needed.
    has_url: Option<bool>,
}

/// Results that are hits: the answer came from a store.
const HITS: [&str; 5] = ["memory", "disk", "file", "remote", "stale"];

impl Scratch {
    /// Nothing is known of the next exchange.
    pub(super) fn begin(&mut self) {
        self.has_url = None;
    }

    fn text<'a>(&'a mut self, source: TextSource, facts: &'a impl Facts) -> Option<&'a str> {
        match source {
            TextSource::Url => return self.url(facts),
            TextSource::Cache if self.is_hit(facts) => return Some("hit"),
            _ => {}
        }
        self.text.clear();
        let field = match source {
            TextSource::Field(field) => field,
            TextSource::Url | TextSource::Cache => TextField::Reason,
        };
        facts.text(field, &mut self.text)
    }

    fn is_hit(&mut self, facts: &impl Facts) -> bool {
        self.text.clear();
        let result = facts.text(TextField::Result, &mut self.text);
        result.is_some_and(|result| HITS.contains(&result))
    }

    /// Host, path and query of what was asked for. Without host and path there is none.
    fn url(&mut self, facts: &impl Facts) -> Option<&str> {
        let Self { text, url, has_url } = self;
        let is_there = *has_url.get_or_insert_with(|| {
            url.clear();
            let mut push = |before: &str, field| {
                text.clear();
                let part = facts.text(field, text);
                if let Some(part) = part {
                    url.push_str(before);
                    url.push_str(part);
                }
                part.is_some()
            };
            let is_there = push("", TextField::Host) | push("", TextField::Path);
            push("?", TextField::Query);
            is_there
        });
        is_there.then_some(url.as_str())
    }
}

impl Tree {
    /// Whether the exchange is one of those that are asked for.
    pub(super) fn holds(&self, facts: &impl Facts, scratch: &mut Scratch) -> bool {
        match self {
            Self::All(trees) => trees.iter().all(|tree| tree.holds(facts, scratch)),
            Self::Any(trees) => trees.iter().any(|tree| tree.holds(facts, scratch)),
            Self::Not(tree) => !tree.holds(facts, scratch),
            Self::Word(word) => scratch.url(facts).is_some_and(|url| word.matches(url)),
            Self::Comparison(comparison) => comparison.holds(facts, scratch),
        }
    }
}

impl Comparison {
    fn holds(&self, facts: &impl Facts, scratch: &mut Scratch) -> bool {
        let is_so = match &self.asked {
            Asked::Globs(source, globs) => match scratch.text(*source, facts) {
                Some(text) => globs.iter().any(|glob| glob.matches(text)),
                None => globs.iter().any(|glob| glob.is_empty()),
            },
            Asked::Expression(source, expression) => {
                scratch.text(*source, facts).is_some_and(|text| expression.matches(text))
            }
            Asked::Times(field, times) => is_any(self.operator, facts.time(*field), times),
            Asked::Bytes(field, numbers) | Asked::Counts(field, numbers) => {
                is_any(self.operator, facts.number(*field), numbers)
            }
            Asked::Statuses(statuses) => facts
                .status()
                .is_some_and(|code| statuses.iter().any(|status| self.operator.allows(status.compare(code)))),
            Asked::Stored(values) => is_any(self.operator, facts.stored(), values),
        };
        is_so != self.operator.is_negative()
    }
}

/// Whether the value stands to any of those that are asked for as the operator says.
fn is_any<T: Ord>(operator: Operator, value: Option<T>, asked: &[T]) -> bool {
    value.is_some_and(|value| asked.iter().any(|asked| operator.allows(value.cmp(asked))))
}
