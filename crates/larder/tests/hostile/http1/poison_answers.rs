//! Poisoning by answers: smuggled requests, errors that an attack provokes, pages of one's own, variants.
//!
//! Each case is a [`Poison`]; see there for what a second client has to get.

use larder_testkit::origin::Answer;

use crate::hostile::http1::poison::{Poison, cacheable, plain, with};
use crate::hostile::suite::Run;

pub(crate) fn runs() -> Vec<Run> {
    let mut runs = Vec::new();
    smuggling(&mut runs);
    errors(&mut runs);
    persons(&mut runs);
    variants(&mut runs);
    runs
}

fn smuggling(runs: &mut Vec<Run>) {
    // A response to a smuggled request, were there one, would be taken for the answer to the next client's.
    let hidden = "GET /page?evil HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let length = hidden.len();
    assert_eq!(length, 41, "the lengths below");
    for (name, lines, content) in [
        ("CL.TE", "Content-Length: 50\r\nTransfer-Encoding: chunked\r\n", format!("0\r\n\r\n{hidden}")),
        (
            "TE.CL",
            "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
            format!("{length:x}\r\n{hidden}\r\n0\r\n\r\n"),
        ),
        (
            "TE.TE",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\nContent-Length: 4\r\n",
            format!("{length:x}\r\n{hidden}\r\n0\r\n\r\n"),
        ),
        ("CL.CL", "Content-Length: 0\r\nContent-Length: 50\r\n", hidden.to_owned()),
        ("CL.0", "Content-Length: 41\r\n", hidden.to_owned()),
        ("0.CL", "Content-Length : 41\r\n", hidden.to_owned()),
        ("TE.0", "Transfer-Encoding: chunked\r\n", format!("0\r\n\r\n{hidden}")),
        ("a chunk with a bare LF", "Transfer-Encoding: chunked\r\n", format!("2;\nxx\r\n0\r\n\r\n{hidden}")),
        (
            "a chunk that wraps",
            "Transfer-Encoding: chunked\r\n",
            format!("10000000000000000\r\n\r\n{hidden}"),
        ),
        (
            "Connection: Content-Length",
            "Connection: Content-Length\r\nContent-Length: 41\r\n",
            hidden.to_owned(),
        ),
        (
            "Connection: Transfer-Encoding",
            "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n",
            format!("0\r\n\r\n{hidden}"),
        ),
        ("Expect", "Expect: 100-continue\r\nContent-Length: 41\r\n", hidden.to_owned()),
        ("a bad Expect", "Expect: x\r\nContent-Length: 41\r\n", hidden.to_owned()),
        (
            "Upgrade",
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n",
            hidden.to_owned(),
        ),
        (
            "h2c",
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n",
            hidden.to_owned(),
        ),
        ("a bare CR", "X: y\r\rGET /page HTTP/1.1\r\n", hidden.to_owned()),
        ("a folded length", "X: y\r\n Content-Length: 41\r\n", hidden.to_owned()),
        ("a vertical tab", "Transfer-Encoding: \u{b}chunked\r\n", format!("0\r\n\r\n{hidden}")),
    ] {
        for method in ["GET", "POST"] {
            let attack = format!("{method} /page HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n{content}");
            let mut poison = Poison::new(attack.clone());
            // Often enough to hit a pooled connection out of step.
            poison.attacks = vec![attack; 3];
            runs.push(poison.named(&format!("{method} {name}")));
        }
    }
    for line in [
        "X: y%0d%0aX-Forwarded-Host: evil.test",
        "X: y\\r\\nX-Forwarded-Host: evil.test",
        "X: y\u{560}\u{10d}\u{10a}Set-Cookie: evil",
        "X: y\r\n\r\nGET /page HTTP/1.1\r\nHost: evil.test",
    ] {
        runs.push(Poison::new(with(&format!("{line}\r\n"))).named(&format!("injected {line:?}")));
    }
}

fn errors(runs: &mut Vec<Run>) {
    // What an attack breaks stays broken for nobody else.
    for status in [
        400_u16, 401, 403, 404, 405, 406, 408, 411, 413, 414, 415, 417, 421, 422, 429, 431, 500, 501, 502,
        503, 504,
    ] {
        let broken = Answer { when: vec!["x-evil".to_owned()], ..Answer::new(status, &[], "evil") };
        let poison = Poison::new(with("X-Evil: 1\r\n")).answers(vec![broken, cacheable("page")]);
        runs.push(
            poison.page("page").requests(2).named(&format!("{status} without a lifetime is not stored")),
        );
    }
    for (name, broken) in [
        ("a vanished origin", Answer { vanish: true, ..Answer::default() }),
        ("no HTTP", Answer { raw: Some("evil\r\n\r\n".to_owned()), ..Answer::default() }),
        ("two lengths", Answer { raw: Some("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nevil".to_owned()), ..Answer::default() }),
        ("a cut body", Answer { cut_at: Some(2), ..cacheable("evil") }),
        ("a reset body", Answer { reset_at: Some(2), ..cacheable("evil") }),
        ("a bad chunk", Answer { raw: Some("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nevilXX0\r\n\r\n".to_owned()), ..Answer::default() }),
        ("a split head", Answer { raw: Some("HTTP/1.1 200 OK\r\nX: y\rSet-Cookie: evil\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nevil".to_owned()), ..Answer::default() }),
        ("an early end without a length", Answer { raw: Some("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 400\r\n\r\nevil".to_owned()), ..Answer::default() }),
    ] {
        let broken = Answer { when: vec!["x-evil".to_owned()], ..broken };
        let poison = Poison::new(with("X-Evil: 1\r\n")).answers(vec![broken, cacheable("page")]);
        runs.push(poison.page("page").named(&format!("{name} is not stored")));
    }
    for line in [
        format!("X-Big: {}", "x".repeat(20_000)),
        "X-Meta: \u{7}".to_owned(),
        "X-Meta: \0".to_owned(),
        "X: y\r\n".repeat(200),
        "Content-Length: x".to_owned(),
        "Expect: x".to_owned(),
        "Via: 1.1 larder\r\n".repeat(20) + "X: y",
        "Cache-Control: only-if-cached".to_owned(),
    ] {
        let name: String = line.chars().take(30).collect();
        runs.push(
            Poison::new(with(&format!("{line}\r\n")))
                .requests(1)
                .named(&format!("a refusal of {name:?} is not stored")),
        );
    }
    let split = Answer {
        extra: Some(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nevil".to_owned(),
        ),
        ..cacheable("page")
    };
    let poison = Poison::new(plain("/page?attack")).answers(vec![split]);
    runs.push(poison.page("page").named("a second answer behind the first is nobody's"));
}

fn persons(runs: &mut Vec<Run>) {
    let when = |condition: &str, answer: Answer| Answer { when: vec![condition.to_owned()], ..answer };
    for (name, line, condition, fields) in [
        ("Authorization", "Authorization: Basic eA==", "authorization", &["Cache-Control: max-age=60"][..]),
        ("Authorization, without a lifetime", "Authorization: Basic eA==", "authorization", &["ETag: \"1\""]),
        ("private", "Cookie: a=b", "cookie", &["Cache-Control: private, max-age=60"]),
        (
            "private in another line",
            "Cookie: a=b",
            "cookie",
            &["Cache-Control: max-age=60", "Cache-Control: private"],
        ),
        ("private in capitals", "Cookie: a=b", "cookie", &["CACHE-CONTROL: max-age=60,PRIVATE"]),
        ("no-store", "Cookie: a=b", "cookie", &["Cache-Control: no-store, max-age=60"]),
        ("no-cache", "Cookie: a=b", "cookie", &["Cache-Control: no-cache, max-age=60"]),
        ("Vary: *", "Cookie: a=b", "cookie", &["Cache-Control: max-age=60", "Vary: *"]),
        ("Vary: * among others", "Cookie: a=b", "cookie", &["Cache-Control: max-age=60", "Vary: Accept, *"]),
        ("Vary: Cookie", "Cookie: a=b", "cookie", &["Cache-Control: max-age=60", "Vary: Cookie"]),
        (
            "Vary: Cookie in a second line",
            "Cookie: a=b",
            "cookie",
            &["Cache-Control: max-age=60", "Vary: Accept", "Vary: Cookie"],
        ),
        (
            "Set-Cookie of a session",
            "Cookie: a=b",
            "cookie",
            &["Cache-Control: max-age=60", "Set-Cookie: PHPSESSID=evil; HttpOnly"],
        ),
        (
            "Set-Cookie without a lifetime",
            "Cookie: a=b",
            "cookie",
            &["Last-Modified: Sat, 21 Nov 2015 00:00:00 GMT", "Set-Cookie: a=evil"],
        ),
        (
            "private, named by Connection",
            "Cookie: a=b",
            "cookie",
            &["Connection: Cache-Control", "Cache-Control: private", "Expires: {now+60s}"],
        ),
        (
            "Vary, named by Connection",
            "Cookie: a=b",
            "cookie",
            &["Connection: Vary", "Cache-Control: max-age=60", "Vary: Cookie"],
        ),
    ] {
        let own = when(condition, Answer::new(200, fields, "my own page"));
        let poison = Poison::new(with(&format!("{line}\r\n"))).answers(vec![own, cacheable("page")]);
        runs.push(
            poison.page("page").requests(2).named(&format!("{name}: one client's page is not another's")),
        );
    }
    // A page of one's own under a name that looks like a file's.
    for target in [
        "/page/x.css",
        "/page;x.css",
        "/page%2fx.css",
        "/page.css",
        "/page?x.css",
        "/page%0ax.css",
        "/page%3bx.css",
        "/page%23x.css",
        "/page//x.css",
    ] {
        let own = when("cookie", Answer::new(200, &["Cache-Control: private"], "my own page"));
        let mut poison =
            Poison::new(format!("GET {target} HTTP/1.1\r\nHost: a.test\r\nCookie: session=1\r\n\r\n"));
        poison = poison.answers(vec![own, Answer::new(200, &["Cache-Control: private"], "nobody's page")]);
        runs.push(
            poison
                .victim(plain(target), "nobody's page")
                .requests(2)
                .named(&format!("deception by {target}")),
        );
    }
}

fn variants(runs: &mut Vec<Run>) {
    let varied = |vary: &str, name: &str| Answer {
        fields: vec!["Cache-Control: max-age=60".to_owned(), format!("Vary: {vary}")],
        template: Some(format!("[{{field:{name}}}]")),
        ..Answer::default()
    };
    for (vary, name, evil) in [
        ("Accept-Language", "accept-language", "evil"),
        ("accept-language", "accept-language", "EN"),
        ("Origin", "origin", "http://evil.test"),
        ("User-Agent", "user-agent", "evil"),
        ("X-Forwarded-Host", "x-evil", ""),
        ("Accept-Encoding", "accept-encoding", "evil, gzip"),
        ("Accept, X-Evil", "x-evil", "evil"),
        ("X-Evil,", "x-evil", "evil"),
    ] {
        let poison = Poison::new(with(&format!("{name}: {evil}\r\n"))).answers(vec![varied(vary, name)]);
        runs.push(poison.page("[]").named(&format!("Vary: {vary} against {evil:?}")));
    }
    let connection = with("Connection: Accept-Language\r\nAccept-Language: evil\r\n");
    let poison = Poison::new(connection).answers(vec![varied("Accept-Language", "accept-language")]);
    runs.push(poison.page("[]").named("a varying field named by Connection"));
}
