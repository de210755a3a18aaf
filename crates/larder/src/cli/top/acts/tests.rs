//! Actions, one after the other, and what they ask for.

use serde_json::{Value, json};

use super::*;
use crate::cli::log::stream::StreamBlock;
use crate::cli::top::asks::TopAnswer;
use crate::cli::top::state::TopFed;

fn view() -> TopView {
    let mut view = TopView::new("127.0.0.1:1", Value::Null, 1000.0);
    view.size = (80, 24);
    view.feed(TopFed::Connected);
    view.act(TopAction::Show(TopTab::Requests));
    view
}

fn request(view: &mut TopView, path: &str) {
    let data = json!({"at": 1, "host": "a", "path": path, "result": "asked"}).to_string();
    view.feed(TopFed::Block(StreamBlock { name: "request".to_owned(), data }));
}

#[test]
fn a_purge_needs_the_number_and_the_word() {
    let mut view = view();
    request(&mut view, "/x");
    assert_eq!(view.act(TopAction::Purge), Some(TopAsk::Count("http://a/x".to_owned())));
    assert_eq!(view.act(TopAction::Confirm), None, "the number is not known yet");
    assert_eq!(view.focus(), KeyFocus::Question);
    view.feed(TopFed::Answer(TopAnswer::Counted("http://a/other".to_owned(), 9)));
    assert_eq!(view.act(TopAction::Confirm), None, "that was another URL");
    view.feed(TopFed::Answer(TopAnswer::Counted("http://a/x".to_owned(), 2)));
    // What comes meanwhile changes nothing about which URL it is.
    request(&mut view, "/y");
    assert_eq!(view.act(TopAction::Confirm), Some(TopAsk::Purge("http://a/x".to_owned())));
    assert_eq!(view.act(TopAction::Confirm), None);
    view.act(TopAction::Purge);
    view.act(TopAction::Close);
    assert_eq!(view.act(TopAction::Confirm), None);
}

#[test]
fn what_is_explained_is_what_a_purge_is_about() {
    let mut view = view();
    request(&mut view, "/x");
    assert!(matches!(view.act(TopAction::Explain), Some(TopAsk::Explain { .. })));
    request(&mut view, "/y");
    assert_eq!(view.act(TopAction::Purge), Some(TopAsk::Count("http://a/x".to_owned())));
}

#[test]
fn nothing_stored_is_said_and_asks_no_question() {
    let mut view = view();
    request(&mut view, "/x");
    view.act(TopAction::Purge);
    view.feed(TopFed::Answer(TopAnswer::Counted("http://a/x".to_owned(), 0)));
    assert_eq!(
        (view.focus(), view.said.as_deref()),
        (KeyFocus::List, Some("nothing is stored under http://a/x"))
    );
}

#[test]
fn a_url_that_is_not_known_as_a_whole_is_neither_explained_nor_purged() {
    let mut view = view();
    request(&mut view, "/x?token=***");
    for action in [TopAction::Explain, TopAction::Purge] {
        assert_eq!(view.act(action), None);
        assert!(view.said.as_deref().is_some_and(|said| said.contains("not known as a whole")));
    }
    view.act(TopAction::Show(TopTab::Rules));
    assert_eq!(view.act(TopAction::Purge), None);
    assert!(view.said.as_deref().is_some_and(|said| said.contains("tabs 6 and 7")));
}

#[test]
fn a_filter_is_checked_before_it_is_asked_for() {
    let mut view = view();
    request(&mut view, "/x");
    let type_all = |view: &mut TopView, text: &str| {
        view.act(TopAction::Filter);
        view.act(TopAction::EraseAll);
        text.chars().for_each(|one| drop(view.act(TopAction::Type(one))));
        view.act(TopAction::Accept);
    };
    type_all(&mut view, "tine>1s");
    assert!(view.said.as_deref().is_some_and(|said| said.contains("time")), "{:?}", view.said);
    assert_eq!(view.focus(), KeyFocus::Line);
    type_all(&mut view, "status=5xx");
    assert_eq!(view.focus(), KeyFocus::List);
    assert_eq!(view.stream(), "/api/v1/live?tick=1&recent=200&requests=status%3D5xx");
    assert!(view.requests.is_empty(), "the list begins anew");
    view.act(TopAction::Show(TopTab::Urls));
    type_all(&mut view, "/blog/");
    assert_eq!(view.url_filter(), "*/blog/*");
    assert_eq!(view.stream(), "/api/v1/live?tick=1&samples=0");
}

#[test]
fn a_picture_that_stands_takes_nothing_and_is_asked_for_anew() {
    let mut view = view();
    view.act(TopAction::Stop);
    request(&mut view, "/x");
    let tick = StreamBlock { name: "tick".to_owned(), data: r#"{"at":5,"values":{}}"#.to_owned() };
    view.feed(TopFed::Block(tick));
    assert!(view.requests.is_empty() && view.recent.at().is_none() && view.due().is_empty());
    view.act(TopAction::Stop);
    assert!(view.due().len() >= 3);
}

#[test]
fn the_list_of_requests_has_a_largest_number() {
    let mut view = view();
    for number in 0..1100 {
        request(&mut view, &format!("/{number}"));
    }
    assert_eq!(view.requests.len(), 1000);
    assert_eq!(view.requests[0].url.url, "http://a/1099");
}

#[test]
fn windows_tabs_and_texts_are_moved_through() {
    let mut view = view();
    view.act(TopAction::Window);
    assert_eq!(view.window.word(), "3 h");
    view.act(TopAction::Show(TopTab::Events));
    view.act(TopAction::NextTab);
    assert_eq!(view.tab, TopTab::Overview);
    view.act(TopAction::PreviousTab);
    assert_eq!(view.tab, TopTab::Events);
    view.pane = TopPane::Text(TopUrl::default(), "line\n".repeat(40), 0);
    view.act(TopAction::Move(TopMove::PageDown));
    view.act(TopAction::Move(TopMove::PageDown));
    assert!(matches!(&view.pane, TopPane::Text(_, _, 23)), "{:?}", view.pane);
    view.act(TopAction::Close);
    assert_eq!(view.pane, TopPane::None);
    view.act(TopAction::Quit);
    assert!(view.is_over);
}
