//! What an action changes.
//!
//! In: an action and what is known. Out: the choice and the tab from now on, and questions for the admin address. Pure: asking, and leaving the
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
            // The explained URL is meant, also if the list has moved meanwhile.
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
mod tests;
