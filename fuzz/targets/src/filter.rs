//! Filters: a fault has a place that there is, what is printed is read as an equal filter, and `not` before one turns it.
//!
//! The first line of an input is the filter; the rest are the facts of an exchange, a line for each. A text has its place in
//! `TEXTS`, an empty line is no fact. Numbers are the lengths of the lines.

use std::time::Duration;

use larder_observe::filter::{
    FILTER_BYTES_MAX, FILTER_TERMS_MAX, Facts, Filter, FilterError, NumberField, TextField, TimeField,
};

use crate::allocated::at_most;

/// For as many expressions as a filter may have, each compiled a few times over.
const ALLOCATED_MAX: usize = FILTER_TERMS_MAX * (16 << 20);

/// The texts of an exchange, in the order of lines.
const TEXTS: [TextField; 6] = [
    TextField::Host,
    TextField::Path,
    TextField::Query,
    TextField::Result,
    TextField::Reason,
    TextField::UserAgent,
];

struct Lines<'t>(Vec<&'t str>);

impl Lines<'_> {
    fn line(&self, at: usize) -> Option<&str> {
        self.0.get(at).copied().filter(|line| !line.is_empty())
    }

    fn length(&self) -> Option<u64> {
        self.line(0).map(|line| line.len() as u64)
    }
}

impl Facts for Lines<'_> {
    fn text<'a>(&'a self, field: TextField, scratch: &'a mut String) -> Option<&'a str> {
        assert!(scratch.is_empty(), "something is left of another text");
        let line = self.line(TEXTS.iter().position(|text| *text == field)?)?;
        if field == TextField::Query {
            scratch.push_str(line);
            return Some(scratch);
        }
        Some(line)
    }

    fn time(&self, _: TimeField) -> Option<Duration> {
        self.length().map(Duration::from_millis)
    }

    fn number(&self, _: NumberField) -> Option<u64> {
        self.length()
    }

    fn status(&self) -> Option<u16> {
        self.length().and_then(|length| u16::try_from(length).ok())
    }

    fn stored(&self) -> Option<bool> {
        self.length().map(|length| length.is_multiple_of(2))
    }
}

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let input = String::from_utf8_lossy(input);
    let mut lines = input.split('\n');
    let text = lines.next().unwrap_or_default();
    let facts = Lines(lines.take(TEXTS.len()).collect());
    at_most(ALLOCATED_MAX, || match Filter::parse(text) {
        Ok(filter) => holds(&filter, &facts),
        Err(error) => has_a_place(&error, text),
    });
}

fn holds(filter: &Filter, facts: &Lines<'_>) {
    let (printed, expected) = (filter.to_string(), filter.matches(facts));
    // It may be longer than what was written, by a blank here and a digit there.
    if printed.len() <= FILTER_BYTES_MAX {
        let again = Filter::parse(&printed).expect("what is printed is a filter");
        assert_eq!(&again, filter, "{printed:?} is another one");
        assert_eq!(again.to_string(), printed, "there are two forms");
        assert_eq!(again.matches(facts), expected, "an equal filter matches something else");
    }
    // One level more may be one too many.
    if let Ok(turned) = Filter::parse(&format!("not ({})", filter.text())) {
        assert_eq!(turned.matches(facts), !expected, "it is not turned");
    }
}

fn has_a_place(error: &FilterError, text: &str) {
    assert!((1..=text.chars().count() + 1).contains(&error.column), "{error}");
    let (said, shown) = (error.to_string(), error.caret(text));
    assert!(said.chars().count() < 600 && shown.lines().count() == 2, "{said}\n{shown}");
    assert!(
        !said.contains(char::is_control) && !shown.replace('\n', "").contains(char::is_control),
        "{said}"
    );
}
