//! One form for all ways to write the same, and the page.

use super::super::fields::FILTER_FIELDS;
use super::super::page::{EXAMPLES, filter_markdown};
use super::*;

/// What is written, and how it is printed.
fn prints(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let read = filter(text);
        assert_eq!(read.to_string(), *expected, "{text}");
        assert_eq!(read.text(), *text);
        assert_eq!(filter(expected), read, "{text}");
    }
}

#[test]
fn what_is_printed_has_one_form() {
    prints(&[
        ("  a  AND(b)", "a and b"),
        ("(a and b) and c", "a and b and c"),
        ("a or (b or c) or d", "a or b or c or d"),
        ("a and (b or c)", "a and (b or c)"),
        ("a or (b and c)", "a or b and c"),
        ("not(a or b)", "not (a or b)"),
        ("not ( not (a))", "not not a"),
        ("not (path=/a)", "not path=/a"),
        ("status = 200 ,  5XX", "status=200,5xx"),
        ("stored=YES", "stored=true"),
        ("time>1.5s", "time>1500ms"),
        ("time>60s", "time>1min"),
        ("time>120m", "time>2h"),
        ("time>0.0015ms", "time>1.500us"),
        ("time>0h", "time>0s"),
        ("bytes>1024k", "bytes>1000KiB"),
        ("bytes>1.5mb", "bytes>1500kB"),
        ("bytes>1048576", "bytes>1MiB"),
        ("bytes>0GB", "bytes>0"),
        ("bytes>7B", "bytes>7"),
        ("attempts>007", "attempts>7"),
    ]);
}

#[test]
fn quotes_stand_where_they_are_needed() {
    prints(&[
        (r#""a" and "and" and """#, r#"a and "and" and """#),
        (r#""status=1""#, r#""status=1""#),
        (r#""/a?status=1""#, "/a?status=1"),
        (r#""(" or ")""#, r#""(" or ")""#),
        (r#""!a" or "a!" or "&&a" or "&a""#, r#""!a" or "a!" or "&&a" or &a"#),
        (r#"path="/a""#, "path=/a"),
        (r#"path="/a b","/a,b","/a(b",="#, r#"path="/a b","/a,b","/a(b","=""#),
        (r#"path="and""#, r#"path="and""#),
        (r#"path="""#, r#"path="""#),
        (r#"path~"\.css$""#, r"path~\.css$"),
        (r#"path~"(\.css|\\.js)""#, r#"path~"(\.css|\.js)""#),
        (
            r#"path="\"" or path="\\ " or path=" \\" or path=" \\\\""#,
            r#"path="\"" or path="\ " or path=" \\" or path=" \\\\""#,
        ),
    ]);
}

#[test]
fn every_example_is_a_filter_of_its_field() {
    for field in FILTER_FIELDS {
        let read = filter(field.example);
        let behind = read.text().strip_prefix(field.name);
        assert!(
            behind.is_some_and(|behind| behind.starts_with(['=', '!', '~', '<', '>'])),
            "{}",
            field.example
        );
        assert!(field.meaning.ends_with('.'), "{}", field.name);
    }
    for (text, _) in EXAMPLES {
        filter(text);
    }
}

#[test]
fn every_field_has_one_name_and_a_source_of_its_own() {
    for (at, field) in FILTER_FIELDS.iter().enumerate() {
        for other in &FILTER_FIELDS[..at] {
            assert!(field.name != other.name && field.kind != other.kind, "{}", field.name);
        }
    }
}

#[test]
fn the_page_has_every_field_and_every_kind() {
    let page = filter_markdown();
    for field in FILTER_FIELDS {
        assert!(page.contains(&format!("\n| `{}` | {} | ", field.name, field.kind.form())), "{}", field.name);
        assert!(page.contains(&format!("\n| {} | yes | yes |", field.kind.form())), "{}", field.name);
    }
    assert!(page.contains("column 16: no field is named \"sttus\"; the nearest is \"status\"\n"), "{page}");
}
