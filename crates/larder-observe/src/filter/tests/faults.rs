//! Every fault, with its column and its words.

use super::super::fault::{FILTER_BYTES_MAX, FILTER_DEPTH_MAX, FILTER_TERMS_MAX};
use super::super::{FILTER_FIELDS, FilterError, FilterFault, Operator};
use super::*;

fn fault(text: &str) -> FilterError {
    Filter::parse(text).map_or_else(|error| error, |read| panic!("{text} is read as {read}"))
}

fn faults(cases: &[(&str, usize, &str)]) {
    for (text, column, words) in cases {
        assert_eq!(fault(text).to_string(), format!("column {column}: {words}"), "{text}");
    }
}

#[test]
fn what_stands_in_place_of_a_term_is_named() {
    let expected = |found| format!("expected a field, a word, \"not\" or \"(\", found {found}");
    for (text, column, found) in [
        ("", 1, "the end"),
        ("  ", 3, "the end"),
        ("a and", 6, "the end"),
        ("and a", 1, "\"and\""),
        ("a or or b", 6, "\"or\""),
        ("()", 2, "\")\""),
        ("not", 4, "the end"),
        ("=5", 1, "\"=5\""),
        ("a and ~user", 7, "\"~user\""),
    ] {
        faults(&[(text, column, &expected(found))]);
    }
}

#[test]
fn two_terms_need_a_word_between_them() {
    let words =
        |found| format!("write \"and\" or \"or\" before {found}; a value with blanks is written in quotes");
    for (text, column, found) in [
        ("a b", 3, "\"b\""),
        ("path=/a b c", 9, "\"b\""),
        ("status=5xx time>1s", 12, "\"time>1s\""),
        ("(a b)", 4, "\"b)\""),
        ("a not b", 3, "\"not\""),
        ("a (b)", 3, "\"(b)\""),
        ("\"a\"\"b c\" d", 4, "\"b c\""),
    ] {
        faults(&[(text, column, &words(found))]);
    }
}

#[test]
fn signs_of_other_languages_are_translated() {
    let words = |found, write| format!("\"{found}\" is not known here; write \"{write}\"");
    for (text, column, found, write) in [
        ("a && b", 3, "&&", "and"),
        ("a || b", 3, "||", "or"),
        ("a ||b", 3, "||", "or"),
        ("!a", 1, "!", "not"),
        ("a and !(b)", 7, "!", "not"),
        ("a !b", 3, "!", "not"),
    ] {
        faults(&[(text, column, &words(found, write))]);
    }
    let words = |found, write| format!("\"{found}\" is no operator; write \"{write}\"");
    for (found, write) in [("==", "="), ("=~", "~"), ("<>", "!="), ("=>", ">="), ("!=~", "!~")] {
        faults(&[(&format!("status{found}200"), 7, &words(found, write))]);
    }
    faults(&[
        ("status!200", 7, "\"!\" is no operator; operators are =, !=, ~, !~, <, <=, > and >="),
        ("status >>> 1", 8, "\">>>\" is no operator; operators are =, !=, ~, !~, <, <=, > and >="),
    ]);
}

#[test]
fn parentheses_and_quotes_have_two_ends() {
    faults(&[
        ("a and (b or (c)", 7, "this \"(\" is not closed"),
        ("a)", 2, "this \")\" closes nothing; a value with parentheses is written in quotes"),
        ("path=/a(b)", 8, "a word or value with parentheses is written in quotes"),
        ("path~(a|b)", 6, "a word or value with parentheses is written in quotes"),
        ("a(b)", 2, "a word or value with parentheses is written in quotes"),
        ("a and \"b", 7, "this quote is not closed"),
        ("path=\"b\\\"", 6, "this quote is not closed"),
        (
            "path=/a\"b\"",
            8,
            "quotes stand around the whole of a word or value; within them \" is written \\\"",
        ),
        ("a\"b\"", 2, "quotes stand around the whole of a word or value; within them \" is written \\\""),
    ]);
}

#[test]
fn an_unknown_field_names_the_nearest() {
    let nearest = |found, nearest| format!("no field is named \"{found}\"; the nearest is \"{nearest}\"");
    for (found, known) in [
        ("sttus", "status"),
        ("Status", "status"),
        ("first-byte", "first_byte"),
        ("frist_byte", "first_byte"),
        ("user_agent", "ua"),
        ("TTFB", "first_byte"),
        ("upstream", "origin"),
        ("uri", "url"),
        ("sit", "site"),
    ] {
        faults(&[(&format!("a and {found}=1"), 7, &nearest(found, known))]);
        faults(&[(&format!("{found} ~ x"), 1, &nearest(found, known))]);
    }
    let none = |found| {
        format!(
            "no field is named \"{found}\"; a part of a URL that has an operator in it is written in quotes"
        )
    };
    let long = "x".repeat(100);
    faults(&[
        ("utm_source=x", 1, &none("utm_source")),
        (&format!("{long}=x"), 1, &none(&format!("{}...", "x".repeat(40)))),
    ]);
}

#[test]
fn every_field_refuses_the_operators_of_other_kinds() {
    for field in FILTER_FIELDS {
        for operator in Operator::ALL {
            let written = format!("{}{operator}x", field.name);
            let (column, takes) = (field.name.len() + 1, field.kind.operators());
            let refused = FilterFault::WrongOperator { operator, field: field.name, takes };
            match (takes.contains(&operator), Filter::parse(&written)) {
                (true, Err(error)) => {
                    assert!(field.kind.form() != "text" && error.fault != refused, "{written}: {error}");
                }
                (true, Ok(_)) => assert_eq!(field.kind.form(), "text", "{written}"),
                (false, read) => assert_eq!(read, Err(FilterError { column, fault: refused }), "{written}"),
            }
        }
    }
    faults(&[
        ("path<5", 5, "\"<\" is not for path, which takes =, !=, ~ and !~"),
        ("time~5", 5, "\"~\" is not for time, which takes =, !=, <, <=, > and >="),
        ("stored >= 1", 8, "\">=\" is not for stored, which takes = and !="),
    ]);
}

#[test]
fn a_value_is_due_behind_an_operator() {
    let words = |before, found| {
        format!("expected a value after {before}, found {found}; an empty one is written \"\"")
    };
    faults(&[
        ("path=", 6, &words("path=", "the end")),
        ("(path= )", 8, &words("path=", "\")\"")),
        ("path!=and x", 7, &words("path!=", "\"and\"")),
        ("status=200,", 12, &words("status=", "the end")),
        ("status=,200", 8, &words("status=", "\",200\"")),
        ("time > or x", 8, &words("time>", "\"or\"")),
        ("time>1s,2s", 8, "only = and != take a list; \">\" takes one value"),
    ]);
}

#[test]
fn numbers_say_what_they_take() {
    let time = "a number with a unit of time, such as 200ms";
    let bytes = "a number of bytes, such as 4096 or 64KiB";
    let status = "a code such as 404 or, with = and !=, a class such as 5xx";
    faults(&[
        ("time>200", 6, "add a unit: \"200ms\" or \"200s\""),
        ("time>1.5", 6, "add a unit: \"1.5ms\" or \"1.5s\""),
        ("time>fast", 6, &format!("time takes {time}, found \"fast\"")),
        ("time>-1s", 6, &format!("time takes {time}, found \"-1s\"")),
        ("time>.5s", 6, &format!("time takes {time}, found \".5s\"")),
        ("time>5.s", 6, &format!("time takes {time}, found \"5.s\"")),
        ("time>1.2.3s", 6, &format!("time takes {time}, found \"1.2.3s\"")),
        ("time>\"\"", 6, &format!("time takes {time}, found \"\"")),
        ("time=2*", 6, &format!("* and ? are for texts; time takes {time}")),
        ("time>5sec", 6, "\"sec\" is no unit; those of time are us, ms, s, m or min, and h"),
        ("time>1h30m", 6, "\"h30m\" is no unit; those of time are us, ms, s, m or min, and h"),
        ("time>5S", 6, "\"S\" is no unit; those of time are us, ms, s, m or min, and h"),
        ("time>99999999h", 6, "\"99999999h\" is too large"),
        ("time>99999999999999999999s", 6, "\"99999999999999999999s\" is too large"),
        ("bytes=1?", 7, &format!("* and ? are for texts; bytes takes {bytes}")),
        ("bytes=x", 7, &format!("bytes takes {bytes}, found \"x\"")),
        ("bytes>5bits", 7, "\"bits\" is no unit; those of bytes are B, k or kB, KiB, MB, MiB, GB and GiB"),
        ("bytes>99999999999GB", 7, "\"99999999999GB\" is too large"),
        ("attempts=two", 10, "attempts takes a whole number, found \"two\""),
        ("attempts=1.5", 10, "attempts takes a whole number, found \"1.5\""),
        ("attempts=99999999999999999999", 10, "\"99999999999999999999\" is too large"),
        ("status=5*", 8, &format!("* and ? are for texts; status takes {status}")),
        ("status=200,50x", 12, &format!("status takes {status}, found \"50x\"")),
        ("status=0xx", 8, &format!("status takes {status}, found \"0xx\"")),
        ("status=99", 8, &format!("status takes {status}, found \"99\"")),
        ("status=1000", 8, &format!("status takes {status}, found \"1000\"")),
        ("status>=5xx", 9, &format!("status takes {status}, found \"5xx\"")),
        ("stored=maybe", 8, "stored takes true or false, found \"maybe\""),
        ("stored=*", 8, "* and ? are for texts; stored takes true or false"),
    ]);
}

#[test]
fn the_fault_of_an_expression_has_its_own_column() {
    faults(&[
        ("path~[a", 6, "in the regular expression: unclosed character class"),
        ("path~a**{", 9, "in the regular expression: unclosed counted repetition"),
        ("path~\"\\\"\\\\d(\"", 12, "in the regular expression: unclosed group"),
        ("path~\"é(?=a)\"", 8, "in the regular expression: look-around is not supported"),
        ("path ~ \"(a)\\1\"", 12, "in the regular expression: back references are not supported"),
        (
            "path~\"(a{1000}){1000}\"",
            7,
            "the regular expression takes more than 65536 bytes when compiled: repeat less",
        ),
    ]);
    assert!(fault(&format!("path~\"{}\"", "(".repeat(40))).to_string().starts_with("column "));
}

#[test]
fn each_bound_holds_and_is_named() {
    let terms = vec!["a"; FILTER_TERMS_MAX].join(" or ");
    filter(&terms);
    let more = format!("{terms} and b");
    faults(&[(&more, more.len(), "a filter has at most 64 terms, each value of a list counted")]);
    let list = format!("status={}", vec!["200"; FILTER_TERMS_MAX + 1].join(","));
    faults(&[(&list, list.len() - 2, "a filter has at most 64 terms, each value of a list counted")]);

    let deep =
        |open: &str, levels: usize, close: &str| format!("{}a{}", open.repeat(levels), close.repeat(levels));
    let words = "parentheses and \"not\" stand within each other at most 16 times";
    filter(&deep("(", FILTER_DEPTH_MAX, ")"));
    filter(&deep("not ", FILTER_DEPTH_MAX, ""));
    faults(&[
        (&deep("(", FILTER_DEPTH_MAX + 1, ")"), 17, words),
        (&deep("not ", FILTER_DEPTH_MAX + 1, ""), 65, words),
        (&deep("not(", 9, ")"), 33, words),
    ]);

    filter(&"é".repeat(FILTER_BYTES_MAX / 2));
    let long = format!("{}é", "a".repeat(FILTER_BYTES_MAX - 1));
    faults(&[
        (&"a".repeat(FILTER_BYTES_MAX + 1), 1025, "a filter has at most 1024 bytes"),
        (&long, 1024, "a filter has at most 1024 bytes"),
    ]);
}

#[test]
fn what_is_repeated_cannot_steer_a_terminal() {
    faults(&[
        ("time>\u{1b}[2J", 6, "time takes a number with a unit of time, such as 200ms, found \"\\u{1b}[2J\""),
        (
            "status=\u{202e}x",
            8,
            "status takes a code such as 404 or, with = and !=, a class such as 5xx, found \"\\u{202e}x\"",
        ),
    ]);
}

#[test]
fn a_mark_stands_below_the_fault() {
    let caret = |text: &str| fault(text).caret(text);
    assert_eq!(caret("cache!=hit and sttus=5xx"), "cache!=hit and sttus=5xx\n               ^");
    assert_eq!(caret(""), "\n^");
    assert_eq!(caret("é and"), "é and\n     ^");
    assert_eq!(caret("\u{1b} and"), "\\u{1b} and\n          ^");
    let long = format!("{} and =b and {}", "a".repeat(100), "c".repeat(100));
    let expected = format!("...{} and =b and {}...\n{}^", "a".repeat(55), "c".repeat(33), " ".repeat(63));
    assert_eq!(caret(&long), expected);
    // A text that is another one than was parsed.
    assert_eq!(fault("a and").caret("a"), "a\n ^");
}
