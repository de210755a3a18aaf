//! Frames as text, for each tab.

mod hostile;

use std::fmt::Write as _;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};

use super::*;
use crate::cli::log::stream::StreamBlock;
use crate::cli::top::asks::{TopAnswer, TopAsk};
use crate::cli::top::keys::TopAction;
use crate::cli::top::request::TopUrl;
use crate::cli::top::state::{TopFed, TopPane};

const NOW: f64 = 1_764_252_131.0;

/// Makes lines of what is drawn.
fn lines(view: &mut TopView, width: u16, height: u16) -> Vec<String> {
    view.size = (width, height);
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view, ScreenLook::new(true))).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let line = |y| {
        let mut line = String::new();
        let mut x = 0;
        while x < width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            x += u16::try_from(look::width(symbol)).unwrap().max(1);
        }
        line
    };
    (0..height).map(line).collect()
}

fn drawn(view: &mut TopView, width: u16, height: u16) -> String {
    let lines = lines(view, width, height);
    lines.iter().fold(String::new(), |mut all, line| {
        writeln!(all, "{}", line.trim_end()).unwrap();
        all
    })
}

fn block(name: &str, data: &Value) -> TopFed {
    TopFed::Block(StreamBlock { name: name.to_owned(), data: data.to_string() })
}

fn stats() -> Value {
    json!({
        "health": "degraded", "version": "0.4.0", "uptime_seconds": 1_036_800,
        "stores": [
            {"name": "main", "degraded": true, "tiers": [
                {"tier": "memory", "bytes": 104_857_600, "objects": 12_345, "max_bytes": 268_435_456},
                {"tier": "disk", "disk": "/mnt/d1", "state": "failed", "bytes": 1_073_741_824, "objects": 99, "max_bytes": 2_147_483_648_u64},
            ], "servers": [{"kind": "redis", "server": "10.0.0.9:6379", "state": "down"}]},
            {"name": "idle", "degraded": false, "tiers": [{"tier": "memory", "bytes": 0, "objects": 0, "max_bytes": 1024}]},
        ],
        "origins": [{"name": "app", "servers": [
            {"server": "http://10.0.0.11:3000", "state": "up", "requests": 100, "failures": 0, "in_flight": 3},
            {"server": "http://10.0.0.13:3000", "state": "ejected", "requests": 5, "failures": 5, "in_flight": 0, "backup": true},
        ]}],
    })
}

fn values() -> Value {
    json!({
        "requests": 1240, "connections": 412, "cpu": 0.41, "memory": 73_400_320, "bytes_out": 39_845_888,
        "result.memory": 1062, "result.disk": 71, "result.stale": 30, "result.joined": 41, "result.asked": 36,
        "latency:all:p50": 0.0002, "latency:all:p99": 0.012,
        "rule:shop:/blog/*:result.memory": 500, "rule:shop:/blog/*:result.asked": 22, "rule:shop:/blog/*:reason.uri-miss": 22,
        "rule:shop:/blog/*:before.not-stored": 22, "rule:shop:/blog/*:not_stored.set-cookie": 22, "rule:shop:/blog/*:bytes_store": 20_000_000,
        "rule:shop:/blog/*:bytes_origin": 300_000, "rule:shop:/blog/*:origin_seconds": 3.5, "rule:shop:/blog/*:origin_answers": 22,
        "rule:shop:/img/*:result.memory": 562, "rule:shop:/img/*:result.stale": 30, "rule:shop:/img/*:result.asked": 14,
        "rule:shop:/img/*:reason.stale": 7.5, "rule:shop:/img/*:reason.uri-miss": 6.5, "rule:shop:/img/*:before.evicted": 6.5,
        "store:main:lookups": 1200, "store:main:hits": 1163, "store:main:stored": 14, "store:main:evictions.room": 2,
        "origin:app:requests": 36, "origin:app:failures": 0.5, "origin:app:in_flight": 3, "origin:app:p50": 0.041, "origin:app:p99": 0.16,
    })
}

/// A larder with a bit of everything.
fn view() -> TopView {
    let mut view = TopView::new("127.0.0.1:8081", stats(), NOW - 5.0);
    view.feed(TopFed::Connected);
    view.now = NOW;
    let mut later = stats();
    later["origins"][0]["servers"][0]["requests"] = 275.into();
    view.feed(TopFed::Answer(TopAnswer::Stats(later)));
    let rising: Vec<_> = (0..120).collect();
    let gap: Vec<_> = (0..120).map(|at| if at < 60 { Value::Null } else { json!(0.01) }).collect();
    view.feed(TopFed::Answer(TopAnswer::Series(
        view.window,
        json!({"at": NOW - 1.0, "step": 5, "values": {"requests": rising, "latency:all:p99": gap, "result.asked": []}}),
    )));
    view.feed(block("tick", &json!({"at": NOW, "values": values()})));
    for (path, result, why) in [("/blog/a", "asked", "set-cookie"), ("/img/tower.jpg", "memory", "")] {
        let mut of = json!({"at": NOW, "weight": 1, "method": "GET", "scheme": "http", "host": "shop.example", "path": path,
            "result": result, "status": 200, "time": 0.183, "bytes": 5600});
        if !why.is_empty() {
            of["reason"] = "uri-miss".into();
            of["before"] = "not-stored".into();
            of["detail"] = why.into();
        }
        view.tab = TopTab::Requests;
        view.feed(block("request", &of));
    }
    view.feed(block(
        "event",
        &json!({"at": NOW - 300.0, "kind": "reload", "subject": "larder.toml", "text": "2 sites"}),
    ));
    view.feed(TopFed::Answer(TopAnswer::Urls(
        "urls",
        String::new(),
        json!({"rows": [
            {"key": ["http://shop.example/blog/a"], "rate": 22.1, "error": 0.5, "last": NOW - 1.0},
            {"key": ["http://shop.example/img/tower.jpg"], "rate": 3, "error": 0, "last": NOW - 200.0},
        ]}),
    )));
    view.feed(TopFed::Answer(TopAnswer::About(json!({"words": {"not_stored": [
        {"word": "set-cookie", "sentence": "The response sets a cookie.", "helps": "Let the app set it elsewhere."},
    ]}}))));
    view.tab = TopTab::Overview;
    view
}

/// Compares with a frame that is kept; `WRITE=1` keeps the one that is drawn.
#[track_caller]
fn check(view: &mut TopView, (width, height): (u16, u16), name: &str) {
    let path = format!("{}/src/cli/top/screen/frames/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let drawn = drawn(view, width, height);
    if std::env::var_os("WRITE").is_some() {
        std::fs::write(&path, &drawn).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert!(drawn == expected, "this is drawn:\n{drawn}\nthis was expected:\n{expected}");
}

#[test]
fn each_tab_fits_into_the_usual_window() {
    let mut view = view();
    for tab in TopTab::ALL {
        view.tab = tab;
        check(&mut view, (80, 24), tab.word());
    }
}

#[test]
fn a_wider_and_higher_window_shows_more() {
    check(&mut view(), (120, 40), "overview_wide");
}

#[test]
fn what_a_word_means_is_told_below_the_list() {
    let mut view = view();
    view.tab = TopTab::Why;
    view.act(TopAction::Move(crate::cli::top::keys::TopMove::Down));
    let drawn = drawn(&mut view, 80, 24);
    assert!(
        drawn.contains(" set-cookie: The response sets a cookie. Let the app set it elsewhere."),
        "{drawn}"
    );
}

#[test]
fn figures_of_an_hour_ago_stand_beside_and_unknown_ones_are_no_zeros() {
    let mut view = view();
    view.act(TopAction::Beside);
    assert!(drawn(&mut view, 80, 24).contains("97.0 % (- an hour ago)"));
    for tab in [TopTab::Why, TopTab::Rules, TopTab::Stores, TopTab::Origins] {
        view.tab = tab;
        let drawn = drawn(&mut view, 80, 24);
        assert!(drawn.contains("1 h AGO"), "{drawn}");
    }
    let unknown = json!({"values": {"requests": [null], "result.asked": [null], "result.disk": [3]}});
    view.feed(TopFed::Answer(TopAnswer::Before(unknown)));
    view.tab = TopTab::Overview;
    assert!(drawn(&mut view, 80, 24).contains(" disk        71.0   5.7        - "));
    let then = json!({"values": {"requests": [100], "result.asked": [20], "result.disk": [null], "origin:app:requests": [55.5]}});
    view.feed(TopFed::Answer(TopAnswer::Before(then)));
    view.tab = TopTab::Overview;
    assert!(drawn(&mut view, 80, 24).contains("97.0 % (80.0 an hour ago)"));
    view.tab = TopTab::Origins;
    assert!(drawn(&mut view, 80, 24).contains("   55.5 "));
}

#[test]
fn panes_lie_over_the_tab() {
    let mut view = view();
    view.tab = TopTab::Urls;
    view.act(TopAction::Help);
    assert!(drawn(&mut view, 80, 24).contains("q, Ctrl-C       quit"));
    view.act(TopAction::Close);
    view.act(TopAction::Purge);
    assert!(drawn(&mut view, 80, 24).contains("counting what would go"));
    view.feed(TopFed::Answer(TopAnswer::Counted("http://shop.example/blog/a".to_owned(), 2)));
    check(&mut view, (80, 24), "question");
    view.act(TopAction::Close);
    view.act(TopAction::Explain);
    let url = TopUrl::told("GET", "http://shop.example/blog/a");
    view.feed(TopFed::Answer(TopAnswer::Explained(url, "1  Site and rule\n   site  shop\n".to_owned())));
    let explained = drawn(&mut view, 80, 24);
    assert!(
        explained.contains("\u{2502} 1  Site and rule ") && explained.contains("Esc closes"),
        "{explained}"
    );
}

#[test]
fn an_outage_is_told_with_the_age_of_the_figures_and_an_older_larder_with_what_it_lacks() {
    let mut view = view();
    view.feed(TopFed::Lost("the connection has ended".to_owned()));
    view.now += 12.0;
    let lost = drawn(&mut view, 80, 24);
    assert!(lost.contains("figures of 12 s ago") && lost.contains("the connection has ended; trying again"));
    view.feed(TopFed::Connected);
    view.feed(block("tick", &json!({"at": NOW + 12.0, "values": {}})));
    assert!(drawn(&mut view, 80, 24).contains("  live\n"));
    view.act(TopAction::Stop);
    assert!(drawn(&mut view, 80, 24).contains("stopped: space goes on"));
    let mut view = TopView::new("a", stats(), NOW);
    view.feed(TopFed::Absent);
    let drawn_first = drawn(&mut view, 80, 24);
    assert!(drawn_first.contains("this larder is older and has no live figures"), "{drawn_first}");
    assert!(drawn_first.contains("1/2 up"), "the rest is there: {drawn_first}");
    view.tab = TopTab::Urls;
    let urls = TopAsk::Urls { of: "urls", filter: String::new() };
    view.feed(TopFed::Answer(TopAnswer::Absent(urls)));
    assert!(drawn(&mut view, 80, 24).contains("this larder has no /api/v1/top"));
    view.act(TopAction::Help);
    assert!(drawn(&mut view, 80, 24).contains("This larder is older: no /api/v1/top."));
}

#[test]
fn a_window_that_is_too_small_is_told_so_and_none_is_a_fault() {
    let mut view = view();
    assert!(drawn(&mut view, 59, 24).contains("larder top needs 60 x 16"));
    assert!(drawn(&mut view, 60, 15).contains("this window is 60 x 15"));
    for tab in TopTab::ALL {
        view.tab = tab;
        for pane in [
            TopPane::None,
            TopPane::Help,
            TopPane::Line("x".repeat(300)),
            TopPane::Question(TopUrl::default(), Some(1)),
        ] {
            view.pane = pane;
            for (width, height) in
                [(1, 1), (3, 2), (59, 24), (60, 16), (61, 17), (80, 16), (300, 16), (60, 120), (250, 90)]
            {
                lines(&mut view, width, height);
            }
        }
    }
}

#[test]
fn without_colours_no_cell_has_one() {
    let mut view = view();
    view.size = (80, 24);
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    for tab in TopTab::ALL {
        view.tab = tab;
        terminal.draw(|frame| draw(frame, &view, ScreenLook::new(false))).unwrap();
        for cell in terminal.backend().buffer().content() {
            assert_eq!(
                (cell.fg, cell.bg),
                (ratatui::style::Color::Reset, ratatui::style::Color::Reset),
                "{tab:?}"
            );
        }
    }
}
