//! The rules of the log: exact lines, no injection, bounded lengths, nothing lost that was taken, nobody waits.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;
use std::time::Duration;

use http::{StatusCode, Version};
use larder_http::fields::cache_status::{CacheStatus, Forward, HitSource, Outcome};
use larder_http::time::WallTime;
use proptest::prelude::*;

use super::*;
use crate::fetched::Fetched;

const LIMIT: Duration = Duration::from_secs(10);

const ENDED: Ending = Ending {
    body_bytes: 0,
    complete: false,
    request_time: Duration::ZERO,
    stored: false,
    not_stored: None,
    page: None,
};
const ENDED_WELL: Ending = Ending {
    body_bytes: 57_000,
    complete: true,
    request_time: Duration::from_micros(180_250),
    stored: true,
    not_stored: None,
    page: Some(PageEnding { fragments: 30, asked: 4, failed: 1, waited: Duration::from_millis(12) }),
};

const SAID: CacheStatus = CacheStatus {
    outcome: Outcome::Forwarded(Forward::UriMiss),
    forward_status: Some(StatusCode::NOT_MODIFIED),
    stored: true,
    collapsed: true,
    ttl_seconds: None,
    detail: Some("connect-timeout"),
    source: HitSource::Memory,
};

fn record() -> LogRecord<'static> {
    let mut record = LogRecord::new(WallTime(951_782_400_250), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
    record.set(Text::Method, b"GET");
    record.set(Text::Host, b"example.com");
    record.set_target(b"/a", Some(b"b=1"));
    record.status = StatusCode::OK;
    record
}

fn line(format: Format, record: &LogRecord<'_>, ending: &Ending) -> Vec<u8> {
    let (line, mut out) = (record.line(format), Vec::new());
    line.write(ending, &mut out);
    line.recycle();
    out
}

/// Logs [`record`] for a worker.
fn put(log: &AccessLog, worker: usize) {
    log.write(worker, record().line(log.format()), &ENDED);
}

/// The same for every text.
fn fill<'a>(record: &mut LogRecord<'a>, bytes: &'a [u8]) {
    Text::ALL.into_iter().for_each(|text| record.set(text, bytes));
    record.set_target(bytes, Some(bytes));
}

fn full() -> LogRecord<'static> {
    let mut record = record();
    record.version = Version::HTTP_2;
    static FETCHED: LazyLock<Fetched> = LazyLock::new(|| Fetched {
        origin: "app".into(),
        server: Some("http://10.0.0.1:3000".into()),
        attempts: 2,
        is_reused: true,
        took: Duration::from_millis(179),
        queue: Duration::ZERO,
        connect: None,
        first_byte: Some(Duration::from_millis(178)),
        status: Some(StatusCode::NOT_MODIFIED),
        error: None,
    });
    static RULE: LazyLock<LoggedRule> = LazyLock::new(|| LoggedRule::new("shop", "/blog/*"));
    record.rule = Some(&RULE);
    record.cache_status = Some(&SAID);
    record.collapse_wait = Some(Duration::from_millis(3));
    record.set(Text::Origin, b"app");
    record.before = Some(("not-stored", Some("set-cookie")));
    record.fetched = Some(&FETCHED);
    record.set(Text::UserAgent, b"curl/8 \"x\"");
    record.set(Text::Referer, b"http://example.com/");
    record
}

#[test]
fn a_full_record_has_every_field_in_order() {
    let expected = concat!(
        r#"{"time":"2000-02-29T00:00:00.250Z","client.address":"192.0.2.1","http.request.method":"GET","#,
        r#""url.scheme":"http","server.address":"example.com","url.path":"/a","url.query":"b=1","#,
        r#""network.protocol.version":"2.0","http.response.status_code":200,"http.response.body.size":57000,"#,
        r#""larder.complete":true,"larder.request_time":0.180250,"larder.cache.stored":true,"larder.fragments":30,"#,
        r#""larder.fragments_asked":4,"larder.fragments_failed":1,"larder.fragment_wait":0.012000,"larder.site":"shop","#,
        r#""larder.rule":"/blog/*","larder.result":"joined","#,
        r#""larder.cache.status":"uri-miss","larder.cache.status_field":"larder; fwd=uri-miss; fwd-status=304; "#,
        r#"stored; collapsed; detail=connect-timeout","larder.cache.detail":"connect-timeout","#,
        r#""larder.cache.before":"not-stored","larder.cache.before_reason":"set-cookie","#,
        r#""larder.cache.collapsed":true,"#,
        r#""larder.cache.collapse_wait":0.003000,"larder.origin.name":"app","larder.origin.status_code":304,"larder.origin.server":"http://10.0.0.1:3000","larder.origin.attempts":2,"#,
        r#""larder.origin.time":0.179000,"user_agent.original":"curl/8 \"x\"","#,
        r#""http.request.header.referer":"http://example.com/"}"#,
        "\n"
    );
    assert_eq!(String::from_utf8(line(Format::Json, &full(), &ENDED_WELL)).unwrap(), expected);
}

#[test]
fn the_combined_line_is_what_nginx_writes() {
    let mut cases = vec![(
        full(),
        ENDED_WELL,
        r#"192.0.2.1 - - [29/Feb/2000:00:00:00 +0000] "GET /a?b=1 HTTP/2.0" 200 57000 "http://example.com/" "curl/8 \x22x\x22""#,
    )];
    let mut odd = record();
    odd.set_target(b"/\xc3\xa9\\", None);
    odd.set(Text::UserAgent, b"a\n1.2.3.4 - - \x7f\x00\xff");
    let expected = concat!(
        r#"192.0.2.1 - - [29/Feb/2000:00:00:00 +0000] "GET /\xC3\xA9\x5C HTTP/1.1" 200 0 "-" "#,
        r#""a\x0A1.2.3.4 - - \x7F\x00\xFF""#
    );
    cases.push((odd, ENDED, expected));
    let empty = LogRecord::new(WallTime(0), IpAddr::V4(Ipv4Addr::LOCALHOST));
    cases.push((empty, ENDED, r#"127.0.0.1 - - [01/Jan/1970:00:00:00 +0000] "-" 500 0 "-" "-""#));
    for (record, ending, expected) in cases {
        assert_eq!(
            String::from_utf8(line(Format::Combined, &record, &ending)).unwrap(),
            format!("{expected}\n")
        );
    }
}

#[test]
fn absent_fields_are_left_out_and_cut_ones_are_marked() {
    let empty: serde_json::Value = serde_json::from_slice(&line(Format::Json, &record(), &ENDED)).unwrap();
    for absent in [
        "user_agent.original",
        "larder.cache.status",
        "larder.origin.time",
        "larder.log.truncated",
        "larder.fragments",
        "larder.fragments_asked",
        "larder.fragments_failed",
        "larder.fragment_wait",
    ] {
        assert!(empty.get(absent).is_none(), "{absent}");
    }
    let mut cut = record();
    cut.set(Text::Referer, &[b'x'; 5000]);
    let value: serde_json::Value = serde_json::from_slice(&line(Format::Json, &cut, &ENDED)).unwrap();
    assert_eq!(value["larder.log.truncated"], true);
    assert_eq!(value["http.request.header.referer"].as_str().map(str::len), Some(1024));
    assert!(line(Format::Combined, &cut, &ENDED).windows(4).any(|w| w == b"...\""));
}

#[test]
fn a_target_is_cut_as_one() {
    let check = |path: usize, query: Option<usize>, kept: (usize, Option<usize>), is_cut: bool| {
        let bytes = [b'/'; 10_000];
        let mut record = record();
        record.set_target(&bytes[..path], query.map(|query| &bytes[..query]));
        let (path, query) = record.path_and_query();
        assert_eq!(((path.len(), query.map(<[u8]>::len)), record.is_any_cut()), (kept, is_cut));
        let marked = line(Format::Combined, &record, &ENDED).windows(9).any(|w| w == b"... HTTP/");
        assert_eq!(marked, is_cut);
    };
    check(8192, None, (8192, None), false);
    check(8193, None, (8192, None), true);
    check(8192, Some(0), (8192, None), true);
    check(8191, Some(0), (8191, Some(0)), false);
    check(8000, Some(191), (8000, Some(191)), false);
    check(8000, Some(192), (8000, Some(191)), true);
    check(10_000, Some(1), (8192, None), true);
}

#[test]
fn a_line_holds_nothing_of_the_one_before_it() {
    let expected = line(Format::Json, &record(), &ENDED);
    for bytes in [&[b'x'; 50][..], &[0; 1024]] {
        let mut long = record();
        fill(&mut long, bytes);
        for format in [Format::Json, Format::Combined] {
            line(format, &long, &ENDED);
            assert_eq!(line(Format::Json, &record(), &ENDED), expected);
        }
    }
}

#[test]
fn the_longest_line_is_within_the_bound() {
    for byte in [0_u8, b'"', b'\\', 0xff, b'?'] {
        let bytes = vec![byte; 100_000];
        let mut record = full();
        fill(&mut record, &bytes);
        for format in [Format::Json, Format::Combined] {
            assert!(line(format, &record, &ENDED_WELL).len() <= LINE_BYTES_MAX, "{format:?} {byte}");
        }
    }
}

proptest! {
    #[test]
    fn no_byte_of_a_peer_leaves_its_place(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut hostile = record();
        fill(&mut hostile, &bytes);
        for format in [Format::Json, Format::Combined] {
            let line = String::from_utf8(line(format, &hostile, &ENDED)).unwrap();
            let body = line.strip_suffix('\n').unwrap();
            let safe = !body.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'));
            prop_assert!(safe);
        }
        let value: serde_json::Value = serde_json::from_slice(&line(Format::Json, &hostile, &ENDED)).unwrap();
        prop_assert_eq!(&value["http.response.status_code"], 200);
        prop_assert!(value.as_object().unwrap().len() <= FIELDS.len());
        if !bytes.is_empty() {
            let agent = String::from_utf8_lossy(&bytes).into_owned();
            prop_assert_eq!(value["user_agent.original"].as_str(), Some(agent.as_str()));
        }
        let combined = String::from_utf8(line(Format::Combined, &hostile, &ENDED)).unwrap();
        prop_assert_eq!(combined.matches('"').count(), 6);
    }
}

/// Keeps what is written; fails or blocks as told.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    /// The next write takes this many bytes and then fails.
    fail_after: Option<usize>,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock();
        match state.fail_after.take() {
            Some(0) => Err(io::ErrorKind::StorageFull.into()),
            Some(n) => {
                state.bytes.extend_from_slice(&bytes[..n]);
                state.fail_after = Some(0);
                Ok(n)
            }
            None => {
                state.bytes.extend_from_slice(bytes);
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn options(target: LogTarget) -> AccessLogOptions {
    AccessLogOptions { format: Format::Combined, target, workers: 2, queue_bytes: 0 }
}

fn to_sink(sink: &Sink) -> AccessLog {
    let output = Output::Any(Box::new(sink.clone()));
    AccessLog::start(output, &options(LogTarget::Stdout), Diagnostics::silent()).unwrap()
}

/// Waits until `done`, looking again often; the limit only ends a broken test.
fn until(done: impl Fn() -> bool) {
    let started = std::time::Instant::now();
    while !done() {
        assert!(started.elapsed() < LIMIT, "nothing happened");
        std::thread::yield_now();
    }
}

#[test]
fn closing_writes_everything_that_was_taken() {
    let sink = Sink::default();
    let log = to_sink(&sink);
    let threads: Vec<_> = (0..4)
        .map(|worker| {
            let log = log.clone();
            std::thread::spawn(move || (0..500).for_each(|_| put(&log, worker)))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(log.close(LIMIT));
    let lines = sink.0.lock().bytes.iter().filter(|b| **b == b'\n').count() as u64;
    assert_eq!(lines, log.written());
    assert_eq!(log.written() + log.dropped(), 2000);
    put(&log, 0);
    assert_eq!(log.written() + log.dropped(), 2001);
}

#[test]
fn dropping_the_last_handle_writes_everything_too() {
    let sink = Sink::default();
    let log = to_sink(&sink);
    put(&log.clone(), 0);
    drop(log);
    until(|| sink.0.lock().bytes.ends_with(b"\n"));
}

#[test]
fn a_sleeping_writer_is_woken_by_a_line() {
    let sink = Sink::default();
    let log = to_sink(&sink);
    for n in 1..=5 {
        put(&log, n);
        until(|| log.written() == n as u64);
    }
}

#[test]
fn a_stuck_target_drops_lines_and_stops_nobody() {
    let sink = Sink::default();
    let log = to_sink(&sink);
    let stuck = sink.0.lock();
    for _ in 0..10_000 {
        put(&log, 0);
    }
    assert!(log.dropped() > 0);
    assert!(!log.close(Duration::from_millis(1)));
    drop(stuck);
    assert!(log.close(LIMIT));
    assert_eq!(log.written() + log.dropped(), 10_000);
}

#[test]
fn a_line_after_a_torn_one_starts_afresh() {
    let sink = Sink::default();
    sink.0.lock().fail_after = Some(10);
    let log = to_sink(&sink);
    put(&log, 0);
    until(|| log.dropped() == 1);
    put(&log, 0);
    assert!(log.close(LIMIT));
    let text = String::from_utf8(sink.0.lock().bytes.clone()).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(lines[0], "192.0.2.1 ");
    assert!(lines[1].ends_with("\"-\" \"-\""), "{text}");
}

#[test]
fn reopening_follows_a_rotation() {
    let dir = tempfile::tempdir().unwrap();
    let (path, old) = (dir.path().join("access.log"), dir.path().join("access.log.1"));
    let log = AccessLog::open(&options(LogTarget::File(path.clone())), Diagnostics::silent()).unwrap();
    put(&log, 0);
    until(|| log.written() == 1);
    std::fs::rename(&path, &old).unwrap();
    put(&log, 0);
    until(|| log.written() == 2);
    log.reopen();
    until(|| path.exists());
    put(&log, 0);
    assert!(log.close(LIMIT));
    let lines = |path| std::fs::read_to_string(path).unwrap().lines().count();
    assert_eq!((lines(&old), lines(&path)), (2, 1));
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error_that_names_it() {
    let target = LogTarget::File("/proc/nothing/access.log".into());
    let error = AccessLog::open(&options(target), Diagnostics::silent()).unwrap_err();
    assert_eq!(error.to_string(), "cannot open the log file /proc/nothing/access.log");
}
