//! The head of the screen: which larder, how it is, its tabs, and its figures in one line.
//!
//! In: the view. Out: three lines. The first tells at its right end whether the figures are of this moment, and how old they are where they are not.

use ratatui::Frame;
use ratatui::layout::Rect;
use serde_json::Value;

use super::look::{ScreenLook, shown, width, write};
use super::numbers::{UNKNOWN, rate, share, size};
use crate::cli::table::signed_time;
use crate::cli::top::state::{TopLink, TopView};
use crate::cli::top::stats::word;
use crate::cli::top::tab::TopTab;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, view: &TopView, look: ScreenLook) {
    let buffer = frame.buffer_mut();
    let (said, is_warning) = state(view);
    let columns = u16::try_from(width(&said)).unwrap_or(area.width).min(area.width / 2);
    let right = area.width - columns - 1;
    let style = if is_warning { look.warning() } else { look.bold() };
    write(buffer, right, 0, columns, &said, style);
    let x = write(buffer, 1, 0, right.saturating_sub(2), &format!("larder {}", view.address), look.bold());
    let health = word(&view.stats, "health");
    let mut about = format!("  {}", shown(word(&view.stats, "version")));
    if let Some(up) = view.stats.get("uptime_seconds").and_then(Value::as_f64) {
        about.push_str(&format!("  up {}", signed_time(up as i64)));
    }
    let x = write(buffer, x, 0, right.saturating_sub(x + 1), &about, look.plain());
    if !matches!(health, "ok" | "") {
        write(buffer, x + 2, 0, right.saturating_sub(x + 3), &shown(health), look.warning());
    }
    tabs(frame, area, view, look);
    figures(frame, area, view, look);
}

/// Whether the figures are of this moment.
fn state(view: &TopView) -> (String, bool) {
    let age = view.age().map(|age| format!("figures of {} ago", signed_time(age as i64)));
    match (&view.link, age) {
        (TopLink::Connecting, _) => ("connecting".to_owned(), false),
        (TopLink::Lost(since, _), age) => {
            let lost = format!("no connection for {}", signed_time((view.now - since) as i64));
            (age.unwrap_or(lost), true)
        }
        (TopLink::Absent, _) => ("no live figures".to_owned(), true),
        (TopLink::Live, _) if view.is_stopped => ("stopped: space goes on".to_owned(), true),
        (TopLink::Live, Some(age)) => (age, true),
        (TopLink::Live, None) => ("live".to_owned(), false),
    }
}

fn tabs(frame: &mut Frame<'_>, area: Rect, view: &TopView, look: ScreenLook) {
    let is_narrow = area.width < 78;
    let mut x = 1;
    for tab in TopTab::ALL {
        let number = tab.place() + 1;
        let text = match is_narrow && tab != view.tab {
            true => format!("{number}"),
            false => format!("{number} {}", tab.word()),
        };
        let style = if tab == view.tab { look.chosen() } else { look.plain() };
        x = write(frame.buffer_mut(), x, 1, area.width.saturating_sub(x), &text, style) + 2;
    }
}

/// The figures that are read first, each with its unit.
fn figures(frame: &mut Frame<'_>, area: Rect, view: &TopView, look: ScreenLook) {
    let of = |name: &str| view.recent.value(name);
    if view.recent.at().is_none() {
        let why = match view.link {
            TopLink::Absent => {
                "this larder is older and has no live figures; those since its start are in larder stats"
            }
            _ => "waiting for the first figures",
        };
        write(frame.buffer_mut(), 1, 2, area.width - 2, why, look.faint());
        return;
    }
    let saved = |of: &dyn Fn(&str) -> f64| share(of("requests") - of("result.asked"), of("requests"));
    let mut parts = vec![format!("{}/s", rate(of("requests")))];
    let mut without = format!("{} % without the origin", saved(&of));
    if view.is_beside {
        let before = |name: &str| view.hour_ago().and_then(|all| all.get(name)).copied().unwrap_or_default();
        without = format!("{} % ({} an hour ago) without the origin", saved(&of), saved(&before));
    }
    parts.push(without);
    parts.push(format!("out {}/s", size(of("bytes_out"))));
    parts.push(format!("{} open", rate_whole(of("connections"))));
    parts.push(format!("cpu {:.2}", of("cpu")));
    parts.push(format!("memory {}", size(of("memory"))));
    let mut x = 1;
    for (place, part) in parts.iter().enumerate() {
        let columns = u16::try_from(width(part)).unwrap_or(area.width);
        if x + columns > area.width {
            break;
        }
        let style = if place < 2 { look.bold() } else { look.plain() };
        x = write(frame.buffer_mut(), x, 2, columns, part, style) + 2;
    }
}

fn rate_whole(of: f64) -> String {
    if of >= 0.0 { crate::cli::table::count(of.round() as u64) } else { UNKNOWN.to_owned() }
}
