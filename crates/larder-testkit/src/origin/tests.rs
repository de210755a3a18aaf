//! The origin and the client against each other: each rule of a script is seen at the other end.

#![allow(clippy::unwrap_used)]

use std::time::Instant;

use super::log::RECEIVED_BYTES_MAX;
use super::*;
use crate::client::{Connection, End, Progress, Request, Response};
use crate::seeded::bytes_of;

const LIMIT: Duration = Duration::from_secs(5);

fn script(path: &str, answers: &str) -> PathScript {
    let mut script: PathScript = toml::from_str(&format!("path = {path:?}\n{answers}")).unwrap();
    for answer in &script.answer {
        answer.check().unwrap();
    }
    script.name = "origin".to_owned();
    script
}

async fn ask(origin: &Origin, request: &Request) -> Result<Response, Error> {
    Connection::open(origin.addr(), LIMIT).await?.exchange(request).await
}

fn get(target: &str) -> Request {
    Request::new("GET", target, "example.test")
}

/// Waits until the origin's log is as `holds` says.
async fn until(origin: &Origin, holds: impl FnMut(&Log) -> bool) {
    tokio::time::timeout(LIMIT, origin.log().until(holds)).await.expect("the log comes to this");
}

#[tokio::test]
async fn answers_come_in_order_and_the_last_one_repeats() {
    let script =
        script("/a", "[[answer]]\nbody = \"one\"\n[[answer]]\ntemplate = \"{n} for {field:x-who}\"\n");
    let origin = Origin::simple(vec![script]).unwrap();
    let mut client = Connection::open(origin.addr(), LIMIT).await.unwrap();
    for expected in ["one", "2 for me", "3 for me"] {
        let answer = client.exchange(&get("/a").field("X-Who", "me")).await.unwrap();
        assert_eq!(answer.body, expected.as_bytes());
        assert_eq!(answer.end, End::Complete);
    }
    assert_eq!(origin.log().connections(), 1, "the connection is kept");
    assert_eq!(origin.log().last().unwrap().fields.first("x-who"), Some("me"));
}

#[tokio::test]
async fn conditions_and_methods_choose_before_the_order_does() {
    let script = script(
        "/a",
        "[[answer]]\nbody = \"plain\"\n[[answer]]\nwhen = [\"x: 1\"]\nbody = \"one\"\n\
         [[answer]]\nmethod = \"POST\"\nstatus = 201\nbody = \"made\"\n",
    );
    let origin = Origin::simple(vec![script]).unwrap();
    assert_eq!(ask(&origin, &get("/a").field("X", "1")).await.unwrap().body, b"one");
    assert_eq!(ask(&origin, &get("/a")).await.unwrap().body, b"plain");
    let post = Request::new("POST", "/a", "example.test").body("12345");
    assert_eq!(ask(&origin, &post).await.unwrap().status, 201);
    let seen = origin.log().last().unwrap();
    assert_eq!((seen.body.as_ref(), seen.body_complete), (&b"12345"[..], true));
}

#[tokio::test]
async fn every_framing_brings_the_derived_body() {
    for framing in ["length", "chunked", "until-close"] {
        let answers = format!("[[answer]]\nbytes = 50000\npiece_bytes = 777\nframing = {framing:?}\n");
        let origin = Origin::simple(vec![script("/*", &answers)]).unwrap();
        let answer = ask(&origin, &get("/big?x")).await.unwrap();
        assert_eq!(answer.body, bytes_of("/big?x", 0, 50_000), "{framing}");
        assert_eq!(answer.end, End::Complete, "{framing}");
    }
}

#[tokio::test]
async fn a_conditional_answer_is_304_when_the_validator_matches() {
    let answers = "[[answer]]\nconditional = true\nfields = ['ETag: \"v1\"', 'Last-Modified: {start-1d}']\nbody = \"x\"\n";
    let origin = Origin::simple(vec![script("/a", answers)]).unwrap();
    let whole = ask(&origin, &get("/a")).await.unwrap();
    assert_eq!(whole.status, 200);
    let modified = whole.fields.first("last-modified").unwrap().to_owned();
    for (name, value, status) in [
        ("If-None-Match", "\"v1\"", 304),
        ("If-None-Match", "\"v0\", W/\"v1\"", 304),
        ("If-None-Match", "\"v2\"", 200),
        ("If-Modified-Since", modified.as_str(), 304),
    ] {
        let answer = ask(&origin, &get("/a").field(name, value)).await.unwrap();
        assert_eq!(answer.status, status, "{name}: {value}");
    }
}

#[tokio::test]
async fn a_held_body_waits_for_its_gate() {
    let answers = "[[answer]]\nbytes = 100\nholds = [{ at = 40, gate = \"rest\" }]\n";
    let origin = Origin::simple(vec![script("/a", answers)]).unwrap();
    let mut client = Connection::open(origin.addr(), LIMIT).await.unwrap();
    client.write(&get("/a").to_http1()).await.unwrap();
    let progress = Progress::default();
    let watched = progress.clone();
    let reading = tokio::spawn(async move { client.read_response("GET", &watched).await });
    progress.until(40).await;
    assert_eq!(progress.body().len(), 40);
    assert_eq!(origin.log().in_flight(), 1);
    origin.gates().release("rest");
    assert_eq!(reading.await.unwrap().unwrap().body, bytes_of("/a", 0, 100));
    origin.log().until(|log| log.in_flight() == 0).await;
}

#[tokio::test]
async fn a_client_that_leaves_ends_a_wait_at_a_gate() {
    let origin = Origin::simple(vec![script("/a", "[[answer]]\nhold = \"never\"\n")]).unwrap();
    let mut client = Connection::open(origin.addr(), LIMIT).await.unwrap();
    client.write(&get("/a").to_http1()).await.unwrap();
    origin.log().until(|log| log.in_flight() == 1).await;
    client.abort();
    origin.log().until(|log| log.connections_open() == 0).await;
}

#[tokio::test]
async fn misbehaviour_is_seen_as_what_it_is() {
    for (answers, broken) in [
        ("[[answer]]\nbytes = 100\ncut_at = 40\n", "connection ended in body"),
        ("[[answer]]\nbytes = 100\nframing = \"chunked\"\ncut_at = 40\n", "connection ended in body"),
        ("[[answer]]\nbytes = 100\nreset_at = 40\n", ""),
        (
            "[[answer]]\nraw = \"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\nzz\\r\\n\"\n",
            "malformed chunk size",
        ),
    ] {
        let origin = Origin::simple(vec![script("/a", answers)]).unwrap();
        match ask(&origin, &get("/a")).await.map(|answer| answer.end) {
            Ok(End::Broken(why)) => assert!(why.starts_with(broken), "{answers}: {why}"),
            // A reset may also throw away the head.
            Err(_) if broken.is_empty() => {}
            other => panic!("{answers}: {other:?}"),
        }
    }
    let vanishing = Origin::simple(vec![script("/a", "[[answer]]\nvanish = true\n")]).unwrap();
    assert!(matches!(ask(&vanishing, &get("/a")).await, Err(Error::Cut(_))));
    let lying = Origin::simple(vec![script("/a", "[[answer]]\nbody = \"x\"\nextra = \"more\"\n")]).unwrap();
    let mut client = Connection::open(lying.addr(), LIMIT).await.unwrap();
    client.exchange(&get("/a")).await.unwrap();
    assert!(client.ends_within(LIMIT).await.is_err(), "bytes after the message are noticed");
}

#[tokio::test]
async fn literal_bytes_are_held_paused_cut_and_filled_up_like_any_body() {
    let head = "HTTP/1.1 200 OK\\r\\nContent-Length: 9\\r\\n\\r\\n";
    let held = format!("[[answer]]\nraw = \"{head}held-back\"\nholds = [{{ at = 42, gate = \"rest\" }}]\n");
    let origin = Origin::simple(vec![script("/a", &held)]).unwrap();
    let mut client = Connection::open(origin.addr(), LIMIT).await.unwrap();
    client.write(&get("/a").to_http1()).await.unwrap();
    let progress = Progress::default();
    let watched = progress.clone();
    let reading = tokio::spawn(async move { client.read_response("GET", &watched).await });
    progress.until(4).await;
    assert_eq!(progress.body(), b"held");
    origin.gates().release("rest");
    assert_eq!(reading.await.unwrap().unwrap().body, b"held-back");

    let cut =
        format!("[[answer]]\nraw = \"{head}held-back\"\ncut_at = 40\npiece_bytes = 39\npause = \"1ms\"\n");
    let origin = Origin::simple(vec![script("/a", &cut)]).unwrap();
    let answer = ask(&origin, &get("/a")).await.unwrap();
    assert_eq!(
        (answer.body.as_slice(), answer.end),
        (&b"he"[..], End::Broken("connection ended in body".to_owned()))
    );

    let filled = "[[answer]]\nfiller = { fields = 300, bytes = 70 }\nbody = \"x\"\n";
    let origin = Origin::simple(vec![script("/a", filled)]).unwrap();
    let answer = ask(&origin, &get("/a")).await.unwrap();
    assert_eq!(answer.fields.first("filler-300"), Some("v".repeat(70).as_str()));
}

#[tokio::test]
async fn a_flood_and_a_stay_end_when_the_other_side_leaves() {
    let head = "raw = \"HTTP/1.1 200 OK\\r\\n\\r\\n\"\n";
    for (answer, at_least) in [
        (format!("[[answer]]\n{head}flood = \"ab\"\n"), 100_000),
        (format!("[[answer]]\n{head}stay = true\n"), 0),
    ] {
        let origin = Origin::simple(vec![script("/a", &answer)]).unwrap();
        let mut client = Connection::open(origin.addr(), LIMIT).await.unwrap();
        client.write(&get("/a").to_http1()).await.unwrap();
        let progress = Progress::default();
        let watched = progress.clone();
        let reading = tokio::spawn(async move { client.read_response("GET", &watched).await });
        progress.until(at_least).await;
        assert_eq!(origin.log().in_flight(), 1, "{answer}");
        assert!(progress.body().iter().zip(b"ab".iter().cycle()).all(|(got, sent)| got == sent), "{answer}");
        reading.abort();
        origin.log().until(|log| log.connections_open() == 0).await;
    }
}

#[tokio::test]
async fn a_range_is_answered_where_the_script_says_so() {
    let answers =
        "[[answer]]\nfields = ['ETag: \"a\"']\nbody = \"0123456789\"\nframing = \"chunked\"\nranges = true\n";
    let origin = Origin::simple(vec![script("/a", answers)]).unwrap();
    for (range, if_range, status, body) in [
        ("bytes=2-3", None, 206, "23"),
        ("bytes=8-99", None, 206, "89"),
        ("bytes=-2", None, 206, "89"),
        ("bytes=7-", Some("\"a\""), 206, "789"),
        ("bytes=7-", Some("\"b\""), 200, "0123456789"),
        ("bytes=10-", None, 200, "0123456789"),
        ("bytes=0-1,3-4", None, 200, "0123456789"),
    ] {
        let mut request = get("/a").field("Range", range);
        if let Some(tag) = if_range {
            request = request.field("If-Range", tag);
        }
        let answer = ask(&origin, &request).await.unwrap();
        assert_eq!((answer.status, &*answer.body), (status, body.as_bytes()), "{range} {if_range:?}");
        let length = answer.fields.first("content-length");
        assert_eq!(length.is_some(), status == 206, "a part is framed by its length: {range}");
        let said = answer.fields.first("content-range").map(|said| said.ends_with("/10"));
        assert_eq!(said, (status == 206).then_some(true), "{range}");
    }
}

#[tokio::test]
async fn interim_responses_and_switched_protocols_are_told_apart() {
    let hints =
        script("/a", "[[answer]]\ninterim = [{ status = 103, fields = [\"Link: </s>\"] }]\nbody = \"x\"\n");
    let socket = script("/ws", "[[answer]]\nstatus = 101\nfields = [\"Upgrade: websocket\"]\necho = true\n");
    let origin = Origin::simple(vec![hints, socket]).unwrap();
    let answer = ask(&origin, &get("/a")).await.unwrap();
    assert_eq!(answer.interim[0].fields.first("link"), Some("</s>"));
    let mut client = Connection::open(origin.addr(), LIMIT).await.unwrap();
    assert_eq!(client.exchange(&get("/ws")).await.unwrap().status, 101);
    client.write(b"hello").await.unwrap();
    assert_eq!(client.read_exact(5).await.unwrap(), b"hello");
}

#[tokio::test]
async fn a_stopped_origin_refuses_and_comes_back_on_the_same_port() {
    let mut origin = Origin::simple(vec![script("/a", "[[answer]]\nbody = \"x\"\n")]).unwrap();
    let mut open = Connection::open(origin.addr(), LIMIT).await.unwrap();
    open.exchange(&get("/a")).await.unwrap();
    origin.stop().await;
    assert!(open.ends_within(LIMIT).await.unwrap());
    assert!(ask(&origin, &get("/a")).await.is_err());
    origin.resume().unwrap();
    assert_eq!(ask(&origin, &get("/a")).await.unwrap().status, 200);
    assert_eq!(origin.log().count(), 2);
}

#[tokio::test]
async fn what_http_does_not_allow_is_a_complaint() {
    for raw in [
        "GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        let origin = Origin::simple(vec![script("/a", "[[answer]]\nbody = \"x\"\n")]).unwrap();
        assert_eq!(ask(&origin, &Request::raw(raw)).await.unwrap().status, 400, "{raw:?}");
        assert_eq!(origin.log().complaints().len(), 1, "{raw:?}");
    }
    let origin = Origin::simple(vec![script("/a", "[[answer]]\nbody = \"x\"\n")]).unwrap();
    assert_eq!(ask(&origin, &get("/b")).await.unwrap().status, 500);
    assert_eq!(origin.log().complaints(), ["the script has no /b"]);
}

#[tokio::test]
async fn a_function_chooses_the_answer_for_each_head() {
    let choose = |seen: &Seen| Answer {
        template: Some("{n}: {method} {target}".to_owned()),
        ..Answer::new(if seen.fields.has("x-odd") { 404 } else { 200 }, &[], "")
    };
    let origin =
        Origin::answering(FREE_PORT, LIMIT, move |seen| Answer { body: None, ..choose(seen) }).unwrap();
    assert_eq!(ask(&origin, &get("/a")).await.unwrap().body, b"1: GET /a");
    let odd = ask(&origin, &get("/b").field("X-Odd", "")).await.unwrap();
    assert_eq!((odd.status, odd.body.as_slice()), (404, &b"2: GET /b"[..]));
    assert_eq!((origin.log().count(), origin.log().count_of("/b")), (2, 1));
    assert!(origin.log().complaints().is_empty());
}

#[tokio::test]
async fn what_a_connection_brings_is_kept_as_it_came() {
    let origin = Origin::simple(vec![PathScript::new("/*", [Answer::new(200, &[], "x")])]).unwrap();
    let mut client = Connection::open(origin.addr(), LIMIT).await.unwrap();
    let post = "POST /a HTTP/1.1\r\nhOST:a\r\nTransfer-Encoding: chunked\r\n\r\n03\r\nabc\r\n0\r\n\r\n";
    client.exchange(&Request::raw(post)).await.unwrap();
    client.write(b"GET /half").await.unwrap();
    until(&origin, |log| log.received(1).ends_with(b"GET /half")).await;
    assert_eq!(origin.log().received(1), format!("{post}GET /half").as_bytes());
    ask(&origin, &get("/b")).await.unwrap();
    until(&origin, |log| log.is_over(2)).await;
    assert!(!origin.log().is_over(1) && !origin.log().is_over(3));
    assert_eq!(origin.log().received(2), get("/b").to_http1());
    client.abort();
    until(&origin, |log| log.is_over(1)).await;
    ask(&origin, &get("/c").body(vec![b'x'; RECEIVED_BYTES_MAX])).await.unwrap();
    let kept: usize = (1..=3).map(|number| origin.log().received(number).len()).sum();
    assert_eq!(kept, RECEIVED_BYTES_MAX);
}

#[tokio::test]
async fn a_body_is_read_as_far_as_the_script_says_and_its_rest_makes_no_reset_of_a_lingering_close() {
    let answer = Answer { stop_reading_at: Some(3), linger: true, ..Answer::new(413, &[], "no") };
    let origin = Origin::simple(vec![PathScript::new("/a", [answer])]).unwrap();
    let mut client = Connection::open(origin.addr(), LIMIT).await.unwrap();
    let head = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n";
    client.write(head).await.unwrap();
    client.write(b"abc").await.unwrap();
    let answer = client.read_response("POST", &Progress::default()).await.unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (413, &b"no"[..]));
    client.write(&[b'x'; 1_000_000]).await.unwrap();
    let (rest, end) = client.read_to_end().await;
    assert!(rest.is_empty() && end.is_ok(), "{end:?}");
    assert_eq!(origin.log().connections_open(), 1, "it lingers");
    drop(client);
    until(&origin, |log| log.is_over(1)).await;
    let seen = origin.log().last().unwrap();
    assert!(!seen.body_complete && seen.body.starts_with(b"abc") && seen.body.len() < 1_000_000);
}

#[tokio::test]
async fn literal_answers_wait_echo_and_keep_the_connection() {
    let answers = [
        Answer::literal("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na").wait("40ms").send("b").keep_open(),
        Answer { echo: true, ..Answer::literal("HTTP/1.1 101 X\r\n\r\nearly ") },
    ];
    let origin = Origin::simple(vec![PathScript::new("/a", answers)]).unwrap();
    let mut client = Connection::open(origin.addr(), LIMIT).await.unwrap();
    let asked = Instant::now();
    assert_eq!(client.exchange(&get("/a")).await.unwrap().body, b"ab");
    assert!(asked.elapsed() >= Duration::from_millis(40));
    assert_eq!(client.exchange(&get("/a")).await.unwrap().status, 101);
    client.write(b"late").await.unwrap();
    assert_eq!(client.read_until(b"late").await.unwrap(), "early late");
    assert_eq!(origin.log().connections(), 1);
}

#[tokio::test]
async fn who_stays_reads_what_comes() {
    let origin = Origin::simple(vec![PathScript::new("/a", [Answer::default().stay_silent()])]).unwrap();
    let mut client = Connection::open(origin.addr(), LIMIT).await.unwrap();
    client.write(&get("/a").to_http1()).await.unwrap();
    client.write(&[b'x'; 500_000]).await.unwrap();
    until(&origin, |log| log.received(1).len() > 500_000).await;
    client.abort();
    until(&origin, |log| log.is_over(1)).await;
}
