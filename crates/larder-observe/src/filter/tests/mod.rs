//! The filter language from text to yes or no, over exchanges that are made here.

mod faults;
mod matching;
mod properties;
mod texts;

use std::time::Duration;

use super::{Facts, Filter, NumberField, TextField, TimeField};

/// An exchange of which each fact may be absent. Its client is put together, as one that is kept as an address is.
#[derive(Clone, Debug, Default)]
struct Exchange {
    texts: Vec<(TextField, String)>,
    client: Option<[u8; 4]>,
    times: Vec<(TimeField, Duration)>,
    numbers: Vec<(NumberField, u64)>,
    status: Option<u16>,
    stored: Option<bool>,
}

impl Facts for Exchange {
    fn text<'a>(&'a self, field: TextField, scratch: &'a mut String) -> Option<&'a str> {
        assert!(scratch.is_empty(), "what is left of another field");
        if let (TextField::Client, Some([a, b, c, d])) = (field, self.client) {
            scratch.push_str(&format!("{a}.{b}.{c}.{d}"));
            return Some(scratch);
        }
        of(&self.texts, field).map(String::as_str)
    }

    fn time(&self, field: TimeField) -> Option<Duration> {
        of(&self.times, field).copied()
    }

    fn number(&self, field: NumberField) -> Option<u64> {
        of(&self.numbers, field).copied()
    }

    fn status(&self) -> Option<u16> {
        self.status
    }

    fn stored(&self) -> Option<bool> {
        self.stored
    }
}

fn of<F: PartialEq, T>(facts: &[(F, T)], field: F) -> Option<&T> {
    facts.iter().find(|(known, _)| *known == field).map(|(_, fact)| fact)
}

fn exchange(texts: &[(TextField, &str)]) -> Exchange {
    let texts = texts.iter().map(|(field, text)| (*field, (*text).to_owned())).collect();
    Exchange { texts, ..Exchange::default() }
}

/// A response that was fetched: all of it is known but what concerns a wait.
fn fetched() -> Exchange {
    Exchange {
        client: Some([192, 0, 2, 7]),
        times: vec![
            (TimeField::Whole, Duration::from_millis(250)),
            (TimeField::Queue, Duration::ZERO),
            (TimeField::FirstByte, Duration::from_micros(1500)),
        ],
        numbers: vec![(NumberField::Bytes, 2048), (NumberField::Attempts, 2)],
        status: Some(404),
        stored: Some(true),
        ..exchange(&[
            (TextField::Method, "GET"),
            (TextField::Scheme, "https"),
            (TextField::Host, "shop.example"),
            (TextField::Path, "/Blog/a b.html"),
            (TextField::Query, "x=1&y=(2)"),
            (TextField::Result, "asked"),
            (TextField::Reason, "uri-miss"),
            (TextField::Origin, "app"),
            (TextField::UserAgent, "Mozilla/5.0 (compatible; Examplebot)"),
            (TextField::Type, "text/html"),
        ])
    }
}

fn filter(text: &str) -> Filter {
    Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Whether each filter matches the exchange.
fn check(exchange: &Exchange, cases: &[(&str, bool)]) {
    for (text, expected) in cases {
        assert_eq!(filter(text).matches(exchange), *expected, "{text}");
    }
}
