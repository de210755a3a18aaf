//! Conditions as tables.

use bytes::Bytes;

use super::{Unreadable, esi, ssi};
use crate::composed::Lookup;
use crate::name::{Variable, esi as esi_names};
use crate::value::Value;

/// Variables with the values that their names spell; `no` has none, `empty` an empty one.
#[derive(Default)]
struct Named {
    captured: Vec<Option<Value>>,
}

impl Lookup for Named {
    fn look_up(&mut self, variable: &Variable) -> Option<Value> {
        let name = match variable {
            Variable::Ssi(name) => name.text.to_vec(),
            Variable::Esi(name) => match &name.known {
                esi_names::EsiKnown::Assigned(name) => name.to_vec(),
                esi_names::EsiKnown::Language(tag) => {
                    return Some(Value::own(Bytes::from_static(if **tag == *b"de" {
                        b"true"
                    } else {
                        b"false"
                    })));
                }
                _ => return None,
            },
        };
        match &*name {
            b"no" => None,
            b"empty" => Some(Value::default()),
            b"quote" => Some(Value::foreign("' || '1'='1")),
            name => Some(Value::foreign(name.to_vec())),
        }
    }

    fn spend(&mut self, _: usize) {}

    fn captured(&mut self, numbered: Vec<Option<Value>>, _: Vec<(Box<[u8]>, Value)>) {
        self.captured = numbered;
    }
}

#[track_caller]
fn check_ssi(text: &str, expected: Result<bool, Unreadable>) {
    let read = ssi::SsiCondition::read(text.as_bytes());
    let found = read.map(|read| read.expression.is_true(&mut Named::default()));
    assert_eq!(found, expected, "{text}");
}

#[track_caller]
fn check_esi(text: &str, expected: Result<bool, Unreadable>) {
    let read = esi::EsiCondition::read(text.as_bytes());
    let found = read.map(|read| read.expression.is_true(&mut Named::default()));
    assert_eq!(found, expected, "{text}");
}

#[test]
fn conditions_of_ssi() {
    for text in [
        "x",
        "$x",
        "'x'",
        "\"x\"",
        "!$no",
        "!''",
        "a = a",
        "a == a",
        "'a' = a",
        "$a = a",
        "${a}b = ab",
        "a  b = 'a b'",
        "a != b",
        "a < b",
        "b > a",
        "a <= a",
        "a >= a",
        "$empty =",
        "= a || 1",
        "$no = ''",
        "a = /a/",
        "abc = /b/",
        "abc != /x/",
        "abc =~ /^a/",
        "abc !~ /^b/",
        "a/b = /a\\/b/",
        "/a/b = /a/b",
        "/a/b.html = /a/b.html",
        "a && b",
        "$no || a",
        "$no && a || b",
        "(a)",
        "((a) && (!$no))",
        "! $no && a",
        "-n a",
        "-n $a",
        "-z $no",
        "-z ''",
        "!-z a",
        "v('a') = a",
        "v( \"a\" ) = 'a'",
        "va = va",
        "\\$a = '\\$a'",
        "!!a",
        "a&b = 'a&b'",
        "x = x && y = y",
        "abc == /B|c/",
    ] {
        let expected = if text.starts_with('=') { Err(Unreadable::Syntax) } else { Ok(true) };
        check_ssi(text, expected);
    }
    for text in [
        "",
        " \t\n",
        "''",
        "$no",
        "!a",
        "a = b",
        "a != a",
        "a = /x/",
        "A = /a/",
        "a != /a/",
        "a && $no",
        "$no || $empty",
        "!(a)",
        "b < a",
        "$quote = a",
        "-n $no",
        "-z a",
        "a =",
        "$no && (a || b)",
    ] {
        check_ssi(text, Ok(false));
    }
    for text in [
        "(",
        ")",
        "(a",
        "a)",
        "a &&",
        "|| a",
        "a = 'b",
        "${a",
        "a 'b'",
        "a b 'c'",
        "!",
        "()",
        "v('a'",
        "v(a)",
        "a = b = c",
        "a =~ b",
    ] {
        check_ssi(text, Err(Unreadable::Syntax));
    }
    for text in ["a = /(/", "a = /(?=b)/", "a = /(.)\\1/", "a = /\u{e9}[\u{e9}]/"] {
        check_ssi(text, Err(Unreadable::Pattern));
    }
}

#[test]
fn a_match_leaves_its_groups() {
    let read = ssi::SsiCondition::read(b"'ab12' = /([a-z]+)(x)?([0-9])/").expect("it is one");
    let mut named = Named::default();
    assert!(read.expression.is_true(&mut named));
    let groups: Vec<_> =
        named.captured.iter().map(|group| group.as_ref().map(|value| value.text().clone())).collect();
    let text = |text: &'static str| Some(Bytes::from_static(text.as_bytes()));
    assert_eq!(groups, [text("ab1"), text("ab"), None, text("1")]);
}

#[test]
fn conditions_of_esi() {
    for text in [
        "1==1",
        "'a'=='a'",
        "$(a)=='a'",
        "$(a) != 'b'",
        "1<2",
        "2>1",
        "2<=2",
        "10>9",
        "'10'>'9'",
        "1.50==1.5",
        "-2<1",
        "-2<-1.5",
        "007==7",
        "'b'>'a'",
        "'10'<'9a'",
        "!(1==2)",
        "!1==2",
        "1==1&2==2",
        "1==2|2==2",
        "1==2&1==1|1==1",
        "(1==1)",
        "$(no)==''",
        "$(a)!=''",
        "''==$(empty)",
        "$(HTTP_ACCEPT_LANGUAGE{de})",
        "!$(HTTP_ACCEPT_LANGUAGE{en})",
        "a==a",
        "1==1 && 2==2",
        "1==2||2==2",
        "!$(a)",
        "-0==0",
        "99999999999999999999999>99999999999999999999998",
    ] {
        check_esi(text, Ok(true));
    }
    for text in [
        "1==2",
        "$(no)=='a'",
        "$(no)!='a'",
        "$(no)<'a'",
        "$(no)==$(empty)",
        "$(no)!=$(no)",
        "$(a)==''",
        "$(no)!=''",
        "''<'a'",
        "$(a)",
        "'true'",
        "$(a)&$(a)",
        "$(a)|1",
        "$(HTTP_ACCEPT_LANGUAGE{en})",
        "$(quote)=='x'",
        "!1==1",
    ] {
        check_esi(text, Ok(false));
    }
    for text in [
        "",
        "(",
        "1==",
        "==1",
        "1==1)",
        "(1==1",
        "1=1",
        "'a",
        "$(",
        "$(a",
        "1==1==1",
        "1 2",
        "&",
        "1==1&",
        "!",
        "$x",
        "\"a\"==\"a\"",
    ] {
        check_esi(text, Err(Unreadable::Syntax));
    }
}

#[test]
fn a_mix_without_parentheses_is_marked() {
    for (text, expected) in [
        ("a && b || c", true),
        ("a || b && c", true),
        ("(a && b) || c", false),
        ("a && (b || c)", false),
        ("a && b", false),
    ] {
        assert_eq!(ssi::SsiCondition::read(text.as_bytes()).expect("it is one").is_mixed, expected, "{text}");
        let text = text.replace("&&", "&").replace("||", "|");
        assert_eq!(esi::EsiCondition::read(text.as_bytes()).expect("it is one").is_mixed, expected, "{text}");
    }
}
