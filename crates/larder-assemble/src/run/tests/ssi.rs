//! Pages in SSI.

use larder_http::template::Language::Ssi;

use super::{Case, ERROR};

fn case() -> Case {
    Case::new(Ssi)
}

#[track_caller]
fn check(body: &str, expected: &str) {
    let expected = expected.replace("ERR", ERROR);
    case().check(body, &expected);
    // And so in pieces of one byte.
    let cut = Case { piece_bytes: 1, ..case() };
    cut.check(body, &expected);
}

#[test]
fn text_stays_byte_for_byte() {
    for body in [
        "",
        "text",
        "<",
        "<!",
        "<!-",
        "<!--",
        "<!-- # -->",
        "<!---#",
        "a<!-<!--x",
        "<!-- #echo -->",
        "é\0\u{ff}",
    ] {
        check(body, body);
    }
}

#[test]
fn directives_in_the_syntax_of_nginx_and_apache() {
    for body in [
        "<!--#include virtual=\"/a\" -->",
        "<!--# include virtual='/a'-->",
        "<!--#\n include\tVIRTUAL = `/a`\r\n-->",
        "<!--#INCLUDE virtual=/a-->",
        "<!--#include virtual=\"/p/../a\"-->",
        "<!--#include file=\"/a\"--><!--#include virtual=\"/a\"-->",
    ] {
        let expected = if body.contains("file") { "ERRA" } else { "A" };
        check(&format!("[{body}]"), &format!("[{expected}]"));
    }
    check("<!--#set var=\"x\" value=\"-->\" --><!--#echo var='x' encoding=none -->", "-->");
    check("<!--#set var=\"x\" value=\"\\\"\\$y\\\\\" --><!--#echo var='x' encoding=none -->", "\"$y\\");
    check("<!--#comment don't --><!--#comment x=\"y\" -->", "");
}

#[test]
fn includes_take_one_source_and_known_attributes() {
    for body in [
        "include",
        "include virtual=\"/a\" file=\"a\"",
        "include virtual=\"/a\" virtual=\"/b\"",
        "include virtual=\"/a\" other=\"x\"",
        "include virtual=\"/a\" wait=\"maybe\"",
        "include file=\"a\" wait=\"yes\"",
        "include virtual=\"/a\" set=\"x\" stub=\"y\"",
        "include virtual=\"/a${\"",
        "include virtual",
        "include \"/a\"",
    ] {
        check(&format!("<!--#{body} -->"), "ERR");
        case().check_asked(&format!("<!--#{body} -->"), &[]);
    }
    check("<!--#include virtual=\"http://own.example/a\" -->", "ERR");
    check("<!--#include virtual=\"../../a\" -->", "ERR");
    check("<!--#include virtual=\"\" -->", "ERR");
    case().check_asked(
        "<!--#include virtual=\"http://own.example/a\" --><!--#include virtual=\"/../a\" -->",
        &[],
    );
    case().check_asked(
        "<!--#include virtual=\"f?a=/../b\" --><!--#include virtual=\"//x/a\" -->",
        &["//x/a", "/p/f?a=/../b"],
    );
    case().check_asked(
        "<!--#include file=\"x/y\" --><!--#include file=\"../y\" --><!--#include file=\"a/%2e%2E/y\" -->",
        &["/p/x/y"],
    );
}

#[test]
fn a_failed_include_has_stand_ins() {
    check("<!--#include virtual=\"/bad\" -->.", "ERR.");
    check(
        "<!--#config errmsg=\"oh\" --><!--#include virtual=\"/bad\" --><!--#config errmsg=\"no\" -->.",
        "oh.",
    );
    check("<!--#include virtual=\"/bad\" onerror=\"/a\" -->", "A");
    check("<!--#include virtual=\"/bad\" onerror=\"/bad\" -->", "ERR");
    check("<!--#block name=\"s\" --><b><!--#endblock --><!--#include virtual=\"/bad\" stub=\"S\" -->", "<b>");
    check("<!--#block name=\"s\" -->x<!--#endblock --><!--#include virtual=\"/empty\" stub=\"s\" -->", "x");
    check("<!--#block name=\"s\" -->x<!--#endblock --><!--#include virtual=\"/a\" stub=\"s\" -->", "A");
    check("<!--#block name=s -->x<!--#endblock --><!--#include virtual=/bad onerror=/bad stub=s -->", "x");
    check("<!--#block name=s -->x<!--#endblock --><!--#include virtual=/bad onerror=/b stub=s -->", "B");
    check("<!--#include virtual=\"/bad\" stub=\"s\" -->", "ERR");
    check("<!--#block name=s --><!--#endblock -->[<!--#include virtual=/bad stub=s -->]", "[]");
    // In the context of the include.
    check(
        "<!--#block name=s --><!--#echo var=v --><!--#endblock --><!--#set var=v value=1 -->\
         <!--#include virtual=/bad stub=s --><!--#set var=v value=2 -->",
        "1",
    );
    let mut silent = case();
    silent.settings.is_silent = true;
    silent.check("[<!--#include virtual=\"/bad\" --><!--#nothing -->]", "[]");
}

#[test]
fn a_block_is_kept_unevaluated_and_may_hold_anything() {
    check("<!--#block name=s --><!--#include virtual=/a --><!--#endblock -->.", ".");
    case().check_asked("<!--#block name=s --><!--#include virtual=/a --><!--#endblock -->", &[]);
    check(
        "<!--#block name=s -->[<!--#if expr=1 --><!--#include virtual=/b --><!--#endif -->]<!--#endblock -->\
         <!--#include virtual=/bad stub=s --><!--#include virtual=/empty stub=s -->",
        "[B][B]",
    );
    check(
        "<!--#block name=s --><!--#if expr=1 -->x<!--#endblock --><!--#include virtual=/bad stub=s -->y",
        "xy",
    );
    check(
        "<!--#block name=s -->a<!--#block name=t -->b<!--#endblock -->c<!--#endblock --><!--#include virtual=/bad stub=s -->",
        "ac",
    );
}

#[test]
fn echo_encodes_once_and_tells_missing_from_empty() {
    let set = "<!--#set var=\"x\" value=\"<a href='b'>&\\\"\" -->";
    for (attributes, expected) in [
        ("var=\"x\"", "&lt;a href='b'&gt;&amp;&quot;"),
        ("var=\"X\" encoding=\"entity\"", "&lt;a href='b'&gt;&amp;&quot;"),
        ("encoding=\"none\" var=\"x\"", "<a href='b'>&\""),
        ("encoding=\"url\" var=\"x\"", "%3Ca%20href%3D%27b%27%3E%26%22"),
        ("encoding=\"urlencoded\" var=\"x\"", "%3Ca%20href%3D%27b%27%3E%26%22"),
        ("encoding=\"base64\" var=\"x\"", "PGEgaHJlZj0nYic+JiI="),
        ("var=\"y\"", "(none)"),
        ("var=\"y\" default=\"<d>\"", "&lt;d&gt;"),
        ("encoding=none default=\"<d>\" var=\"y\"", "<d>"),
        ("var=\"y\" default=\"<d>\" encoding=url", "%3Cd%3E"),
        ("var=\"y\" default=\"<d>\" encoding=base64", "PGQ+"),
        ("var=\"y\" default=\"\"", ""),
        ("var=\"empty\" default=\"d\"", ""),
        ("var=\"x\" encoding=\"rot13\"", "ERR"),
        ("default=\"x\"", "ERR"),
        ("", "ERR"),
        ("var=\"x\" other=\"y\"", "ERR"),
    ] {
        check(&format!("{set}<!--#set var=\"empty\" value=\"\" --><!--#echo {attributes} -->"), expected);
    }
    check("<!--#echo encoding=none var=a --><!--#set var=a value=< --><!--#echo var=a -->", "(none)&lt;");
    check("<!--#config echomsg=\"-\" --><!--#echo var=\"y\" -->", "-");
}

#[test]
fn set_takes_both_attributes_and_interpolates() {
    check(
        "<!--#set var=x value=\"1\" --><!--#set var=X value=\"$x${x}\\$x$y.\" --><!--#echo var=x -->",
        "11$x.",
    );
    check(
        "<!--#set var=x --><!--#set value=x --><!--#set var=x value=\"${\" --><!--#set var=x value=1 y=2 -->",
        "ERRERRERRERR",
    );
}

#[test]
fn conditions_nest_and_untaken_branches_do_nothing() {
    for (body, expected) in [
        ("I1{a}N", "a"),
        ("I0{a}N", ""),
        ("I0{a}E{b}N", "b"),
        ("I0{a}L1{b}E{c}N", "b"),
        ("I0{a}L0{b}E{c}N", "c"),
        ("I1{a}L1{b}E{c}N", "a"),
        ("I1I0{a}E{b}NE{c}N.", "b."),
        ("I0I1{a}E{b}NE{c}N.", "c."),
        ("I0XE{b}N", "b"),
        ("I1XE{b}N", "ERR"),
        ("E{a}N{b}L1{c}", "ERR{a}ERR{b}ERR{c}"),
        ("I1{a}E{b}E{c}N", "a"),
        ("I0{a}E{b}E{c}N", "bERRc"),
        ("I0{a}E{b}L1{c}N", "bERRc"),
        ("I1{a}", "a"),
        ("I0{a}", ""),
        ("I0{a}I1{b}NX", ""),
        ("I?{a}E{b}N", "ERRb"),
        ("I0L?{a}E{b}N", "ERRb"),
        // An empty condition is no fault.
        ("I-{a}N", ""),
        ("I-{a}E{b}N", "b"),
        ("I0L-{a}L1{b}N", "b"),
    ] {
        let mut written = body.to_owned();
        for (short, long) in [
            ("{", ""),
            ("}", ""),
            ("I0", "<!--#if expr=\"$no\" -->"),
            ("I1", "<!--#if expr=\"1\" -->"),
            ("I?", "<!--#if expr=\"(\" -->"),
            ("I-", "<!--#if expr=\"\" -->"),
            ("L0", "<!--#elif expr=\"\\$no = x\" -->"),
            ("L-", "<!--#elif expr=\" \" -->"),
            ("L1", "<!--#elif expr=\"1\" -->"),
            ("L?", "<!--#elif -->"),
            ("E", "<!--#else -->"),
            ("N", "<!--#endif -->"),
            ("X", "<!--#unknown -->"),
        ] {
            written = written.replace(short, long);
        }
        check(&written, &expected.replace(['{', '}'], ""));
    }
    case().check_asked(
        "<!--#if expr=\"$no\" --><!--#include virtual=/a --><!--#set var=v value=1 --><!--#endif -->",
        &[],
    );
}

#[test]
fn config_counts_from_there_on_in_its_document() {
    let date = "<!--#config timefmt=\"%s\" --><!--#echo var=DATE_GMT -->";
    check(&format!("<!--#echo var=date_local -->|{date}"), "Monday, 09-Feb-2026 05:06:07 GMT|1770613567");
    check("<!--#config sizefmt=\"bytes\" -->", "");
    check("<!--#config -->", "ERR");
    case().ssi("/child", "<!--#nothing -->").check(
        "<!--#config errmsg=\"mine\" --><!--#include virtual=/child --><!--#nothing -->",
        &format!("{ERROR}mine"),
    );
}

#[test]
fn programs_and_files_are_not_shown() {
    for command in [
        "exec cmd=\"id\"",
        "exec cgi=\"/x\"",
        "perl sub=\"x\"",
        "printenv",
        "fsize file=\"x\"",
        "flastmod file=\"x\"",
        "",
        "x",
    ] {
        check(&format!("<!--#{command} -->"), "ERR");
    }
}

#[test]
fn variables_of_the_request_and_the_document() {
    let case = case()
        .field("cookie", "sid=S1; SID=S2; other=<o>")
        .field("accept-language", "de")
        .field("x-many", "1")
        .field("x-many", "2")
        .field("authorization", "Basic secret")
        .field("proxy-authorization", "Basic secret");
    for (name, expected) in [
        ("DOCUMENT_URI", "/p/page"),
        ("uri", "/p/page"),
        ("DOCUMENT_NAME", "page"),
        ("DOCUMENT_ARGS", "x=1&y=a%20b"),
        ("QUERY_STRING", "x=1&y=a%20b"),
        ("args", "x=1&y=a%20b"),
        ("QUERY_STRING_UNESCAPED", "x=1&y=a b"),
        ("REQUEST_METHOD", "GET"),
        ("REQUEST_URI", "/p/page?x=1&y=a%20b"),
        ("SERVER_NAME", "own.example"),
        ("host", "own.example"),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("REQUEST_SCHEME", "http"),
        ("REMOTE_ADDR", "192.0.2.7"),
        ("LAST_MODIFIED", "(none)"),
        ("HTTP_ACCEPT_LANGUAGE", "de"),
        ("http_x_many", "1, 2"),
        ("HTTP_X_NONE", "(none)"),
        ("cookie_sid", "S1"),
        ("cookie_other", "<o>"),
        ("cookie_none", "(none)"),
        ("arg_x", "1"),
        ("arg_y", "a%20b"),
        ("arg_z", "(none)"),
        ("HTTP_AUTHORIZATION", "(none)"),
        ("http_proxy_authorization", "(none)"),
    ] {
        case.check(&format!("<!--#echo encoding=none var=\"{name}\" -->"), expected);
    }
    let delivered = case.deliver("<!--#echo var=HTTP_AUTHORIZATION -->", &mut |_| 0);
    assert!(delivered.used.fields.is_empty());
}

#[test]
fn in_a_fragment_apaches_names_are_about_the_page_and_nginxs_about_the_fragment() {
    for (name, expected) in [
        ("DOCUMENT_URI", "/p/page"),
        ("DOCUMENT_NAME", "page"),
        ("DOCUMENT_ARGS", "x=1&y=a%20b"),
        ("QUERY_STRING", "x=1&y=a%20b"),
        ("QUERY_STRING_UNESCAPED", "x=1&y=a b"),
        ("REQUEST_URI", "/p/page?x=1&y=a%20b"),
        ("uri", "/f"),
        ("args", "x=2"),
        ("arg_x", "2"),
        ("arg_y", "(none)"),
    ] {
        let case = case().ssi("/f?x=2", &format!("<!--#echo encoding=none var=\"{name}\" -->"));
        case.check("<!--#include virtual=\"/f?x=2\" -->", expected);
    }
}

#[test]
fn what_was_used_of_the_request_is_noted() {
    let used = |body: &str| {
        let used = case().deliver(body, &mut |_| 0).used;
        let fields: Vec<String> = used.fields.iter().map(ToString::to_string).collect();
        (fields.join(","), used.client, used.clock, used.start_line)
    };
    let none = || (String::new(), false, false, false);
    assert_eq!(used("<!--#include virtual=\"/x?$args\" --><!--#echo var=uri -->"), none());
    assert_eq!(used("<!--#if expr=\"$http_accept = x\" --><!--#endif -->").0, "accept");
    assert_eq!(used("<!--#include virtual=\"/x?$cookie_a$http_b\" -->").0, "b,cookie");
    assert_eq!(used("<!--#if expr=\"$no\" --><!--#echo var=http_a --><!--#endif -->"), none());
    assert!(used("<!--#echo var=REMOTE_ADDR -->").1);
    assert!(used("<!--#echo var=DATE_GMT -->").2);
    assert!(used("<!--#echo var=REQUEST_METHOD -->").3);
}

#[test]
fn what_is_set_hides_the_request() {
    check("<!--#set var=args value=mine --><!--#echo var=args -->", "mine");
    check(
        "<!--#if expr=\"abc = /(b)(?<n>c)/\" --><!--#echo var=0 -->,$1=<!--#echo var=1 -->,<!--#echo var=N --><!--#endif -->",
        "bc,$1=b,c",
    );
}

#[test]
fn values_in_references_are_one_component() {
    let case = case().field("cookie", "v=../a/b?c&d#e; dots=..; dot=.; site=//evil.example; pct=%2e%2e");
    for (reference, expected) in [
        ("/x/$cookie_v/y", Some("/x/..%2Fa%2Fb%3Fc%26d%23e/y")),
        ("/x?q=$cookie_v", Some("/x?q=..%2Fa%2Fb%3Fc%26d%23e")),
        ("/x?$args", Some("/x?x=1&y=a%20b")),
        ("/x/$args", Some("/x/x%3D1%26y%3Da%2520b")),
        ("/x/$cookie_dots/y", None),
        ("/x/$cookie_dot/y", None),
        ("/x/.$cookie_dot/y", None),
        ("/x/a$cookie_dots/y", Some("/x/a../y")),
        ("/x?q=/$cookie_dots/y", Some("/x?q=/../y")),
        ("$cookie_site/x", Some("/p/%2F%2Fevil.example/x")),
        ("/$cookie_none/x", Some("//x")),
        ("/x/$cookie_pct/y", Some("/x/%252e%252e/y")),
    ] {
        case.check_asked(&format!("<!--#include virtual=\"{reference}\" -->"), expected.as_slice());
    }
    // What the template itself has set is its own text.
    let own = "<!--#set var=base value=/x/y --><!--#set var=mixed value=\"/m/$cookie_dot.a\" -->";
    case.check_asked(&format!("{own}<!--#include virtual=\"$base/a?b\" -->"), &["/x/y/a?b"]);
    case.check_asked(&format!("{own}<!--#include virtual=\"$mixed/a\" -->"), &["/m/..a/a"]);
    case.check_asked(
        "<!--#set var=h value=\"http://evil.example\" --><!--#include virtual=\"$h/a\" -->",
        &[],
    );
}

#[test]
fn a_value_is_never_searched_for_directives() {
    case()
        .field("cookie", "v=<!--#include virtual=/a -->")
        .body("/raw", "<!--#include virtual=\"/a\" -->")
        .check(
            "<!--#echo var=cookie_v encoding=none --><!--#include virtual=/raw --><!--#set var=s value=$cookie_v -->",
            "<!--#include virtual=/a --><!--#include virtual=\"/a\" -->",
        );
}

#[test]
fn fragments_see_what_was_set_before_and_hand_back_only_where_they_are_waited_for() {
    let case = case()
        .ssi("/child", "[<!--#echo var=v --><!--#set var=v value=child --><!--#set var=w value=new -->]")
        .ssi("/p/child", "[<!--#echo var=v --><!--#set var=v value=file -->]")
        .ssi("/stubs", "<!--#include virtual=/bad stub=s -->")
        .ssi("/defines", "<!--#block name=s -->theirs<!--#endblock -->");
    let set = "<!--#set var=v value=1 -->";
    case.check(
        &format!("{set}<!--#include virtual=/child --><!--#set var=v value=2 --><!--#echo var=v -->"),
        "[1]2",
    );
    case.check(&format!("{set}<!--#include virtual=/child --><!--#echo var=v -->"), "[1]1");
    case.check(
        &format!("{set}<!--#include virtual=/child wait=yes --><!--#echo var=v --><!--#echo var=w -->"),
        "[1]childnew",
    );
    case.check(&format!("{set}<!--#include file=child --><!--#echo var=v -->"), "[1]file");
    case.check(
        &format!("{set}<!--#include virtual=/child set=x -->(<!--#echo var=x -->)<!--#echo var=v -->"),
        "([1])child",
    );
    case.check("<!--#block name=s -->mine<!--#endblock --><!--#include virtual=/stubs -->", "mine");
    case.check("<!--#include virtual=/defines wait=yes --><!--#include virtual=/bad stub=s -->", "theirs");
    case.check("<!--#include virtual=/defines --><!--#include virtual=/bad stub=s -->", ERROR);
}

#[test]
fn a_fragment_may_become_a_variable() {
    check("<!--#include virtual=/a set=x -->[<!--#echo var=x -->]", "[A]");
    check("<!--#include virtual=/bad set=x -->[<!--#echo var=x -->]", "[]");
    check("<!--#include virtual=/bad onerror=/b set=x -->[<!--#echo var=x -->]", "[B]");
    check(
        "<!--#include virtual=/empty set=x -->[<!--#if expr=\"$x\" -->full<!--#else -->empty<!--#endif -->]",
        "[empty]",
    );
    case()
        .ssi(
            "/outer",
            "(<!--#include virtual=/a --><!--#include virtual=/inner set=y --><!--#echo var=y -->)",
        )
        .ssi("/inner", "<!--#include virtual=/b -->!")
        .check("<!--#include virtual=/outer set=x --><!--#echo var=x --><!--#echo var=y -->", "(AB!)B!");
}

#[test]
fn a_directive_that_is_cut_or_too_long_is_an_error() {
    check("a<!--#echo var=\"x", "aERR");
    check("a<!--#echo", "aERR");
    check("a<!--#", "aERR");
    let long = "x".repeat(4096);
    check(&format!("a<!--#set var=x value=\"{long}\" -->b<!--#echo var=x -->"), "aERRb(none)");
    check(&format!("a<!--#set var=x value=\"{long}--> c\" -->b"), "aERR c\" -->b");
    check(&format!("a<!--#set var=x value=\"{long}"), "aERR");
    let fits = "x".repeat(4096 - "<!--#set var=x value=\"\" -->".len());
    check(&format!("<!--#set var=x value=\"{fits}\" -->b"), "b");
    check(&format!("<!--#set var=x value=\"{fits}x\" -->b--> c"), "ERR c");
}
