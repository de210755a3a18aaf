//! Pages as a client gets them, however their parts come: beside the delivery of whole pages in memory, which is the model.
#![allow(clippy::unwrap_used)]

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::Frame;
use larder_assemble::delivery::{Delivered, Delivery, Given};
use larder_assemble::{Compiler, IncludeFailure, Program, RequestFacts, RunSettings};
use larder_cache::page::PartSaid;
use larder_http::body::{Body, BodyError};
use larder_http::target::reference::DocumentUri;
use larder_http::template::Language;
use larder_http::time::WallTime;
use proptest::prelude::*;

use super::*;
use crate::settings::FragmentSettings;

pub(super) const NOW: WallTime = WallTime(1_770_613_567_000);

/// A body in pieces, of which some take another poll.
struct Trickle {
    pieces: VecDeque<Bytes>,
    random: Random,
    breaks: bool,
}

#[derive(Clone, Copy)]
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % count.max(1)
    }
}

impl http_body::Body for Trickle {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.random.below(3) == 0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match self.pieces.pop_front() {
            None if self.breaks => Poll::Ready(Some(Err(BodyError::Cut))),
            None => Poll::Ready(None),
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
        }
    }
}

/// A template that is compiled as it is read.
struct Compiling {
    stream: larder_http::body::Stream,
    compiler: Option<Compiler>,
}

impl http_body::Body for Compiling {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let next = std::task::ready!(self.stream.as_mut().poll_frame(cx));
        match (&next, &mut self.compiler) {
            (Some(Ok(frame)), Some(compiler)) => compiler.feed(frame.data_ref().unwrap()),
            (None, compiler) => drop(compiler.take().map(Compiler::finish)),
            _ => self.compiler = None,
        }
        Poll::Ready(next)
    }
}

fn body(bytes: &[u8], mut random: Random) -> Body {
    match random.below(3) {
        0 => Body::from(Bytes::copy_from_slice(bytes)),
        1 => {
            let pieces: Vec<_> = bytes.chunks(1 + random.below(9)).map(Bytes::copy_from_slice).collect();
            Body::Pieces { owner: Arc::new(pieces), range: 0..bytes.len() as u64 }
        }
        _ => trickle(bytes, random, false),
    }
}

fn trickle(bytes: &[u8], mut random: Random, breaks: bool) -> Body {
    let pieces = bytes.chunks(1 + random.below(20)).map(Bytes::copy_from_slice).collect();
    Body::Stream { length: None, stream: Box::pin(Trickle { pieces, random, breaks }) }
}

pub(super) fn uri(target: &str) -> DocumentUri {
    let head = crate::testing::request("/");
    let target = larder_http::target::Target::parse(Bytes::copy_from_slice(target.as_bytes())).unwrap();
    DocumentUri { scheme: head.scheme, authority: head.authority, target }
}

pub(super) fn template(language: Language, at: &DocumentUri, body: Body) -> (Arc<Program>, PartBody) {
    let mut compiler = Compiler::new(language, at.clone());
    match body {
        Body::Stream { length, stream } => {
            let program = Arc::clone(compiler.program());
            let stream = Box::pin(Compiling { stream, compiler: Some(compiler) });
            (program, PartBody::new(Body::Stream { length, stream }))
        }
        whole => {
            let body = PartBody::new(whole);
            let (chunks, _) = body.copy().and_then(PartBody::into_whole).unwrap();
            chunks.iter().for_each(|chunk| compiler.feed(chunk));
            (compiler.finish(), body)
        }
    }
}

pub(super) fn said() -> PartSaid {
    PartSaid::of(&HeaderMap::new(), None, None, false, NOW)
}

struct Scripted {
    fragments: HashMap<String, Given>,
    random: Random,
    /// Whether bodies pass through.
    passes: bool,
}

impl Scripted {
    fn fragment(&self, at: &DocumentUri, mut random: Random) -> FragmentResult {
        let given = self.fragments.get(&at.target.to_string()).cloned();
        let breaks = matches!(given, Some(Given::Broken(..)));
        let (bytes, language) = match given.unwrap_or(Given::Failed(IncludeFailure::Status)) {
            Given::Failed(reason) => return Err(reason.into()),
            Given::Body(bytes) => (bytes, None),
            Given::Template(language, bytes) | Given::Broken(language, bytes) => (bytes, Some(language)),
        };
        let random = Random(random.below(1 << 30) as u64);
        let body = match breaks {
            true => trickle(&bytes, random, true),
            false => body(&bytes, random),
        };
        let (template, body) = match language {
            None => (None, PartBody::new(body)),
            Some(language) => {
                let (program, body) = template(language, at, body);
                (Some(FragmentTemplate { program, last_modified: None, is_strict: false }), body)
            }
        };
        Ok(Box::new(Fragment { said: said(), body, template, passes: self.passes, detail: None, cookies: 0 }))
    }
}

impl Fragments for Scripted {
    fn ask(&self, at: &DocumentUri, _: bool) -> AskedFragment {
        let mut random = self.random;
        for byte in at.target.to_string().bytes() {
            random.below(usize::from(byte) + 1);
        }
        let answered = self.fragment(at, random);
        match random.below(3) {
            0 => AskedFragment::Now(answered),
            turns => AskedFragment::Later(Box::pin(async move {
                for _ in 0..turns * random.below(9) {
                    tokio::task::yield_now().await;
                }
                answered
            })),
        }
    }

    fn failed(&self, _: Option<&DocumentUri>, _: IncludeFailure) {}

    fn cut(&self, _: IncludeFailure) {}

    fn opened(&self) {}

    fn ended(&self, _: &Tally, _: bool) {}
}

/// A page and its surroundings.
#[derive(Clone, Debug)]
pub(super) struct Case {
    language: Language,
    body: Vec<u8>,
    fragments: HashMap<String, Given>,
}

fn fields() -> HeaderMap {
    HeaderMap::from_iter([(HeaderName::from_static("cookie"), HeaderValue::from_static("a=x; b=<y>"))])
}

impl Case {
    /// What a page is, by the crate that knows the languages.
    fn model(&self) -> Delivered {
        let (fields, head) = (fields(), crate::testing::request("/p/page"));
        let facts = RequestFacts {
            fields: &fields,
            method: &head.method,
            client: IpAddr::V4(Ipv4Addr::LOCALHOST),
            scheme: head.scheme,
            version: head.version,
            now: NOW,
        };
        let fragments =
            |name: &str| self.fragments.get(name).cloned().unwrap_or(Given::Failed(IncludeFailure::Status));
        let delivery = Delivery {
            language: self.language,
            uri: uri("/p/page"),
            settings: RunSettings::default(),
            facts,
            fragments: &fragments,
            piece_bytes: 0,
            breaks: false,
        };
        delivery.deliver(&self.body, &mut |_| 0)
    }

    pub(super) fn page(&self, seed: u64, passes: bool) -> Page {
        let mut random = Random(seed);
        let at = uri("/p/page");
        let body = body(&self.body, Random(random.below(1 << 30) as u64));
        let (program, body) = template(self.language, &at, body);
        let mut head = crate::testing::request("/p/page");
        head.fields = fields();
        let request = PageRequest { head, client: IpAddr::V4(Ipv4Addr::LOCALHOST), now: NOW, fetches: true };
        let settings = FragmentSettings { at_once: 1 + random.below(4), ..FragmentSettings::default() };
        let fragments = Scripted { fragments: self.fragments.clone(), random, passes };
        let sheet = Sheet { program, last_modified: None };
        Page::new(Box::new(fragments), Arc::new(request), (sheet, body, said()), (Arc::new(settings), true))
    }

    /// What a client gets: all up to the end, or up to where it is cut.
    fn delivered(&self, seed: u64, passes: bool) -> (Vec<u8>, Option<IncludeFailure>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut page = self.page(seed, passes);
            let begins = page.begins().await;
            if let Some(whole) = page.whole() {
                use larder_http::body::Pieces;
                return (whole.pieces().concat(), None);
            }
            if let Begins::Failed(reason) = begins {
                return (Vec::new(), Some(reason));
            }
            let mut all = Vec::new();
            loop {
                match std::future::poll_fn(|cx| page.poll_next(cx)).await {
                    None => return (all, None),
                    Some(Ok(bytes)) => all.extend_from_slice(&bytes),
                    Some(Err(reason)) => return (all, Some(reason)),
                }
            }
        })
    }
}

const SSI: &[&str] = &[
    "<p>text</p>",
    "<!--#include virtual=\"/a\" -->",
    "<!--#include virtual=\"/t\" -->",
    "<!--#include virtual=\"/x\" wait=\"yes\" -->",
    "<!--#include virtual=\"/bad\" -->",
    "<!--#include virtual=\"/bad\" onerror=\"/a\" -->",
    "<!--#include virtual=\"/empty\" stub=\"s\" -->",
    "<!--#include virtual=\"/a\" set=\"v\" -->",
    "<!--#include virtual=\"/t\" set=\"w\" -->",
    "<!--#echo var=\"v\" --><!--#echo var=\"w\" encoding=\"none\" -->",
    "<!--#block name=\"s\" -->stub<!--#include virtual=\"/b\" --><!--#endblock -->",
    "<!--#if expr=\"$cookie_a\" -->yes<!--#include virtual=\"/c\" --><!--#else -->no<!--#endif -->",
    "<!--#unknown -->",
    "<!--#include",
];

const ESI: &[&str] = &[
    "<p>text</p>",
    "<esi:include src=\"/a\"/>",
    "<esi:include src=\"/t\"/>",
    "<esi:include src=\"/x\" onerror=\"continue\"/>",
    "<esi:include src=\"/bad\" onerror=\"continue\"/>",
    "<esi:include src=\"/bad\" alt=\"/b\"/>",
    "<esi:include src=\"/bad\"/>",
    "<esi:try><esi:attempt>1<esi:include src=\"/bad\"/>2</esi:attempt><esi:except>except<esi:include src=\"/c\"/></esi:except></esi:try>",
    "<esi:try><esi:attempt>1<esi:include src=\"/t\"/>2</esi:attempt><esi:except>not this</esi:except></esi:try>",
    "<esi:vars>$(HTTP_COOKIE{b})</esi:vars>",
    "<esi:choose><esi:when test=\"$(HTTP_COOKIE{a})=='x'\">x<esi:include src=\"/b\"/></esi:when></esi:choose>",
    "<esi:remove>gone</esi:remove><!--esi kept -->",
    "<esi:",
];

fn text(language: Language) -> impl Strategy<Value = Vec<u8>> {
    let parts = if language == Language::Ssi { SSI } else { ESI };
    prop::collection::vec(prop::sample::select(parts), 0..9).prop_map(|parts| parts.concat().into_bytes())
}

fn case() -> impl Strategy<Value = Case> {
    let language = prop::sample::select(&[Language::Ssi, Language::Esi][..]);
    let texts = language.prop_flat_map(|language| (Just(language), text(language), text(language)));
    (texts, text(Language::Ssi), text(Language::Esi)).prop_map(|((language, body, inner), ssi, esi)| {
        let other = if language == Language::Ssi { (Language::Esi, esi) } else { (Language::Ssi, ssi) };
        let given = |name: &str, given| (name.to_owned(), given);
        let fragments = HashMap::from([
            given("/a", Given::Body(b"A".to_vec())),
            given("/b", Given::Body(b"B".repeat(40))),
            given("/c", Given::Body(b"C".to_vec())),
            given("/empty", Given::Body(Vec::new())),
            given("/bad", Given::Failed(IncludeFailure::Status)),
            given("/t", Given::Template(language, inner)),
            given("/x", Given::Template(other.0, other.1)),
        ]);
        Case { language, body, fragments }
    })
}

proptest! {
    #[test]
    fn a_client_gets_what_the_languages_say_in_whatever_order_parts_come(
        case in case(),
        seed in any::<u64>(),
        passes in any::<bool>(),
    ) {
        let model = case.model();
        let (output, failed) = case.delivered(seed, passes);
        prop_assert_eq!(String::from_utf8_lossy(&output), String::from_utf8_lossy(&model.output));
        prop_assert_eq!(failed.is_some(), model.failed.is_some());
    }
}

pub(super) fn page_of(language: Language, body: &str, fragments: &[(&str, Given)]) -> Case {
    let fragments = fragments.iter().map(|(name, given)| ((*name).to_owned(), given.clone())).collect();
    Case { language, body: body.as_bytes().to_vec(), fragments }
}

#[test]
fn a_long_body_that_passes_is_asked_for_again_in_its_turn() {
    let long = vec![b'l'; 3 * GOOD_BYTES];
    let case = page_of(
        Language::Esi,
        "<esi:include src=\"/a\"/>|<esi:include src=\"/long\"/>",
        &[("/a", Given::Body(b"A".to_vec())), ("/long", Given::Body(long.clone()))],
    );
    for seed in 0..40 {
        let (output, failed) = case.delivered(seed, true);
        assert_eq!((output.len(), failed), (2 + long.len(), None), "{seed}");
    }
}

#[test]
fn a_template_that_breaks_cuts_the_page_behind_what_it_had() {
    let at = uri("/p/page");
    let text = b"begin <esi:include src=\"/a\"/> and more";
    let (program, body) = template(Language::Esi, &at, trickle(text, Random(7), true));
    let fragments = HashMap::from([("/a".to_owned(), Given::Body(b"A".to_vec()))]);
    let fragments = Scripted { fragments, random: Random(3), passes: false };
    let request = PageRequest {
        head: crate::testing::request("/p/page"),
        client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        now: NOW,
        fetches: true,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (sent, failed) = runtime.block_on(async {
        let sheet = Sheet { program, last_modified: None };
        let parts = (sheet, body, said());
        let mut page = Page::new(Box::new(fragments), Arc::new(request), parts, (Arc::default(), true));
        let mut sent = Vec::new();
        loop {
            match std::future::poll_fn(|cx| page.poll_next(cx)).await {
                Some(Ok(bytes)) => sent.extend_from_slice(&bytes),
                end => return (sent, end.and_then(Result::err)),
            }
        }
    });
    assert_eq!(
        (String::from_utf8(sent).unwrap().as_str(), failed),
        ("begin A and more", Some(IncludeFailure::Broken))
    );
}

#[test]
fn a_long_template_that_breaks_is_a_failed_fragment_where_nothing_of_it_was_sent() {
    use Language::{Esi, Ssi};
    let text = "l".repeat(3 * GOOD_BYTES);
    let long = format!("u<esi:include src=\"/a\"/>{text}").into_bytes();
    // Most of this one is left out, so that it would be short enough for a variable.
    let mostly_dropped = format!("u<!--#if expr=\"\" -->{text}").into_bytes();
    let fragments = [
        ("/a", Given::Body(b"A".to_vec())),
        ("/long", Given::Broken(Esi, long)),
        ("/dropped", Given::Broken(Ssi, mostly_dropped)),
    ];
    let broken = Some(IncludeFailure::Broken);
    for (language, body, expected, cut) in [
        (
            Esi,
            "[<esi:try><esi:attempt>x<esi:include src=\"/long\"/></esi:attempt><esi:except>e<esi:include src=\"/a\"/></esi:except></esi:try>]",
            "[eA]".to_owned(),
            None,
        ),
        (
            Ssi,
            "<!--#include virtual=\"/dropped\" set=\"v\" -->[<!--#echo var=\"v\" -->]",
            "[]".to_owned(),
            None,
        ),
        (
            Ssi,
            "<!--#include virtual=\"/dropped\" set=\"v\" onerror=\"/a\" -->[<!--#echo var=\"v\" -->]",
            "[A]".to_owned(),
            None,
        ),
        (Esi, "[<esi:include src=\"/long\" alt=\"/a\"/>]", format!("[uA{text}"), broken),
    ] {
        let case = page_of(language, body, &fragments);
        for seed in 0..8 {
            let (output, failed) = case.delivered(seed, false);
            assert_eq!(String::from_utf8_lossy(&output), expected, "{body}, {seed}");
            assert_eq!(failed, cut, "{body}, {seed}");
        }
    }
}

#[test]
fn what_is_too_long_for_a_variable_is_what_onerror_names() {
    let long = vec![b'l'; 2 * GOOD_BYTES];
    let fragments = [
        ("/body", Given::Body(long.clone())),
        ("/template", Given::Template(Language::Esi, long)),
        ("/t", Given::Template(Language::Ssi, b"t<!--#echo var=\"x\" -->".to_vec())),
    ];
    for target in ["/body", "/template"] {
        let set = format!("<!--#include virtual=\"{target}\" set=\"v\" onerror=\"/t\" -->");
        let case = page_of(Language::Ssi, &format!("{set}[<!--#echo var=\"v\" -->]"), &fragments);
        for seed in 0..8 {
            let (output, failed) = case.delivered(seed, false);
            let output = String::from_utf8_lossy(&output).into_owned();
            assert_eq!((output.as_str(), failed), ("[t(none)]", None), "{target}, {seed}");
        }
    }
}

#[test]
fn a_page_beyond_its_size_is_cut() {
    let case = page_of(
        Language::Esi,
        "<esi:include src=\"/b\"/><esi:include src=\"/b\"/>",
        &[("/b", Given::Body(vec![b'b'; 1000]))],
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let end = runtime.block_on(async {
        let mut page = case.page(1, false);
        page.limit_size(1500);
        page.begins().await;
        let whole = page.whole();
        assert!(whole.is_some_and(|whole| !page.may_be(&whole)));
        loop {
            match std::future::poll_fn(|cx| page.poll_next(cx)).await {
                Some(Ok(_)) => {}
                end => return end.and_then(Result::err),
            }
        }
    });
    assert_eq!(end, Some(IncludeFailure::TooLarge));
}
