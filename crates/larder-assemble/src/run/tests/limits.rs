//! Limits of a page (SAFETY: none of these may hang, crash, or take memory without bound).

use std::fmt::Write as _;

use larder_http::template::Language::{Esi, Ssi};

use super::{Case, ERROR};
use crate::RunSettings;

fn nested(language: &str, levels: usize) -> Case {
    let is_ssi = language == "ssi";
    let mut case = Case::new(if is_ssi { Ssi } else { Esi });
    for level in 1..=levels {
        let next = level + 1;
        case = match is_ssi {
            true => case.ssi(&format!("/{level}"), &format!("{level}<!--#include virtual=\"/{next}\" -->")),
            false => case.esi(
                &format!("/{level}"),
                &format!("{level}<esi:include src='/{next}' onerror='continue'/>"),
            ),
        };
    }
    case
}

#[test]
fn fragments_nest_ten_levels_deep() {
    let case = nested("esi", 12);
    let delivered = case.deliver("0<esi:include src='/1'/>", &mut |_| 0);
    assert_eq!(delivered.output, b"012345678910");
    assert_eq!(delivered.refused, ["depth"]);
    nested("ssi", 12).check("<!--#include virtual=\"/1\" -->", &format!("12345678910{ERROR}"));
}

#[test]
fn a_block_that_stands_in_for_its_own_include_ends() {
    let block = "<!--#block name=s -->(<!--#include virtual=/bad stub=s -->)<!--#endblock -->";
    let expected = format!("{}{ERROR}{}", "(".repeat(10), ")".repeat(10));
    Case::new(Ssi).check(&format!("{block}<!--#include virtual=/bad stub=s -->"), &expected);
}

#[test]
fn blocks_that_stand_in_are_counted_like_includes() {
    let block = format!(
        "<!--#block name=s -->(<!--#endblock -->{}",
        "<!--#include virtual=/bad stub=s -->".repeat(1200)
    );
    let delivered = Case::new(Ssi).deliver(&block, &mut |_| 0);
    assert_eq!(delivered.output.iter().filter(|byte| **byte == b'(').count(), 1000);
    // Five for each of five, ten levels deep.
    let include = "<!--#include virtual=/bad stub=s -->".repeat(5);
    let block = format!("<!--#block name=s -->({include})<!--#endblock -->{include}");
    let delivered = Case::new(Ssi).deliver(&block, &mut |_| 0);
    assert_eq!(delivered.output.iter().filter(|byte| **byte == b'(').count(), 1000);
}

#[test]
fn a_document_never_includes_itself() {
    for (target, body) in [("/p/page?x=1&y=a%20b", ""), ("/l", "<esi:include src='/l' onerror='continue'/>")]
    {
        let case = Case::new(Esi).esi("/l", body).esi("/m", "<esi:include src='/l' onerror='continue'/>");
        let delivered = case.deliver(
            &format!("a<esi:include src='{}' onerror='continue'/>", target.replace('&', "&amp;")),
            &mut |_| 0,
        );
        assert_eq!((&*delivered.output, &*delivered.refused), (&b"a"[..], &["loop"][..]), "{target}");
    }
    // Twice side by side is no circle.
    Case::new(Esi).esi("/l", "l").check("<esi:include src='/l'/><esi:include src='/l'/>", "ll");
    // Two that include each other.
    let two =
        Case::new(Ssi).ssi("/m", "m<!--#include virtual=/n -->").ssi("/n", "n<!--#include virtual=/m -->");
    two.check("<!--#include virtual=/m -->", &format!("mn{ERROR}"));
}

#[test]
fn a_page_has_a_thousand_includes() {
    let include = "<esi:include src='/a' onerror='continue'/>";
    let delivered = Case::new(Esi).deliver(&include.repeat(10_000), &mut |_| 0);
    assert_eq!(delivered.output.len(), 1000);
    assert_eq!(delivered.refused.len(), 9000);
    assert!(delivered.refused.iter().all(|reason| *reason == "count"));
    let few = Case { settings: RunSettings { includes_max: 2, ..RunSettings::default() }, ..Case::new(Ssi) };
    few.check(&"<!--#include virtual=/a -->".repeat(3), &format!("AA{ERROR}"));
}

#[test]
fn a_page_has_a_hundred_thousand_operations() {
    let body = "x<!--#echo var=v -->".repeat(120_000);
    let delivered = Case::new(Ssi).deliver(&body, &mut |_| 0);
    assert_eq!(delivered.refused, ["budget"]);
    assert!(delivered.output.ends_with(ERROR.as_bytes()));
    let body = "x<esi:vars>$(v)</esi:vars>".repeat(60_000);
    let delivered = Case::new(Esi).deliver(&body, &mut |_| 0);
    assert_eq!((delivered.refused, delivered.failed), (vec!["budget"], Some(crate::IncludeFailure::Budget)));
    // A branch that is not taken counts as well: skipping is work.
    let body = format!("<!--#if expr=\"$no\" -->{}<!--#endif -->end", "<!--#echo var=v -->".repeat(120_000));
    assert_eq!(Case::new(Ssi).deliver(&body, &mut |_| 0).refused, ["budget"]);
}

#[test]
fn values_have_limits() {
    // It doubles until it would be longer than 64 KiB.
    let doubling = "<!--#set var=x value=\"$x$x\" -->".repeat(20);
    let body = format!("<!--#set var=x value=\"0123456789abcdef\" -->{doubling}[<!--#echo var=x -->]");
    let delivered = Case::new(Ssi).deliver(&body, &mut |_| 0);
    assert_eq!(delivered.output.len(), 8 * ERROR.len() + 64 * 1024 + 2);
    // All of a page together: the first to find no room is an error.
    let large = "y".repeat(60_000);
    let set = "<!--#set var=a value=$http_large -->".repeat(20);
    let delivered = Case::new(Ssi).field("large", &large).deliver(&set, &mut |_| 0);
    assert_eq!(delivered.output.len(), 3 * ERROR.len());
    let long = "z".repeat(70_000);
    Case::new(Ssi)
        .body("/long", &long)
        .check("<!--#include virtual=/long set=x -->[<!--#echo var=x -->]", "[]");
    let block = format!("<!--#block name=s -->{long}<!--#endblock --><!--#include virtual=/bad stub=s -->");
    Case::new(Ssi).check(&block, &format!("{ERROR}{ERROR}"));
}

#[test]
fn request_fields_of_64_kib_are_values() {
    let large = "v".repeat(64 * 1024);
    let case = Case::new(Esi).field("cookie", &format!("a={large}")).field("x-a", &large);
    case.check("<esi:vars>$(HTTP_COOKIE{a})</esi:vars>", &large);
    case.check("<esi:choose><esi:when test=\"$(HTTP_COOKIE{a})=='x'\">a</esi:when><esi:otherwise>b</esi:otherwise></esi:choose>", "b");
    case.check_asked("<esi:include src='/x?$(HTTP_COOKIE{a})'/>", &[]);
    case.check("<esi:assign name='x' value='$(HTTP_X_A)$(HTTP_X_A)'/><esi:vars>[$(x)]</esi:vars>", "[]");
}

#[test]
fn conditions_and_attempts_nest_thirty_two_deep() {
    let ssi = |depth: usize| {
        let mut body = "<!--#if expr=1 -->(".repeat(depth);
        body.push_str("<!--#include virtual=/a -->");
        body.push_str(&")<!--#endif -->".repeat(depth));
        body + "."
    };
    Case::new(Ssi).check(&ssi(32), &format!("{}A{}.", "(".repeat(32), ")".repeat(32)));
    Case::new(Ssi).check(&ssi(33), &format!("{}{ERROR}{}.", "(".repeat(32), ")".repeat(32)));
    Case::new(Ssi).check(&ssi(5000), &format!("{}{ERROR}{}.", "(".repeat(32), ")".repeat(32)));
    let esi = |depth: usize| {
        let mut body = "<esi:try><esi:attempt>(".repeat(depth);
        body.push_str("<esi:include src='/a'/>");
        body.push_str(&")</esi:attempt><esi:except>e</esi:except></esi:try>".repeat(depth));
        body + "."
    };
    Case::new(Esi).check(&esi(32), &format!("{}A{}.", "(".repeat(32), ")".repeat(32)));
    Case::new(Esi).check(&esi(33), &format!("{}{}.", "(".repeat(32), ")".repeat(32)));
    Case::new(Esi).check(&esi(5000), &format!("{}{}.", "(".repeat(32), ")".repeat(32)));
    let bad = esi(32).replace("/a", "/bad");
    Case::new(Esi).check(&bad, &format!("{}e{}.", "(".repeat(31), ")".repeat(31)));
}

#[test]
fn a_thousand_parentheses_are_no_condition() {
    let mut test = "(".repeat(1000);
    let _ = write!(test, "1==1{}", ")".repeat(1000));
    let esi = format!(
        "<esi:choose><esi:when test=\"{test}\">a</esi:when><esi:otherwise>b</esi:otherwise></esi:choose>"
    );
    Case::new(Esi).check(&esi, "b");
    let ssi = format!("<!--#if expr=\"{test}\" -->a<!--#else -->b<!--#endif -->");
    Case::new(Ssi).check(&ssi, &format!("{ERROR}b"));
    let nots = format!("<!--#if expr=\"{}x\" -->a<!--#else -->b<!--#endif -->", "!".repeat(3000));
    Case::new(Ssi).check(&nots, "a");
}

#[test]
fn a_directive_of_ten_megabytes_is_dropped() {
    let long = "y".repeat(10 << 20);
    for piece_bytes in [0, 16 * 1024] {
        let ssi = Case { piece_bytes, ..Case::new(Ssi) };
        ssi.check(&format!("a<!--#set var=x value=\"{long}\" -->b"), &format!("a{ERROR}b"));
        let esi = Case { piece_bytes, ..Case::new(Esi) };
        esi.check(&format!("a<esi:include src='{long}'/>b"), "ab");
    }
}

#[test]
fn patterns_have_limits() {
    let check = |pattern: &str, expected: &str| {
        let body = format!("<!--#if expr=\"$http_x = /{pattern}/\" -->a<!--#else -->b<!--#endif -->");
        Case::new(Ssi).field("x", &"a".repeat(30_000)).check(&body, expected);
    };
    check("(a*)*b", "b");
    check("(a?){30}a{30}", "a");
    check("(x{1000}){1000}", &format!("{ERROR}b"));
    check("(?=a)", &format!("{ERROR}b"));
    check("(a)\\1", &format!("{ERROR}b"));
    let many = "<!--#if expr=\"a = /b/\" --><!--#endif -->".repeat(65);
    Case::new(Ssi).check(&many, ERROR);
}
