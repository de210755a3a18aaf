//! Ambiguous HTTP is refused or re-framed, whatever the store is: nothing ambiguous gets into it, and nothing comes out of it.
//!
//! Answers of which two readers would make two things leave nothing in the store. One in chunks, with fields of its connection and
//! with trailers, is stored, found after a restart and sent with one length and nothing else about framing. Ambiguous requests for what
//! is stored are refused, and content that looks like a request is none.

use std::path::Path;

use larder_testkit::client::{End, Progress, Request, Response};
use larder_testkit::origin::{Answer, BodyFraming, Origin, PathScript};
use larder_testkit::seeded::bytes_of;

use super::{HASH, Kind, MIRROR, SINGLE, STRIPE, Stand};
use crate::support::{Process, Signal, answer_of, cache_status, connect, get, script, until, within};

/// Within a record, and in pieces.
const BODIES: [(&str, u64); 2] = [("/small", 2_000), ("/large", 600_000)];

/// Answers that end too early, too late, or in two ways, each storable by its own words.
const AMBIGUOUS: [(&str, &str); 7] = [
    ("/two-lengths", "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
    ("/list-of-lengths", "Content-Length: 5, 6\r\n\r\nhello!"),
    ("/signed-length", "Content-Length: +5\r\n\r\nhello"),
    ("/short", "Content-Length: 50\r\n\r\nhello"),
    ("/odd-coding", "Transfer-Encoding: chunked, x\r\nContent-Length: 5\r\n\r\nhello"),
    ("/odd-chunk", "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n"),
    ("/chunk-without-end", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
];

fn scripts() -> Vec<PathScript> {
    let fields = ["Cache-Control: max-age=3600", "Connection: X-Hop", "X-Hop: 1", "Keep-Alive: timeout=5"];
    let chunked = |(target, bytes): (&str, u64)| {
        let trailers = vec!["Content-Length: 3".to_owned(), "X-Trailer: 1".to_owned()];
        let framing = Some(BodyFraming::Chunked);
        script(target, Answer { framing, trailers, ..answer_of(&fields, bytes) })
    };
    let raw = |(target, rest): (&str, &str)| {
        let raw = Some(format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\n{rest}"));
        script(target, Answer { raw, ..Answer::default() })
    };
    BODIES.into_iter().map(chunked).chain(AMBIGUOUS.into_iter().map(raw)).collect()
}

/// Framed by one length, whole and right.
fn assert_framed(response: &Response, target: &str, bytes: u64) {
    let all = &response.fields.0;
    let lengths = all.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let lengths: Vec<&str> = lengths.map(|(_, value)| value.as_str()).collect();
    assert_eq!(lengths, [bytes.to_string()], "{response}");
    for name in ["transfer-encoding", "x-hop", "keep-alive", "trailer"] {
        assert!(!response.fields.has(name), "{name}: {response}");
    }
    assert!(response.trailers.0.is_empty(), "{response}");
    assert_eq!((response.status, &response.end), (200, &End::Complete), "{response}");
    assert!(response.body == bytes_of(target, 0, bytes), "{response}");
}

async fn assert_hits(larder: &Process) {
    for (target, bytes) in BODIES {
        let hit = within("a hit", get(larder.addr, target)).await;
        assert!(cache_status(&hit).contains("; hit"), "{hit}");
        assert_framed(&hit, target, bytes);
    }
}

/// Whose file it is that larder stored, so that it may be told another thing: the attribute of a file.
fn add_lines(file: &Path, lines: &str) -> bool {
    const ADD: &str = "import os, sys; file, lines = sys.argv[1:]; name = 'user.larder'; \
         os.setxattr(file, name, os.getxattr(file, name) + lines.encode())";
    let python = std::process::Command::new("python3").args(["-c", ADD]).arg(file).arg(lines).status();
    python.is_ok_and(|status| status.success())
}

async fn nothing_ambiguous(kind: Kind) {
    let origin = Origin::simple(scripts()).unwrap();
    let stand = Stand::new(kind, &origin.url());
    let mut larder = stand.start().await;
    for (target, _) in AMBIGUOUS {
        for _ in 0..2 {
            let before = origin.log().count();
            let answer = within("an answer", get(larder.addr, target)).await;
            assert!(answer.status == 502 || answer.end != End::Complete, "{target}: {answer}");
            assert!(origin.log().count() > before, "{target} is stored: {answer}");
        }
    }
    let list = get(larder.admin, "/objects").await;
    assert!(
        AMBIGUOUS.iter().all(|(target, _)| !String::from_utf8_lossy(&list.body).contains(target)),
        "{list}"
    );

    for (target, _) in BODIES {
        until("it is stored", async || cache_status(&get(larder.addr, target).await).contains("; hit")).await;
    }
    stand.is_settled(&larder, BODIES.len() as u64).await;
    assert_hits(&larder).await;
    if kind.is_durable() {
        larder.signal(Signal::TERM);
        assert_eq!(larder.end().await, 0);
        larder = stand.start().await;
        assert_hits(&larder).await;
    }

    // What two readers would read in two ways is refused, whatever is stored.
    let before = origin.log().count();
    for lines in
        ["Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 5\r\nContent-Length: 0\r\n"]
    {
        let evil = "0\r\n\r\nGET /evil HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let mut connection = connect(larder.addr).await;
        let request = Request::raw(format!("GET /small HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n{evil}"));
        let answer = within("a refusal", connection.exchange(&request)).await.unwrap();
        assert_eq!(answer.status, 400, "{answer}");
        assert!(connection.ends_within(crate::support::BOUND).await.unwrap());
    }
    assert_eq!(origin.log().count(), before, "{}", origin.log());
    // Content is content, and what follows it is the next request.
    let evil = "GET /evil HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let head =
        format!("GET /small HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{evil}", evil.len());
    let mut connection = connect(larder.addr).await;
    connection
        .write(format!("{head}GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
        .await
        .unwrap();
    for (target, bytes) in BODIES {
        let answer =
            within("an answer", connection.read_response("GET", &Progress::default())).await.unwrap();
        assert!(answer.body == bytes_of(target, 0, bytes), "{target}: {answer}");
    }
    assert!(origin.log().all().iter().all(|seen| seen.target != "/evil"), "{}", origin.log());
    if kind == Kind::Files {
        let file = stand.places[0].join("localhost/small");
        assert!(add_lines(
            &file,
            "transfer-encoding: chunked\ncontent-length: 3\nconnection: close, x-hop\nx-hop: 1\n"
        ));
        let answer = within("an answer", get(larder.addr, "/small")).await;
        assert_framed(&answer, "/small", BODIES[0].1);
    }
    assert_hits(&larder).await;
}

#[tokio::test]
async fn nothing_ambiguous_goes_into_memory_or_comes_out_of_it() {
    nothing_ambiguous(Kind::Memory).await;
}

#[tokio::test]
async fn nothing_ambiguous_goes_onto_a_single_disk_or_comes_from_it() {
    nothing_ambiguous(SINGLE).await;
}

#[tokio::test]
async fn nothing_ambiguous_goes_onto_mirrored_disks_or_comes_from_them() {
    nothing_ambiguous(MIRROR).await;
}

#[tokio::test]
async fn nothing_ambiguous_goes_onto_striped_disks_or_comes_from_them() {
    nothing_ambiguous(STRIPE).await;
}

#[tokio::test]
async fn nothing_ambiguous_goes_onto_hashed_disks_or_comes_from_them() {
    nothing_ambiguous(HASH).await;
}

#[tokio::test]
async fn nothing_ambiguous_goes_into_plain_files_or_comes_from_them() {
    nothing_ambiguous(Kind::Files).await;
}

#[tokio::test]
async fn nothing_ambiguous_goes_into_redis_or_comes_from_it() {
    nothing_ambiguous(Kind::Redis).await;
}
