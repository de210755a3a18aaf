//! Answers whose harm takes steps: uploads, kept connections, clients that vanish or do not read, ranges, validation.

use std::time::Duration;

use larder_testkit::client::{Connection, End, Progress, Request, Response};
use larder_testkit::origin::Answer;

use crate::hostile::origin::fixture::{Fixture, Kind, SECOND, evil};
use crate::hostile::origin::judge::APART;
use crate::hostile::stage::{Outcome, same};
use crate::hostile::suite::Run;

/// An answer that is not for the store and has no end.
const ENDLESS: &str = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n\r\n";
/// The same, for the store.
const ENDLESS_STORABLE: &str =
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n";
/// A store that outgrows soon.
const SMALL_STORE: &str = "[stores.default]\nmemory = \"1MiB\"\nmax_object = \"64KiB\"";

pub fn runs() -> Vec<Run> {
    vec![
        Run::new("413 before the content was read, and a close", || early_answer(false)),
        Run::new("413 before the content was read, and the connection kept", || early_answer(true)),
        Run::new("an upload that nobody reads", unread_upload),
        Run::new("a POST is asked once, whatever came of it", post_once),
        Run::new("a kept connection that closes at a GET", kept_and_closed),
        Run::new("a kept connection that closes at a POST", kept_and_closed_post),
        Run::new("a kept connection that closes within a head", kept_and_cut),
        Run::new("a body without end and a client that leaves, HTTP/1.1", || {
            endless(ENDLESS, Kind::Http11, "")
        }),
        Run::new("a body without end and a client that leaves, HTTP/1.0", || {
            endless(ENDLESS, Kind::Http10, "")
        }),
        Run::new("a storable body without end and a client that leaves", || {
            endless(ENDLESS_STORABLE, Kind::Http11, SMALL_STORE)
        }),
        Run::new("a body that passes and falls silent, and a client that leaves", passing_and_silent),
        Run::new("silence and a client that leaves", silent_and_left),
        Run::new("a client that leaves a storable body costs nobody the whole", left_and_stored),
        Run::new("a client that does not read a body without end", || unread(ENDLESS, "")),
        Run::new("a client that does not read a storable body without end", || {
            unread(ENDLESS_STORABLE, SMALL_STORE)
        }),
        Run::new("a slow reader is dropped, the others get the whole", slow_among_fast),
        Run::new("a client that joins half-way is cut with the others", joined_and_cut),
        Run::new("304 with content", || {
            validation(
                "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 4\r\n\r\nevil",
                Then::Served,
            )
        }),
        Run::new("304 with two lengths", || {
            validation(
                "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n",
                Then::Failed,
            )
        }),
        Run::new("304 with a length of its own changes nothing", || {
            validation("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 3\r\n\r\n", Then::Served)
        }),
        Run::new("304 for something else", || {
            validation("HTTP/1.1 304 Not Modified\r\nETag: \"b\"\r\n\r\n", Then::AskedAgain)
        }),
        Run::new("a cut answer in place of a 304", || {
            validation(
                "HTTP/1.1 200 OK\r\nCache-Control: no-cache\r\nETag: \"b\"\r\nContent-Length: 9\r\n\r\nevil",
                Then::Cut,
            )
        }),
        Run::new("206 that nobody asked for", || {
            part("", "Content-Range: bytes 0-4/9\r\nContent-Length: 5\r\n", true)
        }),
        Run::new("206 with a range behind its end", || {
            part("bytes=0-4", "Content-Range: bytes 5-2/9\r\nContent-Length: 5\r\n", true)
        }),
        Run::new("206 beyond its whole", || {
            part("bytes=0-4", "Content-Range: bytes 0-4/3\r\nContent-Length: 5\r\n", true)
        }),
        Run::new("206 of nothing known", || {
            part("bytes=0-4", "Content-Range: lines 1-5/9\r\nContent-Length: 5\r\n", true)
        }),
        Run::new("206 without a range", || part("bytes=0-4", "Content-Length: 5\r\n", true)),
        Run::new("206 with numbers beyond 64 bits", || {
            part(
                "bytes=0-4",
                "Content-Range: bytes 0-99999999999999999999/99999999999999999999\r\nContent-Length: 5\r\n",
                true,
            )
        }),
        Run::new("206 shorter than its range", || {
            part("bytes=0-8", "Content-Range: bytes 0-8/9\r\nContent-Length: 5\r\n", true)
        }),
        Run::new("206 that breaks off", || {
            part("bytes=0-8", "Content-Range: bytes 0-8/9\r\nContent-Length: 9\r\n", false)
        }),
        Run::new("200 in place of a tunnel", || {
            tunnel(
                "HTTP/1.1 200 OK\r\nUpgrade: websocket\r\nConnection: upgrade\r\nContent-Length: 2\r\n\r\nok",
                200,
            )
        }),
        Run::new("101 for another protocol", || {
            tunnel("HTTP/1.1 101 x\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\nevil", 502)
        }),
        Run::new("101 without Upgrade", || tunnel("HTTP/1.1 101 x\r\nConnection: upgrade\r\n\r\nevil", 502)),
        Run::new("101 without Connection", || {
            tunnel("HTTP/1.1 101 x\r\nUpgrade: websocket\r\n\r\nevil", 502)
        }),
        Run::new("101 without an accepted key", || {
            tunnel("HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nevil", 502)
        }),
    ]
}

fn content(response: &Response) -> String {
    response.body.escape_ascii().to_string()
}

fn is_broken(response: &Response) -> bool {
    matches!(response.end, End::Broken(_))
}

/// Nothing of what happened is served to the next client, and nothing is left.
async fn afterwards(fixture: Fixture) -> Outcome {
    let response = fixture.ask(Kind::Http11, &evil("GET")).await?;
    same("afterwards", &content(&response), &SECOND.to_owned())?;
    fixture.still_serves().await?;
    fixture.end().await
}

async fn early_answer(keeps: bool) -> Outcome {
    let mut answer = Answer::literal("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig");
    (answer.stop_reading_at, answer.linger) = (Some(1), true);
    if keeps {
        answer = answer.wait("500ms");
    }
    let fixture = Fixture::new(vec![answer], "", "").await?;
    fixture.release();
    // More than the kernels between larder and the origin hold, so it cannot be complete.
    let request = evil("POST").body(vec![b'a'; 32 << 20]);
    let response = fixture.ask(Kind::Http11, &request).await?;
    same("status", &response.status, &413)?;
    same("content", &content(&response), &"big".to_owned())?;
    same("closes", &response.fields.lists("connection", "close"), &true)?;
    afterwards(fixture).await
}

async fn unread_upload() -> Outcome {
    let unread = Answer { stop_reading_at: Some(0), ..Answer::literal("").wait("3s") };
    let fixture = Fixture::new(vec![unread], "", "").await?;
    fixture.release();
    // More than the kernels between larder and the origin hold.
    let request = evil("POST").body(vec![b'a'; 32 << 20]);
    let response = fixture.ask(Kind::Http11, &request).await?;
    same("status", &response.status, &504)?;
    afterwards(fixture).await
}

async fn post_once() -> Outcome {
    for (answer, detail) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "bad-response"),
        ("HTTP/1.1 20", "closed"),
        ("", "closed"),
    ] {
        let fixture = Fixture::new(vec![Answer::literal(answer)], "", "").await?;
        fixture.release();
        for kind in [Kind::Http11, Kind::Http2] {
            let response = fixture.ask(kind, &evil("POST").body("hello")).await?;
            let status = response.fields.first("cache-status").unwrap_or_default().to_owned();
            if kind == Kind::Http2 {
                // The script has ended: this one is answered.
                same("status", &response.status, &200)?;
                continue;
            }
            same("status", &response.status, &502)?;
            same(&status, &status.ends_with(&format!("detail={detail}")), &true)?;
            same("times asked", &fixture.asked(), &1)?;
        }
        afterwards(fixture).await?;
    }
    Ok(())
}

/// Leaves one connection in the pool.
async fn with_kept(answers: Vec<Answer>) -> Result<Fixture, String> {
    let fixture = Fixture::new(answers, "", "").await?;
    fixture.release();
    let response = fixture.ask(Kind::Http11, &Request::new("GET", "/first", "a.test")).await?;
    same("first", &response.status, &200)?;
    same("kept", &fixture.open(), &1)?;
    Ok(fixture)
}

async fn kept_and_closed() -> Outcome {
    // Nobody can tell an unlucky moment from an attack: once more, and then no more.
    let fixture = with_kept(vec![Answer::literal(""), Answer::literal("")]).await?;
    let response = fixture.ask(Kind::Http11, &evil("GET")).await?;
    same("status", &response.status, &502)?;
    same("times asked", &fixture.asked(), &2)?;
    afterwards(fixture).await
}

async fn kept_and_closed_post() -> Outcome {
    let fixture = with_kept(vec![Answer::literal("")]).await?;
    let response = fixture.ask(Kind::Http11, &evil("POST").body("hello")).await?;
    same("status", &response.status, &502)?;
    same("times asked", &fixture.asked(), &1)?;
    afterwards(fixture).await
}

async fn kept_and_cut() -> Outcome {
    let fixture = with_kept(vec![Answer::literal("H")]).await?;
    let response = fixture.ask(Kind::Http11, &evil("GET")).await?;
    same("status", &response.status, &502)?;
    same("times asked", &fixture.asked(), &1)?;
    afterwards(fixture).await
}

/// A client that has read some of the body and is still there.
async fn reading(fixture: &Fixture, kind: Kind, bytes: u64) -> Result<impl Sized + use<>, String> {
    let mut connection = fixture.connect().await?;
    let mut request = evil("GET");
    if kind == Kind::Http10 {
        request.version = "1.0".to_owned();
    }
    connection.write(&request.to_http1()).await.map_err(|error| error.to_string())?;
    let progress = Progress::default().pause_at(bytes);
    let watched = progress.clone();
    let reader = tokio::spawn(async move { connection.read_response("GET", &progress).await.map(drop) });
    watched.until(bytes).await;
    Ok(AbortOnDrop(reader))
}

struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Chunks or bytes without end.
fn flood(head: &str) -> Answer {
    let piece = "a".repeat(0x4000);
    let piece = if head.contains("chunked") { format!("4000\r\n{piece}\r\n") } else { piece };
    Answer::literal(head).flood_with(&piece)
}

async fn endless(head: &str, kind: Kind, store: &str) -> Outcome {
    let fixture = Fixture::new(vec![flood(head)], store, "").await?;
    fixture.release();
    let client = reading(&fixture, kind, 300_000).await?;
    same("open at the origin", &fixture.open(), &1)?;
    drop(client);
    fixture.is_quiet().await?;
    afterwards(fixture).await
}

async fn passing_and_silent() -> Outcome {
    // Longer than the store takes, so it passes; the pause is longer than anybody may have to wait.
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 900000\r\n\r\n";
    let answer = Answer::literal(head).send(&"a".repeat(100_000)).stay_silent();
    let fixture = Fixture::patient(vec![answer], SMALL_STORE).await?;
    fixture.release();
    let client = reading(&fixture, Kind::Http11, 100_000).await?;
    drop(client);
    let began = std::time::Instant::now();
    fixture.until("the origin's connection is closed", |fixture| fixture.open() == 0).await?;
    let is_soon = began.elapsed() < Duration::from_secs(3);
    same("closed soon", &is_soon, &true)?;
    afterwards(fixture).await
}

async fn silent_and_left() -> Outcome {
    let fixture = Fixture::new(vec![Answer::literal("").stay_silent()], "", "").await?;
    fixture.release();
    let mut connection = fixture.connect().await?;
    let sent = connection.write(&evil("GET").to_http1()).await;
    sent.map_err(|error| error.to_string())?;
    fixture.until("the origin is asked", |fixture| fixture.asked() == 1).await?;
    connection.abort();
    fixture.is_quiet().await?;
    afterwards(fixture).await
}

async fn left_and_stored() -> Outcome {
    let hello = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\nhello";
    let fixture =
        Fixture::new(vec![Answer::literal(hello).wait("200ms").send("world").keep_open()], "", "").await?;
    fixture.release();
    drop(reading(&fixture, Kind::Http11, 5).await?);
    let response = fixture.ask(Kind::Http2, &evil("GET")).await?;
    same("content", &content(&response), &"helloworld".to_owned())?;
    same("times asked", &fixture.asked(), &1)?;
    fixture.still_serves().await?;
    fixture.end().await
}

async fn unread(head: &str, store: &str) -> Outcome {
    let top = format!("{store}\n[limits]\nwrite_idle = \"300ms\"");
    let fixture = Fixture::new(vec![flood(head)], &top, "").await?;
    fixture.release();
    let client = reading(&fixture, Kind::Http11, 1000).await?;
    fixture.is_quiet().await?;
    same("counted", &fixture.metric("larder_limit_reached_total{limit=\"write_idle\"}"), &1.0)?;
    drop(client);
    afterwards(fixture).await
}

async fn slow_among_fast() -> Outcome {
    const LENGTH: usize = 24 << 20;
    let answer = Answer::new(200, &["Cache-Control: max-age=60"], &"a".repeat(LENGTH));
    let top = format!("{SMALL_STORE}\n[limits]\nwrite_idle = \"2s\"");
    let fixture = Fixture::patient(vec![answer], &top).await?;
    let slow = reading_when_released(&fixture).await?;
    let request = evil("GET");
    let fast = fixture.ask(Kind::Http11, &request);
    let release = async {
        let waited =
            fixture.until("both wait", |fixture| fixture.metric("larder_flights_waiting") == 2.0).await;
        fixture.release();
        waited
    };
    let (fast, waited) = tokio::join!(fast, release);
    waited?;
    let fast = fast?;
    same("end", &fast.end, &End::Complete)?;
    same("length", &fast.body.len(), &LENGTH)?;
    same("times asked", &fixture.asked(), &1)?;
    drop(slow);
    afterwards(fixture).await
}

/// A client that has asked and reads nothing.
async fn reading_when_released(fixture: &Fixture) -> Result<Connection, String> {
    let mut connection = fixture.connect().await?;
    let sent = connection.write(&evil("GET").to_http1()).await;
    sent.map_err(|error| error.to_string())?;
    fixture.until("the origin is asked", |fixture| fixture.asked() == 1).await?;
    Ok(connection)
}

async fn joined_and_cut() -> Outcome {
    let hello =
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    let fixture = Fixture::new(vec![Answer::literal(hello).wait("300ms").reset()], "", "").await?;
    fixture.release();
    let leader = reading(&fixture, Kind::Http11, 5).await?;
    let request = evil("GET");
    let (a, b, c) = tokio::join!(
        fixture.ask(Kind::Http11, &request),
        fixture.ask(Kind::Http10, &request),
        fixture.ask(Kind::Http2, &request)
    );
    for response in [a?, b?, c?] {
        same("broken", &is_broken(&response), &true)?;
        same("content", &b"hello".starts_with(&response.body), &true)?;
    }
    same("times asked", &fixture.asked(), &1)?;
    drop(leader);
    afterwards(fixture).await
}

/// What comes of an odd answer to a validation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Served,
    Failed,
    AskedAgain,
    Cut,
}

async fn validation(answer: &'static str, then: Then) -> Outcome {
    let first = Answer::literal(
        "HTTP/1.1 200 OK\r\nCache-Control: no-cache\r\nETag: \"a\"\r\nContent-Length: 5\r\n\r\nhello",
    );
    let odd = Answer::literal(answer);
    let fixture = Fixture::new(vec![first, odd], "", "").await?;
    fixture.release();
    let response = fixture.ask(Kind::Http11, &evil("GET")).await?;
    same("first", &content(&response), &"hello".to_owned())?;
    let response = fixture.ask(Kind::Http11, &evil("GET")).await?;
    match then {
        Then::Served => {
            same("status", &response.status, &200)?;
            same("content", &content(&response), &"hello".to_owned())?;
            same("length", &response.fields.first("content-length"), &Some("5"))?;
        }
        Then::Failed => same("status", &response.status, &502)?,
        Then::AskedAgain => {
            same("content", &content(&response), &SECOND.to_owned())?;
            same("times asked", &fixture.asked(), &3)?;
        }
        Then::Cut => same("broken", &is_broken(&response), &true)?,
    }
    afterwards(fixture).await
}

/// A 206 is its client's alone: whatever it says, the next request for the whole is asked anew.
async fn part(range: &'static str, lines: &'static str, is_whole: bool) -> Outcome {
    let answer = Answer::literal(format!(
        "HTTP/1.1 206 Partial Content\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\n{lines}\r\nhello"
    ));
    let fixture = Fixture::new(vec![answer], "", "").await?;
    fixture.release();
    let mut request = evil("GET");
    if !range.is_empty() {
        request = request.field("Range", range);
    }
    let response = fixture.ask(Kind::Http11, &request).await?;
    same("status", &response.status, &206)?;
    same("broken", &is_broken(&response), &!is_whole)?;
    same("content", &b"hello".starts_with(&response.body), &true)?;
    afterwards(fixture).await
}

async fn tunnel(answer: &'static str, status: u16) -> Outcome {
    let answer = match status {
        200 => Answer::literal(answer).keep_open(),
        _ => Answer::literal(answer).wait(APART).send("more of it").stay_silent(),
    };
    let fixture = Fixture::new(vec![answer], "", "websocket = true").await?;
    fixture.release();
    let request = evil("GET")
        .field("Connection", "Upgrade")
        .field("Upgrade", "websocket")
        .field("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
        .field("Sec-WebSocket-Version", "13");
    let response = fixture.ask(Kind::Http11, &request).await?;
    same("status", &response.status, &status)?;
    same("upgrade", &response.fields.has("upgrade"), &false)?;
    let has_leaked = response.body.windows(4).any(|four| four == b"evil");
    same("leaked", &has_leaked, &false)?;
    afterwards(fixture).await
}
