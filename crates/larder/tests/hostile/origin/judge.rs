//! Runs an answer of the origin past four clients at once and judges what came of it.
//!
//! The first client causes the fetch; three more (HTTP/1.1, HTTP/1.0, HTTP/2) wait for the same one before the origin
//! says a word. Then the judge asks: did each get what it had to, and did a broken body end as broken in each one's
//! protocol? Was the origin asked no more often than it had to be, and is the answer used again only if it was whole?
//! Are the next answers clean, and is every gauge back to nothing?

use std::sync::Arc;

use larder_testkit::client::{End, Response};
use larder_testkit::origin::Answer;
use larder_testkit::wire::to_bytes;

use crate::hostile::origin::fixture::{Fixture, Kind, SECOND, evil};
use crate::hostile::stage::{Outcome, same};
use crate::hostile::suite::Run;

const CLIENTS: [Kind; 4] = [Kind::Http11, Kind::Http11, Kind::Http10, Kind::Http2];

/// What every client of a case has to get.
#[derive(Clone, Debug)]
enum Expect {
    /// No answer of the origin: larder's own status, and its word for the reason.
    Failed(u16, &'static str),
    /// The origin's head, and content that ends as broken after at most these bytes of it; or 502 where it broke
    /// before anything was sent.
    Cut(String),
    /// The origin's answer.
    Whole(String),
}

/// A row.
#[derive(Clone, Debug)]
pub struct Case {
    name: String,
    method: &'static str,
    answer: Answer,
    expect: Expect,
    status: u16,
    /// Lines that have to be there, in this order by name.
    shows: Vec<String>,
    /// Names that may not be there.
    hides: Vec<&'static str>,
    interims: usize,
    is_stored: bool,
    /// How often the origin is asked while all wait.
    asked: usize,
}

impl Case {
    fn new(name: impl Into<String>, answer: Answer, expect: Expect) -> Self {
        Self {
            name: name.into(),
            method: "GET",
            answer,
            is_stored: matches!(expect, Expect::Whole(_)),
            status: match expect {
                Expect::Failed(status, _) => status,
                _ => 200,
            },
            expect,
            shows: Vec::new(),
            hides: Vec::new(),
            interims: 0,
            asked: 1,
        }
    }

    /// All get 502 (or 504) with this word.
    pub fn failed(name: impl Into<String>, detail: &'static str, answer: Answer) -> Self {
        let status = if detail.ends_with("timeout") { 504 } else { 502 };
        Self::new(name, answer, Expect::Failed(status, detail))
    }

    /// All get the head and are cut after at most `content`.
    pub fn cut(name: impl Into<String>, content: &str, answer: Answer) -> Self {
        Self::new(name, answer, Expect::Cut(content.to_owned()))
    }

    /// All get `content`, whole, and it is stored.
    pub fn whole(name: impl Into<String>, content: &str, answer: Answer) -> Self {
        Self::new(name, answer, Expect::Whole(content.to_owned()))
    }

    pub fn method(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub fn shows(mut self, lines: &[&str]) -> Self {
        self.shows = lines.iter().map(|&line| line.to_owned()).collect();
        self
    }

    pub fn hides(mut self, names: &[&'static str]) -> Self {
        self.hides = names.to_vec();
        self
    }

    pub fn interims(mut self, count: usize) -> Self {
        self.interims = count;
        self
    }

    /// It is whole, but not for the store; the origin is asked by each client.
    pub fn not_shared(mut self) -> Self {
        self.is_stored = false;
        self.asked = CLIENTS.len();
        self
    }

    pub fn into_run(self) -> Run {
        let case = Arc::new(self);
        Run::new(case.name.clone(), move || run(Arc::clone(&case)))
    }
}

async fn run(case: Arc<Case>) -> Outcome {
    let answers = vec![case.answer.clone(); case.asked];
    let fixture = Fixture::new(answers, "", "").await?;
    let request = evil(case.method);
    let clients = async {
        let asked = CLIENTS.map(|kind| fixture.ask(kind, &request));
        let [a, b, c, d] = asked;
        tokio::join!(a, b, c, d)
    };
    let release = async {
        let all = CLIENTS.len() as f64;
        let waited = fixture
            .until("all clients wait", |fixture| {
                fixture.metric("larder_flights_waiting") == all || fixture.asked() == CLIENTS.len()
            })
            .await;
        fixture.release();
        waited
    };
    let ((a, b, c, d), waited) = tokio::join!(clients, release);
    waited?;
    for (kind, response) in CLIENTS.into_iter().zip([a, b, c, d]) {
        let response = response?;
        judge(&case, kind, &response).map_err(|why| format!("{kind:?}: {why}, in\n{response}"))?;
    }
    same("times the origin was asked", &fixture.asked(), &case.asked)?;
    // Bytes that come while a request waits for its answer are that answer; before, they are nobody's.
    fixture.until("the answers have ended", |fixture| fixture.answering() == 0).await?;
    fixture.still_serves().await?;
    again(&case, &fixture).await.map_err(|why| format!("afterwards: {why}"))?;
    fixture.still_serves().await?;
    fixture.end().await
}

fn judge(case: &Case, kind: Kind, response: &Response) -> Outcome {
    same("Date lines", &response.fields.all("date").count(), &1)?;
    same("Cache-Status lines", &response.fields.all("cache-status").count(), &1)?;
    if let (Expect::Cut(_), 502) = (&case.expect, response.status) {
        return failed(response, 502, "body-broken");
    }
    same("status", &response.status, &case.status)?;
    match &case.expect {
        Expect::Failed(status, detail) => return failed(response, *status, detail),
        Expect::Cut(content) => {
            same("ends as broken", &matches!(response.end, End::Broken(_)), &true)?;
            let is_prefix = to_bytes(content).starts_with(&response.body);
            same("content is a part of it", &is_prefix, &true)?;
        }
        Expect::Whole(content) => {
            same("end", &response.end, &End::Complete)?;
            same(
                "content",
                &response.body.escape_ascii().to_string(),
                &content.escape_default().to_string(),
            )?;
        }
    }
    let interims = if kind == Kind::Http10 { 0 } else { case.interims };
    same("interim responses", &response.interim.len(), &interims)?;
    for line in &case.shows {
        let (name, _) = line.split_once(": ").ok_or("not a field line")?;
        let found: Vec<String> = response.fields.all(name).map(|value| format!("{name}: {value}")).collect();
        let expected: Vec<&String> = case
            .shows
            .iter()
            .filter(|line| line.split_once(": ").is_some_and(|(other, _)| other == name))
            .collect();
        same(name, &found.iter().collect::<Vec<_>>(), &expected)?;
    }
    for name in &case.hides {
        same(name, &response.fields.all(name).count(), &0)?;
    }
    same("trailers", &response.trailers.0.len(), &0)?;
    same("Via lines", &response.fields.all("via").count(), &1)
}

/// Larder's own answer, with its word for the reason.
fn failed(response: &Response, status: u16, detail: &str) -> Outcome {
    same("status", &response.status, &status)?;
    same("end", &response.end, &End::Complete)?;
    let told = response.fields.first("cache-status").unwrap_or_default();
    let is_told = told.ends_with(&format!("detail={detail}"));
    same("the detail is told", &is_told, &true)?;
    same("Cache-Control", &response.fields.first("cache-control"), &Some("no-store"))?;
    same("is small", &(response.body.len() < 100), &true)
}

/// What is served next: the same where it was whole, never a part of it.
async fn again(case: &Case, fixture: &Fixture) -> Outcome {
    let response = fixture.ask(Kind::Http11, &evil("GET")).await?;
    same("end", &response.end, &End::Complete)?;
    let content = response.body.escape_ascii().to_string();
    match &case.expect {
        Expect::Whole(first) if case.is_stored && case.method == "GET" => {
            same("content", &content, &first.escape_default().to_string())?;
            same("times the origin was asked", &fixture.asked(), &case.asked)
        }
        _ => {
            same("status", &response.status, &200)?;
            same("content", content.as_str(), SECOND)?;
            same("times the origin was asked", &fixture.asked(), &(case.asked + 1))
        }
    }
}

/// A pause long enough to part two segments.
pub const APART: &str = "30ms";
