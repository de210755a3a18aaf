//! What `larder top` knows, and what is chosen on its screen.
//!
//! In: what comes over the stream, answers of the admin address, and the time. Out: the values that are drawn, what is to be asked next, and what
//! the stream is to bring. Pure: no clock, no socket, no terminal. Bounded: requests, events, seconds and points have largest numbers.
//! While the picture is stopped nothing in it changes; afterwards it is asked for anew.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use larder_proxy::objects::Purged;
use serde_json::Value;

use super::asks::{TopAsk, TopTold};
use super::choice::RowChoice;
use super::due::AskTimes;
use super::figures::{FigureValues, RecentFigures, TickFigures, numbers};
use super::history::{PointHistory, TopWindow};
use super::request::{TopEvent, TopRequest, TopUrl};
use super::stats::ServerRates;
use super::tab::TopTab;
use crate::cli::admin::encoded;
use crate::cli::log::stream::StreamBlock;
use crate::cli::output::printable;
use crate::cli::table::counted;

/// The most requests of the list.
pub(super) const REQUESTS_MAX: usize = 1000;
const EVENTS_MAX: usize = 256;
/// So many remembered requests the list begins with.
const RECENT: usize = 200;
/// The lists of URLs, in the order in which they are sorted.
pub(super) const URL_LISTS: [&str; 5] = ["urls", "bytes", "misses", "before", "errors"];

/// How the stream is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum TopLink {
    #[default]
    Connecting,
    Live,
    /// Since when, and why.
    Lost(f64, String),
    /// This larder has none.
    Absent,
}

/// What lies over the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum TopPane {
    #[default]
    None,
    Help,
    /// The explanation of a URL, and how many lines of it are above the first that is shown.
    Text(TopUrl, String, usize),
    /// A filter that is typed.
    Line(String),
    /// Whether to purge, and how many responses would go, once that is known.
    Question(TopUrl, Option<u64>),
}

/// What comes over the stream.
#[derive(Debug)]
pub(super) enum TopFed {
    Connected,
    Lost(String),
    Block(StreamBlock),
    /// This larder has no such stream.
    Absent,
    /// It refuses the filter.
    Refused(String),
    Told(TopTold),
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct TopView {
    pub(super) address: String,
    /// The time here, in seconds since 1970.
    pub(super) now: f64,
    /// When figures came last, by the same clock.
    pub(super) came: Option<f64>,
    pub(super) size: (u16, u16),
    pub(super) tab: TopTab,
    pub(super) window: TopWindow,
    pub(super) is_beside: bool,
    pub(super) is_stopped: bool,
    pub(super) link: TopLink,
    pub(super) recent: RecentFigures,
    pub(super) history: Option<PointHistory>,
    /// Figures of an hour ago.
    pub(super) before: Option<FigureValues>,
    pub(super) about: Value,
    pub(super) stats: Value,
    pub(super) servers: ServerRates,
    pub(super) requests: VecDeque<TopRequest>,
    pub(super) events: VecDeque<TopEvent>,
    pub(super) urls: Value,
    pub(super) choices: [RowChoice; TopTab::ALL.len()],
    /// The filter of the requests, and that of the URLs.
    pub(super) filters: BTreeMap<usize, String>,
    pub(super) pane: TopPane,
    /// A sentence of the last line, until a key comes.
    pub(super) said: Option<String>,
    pub(super) absent: BTreeSet<&'static str>,
    /// Requests that the stream left out.
    pub(super) skipped: u64,
    pub(super) times: AskTimes,
    pub(super) is_over: bool,
}

impl TopView {
    /// Of a larder that said `stats` at first.
    pub(super) fn new(address: &str, stats: Value, now: f64) -> Self {
        let mut view = Self { address: printable(address), now, ..Self::default() };
        view.take_stats(stats);
        view
    }

    /// What is asked of the stream: requests where they are shown, figures and events always.
    pub(super) fn stream(&self) -> String {
        if self.tab != TopTab::Requests {
            return "/api/v1/live?tick=1&samples=0".to_owned();
        }
        let filter = encoded(self.filter(TopTab::Requests));
        format!("/api/v1/live?tick=1&recent={RECENT}&requests={filter}")
    }

    pub(super) fn filter(&self, tab: TopTab) -> &str {
        self.filters.get(&tab.place()).map_or("", String::as_str)
    }

    /// Which of the lists of URLs is shown.
    pub(super) fn url_list(&self) -> &'static str {
        let sort = self.choice(TopTab::Urls).sort;
        URL_LISTS.get(sort % URL_LISTS.len()).copied().unwrap_or("urls")
    }

    pub(super) fn choice(&self, tab: TopTab) -> &RowChoice {
        let [first, ..] = &self.choices;
        self.choices.get(tab.place()).unwrap_or(first)
    }

    /// Figures are so many seconds old; `None` where they are of this moment.
    pub(super) fn age(&self) -> Option<f64> {
        let age = self.now - self.came?;
        (age >= 3.0).then_some(age)
    }

    /// Figures of an hour ago, where they are wished and known: without them nothing was zero then.
    pub(super) fn hour_ago(&self) -> Option<&FigureValues> {
        self.before.as_ref().filter(|before| self.is_beside && before.contains_key("requests"))
    }

    /// A sentence about a word from larder's own list of words.
    pub(super) fn sentence(&self, kind: &str, word: &str) -> Option<String> {
        let words = self.about.get("words")?.get(kind)?.as_array()?;
        let of = words.iter().find(|of| of.get("word").and_then(Value::as_str) == Some(word))?;
        let part = |name: &str| of.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let parts: Vec<&str> = ["sentence", "helps"].into_iter().filter_map(part).collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    }

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
            TopFed::Told(told) => self.told(told),
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

    fn take_stats(&mut self, stats: Value) {
        self.servers.take(&stats, self.now);
        self.stats = stats;
        if self.link == TopLink::Absent {
            self.came = Some(self.now);
        }
    }

    fn told(&mut self, told: TopTold) {
        match told {
            TopTold::Absent(ask) => {
                self.times.answered(&ask, self.now);
                self.absent.insert(ask.part());
                self.failed(
                    &ask,
                    format!("this larder has no {}: it is older than this command", ask.part()),
                );
            }
            TopTold::Failed(ask, why) => {
                self.times.answered(&ask, self.now);
                self.failed(&ask, why);
            }
            TopTold::Refused(error) => self.said = Some(error.to_string()),
            TopTold::Stats(stats) => {
                self.times.answered(&TopAsk::Stats, self.now);
                if !self.is_stopped {
                    self.take_stats(stats);
                }
            }
            TopTold::About(about) => {
                self.times.answered(&TopAsk::About, self.now);
                self.about = about;
            }
            TopTold::Series(window, answer) => {
                self.times.answered(&TopAsk::Series(window), self.now);
                if window == self.window && !self.is_stopped {
                    self.history.get_or_insert_with(|| PointHistory::new(window)).fill(&answer);
                }
            }
            TopTold::Before(answer) => {
                self.times.answered(&TopAsk::Before(""), self.now);
                if let Some(values) = answer.get("values").filter(|_| !self.is_stopped) {
                    self.before.get_or_insert_default().extend(last_points(values));
                }
            }
            TopTold::Events(answer) => {
                self.times.answered(&TopAsk::Events, self.now);
                let events = answer.get("events").and_then(Value::as_array);
                let events = events.into_iter().flatten().filter_map(TopEvent::read);
                self.events = events.take(EVENTS_MAX).collect();
            }
            TopTold::Urls(of, filter, answer) => {
                self.times.answered(&TopAsk::Urls { of, filter: String::new() }, self.now);
                if of == self.url_list() && filter == self.url_filter() && !self.is_stopped {
                    self.urls = answer;
                }
            }
            TopTold::Explained(url, text) => self.explained(&url, text),
            TopTold::Counted(url, responses) => self.count(&url, responses),
            TopTold::Purged(purged) => self.purged(&purged),
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

    /// The filter of the URLs as a glob over whole keys.
    pub(super) fn url_filter(&self) -> String {
        match self.filter(TopTab::Urls) {
            "" => String::new(),
            typed if typed.contains(['*', '?']) => typed.to_owned(),
            typed => format!("*{typed}*"),
        }
    }
}

/// The last point of each series; where it is not known, there is none.
fn last_points(values: &Value) -> FigureValues {
    let last = |of: &Value| of.as_array().and_then(|points| points.last()).cloned().unwrap_or_default();
    let all = values.as_object().into_iter().flatten();
    let all: serde_json::Map<String, Value> = all.map(|(name, of)| (name.clone(), last(of))).collect();
    numbers(&Value::Object(all))
}
