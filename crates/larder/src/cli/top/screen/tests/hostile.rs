//! Names, URLs and texts that would steer the terminal, or move what is beside them.

use serde_json::{Value, json};

use super::{NOW, block, lines};
use crate::cli::top::asks::TopAnswer;
use crate::cli::top::request::TopUrl;
use crate::cli::top::screen::{TopTab, look};
use crate::cli::top::state::{TopFed, TopPane, TopView};

/// What would steer a terminal, order a line anew, or take no columns.
const HOSTILE: &str = "\u{1b}]0;x\u{7}\u{1b}[2J\u{9b}H\u{202e}\u{2066}\u{200b}\u{feff}\u{301}\u{301}\u{fe0f}\r\n\t\u{6f22}\u{5b57}";

/// The same with something hostile wherever a text may come from outside.
fn hostile() -> TopView {
    let long = format!("{HOSTILE}{}", "a\u{301}\u{6f22}".repeat(2000));
    let encoded: String = HOSTILE.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let stats = json!({"health": long, "version": long, "uptime_seconds": 1,
        "stores": [{"name": long, "degraded": true, "tiers": [{"tier": long, "disk": long, "state": long}],
            "servers": [{"kind": long, "server": long, "state": long}]}],
        "origins": [{"name": long, "servers": [{"server": long, "state": long}]}]});
    let mut view = TopView::new(&long, stats, NOW);
    view.feed(TopFed::Connected);
    let mut values = serde_json::Map::new();
    for (name, value) in [("requests", 5.0), ("result.asked", 5.0)] {
        values.insert(name.to_owned(), value.into());
    }
    for measure in
        ["result.asked", &format!("reason.{long}"), &format!("before.{long}"), &format!("not_stored.{long}")]
    {
        values.insert(format!("rule:{encoded}:{encoded}:{measure}"), 5.into());
    }
    view.feed(block("tick", &json!({"at": NOW, "values": values})));
    view.tab = TopTab::Requests;
    let texts = ["method", "scheme", "host", "path", "query", "result", "reason", "before", "detail"];
    for at in 0..30 {
        let mut request: Value = texts.into_iter().map(|name| (name.to_owned(), json!(long))).collect();
        request["at"] = json!(NOW - f64::from(at));
        view.feed(block("request", &request));
    }
    view.feed(block("event", &json!({"at": NOW, "kind": long, "subject": long, "text": long})));
    let rows = json!({"rows": [{"key": [long, format!("http://{long}")], "rate": 1e300, "error": -1e300, "last": -1e300}]});
    view.feed(TopFed::Answer(TopAnswer::Urls("urls", String::new(), rows)));
    let words = json!([{"word": "x", "sentence": long}]);
    view.feed(TopFed::Answer(TopAnswer::About(
        json!({"words": {"reason": words, "before": words, "not_stored": words}}),
    )));
    view.filters.insert(TopTab::Requests.place(), long.clone());
    view.filters.insert(TopTab::Urls.place(), long);
    view
}

#[test]
fn nothing_from_outside_steers_the_terminal_or_moves_what_is_beside_it() {
    let mut view = hostile();
    let long = HOSTILE.repeat(50);
    let url = TopUrl::told(&long, &long);
    let panes = [
        TopPane::None,
        TopPane::Line(long.clone()),
        TopPane::Text(url.clone(), format!("{long}\n{long}"), 0),
        TopPane::Question(url, Some(3)),
    ];
    for (width, height) in [(60, 16), (120, 30)] {
        for pane in &panes {
            for said in [None, Some(long.clone())] {
                view.pane = pane.clone();
                view.said = said;
                for tab in TopTab::ALL {
                    view.tab = tab;
                    for line in lines(&mut view, width, height) {
                        let bad = |c: char| c.is_control() || larder_observe::is_invisible(c);
                        assert!(!line.contains(bad), "{tab:?}: {line:?}");
                        assert_eq!(look::width(&line), usize::from(width), "{tab:?}: {line:?}");
                    }
                }
            }
        }
    }
}
