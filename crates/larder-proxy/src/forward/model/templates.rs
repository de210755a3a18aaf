//! What becomes of templates: whose program it is, how they are stored, and when they are asked for once more.
//!
//! In: answers of the origin, in single steps. Out: what those who wait are told, and what is stored. The world is that of the
//! histories, so no socket is needed here either.

use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::FutureExt as _;
use http::header::{CONTENT_ENCODING, ETAG, RANGE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body::Frame;
use larder_assemble::Program;
use larder_cache::ExchangeTimes;
use larder_http::body::{Body, BodyError};
use larder_http::message::RequestHead;
use larder_http::template::Language;
use larder_origin::{OriginResponse, Timing};
use larder_store::StoredResponse;
use larder_store::store::Looked;
use tokio::sync::mpsc;

use super::map::Url;
use super::world::{Behind, World, content};
use super::{Candidates, FetchTask, Taken, receive, request, take};
use crate::collapse::{
    FlightGuard, FlightOutcome, FlightRequest, Follower, PassedAnswer, Role, SharedResponse,
};
use crate::failure::Failure;

const URL: Url = Url { host: "a.test", target: "/x/1" };
const TEXT: &str = "<p><esi:include src=\"/y/1\"/></p>";
const PLAIN: &str = "<p>nothing to include</p>";
const ESI: (&str, &str) = ("surrogate-control", "content=\"ESI/1.0\"");
const FRESH: (&str, &str) = ("cache-control", "max-age=60");
const TAGGED: (&str, &str) = ("etag", "\"1\"");
const GZIP: (&str, &str) = ("content-encoding", "gzip");

type Said = &'static [(&'static str, &'static str)];

fn answer(status: u16, said: &[(&'static str, &'static str)], body: Body) -> Box<OriginResponse> {
    let field = |(name, value): &(&'static str, &'static str)| {
        (HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    Box::new(OriginResponse {
        status: StatusCode::from_u16(status).unwrap(),
        fields: said.iter().map(field).collect(),
        content_length: body.length(),
        announced: None,
        body,
        tunnel: None,
        server: "http://origin.test:80".into(),
        attempts: 1,
        tag: "0000000000000000".parse().unwrap(),
        reused: false,
        timing: Timing { queue: Duration::ZERO, connect: None, first_byte: Duration::ZERO },
    })
}

fn compressed(text: &str) -> Body {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    Body::Full(encoder.finish().unwrap().into())
}

/// A body that comes as it is sent.
struct Arriving(mpsc::UnboundedReceiver<Bytes>);

impl http_body::Body for Arriving {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.0.poll_recv(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// The next data of a stream.
async fn next<S: http_body::Body<Data = Bytes, Error = BodyError> + Unpin>(stream: &mut S) -> Option<Bytes> {
    let frame = std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_frame(cx)).await?;
    frame.unwrap().into_data().ok()
}

impl World {
    fn head(&self, method: Method, range: Option<&'static str>) -> RequestHead {
        let mut head = RequestHead { method, ..self.request(URL) };
        head.fields.extend(range.map(|range| (RANGE, HeaderValue::from_static(range))));
        head
    }

    fn boards(&self, head: RequestHead) -> Role {
        let flight_request = FlightRequest {
            key: &self.key(URL),
            rule: self.settings.number,
            request: &Arc::new(head),
            expected: None,
            wants_content: true,
            number: &|| 0,
            arrived: 0,
            begun: self.clock.now(),
        };
        self.worker.proxy.flights.board(flight_request, |_| true, || true)
    }

    fn leads(&self, head: RequestHead) -> (FlightGuard, Follower) {
        let Role::Lead(guard) = self.boards(head) else { panic!("there is a flight already") };
        let leader = guard.lead();
        (guard, leader)
    }

    fn times(&self) -> ExchangeTimes {
        ExchangeTimes { request: self.clock.now(), response: self.clock.now() }
    }

    /// The outcome of a request that is answered so.
    async fn answered(&self, method: Method, answer: Box<OriginResponse>) -> FlightOutcome {
        let (guard, mut leader) = self.leads(self.head(method, None));
        receive(&self.task(Candidates::default()), &guard, answer, self.times()).await;
        leader.outcome(drop).await
    }

    /// Stores an answer, and gives back what is stored.
    async fn stores(&self, said: Said, body: Body) -> Arc<StoredResponse> {
        let outcome = self.answered(Method::GET, answer(200, said, body)).await;
        assert!(matches!(outcome, FlightOutcome::Shared { .. }));
        self.stored(&self.key(URL)).pop().unwrap()
    }
}

fn shared(outcome: FlightOutcome) -> Arc<SharedResponse> {
    let FlightOutcome::Shared { response, .. } = outcome else { panic!("not shared") };
    response
}

fn is_same(one: Option<&Arc<Program>>, other: Option<&Arc<Program>>) -> bool {
    one.zip(other).is_some_and(|(one, other)| Arc::ptr_eq(one, other))
}

#[tokio::test]
async fn all_who_wait_and_what_is_stored_have_one_program() {
    let world = World::new(Behind::Nothing);
    let (guard, mut leader) = world.leads(world.head(Method::GET, None));
    let Role::Follow(mut follower) = world.boards(world.head(Method::GET, None)) else {
        panic!("it does not follow")
    };
    let (send, arriving) = mpsc::unbounded_channel();
    let body = Body::Stream { length: None, stream: Box::pin(Arriving(arriving)) };
    let (task, times) = (world.task(Candidates::default()), world.times());
    let arrived = answer(200, &[FRESH, ESI], body);
    let receiving = tokio::spawn(async move { receive(&task, &guard, arrived, times).await });
    let outcome = leader.outcome(drop).await;
    let led = shared(outcome);
    let followed = shared(follower.outcome(drop).await);
    assert!(is_same(led.program.as_ref(), followed.program.as_ref()));
    let program = followed.program.as_ref().unwrap();
    assert!(!program.has_operations());
    // What is read of it is compiled.
    let mut reader = followed.body.reader(None).unwrap();
    let (first, second) = TEXT.split_at(TEXT.len() - 2);
    send.send(Bytes::from_static(first.as_bytes())).unwrap();
    assert_eq!(next(&mut reader).await.unwrap(), first);
    assert!(program.has_operations() && !program.is_complete());
    send.send(Bytes::from_static(second.as_bytes())).unwrap();
    drop(send);
    receiving.await.unwrap();
    assert_eq!(next(&mut reader).await.unwrap(), second);
    assert!(program.is_complete());
    let stored = world.stored(&world.key(URL)).pop().unwrap();
    assert_eq!(stored.head.language(), Some(Language::Esi));
    assert!(is_same(stored.body.program(), Some(program)));
}

#[tokio::test]
async fn a_304_keeps_the_program() {
    let world = World::new(Behind::Nothing);
    let stored = world.stores(&[FRESH, ESI, TAGGED], Body::from(TEXT)).await;
    let (mut guard, _leader) = world.leads(world.head(Method::GET, None));
    let offered = Candidates { selected: Some(Arc::clone(&stored)), ..Candidates::default() };
    let mut task = world.task(offered);
    let confirmed = (answer(304, &[FRESH, TAGGED, ("x-newer", "1")], Body::Empty), world.times());
    let taken = take((&mut task, &mut guard), Some(&stored), true, confirmed);
    assert!(matches!(taken, Taken::Over));
    let renewed = world.stored(&world.key(URL)).pop().unwrap();
    assert!(renewed.head.fields.map.contains_key("x-newer"));
    assert!(stored.body.program().is_some() && is_same(renewed.body.program(), stored.body.program()));
}

#[tokio::test]
async fn a_template_without_a_directive_is_none_once_it_is_stored() {
    let world = World::new(Behind::Nothing);
    let stored = world.stores(&[FRESH, ESI], Body::from(PLAIN)).await;
    assert!(stored.head.language().is_none() && stored.body.program().is_none());
    assert_eq!(content(&stored).await, PLAIN.as_bytes());
}

#[tokio::test]
async fn a_template_never_becomes_a_plain_file() {
    for (text, is_template) in [(TEXT, true), (PLAIN, false)] {
        let world = World::new(Behind::Files);
        let answer = answer(200, &[FRESH, ESI], Body::from(text));
        let outcome = world.answered(Method::GET, answer).await;
        assert!(matches!(outcome, FlightOutcome::Shared { .. }));
        world.settle();
        let (request, policy) = (world.request(URL), &world.settings.policy);
        let looked = world.settings.store.look_waiting(&request, policy, world.clock.now());
        assert_eq!(matches!(looked, Looked::Absent), is_template, "{text}");
        let in_memory = world.stored(&world.key(URL)).pop();
        let program = in_memory.as_ref().and_then(|stored| stored.body.program());
        assert_eq!(program.is_some_and(|program| program.is_complete()), is_template, "{text}");
    }
}

#[tokio::test]
async fn a_coded_template_is_stored_decoded() {
    let world = World::new(Behind::Nothing);
    const SAID: Said = &[FRESH, ESI, GZIP, TAGGED, ("content-md5", "x"), ("repr-digest", "x"), ("x-a", "1")];
    let stored = world.stores(SAID, compressed(TEXT)).await;
    assert_eq!(content(&stored).await, TEXT.as_bytes());
    let fields = &stored.head.fields.map;
    let gone = ["content-encoding", "content-md5", "repr-digest"];
    assert!(gone.iter().all(|name| !fields.contains_key(*name)), "{fields:?}");
    assert!(fields.contains_key("x-a") && fields.contains_key(ETAG));
    assert!(stored.body.program().is_some_and(|program| program.is_complete()));
}

#[tokio::test]
async fn what_is_no_template_stays_coded() {
    let world = World::new(Behind::Nothing);
    let stored = world.stores(&[FRESH, GZIP], compressed(TEXT)).await;
    assert!(stored.head.fields.map.contains_key(CONTENT_ENCODING) && stored.body.program().is_none());
    let Body::Full(bytes) = compressed(TEXT) else { panic!("in one piece") };
    assert_eq!(content(&stored).await, bytes);
}

async fn passed(method: Method, said: Said, body: Body) -> PassedAnswer {
    let outcome = World::new(Behind::Nothing).answered(method, answer(200, said, body)).await;
    let FlightOutcome::Passed(passed) = outcome else { panic!("not passed") };
    passed
}

#[tokio::test]
async fn a_template_that_is_not_stored_has_its_program_too() {
    const SAID: Said = &[("cache-control", "no-store"), ESI, GZIP];
    let PassedAnswer { answer, program, .. } = passed(Method::GET, SAID, compressed(TEXT)).await;
    let (fields, program): (HeaderMap, _) = (answer.fields, program.unwrap());
    assert!(!fields.contains_key(CONTENT_ENCODING) && !fields.contains_key("surrogate-control"));
    assert_eq!((answer.content_length, answer.body.length()), (None, None));
    let Body::Stream { mut stream, .. } = answer.body else { panic!("not a stream") };
    let mut read = Vec::new();
    while let Some(bytes) = next(&mut stream).await {
        read.extend_from_slice(&bytes);
    }
    assert_eq!(read, TEXT.as_bytes());
    assert!(program.is_complete() && program.has_operations());
}

#[tokio::test]
async fn the_head_of_a_template_has_a_program_that_never_completes() {
    let PassedAnswer { answer, program, .. } = passed(Method::HEAD, &[FRESH, ESI, GZIP], Body::Empty).await;
    assert!(program.is_some_and(|program| !program.is_complete()));
    assert!(answer.content_length.is_none() && !answer.fields.contains_key(CONTENT_ENCODING));
}

#[tokio::test]
async fn a_template_in_an_unknown_coding_fails() {
    for coding in ["compress", "gzip, gzip"] {
        let world = World::new(Behind::Nothing);
        let answer = answer(200, &[FRESH, ESI, ("content-encoding", coding)], Body::from(TEXT));
        let outcome = world.answered(Method::GET, answer).await;
        assert!(matches!(outcome, FlightOutcome::Failed(Failure::TEMPLATE_CODING)), "{coding}");
        assert!(world.stored(&world.key(URL)).is_empty());
    }
}

#[tokio::test]
async fn a_broken_template_is_not_stored_and_never_completes() {
    let world = World::new(Behind::Nothing);
    let Body::Full(coded) = compressed(TEXT) else { panic!("in one piece") };
    let cut = Body::Full(coded.slice(..coded.len() - 1));
    let response = shared(world.answered(Method::GET, answer(200, &[FRESH, ESI, GZIP], cut)).await);
    assert!(response.program.as_ref().is_some_and(|program| !program.is_complete()));
    assert!(response.body.is_broken() && world.stored(&world.key(URL)).is_empty());
}

#[tokio::test]
async fn all_of_a_template_is_asked_for_where_a_part_comes() {
    const PART: Said = &[FRESH, ESI, ("content-range", "bytes 0-3/32")];
    let part = || answer(206, PART, Body::from("<p><"));
    let world = World::new(Behind::Nothing);
    let takes = |task: &mut FetchTask, guard: &mut FlightGuard, answer| {
        take((task, guard), None, false, (answer, world.times()))
    };
    for comes_again in [false, true] {
        let (mut guard, mut leader) = world.leads(world.head(Method::GET, Some("bytes=0-3")));
        let mut task = world.task(Candidates::default());
        assert!(request(&task, &guard).fields.contains_key(RANGE));
        assert!(matches!(takes(&mut task, &mut guard, part()), Taken::Again));
        assert!(!request(&task, &guard).fields.contains_key(RANGE));
        if comes_again {
            assert!(matches!(takes(&mut task, &mut guard, part()), Taken::Over));
            let outcome = leader.outcome(drop).await;
            assert!(matches!(outcome, FlightOutcome::Failed(Failure::TEMPLATE_PART)));
            continue;
        }
        // Who wants the same part waits for the whole.
        let same = world.head(Method::GET, Some("bytes=0-3"));
        let Role::Follow(mut follower) = world.boards(same) else { panic!("it does not follow") };
        let whole = answer(200, &[FRESH, ESI], Body::from(TEXT));
        let Taken::Whole(whole) = takes(&mut task, &mut guard, whole) else { panic!("not the whole") };
        receive(&task, &guard, whole, world.times()).await;
        let followed = shared(follower.outcome(drop).await);
        let stored = world.stored(&world.key(URL)).pop().unwrap();
        assert!(stored.head.part.is_none() && is_same(stored.body.program(), followed.program.as_ref()));
    }
}

#[tokio::test]
async fn a_part_of_a_template_completes_nothing() {
    let world = World::new(Behind::Nothing);
    const PART: Said = &[FRESH, TAGGED, ("content-range", "bytes 0-3/32")];
    let (guard, mut leader) = world.leads(world.head(Method::GET, Some("bytes=0-3")));
    receive(&world.task(Candidates::default()), &guard, answer(206, PART, Body::from("<p><")), world.times())
        .await;
    drop((guard, leader.outcome(drop).now_or_never()));
    let stored = world.stored(&world.key(URL)).pop().unwrap();
    let gap = stored.head.part.as_ref().unwrap().gap(stored.body.length()).unwrap();
    let (mut guard, _leader) = world.leads(world.head(Method::GET, None));
    let mut task =
        FetchTask { completing: Some((Arc::clone(&stored), gap)), ..world.task(Candidates::default()) };
    assert!(request(&task, &guard).fields.contains_key(RANGE));
    const REST: Said = &[FRESH, ESI, TAGGED, ("content-range", "bytes 4-31/32")];
    let rest = (answer(206, REST, Body::Full(Bytes::from_static(&[b'x'; 28]))), world.times());
    assert!(matches!(take((&mut task, &mut guard), None, false, rest), Taken::Again));
    assert!(!request(&task, &guard).fields.contains_key(RANGE));
    assert!(world.stored(&world.key(URL)).is_empty());
}
