//! When what is asked again and again is due.
//!
//! In: the time, and what is on the screen. Out: the questions to ask now. Pure.

use super::asks::TopAsk;
use super::state::{TopLink, TopView};
use super::tab::TopTab;

/// Between the answer and the next question.
const STATS_SECONDS: f64 = 5.0;
const STATS_SECONDS_UNSEEN: f64 = 30.0;
const URLS_SECONDS: f64 = 5.0;
const BEFORE_SECONDS: f64 = 60.0;
/// Figures of an hour ago: in three questions, as one may have no more than so many names.
const BEFORE: [&str; 3] = [
    "requests,connections,bytes_out,cpu,memory,result.*,reason.*,before.*,not_stored.*",
    "rule:*",
    "store:*,origin:*,latency:*",
];

impl TopView {
    /// The questions that are due.
    pub(super) fn due(&mut self) -> Vec<TopAsk> {
        let mut due = Vec::new();
        if self.is_stopped || matches!(self.link, TopLink::Connecting | TopLink::Lost(..)) {
            return due;
        }
        let shows_stats = matches!(self.tab, TopTab::Overview | TopTab::Stores | TopTab::Origins);
        let shows_stats = shows_stats || self.link == TopLink::Absent;
        let stats = if shows_stats { STATS_SECONDS } else { STATS_SECONDS_UNSEEN };
        let urls = TopAsk::Urls { of: self.url_list(), filter: self.url_filter() };
        let asks = [
            (TopAsk::About, f64::INFINITY, true),
            (TopAsk::Stats, stats, true),
            (TopAsk::Series(self.window), f64::INFINITY, true),
            (TopAsk::Events, f64::INFINITY, true),
            (urls, URLS_SECONDS, self.tab == TopTab::Urls),
            (TopAsk::Before(""), BEFORE_SECONDS, self.is_beside),
        ];
        for (ask, again, is_wanted) in asks {
            let is_absent = self.absent.contains(ask.part());
            if is_wanted && !is_absent && self.times.is_due(&ask, again, self.now) {
                self.times.asked(&ask, self.now);
                match ask {
                    TopAsk::Before(_) => due.extend(BEFORE.map(TopAsk::Before)),
                    ask => due.push(ask),
                }
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cli::top::asks::TopAnswer;
    use crate::cli::top::state::TopFed;
    use crate::cli::top::times::kind;

    fn view() -> TopView {
        let mut view = TopView::new("a", Value::Null, 1000.0);
        view.feed(TopFed::Connected);
        view
    }

    fn parts(of: &[TopAsk]) -> Vec<&'static str> {
        of.iter().map(kind).collect()
    }

    #[test]
    fn each_is_asked_once_and_again_a_while_after_its_answer() {
        let mut view = view();
        assert_eq!(parts(&view.due()), ["/api/v1/about", "/stats", "/api/v1/series", "/api/v1/events"]);
        view.now += 50.0;
        assert!(view.due().is_empty(), "answers are under way");
        view.feed(TopFed::Answer(TopAnswer::Stats(json!({}))));
        view.feed(TopFed::Answer(TopAnswer::Events(json!({}))));
        view.now += STATS_SECONDS - 0.1;
        assert!(view.due().is_empty());
        view.now += 0.1;
        assert_eq!(parts(&view.due()), ["/stats"]);
        view.tab = TopTab::Urls;
        assert_eq!(parts(&view.due()), ["/api/v1/top"]);
        view.is_beside = true;
        assert_eq!(parts(&view.due()), ["before"; 3]);
    }

    #[test]
    fn what_this_larder_does_not_have_is_asked_again_only_after_an_outage() {
        let mut view = view();
        view.due();
        view.tab = TopTab::Urls;
        let urls = TopAsk::Urls { of: "urls", filter: String::new() };
        for absent in [TopAsk::About, urls] {
            view.feed(TopFed::Answer(TopAnswer::Absent(absent)));
        }
        view.now += 1e6;
        let due = view.due();
        assert!(parts(&due).contains(&"/stats") && !parts(&due).contains(&"/api/v1/top"), "{due:?}");
        view.feed(TopFed::Lost("it went".to_owned()));
        assert!(view.due().is_empty(), "nobody is there to be asked");
        view.feed(TopFed::Connected);
        assert!(parts(&view.due()).contains(&"/api/v1/about"));
    }

    #[test]
    fn nothing_is_asked_for_a_picture_that_stands() {
        let mut view = view();
        view.is_stopped = true;
        assert!(view.due().is_empty());
    }
}
