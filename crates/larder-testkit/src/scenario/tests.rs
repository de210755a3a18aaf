//! The runner against a larder that is none: its address is the origin's own, so client, origin and runner are
//! tested against each other, and every failure is seen to be told.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;

/// Answers from the origin itself. Configs that contain `bad` are refused.
#[derive(Default)]
struct NoLarder {
    advanced: Duration,
    stopped: bool,
    /// What it holds for ever.
    held: Option<&'static str>,
}

impl Larder for NoLarder {
    fn start(&mut self, config: &str) -> Result<Started, String> {
        let url = config.split("http://").nth(1).ok_or("no origin in the config")?;
        let addr =
            url.split('"').next().unwrap_or_default().parse().map_err(|_| format!("no address: {url}"))?;
        Ok(Started { addr, admin: addr })
    }
    fn advance(&mut self, by: Duration) {
        self.advanced += by;
    }
    fn reload(&mut self, config: &str) -> Result<(), String> {
        if config.contains("bad") { Err("line 1: bad".to_owned()) } else { Ok(()) }
    }
    fn stop(&mut self) -> Result<(), String> {
        self.stopped = true;
        Ok(())
    }
    fn metric(&self, series: &str) -> Option<f64> {
        match self.held {
            Some(held) if held == series => Some(1.0),
            _ => (series == "advanced_seconds").then_some(self.advanced.as_secs_f64()),
        }
    }
}

fn run(text: &str) -> Result<(), Box<Failure>> {
    run_with(text, NoLarder::default())
}

fn run_with(text: &str, mut larder: NoLarder) -> Result<(), Box<Failure>> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("scenario.toml");
    std::fs::write(&file, text).unwrap();
    let went = run_file(&file, &mut larder);
    assert_eq!(larder.stopped, went.as_ref().map_or_else(|failure| !failure.rule.is_empty(), |()| true));
    went
}

fn passes(text: &str) {
    run(text).unwrap_or_else(|failure| panic!("{failure}\n{text}"));
}

/// Fails, and the report contains all of `told`.
fn fails(text: &str, told: &[&str]) {
    let report = run(text).map_or_else(|failure| failure.to_string(), |()| "passed".to_owned());
    for told in told {
        assert!(report.contains(told), "{told:?} is missing in:\n{report}");
    }
}

const HELLO: &str = r#"
rule = "a rule"
[[origin]]
path = "/a"
[[origin.answer]]
fields = ["Cache-Status: larder; hit; ttl=58", "Age: 2", "Last-Modified: {start-1d}"]
body = "hello"
[[step]]
get = "/a"
fields = ["X-Who: me"]
"#;

#[test]
fn what_is_as_stated_passes() {
    passes(&format!(
        "{HELLO}{}",
        r#"expect = { status = 200, body = "hello", body_bytes = 5, cache_status = "larder; hit; ttl=57..60",
            fields = { age = { between = "1..3" }, last-modified = "{start-1d}" }, absent = ["via"],
            origin_requests = 1, origin_peak = 1, origin_connections = 1,
            origin_saw = { method = "GET", target = "/a", fields = { x-who = "me" }, absent = ["cookie"], body = "" } }
[[step]]
advance = "3s"
expect = { metrics = { advanced_seconds = 3 } }
[[step]]
reload = "good"
[[step]]
reload = "bad"
refused = "line 1"
[[step]]
stop_origin = "origin"
[[step]]
start_origin = "origin"
"#
    ));
}

#[test]
fn each_thing_that_is_not_as_stated_is_told() {
    for (expect, told) in [
        ("status = 404", "status\n    expected: [404]\n    got:      200"),
        ("body = 'hallo'", "expected: 5 bytes: hallo\n    got:      5 bytes: hello"),
        ("body_of = { seed = '/a', bytes = 5 }", "got:      5 bytes, byte 0 differs"),
        ("body_contains = 'x'", "body\n"),
        ("fields = { age = '3' }", "age\n    expected: 3\n    got:      2"),
        ("absent = ['age']", "expected: absent"),
        ("cut = true", "breaks off"),
        ("interim = [103]", "[103]"),
        ("no_response = true", "expected: none"),
        ("origin_peak = 2", "origin_peak"),
        ("origin_saw = { number = 2 }", "request 2"),
        ("origin_saw = { fields = { x-who = 'you' } }", "x-who that the origin saw"),
        ("metrics = { nothing = 1 }", "got:      None"),
    ] {
        let expect = format!("expect = {{ {expect}, cache_status = \"*\", origin_requests = 1 }}");
        fails(&format!("{HELLO}{expect}"), &["scenario.toml, step 1 (get /a)", "rule: a rule", told]);
    }
    let whole = "expect = { cache_status = \"larder; hit\", origin_requests = 0 }";
    let told =
        ["cache_status\n    expected: larder; hit\n", "origin_requests\n    expected: 0\n    got:      1"];
    fails(&format!("{HELLO}{whole}"), &told);
    fails(&format!("{HELLO}{whole}"), &["X-Who: me", "HTTP/1.1 200 OK"]);
}

#[test]
fn a_file_that_says_too_little_or_too_much_is_refused() {
    for (tail, told) in [
        ("expect = { status = 200, cache_status = \"*\" }", "step 1: does not say `origin_requests`"),
        ("expect = { status = 200, origin_requests = 1 }", "step 1: does not say `cache_status`"),
        ("expectt = { }", "unknown field `expectt`"),
        ("expect = { statuss = 1 }", "unknown field `statuss`"),
        ("advance = \"3s\"", "more than one thing"),
        ("start = \"x\"\nexpect = { origin_requests = 1 }", "belong to the `finish` step"),
    ] {
        fails(&format!("{HELLO}{tail}"), &["scenario.toml", told]);
    }
    fails(
        "rule = \"\"\n[[step]]\nadvance = \"soon\"\n[[step]]\n",
        &["says nothing", "not a duration", "step 2: does nothing"],
    );
    fails("rule = \"x\"\nstep = []\n[[origin]]\npath = \"/\"\n", &["no answers"]);
    let refusal = "expect = { status = [400, 501], origin_requests = 0 }";
    fails(&format!("{HELLO}{refusal}"), &["got:      200"]);
}

#[test]
fn what_nobody_stated_is_a_failure_at_the_end() {
    fails(
        "rule = \"x\"\n[[step]]\nget = \"/b\"\nexpect = { cache_status = \"absent\", origin_requests = 1 }",
        &["the script has no /b"],
    );
    fails(
        &format!("{HELLO}start = \"x\"\n[[step]]\nwait = {{ origin_requests = 1 }}\n"),
        &["origin_requests when all is done", "clients x"],
    );
}

#[test]
fn crowds_gates_and_kept_connections_do_what_they_say() {
    passes(
        r#"
rule = "clients in the background, gates, pauses, an upgrade"
[[origin]]
path = "/held"
[[origin.answer]]
bytes = 1000
holds = [{ at = 400, gate = "rest" }]
[[origin]]
path = "/ws"
[[origin.answer]]
status = 101
fields = ["Upgrade: websocket"]
echo = true
[[origin]]
path = "/up"
[[origin.answer]]
status = 204
[[step]]
get = "/held"
start = "first"
[[step]]
get = "/held"
clients = 5
pause_at = 100
start = "others"
[[step]]
wait = { origin_requests = 6, origin_in_flight = 6, received = { first = 400, others = 100 } }
[[step]]
abort = "first"
[[step]]
wait = { origin_connections_open = 5 }
[[step]]
release = "rest"
[[step]]
resume = "others"
[[step]]
finish = "others"
expect = { body_of = { seed = "/held", bytes = 1000 }, cache_status = "absent", origin_requests = 6, origin_peak = 6 }
[[step]]
get = "/ws"
on = "ws"
expect = { status = 101, cache_status = "absent", origin_requests = 7 }
[[step]]
talk = { on = "ws", send = "ping", receive = "ping" }
[[step]]
hang_up = "ws"
[[step]]
request = "PUT /up"
body_bytes = 5000
chunked = true
fields = ["Connection: close"]
expect = { status = 204, closed = true, cache_status = "absent", origin_requests = 8, origin_saw = { body_of = { seed = "/up", bytes = 5000 } } }
[[step]]
raw = "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc"
after = "close"
[[step]]
wait = { origin_requests = 9, origin_in_flight = 0 }
expect = { origin_requests = 9, origin_saw = { body = "abc", body_complete = false } }
[[step]]
pipeline = [
    { get = "/up", expect = { status = 204, cache_status = "absent" } },
    { head = "/held", expect = { status = 200, body = "", cache_status = "absent" } },
]
expect = { origin_requests = 11 }
"#,
    );
}

#[test]
fn a_request_may_be_sent_many_times_and_answered_in_parts() {
    let text = r#"
rule = "numbered requests, what they carried, several ranges"
[[origin]]
path = "/n*"
[[origin.answer]]
fields = ["ETag: {field:x-n}"]
template = "{target} {body}"
[[origin]]
path = "/parts"
[[origin.answer]]
status = 206
fields = ["Content-Type: multipart/byteranges; boundary=b"]
body = "--b\r\nContent-Range: bytes 0-1/9\r\n\r\nab\r\n--b\r\nContent-Range: bytes 4-4/9\r\n\r\ne\r\n--b--\r\n"
[[step]]
request = "QUERY /n{i}"
times = 7
fields = ["X-N: {i}"]
body = "i={i}"
expect = { cache_status = "absent", origin_requests = 7, origin_saw = { target = "/n7", body = "i=7" } }
[[step]]
request = "QUERY /n"
body = "x"
expect = { body = "/n x", cache_status = "absent", origin_requests = 8 }
[[step]]
get = "/parts"
expect = { multipart = [{ fields = { content-range = "bytes 0-1/9" }, body = "ab" }, { absent = ["etag"], body = "e" }], cache_status = "absent", origin_requests = 9 }
"#;
    passes(text);
    fails(&text.replace("\"ab\" }", "\"x\" }"), &["body of part 1", "2 bytes: ab"]);
    fails(&text.replace("{ absent = [\"etag\"], body = \"e\" }", ""), &["number of parts"]);
    fails(&text.replace("requests = 7", "requests = 6"), &["expected: 6\n    got:      7"]);
    fails(&text.replace("times = 7", "times = 7\nstart = \"x\""), &["`times` is for a plain request"]);
}

#[test]
fn what_is_still_held_when_all_have_left_is_told() {
    let passing = format!("{HELLO}expect = {{ cache_status = \"*\", origin_requests = 1 }}");
    for held in
        ["larder_flights", "larder_flights_waiting", "larder_origin_queue_length", "larder_connections_open"]
    {
        let larder = NoLarder { held: Some(held), ..NoLarder::default() };
        let report = run_with(&passing, larder).unwrap_err().to_string();
        assert!(
            report.contains(&format!("{held} when all have left\n    expected: 0\n    got:      1")),
            "{report}"
        );
    }
}

#[test]
fn each_client_has_its_number_and_sends_back_what_was_to_be_remembered() {
    let text = r#"
rule = "numbers of clients, and a value that only the answer knows"
[[origin]]
path = "/n*"
[[origin.answer]]
fields = ["Set-Cookie: srv=a{n}; Path=/", "X-Again: srv=a4"]
template = "{field:cookie}"
[[step]]
get = "/n{i}"
clients = 3
expect = { cache_status = "absent", origin_requests = 3 }
[[step]]
get = "/n"
remember = { tag = "set-cookie" }
expect = { cache_status = "absent", origin_requests = 4, origin_saw = { target = "/n" } }
[[step]]
get = "/n"
fields = ["Cookie: {tag}; x=1"]
expect = { body = "srv=a4; x=1", fields = { x-again = "{tag}" }, cache_status = "absent", origin_requests = 5 }
"#;
    passes(text);
    fails(&text.replace("\"srv=a4;", "\"srv=a5;"), &["got:      11 bytes: srv=a4; x=1"]);
    fails(&text.replace("target = \"/n\"", "number = 3, target = \"/n4\""), &["target that the origin saw"]);
    fails(&text.replace("remember =", "start = \"x\"\nremember ="), &["`remember` is for a plain request"]);
}

#[test]
fn what_stands_aside_is_neither_counted_nor_recorded() {
    passes(
        r#"
rule = "requests that come by themselves"
[[origin]]
path = "/health"
aside = true
[[origin.answer]]
status = 204
[[origin]]
path = "/a"
[[origin.answer]]
body = "a"
[[step]]
get = "/health"
times = 3
expect = { status = 204, cache_status = "absent", origin_requests = 0 }
[[step]]
wait = { origin_aside = 3 }
[[step]]
get = "/a"
expect = { cache_status = "absent", origin_requests = 1, origin_saw = { number = 1, target = "/a" } }
[[step]]
wait = { origin_requests_of = { origin = 1 }, gauges = { advanced_seconds = 0 } }
"#,
    );
}

#[test]
fn many_files_run_at_once_and_all_failures_are_told() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..12 {
        let expect = format!("expect = {{ cache_status = \"*\", origin_requests = {} }}", u8::from(n != 7));
        std::fs::create_dir_all(dir.path().join("area")).unwrap();
        std::fs::write(dir.path().join(format!("area/{n:02}.toml")), format!("{HELLO}{expect}")).unwrap();
    }
    let report = run_all(dir.path(), 4, None, &|| Box::<NoLarder>::default());
    assert_eq!((report.passed, report.failed.len()), (11, 1));
    assert!(report.to_string().contains("failed: "), "{report}");
    let some = run_all(dir.path(), 4, Some("/03"), &|| Box::<NoLarder>::default());
    assert_eq!(some.passed, 1);
}

#[test]
fn every_scenario_of_the_project_can_be_read() {
    let dir: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios");
    let files = find(&dir).unwrap();
    assert!(files.len() >= 45, "{} scenarios", files.len());
    let problems: Vec<String> = files.iter().filter_map(|file| Some(load(file).err()?.to_string())).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
