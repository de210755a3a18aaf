//! Attacks by streams that take steps and time: floods, stalls, and frames after a stream's end.
//!
//! Each walk ends with the origin's record, in which no request may be whole that its client did not finish, and with
//! larder drained: no stream, flight or connection outlives its attack.

use std::time::Duration;

use larder_testkit::origin::{Answer, PathScript, Seen};

use crate::hostile::http2::frames::*;
use crate::hostile::http2::judge::invariants;
use crate::hostile::http2::peer::Peer;
use crate::hostile::stage::{Outcome, PROBE, Stage, same, script};
use crate::hostile::suite::Run;
use crate::hostile::transport::Transport;

pub const GATE: &str = "gate";

pub fn runs() -> Vec<Run> {
    vec![
        Run::new("a flood of resets in one write", resets_at_once),
        Run::new("resets one after the other", resets_one_by_one),
        Run::new("a window that is opened too far, again and again", || {
            forced_resets(END_HEADERS, |stream| window_update(stream, 0x7fff_ffff))
        }),
        Run::new("a window that is opened by 0, again and again", || {
            forced_resets(END_HEADERS, |stream| window_update(stream, 0))
        }),
        Run::new("DATA behind the end, again and again", || {
            forced_resets(WHOLE, |stream| frame(DATA, 0, stream, b"x"))
        }),
        Run::new("HEADERS behind the end, again and again", || {
            forced_resets(WHOLE, |stream| headers_on(stream, WHOLE, &block(&[("x", "y")])))
        }),
        Run::new("PRIORITY of a wrong length, again and again", || {
            forced_resets(WHOLE, |stream| frame(PRIORITY, 0, stream, &[0; 4]))
        }),
        Run::new("PRIORITY on itself, again and again", || {
            forced_resets(WHOLE, |stream| {
                frame(PRIORITY, 0, stream, &[&stream.to_be_bytes()[..], &[1]].concat())
            })
        }),
        Run::new("heads of open streams without end", many_heads),
        Run::new("a flood of SETTINGS that nobody reads", || control_flood(setting(4, 65_535))),
        Run::new("a flood of PING that nobody reads", || control_flood(frame(PING, 0, 0, &[7; 8]))),
        Run::new("a flood of PRIORITY", || control_flood(frame(PRIORITY, 0, 1, &[0, 0, 0, 7, 255]))),
        Run::new("a flood of PRIORITY_UPDATE", || {
            control_flood(frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=1"))
        }),
        Run::new("a flood of WINDOW_UPDATE", || control_flood(window_update(0, 1))),
        Run::new("a flood of frames of no known kind", || control_flood(frame(0xee, 0, 0, b"x"))),
        Run::new("a flood of empty DATA", empty_data),
        Run::new("more streams than agreed", too_many_streams),
        Run::new("more content than its window takes", beyond_the_window),
        Run::new("a window that stays closed", closed_window),
        Run::new("a connection's window that stays closed", closed_connection_window),
        Run::new(
            "a connection's window that stayed closed for a stream that is gone",
            left_connection_window,
        ),
        Run::new("a window opened byte by byte", dripping_window),
        Run::new("content that stalls", stalled_content),
        Run::new("content beyond the limit", too_much_content),
        Run::new("content beyond the limit, announced", too_much_announced),
        Run::new("a reset and content in one packet", reset_then_data),
        Run::new("a connection that ends inside content", || cut(false)),
        Run::new("a connection that ends inside content of a known length", || cut(true)),
        Run::new("DATA behind the end of a stream", || behind_the_end(data(END_STREAM, "x"))),
        Run::new("HEADERS behind the end of a stream", || {
            behind_the_end(headers(WHOLE, &request("GET", "/evil", &[])))
        }),
        Run::new("HEADERS behind trailers", headers_behind_trailers),
        Run::new("a stream's number again", || number_again(STREAM)),
        Run::new("a smaller number than before", || number_again(3)),
        Run::new("a head that is refused keeps the table in step", table_in_step),
        Run::new("uploads in turns do not mix", uploads_in_turns),
        Run::new("a trusted peer says the other scheme, nobody else", other_scheme),
    ]
}

pub fn held(path: &str) -> PathScript {
    let answer = Answer::new(200, &["Cache-Control: no-store"], "held");
    script(path, vec![Answer { hold: Some(GATE.to_owned()), ..answer }])
}

fn big() -> PathScript {
    let answer = Answer {
        bytes: Some(200_000),
        fields: vec!["Cache-Control: no-store".to_owned()],
        ..Answer::default()
    };
    script("/big", vec![answer])
}

fn asking_on(stream: u32, path: &str) -> Vec<u8> {
    headers_on(stream, WHOLE, &request("GET", path, &[]))
}

/// Ends the case; nothing that the client did not finish may be whole at the origin.
pub async fn end(stage: Stage, peer: Peer, whole: &[&str]) -> Result<Vec<Seen>, String> {
    drop(peer);
    let seen = stage.end().await?;
    seen.iter().try_for_each(invariants)?;
    let by_http2 = |seen: &&Seen| seen.fields.first("via") == Some("2 larder");
    let mut found: Vec<&str> = seen
        .iter()
        .filter(|seen| seen.body_complete)
        .filter(by_http2)
        .map(|seen| seen.target.as_str())
        .collect();
    found.sort_unstable();
    same("whole requests at the origin", found.as_slice(), whole)?;
    Ok(seen)
}

/// The limit was reached and counted, and the next client is served as ever.
async fn still_serves(stage: &Stage) -> Outcome {
    let response = stage.ask(PROBE).await?;
    same("the next client's status", &response.status, &200)
}

async fn resets_at_once() -> Outcome {
    let stage = Stage::new(vec![held("/held")], "[limits]\nh2_resets = 20", "").await?;
    let mut flood = Vec::new();
    for stream in (1..2000).step_by(2) {
        flood.extend(asking_on(stream, "/held"));
        flood.extend(reset(stream, CANCEL));
    }
    let mut peer = Peer::open(stage.addr, &flood).await?;
    peer.goes_away(ENHANCE_YOUR_CALM).await?;
    still_serves(&stage).await?;
    drop(peer);
    let seen = stage.end().await?;
    same("few requests at the origin", &(seen.len() <= 64), &true)
}

async fn resets_one_by_one() -> Outcome {
    let stage = Stage::new(vec![held("/held")], "[limits]\nh2_resets = 20", "").await?;
    let mut peer = Peer::open(stage.addr, &[]).await?;
    for stream in (1..61).step_by(2) {
        peer.send(&asking_on(stream, "/held")).await?;
        if peer.round_trip().await.is_err() {
            break;
        }
        peer.send(&reset(stream, CANCEL)).await?;
        if peer.round_trip().await.is_err() {
            break;
        }
    }
    peer.goes_away(ENHANCE_YOUR_CALM).await?;
    still_serves(&stage).await?;
    same("counted", &stage.metric("larder_limit_reached_total{limit=\"resets\"}"), &1.0)?;
    drop(peer);
    stage.end().await.map(drop)
}

/// Streams that larder has to reset: what is asked there ends with them, and then the connection (CVE-2025-8671).
async fn forced_resets(flags: u8, error: fn(u32) -> Vec<u8>) -> Outcome {
    let stage = Stage::new(vec![held("/held")], "", "").await?;
    let mut flood = Vec::new();
    for stream in (1..1000).step_by(2) {
        flood.extend(headers_on(stream, flags, &request("POST", "/held", &[])));
        flood.extend(error(stream));
    }
    let mut peer = Peer::open(stage.addr, &flood).await?;
    peer.goes_away(ENHANCE_YOUR_CALM).await?;
    still_serves(&stage).await?;
    let reached = stage.metric("larder_limit_reached_total{limit=\"h2_stream_errors\"}");
    same("counted", &reached, &1.0)?;
    drop(peer);
    let seen = stage.end().await?;
    same("few requests at the origin", &(seen.len() <= 24), &true)
}

async fn many_heads() -> Outcome {
    let stage = Stage::new(vec![held("/held*")], "[limits]\nhead_size = \"4KiB\"", "").await?;
    let mut peer = Peer::open(stage.addr, &[]).await?;
    // Each of them nearly as large as one may be.
    let long = "v".repeat(3500);
    for n in 0..40 {
        let head = request("GET", &format!("/held/{n}"), &[("x", &long)]);
        peer.send(&headers_on(1 + 2 * n, WHOLE, &head)).await?;
    }
    peer.is_reset(79, REFUSED_STREAM).await?;
    let refused = stage.metric("larder_limit_reached_total{limit=\"h2_heads\"}");
    same("some are refused", &(1.0..9.0).contains(&refused), &true)?;
    stage.origin.gates().release(GATE);
    peer.answered(1, 200, b"held").await?;
    drop(peer);
    stage.end().await.map(drop)
}

/// `frame` fifty thousand times: its sender is told to calm down, and all others are served.
async fn control_flood(frame: Vec<u8>) -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let mut peer = Peer::open(stage.addr, &[]).await?;
    peer.until("SETTINGS", |got| got.settings_acks > 0).await?;
    let flood = frame.repeat(50_000);
    peer.send(&flood).await?;
    peer.goes_away(ENHANCE_YOUR_CALM).await?;
    still_serves(&stage).await?;
    let reached = stage.metric("larder_limit_reached_total{limit=\"h2_frames\"}");
    same("counted", &reached, &1.0)?;
    drop(peer);
    stage.end().await.map(drop)
}

async fn empty_data() -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let mut flood = post(&[], &[]);
    flood.extend(data(0, "").repeat(50_000));
    flood.extend(data(END_STREAM, "hello"));
    let mut peer = Peer::open(stage.addr, &flood).await?;
    peer.goes_away(ENHANCE_YOUR_CALM).await?;
    still_serves(&stage).await?;
    end(stage, peer, &[]).await.map(drop)
}

async fn too_many_streams() -> Outcome {
    let stage = Stage::new(vec![held("/held*")], "[limits]\nh2_streams = 4", "").await?;
    let mut peer = Peer::open(stage.addr, &[]).await?;
    peer.until("SETTINGS", |got| got.settings_acks > 0).await?;
    same("announced", &peer.got.settings.get(&3), &Some(&4))?;
    let targets: Vec<String> = (0..8).map(|n| format!("/held/{n}")).collect();
    for (n, target) in targets.iter().enumerate() {
        peer.send(&asking_on(1 + 2 * n as u32, target)).await?;
    }
    for stream in [9, 11, 13, 15] {
        peer.is_reset(stream, REFUSED_STREAM).await?;
    }
    stage.origin.log().until(|log| log.count() == 4).await;
    stage.origin.gates().release(GATE);
    for stream in [1, 3, 5, 7] {
        peer.answered(stream, 200, b"held").await?;
    }
    peer.probe(17).await?;
    let mut whole: Vec<&str> = targets[..4].iter().map(String::as_str).collect();
    whole.push("/probe");
    end(stage, peer, &whole).await.map(drop)
}

async fn beyond_the_window() -> Outcome {
    // An origin that reads nothing: what larder may take is its window and what the kernels hold.
    let unread =
        Answer { hold: Some(GATE.to_owned()), stop_reading_at: Some(0), ..Answer::new(200, &[], "") };
    let stage = Stage::new(vec![script("/unread", vec![unread])], "", "").await?;
    let head = headers(END_HEADERS, &request("POST", "/unread", &[]));
    let mut peer = Peer::open(stage.addr, &head).await?;
    let piece = frame(DATA, 0, STREAM, &[b'a'; 16 * 1024]);
    let sent = peer.send(&piece.repeat(2048)).await;
    let told = peer.until("end", |got| got.is_over(STREAM) || got.goaway.is_some() || got.closed).await;
    let code = peer.got.goaway.map(|(_, code)| code).or(peer.got.reset(STREAM));
    told.and(sent)?;
    same("code", &code, &Some(FLOW_CONTROL_ERROR))?;
    stage.origin.gates().release(GATE);
    end(stage, peer, &[]).await.map(drop)
}

async fn closed_window() -> Outcome {
    let stage = Stage::new(vec![big()], "[limits]\nwrite_idle = \"300ms\"", "").await?;
    let mut peer = Peer::open(stage.addr, &setting(4, 0)).await?;
    for stream in (1..21).step_by(2) {
        peer.send(&asking_on(stream, "/big")).await?;
    }
    for stream in (1..21).step_by(2) {
        peer.is_reset(stream, CANCEL).await?;
        same("status", &peer.got.status(stream), &Some(200))?;
    }
    peer.send(&setting(4, 65_535)).await?;
    peer.probe(21).await?;
    same("in flight", &stage.metric("larder_flights"), &0.0)?;
    same("counted", &stage.metric("larder_limit_reached_total{limit=\"write_idle\"}"), &10.0)?;
    drop(peer);
    stage.end().await.map(drop)
}

async fn closed_connection_window() -> Outcome {
    let stage = Stage::new(vec![big()], "[limits]\nwrite_idle = \"300ms\"", "").await?;
    let mut peer = Peer::open(stage.addr, &setting(4, 1 << 20)).await?;
    peer.send(&asking_on(1, "/big")).await?;
    peer.is_reset(1, CANCEL).await?;
    peer.send(&window_update(0, 1 << 20)).await?;
    peer.probe(3).await?;
    end(stage, peer, &["/big", "/probe"]).await.map(drop)
}

/// A stream that waited for the window was given up: the next one waits anew.
async fn left_connection_window() -> Outcome {
    let stage = Stage::new(vec![big()], "[limits]\nwrite_idle = \"1s\"", "").await?;
    let mut peer = Peer::open(stage.addr, &setting(4, 1 << 20)).await?;
    peer.send(&asking_on(1, "/big")).await?;
    peer.until("content", |got| got.content_bytes(1) == 65_535).await?;
    peer.round_trip().await?;
    peer.send(&reset(1, CANCEL)).await?;
    // The pause is the case.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    peer.send(&asking_on(3, "/big")).await?;
    peer.until("head", |got| got.status(3).is_some()).await?;
    peer.round_trip().await?;
    peer.send(&window_update(0, 1 << 20)).await?;
    peer.until("end", |got| got.is_over(3)).await?;
    same("content", &peer.got.content_bytes(3), &200_000)?;
    end(stage, peer, &["/big", "/big"]).await.map(drop)
}

async fn dripping_window() -> Outcome {
    let limits = "[limits]\nrate_min = \"1KiB\"\nrate_window = \"1s\"";
    let stage = Stage::new(vec![big()], limits, "").await?;
    let mut peer = Peer::open(stage.addr, &setting(4, 0)).await?;
    peer.send(&asking_on(1, "/big")).await?;
    let mut drops = 0;
    while peer.got.reset(1).is_none() && drops < 100 {
        peer.send(&window_update(1, 1)).await?;
        // The drip is the attack.
        tokio::time::sleep(Duration::from_millis(50)).await;
        peer.round_trip().await?;
        drops += 1;
    }
    peer.is_reset(1, CANCEL).await?;
    end(stage, peer, &["/big"]).await.map(drop)
}

async fn stalled_content() -> Outcome {
    let stage = Stage::new(Vec::new(), "[limits]\nbody_idle = \"300ms\"", "").await?;
    let mut peer = Peer::open(stage.addr, &[post(&[], &[]), data(0, "hel")].concat()).await?;
    peer.until("status", |got| got.status(STREAM).is_some()).await?;
    same("status", &peer.got.status(STREAM), &Some(408))?;
    peer.probe(3).await?;
    end(stage, peer, &["/probe"]).await.map(drop)
}

async fn too_much_content() -> Outcome {
    let stage = Stage::new(Vec::new(), "[limits]\nbody_size = \"8B\"", "").await?;
    let mut peer = Peer::open(stage.addr, &post(&[], &["12345", "6789"])).await?;
    peer.until("status", |got| got.status(STREAM).is_some()).await?;
    same("status", &peer.got.status(STREAM), &Some(413))?;
    peer.probe(3).await?;
    end(stage, peer, &["/probe"]).await.map(drop)
}

async fn too_much_announced() -> Outcome {
    let stage = Stage::new(Vec::new(), "[limits]\nbody_size = \"8B\"", "").await?;
    let begun = [post(&[("content-length", "9")], &[]), data(0, "12345")];
    let mut peer = Peer::open(stage.addr, &begun.concat()).await?;
    peer.until("status", |got| got.status(STREAM).is_some()).await?;
    same("status", &peer.got.status(STREAM), &Some(413))?;
    let seen = end(stage, peer, &[]).await?;
    same("requests at the origin", &seen.len(), &0)
}

async fn reset_then_data() -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let mut peer = Peer::open(stage.addr, &[post(&[], &[]), data(0, "hel")].concat()).await?;
    stage.origin.log().until(|log| log.count() == 1).await;
    let packet = [reset(STREAM, CANCEL), data(0, "lo"), data(END_STREAM, "evil")].concat();
    peer.send(&packet).await?;
    // Either the late frames are ignored for a while, or the connection ends: both are right.
    if peer.round_trip().await.is_ok() {
        peer.probe(3).await?;
    } else {
        still_serves(&stage).await?;
    }
    drop(peer);
    let seen = stage.end().await?;
    let upload = seen.iter().find(|seen| seen.target == "/").ok_or("no upload")?;
    same("complete", &upload.body_complete, &false)?;
    same("content", &upload.body.starts_with(b"hel"), &true)
}

async fn cut(is_announced: bool) -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let fields: &[(&str, &str)] = if is_announced { &[("content-length", "5")] } else { &[] };
    let peer = Peer::open(stage.addr, &[post(fields, &[]), data(0, "hel")].concat()).await?;
    stage.origin.log().until(|log| log.count() == 1).await;
    let seen = end(stage, peer, &[]).await?;
    same("requests at the origin", &seen.len(), &1)
}

async fn behind_the_end(frames: Vec<u8>) -> Outcome {
    let stage = Stage::new(vec![held("/held")], "", "").await?;
    let mut peer = Peer::open(stage.addr, &get("/held", &[])).await?;
    stage.origin.log().until(|log| log.count() == 1).await;
    peer.send(&frames).await?;
    peer.until("error", |got| got.is_over(STREAM) || got.closed).await?;
    let code = peer.got.goaway.map(|(_, code)| code).or(peer.got.reset(STREAM));
    let is_right = matches!(code, Some(STREAM_CLOSED | PROTOCOL_ERROR));
    same("an error", &(is_right, peer.got.status(STREAM)), &(true, None))?;
    end(stage, peer, &["/held"]).await.map(drop)
}

async fn headers_behind_trailers() -> Outcome {
    let stage = Stage::new(vec![held("/held")], "", "").await?;
    let upload = [
        headers(END_HEADERS, &request("POST", "/held", &[])),
        data(0, "hello"),
        headers(WHOLE, &block(&[("x", "y")])),
    ];
    let mut peer = Peer::open(stage.addr, &upload.concat()).await?;
    stage.origin.log().until(|log| log.all().iter().any(|seen| seen.body_complete)).await;
    peer.send(&headers(WHOLE, &block(&[("x", "z")]))).await?;
    peer.until("error", |got| got.is_over(STREAM) || got.closed).await?;
    same("status", &peer.got.status(STREAM), &None)?;
    end(stage, peer, &["/held"]).await.map(drop)
}

async fn number_again(stream: u32) -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let mut peer = Peer::open(stage.addr, &asking_on(STREAM, "/")).await?;
    peer.answered(STREAM, 200, b"ok").await?;
    peer.probe(5).await?;
    peer.send(&asking_on(stream, "/evil")).await?;
    peer.until("end of the connection", |got| got.closed).await?;
    let code = peer.got.goaway.map(|(_, code)| code);
    let is_right = matches!(code, Some(STREAM_CLOSED | PROTOCOL_ERROR));
    same("an error", &is_right, &true)?;
    end(stage, peer, &["/", "/probe"]).await.map(drop)
}

async fn table_in_step() -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let refused = [request("GET", "/evil", &[("connection", "x")]), indexed_field("x-kept", "yes")];
    let mut peer = Peer::open(stage.addr, &headers(WHOLE, &refused.concat())).await?;
    peer.is_reset(STREAM, PROTOCOL_ERROR).await?;
    // The newest entry of the table, and nothing else, says x-kept.
    let next = [request("GET", "/next", &[]), vec![0xbe]].concat();
    peer.send(&headers_on(3, WHOLE, &next)).await?;
    peer.answered(3, 200, b"ok").await?;
    let seen = end(stage, peer, &["/next"]).await?;
    same("x-kept", &seen[0].fields.first("x-kept"), &Some("yes"))
}

async fn uploads_in_turns() -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let mut turns = Vec::new();
    let streams: Vec<u32> = (1..17).step_by(2).collect();
    for stream in &streams {
        let path = format!("/{stream:02}");
        turns.extend(headers_on(*stream, END_HEADERS, &request("POST", &path, &[])));
    }
    for turn in 0..20 {
        for stream in &streams {
            let ends = u8::from(turn == 19);
            turns.extend(frame(DATA, ends, *stream, format!("{stream:02}").as_bytes()));
        }
    }
    let mut peer = Peer::open(stage.addr, &turns).await?;
    for stream in &streams {
        peer.answered(*stream, 200, b"ok").await?;
    }
    let whole: Vec<String> = streams.iter().map(|stream| format!("/{stream:02}")).collect();
    let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
    for seen in end(stage, peer, &whole).await? {
        let expected = seen.target.trim_start_matches('/').repeat(20);
        same("content", &seen.body[..], expected.as_bytes())?;
    }
    Ok(())
}

/// As HAProxy sends it, whose client came over TLS, whatever comes first in the block.
async fn other_scheme() -> Outcome {
    let transport = Transport::current();
    let host = format!("a.test:{}", transport.other_port());
    let fields = [
        (":method", "GET"),
        (":authority", host.as_str()),
        (":scheme", transport.other_scheme()),
        (":path", "/page"),
    ];
    for trusted in [true, false] {
        let top = if trusted { "trusted = [\"127.0.0.0/8\"]" } else { "trusted = [\"192.0.2.1\"]" };
        let stage = Stage::new(Vec::new(), top, "").await?;
        let mut peer = Peer::open(stage.addr, &headers(WHOLE, &block(&fields))).await?;
        if trusted {
            peer.answered(STREAM, 200, b"ok").await?;
        } else {
            peer.until("end of the stream", |got| got.is_over(STREAM)).await?;
            same("status", &peer.got.status(STREAM), &Some(400))?;
        }
        // The next one on the connection has its own scheme again, and its own port.
        peer.send(&headers_on(3, WHOLE, &request("GET", "/own", &[]))).await?;
        peer.answered(3, 200, b"ok").await?;
        let seen = end(stage, peer, if trusted { &["/own", "/page"] } else { &["/own"] }).await?;
        let told: Vec<_> = seen
            .iter()
            .map(|seen| {
                (seen.target.as_str(), seen.fields.first("x-forwarded-proto"), seen.fields.first("host"))
            })
            .collect();
        let own = ("/own", Some(transport.scheme()), Some("a.test"));
        let other = ("/page", Some(transport.other_scheme()), Some("a.test"));
        let expected = if trusted { vec![other, own] } else { vec![own] };
        same("what the origin is told", &told, &expected)?;
    }
    Ok(())
}
