//! What a page holds at most, in the cases in which a page wants much.
#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use bytes::Bytes;
use larder_assemble::IncludeFailure;
use larder_assemble::delivery::Given;
use larder_http::body::Body;
use larder_http::target::reference::DocumentUri;
use larder_http::template::Language;

use super::super::tests::{NOW, page_of, said, template, uri};
use super::super::*;
use crate::settings::FragmentSettings;

/// Fragments of which each has a path `/N`, and all but `/0` come at once; that one comes when it is let.
struct Counted {
    body: Bytes,
    /// How often a fragment was asked for.
    asked: Arc<AtomicUsize>,
    /// Whether the first one comes.
    may_come: Arc<tokio::sync::Semaphore>,
}

impl Fragments for Counted {
    fn ask(&self, at: &DocumentUri, _: bool) -> AskedFragment {
        let (is_first, may_come) = (at.target.path() == "/0", Arc::clone(&self.may_come));
        let (body, asked) = (self.body.clone(), Arc::clone(&self.asked));
        AskedFragment::Later(Box::pin(async move {
            asked.fetch_add(1, Ordering::Relaxed);
            if is_first {
                drop(may_come.acquire().await);
            }
            let (body, said) = (PartBody::new(Body::from(body)), said());
            Ok(Box::new(Fragment { said, body, template: None, passes: true, detail: None, cookies: 0 }))
        }))
    }

    fn failed(&self, _: Option<&DocumentUri>, _: IncludeFailure) {}

    fn cut(&self, _: IncludeFailure) {}

    fn opened(&self) {}

    fn ended(&self, _: &Tally, _: bool) {}
}

fn page_with(
    language: Language,
    template_text: &[u8],
    fragments: Box<dyn Fragments>,
    at_once: usize,
) -> Page {
    let (program, body) =
        template(language, &uri("/p/page"), Body::from(Bytes::copy_from_slice(template_text)));
    let head = crate::testing::request("/p/page");
    let request = PageRequest { head, client: IpAddr::V4(Ipv4Addr::LOCALHOST), now: NOW, fetches: true };
    let settings = FragmentSettings { at_once, ..FragmentSettings::default() };
    let sheet = Sheet { program, last_modified: None };
    Page::new(fragments, Arc::new(request), (sheet, body, said()), (Arc::new(settings), true))
}

/// All that a page gives, and what it held at most on the way.
async fn drained(page: &mut Page) -> (usize, u64, Option<IncludeFailure>) {
    let (mut length, mut held) = (0, page.queue.held_bytes());
    loop {
        match std::future::poll_fn(|cx| page.poll_next(cx)).await {
            Some(Ok(bytes)) => length += bytes.len(),
            end => return (length, held, end.and_then(Result::err)),
        }
        held = held.max(page.queue.held_bytes());
    }
}

fn includes(range: std::ops::Range<usize>) -> String {
    range.map(|number| format!("<esi:include src=\"/{number}\"/>")).collect()
}

const FRAGMENT_BYTES: usize = 60_000;

fn counted() -> (Counted, Arc<AtomicUsize>, Arc<tokio::sync::Semaphore>) {
    let (asked, may_come) = (Arc::<AtomicUsize>::default(), Arc::new(tokio::sync::Semaphore::new(0)));
    let body = vec![b'f'; FRAGMENT_BYTES].into();
    (Counted { body, asked: Arc::clone(&asked), may_come: Arc::clone(&may_come) }, asked, may_come)
}

#[tokio::test]
async fn behind_a_slow_fragment_a_page_holds_as_many_as_it_fetches_at_once() {
    let (fragments, asked, may_come) = counted();
    let mut page = page_with(Language::Esi, includes(0..60).as_bytes(), Box::new(fragments), 4);
    // Until nothing moves any more but for the first one.
    for _ in 0..2000 {
        let next = std::future::poll_fn(|cx| Poll::Ready(page.poll_next(cx))).await;
        assert!(next.is_pending());
        tokio::task::yield_now().await;
    }
    // The first one is on its way, and of the others there are four.
    assert_eq!(asked.load(Ordering::Relaxed), 5);
    assert_eq!(page.room.as_ref().unwrap().held_kib(), 4 * FRAGMENT_BYTES.div_ceil(1024));
    may_come.add_permits(1);
    let (length, _, failed) = drained(&mut page).await;
    assert_eq!((length, failed), (60 * FRAGMENT_BYTES, None));
    // Each was asked for once.
    assert_eq!(asked.load(Ordering::Relaxed), 60);
    assert_eq!(page.room.as_ref().unwrap().held_kib(), 0);
}

#[tokio::test]
async fn an_attempt_may_hold_more_and_has_a_limit() {
    for (count, expected) in [(100, Ok(100)), (300, Err(IncludeFailure::TooLarge))] {
        let (fragments, asked, may_come) = counted();
        may_come.add_permits(1);
        let text = format!(
            "<esi:try><esi:attempt>{}</esi:attempt><esi:except>no</esi:except></esi:try>",
            includes(0..count)
        );
        let mut page = page_with(Language::Esi, text.as_bytes(), Box::new(fragments), 2);
        let (length, _, failed) = drained(&mut page).await;
        match expected {
            Ok(count) => assert_eq!((length, failed), (count * FRAGMENT_BYTES, None)),
            Err(reason) => assert_eq!((length, failed), (0, Some(reason))),
        }
        // A limit of 8 MiB, and what is within the room.
        assert!(asked.load(Ordering::Relaxed) <= 8192 / 59 + 5, "{}", asked.load(Ordering::Relaxed));
    }
}

#[tokio::test]
async fn values_are_written_as_they_are_sent() {
    let mut text = format!("<!--#set var=\"v\" value=\"{}\" -->", "v".repeat(3000));
    text += &format!("<!--#set var=\"w\" value=\"{}\" -->", "$v".repeat(20));
    text += &"<!--#echo var=\"w\" -->".repeat(500);
    let (fragments, ..) = counted();
    let mut page = page_with(Language::Ssi, text.as_bytes(), Box::new(fragments), 1);
    assert!(page.whole().is_none() && !page.is_done);
    let (length, held, failed) = drained(&mut page).await;
    assert_eq!((length, failed), (500 * 60_000, None));
    assert!((AHEAD_BYTES..AHEAD_BYTES + 70_000).contains(&held), "{held}");
}

#[tokio::test]
async fn what_is_captured_is_held_no_longer_than_the_variable() {
    // Templates, so that their content goes through a slot.
    let inner = format!("{}<!--#echo var=\"none\" -->", "t".repeat(60_000));
    let given = Given::Template(Language::Ssi, inner.into_bytes());
    let case = page_of(Language::Ssi, "<!--#include virtual=\"/t\" set=\"v\" -->end", &[("/t", given)]);
    for seed in 0..9 {
        let mut page = case.page(seed, false);
        let (length, _, failed) = drained(&mut page).await;
        assert_eq!((length, failed), (3, None));
        assert_eq!(page.queue.held_bytes(), 0);
        // In some of these cases it came as a stream, and is in no store.
        assert!(page.documents.iter().all(|document| document.own_bytes() < 1000));
    }
}

#[tokio::test]
async fn text_that_is_skipped_is_read_within_a_limit() {
    for (mebibytes, expected) in [(4, Ok(())), (12, Err(IncludeFailure::TooLarge))] {
        let text = format!("<esi:remove>{}</esi:remove>end", "r".repeat(mebibytes << 20));
        let pieces: Vec<_> = text.as_bytes().chunks(64 * 1024).map(Bytes::copy_from_slice).collect();
        let pieces = Body::Pieces { owner: Arc::new(pieces), range: 0..text.len() as u64 };
        let stream = PartBody::new(pieces).into_stream();
        let (fragments, ..) = counted();
        let (program, body) = template(Language::Esi, &uri("/p/page"), Body::Stream { length: None, stream });
        let head = crate::testing::request("/p/page");
        let request = PageRequest { head, client: IpAddr::V4(Ipv4Addr::LOCALHOST), now: NOW, fetches: true };
        let sheet = Sheet { program, last_modified: None };
        let parts = (sheet, body, said());
        let mut page = Page::new(Box::new(fragments), Arc::new(request), parts, (Arc::default(), true));
        let (mut length, mut held, mut failed) = (0, 0, None);
        loop {
            match std::future::poll_fn(|cx| page.poll_next(cx)).await {
                Some(Ok(bytes)) => length += bytes.len(),
                None => break,
                Some(Err(reason)) => {
                    failed = Some(reason);
                    break;
                }
            }
            held = held.max(page.documents.first().unwrap().own_bytes());
        }
        held = held.max(page.documents.first().unwrap().own_bytes());
        match expected {
            Ok(()) => assert_eq!((length, failed), (3, None)),
            Err(reason) => assert_eq!((length, failed), (0, Some(reason))),
        }
        assert!(held <= TEMPLATE_AHEAD_BYTES + WIDENED_BYTES_MAX + 64 * 1024, "{held}");
    }
}
