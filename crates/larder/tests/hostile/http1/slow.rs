//! What takes time or breaks off: heads and content that stall, trickle or end too early.

use std::time::Duration;

use larder_testkit::origin::Seen;

use crate::hostile::http1::judge::{invariants, refused};
use crate::hostile::http1::table::post;
use crate::hostile::stage::{Outcome, Stage, same};
use crate::hostile::suite::Run;
use crate::hostile::transport::Transport;

pub(crate) fn runs() -> Vec<Run> {
    vec![
        Run::new("a head that does not come", || slow_head("GET / HTTP/1.1\r\nHost: a.test\r\n")),
        Run::new("a request line that does not come", || slow_head("GE")),
        // Over TLS HTTP/1.1 has been agreed on, so that it is a request of another version, and refused at once.
        match Transport::current() {
            Transport::Clear => {
                Run::new("an HTTP/2 preface that does not come", || slow_head("PRI * HTTP/2.0\r\n\r\nSM"))
            }
            Transport::Tls(_) => Run::new("a preface of HTTP/2 behind another agreement", || {
                early_line("PRI * HTTP/2.0\r\n\r\nSM", 505)
            }),
        },
        Run::new("a request line of no HTTP/1 is refused before its head ends", || {
            early_line("GET /\r\n", 400)
        }),
        Run::new("a version is refused before its head ends", || early_line("GET / HTTP/1.2\r\nHo", 505)),
        Run::new("a head that trickles", trickle),
        Run::new("a connection that says nothing", mute),
        Run::new("a connection that says nothing more", idle),
        Run::new("an upload that stalls", || slow_body(post("Content-Length: 10\r\n", "hello"))),
        Run::new("chunks that stall", || slow_body(post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n"))),
        Run::new("a chunk size that stalls", || {
            slow_body(post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n5"))
        }),
        Run::new("trailers that stall", || {
            slow_body(post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\nX: y\r\n"))
        }),
        Run::new("an upload below the least rate", slow_rate),
        Run::new("an upload cut by its length", || cut(post("Content-Length: 10\r\n", "hello"))),
        Run::new("an upload cut before its first byte", || cut(post("Content-Length: 10\r\n", ""))),
        Run::new("an upload cut in a chunk", || cut(post("Transfer-Encoding: chunked\r\n", "5\r\nhel"))),
        Run::new("an upload cut between chunks", || {
            cut(post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n"))
        }),
        Run::new("an upload cut before its last line", || {
            cut(post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n"))
        }),
        Run::new("an upload cut in its trailers", || {
            cut(post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\nX: y\r\n"))
        }),
        Run::new("an upload that is reset", reset),
        Run::new("half a head, then the end", half_a_head),
    ]
}

const HURRY: &str = "[limits]\nhead_time = \"200ms\"\nkeep_alive_idle = \"200ms\"\nbody_idle = \"200ms\"\n";

pub(crate) async fn nothing_sent(stage: Stage) -> Outcome {
    same("requests at the origin", &stage.end().await?.len(), &0)
}

/// The origin saw one request, which never ended.
pub(crate) async fn aborted(stage: Stage) -> Outcome {
    let seen = stage.end().await?;
    let ended = seen.iter().filter(|seen| seen.body_complete).count();
    same("whole requests at the origin", &ended, &0)?;
    same("at most one request", &(seen.len() < 2), &true)?;
    seen.iter().try_for_each(|seen| invariants(seen, true))
}

pub(crate) fn all_well(seen: &[Seen], count: usize) -> Outcome {
    same("requests at the origin", &seen.len(), &count)?;
    seen.iter().try_for_each(|seen| invariants(seen, false))
}

async fn slow_head(part: &'static str) -> Outcome {
    let stage = Stage::new(Vec::new(), HURRY, "").await?;
    let mut client = stage.connect().await?;
    client.write(part).await?;
    refused(&client.read("GET").await?, 408)?;
    client.closed().await?;
    drop(client);
    nothing_sent(stage).await
}

async fn early_line(part: &'static str, status: u16) -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let mut client = stage.connect().await?;
    client.write(part).await?;
    refused(&client.read("GET").await?, status)?;
    client.closed().await?;
    drop(client);
    nothing_sent(stage).await
}

/// Bytes keep coming, and the time for a head is over all the same.
async fn trickle() -> Outcome {
    let stage = Stage::new(Vec::new(), HURRY, "").await?;
    let mut client = stage.connect().await?;
    client.write("GET / HTTP/1.1\r\nHost: a.test\r\nX: ").await?;
    let began = tokio::time::Instant::now();
    while client.silent_for(Duration::from_millis(20)).await {
        client.write("y").await?;
        same("ends in time", &(began.elapsed() < Duration::from_secs(3)), &true)?;
    }
    refused(&client.read("GET").await?, 408)?;
    client.closed().await?;
    drop(client);
    nothing_sent(stage).await
}

async fn mute() -> Outcome {
    let stage = Stage::new(Vec::new(), HURRY, "").await?;
    let mut client = stage.connect().await?;
    client.closed().await?;
    drop(client);
    nothing_sent(stage).await
}

async fn idle() -> Outcome {
    let stage = Stage::new(Vec::new(), HURRY, "").await?;
    let mut client = stage.connect().await?;
    client.probe().await?;
    client.closed().await?;
    drop(client);
    all_well(&stage.end().await?, 1)
}

async fn slow_body(send: String) -> Outcome {
    let stage = Stage::new(Vec::new(), HURRY, "").await?;
    let mut client = stage.connect().await?;
    client.write(&send).await?;
    refused(&client.read("POST").await?, 408)?;
    client.closed().await?;
    drop(client);
    aborted(stage).await
}

/// A byte now and then satisfies the idle limit, not the least rate.
async fn slow_rate() -> Outcome {
    let limits = "[limits]\nbody_idle = \"5s\"\nrate_min = \"1KiB\"\nrate_window = \"1s\"\n";
    let stage = Stage::new(Vec::new(), limits, "").await?;
    let mut client = stage.connect().await?;
    client.write(&post("Content-Length: 100000\r\n", "")).await?;
    let began = tokio::time::Instant::now();
    while client.silent_for(Duration::from_millis(50)).await {
        client.write("y").await?;
        same("ends in time", &(began.elapsed() < Duration::from_secs(5)), &true)?;
    }
    refused(&client.read("POST").await?, 408)?;
    client.closed().await?;
    drop(client);
    aborted(stage).await
}

/// The client ends its direction too early: the origin must not take what it got for the whole.
async fn cut(send: String) -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let mut client = stage.connect().await?;
    client.write(&send).await?;
    client.half_close().await?;
    refused(&client.read("POST").await?, 400)?;
    client.closed().await?;
    drop(client);
    aborted(stage).await
}

async fn reset() -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let mut client = stage.connect().await?;
    client.write(&post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n")).await?;
    stage.received(1).await?;
    client.abort();
    aborted(stage).await
}

async fn half_a_head() -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let mut client = stage.connect().await?;
    client.write("GET / HTTP/1.1\r\nHost: a.test\r\n").await?;
    client.half_close().await?;
    client.closed().await?;
    drop(client);
    nothing_sent(stage).await
}
