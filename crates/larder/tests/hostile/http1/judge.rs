//! Runs a row of a table and judges what came of it on both sides.
//!
//! Short rows run twice: in one write, and byte by byte, since a parser that is right about a whole head may be wrong
//! about where its pieces end. Over TLS they run once: what reads the pieces is the same.

use std::sync::Arc;

use larder_testkit::client::{End, Response};
use larder_testkit::origin::Seen;
use larder_testkit::wire::latin1;

use crate::hostile::http1::table::{Case, Content, Expect, Sent};
use crate::hostile::stage::{CAPABILITY, Outcome, PROBE, Stage, method_of, same};
use crate::hostile::suite::Run;
use crate::hostile::transport::Transport;

/// Longer ones would only take longer.
const BYTEWISE_MAX: usize = 1024;

/// The ways in which a row is run.
pub(crate) fn runs(case: Case) -> Vec<Run> {
    let case = Arc::new(case);
    let mut runs = Vec::with_capacity(2);
    for bytewise in [false, true] {
        let once = case.send.len() > BYTEWISE_MAX || matches!(Transport::current(), Transport::Tls(_));
        if bytewise && once {
            continue;
        }
        let how = if bytewise { " (byte by byte)" } else { "" };
        let name = format!("{}{how}", case.name);
        let case = Arc::clone(&case);
        runs.push(Run::new(name, move || run(Arc::clone(&case), bytewise)));
    }
    runs
}

async fn run(case: Arc<Case>, bytewise: bool) -> Outcome {
    let stage = Stage::new(Vec::new(), case.config, "").await?;
    let mut client = stage.connect().await?;
    let bytes = format!("{}{PROBE}", case.send);
    if bytewise {
        client.write_bytewise(&bytes).await?;
    } else {
        client.write(&bytes).await?;
    }
    let response = client.read(method_of(&case.send)).await?;
    let answered = async {
        match &case.expect {
            Expect::Refused(status) | Expect::Broken(status) => {
                refused(&response, *status)?;
                client.closed().await
            }
            Expect::Own(status) => {
                answered(&response, *status)?;
                client.probed().await
            }
            Expect::Sent(sent) => {
                answered(&response, 200)?;
                same("closes", &response.fields.lists("connection", "close"), &sent.closes)?;
                if sent.closes { client.closed().await } else { client.probed().await }
            }
        }
    };
    let answered = answered.await.map_err(|why| format!("{why}, after\n{response}"));
    drop(client);
    let seen = stage.end().await?;
    answered.and_then(|()| origin(&case.expect, &seen)).map_err(|why| {
        let saw: String = seen.iter().map(|seen| format!("\n    the origin saw {seen}")).collect();
        format!("{why}{saw}")
    })
}

/// A whole answer of larder: says how it came about.
pub(crate) fn answered(response: &Response, status: u16) -> Outcome {
    same("status", &response.status, &status)?;
    same("end", &response.end, &End::Complete)?;
    same("Cache-Status lines", &response.fields.all("cache-status").count(), &1)?;
    same("Date lines", &response.fields.all("date").count(), &1)?;
    let own = response.fields.first("cache-status").is_some_and(|value| value.starts_with("larder"));
    same("Cache-Status is larder's", &own, &true)
}

/// A refusal: small, honest, not to be stored, and the last thing on its connection.
pub(crate) fn refused(response: &Response, status: u16) -> Outcome {
    answered(response, status)?;
    same("closes", &response.fields.lists("connection", "close"), &true)?;
    same("Cache-Control", &response.fields.first("cache-control"), &Some("no-store"))?;
    same("is small", &(response.body.len() < 100), &true)
}

fn origin(expect: &Expect, seen: &[Seen]) -> Outcome {
    let probes = seen.iter().filter(|seen| seen.target == "/probe").count();
    let others: Vec<&Seen> = seen.iter().filter(|seen| seen.target != "/probe").collect();
    for seen in seen {
        invariants(seen, matches!(expect, Expect::Broken(_)))?;
    }
    match expect {
        Expect::Refused(_) => same("requests at the origin", &seen.len(), &0),
        Expect::Own(_) => {
            same("probes at the origin", &probes, &1)?;
            same("requests at the origin", &others.len(), &0)
        }
        Expect::Broken(_) => {
            same("probes at the origin", &probes, &0)?;
            same("at most one request at the origin", &(others.len() < 2), &true)?;
            let ended = others.iter().any(|seen| seen.body_complete);
            same("the broken request ended at the origin", &ended, &false)
        }
        Expect::Sent(sent) => {
            same("probes at the origin", &probes, &usize::from(!sent.closes))?;
            match others.as_slice() {
                [one] => as_sent(sent, one),
                _ => same("requests at the origin", &others.len(), &1),
            }
        }
    }
}

/// What holds for every request that larder ever sends.
pub(crate) fn invariants(seen: &Seen, may_break: bool) -> Outcome {
    same("malformed", &seen.malformed, &None)?;
    same("complete", &(seen.body_complete || may_break), &true)?;
    same("version", seen.version.as_str(), "HTTP/1.1")?;
    let count = |name| seen.fields.all(name).count();
    same("Host lines", &count("host"), &1)?;
    let framings = count("content-length") + count("transfer-encoding");
    same("at most one framing", &(framings < 2), &true)?;
    for name in [
        "keep-alive",
        "proxy-connection",
        "proxy-authorization",
        "proxy-authenticate",
        "trailer",
        "expect",
        "http2-settings",
        "forwarded",
        "x-original-url",
        "x-rewrite-url",
        "x-http-method-override",
        "x-host",
        "proxy",
    ] {
        same(name, &count(name), &0)?;
    }
    let upgrade = seen.fields.first("upgrade");
    same("upgrade is websocket's", &upgrade.is_none_or(|value| value == "websocket"), &true)?;
    let te: Vec<&str> = seen.fields.all("te").collect();
    same("TE says trailers or nothing", &matches!(te.as_slice(), [] | ["trailers"]), &true)?;
    let option = seen.fields.first("connection");
    let plain = option.is_none()
        || (option == Some("upgrade") && upgrade.is_some())
        || (option == Some("te") && !te.is_empty());
    same("Connection says nothing else", &plain, &true)?;
    let only = |name| {
        let mut values = seen.fields.all(name);
        values.next().filter(|_| values.next().is_none()).unwrap_or("not exactly one").to_owned()
    };
    same("X-Forwarded-For", only("x-forwarded-for").as_str(), "127.0.0.1")?;
    same("X-Forwarded-Proto", only("x-forwarded-proto").as_str(), Transport::current().scheme())?;
    same("Surrogate-Capability", only("surrogate-capability").as_str(), CAPABILITY)?;
    same("X-Forwarded-Host", &only("x-forwarded-host"), &only("host"))
}

fn as_sent(sent: &Sent, seen: &Seen) -> Outcome {
    let head = latin1(&seen.head);
    same("request line", head.lines().next().unwrap_or_default(), &sent.line)?;
    same("Host", seen.fields.first("host").unwrap_or_default(), &sent.host)?;
    let body = latin1(&seen.body);
    let content = match (seen.fields.first("content-length"), seen.fields.first("transfer-encoding")) {
        (None, None) => Content::None,
        (Some(_), None) => Content::Length(body),
        _ => Content::Chunked(body),
    };
    same("content", &content, &sent.content)?;
    let own = [
        "host",
        "x-forwarded-for",
        "x-forwarded-proto",
        "x-forwarded-host",
        "surrogate-capability",
        "content-length",
        "transfer-encoding",
    ];
    let others = seen.fields.0.iter().filter(|(name, _)| !own.contains(&name.as_str()));
    let mut fields: Vec<String> = others.map(|(name, value)| format!("{name}: {value}")).collect();
    let mut expected = sent.fields.clone();
    if !expected.iter().any(|line| line.ends_with("larder")) {
        expected.push("via: 1.1 larder".to_owned());
    }
    fields.sort();
    expected.sort();
    same("fields", &fields, &expected)
}
