//! What holds for every text, every filter and every exchange.

use proptest::prelude::*;

use super::super::fault::FILTER_BYTES_MAX;
use super::super::glob::Glob;
use super::super::{FILTER_FIELDS, FieldKind};
use super::*;

const LETTERS: &str = "[ab/*?.,\\\\\"() =!~<>é&|-]{0,6}";

/// A value or a word in quotes, so that it may be anything.
fn quoted() -> impl Strategy<Value = String> {
    LETTERS.prop_map(|text| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

fn value(form: &'static str) -> BoxedStrategy<String> {
    match form {
        "text" => prop_oneof!["[a-z/*?]{1,4}".boxed(), quoted().boxed()].boxed(),
        "time" => {
            ("[0-9]{1,4}([.][0-9]{1,9})?", prop::sample::select(vec!["us", "ms", "s", "m", "min", "h"]))
                .prop_map(|(number, unit)| number + unit)
                .boxed()
        }
        "bytes" => ("[0-9]{1,4}([.][0-9]{1,9})?", "|B|k|KB|kib|MB|MiB|GB|GiB")
            .prop_map(|(number, unit)| number + &unit)
            .boxed(),
        "status" => "[1-9][0-9][0-9]|[1-9]xx".boxed(),
        "boolean" => "true|false|yes|no".boxed(),
        _ => "[0-9]{1,3}".boxed(),
    }
}

fn comparison() -> impl Strategy<Value = String> {
    (0..FILTER_FIELDS.len()).prop_flat_map(|at| {
        let field = &FILTER_FIELDS[at];
        let operators = prop::sample::select(field.kind.operators());
        (operators, prop::collection::vec(value(field.kind.form()), 1..4)).prop_map(
            move |(operator, values)| {
                let values = match operator.as_str() {
                    "=" | "!=" => values.join(","),
                    "~" | "!~" => "\"[a-b]?/.*\"".to_owned(),
                    _ => values[0].replace("xx", "00"),
                };
                format!("{}{operator}{values}", field.name)
            },
        )
    })
}

/// With parentheses around it, or without.
fn perhaps_within(inner: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (inner, any::<bool>()).prop_map(|(inner, is_within)| if is_within { format!("({inner})") } else { inner })
}

/// The text of a filter.
fn written() -> impl Strategy<Value = String> {
    let term = prop_oneof![comparison(), comparison(), "[a-z/]{1,3}[?&]?", quoted()];
    let filter = term.prop_recursive(4, 24, 3, |inner| {
        let words = prop::sample::select(vec![" and ", " or ", " OR  "]);
        let terms = prop::collection::vec(perhaps_within(inner.clone()), 2..4);
        prop_oneof![
            4 => (terms, words).prop_map(|(terms, word)| terms.join(word)),
            1 => inner.prop_map(|inner| format!("not ({inner} )")),
        ]
    });
    filter.prop_filter("within its bounds", |text| Filter::parse(text).is_ok())
}

fn an_exchange() -> impl Strategy<Value = Exchange> {
    let texts = FILTER_FIELDS.iter().filter_map(|field| match field.kind {
        FieldKind::Text(text) => Some(text),
        _ => None,
    });
    let texts: Vec<_> = texts.collect();
    let text =
        prop_oneof![LETTERS, prop::sample::select(vec!["memory", "asked", "a"]).prop_map(str::to_owned)];
    let time = prop_oneof![Just(0), 0..10_000_000u64].prop_map(Duration::from_micros);
    (
        prop::collection::vec((prop::sample::select(texts), text), 0..8),
        prop::collection::vec((prop::sample::select(vec![TimeField::Whole, TimeField::Wait]), time), 0..3),
        prop::collection::vec((Just(NumberField::Bytes), 0..4096u64), 0..2),
        prop::option::of(100..600u16),
        prop::option::of(any::<bool>()),
    )
        .prop_map(|(texts, times, numbers, status, stored)| Exchange {
            texts,
            client: None,
            times,
            numbers,
            status,
            stored,
        })
}

/// Slow and plainly right.
fn matches_slowly(pattern: &[char], text: &[char]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, _) => text.is_empty(),
        (Some(('*', rest)), _) => (0..=text.len()).any(|at| matches_slowly(rest, &text[at..])),
        (Some((wanted, rest)), Some((found, behind))) => {
            (*wanted == '?' || wanted == found) && matches_slowly(rest, behind)
        }
        (Some(_), None) => false,
    }
}

proptest! {
    #[test]
    fn what_is_printed_is_read_as_the_same(text in written()) {
        let read = filter(&text);
        let printed = read.to_string();
        // It may be longer than what was written, by a blank here and a digit there.
        if printed.len() <= FILTER_BYTES_MAX {
            let again = Filter::parse(&printed);
            prop_assert_eq!(again.as_ref(), Ok(&read), "{}", printed);
            prop_assert_eq!(again.unwrap().to_string(), printed);
        }
    }

    #[test]
    fn what_is_printed_matches_the_same(text in written(), exchange in an_exchange()) {
        let read = filter(&text);
        if let Ok(printed) = Filter::parse(&read.to_string()) {
            prop_assert_eq!(printed.matches(&exchange), read.matches(&exchange));
        }
    }

    #[test]
    fn not_is_the_complement(text in written(), exchange in an_exchange()) {
        if let Ok(turned) = Filter::parse(&format!("not ({text})")) {
            prop_assert_eq!(turned.matches(&exchange), !filter(&text).matches(&exchange));
        }
    }

    #[test]
    fn a_negative_operator_is_the_complement(exchange in an_exchange(), text in comparison()) {
        let at = text.find(['=', '!', '~', '<', '>']).unwrap_or(0);
        if text[at..].starts_with(['=', '~']) {
            let turned = filter(&format!("{}!{}", &text[..at], &text[at..]));
            prop_assert_eq!(turned.matches(&exchange), !filter(&text).matches(&exchange));
        }
    }

    #[test]
    fn and_is_both_and_or_is_one(a in written(), b in written(), exchange in an_exchange()) {
        let holds = |text: String| Filter::parse(&text).ok().map(|filter| filter.matches(&exchange));
        let (left, right) = (filter(&a).matches(&exchange), filter(&b).matches(&exchange));
        let (both, one) = (holds(format!("({a})and({b})")), holds(format!("({a})or({b})")));
        prop_assert!(both.is_none_or(|both| both == (left && right)));
        prop_assert!(one.is_none_or(|one| one == (left || right)));
    }

    #[test]
    fn no_text_panics(text in prop_oneof![
        any::<String>(),
        "([a-z_]{1,6}|status|path|time|[(]|[)]|and|or|not|[=!~<>]{1,2}|[0-9]{1,3}|[smkx*?,]|\"| |\\\\|\u{1b}|é){0,40}",
    ]) {
        if let Err(error) = Filter::parse(&text) {
            prop_assert!((1..=text.chars().count() + 1).contains(&error.column), "{}", error);
            let shown = error.caret(&text);
            prop_assert_eq!(shown.lines().count(), 2, "{}", shown);
            let all = error.to_string() + &shown;
            prop_assert!(!all.contains(|c: char| c.is_control() && c != '\n'), "{}", all);
        }
    }

    #[test]
    fn a_pattern_matches_as_one_character_after_the_other_does(
        pattern in "[abé*?]{0,6}",
        text in "[abé]{0,8}",
    ) {
        let [wanted, found] = [&pattern, &text].map(|text| text.chars().collect::<Vec<_>>());
        prop_assert_eq!(Glob::of_value(&pattern, false).matches(&text), matches_slowly(&wanted, &found));
        let word = pattern.replace('?', "b");
        let around: Vec<_> = format!("*{word}*").chars().collect();
        prop_assert_eq!(Glob::of_word(&word).matches(&text), matches_slowly(&around, &found));
    }
}
