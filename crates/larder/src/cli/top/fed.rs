//! What comes, taken in.
//!
//! In: blocks of the stream, answers, and how the connection is. Out: what is known from then on. A picture that is stopped takes nothing; what was
//! asked by a key is answered all the same. Pure.

use larder_proxy::objects::Purged;
use serde_json::Value;

use super::asks::{TopAnswer, TopAsk};
use super::figures::{FigureValues, TickFigures, numbers};
use super::history::PointHistory;
use super::request::{TopEvent, TopRequest, TopUrl};
use super::state::{TopFed, TopLink, TopPane, TopView};
use super::tab::TopTab;
use super::times::AskTimes;
use crate::cli::log::stream::StreamBlock;
use crate::cli::table::counted;

/// The most requests of the list.
const REQUESTS_MAX: usize = 1000;
const EVENTS_MAX: usize = 256;

impl TopView {
    /// Takes what came.
    pub(super) fn feed(&mut self, fed: TopFed) {
        match fed {
            TopFed::Connected => {
                if let TopLink::Lost(..) = self.link {
                    // It may be another version by now, and what was missed is asked for.
                    self.absent.clear();
                    self.times = AskTimes::default();
                }
                self.link = TopLink::Live;
                if self.tab == TopTab::Requests && !self.is_stopped {
                    self.requests.clear();
                }
            }
            TopFed::Lost(why) => match &mut self.link {
                TopLink::Lost(_, last) => *last = why,
                link => *link = TopLink::Lost(self.now, why),
            },
            TopFed::Absent => self.link = TopLink::Absent,
            TopFed::Refused(why) => {
                self.said = Some(why);
                self.filters.remove(&TopTab::Requests.place());
            }
            TopFed::Block(block) => self.block(&block),
            TopFed::Answer(told) => self.told(told),
        }
    }

    fn block(&mut self, block: &StreamBlock) {
        if self.is_stopped {
            return;
        }
        let value = || serde_json::from_str::<Value>(&block.data).ok();
        match block.name.as_str() {
            "tick" => {
                if let Some(tick) = TickFigures::read(&block.data) {
                    self.tick(tick);
                }
            }
            "request" => {
                let request = value().as_ref().and_then(TopRequest::read);
                if let Some(request) = request.filter(|_| self.tab == TopTab::Requests) {
                    self.requests.truncate(REQUESTS_MAX - 1);
                    self.requests.push_front(request);
                }
            }
            "event" => {
                if let Some(event) = value().as_ref().and_then(TopEvent::read) {
                    self.events.truncate(EVENTS_MAX - 1);
                    self.events.push_front(event);
                }
            }
            "skipped" => {
                let more = value().and_then(|value| value.get("skipped").and_then(Value::as_u64));
                self.skipped = self.skipped.saturating_add(more.unwrap_or_default());
            }
            _ => {}
        }
    }

    fn tick(&mut self, tick: TickFigures) {
        self.came = Some(self.now);
        // A clock that was set back by more than a moment: everything before would be in its future.
        if self.recent.at().is_some_and(|last| tick.at < last - 60.0) {
            self.recent.clear();
        }
        if self.recent.push(tick.clone()) {
            let window = self.window;
            self.history.get_or_insert_with(|| PointHistory::new(window)).tick(&tick);
        }
    }

    pub(super) fn take_stats(&mut self, stats: Value) {
        self.servers.take(&stats, self.now);
        self.stats = stats;
        if self.link == TopLink::Absent {
            self.came = Some(self.now);
        }
    }

    fn told(&mut self, told: TopAnswer) {
        match told {
            TopAnswer::Absent(ask) => {
                self.times.answered(&ask, self.now);
                self.absent.insert(ask.part());
                self.failed(
                    &ask,
                    format!("this larder has no {}: it is older than this command", ask.part()),
                );
            }
            TopAnswer::Failed(ask, why) => {
                self.times.answered(&ask, self.now);
                self.failed(&ask, why);
            }
            TopAnswer::Refused(error) => self.said = Some(error.to_string()),
            TopAnswer::Stats(stats) => {
                self.times.answered(&TopAsk::Stats, self.now);
                if !self.is_stopped {
                    self.take_stats(stats);
                }
            }
            TopAnswer::About(about) => {
                self.times.answered(&TopAsk::About, self.now);
                self.about = about;
            }
            TopAnswer::Series(window, answer) => {
                self.times.answered(&TopAsk::Series(window), self.now);
                if window == self.window && !self.is_stopped {
                    self.history.get_or_insert_with(|| PointHistory::new(window)).fill(&answer);
                }
            }
            TopAnswer::Before(answer) => {
                self.times.answered(&TopAsk::Before(""), self.now);
                if let Some(values) = answer.get("values").filter(|_| !self.is_stopped) {
                    self.before.get_or_insert_default().extend(last_points(values));
                }
            }
            TopAnswer::Events(answer) => {
                self.times.answered(&TopAsk::Events, self.now);
                let events = answer.get("events").and_then(Value::as_array);
                let events = events.into_iter().flatten().filter_map(TopEvent::read);
                self.events = events.take(EVENTS_MAX).collect();
            }
            TopAnswer::Urls(of, filter, answer) => {
                self.times.answered(&TopAsk::Urls { of, filter: String::new() }, self.now);
                if of == self.url_list() && filter == self.url_filter() && !self.is_stopped {
                    self.urls = answer;
                }
            }
            TopAnswer::Explained(url, text) => self.explained(&url, text),
            TopAnswer::Counted(url, responses) => self.count(&url, responses),
            TopAnswer::Purged(purged) => self.purged(&purged),
        }
    }

    /// What was asked by a key is answered where the key was pressed; the others are asked again, or are listed as absent.
    fn failed(&mut self, ask: &TopAsk, why: String) {
        match ask {
            TopAsk::Explain { .. } | TopAsk::Count(_) | TopAsk::Purge(_) => {
                self.pane = TopPane::None;
                self.said = Some(why);
            }
            TopAsk::Urls { .. } if !self.absent.contains(ask.part()) => self.said = Some(why),
            _ => {}
        }
    }

    fn explained(&mut self, url: &TopUrl, text: String) {
        if let TopPane::Text(asked, waits, _) = &mut self.pane
            && asked == url
        {
            *waits = text;
        }
    }

    fn count(&mut self, url: &str, responses: u64) {
        if let TopPane::Question(asked, count) = &mut self.pane
            && asked.url == url
        {
            if responses > 0 {
                *count = Some(responses);
            } else {
                self.said = Some(format!("nothing is stored under {url}"));
                self.pane = TopPane::None;
            }
        }
    }

    fn purged(&mut self, purged: &Purged) {
        let gone = counted(purged.removed, "response", "responses");
        self.said = Some(format!("{gone} removed: {}", purged.url));
    }
}

/// The last point of each series; where it is not known, there is none.
fn last_points(values: &Value) -> FigureValues {
    let last = |of: &Value| of.as_array().and_then(|points| points.last()).cloned().unwrap_or_default();
    let all = values.as_object().into_iter().flatten();
    let all: serde_json::Map<String, Value> = all.map(|(name, of)| (name.clone(), last(of))).collect();
    numbers(&Value::Object(all))
}
