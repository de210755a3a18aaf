//! What one write cannot show: early answers, unread content, tunnels, connections that are used again.

use larder_testkit::client::End;
use larder_testkit::origin::Answer;

use crate::hostile::http1::judge::{answered, refused};
use crate::hostile::http1::slow::{all_well, nothing_sent};
use crate::hostile::http1::table::{get, post};
use crate::hostile::stage::{Client, Outcome, PROBE, Stage, same, script};
use crate::hostile::suite::Run;
use crate::hostile::transport::Transport;

const WEBSOCKET: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";

pub(crate) fn runs() -> Vec<Run> {
    vec![
        Run::new("an answer before the content", early_answer),
        Run::new("content for a stored response", || content_for_a_hit(false)),
        Run::new("content for a stored response, in chunks", || content_for_a_hit(true)),
        Run::new("content for larder's own answer", || content_for_nobody("POST /../a")),
        Run::new("content for a host that is not served", || {
            content_for_nobody("POST http://unknown.test/a")
        }),
        Run::new("a trusted peer chooses the key, nobody else's", trusted),
        Run::new("a tunnel begins with 101", tunnel),
        Run::new("no 101, no tunnel", no_tunnel),
        Run::new("a 200 is no tunnel", || refused_tunnel(200)),
        Run::new("a 426 is no tunnel", || refused_tunnel(426)),
        Run::new("a 101 that nobody asked for", unasked),
        Run::new("bytes after h2c", h2c),
        Run::new("Expect: the content waits for 100", expect),
        Run::new("Expect: heads without content", expectations),
        Run::new("two requests after a pause", pause),
        Run::new("many requests in one write", pipeline),
        Run::new("a bad request behind good ones", bad_behind_good),
        Run::new("a redirect stays on its site", redirect),
        Run::new("nothing is read after a refusal", deaf),
        Run::new("a flood after a refusal", flood),
    ]
}

/// The origin answers without reading: the client's connection ends after the answer, the origin's is not used again.
async fn early_answer() -> Outcome {
    let answer = Answer { stop_reading_at: Some(0), ..Answer::new(403, &["Cache-Control: no-store"], "no") };
    let stage = Stage::new(vec![script("/early", vec![answer])], "", "").await?;
    let mut client = stage.connect().await?;
    let head = "POST /early HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000000\r\n\r\n";
    client.write(head).await?;
    let response = client.read("POST").await?;
    answered(&response, 403)?;
    same("closes", &response.fields.lists("connection", "close"), &true)?;
    client.write(PROBE).await?;
    client.closed().await?;
    drop(client);
    stage.connect().await?.probe().await?;
    let seen = stage.end().await?;
    same("requests at the origin", &seen.len(), &2)?;
    let connections: Vec<u64> = seen.iter().map(|seen| seen.connection).collect();
    same("a connection of its own", &(connections.first() != connections.last()), &true)
}

/// A hit is not looked for where there is content, and content is never read as a request.
async fn content_for_a_hit(in_a_chunk: bool) -> Outcome {
    let stored = Answer::new(200, &["Cache-Control: max-age=60"], "stored");
    let stage = Stage::new(vec![script("/stored", vec![stored])], "", "").await?;
    let head = "GET /stored HTTP/1.1\r\nHost: a.test\r\n";
    answered(&stage.ask(&format!("{head}\r\n")).await?, 200)?;
    let hidden = "GET /hidden HTTP/1.1\r\nHost: hidden.test\r\n\r\n";
    let length = hidden.len();
    let content = if in_a_chunk {
        format!("Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{hidden}\r\n0\r\n\r\n")
    } else {
        format!("Content-Length: {length}\r\n\r\n{hidden}")
    };
    let mut client = stage.connect().await?;
    client.write(&format!("{head}{content}{PROBE}")).await?;
    answered(&client.read("GET").await?, 200)?;
    client.probed().await?;
    drop(client);
    let hit = stage.ask(&format!("{head}\r\n")).await?;
    same("still a hit", &hit.fields.all("cache-status").any(|value| value.contains("hit")), &true)?;
    let seen = stage.end().await?;
    let targets: Vec<&str> = seen.iter().map(|seen| seen.target.as_str()).collect();
    same("targets", targets.as_slice(), &["/stored", "/stored", "/probe"])?;
    all_well(&seen, 3)
}

/// Where larder answers without reading, the content is taken off or the connection closed; never read as a request.
async fn content_for_nobody(line: &'static str) -> Outcome {
    let hidden = "GET /hidden HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let sites = "hosts = [\"a.test\", \"probe.test\"]";
    for (framing, content) in [
        (format!("Content-Length: {}", hidden.len()), hidden.to_owned()),
        ("Transfer-Encoding: chunked".to_owned(), format!("{:x}\r\n{hidden}\r\n0\r\n\r\n", hidden.len())),
        ("Content-Length: 1000000".to_owned(), hidden.repeat(10)),
        ("Transfer-Encoding: chunked".to_owned(), format!("fffff\r\n{}", hidden.repeat(10))),
    ] {
        for at_once in [true, false] {
            let stage = Stage::new(Vec::new(), "", sites).await?;
            let mut client = stage.connect().await?;
            let head = format!("{line} HTTP/1.1\r\nHost: a.test\r\n{framing}\r\n\r\n");
            if at_once {
                client.write(&format!("{head}{content}")).await?;
            } else {
                client.write(&head).await?;
            }
            let response = client.read("POST").await?;
            same("refused", &matches!(response.status, 400 | 421), &true)?;
            answered(&response, response.status)?;
            let closes = response.fields.lists("connection", "close");
            if !at_once {
                same("closes", &closes, &true)?;
                client.write(&content).await?;
            }
            client.write(PROBE).await?;
            if closes {
                client.closed().await?;
            } else {
                client.probed().await?;
            }
            drop(client);
            let seen = stage.end().await?;
            same("nothing hidden", &seen.iter().any(|seen| seen.target != "/probe"), &false)?;
            all_well(&seen, usize::from(!closes))?;
        }
    }
    Ok(())
}

/// What a trusted peer says of host and scheme is part of the key, so it poisons nothing.
async fn trusted() -> Outcome {
    let page = Answer {
        fields: vec!["Cache-Control: max-age=60".to_owned()],
        template: Some("{field:host} {field:x-forwarded-host} {field:x-forwarded-proto}".to_owned()),
        ..Answer::default()
    };
    let stage = Stage::new(vec![script("/page", vec![page])], "trusted = [\"127.0.0.0/8\"]", "").await?;
    let (own, other) = (Transport::current().scheme(), Transport::current().other_scheme());
    let other_scheme = format!("X-Forwarded-Proto: {other}\r\n");
    for (lines, host, scheme) in [
        ("X-Forwarded-Host: evil.test\r\n", "evil.test", own),
        (&other_scheme, "a.test", other),
        (&format!("X-Forwarded-Host: evil.test\r\n{other_scheme}"), "evil.test", other),
        ("X-Forwarded-Host: e vil\r\nX-Forwarded-Proto: gopher\r\n", "a.test", own),
        ("X-Original-URL: /evil\r\nX-Host: evil.test\r\n", "a.test", own),
        ("", "a.test", own),
    ] {
        let asked = stage.ask(&format!("GET /page HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n")).await?;
        same(lines, &asked.body.escape_ascii().to_string(), &format!("{host} {host} {scheme}"))?;
    }
    let seen = stage.end().await?;
    same("one page for each key", &seen.len(), &4)
}

/// What a client sends ahead reaches the origin after the 101, and not before.
async fn tunnel() -> Outcome {
    let answer = Answer {
        status: Some(101),
        fields: [
            "Connection: upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
        ]
        .map(str::to_owned)
        .to_vec(),
        echo: true,
        hold: Some("accept".to_owned()),
        ..Answer::default()
    };
    let stage = Stage::new(vec![script("/ws", vec![answer])], "", "websocket = true").await?;
    let mut client = stage.connect().await?;
    client.write(&format!("GET /ws HTTP/1.1\r\nHost: a.test\r\n{WEBSOCKET}\r\nahead")).await?;
    stage.received(1).await?;
    client.silent().await?;
    stage.origin.gates().release("accept");
    let response = client.read("GET").await?;
    same("status", &response.status, &101)?;
    same("echo", client.exact(5).await?.as_str(), "ahead")?;
    client.write("more").await?;
    same("echo", client.exact(4).await?.as_str(), "more")?;
    drop(client);
    let seen = stage.end().await?;
    let upgrade = seen.first().and_then(|seen| seen.fields.first("upgrade").map(str::to_owned));
    same("upgrade", &upgrade.as_deref(), &Some("websocket"))?;
    all_well(&seen, 1)
}

/// On a site that allows none, the request is an ordinary one, and so is what follows it.
async fn no_tunnel() -> Outcome {
    let stage = Stage::new(Vec::new(), "", "websocket = false").await?;
    let mut client = stage.connect().await?;
    client.write(&format!("{}{PROBE}", get(WEBSOCKET))).await?;
    answered(&client.read("GET").await?, 200)?;
    client.probed().await?;
    drop(client);
    let seen = stage.end().await?;
    same("no upgrade", &seen.iter().any(|seen| seen.fields.has("upgrade")), &false)?;
    all_well(&seen, 2)
}

async fn refused_tunnel(status: u16) -> Outcome {
    let answer =
        Answer::new(status, &["Cache-Control: no-store", "Connection: upgrade", "Upgrade: websocket"], "no");
    let stage = Stage::new(vec![script("/ws", vec![answer])], "", "websocket = true").await?;
    let mut client = stage.connect().await?;
    client.write(&format!("GET /ws HTTP/1.1\r\nHost: a.test\r\n{WEBSOCKET}\r\n{PROBE}")).await?;
    let response = client.read("GET").await?;
    answered(&response, status)?;
    same("upgrade", &response.fields.has("upgrade"), &false)?;
    // What follows is read as the request that it is, never as a tunnel's bytes.
    client.probed().await?;
    drop(client);
    all_well(&stage.end().await?, 2)
}

async fn unasked() -> Outcome {
    let answer = Answer {
        raw: Some("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned()),
        ..Answer::default()
    };
    let stage = Stage::new(vec![script("/ws", vec![answer])], "", "websocket = true").await?;
    let response = stage.ask("GET /ws HTTP/1.1\r\nHost: a.test\r\n\r\n").await?;
    answered(&response, 502)?;
    all_well(&stage.end().await?, 1)
}

async fn h2c() -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let mut client = stage.connect().await?;
    let lines =
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n";
    client.write(&format!("{}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{PROBE}", get(lines))).await?;
    answered(&client.read("GET").await?, 200)?;
    refused(&client.read("GET").await?, 505)?;
    client.closed().await?;
    drop(client);
    let seen = stage.end().await?;
    same("no upgrade", &seen.iter().any(|seen| seen.fields.has("upgrade")), &false)?;
    all_well(&seen, 1)
}

async fn expect() -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let mut client = stage.connect().await?;
    client.write(&post("Expect: 100-continue\r\nContent-Length: 5\r\n", "")).await?;
    same("100 comes first", client.exact(25).await?.as_str(), "HTTP/1.1 100 Continue\r\n\r\n")?;
    client.write("hello").await?;
    answered(&client.read("POST").await?, 200)?;
    client.probe().await?;
    drop(client);
    let seen = stage.end().await?;
    same("no Expect", &seen.iter().any(|seen| seen.fields.has("expect")), &false)?;
    all_well(&seen, 2)
}

/// Heads that promise content and never send it hold nothing once their clients are gone.
async fn expectations() -> Outcome {
    const CLIENTS: usize = 100;
    const ROUNDS: usize = 10;
    let stage = Stage::new(Vec::new(), "", "").await?;
    let head = post("Expect: 100-continue\r\nContent-Length: 5\r\n", "");
    for _ in 0..ROUNDS {
        let mut clients = Vec::with_capacity(CLIENTS);
        for _ in 0..CLIENTS {
            let mut client = stage.connect().await?;
            client.write(&head).await?;
            clients.push(client);
        }
        clients.into_iter().for_each(Client::abort);
    }
    stage.connect().await?.probe().await?;
    let seen = stage.end().await?;
    let whole = seen.iter().filter(|seen| seen.body_complete).count();
    same("whole requests at the origin", &whole, &1)
}

async fn pause() -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let mut client = stage.connect().await?;
    client.probe().await?;
    client.silent().await?;
    client.write(&format!("{PROBE}{PROBE}")).await?;
    client.probed().await?;
    client.probed().await?;
    drop(client);
    all_well(&stage.end().await?, 3)
}

async fn pipeline() -> Outcome {
    const COUNT: usize = 200;
    let stage = Stage::new(Vec::new(), "", "").await?;
    let mut client = stage.connect().await?;
    client.write(&PROBE.repeat(COUNT)).await?;
    for _ in 0..COUNT {
        client.probed().await?;
    }
    drop(client);
    all_well(&stage.end().await?, COUNT)
}

async fn bad_behind_good() -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let mut client = stage.connect().await?;
    let bad = post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n");
    client.write(&format!("{PROBE}{PROBE}{bad}{PROBE}")).await?;
    client.probed().await?;
    client.probed().await?;
    refused(&client.read("POST").await?, 400)?;
    client.closed().await?;
    drop(client);
    all_well(&stage.end().await?, 2)
}

/// Requests that come one by one after a refusal are not read either.
async fn deaf() -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let mut client = stage.connect().await?;
    client.write("GET / HTTP/1.1\r\n\r\n").await?;
    refused(&client.read("GET").await?, 400)?;
    for _ in 0..5 {
        client.write(PROBE).await?;
        tokio::task::yield_now().await;
    }
    client.closed().await?;
    drop(client);
    nothing_sent(stage).await
}

/// A client that goes on sending is read for a moment, so that it sees its answer, and then cut.
async fn flood() -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let mut client = stage.connect().await?;
    client.write("BAD\r\n\r\n").await?;
    let response = client.read("GET").await?;
    refused(&response, 400)?;
    same("end", &response.end, &End::Complete)?;
    client.write(&PROBE.repeat(10_000)).await?;
    client.closed().await?;
    drop(client);
    nothing_sent(stage).await
}

/// A directory without its slash is redirected to; a path that browsers take for a host's name is never told back.
async fn redirect() -> Outcome {
    let root = tempfile::tempdir().map_err(|error| error.to_string())?;
    let docs = root.path().join("docs");
    std::fs::create_dir(&docs).map_err(|error| error.to_string())?;
    std::fs::write(docs.join("index.html"), "index").map_err(|error| error.to_string())?;
    let site = format!("root = {:?}", root.path());
    let stage = Stage::new(Vec::new(), "", &site).await?;
    for (target, location) in [
        ("/docs", "/docs/"),
        ("/docs?a=b", "/docs/?a=b"),
        ("//docs", "/docs/"),
        ("//evil.test/../docs", "/docs/"),
        ("//evil.test/..//docs", "/docs/"),
        ("/\\evil.test/../docs", "/docs/"),
        ("/./docs", "/docs/"),
        ("/%64ocs", "/docs/"),
    ] {
        let response = stage.ask(&format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n")).await?;
        answered(&response, 301).map_err(|why| format!("{target}: {why}"))?;
        same(target, &response.fields.first("location"), &Some(location))?;
    }
    let index = stage.ask("GET /docs/. HTTP/1.1\r\nHost: a.test\r\n\r\n").await?;
    same("index", index.body.as_slice(), b"index")?;
    nothing_sent(stage).await
}
