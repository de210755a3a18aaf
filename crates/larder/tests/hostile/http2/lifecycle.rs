//! How connections begin and end: prefaces, GOAWAY, interim responses, and clients that fall silent.

use larder_testkit::origin::{Answer, Interim};

use crate::hostile::http2::frames::*;
use crate::hostile::http2::peer::Peer;
use crate::hostile::http2::walks::{GATE, end, held};
use crate::hostile::stage::{Outcome, Stage, same, script};
use crate::hostile::suite::Run;

pub fn runs() -> Vec<Run> {
    vec![
        Run::new("GOAWAY of the client", client_goaway),
        Run::new("GOAWAY when larder ends", drained),
        Run::new("103 goes to the client", early_hints),
        Run::new("100 comes before the content", expectation),
        Run::new("h2c is not taken up", h2c),
        Run::new("a preface that goes wrong", bad_preface),
        Run::new("a preface and then HTTP/1", preface_then_http1),
        Run::new("a preface byte by byte", preface_bytewise),
        Run::new("half a preface", || silence(PREFACE[..9].to_vec())),
        Run::new("a preface and nothing", || silence(PREFACE.to_vec())),
        Run::new("a head without an end", || {
            silence([PREFACE, &frame(SETTINGS, 0, 0, b""), &frame(HEADERS, 0, 1, b"\0\x01x")].concat())
        }),
        Run::new("half a frame", || {
            silence([PREFACE, &frame(SETTINGS, 0, 0, b""), &lying_frame(99, HEADERS, 4, 1, b"\0")].concat())
        }),
    ]
}

async fn client_goaway() -> Outcome {
    let stage = Stage::new(vec![held("/held")], "", "").await?;
    let mut peer = Peer::open(stage.addr, &get("/held", &[])).await?;
    stage.origin.log().until(|log| log.count() == 1).await;
    peer.send(&frame(GOAWAY, 0, 0, &[0; 8])).await?;
    peer.round_trip().await?;
    stage.origin.gates().release(GATE);
    peer.answered(STREAM, 200, b"held").await?;
    peer.until("end of the connection", |got| got.closed).await?;
    end(stage, peer, &["/held"]).await.map(drop)
}

async fn drained() -> Outcome {
    let stage = Stage::new(vec![held("/held")], "", "").await?;
    let mut peer = Peer::open(stage.addr, &get("/held", &[])).await?;
    stage.origin.log().until(|log| log.count() == 1).await;
    let gates = stage.origin.gates().clone();
    let client = async move {
        peer.until("GOAWAY", |got| got.goaway.is_some()).await?;
        same("code", &peer.got.goaway.map(|(_, code)| code), &Some(NO_ERROR))?;
        gates.release(GATE);
        peer.answered(STREAM, 200, b"held").await?;
        peer.until("end of the connection", |got| got.closed).await?;
        same("last stream", &peer.got.goaway, &Some((STREAM, NO_ERROR)))
    };
    let (seen, client) = tokio::join!(stage.end(), client);
    client?;
    same("requests at the origin", &seen?.len(), &1)
}

async fn early_hints() -> Outcome {
    let hint = |status| Interim {
        status,
        fields: vec!["Link: </a.css>; rel=preload".to_owned(), "Connection: x".to_owned()],
        hold: None,
    };
    let answer = Answer {
        // 102 goes on as well; a 100 that nobody asked for does not, and 16 are enough.
        interim: [vec![hint(100), hint(102)], vec![hint(103); 20]].concat(),
        ..Answer::new(200, &["Cache-Control: no-store"], "ok")
    };
    let stage = Stage::new(vec![script("/hints", vec![answer])], "", "").await?;
    let mut peer = Peer::open(stage.addr, &get("/hints", &[])).await?;
    peer.answered(STREAM, 200, b"ok").await?;
    let interim = &peer.got.streams[&STREAM].interim;
    let expected = [vec![102], vec![103; 15]].concat();
    same("interim responses", interim, &expected)?;
    end(stage, peer, &["/hints"]).await.map(drop)
}

async fn expectation() -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let mut peer = Peer::open(stage.addr, &post(&[("expect", "100-continue")], &[])).await?;
    peer.until("100", |got| got.streams.get(&STREAM).is_some_and(|answer| answer.interim == [100])).await?;
    peer.send(&data(END_STREAM, "hello")).await?;
    peer.answered(STREAM, 200, b"ok").await?;
    end(stage, peer, &["/"]).await.map(drop)
}

async fn h2c() -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let mut client = stage.connect().await?;
    client
        .write(
            "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
             HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
        )
        .await?;
    let response = client.read("GET").await?;
    same("status", &response.status, &200)?;
    same("upgrade", &response.fields.has("upgrade"), &false)?;
    client.probe().await?;
    drop(client);
    let seen = stage.end().await?;
    for name in ["upgrade", "http2-settings", "connection"] {
        let came = seen.iter().any(|seen| seen.fields.has(name));
        same(name, &came, &false)?;
    }
    Ok(())
}

async fn bad_preface() -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    for preface in [
        "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\n",
        "PRI * HTTP/2.0\r\nHost: a.test\r\n\r\nSM\r\n\r\n",
        "PRI * HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "PRI / HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut client = stage.connect().await?;
        client.write(preface).await?;
        client.half_close().await?;
        if let Ok(response) = client.read("GET").await {
            let is_refused = (400..600).contains(&response.status);
            same(preface, &is_refused, &true)?;
        }
        client.closed().await?;
    }
    let seen = stage.end().await?;
    same("requests at the origin", &seen.len(), &0)
}

async fn preface_then_http1() -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let mut peer = Peer::silent(stage.addr).await?;
    peer.send(&[PREFACE, b"GET /evil HTTP/1.1\r\nHost: a.test\r\n\r\n"].concat()).await?;
    peer.until("end of the connection", |got| got.closed).await?;
    end(stage, peer, &[]).await.map(drop)
}

async fn preface_bytewise() -> Outcome {
    let stage = Stage::new(Vec::new(), "", "").await?;
    let mut peer = Peer::silent(stage.addr).await?;
    let bytes = [PREFACE, &setting(1, 0), &get("/", &[])].concat();
    for byte in bytes {
        peer.send(&[byte]).await?;
        tokio::task::yield_now().await;
    }
    peer.answered(STREAM, 200, b"ok").await?;
    end(stage, peer, &["/"]).await.map(drop)
}

/// Some bytes and then nothing: the connection ends within its limits.
async fn silence(bytes: Vec<u8>) -> Outcome {
    let limits = "[limits]\nhead_time = \"300ms\"\nkeep_alive_idle = \"300ms\"";
    let stage = Stage::new(Vec::new(), limits, "").await?;
    let mut peer = Peer::silent(stage.addr).await?;
    peer.keep_silent();
    peer.send(&bytes).await?;
    if bytes.starts_with(PREFACE) {
        peer.goes_away(NO_ERROR).await?;
    } else {
        // What is no preface yet is refused in HTTP/1, which is no frame.
        peer.until("end of the connection", |got| got.closed).await?;
    }
    end(stage, peer, &[]).await.map(drop)
}
