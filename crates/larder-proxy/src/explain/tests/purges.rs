//! What purges have done to what is stored, and what one would do.

use larder_cache::purge::{Expression, Mode, PatternText, Scope, Selector};

use super::*;
use crate::purges::{Dialect, Order, Sender};

impl Fixture {
    /// Purges, as a plugin does that came with a token.
    async fn purge(&self, selectors: Vec<Selector>, mode: Mode) -> String {
        let scope = Arc::new(Scope::any());
        let order = Order { selectors, mode, scope, here: Vec::new(), takes_patterns: true, wait: None };
        let peer = Some([192, 0, 2, 7].into());
        let sender = Sender { dialect: Dialect::Varnish, peer, by: "token" };
        self.worker.purge(&order, sender).await.unwrap().id
    }

    async fn stored(&self, target: &str) -> Stored {
        self.explain("GET", target, &[]).await.stored
    }
}

const FRESH: (&str, &str) = ("cache-control", "max-age=100, stale-while-revalidate=60");

fn tag(name: &str) -> Selector {
    Selector::Tag(name.as_bytes().into())
}

#[tokio::test]
async fn the_purge_that_ended_a_response_is_told_with_who_made_it() {
    let fixture = Fixture::new();
    fixture.keep("/a", &[], &[FRESH, ("surrogate-key", "x y")]);
    fixture.purge(vec![tag("z")], Mode::Hard).await;
    let stored = fixture.stored("/a").await;
    assert_eq!((stored.last_purge, &stored.responses[0].purge), (None, &None), "it names nothing of it");
    let id = fixture.purge(vec![tag("z"), tag("y")], Mode::Soft).await;
    let stored = fixture.stored("/a").await;
    let response = &stored.responses[0];
    assert_eq!((&response.tags[..], response.every_tag), (&["x".to_owned(), "y".to_owned()][..], false));
    assert!(response.soft && !response.gone && response.invalidated_seconds.is_some(), "{response:?}");
    let purge = response.purge.as_ref().unwrap();
    assert_eq!((&*purge.id, &*purge.kind, &*purge.mode, &*purge.what), (&*id, "tag", "soft", "tag y"));
    assert_eq!((&*purge.dialect, purge.peer.as_deref(), &*purge.by), ("varnish", Some("192.0.2.7"), "token"));
    let last = stored.last_purge.as_ref().map(|last| (&*last.id, &*last.what));
    assert_eq!(last, Some((&*purge.id, &*purge.what)));
}

#[tokio::test]
async fn a_response_that_came_after_a_purge_was_not_ended_by_it() {
    let fixture = Fixture::new();
    let id = fixture.purge(vec![Selector::All], Mode::Soft).await;
    let current = fixture.worker.proxy.invalidations.current();
    fixture.keep_since(current, "/a", &[], &[FRESH]);
    let stored = fixture.stored("/a").await;
    assert_eq!((stored.responses[0].invalidated, &stored.responses[0].purge), (false, &None));
    assert_eq!(stored.last_purge.unwrap().id, id, "it named the URL all the same");
}

#[tokio::test]
async fn the_last_purge_of_a_url_is_known_when_nothing_is_left() {
    let fixture = Fixture::new();
    let path = |text: &str| {
        let target = Some(Expression { text: text.into(), at_start: false });
        Selector::Pattern(PatternText { target, ..PatternText::default() })
    };
    for (selector, kind) in [
        (Selector::Url("http://example.com/keyed/a?utm_x=1&b".into()), Some("url")),
        (Selector::Url("http://example.com/keyed/a?c".into()), None),
        (Selector::Url("http://www.example.com/keyed/a?b".into()), None),
        (Selector::Prefix { host: None, path: "/keyed/".into() }, Some("prefix")),
        (Selector::Prefix { host: Some("www.example.com".into()), path: "/keyed/".into() }, None),
        (Selector::Host("example.com".into()), Some("host")),
        (path("yed/a"), Some("pattern")),
        (path("yed/b"), None),
        (tag("x"), None),
        (Selector::All, Some("all")),
    ] {
        let id = fixture.purge(vec![selector.clone()], Mode::Hard).await;
        let last = fixture.stored("/keyed/a?b").await.last_purge.filter(|last| last.id == id);
        assert_eq!(last.map(|last| last.kind).as_deref(), kind, "{selector:?}");
    }
}

#[tokio::test]
async fn what_a_purge_of_the_url_would_take_is_told() {
    let fixture = Fixture::new();
    fixture.keep("/keyed/a", &[], &[FRESH, ("vary", "x-b")]);
    fixture.keep("/keyed/a", &[("x-b", "1")], &[FRESH, ("vary", "x-b")]);
    fixture.keep("/keyed/b", &[], &[FRESH]);
    let outlook = fixture.explain("GET", "/keyed/a?utm_x=1", &[]).await.purge.unwrap();
    assert_eq!((outlook.responses, outlook.bytes), (2, 8));
    assert_eq!(
        (&outlook.forms[..], &outlook.prefixes[..]),
        (
            &["/keyed/a?utm_x=1".to_owned(), "/keyed/a".to_owned()][..],
            &["/".to_owned(), "/keyed/".to_owned()][..]
        )
    );
    assert_eq!(outlook.access.token, "closed");
    fixture.purge(vec![Selector::Url("http://example.com/keyed/a".into())], Mode::Hard).await;
    let outlook = fixture.explain("GET", "/keyed/a", &[]).await.purge.unwrap();
    assert_eq!((outlook.responses, outlook.bytes), (0, 0));
    assert_eq!(fixture.explain("POST", "/keyed/a", &[]).await.purge, None, "nothing is looked up");
}
