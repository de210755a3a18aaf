//! Which expressions are taken, and what they match.

use super::*;

fn anywhere(text: &str) -> Option<Expression> {
    Some(Expression { text: text.into(), at_start: false })
}

fn at_start(text: &str) -> Option<Expression> {
    Some(Expression { text: text.into(), at_start: true })
}

const SUBJECT: Subject<'_> = Subject {
    host: "www.example.com",
    target: "/blog/a.html?page=2",
    content_type: Some(b"text/html; charset=utf-8"),
    tags: TagText::Joined(Cow::Borrowed(b"news,post-1,caf\xe9,caf\xc3\xa9")),
};

fn matches(text: &PatternText) -> bool {
    Pattern::compile(text).expect("an expression").matches(&SUBJECT)
}

#[test]
fn each_expression_is_for_its_part() {
    let text = PatternText::default();
    for (text, expected) in [
        // Only where there is an expression for them do tags matter.
        (text.clone(), true),
        (PatternText { host: anywhere("^www"), ..text.clone() }, true),
        (PatternText { host: anywhere("blog"), ..text.clone() }, false),
        (PatternText { target: anywhere("blog"), ..text.clone() }, true),
        (PatternText { target: anywhere("www"), ..text.clone() }, false),
        (PatternText { content_type: anywhere("text/html"), ..text.clone() }, true),
        (PatternText { content_type: anywhere("news"), ..text.clone() }, false),
        (PatternText { tags: anywhere("(^|,)post-1(,|$)"), ..text.clone() }, true),
        (PatternText { tags: anywhere("(^|,)post(,|$)"), ..text.clone() }, false),
    ] {
        assert_eq!(matches(&text), expected, "{text:?}");
        let compiled = Pattern::compile(&text).expect("an expression");
        assert_eq!(compiled.has_tags(), text.tags.is_some(), "{text:?}");
        let unread = Subject { tags: TagText::Every, ..SUBJECT };
        assert!(compiled.has_tags() || compiled.matches(&unread) == expected, "{text:?}");
    }
}

#[test]
fn all_expressions_have_to_match() {
    let both = |host, tags| PatternText { host: anywhere(host), tags: anywhere(tags), ..Default::default() };
    assert!(matches(&both("example", "news")));
    assert!(!matches(&both("example", "other")) && !matches(&both("other", "news")));
}

#[test]
fn one_that_came_as_a_path_is_anchored_at_its_start_alone() {
    for (text, from_start, from_anywhere) in
        [("/blog/", true, true), ("/a", false, true), ("/x|/a", false, true), ("/x|/blog", true, true)]
    {
        let target = |target| PatternText { target, ..Default::default() };
        assert_eq!(matches(&target(at_start(text))), from_start, "{text}");
        assert_eq!(matches(&target(anywhere(text))), from_anywhere, "{text}");
    }
}

#[test]
fn expressions_mean_what_they_mean_in_vcl() {
    let tags = |text| PatternText { tags: anywhere(text), ..Default::default() };
    for (text, expected) in [
        (r"\<new\>", false),
        (r"\<news\>", true),
        // Boundaries, whichever side the word is on.
        (r"\>news\<", true),
        (r"post\-1", true),
        (r"\\<news", false),
        // Over bytes, whatever these are.
        ("caf.(,|$)", true),
        ("^[a-z0-9,-]+$", false),
        ("(^|,)café$", true),
        ("(^|,)CAFÉ$", false),
    ] {
        assert_eq!(matches(&tags(text)), expected, "{text}");
    }
    assert!(matches(&PatternText { host: anywhere("^WWW"), ..Default::default() }), "hosts have no case");
    assert!(!matches(&PatternText { target: anywhere("BLOG"), ..Default::default() }));
}

#[test]
fn what_a_response_does_not_have_is_empty_and_every_tag_matches_anything() {
    let text =
        |text| PatternText { content_type: anywhere(text), tags: anywhere(text), ..Default::default() };
    let bare = Subject { content_type: None, tags: TagText::Joined(Cow::Borrowed(b"")), ..SUBJECT };
    let compiled = |pattern| Pattern::compile(&text(pattern)).expect("an expression");
    assert!(compiled(".*").matches(&bare) && !compiled(".").matches(&bare));
    let every = Subject { tags: TagText::Every, ..SUBJECT };
    for tags in ["^$", "(^|,)other(,|$)"] {
        let pattern = Pattern::compile(&PatternText { tags: anywhere(tags), ..Default::default() });
        assert!(pattern.is_ok_and(|pattern| pattern.matches(&every)), "{tags}");
    }
}

#[test]
fn what_cannot_be_matched_is_named_with_its_place() {
    use PatternFault::{BackReference, LookAround, TooLarge, TooLong};
    let malformed = |words: &str| PatternFault::Malformed(words.into());
    let long = ["é".repeat(EXPRESSION_BYTES_MAX / 2), "a".into()].concat();
    for (text, column, fault) in [
        ("a(?=b)", 2, LookAround),
        ("(?<!x)a", 1, LookAround),
        (r"é(a)\1", 5, BackReference),
        (r"\<a(", 4, malformed("unclosed group")),
        ("a)|(b", 2, malformed("unopened group")),
        ("[z-a]", 2, malformed("invalid character class range, the start must be <= the end")),
        (r"a\p{L}", 2, malformed("unicode not allowed here")),
        (&long, EXPRESSION_BYTES_MAX / 2 + 1, TooLong),
        ("(a{500}){500}", 1, TooLarge),
        ("(?x)a#", 7, malformed("open at its end")),
    ] {
        let error = Pattern::compile(&PatternText { tags: at_start(text), ..Default::default() }).err();
        assert_eq!(error, Some(PatternError { part: PatternPart::Tags, column, fault }), "{text}");
    }
    assert!(
        Pattern::compile(&PatternText {
            tags: anywhere(&long[..EXPRESSION_BYTES_MAX]),
            ..Default::default()
        })
        .is_ok()
    );
    let error = Pattern::compile(&PatternText { host: anywhere("a(?=b)"), ..Default::default() }).err();
    let told = error.map(|error| error.to_string());
    assert_eq!(told.as_deref(), Some("host, column 2: look-around is not supported"));
}

#[test]
fn equal_texts_are_equal_patterns() {
    let compiled = |target| Pattern::compile(&PatternText { target, ..Default::default() });
    assert_eq!(compiled(anywhere("a")), compiled(anywhere("a")));
    assert_ne!(compiled(anywhere("a")), compiled(at_start("a")));
    assert_ne!(compiled(anywhere("a")), compiled(anywhere("(a)")));
}
