//! What a tier says of itself and of what lies there.

use std::sync::Arc;

use super::life::{Life, Page, Past, body_of};
use super::subject::Subject;
use crate::tier::{ListedEntry, ListedHead};
use crate::vocabulary::Vocabulary;

/// Pages that a listing of the suite has at most.
const PAGES_MAX: usize = 10_000;

type Listed<S> = ListedEntry<<<S as Subject>::Vocabulary as Vocabulary>::Head>;

pub(super) fn a_tier_takes_what_it_keeps_and_says_where<S: Subject>(life: &Life<'_, S>) {
    let (tier, key, head) = (&life.tier, life.key("/a"), life.subject.head(1));
    assert!(tier.takes(&key, Some(&head)));
    let figures: Vec<_> = tier.figures().into_iter().map(|figures| figures.path).collect();
    assert!(!figures.is_empty() && figures == tier.directories(), "{figures:?}");
    assert!(tier.figures().iter().all(|figures| !figures.is_failing));
    assert!(life.turn > 0 || tier.figures().iter().all(|figures| figures.objects == 0));
    assert_eq!(tier.would_hold_back(&key, &head), None);
    assert_eq!(tier.take_event("store"), None);
    assert!(tier.findings().is_empty() && !tier.is_behind());
}

pub(super) fn a_page_begins_at_the_beginning_and_at_nothing_else<S: Subject>(life: &Life<'_, S>) {
    let (tier, now) = (&life.tier, life.subject.now());
    assert!(tier.letter().is_ascii_lowercase() && tier.letter() != 'm', "{}", tier.letter());
    let page = Arc::clone(tier).page(&tier.first_page(), 10, now, &|_| true);
    let page = page.expect("the first page has a cursor");
    assert!((life.turn > 0 || page.entries.is_empty()) && page.unreadable == 0);
    for text in ["", "-", "x", "0-x"] {
        assert!(Arc::clone(tier).page(text, 10, now, &|_| true).is_err(), "{text:?}");
    }
}

pub(super) async fn a_listing_meets_everything_once<S: Subject>(life: &Life<'_, S>, past: &Past) {
    let listed = list(life, &|_| true);
    for page in &past.kept {
        is_listed(life, &listed, page).await;
        is_listed(life, &Arc::clone(&life.tier).under(&page.key, life.subject.now()), page).await;
    }
    let page = past.kept.last().expect("something was put");
    is_listed(life, &list(life, &|base| base == page.key.base()), page).await;
    assert!(list(life, &|base| base != page.key.base()).iter().all(|listed| listed.key != page.key));
    for page in &past.gone {
        assert!(listed.iter().all(|listed| !is_of(listed, page)), "{page:?}");
    }
}

/// All pages of a listing.
fn list<S: Subject>(life: &Life<'_, S>, wanted: &dyn Fn(&[u8]) -> bool) -> Vec<Listed<S>> {
    let (mut listed, mut from) = (Vec::new(), life.tier.first_page());
    for _ in 0..PAGES_MAX {
        let page = Arc::clone(&life.tier).page(&from, 3, life.subject.now(), wanted);
        let page = page.expect("a page ended with this");
        assert_eq!(page.unreadable, 0);
        listed.extend(page.entries);
        let Some(next) = page.next else { return listed };
        from = next;
    }
    panic!("the listing does not end");
}

fn is_of<H>(listed: &ListedEntry<H>, page: &Page) -> bool {
    listed.key == page.key && listed.identity.is_none_or(|identity| identity == page.identity)
}

async fn is_listed<S: Subject>(life: &Life<'_, S>, listed: &[Listed<S>], page: &Page) {
    let own: Vec<_> = listed.iter().filter(|listed| is_of(listed, page)).collect();
    let [own] = &own[..] else { panic!("{page:?} is listed {} times", own.len()) };
    let expected = life.expected(page);
    let head = match &own.head {
        ListedHead::Bytes(bytes) => bytes.to_vec(),
        ListedHead::Made(head) => life.subject.head_bytes(head),
    };
    assert!((own.number, own.body_bytes) == (page.number, page.length as u64), "{page:?}: {}", own.number);
    assert!(head == expected.head, "{page:?}: {}", head.escape_ascii());
    let loaded = own.at.load(&own.key).await.expect("it is there");
    assert!(body_of(loaded.content).await == expected.body, "{page:?}");
    if let Some(identity) = own.identity {
        let (folders, directories) = (life.tier.folders_of(&own.key, identity), life.tier.directories());
        assert!(life.tier.lists(&own.key, identity), "{page:?}");
        assert!(folders.iter().all(|folder| directories.contains(folder)), "{page:?}: {folders:?}");
    }
}
