//! Documents that break off: what stands in for them, and what ends the page.

use larder_http::template::Language::{self, Esi, Ssi};

use super::Case;
use crate::RunSettings;

/// `/u` is a template that breaks off, with an include before that.
fn case(language: Language, broken: Language) -> Case {
    let text = match broken {
        Esi => "u<esi:include src='/a'/>v<esi:include",
        Ssi => "u<!--#include virtual=/a -->v<!--#set var=w value=1 --><!--#include",
    };
    Case::new(language).broken("/u", broken, text)
}

#[track_caller]
fn check(case: impl Fn() -> Case, body: &str, expected: &str) {
    case().check(body, expected);
    let cut = Case { piece_bytes: 1, ..case() };
    cut.check(body, expected);
    // What is not there fails in no other way where failed includes are left out.
    let settings = RunSettings { omits_failed: true, ..RunSettings::default() };
    Case { settings, ..case() }.check(body, expected);
}

fn attempt(inside: &str, except: &str) -> String {
    format!("<esi:try><esi:attempt>{inside}</esi:attempt><esi:except>{except}</esi:except></esi:try>")
}

const U: &str = "<esi:include src='/u' alt='/c' onerror='continue'/>";

#[test]
fn a_document_that_breaks_in_an_attempt_is_a_failed_fragment() {
    for broken in [Esi, Ssi] {
        let check = |body: &str, expected: &str| check(|| case(Esi, broken), body, expected);
        check(&format!("[{}]", attempt(&format!("x{U}y"), "e<esi:include src='/b'/>")), "[eB]");
        check(&format!("[{}]", attempt(&format!("x{}y", attempt(U, "inner")), "outer")), "[xinnery]");
        check(&format!("[{}]", attempt(&format!("x{}{U}y", attempt("i", "inner")), "outer")), "[outer]");
        // What fails in `except` goes further out.
        let bad = "<esi:include src='/bad'/>";
        check(&format!("[{}]", attempt(&format!("x{}y", attempt(bad, U)), "outer")), "[outer]");
    }
    // It reaches the attempt through whole documents, and not further.
    let deep = || case(Esi, Esi).esi("/t", &format!("t{U}")).ssi("/s", "s<!--#include virtual=/u -->");
    check(deep, &format!("[{}]", attempt("x<esi:include src='/t'/>", "e")), "[e]");
    check(deep, &format!("[{}]", attempt("x<esi:include src='/s'/>", "e")), "[e]");
    let safe = || case(Esi, Esi).esi("/t", &attempt(U, "safe"));
    check(safe, &format!("[{}]", attempt("x<esi:include src='/t'/>", "e")), "[xsafe]");
}

#[test]
fn a_captured_document_that_breaks_leaves_its_variable_empty_or_to_onerror() {
    let shown = "[<!--#echo var=x -->][<!--#echo var=w -->]";
    for broken in [Ssi, Esi] {
        let check = |body: &str, expected: &str| check(|| case(Ssi, broken), body, expected);
        check(&format!("<!--#include virtual=/u set=x -->{shown}"), "[][(none)]");
        check(&format!("<!--#include virtual=/u set=x onerror=/b -->{shown}"), "[B][(none)]");
        check(&format!("<!--#include virtual=/u set=x onerror=/u -->{shown}"), "[][(none)]");
    }
    let deep = || {
        case(Ssi, Esi)
            .ssi("/t", "t<!--#set var=w value=2 --><!--#include virtual=/u -->t")
            .ssi("/safe", "s<!--#include virtual=/a -->")
            .esi("/attempts", &attempt("x<esi:include src='/u'/>", "e"))
    };
    check(deep, &format!("<!--#include virtual=/t set=x -->{shown}"), "[][(none)]");
    check(deep, &format!("<!--#include virtual=/t set=x onerror=/safe -->{shown}"), "[sA][(none)]");
    check(deep, &format!("<!--#include virtual=/attempts set=x -->{shown}"), "[e][(none)]");
    // The innermost of both counts.
    let captured = || case(Esi, Esi).ssi("/s", "<!--#include virtual=/u set=x -->s<!--#echo var=x -->");
    check(captured, &attempt("<esi:include src='/s'/>", "e"), "s");
}

#[test]
fn any_other_document_that_breaks_ends_the_page_behind_what_it_had() {
    let esi = || case(Esi, Esi).esi("/t", "t<esi:include src='/u'/>t");
    check(esi, &format!("[{U}]"), "[uAv|broken");
    check(esi, "[<esi:include src='/t'/>]", "[tuAv|broken");
    let ssi = || case(Ssi, Ssi);
    check(ssi, "[<!--#include virtual=/u onerror=/b stub=s -->]", "[uAv|broken");
    check(ssi, "[<!--#include virtual=/u wait=yes -->]<!--#echo var=w -->", "[uAv|broken");
    let page = |language: Language| move || Case { breaks: true, ..Case::new(language) };
    check(page(Ssi), "", "|broken");
    check(page(Ssi), "x<!--#if expr=1 -->y<!--#include virtual=/a -->z<!--#ec", "xyAz|broken");
    check(page(Ssi), "x<!--#if expr='' -->y", "x|broken");
    check(page(Esi), "x<esi:include src='/a'/>y<esi:incl", "xAy|broken");
    check(page(Esi), "x<esi:vars>$(HTTP_HOST)", "xown.example|broken");
}

#[test]
fn of_an_attempt_that_is_cut_nothing_is_shown_and_one_that_is_over_counts() {
    let (a, bad) = ("<esi:include src='/a'/>", "<esi:include src='/bad'/>");
    let page = || Case { breaks: true, ..Case::new(Esi) };
    check(page, &format!("x<esi:try><esi:attempt>y{a}"), "x|broken");
    check(page, &format!("x<esi:try><esi:attempt>y{bad}z"), "x|broken");
    check(
        page,
        &format!("x<esi:try><esi:attempt>y{}z<esi:try><esi:attempt>{bad}", attempt(bad, "e")),
        "x|broken",
    );
    check(page, &format!("x<esi:try><esi:attempt>y{a}</esi:attempt><esi:exc"), "x|broken");
    check(page, &format!("x<esi:try><esi:attempt>y{a}</esi:attempt><esi:except>e"), "xyA|broken");
    check(page, &format!("x<esi:try><esi:attempt>y{bad}</esi:attempt><esi:except>e{a}"), "xeA|broken");
    check(
        page,
        &format!("x<esi:try><esi:attempt>y{bad}</esi:attempt><esi:except>e<esi:try><esi:attempt>f{a}"),
        "xe|broken",
    );
    check(page, &format!("x{}z", attempt(bad, "e")), "xez|broken");
}
