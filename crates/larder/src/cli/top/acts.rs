//! What an action changes.
//!
//! In: an action and what is known. Out: what is chosen and shown from now on, and what is to be asked for it. Pure: asking, and leaving the
//! screen, are for the command. Nothing is purged before the number of responses is on the screen and `y` was pressed.

use larder_observe::filter::Filter;

use super::asks::TopAsk;
use super::choice::moved;
use super::history::PointHistory;
use super::keys::{KeyFocus, TopAction, TopMove};
use super::request::TopUrl;
use super::screen;
use super::state::{TopPane, TopView};
use super::tab::TopTab;

/// A filter has at most so many characters.
const FILTER_CHARACTERS_MAX: usize = 500;

impl TopView {
    /// What has the keys now.
    pub(super) const fn focus(&self) -> KeyFocus {
        match self.pane {
            TopPane::None => KeyFocus::List,
            TopPane::Line(_) => KeyFocus::Line,
            TopPane::Help | TopPane::Text(..) => KeyFocus::Pane,
            TopPane::Question(..) => KeyFocus::Question,
        }
    }

    /// Rows of a list or a pane on one page.
    fn page(&self) -> usize {
        usize::from(self.size.1).saturating_sub(7).max(1)
    }

    /// Does what was wished, and says what is to be asked.
    pub(super) fn act(&mut self, action: TopAction) -> Option<TopAsk> {
        self.said = None;
        match action {
            TopAction::Quit => self.is_over = true,
            TopAction::Suspend | TopAction::Repaint => {}
            TopAction::Show(tab) => self.show(tab),
            TopAction::NextTab => self.show(self.tab.stepped(1)),
            TopAction::PreviousTab => self.show(self.tab.stepped(TopTab::ALL.len() - 1)),
            TopAction::Move(to) => self.go(to),
            TopAction::Filter => self.filter_line(),
            TopAction::Sort => self.sort(),
            TopAction::Stop => self.stop(),
            TopAction::Explain => return self.explain(),
            TopAction::Purge => return self.ask_to_purge(),
            TopAction::Beside => {
                self.is_beside = !self.is_beside;
                self.before = None;
                self.times.forget(&TopAsk::Before(""));
            }
            TopAction::Window => {
                self.window = self.window.next();
                self.history = Some(PointHistory::new(self.window));
                self.times.forget(&TopAsk::Series(self.window));
            }
            TopAction::Help => self.pane = TopPane::Help,
            TopAction::Close => self.pane = TopPane::None,
            TopAction::Confirm => return self.confirmed(),
            TopAction::Type(_) | TopAction::Erase | TopAction::EraseAll => self.typed(action),
            TopAction::Accept => self.accept(),
        }
        None
    }

    fn show(&mut self, tab: TopTab) {
        self.tab = tab;
        if tab == TopTab::Urls {
            self.times.forget(&self.urls_ask());
        }
    }

    fn urls_ask(&self) -> TopAsk {
        TopAsk::Urls { of: self.url_list(), filter: self.url_filter() }
    }

    fn go(&mut self, to: TopMove) {
        let (page, tab) = (self.page(), self.tab);
        if let TopPane::Text(_, text, above) = &mut self.pane {
            *above = moved(*above, to, page, text.lines().count().saturating_sub(page));
            return;
        }
        let keys: Vec<String> =
            screen::table(self, tab).into_iter().flat_map(|table| table.into_keys()).collect();
        if let Some(choice) = self.choices.get_mut(tab.place()) {
            choice.go(to, page, &keys);
        }
    }

    fn sort(&mut self) {
        if let Some(choice) = self.choices.get_mut(self.tab.place()) {
            choice.sort = choice.sort.wrapping_add(1);
            choice.reset();
        }
        if self.tab == TopTab::Urls {
            self.urls = serde_json::Value::Null;
            self.times.forget(&self.urls_ask());
        }
    }

    fn stop(&mut self) {
        self.is_stopped = !self.is_stopped;
        if !self.is_stopped {
            // What was missed is asked for.
            for ask in [TopAsk::Stats, TopAsk::Series(self.window), TopAsk::Events, self.urls_ask()] {
                self.times.forget(&ask);
            }
        }
    }

    /// The URL of the chosen row, where the tab has URLs.
    fn chosen(&mut self) -> Option<TopUrl> {
        if !self.tab.has_urls() {
            self.said = Some("URLs are in the tabs 6 and 7".to_owned());
            return None;
        }
        let table = screen::table(self, self.tab)?;
        let place = self.choice(self.tab).place(table.keys());
        let url = table.url(place);
        if url.as_ref().is_some_and(|url| !url.is_whole) {
            self.said = Some(
                "this URL is not known as a whole: values of secret parameters are hidden, and long ones are cut"
                    .to_owned(),
            );
            return None;
        }
        url
    }

    fn explain(&mut self) -> Option<TopAsk> {
        let url = self.chosen()?;
        let width = usize::from(self.size.0).saturating_sub(4);
        self.pane = TopPane::Text(url.clone(), "asking ...".to_owned(), 0);
        Some(TopAsk::Explain { url, width })
    }

    fn ask_to_purge(&mut self) -> Option<TopAsk> {
        let url = match &self.pane {
            // What is explained is what is meant, whatever has come into the list meanwhile.
            TopPane::Text(url, ..) => url.clone(),
            _ => self.chosen()?,
        };
        self.pane = TopPane::Question(url.clone(), None);
        Some(TopAsk::Count(url.url))
    }

    fn confirmed(&mut self) -> Option<TopAsk> {
        let TopPane::Question(url, Some(_)) = &self.pane else { return None };
        let ask = TopAsk::Purge(url.url.clone());
        self.pane = TopPane::None;
        self.said = Some("purging ...".to_owned());
        Some(ask)
    }

    fn filter_line(&mut self) {
        if self.tab.has_urls() {
            self.pane = TopPane::Line(self.filter(self.tab).to_owned());
        } else {
            self.said = Some("a filter is for the tabs 6 and 7".to_owned());
        }
    }

    fn typed(&mut self, action: TopAction) {
        let TopPane::Line(line) = &mut self.pane else { return };
        match action {
            TopAction::Type(character)
                if !character.is_control() && line.chars().count() < FILTER_CHARACTERS_MAX =>
            {
                line.push(character);
            }
            TopAction::Erase => drop(line.pop()),
            TopAction::EraseAll => line.clear(),
            _ => {}
        }
    }

    fn accept(&mut self) {
        let TopPane::Line(line) = &self.pane else { return };
        let line = line.trim().to_owned();
        if self.tab == TopTab::Requests
            && !line.is_empty()
            && let Err(error) = Filter::parse(&line)
        {
            self.said = Some(error.to_string());
            return;
        }
        self.pane = TopPane::None;
        self.filters.insert(self.tab.place(), line);
        if let Some(choice) = self.choices.get_mut(self.tab.place()) {
            choice.reset();
        }
        if self.tab == TopTab::Urls {
            self.times.forget(&self.urls_ask());
        } else {
            self.requests.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cli::log::stream::StreamBlock;
    use crate::cli::top::asks::TopTold;
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
        view.feed(TopFed::Told(TopTold::Counted("http://a/other".to_owned(), 9)));
        assert_eq!(view.act(TopAction::Confirm), None, "that was another URL");
        view.feed(TopFed::Told(TopTold::Counted("http://a/x".to_owned(), 2)));
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
        view.feed(TopFed::Told(TopTold::Counted("http://a/x".to_owned(), 0)));
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
}
