//! What `larder top` knows, and what is chosen on its screen.
//!
//! In: nothing by itself: `fed` takes in what comes, `acts` what is wished. Out: the values that are drawn, and what the stream is to bring. Pure: no
//! clock, no socket, no terminal. Bounded: requests, events, seconds and points have largest numbers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use super::asks::TopAnswer;
use super::choice::RowChoice;
use super::figures::{FigureValues, RecentFigures};
use super::history::{PointHistory, TopWindow};
use super::request::{TopEvent, TopRequest, TopUrl};
use super::stats::ServerRates;
use super::tab::TopTab;
use super::times::AskTimes;
use crate::cli::admin::encoded;
use crate::cli::log::stream::StreamBlock;
use crate::cli::output::printable;

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
    Answer(TopAnswer),
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

    /// The filter of the URLs as a glob over whole keys.
    pub(super) fn url_filter(&self) -> String {
        match self.filter(TopTab::Urls) {
            "" => String::new(),
            typed if typed.contains(['*', '?']) => typed.to_owned(),
            typed => format!("*{typed}*"),
        }
    }
}
