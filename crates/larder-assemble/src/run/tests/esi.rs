//! Pages in ESI.

use larder_http::template::Language::Esi;

use super::Case;
use crate::{FactsUsed, RunSettings};

fn case() -> Case {
    Case::new(Esi)
}

#[track_caller]
fn check(body: &str, expected: &str) {
    case().check(body, expected);
    // And so in pieces of one byte.
    let cut = Case { piece_bytes: 1, ..case() };
    cut.check(body, expected);
}

#[test]
fn text_comments_and_cdata_stay_byte_for_byte() {
    for body in [
        "",
        "<",
        "<e",
        "<esi",
        "</esi",
        "<!--",
        "<!--e",
        "<![CDATA",
        "<p>$(HTTP_HOST)</p>",
        "<!-- <esi:include src='/a'/> -->",
        "<!--esix <esi:include src='/a'/> -->",
        "<!--esi2 <esi:include src='/a'/> -->",
        "<!--esi",
        "<![CDATA[<esi:include src='/a'/>]]>",
        "<!-- unclosed <esi:include src='/a'/>",
        "a --> b",
        "<ESI:include src='/a'/>",
        "<esi :include/>",
    ] {
        check(body, body);
    }
    check("<script>'<esi:include src='/a'/>'</script>", "<script>'A'</script>");
    check("<!--x--><esi:include src='/a'/><!--y-->", "<!--x-->A<!--y-->");
}

#[test]
fn includes_in_every_syntax() {
    for body in [
        "<esi:include src=\"/a\"/>",
        "<esi:include src='/a' />",
        "<esi:include\n\tsrc = '/a'\n/>",
        "<esi:include src='/a'>",
        "<esi:include src='/a'></esi:include>",
        "<esi:include src='http://own.example/a'/>",
        "<esi:include src='https://OWN.example/a#x'/>",
        "<esi:include src='//own.example/a'/>",
        "<esi:include src='../a'/>",
        "<esi:include src='/a' other='x'/>",
        "<esi:include src='&#47;a'/>",
        "<esi:include src='/%61' alt='/a'/>",
    ] {
        check(&format!("[{body}]"), "[A]");
    }
    check("<esi:include/><esi:include src='/a' src='/b'/>.", ".");
    check("a<esi:include src=''/><esi:include src=\" \n\" alt='/b'/>.", "a.");
    case().check_asked("<esi:include src='/x?a&amp;b&lt;'/>", &["/x?a&b%3C"]);
    case().check_asked("<esi:include src='?z'/><esi:include src='/q?/../y'/>", &["/p/page?z", "/q?/../y"]);
    case().check_asked("<esi:include src='http://o.example:81/x'/>", &["http://o.example:81/x"]);
}

#[test]
fn unwrapped_comments_are_processed() {
    // All between the markers stays, as in Varnish.
    check("a<!--esi <esi:include src='/a'/> -->b", "a A b");
    check("a<!--esi<esi:include src='/a'/>-->b", "aAb");
    check("a<!--esi-->b<!--esi -->c", "ab c");
    check("<!--esi\n<p><esi:vars>$(HTTP_HOST)</esi:vars></p>-->", "\n<p>own.example</p>");
    check("<!--esi\r\n\ta -->", "\r\n\ta ");
    check(
        "<!--esi a <!-- <esi:include src='/a'/> --> b -->c-->",
        " a <!-- <esi:include src='/a'/> --> b c-->",
    );
    check("<!--esi <!--esi a -->b-->c-->", "  a bc-->");
    check("<!--esi <esi:include src='/a'/>", " A");
    check("a--<!--esi --b-->", "a-- --b");
}

#[test]
fn a_failed_include_has_stand_ins() {
    check("a<esi:include src='/bad'/>b", "a|status");
    check("a<esi:include src='/bad' onerror='continue'/>b", "ab");
    check("a<esi:include src='/bad' alt='/b'/>b", "aBb");
    check("a<esi:include src='/bad' alt='/bad' onerror='continue'/>b", "ab");
    check("a<esi:include src='/bad' alt='/bad'/>b", "a|status");
    case().check_asked("<esi:include src='/a' alt='/b'/>", &["/a"]);
    let omits = Case { settings: RunSettings { omits_failed: true, ..RunSettings::default() }, ..case() };
    omits.check("a<esi:include src='/bad'/>b", "ab");
    omits.check("a<esi:try><esi:attempt>x<esi:include src='/bad'/></esi:attempt><esi:except>e</esi:except></esi:try>b", "aeb");
}

#[test]
fn references_that_may_not_be_asked_for_fail() {
    for (source, reason) in [
        ("ftp://own.example/a", "host"),
        ("http://user@own.example/a", "host"),
        ("../../a", "climbing"),
        ("http://$(HTTP_COOKIE{v})/a", "host"),
        ("http://x$(QUERY_STRING{x}).example/", "host"),
        ("//$(HTTP_COOKIE{v})/a", "host"),
        ("$(HTTP_COOKIE{v})://a/b", "climbing"),
    ] {
        let delivered = case().deliver(&format!("<esi:include src='{source}'/>"), &mut |_| 0);
        assert!(delivered.asked.is_empty() || reason == "climbing", "{source}: {:?}", delivered.asked);
        if reason != "climbing" || source.starts_with("..") {
            assert_eq!(delivered.refused, [reason], "{source}");
        }
    }
    case().check_asked(
        "<esi:include src='http://$(HTTP_HOST)/a'/><esi:include src='//$(HTTP_HOST)?x'/>",
        &["/?x", "/a"],
    );
}

#[test]
fn values_in_references_are_one_component() {
    let case = case().field("cookie", "v=../a/b?c&d#e; dots=..; site=//evil.example");
    for (reference, expected) in [
        ("/x/$(HTTP_COOKIE{v})/y", Some("/x/..%2Fa%2Fb%3Fc%26d%23e/y")),
        ("/x?q=$(HTTP_COOKIE{v})&amp;r", Some("/x?q=..%2Fa%2Fb%3Fc%26d%23e&r")),
        ("/x?$(QUERY_STRING)", Some("/x?x=1&y=a%20b")),
        ("/x?y=$(QUERY_STRING{y})", Some("/x?y=a%20b")),
        ("/x/$(HTTP_COOKIE{dots})/y", None),
        ("/x/$(HTTP_COOKIE{none})/y", Some("/x//y")),
        ("/$(HTTP_COOKIE{none})/evil.example/", Some("//evil.example/")),
        ("$(HTTP_COOKIE{site})/x", Some("/p/%2F%2Fevil.example/x")),
        ("/x/$(HTTP_COOKIE{none}|'d/e')", Some("/x/d/e")),
        ("http://$(HTTP_HOST)/$(HTTP_COOKIE{v})", Some("/..%2Fa%2Fb%3Fc%26d%23e")),
    ] {
        case.check_asked(&format!("<esi:include src=\"{reference}\"/>"), expected.as_slice());
    }
    case.check_asked("<esi:assign name='base' value='/x/y'/><esi:include src='$(base)/z'/>", &["/x/y/z"]);
}

#[test]
fn the_first_true_branch_is_taken() {
    let when = |test: &str, inside: &str| format!("<esi:when test=\"{test}\">{inside}</esi:when>");
    let otherwise = |inside: &str| format!("<esi:otherwise>{inside}</esi:otherwise>");
    let choose = |inside: &str| format!("[<esi:choose> {inside} </esi:choose>]");
    let (yes, no) = ("1==1", "1==2");
    check(&choose(""), "[]");
    check(&choose(&when(yes, "a")), "[a]");
    check(&choose(&when(no, "a")), "[]");
    check(&choose(&(when(no, "a") + "x" + &when(yes, "b") + &when(yes, "c") + &otherwise("d"))), "[b]");
    check(&choose(&(when(no, "a") + &otherwise("d"))), "[d]");
    check(&choose(&otherwise("d")), "[d]");
    check(&choose(&(otherwise("d") + &when(yes, "a") + &otherwise("e"))), "[d]");
    check(&choose(&when("(", "a")), "[]");
    check(&choose(&(when(yes, &choose(&(when(no, "a") + &otherwise("b")))) + &otherwise("c"))), "[[b]]");
    check(&choose(&(when(no, &choose(&otherwise("b"))) + &otherwise("c"))), "[c]");
    check(&choose("<esi:include src='/bad'/><esi:vars>x</esi:vars>"), "[]");
    check("<esi:choose><esi:when>a</esi:when></esi:choose>", "");
    case().check_asked(
        &choose(&(when(no, "<esi:include src='/a'/>") + &otherwise("<esi:include src='/b'/>"))),
        &["/b"],
    );
}

fn attempt(inside: &str, except: &str) -> String {
    format!("<esi:try> <esi:attempt>{inside}</esi:attempt> <esi:except>{except}</esi:except> </esi:try>")
}

#[test]
fn a_failed_attempt_leaves_nothing() {
    let bad = "<esi:include src='/bad'/>";
    let (a, b) = ("<esi:include src='/a'/>", "<esi:include src='/b'/>");
    check(&format!("[{}]", attempt(&format!("x{a}y"), "e")), "[xAy]");
    check(&format!("[{}]", attempt(&format!("x{a}{bad}y"), "e")), "[e]");
    check(&format!("[{}]", attempt(&format!("x{bad}y{bad}"), &format!("e{b}"))), "[eB]");
    check(&format!("[{}]", attempt("x<esi:include src='/bad' onerror='continue'/>y", "e")), "[xy]");
    check(&format!("[{}]", attempt("x<esi:include src='/bad' alt='/a'/>y", "e")), "[xAy]");
    check(&format!("[{}]", attempt("x<esi:include src='ftp://x'/>y", "e")), "[e]");
    check(&format!("[{}]", attempt("text", "e")), "[text]");
    // A failure in `except` goes further out.
    check(&format!("[{}]", attempt(bad, bad)), "[|status");
    check(&format!("[{}]", attempt(&format!("x{}y", attempt(bad, bad)), "outer")), "[outer]");
    check(&format!("[{}]", attempt(&format!("x{}y", attempt(bad, "inner")), "outer")), "[xinnery]");
    check(&format!("[{}]", attempt(&format!("x{}{bad}", attempt(a, "inner")), "outer")), "[outer]");
    check(&format!("[{}]", attempt(&format!("{bad}x{}", attempt(a, "inner")), "outer")), "[outer]");
    // What is asked in `except` is asked only then.
    case().check_asked(&attempt(a, b), &["/a"]);
    case().check_asked(&attempt(&format!("{a}{bad}"), b), &["/a", "/b", "/bad"]);
}

#[test]
fn a_failure_in_a_fragment_is_one_of_the_attempt_around_it() {
    let bad = "<esi:include src='/bad'/>";
    let case = case()
        .esi("/t", &format!("t{bad}"))
        .esi("/safe", &attempt(bad, "s"))
        .ssi("/ssi", "<!--#include virtual='/bad' -->");
    case.check(&format!("[{}]", attempt("x<esi:include src='/t'/>", "e")), "[e]");
    case.check(&format!("[{}]", attempt("x<esi:include src='/safe'/>", "e")), "[xs]");
    case.check("[<esi:include src='/t'/>]", "[t|status");
    // The answer was good: these are for another failure.
    case.check("[<esi:include src='/t' onerror='continue' alt='/a'/>]", "[t|status");
    case.check(&attempt("<esi:include src='/ssi'/>", "e"), super::ERROR);
}

#[test]
fn a_try_without_its_parts() {
    check("[<esi:try>x</esi:try>]", "[]");
    check("[<esi:try/>]", "[]");
    check("[<esi:try><esi:attempt>x</esi:attempt></esi:try>]", "[x]");
    check("[<esi:try><esi:attempt>x<esi:include src='/bad'/></esi:attempt></esi:try>]", "[|status");
    check("[<esi:try><esi:except>e</esi:except><esi:attempt>x</esi:attempt></esi:try>]", "[x]");
    check(
        "[<esi:try><esi:attempt>x</esi:attempt><esi:attempt>y</esi:attempt><esi:except>e</esi:except></esi:try>]",
        "[x]",
    );
    check(&attempt("<esi:try><esi:attempt>x<esi:include src='/bad'/></esi:attempt></esi:try>", "e"), "e");
}

#[test]
fn what_is_assigned_in_an_attempt_ends_with_it() {
    let assign = |value: &str| format!("<esi:assign name='v' value='{value}'/>");
    let shown = "<esi:vars>$(v)</esi:vars>";
    let body = |inside: &str| {
        format!(
            "{}{}{shown}",
            assign("1"),
            attempt(&format!("{}{inside}{shown}", assign("2")), &format!("{shown}{}", assign("3")))
        )
    };
    check(&body(""), "21");
    check(&body("<esi:include src='/bad'/>"), "11");
}

#[test]
fn variables_are_replaced_in_vars_alone_and_escaped() {
    let case = case()
        .field("cookie", "v=<script>'\"&; id=7")
        .field("referer", "http://r.example/?a&b")
        .field("accept-language", "de-DE, en;q=0.5, fr;q=0")
        .field("user-agent", "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)")
        .field("authorization", "Basic secret")
        .field("x-own", "own");
    for (variable, expected) in [
        ("$(HTTP_COOKIE{id})", "7"),
        ("$(HTTP_COOKIE{v})", "&lt;script&gt;&#39;&quot;&amp;"),
        ("$(HTTP_COOKIE{ID})", ""),
        ("$(HTTP_COOKIE{none}|'no cookie')", "no cookie"),
        ("$(HTTP_COOKIE)", "v=&lt;script&gt;&#39;&quot;&amp;; id=7"),
        ("$(QUERY_STRING)", "x=1&amp;y=a%20b"),
        ("$(QUERY_STRING{y})", "a b"),
        ("$(HTTP_HOST)", "own.example"),
        ("$(HTTP_REFERER)", "http://r.example/?a&amp;b"),
        ("$(HTTP_ACCEPT_LANGUAGE{de-de})", "true"),
        ("$(HTTP_ACCEPT_LANGUAGE{en})", "true"),
        ("$(HTTP_ACCEPT_LANGUAGE{fr})", "false"),
        ("$(HTTP_ACCEPT_LANGUAGE{de})", "false"),
        ("$(HTTP_USER_AGENT{browser})", "MSIE"),
        ("$(HTTP_USER_AGENT{version})", "6.0"),
        ("$(HTTP_USER_AGENT{os})", "WIN"),
        ("$(REQUEST_METHOD)", "GET"),
        ("$(REQUEST_PATH)", "/p/page"),
        ("$(REMOTE_ADDR)", "192.0.2.7"),
        ("$(HTTP_X_OWN)", "own"),
        ("$(HTTP_AUTHORIZATION)", ""),
        ("$(http_host)", ""),
        ("$(nothing)", ""),
        ("$x $ $() $(a b) $(", "$x $ $() $(a b) $("),
    ] {
        case.check(
            &format!("$(HTTP_HOST)<esi:vars>[{variable}]</esi:vars>$(HTTP_HOST)"),
            &format!("$(HTTP_HOST)[{expected}]$(HTTP_HOST)"),
        );
    }
    let raw = Case { settings: RunSettings { escapes_html: false, ..RunSettings::default() }, ..case };
    raw.check("<esi:vars>$(HTTP_COOKIE{v})</esi:vars>", "<script>'\"&");
    check(
        "<esi:vars><b><esi:include src='/a'/></b><!-- $(HTTP_HOST) --></esi:vars>",
        "<b>A</b><!-- $(HTTP_HOST) -->",
    );
    check(
        "<esi:assign name='v' value='<b>$(QUERY_STRING)</b>'/><esi:vars>$(v)</esi:vars>",
        "<b>x=1&amp;y=a%20b</b>",
    );
}

#[test]
fn browsers_as_esi_tells_them_apart() {
    for (agent, expected) in [
        ("Mozilla/5.0 (X11; Linux x86_64) Firefox/130.0", "MOZILLA 5.0 UNIX"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X) Safari", "MOZILLA 5.0 MAC"),
        ("curl/8.5", "OTHER  OTHER"),
        ("MSIE", "MSIE  OTHER"),
    ] {
        let vars = "<esi:vars>$(HTTP_USER_AGENT{browser}) $(HTTP_USER_AGENT{version}) $(HTTP_USER_AGENT{os})</esi:vars>";
        case().field("user-agent", agent).check(vars, expected);
    }
}

#[test]
fn removed_comments_and_literal_text() {
    check("a<esi:remove>b<esi:include src='/a'/><p></esi:remove>c", "ac");
    case().check_asked("<esi:remove><esi:include src='/a'/></esi:remove>", &[]);
    check("a<esi:comment text='x > y'/>b<esi:comment text=''>c<esi:comment></esi:comment>", "abc");
    check(
        "<esi:text><esi:include src='/a'/>$(HTTP_HOST)</esi:text>b",
        "<esi:include src='/a'/>$(HTTP_HOST)b",
    );
    check("<esi:text></esi:tex</esi:text>", "</esi:tex");
    check("a<esi:text>b", "ab");
    check("a<esi:remove>b", "a");
    check("<esi:remove><esi:remove>x</esi:remove>y</esi:remove>z", "z");
}

#[test]
fn unknown_and_misplaced_elements_lose_their_tags_and_keep_their_content() {
    for name in ["inline", "foreach", "function", "eval", "x-y", "when", "otherwise", "attempt", "except", ""]
    {
        check(&format!("a<esi:{name} x='y'>b<esi:include src='/a'/></esi:{name}>c"), "abAc");
    }
    check("a</esi:choose>b</esi:vars>c</esi:x>", "abc");
    check("<esi:vars>a<esi:choose><esi:when test='1==1'>b</esi:vars>c", "abc");
}

#[test]
fn a_tag_that_is_cut_or_too_long_is_dropped() {
    check("a<esi:include src='/a'", "a");
    check("a<esi:include src='/a", "a");
    check("a<esi:", "a");
    check("a</esi:vars", "a");
    let long = "x".repeat(16 * 1024);
    check(&format!("a<esi:include src='/a' other='{long}'/>b"), "ab");
    check(&format!("a<esi:include src='/a' other='{long}>'/>b"), "a'/>b");
    check(&format!("a<esi:include src='/a' other='{long}"), "a");
    let fits = "x".repeat(16 * 1024 - "<esi:include src='/a' other=''/>".len());
    check(&format!("<esi:include src='/a' other='{fits}'/>b"), "Ab");
}

#[test]
fn a_fragment_is_run_only_where_it_is_a_template() {
    let case = case()
        .body("/raw", "<esi:include src='/a'/>")
        .esi("/t", "<esi:include src='/b'/>")
        .ssi("/s", "<!--#echo var=args -->");
    case.check("<esi:include src='/raw'/>", "<esi:include src='/a'/>");
    case.check("<esi:include src='/t'/>", "B");
    case.check("<esi:include src='/t' dca='none'/>", "<esi:include src='/b'/>");
    case.check("<esi:include src='/s'/>", "(none)");
}

#[test]
fn what_a_fragment_reads_of_its_uri_is_its_own() {
    case()
        .esi(
            "/t/u?q=5",
            "<esi:vars>$(QUERY_STRING{q}) $(REQUEST_PATH) $(HTTP_HOST)</esi:vars><esi:include src='v'/>",
        )
        .body("/t/v", "!")
        .esi("http://o.example/t", "<esi:vars>$(HTTP_HOST)</esi:vars><esi:include src='v'/>")
        .body("http://o.example/v", "!")
        .check(
            "<esi:include src='/t/u?q=5'/> <esi:include src='//o.example/t'/>",
            "5 /t/u own.example! o.example!",
        );
}

#[test]
fn what_was_used_of_the_request_is_noted() {
    let used = |body: &str| case().deliver(body, &mut |_| 0).used;
    assert_eq!(used("<esi:vars>$(QUERY_STRING) $(HTTP_HOST)</esi:vars>"), FactsUsed::default());
    let fields = used("<esi:include src='/a?$(HTTP_COOKIE{x})$(HTTP_ACCEPT_LANGUAGE{de})'/>").fields;
    assert_eq!(fields, ["accept-language", "cookie"]);
    assert!(used("<esi:vars>$(REMOTE_ADDR)</esi:vars>").client);
}
