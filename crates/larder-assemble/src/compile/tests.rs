//! Programs: the same however a body is cut, and problems with their places.

use std::sync::Arc;

use bytes::Bytes;
use larder_http::authority::Authority;
use larder_http::message::Scheme;
use larder_http::target::Target;
use larder_http::target::reference::DocumentUri;
use larder_http::template::Language;
use proptest::prelude::*;

use super::{Compiler, compile};
use crate::{Fault, Problem, Program};

fn uri() -> DocumentUri {
    DocumentUri {
        scheme: Scheme::Http,
        authority: Authority::parse(Bytes::from_static(b"own.example"), Scheme::Http).expect("a host"),
        target: Target::parse(Bytes::from_static(b"/p/page")).expect("a target"),
    }
}

fn in_pieces(language: Language, body: &[u8], cuts: &[usize]) -> Arc<Program> {
    let mut compiler = Compiler::new(language, uri());
    let (mut from, mut known) = (0, 0);
    for cut in cuts.iter().copied().chain([body.len()]) {
        let to = cut.clamp(from, body.len());
        compiler.feed(&body[from..to]);
        let now = compiler.program().compiled_bytes();
        assert!(known <= now && now <= to as u64, "text that is known was not read, or is forgotten");
        (from, known) = (to, now);
    }
    compiler.finish()
}

#[track_caller]
fn check(language: Language, body: &str, expected: &[(u32, u32, Fault)]) {
    let program = compile(language, uri(), body.as_bytes());
    let problem =
        |(line, column, fault): &(u32, u32, Fault)| Problem { line: *line, column: *column, fault: *fault };
    let expected: Vec<Problem> = expected.iter().map(problem).collect();
    assert_eq!(program.problems().expect("it is complete").listed(), expected, "{body}");
}

#[test]
fn problems_of_ssi_have_their_places() {
    use Fault::{
        Attribute, Expression, Misplaced, Missing, Mixed, Pattern, Reference, Repeated, TooLong, Unclosed,
        Unknown, Value,
    };
    let ssi = |body: &str, expected: &[(u32, u32, Fault)]| check(Language::Ssi, body, expected);
    ssi("<!--#echo var=x --><!--#include virtual=/a -->", &[]);
    ssi("a\nbc<!--#x -->\n<!--#exec cmd=id -->", &[(2, 3, Unknown), (3, 1, Unknown)]);
    ssi(
        "<!--#endif -->\n<!--#if expr=1 -->\n <!--#if expr=1 -->",
        &[(1, 1, Misplaced), (3, 2, Unclosed), (2, 1, Unclosed)],
    );
    ssi(
        "<!--#if expr=( --><!--#elif expr='a = /(/' --><!--#endif -->",
        &[(1, 1, Expression), (1, 19, Pattern)],
    );
    ssi("<!--#if expr='a && b || c' --><!--#endif -->", &[(1, 1, Mixed)]);
    ssi("<!--#if expr='(a && b) || c' --><!--#endif -->", &[]);
    ssi("<!--#if expr='' --><!--#elif expr=' ' --><!--#endif -->", &[]);
    ssi(
        "<!--#echo x --><!--#echo var=a var=b --><!--#echo -->",
        &[(1, 1, Attribute), (1, 16, Repeated), (1, 41, Missing)],
    );
    ssi("<!--#include virtual=http://x/ -->", &[(1, 1, Reference)]);
    ssi("<!--#include virtual=/a wait=x -->", &[(1, 1, Value)]);
    ssi(&format!("\n<!--#comment {} -->", "x".repeat(5000)), &[(2, 1, TooLong)]);
    ssi("\n\n  <!--#echo", &[(3, 3, Unclosed)]);
}

#[test]
fn problems_of_esi_have_their_places() {
    use Fault::{
        Attribute, Expression, Misplaced, Missing, Mixed, Reference, Repeated, TooLong, Unclosed, Unknown,
        Value,
    };
    let esi = |body: &str, expected: &[(u32, u32, Fault)]| check(Language::Esi, body, expected);
    esi("<esi:vars>$(HTTP_HOST)</esi:vars><esi:include src='/a'></esi:include>", &[]);
    esi("a\n <esi:inline/>\n</esi:vars>", &[(2, 2, Unknown), (3, 1, Misplaced)]);
    esi("<esi:try>\n<esi:attempt></esi:attempt></esi:try>", &[(1, 1, Missing)]);
    esi("<esi:choose></esi:choose>", &[(1, 1, Missing)]);
    esi(
        "<esi:choose>\n<esi:when test='('></esi:when><esi:when/></esi:choose>",
        &[(2, 1, Expression), (2, 31, Missing)],
    );
    esi("<esi:choose><esi:when test='1==1&2==2|3==3'/></esi:choose>", &[(1, 13, Mixed)]);
    esi("<esi:include src='/a' src='/b'/><esi:include/>", &[(1, 1, Repeated), (1, 33, Missing)]);
    esi("a\n<esi:include src='' alt='/a'/>", &[(2, 1, Missing)]);
    esi(
        "<esi:include src='ftp://x/'/><esi:include src=/a/>",
        &[(1, 1, Reference), (1, 30, Attribute), (1, 30, Missing)],
    );
    esi("<esi:include src='/a' ttl='1h' maxwait='x'/>", &[(1, 1, Attribute), (1, 1, Value)]);
    esi(&format!("<esi:x y='{}'/>", "x".repeat(20_000)), &[(1, 1, TooLong)]);
    esi("\n<esi:remove>\n<esi:include src='", &[(3, 1, Unclosed), (2, 1, Unclosed)]);
}

#[test]
fn problems_are_listed_up_to_a_number_and_counted_beyond() {
    let program = compile(Language::Ssi, uri(), "<!--#x -->".repeat(100).as_bytes());
    let problems = program.problems().expect("it is complete");
    assert_eq!((problems.listed().len(), problems.more()), (64, 36));
}

#[test]
fn a_body_without_directives_has_an_empty_program_at_once() {
    for language in [Language::Ssi, Language::Esi] {
        let mut compiler = Compiler::new(language, uri());
        compiler.feed(b"<p>text</p><!-- a comment --><!");
        assert_eq!(compiler.program().compiled_bytes(), 29);
        assert!(!compiler.program().is_complete());
        let program = compiler.finish();
        assert!(program.is_complete() && !program.has_operations());
        assert_eq!(program.compiled_bytes(), 31);
    }
}

#[test]
fn operations_are_there_before_the_next_piece() {
    let mut compiler = Compiler::new(Language::Esi, uri());
    compiler.feed(b"<esi:include src='/a'/>x<esi:include src='/b");
    assert!(compiler.program().has_operations());
    assert_eq!(compiler.program().compiled_bytes(), 24);
}

/// Templates that are likely to hold something.
pub(crate) fn likely(language: Language) -> impl Strategy<Value = String> {
    let pieces: &[&'static str] = match language {
        Language::Ssi => &[
            "text",
            "<",
            "<!",
            "<!--",
            "<!--#",
            "-->",
            " -->",
            "\n",
            "\"",
            "'",
            "\\",
            "$",
            "${",
            "}",
            "/",
            "=",
            "<!--#include virtual=\"/a\" -->",
            "<!--#include virtual=\"/$cookie_a\" wait=yes -->",
            "<!--#include virtual=/t set=v -->",
            "<!--#include file=t stub=s -->",
            "<!--#include virtual=/bad onerror=/b stub=s -->",
            "<!--#include virtual=/u wait=yes -->",
            "<!--#include virtual=/u set=v onerror=/t -->",
            "<!--#if expr=\"$v\" -->",
            "<!--#if expr=\"$v = /(A)/\" -->",
            "<!--#elif expr=1 -->",
            "<!--#else -->",
            "<!--#endif -->",
            "<!--#block name=s -->",
            "<!--#endblock -->",
            "<!--#set var=v value=\"x$v\" -->",
            "<!--#echo var=v -->",
            "<!--#echo var=1 -->",
            "<!--#config errmsg=E -->",
            "<!--#",
            "if",
            "expr=",
            "include virtual=/a",
        ],
        Language::Esi => &[
            "text",
            "<",
            "<esi:",
            "</esi:",
            "<!--esi ",
            "<!--",
            "-->",
            "<![CDATA[",
            "]]>",
            "\n",
            "\"",
            "'",
            ">",
            "/>",
            "$(",
            ")",
            "$(QUERY_STRING)",
            "<esi:include src='/a'/>",
            "<esi:include src='/t'/>",
            "<esi:include src='/u'/>",
            "<esi:include src='/bad'/>",
            "<esi:include src='/bad' alt='/b'/>",
            "<esi:include src='/bad' onerror='continue'/>",
            "<esi:include src='/$(v)'/>",
            "<esi:try>",
            "<esi:attempt>",
            "</esi:attempt>",
            "<esi:except>",
            "</esi:except>",
            "</esi:try>",
            "<esi:choose>",
            "<esi:when test='1==1'>",
            "<esi:when test=\"$(v)=='x'\">",
            "</esi:when>",
            "<esi:otherwise>",
            "</esi:otherwise>",
            "</esi:choose>",
            "<esi:vars>",
            "</esi:vars>",
            "<esi:remove>",
            "</esi:remove>",
            "<esi:text>",
            "</esi:text>",
            "<esi:assign name='v' value='x'/>",
            "<esi:inline>",
            "<esi:try><esi:attempt>",
            "</esi:attempt><esi:except>",
            "</esi:except></esi:try>",
        ],
    };
    proptest::collection::vec(proptest::sample::select(pieces), 0..24).prop_map(|pieces| pieces.concat())
}

pub(crate) fn language() -> impl Strategy<Value = Language> {
    proptest::sample::select(&[Language::Ssi, Language::Esi][..])
}

proptest! {
    #[test]
    fn any_cutting_gives_the_same_program(
        (language, body) in language().prop_flat_map(|language| (Just(language), likely(language))),
        cuts in proptest::collection::vec(0..400_usize, 0..12),
        is_bytewise in any::<bool>(),
    ) {
        let mut cuts = if is_bytewise { (0..body.len()).collect() } else { cuts };
        cuts.sort_unstable();
        let whole = compile(language, uri(), body.as_bytes());
        let cut = in_pieces(language, body.as_bytes(), &cuts);
        prop_assert_eq!(format!("{whole:?}"), format!("{cut:?}"));
        prop_assert_eq!(whole.compiled_bytes(), body.len() as u64);
        let mut end = 0;
        for index in 0.. {
            let Some(operation) = whole.operation(index) else { break };
            prop_assert!(end <= operation.at.start && operation.at.start <= operation.at.end);
            end = operation.at.end;
        }
        prop_assert!(end <= body.len() as u64);
    }

    #[test]
    fn no_bytes_panic(language in language(), body in proptest::collection::vec(any::<u8>(), 0..200)) {
        compile(language, uri(), &body);
    }
}
