//! Runs a row of a table and judges what came of it on both sides.
//!
//! In: a [`Case`]: frames that follow the preface, and what has to come of them. The verdict also says that the
//! connection is still in step where it may go on (a probe on a later stream), and that it ends where it may not. And
//! the origin never received a whole request that the client did not send as one.

use std::sync::Arc;

use larder_testkit::origin::Seen;
use larder_testkit::wire::latin1;

use crate::hostile::http2::frames::STREAM;
use crate::hostile::http2::peer::Peer;
use crate::hostile::stage::{CAPABILITY, Outcome, Stage, same};
use crate::hostile::suite::Run;

/// Later than any stream of a case.
const PROBE_STREAM: u32 = 2001;

/// A row: frames, and what has to come of them.
pub struct Case {
    name: String,
    send: Vec<u8>,
    expect: Expect,
    config: &'static str,
}

/// What has to come of it.
pub enum Expect {
    /// The stream is reset with this code; the connection goes on.
    Reset(u32),
    /// Larder refuses with this status; nothing at the origin, the connection goes on.
    Status(u16),
    /// GOAWAY with this code, and the connection ends.
    GoAway(u32),
    /// Passed on, in exactly this form.
    Sent(Sent),
}

/// A request as the origin has to see it.
pub struct Sent {
    line: String,
    /// `name: value`, in any order, without those that larder writes.
    fields: Vec<String>,
    content: Option<String>,
}

impl Case {
    fn new(name: impl Into<String>, send: Vec<u8>, expect: Expect) -> Self {
        Self { name: name.into(), send, expect, config: "" }
    }

    pub fn reset(name: impl Into<String>, code: u32, send: Vec<u8>) -> Self {
        Self::new(name, send, Expect::Reset(code))
    }

    pub fn status(name: impl Into<String>, status: u16, send: Vec<u8>) -> Self {
        Self::new(name, send, Expect::Status(status))
    }

    pub fn goaway(name: impl Into<String>, code: u32, send: Vec<u8>) -> Self {
        Self::new(name, send, Expect::GoAway(code))
    }

    /// Expects `line` at the origin, for `a.test`, without fields or content unless they are added.
    pub fn sent(name: impl Into<String>, line: &str, send: Vec<u8>) -> Self {
        let sent = Sent { line: line.to_owned(), fields: Vec::new(), content: None };
        Self::new(name, send, Expect::Sent(sent))
    }

    fn change_sent(mut self, change: impl FnOnce(&mut Sent)) -> Self {
        if let Expect::Sent(sent) = &mut self.expect {
            change(sent);
        }
        self
    }

    pub fn fields(self, fields: &[&str]) -> Self {
        self.change_sent(|sent| sent.fields = fields.iter().map(|&line| line.to_owned()).collect())
    }

    pub fn content(self, content: &str) -> Self {
        self.change_sent(|sent| sent.content = Some(content.to_owned()))
    }

    pub fn into_run(self) -> Run {
        let case = Arc::new(self);
        Run::new(case.name.clone(), move || run(Arc::clone(&case)))
    }
}

async fn run(case: Arc<Case>) -> Outcome {
    let stage = Stage::new(Vec::new(), case.config, "").await?;
    let mut peer = Peer::open(stage.addr, &case.send).await?;
    let client = client(&case.expect, &mut peer).await;
    drop(peer);
    let seen = stage.end().await?;
    client.and_then(|()| origin(&case.expect, &seen)).map_err(|why| {
        let saw: String = seen.iter().map(|seen| format!("\n    the origin saw {seen}")).collect();
        format!("{why}{saw}")
    })
}

async fn client(expect: &Expect, peer: &mut Peer) -> Outcome {
    if let Expect::GoAway(code) = expect {
        peer.goes_away(*code).await?;
        return same("status", &peer.got.status(STREAM), &None);
    }
    peer.until("end of the stream", |got| got.is_over(STREAM)).await?;
    let answer = peer.got.streams.get(&STREAM).ok_or("no answer")?;
    match expect {
        Expect::Reset(code) => {
            same("reset", &answer.reset, &Some(*code))?;
            same("status", &answer.status, &None)?;
        }
        Expect::Status(status) => {
            same("status", &answer.status, &Some(*status))?;
            same("is small", &(answer.content.len() < 100), &true)?;
        }
        Expect::Sent(_) | Expect::GoAway(_) => {
            same("status", &answer.status, &Some(200))?;
            same("reset", &answer.reset, &None)?;
        }
    }
    peer.probe(PROBE_STREAM).await?;
    same("GOAWAY", &peer.got.goaway, &None)
}

fn origin(expect: &Expect, seen: &[Seen]) -> Outcome {
    let probes = seen.iter().filter(|seen| seen.target == "/probe").count();
    let others: Vec<&Seen> = seen.iter().filter(|seen| seen.target != "/probe").collect();
    seen.iter().try_for_each(invariants)?;
    let goes_on = !matches!(expect, Expect::GoAway(_));
    same("probes at the origin", &probes, &usize::from(goes_on))?;
    match expect {
        Expect::Status(_) => same("requests at the origin", &others.len(), &0),
        // Its beginning may have arrived, an end never.
        Expect::Reset(_) | Expect::GoAway(_) => {
            let whole = others.iter().any(|seen| seen.body_complete);
            same("at most one request at the origin", &(others.len() < 2), &true)?;
            same("the broken request ended at the origin", &whole, &false)
        }
        Expect::Sent(sent) => match others.as_slice() {
            [one] => as_sent(sent, one),
            _ => same("requests at the origin", &others.len(), &1),
        },
    }
}

/// What holds for every request that larder ever sends.
pub fn invariants(seen: &Seen) -> Outcome {
    same("malformed", &seen.malformed, &None)?;
    same("version", seen.version.as_str(), "HTTP/1.1")?;
    let count = |name| seen.fields.all(name).count();
    same("Host lines", &count("host"), &1)?;
    let framings = count("content-length") + count("transfer-encoding");
    same("at most one framing", &(framings < 2), &true)?;
    for name in [
        "keep-alive",
        "proxy-connection",
        "proxy-authorization",
        "upgrade",
        "expect",
        "http2-settings",
        "forwarded",
        "x-original-url",
        "x-rewrite-url",
        "x-host",
    ] {
        same(name, &count(name), &0)?;
    }
    same("trailer", &(count("trailer") <= count("transfer-encoding")), &true)?;
    let told = (seen.fields.first("te"), seen.fields.first("connection"), count("te") + count("connection"));
    let plain = matches!(told, (None, None, 0) | (Some("trailers"), Some("te"), 2));
    same("te is trailers, or nothing", &plain, &true)?;
    let told: Vec<&str> = seen.fields.all("surrogate-capability").collect();
    same("Surrogate-Capability", &told.as_slice(), &[CAPABILITY].as_slice())?;
    let pseudo = seen.fields.0.iter().any(|(name, _)| name.starts_with(':'));
    same("pseudo-fields", &pseudo, &false)
}

fn as_sent(sent: &Sent, seen: &Seen) -> Outcome {
    same("complete", &seen.body_complete, &true)?;
    same("Via", &seen.fields.first("via"), &Some("2 larder"))?;
    let head = latin1(&seen.head);
    same("request line", head.lines().next().unwrap_or_default(), &sent.line)?;
    same("Host", seen.fields.first("host").unwrap_or_default(), "a.test")?;
    let framed = seen.fields.has("content-length") || seen.fields.has("transfer-encoding");
    same("content", &framed.then(|| latin1(&seen.body)), &sent.content)?;
    let own = [
        "host",
        "via",
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
    fields.sort();
    expected.sort();
    same("fields", &fields, &expected)
}
