//! Poisoning: after an attack, a second client asks plainly and gets what it would have got without the attack.
//!
//! The origin puts everything that steers applications into a page that may be stored for a minute; whatever an attack
//! could plant is therefore visible to the next client. Attacks may be answered in any way, refused included.

use larder_testkit::client::{End, Response};
use larder_testkit::origin::{Answer, PathScript};

use crate::hostile::http1::judge::invariants;
use crate::hostile::stage::{Outcome, Stage, same, script};
use crate::hostile::suite::Run;
use crate::hostile::transport::Transport;

/// What applications are known to read, beside Host and X-Forwarded-*.
const STEERING: &[&str] = &[
    "forwarded",
    "x-original-url",
    "x-rewrite-url",
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
    "x-host",
    "x-original-host",
    "x-http-host-override",
    "x-forwarded-port",
    "x-forwarded-scheme",
    "x-forwarded-server",
    "x-forwarded-prefix",
    "x-forwarded-ssl",
    "x-forwarded",
    "x-forwarded-path",
    "x_forwarded_host",
    "x_original_url",
    "x-real-ip",
    "transfer_encoding",
    "proxy",
];

/// Attacks, then what a second client asks, and the page that it has to get.
#[derive(Clone)]
pub(crate) struct Poison {
    pub(crate) attacks: Vec<String>,
    victim: String,
    page: String,
    /// Answers before the page that reflects.
    scripts: Vec<PathScript>,
    site: &'static str,
    /// How many requests the origin has to see, where that shows something.
    requests: Option<usize>,
}

impl Poison {
    /// The victim asks for `/page` of a.test and gets its reflection.
    pub(crate) fn new(attack: impl Into<String>) -> Self {
        Self {
            attacks: vec![attack.into()],
            victim: plain("/page"),
            page: reflection("/page", "a.test"),
            scripts: Vec::new(),
            site: "",
            requests: None,
        }
    }

    pub(crate) fn victim(mut self, victim: impl Into<String>, page: impl Into<String>) -> Self {
        self.victim = victim.into();
        self.page = page.into();
        self
    }

    pub(crate) fn answers(mut self, answers: Vec<Answer>) -> Self {
        self.scripts.push(script("/page*", answers));
        self
    }

    pub(crate) fn page(mut self, page: &str) -> Self {
        self.page = page.to_owned();
        self
    }

    pub(crate) fn requests(mut self, requests: usize) -> Self {
        self.requests = Some(requests);
        self
    }

    pub(crate) fn site(mut self, site: &'static str) -> Self {
        self.site = site;
        self
    }

    pub(crate) fn named(self, name: &str) -> Run {
        Run::new(format!("poison: {name}"), move || run(self.clone()))
    }
}

pub(crate) fn plain(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n")
}

pub(crate) fn with(lines: &str) -> String {
    format!("GET /page HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n")
}

fn reflecting() -> Answer {
    let steering: String = STEERING.iter().map(|name| format!(" {{field:{name}}}")).collect();
    let told = "{field:x-forwarded-host} {field:x-forwarded-proto} {field:x-forwarded-for}";
    Answer {
        fields: vec!["Cache-Control: max-age=60".to_owned()],
        template: Some(format!("{{method}} {{target}} of {{field:host}}, told {told};{steering}")),
        ..Answer::default()
    }
}

/// What the reflecting origin says to somebody who sends nothing but the request.
fn reflection(target: &str, host: &str) -> String {
    let steering = " ".repeat(STEERING.len());
    let scheme = Transport::current().scheme();
    format!("GET {target} of {host}, told {host} {scheme} 127.0.0.1;{steering}")
}

pub(crate) fn cacheable(body: &str) -> Answer {
    Answer::new(200, &["Cache-Control: max-age=60"], body)
}

async fn run(poison: Poison) -> Outcome {
    let mut scripts = poison.scripts.clone();
    scripts.push(script("*", vec![reflecting()]));
    let stage = Stage::new(scripts, "", poison.site).await?;
    for attack in &poison.attacks {
        // Whatever comes of it; refusals close, so each has a connection of its own.
        let mut attacker = stage.connect().await?;
        attacker.write(attack).await?;
        let _ = attacker.read(crate::hostile::stage::method_of(attack)).await;
        let _ = attacker.silent_for(std::time::Duration::from_millis(5)).await;
    }
    let served = stage.ask(&poison.victim).await;
    let judged =
        served.and_then(|response| judge(&poison, &response).map_err(|why| format!("{why}, in\n{response}")));
    let seen = stage.end().await?;
    judged
        .and_then(|()| seen.iter().try_for_each(|seen| invariants(seen, true)))
        .and_then(|()| {
            poison.requests.map_or(Ok(()), |count| same("requests at the origin", &seen.len(), &count))
        })
        .map_err(|why| {
            let saw: String = seen.iter().map(|seen| format!("\n    the origin saw {seen}")).collect();
            format!("{why}{saw}")
        })
}

fn judge(poison: &Poison, response: &Response) -> Outcome {
    same("status", &response.status, &200)?;
    same("end", &response.end, &End::Complete)?;
    same("page", &larder_testkit::wire::latin1(&response.body), &poison.page)?;
    same("Cache-Status lines", &response.fields.all("cache-status").count(), &1)?;
    same("Set-Cookie", &response.fields.has("set-cookie"), &false)
}

pub(crate) fn runs() -> Vec<Run> {
    let mut runs = Vec::new();
    steering(&mut runs);
    hosts(&mut runs);
    targets(&mut runs);
    methods_and_content(&mut runs);
    conditions_and_ranges(&mut runs);
    runs
}

fn steering(runs: &mut Vec<Run>) {
    for line in [
        "X-Forwarded-Host: evil.test",
        "x-forwarded-host:evil.test",
        "X-FORWARDED-HOST: evil.test  ",
        "X-Forwarded-Host: a.test\r\nX-Forwarded-Host: evil.test",
        "X-Forwarded-Host: a.test, evil.test",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Scheme: nothttps",
        "X-Forwarded-Port: 1",
        "X-Forwarded-Server: evil.test",
        "X-Forwarded-For: 6.6.6.6",
        "X-Forwarded-For: <script>",
        "X-Forwarded-Prefix: /evil",
        "X-Forwarded-Ssl: on",
        "X-Forwarded-Path: /evil",
        "X-Forwarded: evil",
        "X-Real-IP: 6.6.6.6",
        "Forwarded: host=evil.test",
        "Forwarded: for=6.6.6.6;proto=https\r\nForwarded: host=evil.test",
        "X-Original-URL: /evil",
        "X-Rewrite-URL: /evil",
        "X-HTTP-Method-Override: DELETE",
        "X-HTTP-Method: PUT",
        "X-Method-Override: HEAD",
        "X-Host: evil.test",
        "X-Original-Host: evil.test",
        "X-HTTP-Host-Override: evil.test",
        "X_Forwarded_Host: evil.test",
        "X_Original_URL: /evil",
        "Transfer_Encoding: chunked",
        "Proxy: http://evil.test/",
        "Connection: X-Forwarded-Host\r\nX-Forwarded-Host: evil.test",
        "Connection: X-Forwarded-Host, X-Forwarded-Proto, X-Forwarded-For, Via",
        "Connection: Host",
        "X-Forwarded-Host: evil.test\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Scheme: http\r\nX-Host: evil.test\r\nX-Original-URL: /evil",
        "X-Forwarded-Host : evil.test",
        "X-Forwarded-Host\t: evil.test",
        " X-Forwarded-Host: evil.test",
        "X: y\r\n X-Forwarded-Host: evil.test",
        "X: y\nX-Forwarded-Host: evil.test",
        "X: y\rX-Forwarded-Host: evil.test",
    ] {
        runs.push(Poison::new(with(&format!("{line}\r\n"))).named(&format!("{line:?}")));
    }
}

fn hosts(runs: &mut Vec<Run>) {
    let of = |host: &str| format!("GET /page HTTP/1.1\r\nHost: {host}\r\n\r\n");
    // One form for one site: the victim gets the same stored page, made for the canonical name.
    for host in ["A.TEST", "a.test:80", "a.test.", "a.test:", "a.test:080", " a.test "] {
        runs.push(Poison::new(of(host)).requests(1).named(&format!("Host {host:?} is the same site")));
    }
    for host in [
        "evil.test",
        "a.test:81",
        "a.test.evil.test",
        "sub.a.test",
        "a.test@evil.test",
        "evil.test@a.test",
        "a.test/evil",
        "a.test?evil",
        "a.test#evil",
        "a.test,evil.test",
        "a.test evil.test",
        "a.test\0evil",
        "a.test\tevil",
        "\"a.test\"",
        "a.test:80@evil.test",
        "a.test:evil",
        "a.test\\evil",
        "",
        "a.test\r\nHost: evil.test",
        "evil.test\r\nHost: a.test",
        "a.test\r\n Host: evil.test",
        "a.test\nHost: evil.test",
    ] {
        runs.push(Poison::new(of(host)).named(&format!("Host {host:?} is another, or none")));
    }
    let absolute =
        |authority: &str, host: &str| format!("GET http://{authority}/page HTTP/1.1\r\nHost: {host}\r\n\r\n");
    runs.extend([
        Poison::new(absolute("evil.test", "a.test")).named("an absolute form that names another host"),
        Poison::new(absolute("a.test", "evil.test"))
            .requests(1)
            .named("a Host that the absolute form overrules"),
        Poison::new(absolute("evil.test@a.test", "a.test")).named("user information in an absolute form"),
        Poison::new("GET https://a.test/page HTTP/1.1\r\nHost: a.test\r\n\r\n")
            .named("an absolute form of another scheme"),
        Poison::new("GET http://a.test\\@evil.test/page HTTP/1.1\r\nHost: a.test\r\n\r\n")
            .named("a backslash in an authority"),
        Poison::new("GET /page HTTP/1.0\r\nHost: a.test\r\n\r\n")
            .requests(1)
            .named("HTTP/1.0 fills for HTTP/1.1"),
        Poison::new("GET /page HTTP/1.0\r\n\r\n").named("HTTP/1.0 without Host"),
    ]);
}

fn targets(runs: &mut Vec<Run>) {
    for attack in [
        "//page",
        "/./page",
        "/x/../page",
        "/%70age",
        "/page/",
        "/page//",
        "/page/.",
        "/page;evil",
        "/page;",
        "/page?",
        "/page??",
        "/page?evil",
        "/page?&",
        "/page%3fevil",
        "/page%3Fevil",
        "/page%23evil",
        "/page%20",
        "/page%00",
        "/page%0d%0aX-Evil:%20y",
        "/page%2f",
        "/PAGE",
        "/page%",
        "/page%zz",
        "/page\\",
        "/page+",
        "/page.css",
        "/page/x.css",
        "/page;x.css",
        "/page%2fx.css",
        "/page?cb=1&utm_source=evil",
        "/page#evil",
        "/page ",
        "/page\tevil",
        "/page\0",
        "/\u{ff}page",
        "/page\u{e9}",
        "http:/page",
        "/page?x=y HTTP/1.1\r\nX:",
        "/%2e/page",
        "/page%2e",
        "/x/%2e%2e/page",
    ] {
        runs.push(Poison::new(plain(attack)).named(&format!("target {attack:?}")));
    }
    for (attack, victim) in [
        ("/page?a=1&b=2", "/page?b=2&a=1"),
        ("/page?a=1", "/page?a=1&"),
        ("/page?a=1", "/page?A=1"),
        ("/page?a=1&a=2", "/page?a=2&a=1"),
        ("/page?a=%31", "/page?a=1"),
        ("/page?a=b;c=d", "/page?a=b&c=d"),
        ("/page?a=+", "/page?a=%20"),
        ("/page%2fa", "/page/a"),
        ("/page%2Fa", "/page%2fa"),
        ("/page/%61", "/page/a"),
        ("/page//a", "/page/a"),
        ("/page/./a", "/page/a"),
        ("/page/b/../a", "/page/a"),
        ("/page", "/page?"),
        ("/page?a#", "/page?a"),
    ] {
        let poison = Poison::new(plain(attack)).victim(plain(victim), reflection(victim, "a.test"));
        runs.push(poison.named(&format!("{attack} is not {victim}")));
    }
    // The next byte of a key is never taken for the end of its host.
    let split = Poison::new("GET /b/page HTTP/1.1\r\nHost: a\r\n\r\n")
        .victim("GET /page HTTP/1.1\r\nHost: b\r\n\r\n", reflection("/page", "b"));
    runs.push(split.named("host and path do not run together"));
    let sorted = "key = { sort = true, query = \"no-tracking\" }";
    let poison = Poison::new(plain("/page?utm_source=evil&b=2&a=1")).site(sorted).requests(1);
    let poison = poison.victim(plain("/page?a=1&b=2"), reflection("/page?a=1&b=2", "a.test"));
    runs.push(poison.named("what is not keyed does not reach the origin"));
    let cookies = "key = { cookies = [\"lang\"] }";
    let told = Answer {
        fields: vec!["Cache-Control: max-age=60".to_owned()],
        template: Some("{field:cookie}".to_owned()),
        ..Answer::default()
    };
    let poison = Poison::new(with("Cookie: lang=en; lang=evil\r\n")).site(cookies).answers(vec![told]);
    runs.push(poison.victim(with("Cookie: lang=en\r\n"), "lang=en").named("a second cookie of a keyed name"));
}

fn methods_and_content(runs: &mut Vec<Run>) {
    let post =
        |lines: &str, content: &str| format!("POST /page HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n{content}");
    let numbered = || Answer {
        fields: vec!["Cache-Control: max-age=60".to_owned()],
        template: Some("{method} {n}".to_owned()),
        ..Answer::default()
    };
    for (name, attack) in [
        ("GET with a length", with("Content-Length: 4\r\n") + "evil"),
        ("GET with chunks", with("Transfer-Encoding: chunked\r\n") + "4\r\nevil\r\n0\r\n\r\n"),
        ("GET with no chunks", with("Transfer-Encoding: chunked\r\n") + "0\r\n\r\n"),
        (
            "GET with a form",
            with("Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 14\r\n")
                + "_method=DELETE",
        ),
        ("POST", post("Content-Length: 4\r\n", "evil")),
        ("POST without content", post("", "")),
        ("PUT", "PUT /page HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nevil".to_owned()),
        ("OPTIONS", "OPTIONS /page HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned()),
        ("get", "get /page HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned()),
        (
            "HEAD with content",
            "HEAD /page HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nevil".to_owned(),
        ),
    ] {
        let poison = Poison::new(attack).answers(vec![numbered()]).page("GET 2").requests(2);
        runs.push(poison.named(&format!("{name} fills nothing")));
    }
    let empty = Poison::new(with("Content-Length: 0\r\n")).answers(vec![numbered()]);
    runs.push(empty.page("GET 1").requests(1).named("GET of length 0 is a GET"));
    // It is fetched with GET, and what that brings is what a GET would have brought.
    let head = Poison::new("HEAD /page HTTP/1.1\r\nHost: a.test\r\n\r\n").answers(vec![numbered()]);
    runs.push(head.page("GET 1").requests(1).named("HEAD fills with what a GET gets"));
    // Neither gets to the origin.
    for method in ["TRACE", "PURGE"] {
        let attack = format!("{method} /page HTTP/1.1\r\nHost: a.test\r\n\r\n");
        runs.push(Poison::new(attack).answers(vec![numbered()]).page("GET 1").named(method));
    }
}

fn conditions_and_ranges(runs: &mut Vec<Run>) {
    let tagged = |body: &str| Answer {
        conditional: true,
        ..Answer::new(
            200,
            &["Cache-Control: max-age=60", "ETag: \"1\"", "Last-Modified: Sat, 21 Nov 2015 00:00:00 GMT"],
            body,
        )
    };
    for line in [
        "If-None-Match: \"1\"",
        "If-None-Match: *",
        "If-None-Match: W/\"1\"",
        "If-Modified-Since: Sat, 21 Nov 2015 00:00:00 GMT",
        "If-Modified-Since: Thu, 01 Jan 2099 00:00:00 GMT",
        "If-Match: \"2\"",
        "If-Match: \"1\"",
        "If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT",
        "If-Range: \"1\"\r\nRange: bytes=0-0",
        "If-None-Match: \"1\"\r\nIf-None-Match: \"2\"",
    ] {
        let poison = Poison::new(with(&format!("{line}\r\n"))).answers(vec![tagged("page")]);
        // The whole page was fetched and stored, whatever the attacker was told of it.
        runs.push(poison.page("page").requests(1).named(&format!("{line:?}")));
    }
    let part = || Answer {
        when: vec!["range".to_owned()],
        ..Answer::new(206, &["Cache-Control: max-age=60", "Content-Range: bytes 0-1/4"], "pa")
    };
    // An origin that gives a part of another resource than the whole, or that errs for ranges.
    let unsatisfiable = || Answer {
        when: vec!["range".to_owned()],
        ..Answer::new(416, &["Cache-Control: max-age=60", "Content-Range: bytes */4"], "evil")
    };
    for (name, line, special) in [
        ("a part", "Range: bytes=0-1", part()),
        ("a part, asked by If-Range", "Range: bytes=0-1\r\nIf-Range: \"1\"", part()),
        ("an unsatisfiable range", "Range: bytes=9-", unsatisfiable()),
        ("a bad range", "Range: bytes=cow", unsatisfiable()),
        ("another unit", "Range: pages=1-2", unsatisfiable()),
        (
            "many ranges",
            "Range: bytes=0-0,1-1,2-2,3-3,0-,0-,0-,0-,0-,0-,0-,0-,0-,0-,0-,0-,0-,0-",
            unsatisfiable(),
        ),
        ("two Ranges", "Range: bytes=0-0\r\nRange: bytes=1-1", part()),
    ] {
        let poison = Poison::new(with(&format!("{line}\r\n"))).answers(vec![special, cacheable("page")]);
        runs.push(poison.page("page").named(&format!("{name} is not stored as the whole")));
    }
}
